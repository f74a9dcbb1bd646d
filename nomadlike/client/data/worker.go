package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// bufferBytes is read, hashed and written at a time: what a processor's own
// cache holds, so that the bytes come from memory once.
const bufferBytes = 256 << 10

// worker copies one piece after the other. It speaks to the kernel directly:
// at thousands of small files most of the time goes to system calls, of which a
// file here takes seven.
type worker struct {
	c      *copier
	buffer []byte
	hash   hash.Hash
	// The directories of the last piece; those of the next are mostly the same.
	dir    string
	opened bool
	from   *os.File // nil when there is a Source
	to     int
	// What was written of the piece and is not yet offered to the disk.
	fresh stretch
}

func newWorker(c *copier) *worker {
	return &worker{c: c, buffer: make([]byte, bufferBytes), hash: sha256.New(), to: -1}
}

// close closes the directories.
func (w *worker) close() {
	if w.from != nil {
		w.from.Close()
	}
	if w.to >= 0 {
		unix.Close(w.to)
	}
	w.from, w.to, w.opened = nil, -1, false
}

// enter opens the directories of a file, unless they are those of the last one.
func (w *worker) enter(dir string) (err error) {
	if w.opened && w.dir == dir {
		return nil
	}
	w.close()
	if w.c.root != nil {
		if w.from, err = w.c.root.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY, 0); err != nil {
			return err
		}
	}
	name := filepath.Join(w.c.dir, "tree", dir)
	w.to, err = uninterrupted(func() (int, error) {
		return unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	w.dir, w.opened = dir, true
	return nil
}

// uninterrupted repeats a call that a signal has interrupted, which network
// storages let happen.
func uninterrupted(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// copy copies one piece.
func (w *worker) copy(ctx context.Context, p piece) error {
	c, f := w.c, p.of
	if err := w.enter(path.Dir(f.Path)); err != nil {
		return err
	}
	whole := f.chunks() == 1
	to, rights, err := w.create(f, whole)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	offset, length := f.span(p.chunk)
	w.fresh = stretch{path: f.Path, offset: offset}
	var digest [sha256.Size]byte
	if c.root != nil {
		digest, err = w.fromDir(f, offset, length, to)
	} else {
		digest, err = w.fromSource(ctx, f, offset, length, to)
	}
	if err != nil {
		return err
	}
	if whole { // the last hand on it; others are finished after all
		if err := checkSum(f, digest); err != nil {
			return err
		}
		if err := rights(); err != nil {
			return err
		}
	}
	if err := c.sums.set(p.number, digest); err != nil {
		return err
	}
	return c.journal.add(&record{file: uint32(p.file), chunk: uint32(p.chunk), digest: digest}, c.now(), length >= stretchBytes)
}

// put writes one chunk of a version, which was compared with its digest.
func (w *worker) put(p piece, data []byte, digest [sha256.Size]byte) error {
	c, f := w.c, p.of
	if err := w.enter(path.Dir(f.Path)); err != nil {
		return err
	}
	whole := f.chunks() == 1
	to, rights, err := w.create(f, whole)
	if err != nil {
		return err
	}
	defer unix.Close(to)
	offset, length := f.span(p.chunk)
	w.fresh = stretch{path: f.Path, offset: offset}
	if err := w.lay(f, to, data, offset); err != nil {
		return err
	}
	if whole {
		if err := rights(); err != nil {
			return err
		}
	}
	if err := c.sums.set(p.number, digest); err != nil {
		return err
	}
	return c.journal.add(&record{file: uint32(p.file), chunk: uint32(p.chunk), digest: digest}, c.now(), length >= stretchBytes)
}

// create opens the file of the copy. A file that is copied in one piece is made
// with the rights that it will have, if the process may: nobody looks into a
// copy in the making. rights sets what it lacks.
func (w *worker) create(f *File, whole bool) (to int, rights func() error, err error) {
	base, mode, flags := path.Base(f.Path), fs.FileMode(0o600), unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_CLOEXEC
	if whole {
		mode, flags = f.Mode, flags|unix.O_EXCL
	}
	open := func() (int, error) { return unix.Openat(w.to, base, flags, uint32(mode)) }
	to, err = uninterrupted(open)
	if whole && errors.Is(err, fs.ErrExist) { // of an earlier process, and the journal did not hear of it
		if err := unix.Unlinkat(w.to, base, 0); err != nil {
			return -1, nil, &fs.PathError{Op: "remove", Path: f.Path, Err: err}
		}
		to, err = uninterrupted(open)
	}
	if errors.Is(err, fs.ErrPermission) && !whole { // it had its rights already
		if err := unix.Fchmodat(w.to, base, 0o600, 0); err != nil {
			return -1, nil, &fs.PathError{Op: "chmod", Path: f.Path, Err: err}
		}
		to, err = uninterrupted(open)
	}
	if err != nil {
		return -1, nil, &fs.PathError{Op: "create", Path: f.Path, Err: err}
	}
	return to, func() error { return w.complete(f, to) }, nil
}

// complete sets what making a file with its mode did not set.
func (w *worker) complete(f *File, to int) error {
	if o := f.Owner; o.UID >= 0 && !(w.c.mine && o.UID == os.Geteuid() && o.GID == os.Getegid()) {
		if err := unix.Fchown(to, o.UID, o.GID); err != nil {
			return &fs.PathError{Op: "chown", Path: f.Path, Err: err}
		}
	}
	if f.Mode&w.c.umask == 0 {
		return nil
	}
	if err := unix.Fchmod(to, uint32(f.Mode)); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.Path, Err: err}
	}
	return nil
}

