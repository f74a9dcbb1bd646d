package objects

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// taking brings what a job wrote to where it becomes a version.
type taking struct {
	store     *Store
	door      *door
	dir       *os.Root        // up-ID
	id        string          // of the upload
	ctx       context.Context // of this one run
	done, all *atomic.Int64
	leaf      string // in dir: what becomes the version
	share     bool   // nobody of the job writes any more: files may be the version's own

	from, to *os.Root
	owner    uint32 // of the output: whom the job's tasks run as
	names    int
	copied   int64 // bytes
}

// gather fills to with what lies in from: all of it, or the one file name.
func (t *taking) gather(from, to *os.Root, name string) error {
	t.from, t.to = from, to
	info, err := from.Stat(".")
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return structs.NewError(structs.CodeUnavailable, "objects.failed", "storage", t.door.place.Storage, "path", t.door.place.Path, "cause", "stat")
	}
	t.owner = stat.Uid
	if name != "" {
		return t.file(name)
	}
	return t.directory(".")
}

func (t *taking) directory(dir string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	opened, err := t.from.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer opened.Close()
	for {
		children, err := opened.ReadDir(namesAtOnce)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = t.children(dir, children)
		}
		if err != nil {
			return err
		}
	}
}

// namesAtOnce is how many names of a directory are read at a time: a job may have made
// more than memory holds.
const namesAtOnce = 1_024

func (t *taking) children(dir string, children []fs.DirEntry) error {
	for _, child := range children {
		name := path.Join(dir, child.Name())
		if dir == "." && child.Name() == ownDir {
			continue // versions may lie in an output
		}
		if t.names++; t.names > tree.EntriesMax {
			return structs.NewError(structs.CodeTooLarge, "tree.too_many", "max", tree.EntriesMax)
		}
		info, err := t.from.Lstat(name)
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			if err = t.to.Mkdir(name, 0o700); err == nil {
				err = t.directory(name)
			}
		case mode.Type() == fs.ModeSymlink:
			var target string
			if target, err = t.from.Readlink(name); err == nil {
				err = t.to.Symlink(target, name) // judged when it is scanned
			}
		case mode.IsRegular():
			err = t.file(name)
		default:
			err = structs.NewError(structs.CodeInvalid, "objects.take_special", "name", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file brings one file: as a clone that shares its blocks, as another name of the same
// file, or as a copy.
func (t *taking) file(name string) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	file, info, err := openRegular(t.from, name)
	if errors.Is(err, errNotRegular) {
		return structs.NewError(structs.CodeConflict, "objects.take_changed", "name", name)
	}
	if err != nil {
		return err
	}
	defer file.Close()
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != t.owner && !ours(info) && info.Mode()&0o004 == 0 {
		return structs.NewError(structs.CodeForbidden, "objects.take_foreign", "name", name)
	}
	mode := os.FileMode((&tree.Entry{Kind: tree.KindFile, Mode: uint32(info.Mode().Perm())}).SettledMode())
	to, err := t.to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(to.Fd()), int(file.Fd())) == nil {
		return errors.Join(to.Chmod(mode), to.Close())
	}
	if linked, err := t.link(file, info, stat, name, mode); linked || err != nil {
		return errors.Join(err, to.Close())
	}
	err = t.copy(file, info, to)
	if err == nil {
		err = to.Chmod(mode)
	}
	return errors.Join(err, to.Close())
}

// link has the version have the file itself, which nobody may write to from then on: it
// becomes the agent's own. It is left, and to be copied, where somebody might write all
// the same: the job goes on, its tasks are the agent's user under root, the file is
// somebody else's or has names elsewhere, or is open to be written.
func (t *taking) link(file *os.File, info fs.FileInfo, stat *syscall.Stat_t, name string, mode os.FileMode) (bool, error) {
	agent, writable := os.Geteuid(), info.Mode().Perm()&0o222 != 0
	switch {
	case !t.share:
		return false, nil
	case ours(info) && !writable: // a version has it already
	case stat.Uid != t.owner, stat.Nlink != 1, agent == 0 && stat.Uid == 0, agent != 0 && !ours(info):
		return false, nil
	}
	dir, err := t.to.Open(path.Dir(name))
	if err != nil {
		return false, err
	}
	defer dir.Close()
	leaf := path.Base(name)
	const half = ".nomadlike-link"
	if err := unix.Linkat(unix.AT_FDCWD, "/proc/self/fd/"+strconv.Itoa(int(file.Fd())), int(dir.Fd()), half, unix.AT_SYMLINK_FOLLOW); err != nil {
		return false, nil // where it cannot be linked it is copied
	}
	err = t.own(file, info, mode)
	if err == nil {
		err = unix.Renameat(int(dir.Fd()), half, int(dir.Fd()), leaf)
	}
	if err != nil {
		back := errors.Join(file.Chmod(info.Mode().Perm()), file.Chown(int(stat.Uid), int(stat.Gid)))
		return false, errors.Join(back, unix.Unlinkat(int(dir.Fd()), half, 0))
	}
	return true, nil
}

// own makes a file the agent's own that nobody writes to, and fails where somebody has
// it open to write.
func (t *taking) own(file *os.File, info fs.FileInfo, mode os.FileMode) error {
	if !ours(info) {
		if err := file.Chown(os.Geteuid(), os.Getegid()); err != nil {
			return err
		}
	}
	if info.Mode().Perm() != mode {
		if err := file.Chmod(mode); err != nil {
			return err
		}
	}
	// A lease to read is given where nobody has the file open to write. File systems
	// that know no leases refuse it with another error.
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK); errors.Is(err, unix.EAGAIN) {
		return err
	} else if err == nil {
		_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
		return err
	}
	return nil
}

// copy copies a file, which must stay as it was meanwhile.
func (t *taking) copy(file *os.File, info fs.FileInfo, to *os.File) error {
	if err := t.store.room(t.door, info.Size()); err != nil {
		return err
	}
	written, err := io.Copy(to, io.LimitReader(file, info.Size()+1))
	if err != nil {
		return err
	}
	t.copied += written
	now, err := file.Stat()
	if err != nil {
		return err
	}
	if written != info.Size() || now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime()) {
		return structs.NewError(structs.CodeConflict, "objects.take_changed", "name", file.Name())
	}
	return nil
}
