package data

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// The kernel begins to write a file to the disk when somebody waits for it, or
// when much of its memory waits to be written. Until then the disk would do
// nothing while workers read and hash. So each stretch of a large file is handed
// to the disk when it is complete; nobody waits for what becomes of it, and a
// stretch that finds no place in the line is written later with everything else.
const (
	stretchBytes = 4 << 20
	stretchesMax = 256 // in the line
)

// stretch is a part of a file that was written.
type stretch struct {
	path           string // of the file
	offset, length int64
}

// early hands stretches to the disk. offer may be called from any goroutine
// until end was called; run belongs to one goroutine.
type early struct {
	line chan stretch
	over chan struct{}
}

func newEarly() *early {
	return &early{make(chan stretch, stretchesMax), make(chan struct{})}
}

// offer queues a stretch, if there is room.
func (e *early) offer(s stretch) {
	select {
	case e.line <- s:
	default:
	}
}

// end lets run return after the stretch that it is at.
func (e *early) end() { close(e.over) }

// run starts to write what is offered, until the end.
func (e *early) run(c *copier) {
	at, fd := "", -1
	defer func() {
		if fd >= 0 {
			unix.Close(fd)
		}
	}()
	for {
		select {
		case <-e.over:
			return
		case s := <-e.line:
			if s.path != at {
				if fd >= 0 {
					unix.Close(fd)
				}
				name := filepath.Join(c.dir, "tree", s.path)
				fd, _ = unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
				at = s.path
			}
			if fd >= 0 {
				// Whether it was written is asked when the copy is complete.
				_ = unix.SyncFileRange(fd, s.offset, s.length, unix.SYNC_FILE_RANGE_WRITE)
			}
		}
	}
}
