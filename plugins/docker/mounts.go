package docker

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"nomadlike/internal/mounts"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// stagingMode hides staged mounts from everybody but root.
const stagingMode = 0o700

// mounter makes the sources of jobs' mounts safe. A path is checked by what
// it leads to, and what was checked is what gets mounted: the opened file or
// directory itself is bound to a place that only root can reach, and the
// engine is given that place. So nobody can swap a directory for a link in
// between. The place is empty again once the container runs, which has its
// own copy of the mount then.
type mounter struct {
	dir       string // a tmpfs of our own
	roots     []string
	forbidden []string
}

func mountsDir(config *Config) string { return filepath.Join(config.StateDir, "mounts") }

// openMounter makes the place for staged mounts, and clears what an earlier
// agent has left there.
func openMounter(config *Config, engineRoot string) (*mounter, error) {
	m := &mounter{dir: mountsDir(config), forbidden: []string{
		"/proc", "/sys", "/dev", "/run", "/var/run", "/boot", "/var/lib/docker", "/var/lib/containerd", config.StateDir,
	}}
	if engineRoot != "" {
		m.forbidden = append(m.forbidden, engineRoot)
	}
	for i, path := range m.forbidden {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			m.forbidden[i] = real
		}
	}
	for _, root := range config.MountRoots {
		real, err := filepath.EvalSymlinks(root)
		if errors.Is(err, os.ErrNotExist) {
			real, err = root, nil // a storage that is mounted later
		}
		if err != nil {
			return nil, fmt.Errorf("prepare mount root: %w", err)
		}
		m.roots = append(m.roots, real)
	}
	if err := m.clear(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(m.dir, stagingMode); err != nil {
		return nil, fmt.Errorf("prepare mounts: %w", err)
	}
	// In a file system of its own: an engine that does not see our mounts
	// finds no such path and says so, instead of mounting an empty directory.
	if err := unix.Mount("tmpfs", m.dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=1m,mode=0700"); err != nil {
		return nil, fmt.Errorf("prepare mounts at %s: %w", m.dir, err)
	}
	return m, nil
}

// clear takes away all staged mounts.
func (m *mounter) clear() error {
	for {
		// Detached with all that is below; again for what lay underneath.
		err := unix.Unmount(m.dir, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW)
		if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("clear mounts at %s: %w", m.dir, err)
		}
	}
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// allowed decides about a resolved path. Pure.
func (m *mounter) allowed(real string) bool {
	for _, root := range m.forbidden {
		if within(real, root) || within(root, real) {
			return false
		}
	}
	for _, root := range m.roots {
		if within(real, root) {
			return true
		}
	}
	return false
}

// stage makes the sources of a task's mounts safe. What lies in the task's own
// directory is the task's already and may be shown to it anywhere. The caller
// calls release when the container has them, also after an error.
func (m *mounter) stage(id driver.TaskID, taskDir string, wanted []driver.Mount) (mounts []mount, release func(), err error) {
	var staged []string
	dir := filepath.Join(m.dir, string(id))
	release = func() {
		for _, place := range staged {
			_ = unix.Unmount(place, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // clear gets what stays
			_ = os.Remove(place)
		}
		_ = os.Remove(dir)
	}
	if len(wanted) == 0 {
		return nil, release, nil
	}
	if err := os.Mkdir(dir, stagingMode); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, release, fmt.Errorf("stage mounts: %w", err)
	}
	own, err := filepath.EvalSymlinks(taskDir)
	if err != nil {
		return nil, release, fmt.Errorf("resolve task directory: %w", err)
	}
	for i, w := range wanted {
		place := filepath.Join(dir, strconv.Itoa(i))
		if err := m.stageOne(w, own, place, func() { staged = append(staged, place) }); err != nil {
			return nil, release, err
		}
		mounts = append(mounts, mount{Source: place, Target: w.TaskPath, ReadOnly: w.ReadOnly})
	}
	return mounts, release, nil
}

// stageOne binds one source to a place of ours.
func (m *mounter) stageOne(w driver.Mount, taskDir, place string, made func()) error {
	fd, err := openSource(w)
	if err != nil {
		return structs.NewError(structs.CodeInvalid, "docker.mount_missing", "path", w.HostPath, "cause", err)
	}
	defer unix.Close(fd)
	real, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	if err != nil {
		return fmt.Errorf("resolve %s: %w", w.HostPath, err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return fmt.Errorf("resolve %s: %w", w.HostPath, err)
	}
	isDir, isFile := stat.Mode&unix.S_IFMT == unix.S_IFDIR, stat.Mode&unix.S_IFMT == unix.S_IFREG
	given := w.Within != "" || m.allowed(real) || within(real, taskDir)
	if !given || !isDir && !isFile {
		return structs.NewError(structs.CodeForbidden, "docker.mount_refused", "path", w.HostPath, "real", real)
	}
	if isDir {
		err = os.Mkdir(place, stagingMode)
	} else {
		err = os.WriteFile(place, nil, 0o600)
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("stage %s: %w", w.HostPath, err)
	}
	made()
	return bind(fd, place, w.ReadOnly)
}

// openSource opens the source of a mount. In a directory that the
// administrator has given no link leads out of it.
func openSource(w driver.Mount) (int, error) {
	if w.Within == "" {
		return unix.Open(w.HostPath, unix.O_PATH|unix.O_CLOEXEC, 0)
	}
	root, err := unix.Open(w.Within, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(root)
	below, err := filepath.Rel(w.Within, w.HostPath)
	if err != nil {
		return -1, err
	}
	if mounts.Classical() {
		return mounts.Walk(root, below, unix.O_PATH, mounts.Beneath|mounts.NoMagicLinks)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(root, below, &how)
		if err != unix.EINTR && err != unix.EAGAIN { // somebody renames meanwhile
			return fd, err
		}
	}
}

// bind mounts an opened file or directory, with what is mounted below it.
func bind(fd int, place string, readOnly bool) error {
	if mounts.Classical() {
		return bindClassically(fd, place, readOnly)
	}
	flags := uint(unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE)
	tree, err := unix.OpenTree(fd, "", flags)
	if err != nil {
		return fmt.Errorf("stage %s: open tree: %w", place, err)
	}
	defer unix.Close(tree)
	if readOnly {
		// All of it: the engine itself would leave inner mounts writable.
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
		if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
			return fmt.Errorf("stage %s: make read-only: %w", place, err)
		}
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, place, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("stage %s: %w", place, err)
	}
	return nil
}

// bindClassically is bind for kernels that have no trees of mounts to be moved. The
// place is root's alone, so nobody sees it before it is restricted.
func bindClassically(fd int, place string, readOnly bool) error {
	if err := unix.Mount(mounts.FDPath(fd), place, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("stage %s: bind: %w", place, err)
	}
	if !readOnly {
		return nil
	}
	tree, err := mounts.OpenName(-1, place, unix.O_PATH)
	if err != nil {
		return fmt.Errorf("stage %s: %w", place, err)
	}
	defer unix.Close(tree)
	if err := mounts.Restrict(tree, mounts.ReadOnly|mounts.NoSUID|mounts.NoDev); err != nil {
		return fmt.Errorf("stage %s: make read-only: %w", place, err)
	}
	return nil
}
