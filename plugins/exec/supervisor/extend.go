package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// extensionsMax is how many of the node's directories a task can have entries
// in that the node does not have.
const extensionsMax = 8

// extend gives a directory of the node, as the task sees it, one more entry
// with an empty file or directory at its end, and those that other mounts will need
// there. The node's own stays as it is: the two are merged for this task. The whole
// directory is read-only for the task then.
func (v *view) extend(real, path string, dir bool) error {
	if v.extensions++; v.extensions > extensionsMax {
		return errors.New("too many directories of the node lack the place of a mount")
	}
	if real == v.rootPath || !within(real, v.rootPath) || strings.ContainsAny(real+v.stage, `:,\`) {
		return syscall.ENOENT
	}
	skeleton := filepath.Join(v.stage, "more-"+strconv.Itoa(v.extensions))
	if err := v.moreMemory(skeleton); err != nil {
		return err
	}
	if err := makePlace(filepath.Join(skeleton, path), dir); err != nil {
		return err
	}
	v.makeOthers(skeleton, real)
	inner, err := v.openInner(real)
	defer closeInner(inner)
	if err != nil {
		return err
	}
	if err := v.merge(skeleton, real); err != nil {
		return fmt.Errorf("merge %s: %w", strings.TrimPrefix(real, v.rootPath), err)
	}
	// The merged directory shows what lies below mounts: put those back.
	for _, mount := range inner {
		flags := uint64(mountNoSUID | mountNoDev)
		if mount.readOnly {
			flags |= mountReadOnly
		}
		if err := v.bindFD(mount.fd, strings.TrimPrefix(mount.point, v.rootPath), flags); err != nil {
			return fmt.Errorf("put back %s: %w", mount.point, err)
		}
	}
	return nil
}

// makePlace makes an empty file or directory.
func makePlace(path string, dir bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if dir {
		return os.Mkdir(path, 0o755)
	}
	return os.WriteFile(path, nil, 0o644)
}

// makeOthers makes, in what will be merged with a directory, the places of all
// mounts that it lacks: the kernel does not merge what was merged twice
// (FILESYSTEM_MAX_STACK_DEPTH). What can not be made here is tried again when its
// mount comes.
func (v *view) makeOthers(skeleton, real string) {
	task := strings.TrimPrefix(real, v.rootPath)
	for _, mount := range v.spec.Isolation.Mounts {
		below, ok := strings.CutPrefix(mount.Target, task+"/")
		if !ok {
			continue
		}
		first, _, _ := strings.Cut(below, "/")
		if fd, err := openAt(v.root, filepath.Join(task, first), oPath, resolveInRoot|resolveNoSymlinks); err != syscall.ENOENT {
			if err == nil {
				syscall.Close(fd)
			}
			continue // there, or in another file system
		}
		if info, err := os.Stat(mount.Source); err == nil {
			_ = makePlace(filepath.Join(skeleton, below), info.IsDir())
		}
	}
}

// moreMemory mounts a small file system for an extension.
func (v *view) moreMemory(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", path, "tmpfs", memoryFlags|syscall.MS_NOEXEC, "size=64k,nr_inodes=64,mode=0755"); err != nil {
		return err
	}
	return v.made(path, false)
}

// merge mounts the contents of two directories over the second one.
func (v *view) merge(skeleton, real string) error {
	const flags = syscall.MS_RDONLY | syscall.MS_NOSUID | syscall.MS_NODEV
	options := "lowerdir=" + skeleton + ":" + real
	err := syscall.Mount("overlay", real, "overlay", flags, options+",userxattr") // in a user namespace
	if errors.Is(err, syscall.EINVAL) {
		err = syscall.Mount("overlay", real, "overlay", flags, options)
	}
	if err != nil {
		return err
	}
	return nil
}

// innerMount is a mount below a directory.
type innerMount struct {
	fd       int
	point    string
	readOnly bool
}

// openInner opens what is mounted below a directory, outer mounts first.
func (v *view) openInner(real string) ([]innerMount, error) {
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	var inner []innerMount
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) < 6 {
			continue
		}
		point := unescapeMount(words[4])
		if point == real || !within(point, real) || covered(inner, point) {
			continue
		}
		fd, err := syscall.Open(point, oPath|syscall.O_CLOEXEC|syscall.O_NOFOLLOW, 0)
		if err != nil {
			return inner, fmt.Errorf("open %s: %w", point, err)
		}
		inner = append(inner, innerMount{fd: fd, point: point, readOnly: strings.HasPrefix(words[5], "ro")})
	}
	return inner, nil
}

// covered tells whether a mount comes along with one that is above it.
func covered(mounts []innerMount, point string) bool {
	for _, mount := range mounts {
		if within(point, mount.point) {
			return true
		}
	}
	return false
}

func closeInner(mounts []innerMount) {
	for _, mount := range mounts {
		syscall.Close(mount.fd)
	}
}
