package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// workersMin keeps enough requests under way at storages that answer late.
const workersMin = 8

// ErrChanged is returned when a source changes while it is copied.
var ErrChanged = errors.New("dataset changes while it is copied")

// copier makes one copy.
type copier struct {
	source *os.Root
	dir    string // of the copy in the making
	list   *listing
	now    func() time.Time
	report func(done int64)

	journal *journal
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
func (c *copier) holds(f *file, offset, length int64, digest [sha256.Size]byte, verify bool) bool {
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
	tree := filepath.Join(c.dir, "tree")
	for i := range c.list.Dirs { // a parent is listed before what is in it
		if err := os.Mkdir(filepath.Join(tree, c.list.Dirs[i].Path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	pieces := make(chan piece, 256)
	var workers sync.WaitGroup
	for range max(workersMin, 2*runtime.NumCPU()) {
		workers.Go(func() {
			buffer := make([]byte, 1<<20)
			for p := range pieces {
				if ctx.Err() != nil {
					continue
				}
				if err := c.copy(p, buffer); err != nil {
					cancel(fmt.Errorf("copy %s: %w", c.list.Files[p.file].Path, err))
				}
			}
		})
	}
	for i := range c.list.Files {
		for chunk, done := range c.done[i] {
			if !done && ctx.Err() == nil {
				pieces <- piece{i, chunk}
			}
		}
	}
	close(pieces)
	workers.Wait()
	return context.Cause(ctx)
}

// copy copies one piece. Every worker opens the file anew: pieces are large, or
// all of their file.
func (c *copier) copy(p piece, buffer []byte) error {
	f := &c.list.Files[p.file]
	offset, length := f.span(p.chunk)
	from, err := c.source.OpenFile(f.Path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	name := filepath.Join(c.dir, "tree", f.Path)
	to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrPermission) && len(c.done[p.file]) == 1 { // it was finished, and the journal did not hear of it
		if err := os.Remove(name); err != nil {
			return err
		}
		to, err = os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	}
	if err != nil {
		return err
	}
	defer to.Close()
	h := sha256.New()
	for at := int64(0); at < length; {
		n, err := from.ReadAt(buffer[:min(int64(len(buffer)), length-at)], offset+at)
		if n == 0 {
			if err == nil || errors.Is(err, io.EOF) {
				return ErrChanged
			}
			return err
		}
		h.Write(buffer[:n])
		if _, err := to.WriteAt(buffer[:n], offset+at); err != nil {
			return err
		}
		at += int64(n)
		c.fresh.Add(int64(n))
		c.report(c.copied.Add(int64(n)))
	}
	if info, err := from.Stat(); err != nil || info.Size() != f.Size || info.ModTime().UnixNano() != f.MTime {
		return errors.Join(err, ErrChanged)
	}
	if len(c.done[p.file]) == 1 { // the last hand on it; others are finished after all
		if err := f.Owner.give(to); err != nil {
			return err
		}
		if err := to.Chmod(f.Mode); err != nil {
			return err
		}
	}
	r := record{file: uint32(p.file), chunk: uint32(p.chunk), digest: [sha256.Size]byte(h.Sum(nil))}
	c.digests[p.file][p.chunk] = r.digest
	return c.journal.add(&r, c.now())
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
