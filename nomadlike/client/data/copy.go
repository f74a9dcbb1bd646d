package data

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// workersMin keeps enough requests under way at storages that answer late.
	workersMin = 8
	// What a worker takes at a time, of one directory: it opens it once for all.
	batchFiles = 64
	batchBytes = 4 << 20
)

// ErrChanged is returned when a source changes while it is copied.
var ErrChanged = errors.New("dataset changes while it is copied")

// copier makes one copy.
type copier struct {
	root   *os.Root // of a source that is a directory; nil when there is a source
	source Source
	dir    string // of the copy in the making
	list   *Listing
	now    func() time.Time
	report func(done int64)
	umask  fs.FileMode // of this process
	mine   bool        // what is made in the tree belongs to this process's own user and group

	journal *journal
	early   *early
	digests [][][sha256.Size]byte // by file and chunk
	done    [][]bool
	copied  atomic.Int64 // bytes, those of an earlier process included
	fresh   atomic.Int64 // bytes that this process copied
}

// piece is a part of the work: all of a file, or one chunk of a large one.
type piece struct{ file, chunk int }

// missing is how many bytes are still to be copied. Any goroutine may call it.
func (c *copier) missing() int64 { return max(0, c.list.Bytes-c.copied.Load()) }

// resume takes over what an earlier process has done.
func (c *copier) resume(bootID string) error {
	c.digests, c.done = make([][][sha256.Size]byte, len(c.list.Files)), make([][]bool, len(c.list.Files))
	for i := range c.list.Files {
		n := c.list.Files[i].chunks()
		c.digests[i], c.done[i] = make([][sha256.Size]byte, n), make([]bool, n)
	}
	path := filepath.Join(c.dir, "journal")
	records, sameBoot, good, err := readJournal(path, bootID)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		good = 0
	}
	for _, r := range records {
		if int(r.file) >= len(c.done) || int(r.chunk) >= len(c.done[r.file]) {
			continue
		}
		f := &c.list.Files[r.file]
		offset, length := f.span(int(r.chunk))
		if !c.holds(f, offset, length, r.digest, !sameBoot) {
			continue
		}
		if !c.done[r.file][r.chunk] {
			c.copied.Add(length)
		}
		c.digests[r.file][r.chunk], c.done[r.file][r.chunk] = r.digest, true
	}
	c.journal, err = openJournal(path, bootID, good)
	return err
}

// holds tells whether a chunk is in the copy; verify reads it.
func (c *copier) holds(f *File, offset, length int64, digest [sha256.Size]byte, verify bool) bool {
	name := filepath.Join(c.dir, "tree", f.Path)
	info, err := os.Lstat(name)
	if err != nil || !info.Mode().IsRegular() || info.Size() < offset+length {
		return false
	}
	if !verify {
		return true
	}
	opened, err := os.Open(name)
	if err != nil {
		return false
	}
	defer opened.Close()
	h := sha256.New()
	if _, err := io.Copy(h, io.NewSectionReader(opened, offset, length)); err != nil {
		return false
	}
	return [sha256.Size]byte(h.Sum(nil)) == digest
}

