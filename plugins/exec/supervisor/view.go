package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"nomadlike/plugins/driver/taskproc"
)

// view is the task's file system in the making: a small one in memory that has
// the node's top directories, or those of a chosen root, mounted in it, so
// that places for mounts can be made that the node does not have.
type view struct {
	spec       *Spec
	stage      string // where all is put together, seen by this thread only
	root       int    // the new root
	rootPath   string
	writable   []string        // what the task may write to, as it sees it
	tmpfs      []string        // below rootPath: made by us, to be read-only in the end
	extensions int             // see extend
	devices    map[uint64]bool // device numbers of file systems made by us
}

// buildView makes the view. mountProc mounts /proc of the right processes.
func buildView(spec *Spec, mountProc func(path string) error) (*view, *taskproc.Failure) {
	v := &view{spec: spec, devices: make(map[uint64]bool)}
	steps := []struct {
		name string
		do   func() error
	}{
		{"prepare view", v.begin},
		{"show the node", v.showNode},
		{"make /dev", v.makeDev},
		{"make /proc", func() error { return v.makeProc(mountProc) }},
		{"make private directories", v.makePrivate},
		{"hide parts of the node", v.hide},
		{"show the task's directory", v.showTask},
	}
	for _, step := range steps {
		if err := step.do(); err != nil {
			return nil, failed(fmt.Errorf("%s: %w", step.name, err))
		}
	}
	if failure := v.mountAll(); failure != nil {
		return nil, failure
	}
	if err := v.makeHostFiles(); err != nil {
		return nil, failed(fmt.Errorf("make host files: %w", err))
	}
	if err := v.seal(); err != nil {
		return nil, failed(fmt.Errorf("seal view: %w", err))
	}
	return v, nil
}

const memoryFlags = syscall.MS_NOSUID | syscall.MS_NODEV

