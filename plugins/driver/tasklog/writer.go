//go:build linux

package tasklog

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// PrepareDir makes a log directory with mode 0700, parents included, and
// opens it. fresh says that it was made just now and holds nothing. A
// directory of somebody else, or a link, is refused; one of ours with a wider
// mode is narrowed.
func PrepareDir(path string) (dir *os.File, fresh bool, err error) {
	switch err := os.Mkdir(path, 0o700); {
	case err == nil:
		fresh = true
	case errors.Is(err, os.ErrNotExist):
		if err := os.MkdirAll(path, 0o700); err != nil {
			return nil, false, fmt.Errorf("make log directory: %w", err)
		}
	case !errors.Is(err, os.ErrExist):
		return nil, false, fmt.Errorf("make log directory: %w", err)
	}
	dir, err = openDir("", path)
	if err != nil {
		return nil, false, err
	}
	if err := dir.Chmod(0o700); err != nil {
		dir.Close()
		return nil, false, fmt.Errorf("narrow log directory: %w", err)
	}
	return dir, fresh, nil
}

// Writer appends one stream to its segments. It is for one goroutine.
//
// Write never fails and never blocks on anything but the disk: what cannot be
// written, for instance because the disk is full, is dropped and counted,
// and a line in the stream says how much was lost as soon as there is room
// again. So a full disk costs output, but does not stop the training.
type Writer struct {
	dir      *os.File
	stream   string
	filesMax int64
	bytesMax int64

	file   *os.File // nil before the first Write, and after a failure to open
	number int64
	size   int64
	sized  bool // the directory tells the size of segments

	lost      int64
	lostCause error
	clock     clock

	// splicing is set by the first Splice: files are then written at an
	// offset, because the kernel splices to no file that is open for
	// appending.
	splicing bool
	refused  bool // the file system does not splice
	scratch  []byte
}

// NewWriter prepares a stream for appending; the first file appears with the
// first byte, so that a silent stream costs nothing. fresh is what PrepareDir said and
// saves a look at the directory. filesMax is at least 2; bytesMax is the
// size of a segment, unless segments of another size are there already:
// then theirs is kept. The writer keeps dir and does not close it.
func NewWriter(dir *os.File, fresh bool, stream string, filesMax int, bytesMax int64) (*Writer, error) {
	if !validStream(stream) || filesMax < 2 || bytesMax < 1 {
		return nil, fmt.Errorf("open log %q: want stdout or stderr, 2 or more files of 1 or more bytes", stream)
	}
	w := &Writer{dir: dir, stream: stream, filesMax: int64(filesMax), bytesMax: bytesMax}
	if !fresh {
		segments, each, err := listSegments(dir, stream)
		if err != nil {
			return nil, err
		}
		if len(segments) > 0 {
			last := segments[len(segments)-1]
			w.number = last.number
			switch {
			case each > 0:
				w.bytesMax, w.sized = each, true
			case len(segments) > 1:
				w.bytesMax = max(segments[0].size, 1)
			default:
				w.bytesMax = max(w.bytesMax, last.size)
			}
		}
	}
	return w, nil
}

// open opens the segment w.number, removing what is not a plain file there.
func (w *Writer) open() error {
	flags := syscall.O_WRONLY | syscall.O_CREAT
	if !w.splicing {
		flags |= syscall.O_APPEND
	}
	file, size, err := openSegment(w.dir, w.stream, w.number, flags)
	if errors.Is(err, ErrRefused) {
		if err := syscall.Unlinkat(int(w.dir.Fd()), segmentName(w.stream, w.number)); err != nil {
			return fmt.Errorf("remove %s: %w", segmentName(w.stream, w.number), err)
		}
		file, size, err = openSegment(w.dir, w.stream, w.number, flags|syscall.O_EXCL)
	}
	if err != nil {
		return err
	}
	w.file, w.size = file, size
	return nil
}

// Write appends data; it always reports all of it as written.
func (w *Writer) Write(data []byte) (int, error) {
	w.confess()
	if left := w.append(data); left > 0 {
		w.lost += int64(left)
	}
	return len(data), nil
}

// confess says in the stream how much of it was lost, when there is room
// again.
func (w *Writer) confess() {
	if w.lost > 0 {
		note := "\n[nomadlike: " + strconv.FormatInt(w.lost, 10) + " bytes of output lost: " + w.lostCause.Error() + "]\n"
		if w.append([]byte(note)) == 0 {
			w.lost, w.lostCause = 0, nil
		}
	}
}

// append writes data over as many segments as it takes and returns the number
// of bytes that found no room; the cause is kept.
func (w *Writer) append(data []byte) (left int) {
	for len(data) > 0 {
		for w.file == nil || w.size >= w.bytesMax {
			if err := w.rotate(); err != nil {
				w.lostCause = err
				return len(data)
			}
		}
		part := data[:min(int64(len(data)), w.bytesMax-w.size)]
		n, err := w.put(part)
		if n > 0 {
			w.note(w.size)
		}
		w.size += int64(n)
		data = data[n:]
		if err != nil {
			w.lostCause = cause(err)
			return len(data)
		}
	}
	return 0
}

func (w *Writer) put(part []byte) (int, error) {
	if w.splicing {
		return w.file.WriteAt(part, w.size)
	}
	return w.file.Write(part)
}

// rotate opens the next segment, or the present one again after a failure,
// and removes those that are too old. The new one is there before an old one
// goes, so that a reader always finds two.
func (w *Writer) rotate() error {
	if w.file != nil {
		w.file.Close()
		w.file = nil
		w.clock.leave()
		w.number++
	}
	if w.number > 0 && !w.sized {
		if err := w.tellSize(); err != nil {
			return cause(err)
		}
		w.sized = true
	}
	if err := w.open(); err != nil {
		return cause(err)
	}
	if old := w.number - w.filesMax; old >= 0 {
		// Already gone is fine, and nothing can be done about the rest.
		_ = syscall.Unlinkat(int(w.dir.Fd()), segmentName(w.stream, old))
		_ = syscall.Unlinkat(int(w.dir.Fd()), timesName(w.stream, old))
	}
	return nil
}

// tellSize makes the name that tells the size of segments.
func (w *Writer) tellSize() error {
	name := w.stream + sizePrefix + strconv.FormatInt(w.bytesMax, 10)
	fd, err := retry(func() (int, error) {
		return syscall.Openat(int(w.dir.Fd()), name, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o600)
	})
	switch {
	case err == syscall.EEXIST:
		return nil
	case err != nil:
		return &os.PathError{Op: "make", Path: name, Err: err}
	}
	return syscall.Close(fd)
}

// Close closes the newest segment. It does not sync: logs survive the death
// of any process, and of the machine as far as its kernel got.
func (w *Writer) Close() error {
	w.clock.leave()
	if w.file == nil {
		return nil
	}
	err := w.file.Close()
	w.file = nil
	return err
}

// cause strips the path from an error that goes into the stream itself.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
