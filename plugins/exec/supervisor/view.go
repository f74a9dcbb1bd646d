package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"nomadlike/plugins/driver/taskproc"
)

// view is what a task sees of the node: the node's top directories, or those of
// a chosen root, with some hidden, some of its own, and what it mounts.
type view struct {
	spec     *Spec
	root     *root
	writable []string // what the task may write to, as it sees it
}

// buildView makes the view. mountProc mounts /proc of the right processes.
func buildView(spec *Spec, mountProc func(path string) error) (*view, *taskproc.Failure) {
	v := &view{spec: spec}
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
	if err := v.root.seal(); err != nil {
		return nil, failed(fmt.Errorf("seal view: %w", err))
	}
	return v, nil
}

// begin makes the file system that all is shown in.
func (v *view) begin() (err error) {
	own := []string{v.spec.Isolation.TaskDir}
	if v.ownPlaces()["tmp"] {
		own = append(own, "/tmp")
	}
	v.root, err = newRoot(own...)
	return err
}

// ownPlaces are the top directories that the task has of its own.
func (v *view) ownPlaces() map[string]bool {
	own := map[string]bool{"proc": true, "dev": true}
	if v.spec.Isolation.Private || v.spec.Isolation.Root != "" {
		own["tmp"], own["run"] = true, true
	}
	return own
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
	fd, err := openAt(v.root.fd, path, oPath, resolveInRoot|resolveNoMagicLinks)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	var stat syscall.Stat_t
	if err := syscall.Fstat(fd, &stat); err != nil {
		return err
	}
	if stat.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return v.root.bind(filepath.Join(v.root.stage, "nothing"), path, true)
	}
	for _, kept := range keep {
		if within(kept, path) {
			return v.root.memory(path, "size=1m,nr_inodes=1024,mode=0755", true)
		}
	}
	return v.root.bind(filepath.Join(v.root.stage, "empty"), path, true)
}

// makePrivate mounts the task's own directories for what does not last. Its
// /tmp is on the disk, in its own directory, so that it costs no memory.
func (v *view) makePrivate() error {
	if !v.ownPlaces()["tmp"] {
		return nil
	}
	if err := v.root.memory("/run", "size=16m,nr_inodes=4096,mode=0755", false); err != nil {
		return err
	}
	for _, file := range []string{"/etc/resolv.conf"} {
		if err := v.root.bind(file, v.linkTarget(file), true); err != nil && !errors.Is(err, os.ErrNotExist) {
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
	return v.root.bindFD(tmp, "/tmp", mountNoSUID|mountNoDev)
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
	if err := v.root.bind(dir, dir, false); err != nil {
		return err
	}
	v.writable = append(v.writable, dir)
	for _, path := range v.spec.Isolation.Visible {
		if v.root.shows(path) {
			continue
		}
		if err := v.root.bind(path, path, true); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// makeHostFiles puts the task's names over the node's.
func (v *view) makeHostFiles() error {
	for _, file := range []struct{ name, text string }{{"hosts", v.spec.Hosts}, {"hostname", v.spec.Hostname + "\n"}, {"passwd", v.spec.Passwd}} {
		if file.text == "" || file.text == "\n" {
			continue
		}
		path := filepath.Join(v.root.stage, file.name)
		if err := os.WriteFile(path, []byte(file.text), 0o644); err != nil {
			return err
		}
		err := v.root.bind(path, "/etc/"+file.name, true)
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
	if err := v.root.bindFD(fd, mount.Target, flags); err != nil {
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
