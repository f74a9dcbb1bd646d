package supervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"nomadlike/plugins/driver/taskproc"
)

// spawner makes the task's processes. All of them are made by one thread,
// which never ends before the supervisor does: the kernel sends the
// parent-death signal when the parent's thread ends, and the task's
// namespaces are those of this thread alone, so that the rest of the
// supervisor keeps seeing the node's own files.
type spawner struct {
	requests chan func()
	reaper   *taskproc.Reaper
	tree     *tree
	cgroup   *os.File // of version 2, nil: none
	oom      int      // this process's protection, which no child is to have; 0: none
	self     *os.File // its adjustment, opened while that could be done; nil without protection
	init     *initProcess
	limits   []Limit // of every process
}

func newSpawner(t *tree) *spawner {
	const self = "/proc/self"
	s := &spawner{requests: make(chan func()), reaper: t.reaper, tree: t, oom: readOOM(self)}
	if s.oom < 0 {
		var err error
		if s.self, err = openOOM(self); err != nil {
			s.oom = 0 // nothing can be changed without it
		}
	}
	return s
}

// close lets go of what the spawner holds. Called once its thread makes no
// more processes.
func (s *spawner) close() {
	for _, file := range []*os.File{s.cgroup, s.self} {
		if file != nil {
			file.Close()
		}
	}
	if s.init != nil {
		s.init.connection.Close()
	}
}

// unprotected calls fork so that the child is not protected when memory runs
// out.
func (s *spawner) unprotected(fork func() (int, error)) (int, error) {
	return unprotected(s.self, s.oom, fork)
}

// run serves requests until stop is closed. The caller must have locked its
// goroutine to its thread and never unlock it.
func (s *spawner) run(stop <-chan struct{}) {
	for {
		select {
		case request := <-s.requests:
			request()
		case <-stop:
			return
		}
	}
}

// program is a command to be executed.
type program struct {
	command    []string
	env        []string
	dir        string
	credential *Credential
	files      []uintptr // standard streams
	terminal   bool      // files[0] becomes the controlling terminal
	self       bool      // this program in another role, see sideCommand
}

// start executes a program in a session and process group of its own. Must
// run in the spawner's thread. A nil failure means that it has executed.
func (s *spawner) start(p program) (int, <-chan syscall.WaitStatus, *taskproc.Failure) {
	if failure := taskproc.CheckDir(p.dir); failure != nil {
		return 0, nil, failure
	}
	path := p.command[0]
	if !p.self { // which only a process in the task's namespace of processes finds
		var failure *taskproc.Failure
		if path, failure = taskproc.FindProgram(path, p.dir, p.env); failure != nil {
			return 0, nil, failure
		}
	}
	sys := &syscall.SysProcAttr{Setsid: true}
	if s.init == nil {
		// Otherwise its namespace dies with the supervisor; and the child does
		// not see from in there that its parent is alive.
		sys.Pdeathsig = syscall.SIGKILL
	}
	if p.terminal {
		sys.Setctty, sys.Ctty = true, 0
	}
	if c := p.credential; c != nil {
		sys.Credential = &syscall.Credential{Uid: c.UID, Gid: c.GID, Groups: c.Groups}
	}
	if s.cgroup != nil {
		sys.UseCgroupFD, sys.CgroupFD = true, int(s.cgroup.Fd())
	}
	executed, argv := limited(s.limits, path, p.command)
	attributes := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Files: p.files, Sys: sys}
	execute := func() (int, error) {
		if err := s.tree.cgroups.enter(); err != nil {
			return 0, err
		}
		defer s.tree.cgroups.leave()
		pid, err := syscall.ForkExec(executed, argv, attributes)
		if err != nil && sys.UseCgroupFD && cgroupRefused(err) {
			sys.UseCgroupFD, s.tree.cgroups.loose = false, true
			if pid, err = syscall.ForkExec(executed, argv, attributes); err == nil {
				write(s.tree.cgroups.v2, "cgroup.procs", strconv.Itoa(pid)) // what it has forked by now is found by other means
			}
		}
		return pid, err
	}
	s.tree.freezer.enterGate(0)
	defer s.tree.freezer.leaveGate()
	pid, exit, err := s.reaper.Fork(func() (int, error) { return s.unprotected(execute) })
	if err == taskproc.ErrClosed {
		return 0, nil, &taskproc.Failure{Kind: taskproc.FailEnded}
	}
	if err != nil {
		return 0, nil, taskproc.Explain(p.command[0], path, p.dir, err)
	}
	return pid, exit, nil
}

// cgroupRefused tells errors of clone3 into a cgroup that are worth a try
// without one: an old kernel, a filter, or a cgroup that may not be used.
func cgroupRefused(err error) bool {
	return err == syscall.ENOSYS || err == syscall.EBUSY || err == syscall.EOPNOTSUPP ||
		err == syscall.ENODEV || err == syscall.EBADF || err == syscall.EINVAL
}

// enterNamespaces moves this thread into UTS and mount namespaces of its own, with
// the task's host name and files. It returns notes on what could not be done;
// without the privilege that is all of it. Must run in the spawner's thread.
func enterNamespaces(spec *Spec) (notes []string) {
	if spec.Hostname == "" && spec.Hosts == "" {
		return nil
	}
	if err := syscall.Unshare(syscall.CLONE_NEWUTS | syscall.CLONE_NEWNS); err != nil {
		return []string{"no namespaces, the task sees the node's own host name and hosts file: " + err.Error()}
	}
	note := func(what string, err error) {
		if err != nil {
			notes = append(notes, what+": "+err.Error())
		}
	}
	if spec.Hostname != "" {
		note("set host name", syscall.Sethostname([]byte(spec.Hostname)))
	}
	// What is mounted on the node later should appear in here, and nothing
	// mounted in here on the node.
	if err := syscall.Mount("", "/", "", syscall.MS_SLAVE|syscall.MS_REC, ""); err != nil {
		note("detach mounts", err)
		return notes
	}
	// The files live in memory, in a file system that hides the state
	// directory, and with it all control sockets, from the task.
	dir, err := os.Getwd()
	if err == nil {
		err = syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, "size=4m,nr_inodes=16,mode=0700")
	}
	if err != nil {
		note("make place for private files", err)
		return notes
	}
	if spec.Hosts != "" {
		note("private /etc/hosts", overlay("/etc/hosts", filepath.Join(dir, "hosts"), spec.Hosts))
	}
	if spec.Hostname != "" {
		note("private /etc/hostname", overlay("/etc/hostname", filepath.Join(dir, "hostname"), spec.Hostname+"\n"))
	}
	return notes
}

// overlay writes text into a file and binds that over target. The file can be
// rewritten in place later, the task sees it. A node without the target gets
// none.
func overlay(target, path, text string) error {
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return err
	}
	if err := syscall.Mount(path, target, "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind over %s: %w", target, err)
	}
	return nil
}
