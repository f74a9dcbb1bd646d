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

// Isolation says what a task sees of its node and may do there. Without one a
// task is a plain process.
type Isolation struct {
	// Root is the directory that the task has for "/", read-only; "" means
	// the node's own.
	Root string `json:"root,omitempty"`
	// Private mounts the task's own /tmp, /run and /dev/shm, and the rest of
	// the node read-only. Without it the task uses the node's files as its
	// user may.
	Private bool `json:"private,omitempty"`
	// Hidden are paths of the node that look empty to the task.
	Hidden []string `json:"hidden,omitempty"`
	// Visible are files and directories of the node that the task sees
	// nevertheless, read-only.
	Visible []string `json:"visible,omitempty"`

	TaskDir  string      `json:"task_dir"` // writable, under its own path
	ShmBytes int64       `json:"shm_bytes,omitempty"`
	Mounts   []BindMount `json:"mounts,omitempty"`
	Nodes    []BindMount `json:"nodes,omitempty"` // devices
	// MountRoots are the directories of the node below which the job's mounts
	// must lie, links resolved, and Forbidden what they must not touch.
	MountRoots []string `json:"mount_roots,omitempty"`
	Forbidden  []string `json:"forbidden,omitempty"`

	// OwnUsers reports that this process has been put into a user namespace of
	// its own.
	OwnUsers bool `json:"own_users,omitempty"`
	// CloneOpen lets clone3 through the filter of system calls: processes can
	// not be made into a cgroup of version 2 without it. What tasks could do
	// with it, new user namespaces, is forbidden by other means then.
	CloneOpen bool `json:"clone_open,omitempty"`
}

// BindMount shows a file or directory of the node to the task.
type BindMount struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only,omitempty"`
	// Job marks what the job asks for, which is not believed; the rest comes
	// from the node.
	Job bool `json:"job,omitempty"`
	// Within is a directory of the node that no link on the way to Source leads
	// out of; "" lets links lead anywhere.
	Within string `json:"within,omitempty"`
}

// validate checks what this process relies on.
func (i *Isolation) validate() error {
	if i == nil {
		return nil
	}
	if !cleanPath(i.TaskDir) || i.Root != "" && !cleanPath(i.Root) || i.ShmBytes < 0 {
		return errors.New("spec: bad task directory, root or size")
	}
	for _, mount := range append(append([]BindMount(nil), i.Mounts...), i.Nodes...) {
		if !filepath.IsAbs(mount.Source) || !cleanPath(mount.Target) || mount.Within != "" && !within(mount.Source, mount.Within) {
			return fmt.Errorf("spec: bad mount %q at %q", mount.Source, mount.Target)
		}
	}
	for _, list := range [][]string{i.Hidden, i.Visible, i.MountRoots, i.Forbidden} {
		for _, path := range list {
			if !cleanPath(path) && path != "/" {
				return fmt.Errorf("spec: bad path %q", path)
			}
		}
	}
	return nil
}

func cleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && strings.IndexByte(path, 0) < 0
}

// within reports whether path is root or below it.
func within(path, root string) bool {
	return path == root || root == "/" || strings.HasPrefix(path, root+"/")
}

// allowed decides about a mount's source, by where it really is. What lies in
// the task's own directory is the task's already. Pure.
func (i *Isolation) allowed(real, taskDir string) bool {
	if within(real, taskDir) {
		return true
	}
	for _, root := range i.Forbidden {
		if within(real, root) || within(root, real) {
			return false
		}
	}
	for _, root := range i.MountRoots {
		if within(real, root) {
			return true
		}
	}
	return false
}

// isolate puts this thread, and with it all processes that it will make, into
// namespaces of the task's own and into its view of the node, and then takes
// away what could undo that. Must run in the spawner's thread, which can do
// nothing for anybody else afterwards. Neither this nor a child of this thread
// is in the new process namespace until the first one is: the init process.
func (s *spawner) isolate(spec *Spec) *taskproc.Failure {
	const namespaces = syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWPID
	if err := syscall.Unshare(namespaces); err != nil {
		return failed(fmt.Errorf("make namespaces: %w", err))
	}
	if spec.Hostname != "" {
		if err := syscall.Sethostname([]byte(spec.Hostname)); err != nil {
			return failed(fmt.Errorf("set host name: %w", err))
		}
	}
	if spec.Isolation.OwnUsers {
		if err := forbidUserNamespaces(); err != nil {
			return failed(fmt.Errorf("forbid user namespaces: %w", err))
		}
	}
	init, err := s.startInit(spec.Marker)
	if err != nil {
		return failed(fmt.Errorf("start init process: %w", err))
	}
	v, failure := buildView(spec, init.mountProc)
	if failure != nil {
		return failure
	}
	if err := v.root.enter(); err != nil {
		return failed(err)
	}
	if err := lockDown(spec.Isolation, v.writable); err != nil {
		return failed(err)
	}
	return nil
}

// forbidUserNamespaces lets no user namespace be made below this process's own
// one, which the driver has made for it.
func forbidUserNamespaces() error {
	return os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
}

// initArgument makes a supervisor's program an init process, with the connection
// to its supervisor for its streams.
const initArgument = "init"

// initProcess is the first process of the task's process namespace. The kernel
// hands it the task's orphans, and kills all of the namespace with it.
type initProcess struct {
	pid        int
	connection *os.File
}

// startInit starts the init process, in this thread's new namespaces.
func (s *spawner) startInit(marker string) (*initProcess, error) {
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(pair[1])
	connection := os.NewFile(uintptr(pair[0]), "init")
	attributes := &syscall.ProcAttr{
		Dir: "/", Env: append(Environ(), MarkerEnv+"="+marker), Files: []uintptr{uintptr(pair[1]), uintptr(pair[1]), 2},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	}
	argv := append(append([]string(nil), os.Args...), initArgument)
	pid, _, err := s.reaper.Fork(func() (int, error) {
		return s.unprotected(func() (int, error) { return syscall.ForkExec("/proc/self/exe", argv, attributes) })
	})
	if err != nil {
		connection.Close()
		return nil, err
	}
	s.tree.init.Store(int64(pid))
	s.init = &initProcess{pid: pid, connection: connection}
	return s.init, nil
}

// mountProc has the init process mount /proc, which shows the processes of
// whoever mounts it.
func (i *initProcess) mountProc(path string) error {
	if _, err := i.connection.WriteString(path + "\n"); err != nil {
		return fmt.Errorf("ask init process: %w", err)
	}
	answer := make([]byte, 256)
	n, err := i.connection.Read(answer)
	if err != nil {
		return fmt.Errorf("hear of init process: %w", err)
	}
	if text := strings.TrimSpace(string(answer[:n])); text != "ok" {
		return fmt.Errorf("mount /proc: %s", text)
	}
	return nil
}

// runInit is the init process: it mounts /proc where it is told and then stays
// until its supervisor is gone. Ignoring the death of children leaves the
// collecting of them to the kernel.
func runInit() int {
	ignoreSignals()
	connection := os.NewFile(0, "supervisor")
	path := make([]byte, 8192)
	n, err := connection.Read(path)
	if err != nil {
		return 1
	}
	answer := "ok"
	target := strings.TrimSpace(string(path[:n]))
	if err := syscall.Mount("proc", target, "proc", syscall.MS_NOSUID|syscall.MS_NODEV|syscall.MS_NOEXEC, ""); err != nil {
		answer = err.Error()
	}
	if _, err := connection.WriteString(answer + "\n"); err != nil {
		return 1
	}
	_, _ = connection.Read(path) // ends when the supervisor does
	return 0
}