// begin detaches this thread's mounts from the node's and makes the new root,
// in a place that no copy of the node's mounts takes along.
func (v *view) begin() error {
	if err := syscall.Mount("", "/", "", syscall.MS_SLAVE|syscall.MS_REC, ""); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	v.stage, v.rootPath = filepath.Join(dir, "files"), filepath.Join(dir, "root")
	for _, memory := range []struct {
		path, options string
		flags         uintptr
	}{
		{dir, "size=64k,nr_inodes=16,mode=0700", syscall.MS_NOEXEC},
		{v.stage, "size=8m,nr_inodes=32,mode=0755", syscall.MS_NOEXEC},
		{v.rootPath, "size=1m,nr_inodes=4096,mode=0755", 0},
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
	if err := os.Mkdir(filepath.Join(v.stage, "empty"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(v.stage, "nothing"), nil, 0o444); err != nil {
		return err
	}
	if v.root, err = syscall.Open(v.rootPath, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0); err != nil {
		return err
	}
	return v.made(v.rootPath, true)
}

// made remembers a file system of ours.
func (v *view) made(path string, sealed bool) error {
	var stat syscall.Stat_t
	if err := syscall.Stat(path, &stat); err != nil {
		return err
	}
	v.devices[stat.Dev] = true
	if sealed {
		v.tmpfs = append(v.tmpfs, path)
	}
	return nil
}

// ownPlaces are the top directories that the task has of its own.
func (v *view) ownPlaces() map[string]bool {
	own := map[string]bool{"proc": true, "dev": true}
	if v.spec.Isolation.Private || v.spec.Isolation.Root != "" {
		own["tmp"], own["run"] = true, true
	}
	return own
}

// bind shows a path of the node at a path of the task.
func (v *view) bind(source, target string, readOnly bool) error {
	fd, err := syscall.Open(source, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	flags := uint64(mountNoSUID | mountNoDev)
	if readOnly {
		flags |= mountReadOnly
	}
	return v.bindFD(fd, target, flags)
}

// bindFD shows an opened file or directory at a path of the task.
func (v *view) bindFD(source int, target string, flags uint64) error {
	var stat syscall.Stat_t
	if err := syscall.Fstat(source, &stat); err != nil {
		return err
	}
	place, err := v.place(target, stat.Mode&syscall.S_IFMT == syscall.S_IFDIR)
	if err != nil {
		return err
	}
	defer syscall.Close(place)
	tree, err := v.cloneTree(source)
	if err != nil {
		return fmt.Errorf("copy mounts: %w", err)
	}
	defer syscall.Close(tree)
	if err := restrictTree(tree, flags); err != nil {
		return fmt.Errorf("restrict mounts: %w", err)
	}
	if err := attach(tree, place); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	return nil
}

// place opens a path of the task to mount something over it, and makes it
// where that is possible. Links lead where they would lead the task.
func (v *view) place(target string, dir bool) (int, error) {
	fd, err := openAt(v.root, target, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != syscall.ENOENT {
		return fd, err
	}
	parent, name := filepath.Split(target)
	above, err := v.place(filepath.Clean(parent), true)
	if err != nil {
		return -1, err
	}
	defer func() { syscall.Close(above) }()
	if !v.mayMake(above) {
		real, err := realPath(above)
		if err == nil {
			err = v.extend(real)
		}
		if err != nil {
			return -1, fmt.Errorf("make place %s: %w", target, err)
		}
		more, err := openAt(v.root, strings.TrimPrefix(real, v.rootPath), oPath, resolveInRoot|resolveNoSymlinks)
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
func (v *view) mayMake(dir int) bool {
	var stat syscall.Stat_t
	if err := syscall.Fstat(dir, &stat); err == nil && v.devices[stat.Dev] {
		return true
	}
	real, err := realPath(dir)
	return err == nil && (within(real, v.rootPath+v.spec.Isolation.TaskDir) || v.ownPlaces()["tmp"] && within(real, v.rootPath+"/tmp"))
}

// hide covers paths with something empty. One that leads to what the task is
// to see gets a directory in memory, in which places can be made.
func (v *view) hide() error {
	keep := append([]string{v.spec.Isolation.TaskDir}, v.spec.Isolation.Visible...)
	for _, mount := range v.spec.Isolation.Mounts {
		keep = append(keep, mount.Target)
	}
	for _, path := range v.spec.Isolation.Hidden {
		if err := v.hideOne(path, keep); err != nil && !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ENOTDIR) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

func (v *view) hideOne(path string, keep []string) error {
	fd, err := openAt(v.root, path, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return v.bind(filepath.Join(v.stage, "nothing"), path, true)
	}
	for _, kept := range keep {
		if within(kept, path) {
			return v.memory(path, "size=1m,nr_inodes=1024,mode=0755", true)
		}
	}
	return v.bind(filepath.Join(v.stage, "empty"), path, true)
}

// memory mounts a file system in memory at a path of the task.
func (v *view) memory(target, options string, sealed bool) error {
	place, err := v.place(target, true)
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
	return v.made(real, sealed)
}

// makePrivate gives the task its own directories for what does not last. Its
// /tmp is on the disk, in its own directory, so that it costs no memory.
func (v *view) makePrivate() error {
	if !v.ownPlaces()["tmp"] {
		return nil
	}
	if err := v.memory("/run", "size=16m,nr_inodes=4096,mode=0755", false); err != nil {
		return err
	}
	for _, file := range []string{"/etc/resolv.conf"} {
		if err := v.bind(file, v.linkTarget(file), true); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	dir, err := syscall.Open(v.spec.Isolation.TaskDir, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(dir)
	const sticky = 0o1000
	err = syscall.Mkdirat(dir, "tmp", 0o777|sticky)
	tmp, openErr := openAt(dir, "tmp", syscall.O_DIRECTORY|syscall.O_NOFOLLOW, resolveBeneath|resolveNoSymlinks)
	if openErr != nil {
		return fmt.Errorf("tmp in the task's directory: %w", openErr)
	}
	defer syscall.Close(tmp)
	if err == nil { // made now
		if err := syscall.Fchmod(tmp, 0o777|sticky); err != nil {
			return err
		}
		if c := v.spec.Credential; c != nil {
			if err := syscall.Fchown(tmp, int(c.UID), int(c.GID)); err != nil {
				return err
			}
		}
	}
	v.writable = append(v.writable, "/tmp", "/run")
	return v.bindFD(tmp, "/tmp", mountNoSUID|mountNoDev)
}

// linkTarget follows a link of the node to where its file is, for links into
// directories that the task has of its own.
func (v *view) linkTarget(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil && v.spec.Isolation.Root == "" {
		return real
	}
	return path
}

// showTask mounts the task's directory, and what it is to see besides.
func (v *view) showTask() error {
	dir := v.spec.Isolation.TaskDir
	if err := v.bind(dir, dir, false); err != nil {
		return err
	}
	v.writable = append(v.writable, dir)
	for _, path := range v.spec.Isolation.Visible {
		if v.shows(path) {
			continue
		}
		if err := v.bind(path, path, true); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// shows reports whether the task sees the very same file there as the node.
func (v *view) shows(path string) bool {
	var ours, theirs syscall.Stat_t
	fd, err := openAt(v.root, path, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != nil {
		return false
	}
	defer syscall.Close(fd)
	return syscall.Fstat(fd, &theirs) == nil && syscall.Stat(path, &ours) == nil && ours.Dev == theirs.Dev && ours.Ino == theirs.Ino
}

// makeHostFiles puts the task's names over the node's.
func (v *view) makeHostFiles() error {
	for _, file := range []struct{ name, text string }{{"hosts", v.spec.Hosts}, {"hostname", v.spec.Hostname + "\n"}, {"passwd", v.spec.Passwd}} {
		if file.text == "" || file.text == "\n" {
			continue
		}
		path := filepath.Join(v.stage, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return err
		}
		err := v.bind(path, "/etc/"+file.name, true)
		if err != nil && file.name == "hostname" {
			continue // a node without that file, which cannot be made there
		}
		if err != nil {
			return fmt.Errorf("/etc/%s: %w", file.name, err)
		}
	}
	return nil
}

// mountAll shows what the job and the node's plugins ask for.
func (v *view) mountAll() *taskproc.Failure {
	own, err := filepath.EvalSymlinks(v.spec.Isolation.TaskDir)
	if err != nil {
		return failed(err)
	}
	for _, mount := range v.spec.Isolation.Mounts {
		fd, err := openSource(mount)
		if err != nil {
			return taskproc.Refuse(taskproc.CodeNotExecutable, "mount_missing", "path", mount.Source, "cause", taskproc.Errno(err).Error())
		}
		failure := v.mountOne(mount, fd, own)
		syscall.Close(fd)
		if failure != nil {
			return failure
		}
	}
	return nil
}

// openSource opens the source of a mount. The links of what an administrator
// has given lead nowhere else.
func openSource(mount BindMount) (int, error) {
	if mount.Within == "" {
		return syscall.Open(mount.Source, oPath|syscall.O_CLOEXEC, 0)
	}
	root, err := syscall.Open(mount.Within, oPath|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer syscall.Close(root)
	below, err := filepath.Rel(mount.Within, mount.Source)
	if err != nil {
		return -1, err
	}
	return openAt(root, below, oPath, resolveBeneath|resolveNoMagicLinks)
}

// mountOne mounts an opened source. It is judged by what was opened, which is
// what gets mounted, whatever becomes of the path meanwhile.
func (v *view) mountOne(mount BindMount, fd int, taskDir string) *taskproc.Failure {
	real, err := realPath(fd)
	var stat syscall.Stat_t
	if err == nil {
		err = syscall.Fstat(fd, &stat)
	}
	if err != nil {
		return failed(fmt.Errorf("resolve mount %s: %w", mount.Source, err))
	}
	kind := stat.Mode & syscall.S_IFMT
	refused := mount.Job && !v.spec.Isolation.allowed(real, taskDir)
	chosen := mount.Job || mount.Within != "" // by a job, if only the name below what is given
	if refused || chosen && kind != syscall.S_IFDIR && kind != syscall.S_IFREG {
		return taskproc.Refuse(taskproc.CodeNotExecutable, "mount_refused", "path", mount.Source, "real", real)
	}
	if chosen && reserved(mount.Target) {
		return taskproc.Refuse(taskproc.CodeNotExecutable, "mount_refused", "path", mount.Target, "real", mount.Target)
	}
	flags := uint64(mountNoSUID | mountNoDev)
	if mount.ReadOnly {
		flags |= mountReadOnly
	} else {
		v.writable = append(v.writable, mount.Target)
	}
	if err := v.bindFD(fd, mount.Target, flags); err != nil {
		return taskproc.Refuse(taskproc.CodeNotExecutable, "mount_failed", "path", mount.Target, "cause", err.Error())
	}
	return nil
}

// reserved reports whether a job may not mount something there: it could make
// programs believe what is not so. Pure.
func reserved(target string) bool {
	for _, path := range []string{"/proc", "/sys", "/dev"} {
		if within(target, path) && target != "/dev/shm" {
			return true
		}
	}
	return false
}

// seal makes all that is only scaffolding read-only.
func (v *view) seal() error {
	for _, path := range v.tmpfs {
		if err := syscall.Mount("", path, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY|memoryFlags, ""); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// enter makes the view this thread's root, and lets go of the node's.
func (v *view) enter() error {
	syscall.Close(v.root)
	if err := syscall.Chdir(v.rootPath); err != nil {
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