// fromDir copies a piece of a file of a directory.
func (w *worker) fromDir(f *File, offset, length int64, to int) (digest [sha256.Size]byte, err error) {
	from, err := uninterrupted(func() (int, error) {
		return unix.Openat(int(w.from.Fd()), path.Base(f.Path), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return digest, &fs.PathError{Op: "open", Path: f.Path, Err: err}
	}
	defer unix.Close(from)
	w.hash.Reset()
	for at := int64(0); at < length; {
		part := w.buffer[:min(int64(len(w.buffer)), length-at)]
		n, err := uninterrupted(func() (int, error) { return unix.Pread(from, part, offset+at) })
		if err != nil {
			return digest, &fs.PathError{Op: "read", Path: f.Path, Err: err}
		}
		if n == 0 {
			return digest, ErrChanged
		}
		if err := w.write(f, to, part[:n], offset+at); err != nil {
			return digest, err
		}
		at += int64(n)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(from, &stat); err != nil {
		return digest, &fs.PathError{Op: "stat", Path: f.Path, Err: err}
	}
	if stat.Size != f.Size || stat.Mtim.Nano() != f.MTime {
		return digest, ErrChanged
	}
	w.hash.Sum(digest[:0])
	return digest, nil
}

// fromSource copies a piece of a file of a Source.
func (w *worker) fromSource(ctx context.Context, f *File, offset, length int64, to int) (digest [sha256.Size]byte, err error) {
	w.hash.Reset()
	if length > 0 {
		from, err := w.c.source.Open(ctx, f, offset, length)
		if err != nil {
			return digest, err
		}
		defer from.Close()
		for at := int64(0); at < length; {
			n, err := io.ReadAtLeast(from, w.buffer[:min(int64(len(w.buffer)), length-at)], 1)
			if err != nil {
				return digest, err
			}
			if err := w.write(f, to, w.buffer[:n], offset+at); err != nil {
				return digest, err
			}
			at += int64(n)
		}
	}
	w.hash.Sum(digest[:0])
	return digest, nil
}

// write hashes and writes bytes of the copy, and reports them.
func (w *worker) write(f *File, to int, part []byte, offset int64) error {
	w.hash.Write(part)
	return w.lay(f, to, part, offset)
}

// lay writes bytes of the copy, and reports them.
func (w *worker) lay(f *File, to int, part []byte, offset int64) error {
	for done := 0; done < len(part); {
		n, err := uninterrupted(func() (int, error) { return unix.Pwrite(to, part[done:], offset+int64(done)) })
		if err != nil {
			return &fs.PathError{Op: "write", Path: f.Path, Err: err}
		}
		done += n
	}
	if w.fresh.length += int64(len(part)); w.fresh.length >= stretchBytes {
		w.c.early.offer(w.fresh)
		w.fresh.offset, w.fresh.length = w.fresh.offset+w.fresh.length, 0
	}
	w.c.fresh.Add(int64(len(part)))
	w.c.report(w.c.copied.Add(int64(len(part))))
	return nil
}

// umaskOf reads which rights this process takes from the files that it makes;
// all of them when nobody says.
func umaskOf() fs.FileMode {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return fs.ModePerm
	}
	_, rest, found := strings.Cut(string(text), "\nUmask:")
	line, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(strings.TrimSpace(line), 8, 16)
	if !found || err != nil {
		return fs.ModePerm
	}
	return fs.FileMode(mask)
}
