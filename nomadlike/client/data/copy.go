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
	// version is what is copied where it is a version of named data; then nothing is listed
	// before it is known that there is no copy.
	version *Version
	dir     string // of the copy in the making
	lists   string // where files without a name are made
	list    *Listing
	now     func() time.Time
	report  func(done int64)
	umask   fs.FileMode // of this process
	mine    bool        // what is made in the tree belongs to this process's own user and group

	journal *journal
	early   *early
	numbers numbers
	sums    *sums
	done    []bool       // by number of the chunk
	copied  atomic.Int64 // bytes, those of an earlier process included
	fresh   atomic.Int64 // bytes that this process copied
}

// piece is a part of the work: all of a file, or one chunk of a large one.
type piece struct {
	file, chunk int
	number      int // of the chunk among all
	of          *File
}

// missing is how many bytes are still to be copied. Any goroutine may call it.
func (c *copier) missing() int64 { return max(0, c.list.Bytes-c.copied.Load()) }

// resume takes over what an earlier process has done.
func (c *copier) resume(bootID string) (err error) {
	if c.numbers, err = numbersOf(c.list); err != nil {
		return err
	}
	c.done = make([]bool, c.numbers.first(c.numbers.files))
	if c.sums, err = newSums(c.lists, len(c.done)); err != nil {
		return err
	}
	path, told := filepath.Join(c.dir, "journal"), false
	sameBoot, good, err := readJournal(path, bootID, func(r *record) error {
		told = true
		if int(r.file) >= c.numbers.files {
			return nil
		}
		number := c.numbers.first(int(r.file)) + int(r.chunk)
		if number >= c.numbers.first(int(r.file)+1) {
			return nil
		}
		c.done[number] = true
		return c.sums.set(number, r.digest)
	})
	if err != nil {
		return err
	}
	if !told {
		good = 0
	} else if err := c.believe(sameBoot); err != nil {
		return err
	}
	if c.journal, err = openJournal(path, bootID, good); err == nil && !told && c.version != nil {
		err = c.salvage()
	}
	return err
}

// believe keeps of what the journal tells what is in the copy.
func (c *copier) believe(sameBoot bool) error {
	return c.list.files.each(func(i int, f *File) error {
		first := c.numbers.first(i)
		for chunk := range f.chunks() {
			if !c.done[first+chunk] {
				continue
			}
			digest, err := c.sums.get(first + chunk)
			if err != nil {
				return err
			}
			offset, length := f.span(chunk)
			if c.done[first+chunk] = c.has(f, offset, length, digest, !sameBoot); c.done[first+chunk] {
				c.copied.Add(length)
			}
		}
		return nil
	})
}

// has reports whether a chunk is in the copy; verify reads it.
func (c *copier) has(f *File, offset, length int64, digest [sha256.Size]byte, verify bool) bool {
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
	if c.version != nil {
		return c.fill(ctx)
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
						cancel(fmt.Errorf("copy %s: %w", p.of.Path, err))
					}
				}
			}
		})
	}
	err := c.eachBatch(func(batch []piece) error {
		batches <- batch
		return ctx.Err()
	})
	close(batches)
	workers.Wait()
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// makeDirs makes the directories of the copy, and finds out what a new file in
// them is like: one that has its owner and its rights already is not given them
// again.
func (c *copier) makeDirs() error {
	tree := filepath.Join(c.dir, "tree")
	return c.list.dirs.each(func(i int, d *File) error { // a parent is listed before what is in it
		err := os.Mkdir(filepath.Join(tree, d.Path), 0o700)
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
		return nil
	})
}

// eachBatch hands out what is missing, until yield says no.
func (c *copier) eachBatch(yield func([]piece) error) error {
	var batch []piece
	var dir string
	size, number := int64(0), -1
	err := c.list.files.each(func(i int, f *File) error {
		for chunk := range f.chunks() {
			if number++; c.done[number] {
				continue
			}
			_, length := f.span(chunk)
			parent := path.Dir(f.Path)
			if len(batch) > 0 && (parent != dir || len(batch) == batchFiles || size+length > batchBytes) {
				if err := yield(batch); err != nil {
					return err
				}
				batch, size = nil, 0
			}
			batch, size, dir = append(batch, piece{i, chunk, number, f}), size+length, parent
		}
		return nil
	})
	if err == nil && len(batch) > 0 {
		err = yield(batch)
	}
	return err
}

// makeLinks makes the links of the copy.
func (c *copier) makeLinks() error {
	return c.list.links.each(func(_ int, f *File) error {
		name := filepath.Join(c.dir, "tree", f.Path)
		if target, err := os.Readlink(name); err == nil && target == f.Tag {
			return f.Owner.giveLink(name)
		} else if err == nil { // of an earlier process, and damaged
			if err := os.Remove(name); err != nil {
				return err
			}
		}
		if err := os.Symlink(f.Tag, name); err != nil {
			return err
		}
		return f.Owner.giveLink(name)
	})
}

// finish makes the links, sets what large files lack, writes the manifest, and names the contents.
func (c *copier) finish() (digest string, err error) {
	all, err := contentsOf(c.list)
	if err != nil {
		return "", err
	}
	if err := c.makeLinks(); err != nil {
		return "", err
	}
	m, err := createManifest(filepath.Join(c.dir, manifestFile), c.list.Bytes)
	if err != nil {
		return "", err
	}
	err = c.list.files.each(func(i int, f *File) error {
		chunks, err := c.sums.of(c.numbers.first(i), f.chunks())
		if err != nil {
			return err
		}
		if err := c.verify(f, chunks); err != nil {
			return fmt.Errorf("verify %s: %w", f.Path, err)
		}
		if len(chunks) > 1 {
			if err := c.setRights(f.Path, f.Mode, f.Owner); err != nil {
				return err
			}
		}
		h := sha256.New()
		for i := range chunks {
			h.Write(chunks[i][:])
		}
		digest := h.Sum(nil)
		all.add(f, digest)
		of := manifestEntry{Path: f.Path, Size: f.Size, Digest: digest}
		if len(chunks) > 1 {
			for i := range chunks {
				of.Chunks = append(of.Chunks, chunks[i][:])
			}
			of.Ends = f.Ends
		}
		return m.add(&of)
	})
	if closed := m.close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	return all.digest(), c.list.dirs.each(func(_ int, d *File) error { return c.setRights(d.Path, d.Mode, d.Owner) })
}

// verify compares a file with the digest that its source says of it. That of
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

// setRights sets the rights of a finished file or directory to those of its source.
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

// giveLink makes a link belong to o, and not what it leads to.
func (o owner) giveLink(name string) error {
	if o.UID < 0 {
		return nil
	}
	return os.Lchown(name, o.UID, o.GID)
}