// run copies what is missing, with several workers.
func (c *copier) run(ctx context.Context) error {
	if err := c.makeDirs(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.early = newEarly()
	var disk sync.WaitGroup
	disk.Go(func() { c.early.run(c) })
	defer disk.Wait()
	defer c.early.end()
	batches := make(chan []piece, 64)
	var workers sync.WaitGroup
	for range max(workersMin, 2*runtime.NumCPU()) {
		workers.Go(func() {
			w := newWorker(c)
			defer w.close()
			for batch := range batches {
				for _, p := range batch {
					if ctx.Err() != nil {
						break
					}
					if err := w.copy(ctx, p); err != nil {
						cancel(fmt.Errorf("copy %s: %w", c.list.Files[p.file].Path, err))
					}
				}
			}
		})
	}
	c.eachBatch(func(batch []piece) bool {
		batches <- batch
		return ctx.Err() == nil
	})
	close(batches)
	workers.Wait()
	return context.Cause(ctx)
}

// makeDirs makes the directories of the copy, and finds out what a new file in
// them is like: one that has its owner and its rights already is not given them
// again.
func (c *copier) makeDirs() error {
	tree := filepath.Join(c.dir, "tree")
	for i := range c.list.Dirs { // a parent is listed before what is in it
		err := os.Mkdir(filepath.Join(tree, c.list.Dirs[i].Path), 0o700)
		if err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		if i == 0 && err == nil {
			var stat unix.Stat_t
			if err := unix.Stat(tree, &stat); err != nil {
				return err
			}
			c.mine = int(stat.Uid) == os.Geteuid() && int(stat.Gid) == os.Getegid() && stat.Mode&unix.S_ISGID == 0
		}
	}
	return nil
}

// eachBatch hands out what is missing, until yield says no.
func (c *copier) eachBatch(yield func([]piece) bool) {
	var batch []piece
	var dir string
	size := int64(0)
	for i := range c.list.Files {
		f := &c.list.Files[i]
		for chunk, done := range c.done[i] {
			if done {
				continue
			}
			_, length := f.span(chunk)
			parent := path.Dir(f.Path)
			if len(batch) > 0 && (parent != dir || len(batch) == batchFiles || size+length > batchBytes) {
				if !yield(batch) {
					return
				}
				batch, size = nil, 0
			}
			batch, size, dir = append(batch, piece{i, chunk}), size+length, parent
		}
	}
	if len(batch) > 0 {
		yield(batch)
	}
}

// finish sets what large files lack, and gives the digests of all files.
func (c *copier) finish() ([][]byte, error) {
	digests := make([][]byte, len(c.list.Files))
	for i := range c.list.Files {
		f := &c.list.Files[i]
		h := sha256.New()
		for _, chunk := range c.digests[i] {
			h.Write(chunk[:])
		}
		digests[i] = h.Sum(nil)
		if err := c.verify(f, c.digests[i]); err != nil {
			return nil, fmt.Errorf("verify %s: %w", f.Path, err)
		}
		if len(c.done[i]) > 1 {
			if err := c.setRights(f.Path, f.Mode, f.Owner); err != nil {
				return nil, err
			}
		}
	}
	for i := range c.list.Dirs {
		d := &c.list.Dirs[i]
		if err := c.setRights(d.Path, d.Mode, d.Owner); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// verify compares a file with the digest that its source tells of it. That of
// a file in one piece is compared before the journal hears of it.
func (c *copier) verify(f *File, chunks [][sha256.Size]byte) error {
	if f.SHA256 == nil {
		return nil
	}
	if len(chunks) == 1 {
		return checkSum(f, chunks[0])
	}
	opened, err := os.Open(filepath.Join(c.dir, "tree", f.Path))
	if err != nil {
		return err
	}
	defer opened.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{h}, struct{ io.Reader }{opened}, make([]byte, bufferBytes)); err != nil {
		return err
	}
	return checkSum(f, [sha256.Size]byte(h.Sum(nil)))
}

// checkSum compares the digest of a whole file.
func checkSum(f *File, got [sha256.Size]byte) error {
	if f.SHA256 != nil && !bytes.Equal(f.SHA256, got[:]) {
		return fmt.Errorf("%w: it is %x, not %x", ErrCorrupt, got, f.SHA256)
	}
	return nil
}

// setRights gives a finished file or directory the rights of its source.
func (c *copier) setRights(path string, mode fs.FileMode, o owner) error {
	f, err := os.OpenFile(filepath.Join(c.dir, "tree", path), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := o.give(f); err != nil {
		return err
	}
	return f.Chmod(mode)
}

// give makes a file belong to o; nobody's belongs to the agent.
func (o owner) give(f *os.File) error {
	if o.UID < 0 {
		return nil
	}
	return f.Chown(o.UID, o.GID)
}
