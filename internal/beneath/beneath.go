//go:build linux

package beneath

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Open opens the directory at rel below top. A link or a file on the way, or
// a rel that leads out of top, is an error: syscall.ENOTDIR or ELOOP.
func Open(top, rel string) (*os.File, error) {
	if !filepath.IsLocal(rel) {
		return nil, &os.PathError{Op: "open", Path: rel, Err: syscall.ENOTDIR}
	}
	const flags = syscall.O_RDONLY | syscall.O_DIRECTORY | syscall.O_CLOEXEC
	fd, err := again(func() (int, error) { return syscall.Open(top, flags, 0) })
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: top, Err: err}
	}
	for element := range strings.SplitSeq(filepath.Clean(rel), "/") {
		if element == "." {
			continue
		}
		next, err := again(func() (int, error) { return syscall.Openat(fd, element, flags|syscall.O_NOFOLLOW, 0) })
		syscall.Close(fd)
		if err != nil {
			return nil, &os.PathError{Op: "open", Path: rel, Err: err}
		}
		fd = next
	}
	return os.NewFile(uintptr(fd), filepath.Join(top, rel)), nil
}

// Root is Open for a directory in which more is opened.
func Root(top, rel string) (*os.Root, error) {
	dir, err := Open(top, rel)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// The kernel's own link to what is open: nobody can put another there.
	return os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()))
}

// again repeats a call that a signal interrupted.
func again(call func() (int, error)) (int, error) {
	for {
		fd, err := call()
		if err != syscall.EINTR {
			return fd, err
		}
	}
}
