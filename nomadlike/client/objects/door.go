package objects

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
)

const dirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

// door is the directory in which a version lies, opened without following a link, with
// the agent's own directory beside the version.
type door struct {
	version
	parent *os.File
	own    *os.Root
	leaf   string // the version's name in parent
}

func (d *door) close() {
	_ = d.parent.Close() // both were opened to be looked up in
	_ = d.own.Close()
}

// open opens the door of a version. With create, whatever is missing on the way to it is
// made; without, a missing directory is an error with CodeNotFound.
func (s *Store) open(v version, create bool) (*door, error) {
	place := &v.place
	if create && v.readOnly {
		return nil, structs.NewError(structs.CodeConflict, "objects.read_only", "storage", place.Storage)
	}
	if info, err := os.Stat(place.Given); err != nil || !info.IsDir() {
		return nil, structs.NewError(structs.CodeUnavailable, "client.storage_away", "storage", place.Storage, "cause", words.Cause(err))
	}
	if create {
		if err := os.MkdirAll(place.Root, 0o755); err != nil { // the storage's own directories belong to the agent
			return nil, v.failed(err)
		}
	}
	below, err := filepath.Rel(place.Root, place.Path)
	if err != nil || below == "." || path.Base(below) == ownDir {
		return nil, structs.NewError(structs.CodeInvalid, "objects.place", "storage", place.Storage, "path", place.Path)
	}
	d := &door{version: v, leaf: path.Base(below)}
	if d.parent, err = descend(place.Root, path.Dir(below), create); err != nil {
		return nil, v.failed(err)
	}
	if d.own, err = openOwn(d.parent, create); err != nil {
		_ = d.parent.Close()
		return nil, v.failed(err)
	}
	return d, nil
}

// failed is what went wrong with the version's place, for people.
func (v *version) failed(err error) error {
	var told *structs.Error
	params := []any{"storage", v.place.Storage, "path", v.place.Path, "cause", words.Cause(err)}
	switch {
	case errors.As(err, &told):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return structs.NewError(structs.CodeNotFound, "objects.gone", params...).Because(err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return structs.NewError(structs.CodeUnavailable, "objects.full", params...).Because(err)
	case errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENOTDIR):
		return structs.NewError(structs.CodeForbidden, "objects.link", params...).Because(err)
	}
	return structs.NewError(structs.CodeUnavailable, "objects.failed", params...).Because(err)
}

// descend opens a directory below one that is trusted. What is a link on the way is
// refused, and with create what is missing is made.
func descend(top, below string, create bool) (*os.File, error) {
	fd, err := retried(func() (int, error) { return unix.Open(top, dirFlags, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top, Err: err}
	}
	at := os.NewFile(uintptr(fd), top)
	for element := range strings.SplitSeq(below, "/") {
		if element == "." {
			continue
		}
		next, err := stepInto(at, element, create, 0o755)
		_ = at.Close()
		if err != nil {
			return nil, err
		}
		at = next
	}
	return at, nil
}

// stepInto opens a directory in another one.
func stepInto(at *os.File, element string, create bool, mode uint32) (*os.File, error) {
	name := filepath.Join(at.Name(), element)
	if create {
		switch err := unix.Mkdirat(int(at.Fd()), element, mode); {
		case err == nil:
			if err := at.Sync(); err != nil {
				return nil, err
			}
		case !errors.Is(err, unix.EEXIST):
			return nil, &os.PathError{Op: "mkdir", Path: name, Err: err}
		}
	}
	fd, err := retried(func() (int, error) { return unix.Openat(int(at.Fd()), element, dirFlags|unix.O_NOFOLLOW, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

func retried(call func() (int, error)) (int, error) {
	for {
		if n, err := call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// openOwn opens the agent's own directory in another one. One that somebody else has
// put there is refused.
func openOwn(parent *os.File, create bool) (*os.Root, error) {
	dir, err := stepInto(parent, ownDir, create, 0o700)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	var stat unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &stat); err != nil {
		return nil, &os.PathError{Op: "stat", Path: dir.Name(), Err: err}
	}
	if int(stat.Uid) != os.Geteuid() {
		return nil, structs.NewError(structs.CodeForbidden, "objects.not_ours", "path", dir.Name())
	}
	if stat.Mode&0o077 != 0 {
		if err := dir.Chmod(0o700); err != nil {
			return nil, err
		}
	}
	return rootOf(dir)
}

// rootOf is a directory that is open, to open more in it.
func rootOf(dir *os.File) (*os.Root, error) {
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd())) // the kernel's own link: nobody can put another there
}

// openVersion opens the directory of the version itself.
func (d *door) openVersion() (*os.Root, error) {
	dir, err := stepInto(d.parent, d.leaf, false, 0)
	if err != nil {
		return nil, d.failed(err)
	}
	defer dir.Close()
	root, err := rootOf(dir)
	if err != nil {
		return nil, d.failed(err)
	}
	return root, nil
}

// there reports whether something has the version's name.
func (d *door) there() (bool, error) {
	var stat unix.Stat_t
	err := unix.Fstatat(int(d.parent.Fd()), d.leaf, &stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return false, nil
	}
	return err == nil, err
}

// rename moves what has a name in one directory to another one, where nothing has the
// name already, and has that reach the disk.
func rename(from *os.File, name string, to *os.File, as string) error {
	if err := unix.Renameat2(int(from.Fd()), name, int(to.Fd()), as, unix.RENAME_NOREPLACE); err != nil {
		return &os.PathError{Op: "rename", Path: filepath.Join(to.Name(), as), Err: err}
	}
	return errors.Join(to.Sync(), from.Sync())
}

// syncAll has everything reach the disk that was written on the file system of a
// directory.
func syncAll(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer dir.Close()
	return unix.Syncfs(int(dir.Fd()))
}

// place writes a file whose name is there when its bytes are on the disk.
func place(root *os.Root, name string, data []byte) error {
	half := fmt.Sprintf("%s.new-%x", name, rand.Uint64()) // others may write the same at once
	file, err := root.OpenFile(half, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(half, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(half))
	}
	return syncDir(root, path.Dir(name))
}

func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// removeTree removes a directory of the agent's own with all in it, also where the
// permissions of data keep from that.
func removeTree(root *os.Root, name string) error {
	err := fs.WalkDir(root.FS(), name, func(at string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			return root.Chmod(at, 0o700)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return root.RemoveAll(name)
}

func freeBytes(dir string) (uint64, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}
