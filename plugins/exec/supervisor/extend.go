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

const (
	// extensionsMax is how many of the node's directories a task can have entries
	// in that the node does not have.
	extensionsMax = 8
	// extensionEntriesMax bounds the entries of such a directory: each is mounted
	// for itself.
	extensionEntriesMax = 10_000
)

// extend makes room in a directory of the node, as the task sees it, for entries
// that the node does not have. The node's own stays as it is: for this task a directory in
// memory takes its place, in which every entry of the node's is mounted, with all that is
// mounted below it. In the end it is read-only for the task.
//
// An overlay would do that at once, but the kernel merges no directory that
// another user's namespace has mounts in, and none at all in old ones.
func (r *root) extend(real string) error {
	if r.extended++; r.extended > extensionsMax {
		return errors.New("too many directories of the node lack the place of a mount")
	}
	if real == r.path || !within(real, r.path) {
		return syscall.ENOENT
	}
	dir, err := syscall.Open(real, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	stage := filepath.Join(r.stage, "more-"+strconv.Itoa(r.extended))
	if err := r.fillStage(stage, real, dir); err != nil {
		return fmt.Errorf("show %s with more: %w", strings.TrimPrefix(real, r.path), err)
	}
	if err := syscall.Mount(stage, real, "", syscall.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move to %s: %w", strings.TrimPrefix(real, r.path), err)
	}
	return r.made(real, true)
}

// fillStage makes a directory in memory that shows what an opened directory of
// the task has.
func (r *root) fillStage(stage, real string, dir int) error {
	var like syscall.Stat_t
	if err := syscall.Fstat(dir, &like); err != nil {
		return err
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return err
	}
	if len(entries) > extensionEntriesMax {
		return fmt.Errorf("it has %d entries, at most %d can be shown", len(entries), extensionEntriesMax)
	}
	if err := os.Mkdir(stage, 0o755); err != nil {
		return err
	}
	// Room for the places of mounts beside what is there.
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=%04o,uid=%d,gid=%d", 1<<20+len(entries)<<9, len(entries)+1024, like.Mode&0o7777, like.Uid, like.Gid)
	if err := syscall.Mount("tmpfs", stage, "tmpfs", memoryFlags|syscall.MS_NOEXEC, options); err != nil {
		return err
	}
	place, err := syscall.Open(stage, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	for _, entry := range entries {
		if err := r.showEntry(dir, place, entry, filepath.Join(real, entry.Name())); err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}
	}
	return nil
}

// showEntry shows an entry of one directory in another one. What is gone
// meanwhile is left out.
func (r *root) showEntry(dir, place int, entry os.DirEntry, path string) error {
	name := entry.Name()
	if entry.Type()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return ignoreGone(err)
		}
		return os.Symlink(target, filepath.Join("/proc/thread-self/fd", strconv.Itoa(place), name))
	}
	copied, err := r.cloneTreeAt(dir, name)
	if err != nil {
		return ignoreGone(err)
	}
	defer syscall.Close(copied)
	if entry.IsDir() {
		err = syscall.Mkdirat(place, name, 0o755)
	} else {
		var file int
		if file, err = syscall.Openat(place, name, syscall.O_CREAT|syscall.O_EXCL|syscall.O_CLOEXEC, 0o644); err == nil {
			syscall.Close(file)
		}
	}
	if err != nil {
		return err
	}
	return attachAt(copied, place, name)
}

func ignoreGone(err error) error {
	if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ESTALE) {
		return nil
	}
	return err
}
