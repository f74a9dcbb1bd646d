package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const memoryFlags = syscall.MS_NOSUID | syscall.MS_NODEV

// root is a file system in the making, whatever is to be seen in it: a small one
// in memory that others are mounted in, and the places that it takes to mount
// them. Its paths are those of the task.
type root struct {
	stage    string          // where all is put together, seen by this thread only
	fd       int             // opened
	path     string          // where it is
	scaffold []string        // below path: made by us, to be read-only in the end
	extended int             // see extend
	devices  map[uint64]bool // device numbers of file systems made by us
	// own are the task's directories among the node's files, in which places are
	// made as in memory.
	own []string
}

// newRoot detaches this thread's mounts from the node's and makes the new root,
// in a place that no copy of the node's mounts takes along.
func newRoot(own ...string) (*root, error) {
	r := &root{devices: make(map[uint64]bool), own: own}
	return r, r.begin()
}

func (r *root) begin() error {
	if err := syscall.Mount("", "/", "", syscall.MS_SLAVE|syscall.MS_REC, ""); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	r.stage, r.path = filepath.Join(dir, "files"), filepath.Join(dir, "root")
	for _, memory := range []struct {
		path, options string
		flags         uintptr
	}{
		{dir, "size=64k,nr_inodes=16,mode=0700", syscall.MS_NOEXEC},
		{r.stage, "size=8m,nr_inodes=32,mode=0755", syscall.MS_NOEXEC},
		{r.path, "size=1m,nr_inodes=4096,mode=0755", 0},
	} {
		if memory.path != dir {
			if err := os.Mkdir(memory.path, 0o755); err != nil {
				return err
			}
		}
		if err := syscall.Mount("tmpfs", memory.path, "tmpfs", memoryFlags|memory.flags, memory.options); err != nil {
			return err
		}
	}
	if err := syscall.Mount("", dir, "", syscall.MS_UNBINDABLE, ""); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(r.stage, "empty"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(r.stage, "nothing"), nil, 0o444); err != nil {
		return err
	}
	if r.fd, err = syscall.Open(r.path, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
		return err
	}
	return r.made(r.path, true)
}

// made remembers a file system of ours.
func (r *root) made(path string, sealed bool) error {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return err
	}
	r.devices[stat.Dev] = true
	if sealed {
		r.scaffold = append(r.scaffold, path)
	}
	return nil
}

// bind shows a path of the node at a path of the task.
func (r *root) bind(source, target string, readOnly bool) error {
	fd, err := syscall.Open(source, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	flags := uint64(mountNoSUID | mountNoDev)
	if readOnly {
		flags |= mountReadOnly
	}
	return r.bindFD(fd, target, flags)
}

// bindFD shows an opened file or directory at a path of the task.
func (r *root) bindFD(source int, target string, flags uint64) error {
	var stat syscall.Stat_t
	if err := syscall.Fstat(source, &stat); err != nil {
		return err
	}
	place, err := r.place(target, stat.Mode&syscall.S_IFMT == syscall.S_IFDIR)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	copied, err := r.cloneTree(source)
	if err != nil {
		return fmt.Errorf("copy mounts: %w", err)
	}
	defer syscall.Close(copied)
	if err := restrictTree(copied, flags); err != nil {
		return fmt.Errorf("restrict mounts: %w", err)
	}
	if err := attach(copied, place); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// place opens a path of the task to mount something over it, and makes it
// where that is possible. Links lead where they would lead the task.
func (r *root) place(target string, dir bool) (int, error) {
	fd, err := openAt(r.fd, target, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != syscall.ENOENT {
		return fd, err
	}
	parent, name := filepath.Split(target)
	above, err := r.place(filepath.Clean(parent), true)
	if err != nil {
		return -1, err
	}
	defer func() { syscall.Close(above) }()
	if !r.mayMake(above) {
		real, err := realPath(above)
		if err == nil {
			err = r.extend(real)
		}
		if err != nil {
			return -1, fmt.Errorf("make place %s: %w", target, err)
		}
		more, err := openAt(r.fd, strings.TrimPrefix(real, r.path), oPath, resolveInRoot|resolveNoSymlinks)
		if err != nil {
			return -1, fmt.Errorf("make place %s: %w", target, err)
		}
		syscall.Close(above)
		above = more
	}
	if dir {
		err = syscall.Mkdirat(above, name, 0o755)
	} else {
		var made int
		if made, err = syscall.Openat(above, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, 0o644); err == nil {
			syscall.Close(made)
		}
	}
	if err != nil && err != syscall.EEXIST {
		return -1, fmt.Errorf("make place %s: %w", target, err)
	}
	return openAt(above, name, oPath, resolveBeneath|resolveNoSymlinks)
}

// mayMake reports whether places may be made in an opened directory: in memory,
// or among the task's own files, but never in the node's.
func (r *root) mayMake(dir int) bool {
	var stat syscall.Stat_t
	if err := syscall.Fstat(dir, &stat); err == nil && r.devices[stat.Dev] {
		return true
	}
	real, err := realPath(dir)
	return err == nil && slices.ContainsFunc(r.own, func(path string) bool { return within(real, r.path+path) })
}

// memory mounts a file system in memory at a path of the task.
func (r *root) memory(target, options string, sealed bool) error {
	place, err := r.place(target, true)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	real, err := realPath(place)
	if err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", real, "tmpfs", memoryFlags, options); err != nil {
		return err
	}
	return r.made(real, sealed)
}

// shows reports whether the task sees the very same file there as the node.
func (r *root) shows(path string) bool {
	var ours, theirs syscall.Stat_t
	fd, err := openAt(r.fd, path, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return syscall.Fstat(fd, &theirs) == nil && syscall.Stat(path, &ours) == nil && ours.Dev == theirs.Dev && ours.Ino == theirs.Ino
}

// bindTop shows a top directory or file of the node at the place that was made
// for it right in the new root, in half of the system calls of bind: nobody
// else knows that place, so there is nothing to be looked up. A link that has
// taken the place of the source meanwhile is not followed.
func (r *root) bindTop(source, name string, readOnly bool) error {
	copied, err := r.cloneTreeAt(atFDCWD, source)
	if err != nil {
		return fmt.Errorf("copy mounts: %w", err)
	}
	defer syscall.Close(copied)
	flags := uint64(mountNoSUID | mountNoDev)
	if readOnly {
		flags |= mountReadOnly
	}
	if err := restrictTree(copied, flags); err != nil {
		return fmt.Errorf("restrict mounts: %w", err)
	}
	if err := attachAt(copied, r.fd, name); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// seal makes all that is only scaffolding read-only.
func (r *root) seal() error {
	for _, path := range r.scaffold {
		if err := syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|memoryFlags, ""); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// enter makes the view this thread's root, and lets go of the node's.
func (r *root) enter() error {
	syscall.Close(r.fd)
	if err := syscall.Chdir(r.path); err != nil {
		return fmt.Errorf("enter view: %w", err)
	}
	if err := syscall.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("enter view: %w", err)
	}
	if err := syscall.Unmount(".", syscall.MNT_DETACH); err != nil {
		return fmt.Errorf("leave the node's view: %w", err)
	}
	if err := syscall.Chdir("/"); err != nil {
		return fmt.Errorf("enter view: %w", err)
	}
	return nil
}
