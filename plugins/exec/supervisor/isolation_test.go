package supervisor

import (
	"syscall"
	"testing"
)

func TestOwnCgroup(t *testing.T) {
	const text = "12:cpu,cpuacct:/system.slice/agent.service\n4:memory:/a/b\n1:name=systemd:/init\n0::/user\nbroken\n"
	for controller, want := range map[string]string{
		"cpu": "/system.slice/agent.service", "cpuacct": "/system.slice/agent.service", "memory": "/a/b", "pids": "/",
	} {
		if got := ownCgroup([]byte(text), controller); got != want {
			t.Errorf("%s is in %q, want %q", controller, got, want)
		}
	}
}

// TestAllowedSources decides about what mounts lead to.
func TestAllowedSources(t *testing.T) {
	i := &Isolation{MountRoots: []string{"/data", "/srv/agent"}, Forbidden: []string{"/etc", "/srv/agent/state", "/data/private"}}
	for real, want := range map[string]bool{
		"/data": false, "/data/set": true, "/data/private": false, "/data/private/x": false, "/database": false,
		"/": false, "/etc": false, "/etc/x": false, "/srv": false, "/srv/agent": false, "/srv/agent/state/tasks": false, "/srv/agent/free": true,
		"/run/task": true, "/run/task/file": true, "/run/tasks": false, "/run": false,
	} {
		if got := i.allowed(real, "/run/task"); got != want {
			t.Errorf("%s is allowed: %v, want %v", real, got, want)
		}
	}
	if (&Isolation{MountRoots: []string{"/"}}).allowed("/anything", "/task") != true {
		t.Error("a root of / does not allow everything")
	}
}

func TestReservedTargets(t *testing.T) {
	for target, want := range map[string]bool{
		"/proc": true, "/proc/sys": true, "/sys": true, "/dev": true, "/dev/nvidia0": true, "/dev/shm": false, "/devices": false, "/data": false,
	} {
		if got := reserved(target); got != want {
			t.Errorf("%s is reserved: %v, want %v", target, got, want)
		}
	}
}

// interpret is a slow obvious twin of the kernel's interpreter for the instructions
// that the filter uses.
func interpret(program []filterInstruction, number, arch uint32, args [2]uint64) uint32 {
	data := map[uint32]uint32{dataNumber: number, dataArch: arch, dataArg0: uint32(args[0]), dataArg1: uint32(args[1])}
	var word uint32
	for at := 0; ; at++ {
		i := program[at]
		jump := func(yes bool) {
			if yes {
				at += int(i.jt)
			} else {
				at += int(i.jf)
			}
		}
		switch i.code {
		case bpfLoad:
			word = data[i.k]
		case bpfEqual:
			jump(word == i.k)
		case bpfGreater:
			jump(word >= i.k)
		case bpfAnySet:
			jump(word&i.k != 0)
		case bpfReturn:
			return i.k
		}
	}
}

func TestFilter(t *testing.T) {
	const (
		allow   = uint32(retAllow)
		deny    = retErrno | uint32(syscall.EPERM)
		unknown = retErrno | uint32(syscall.ENOSYS)
	)
	for _, c := range []struct {
		what   string
		number int
		arch   uint32
		args   [2]uint64
		open   bool
		want   uint32
	}{
		{"read", syscall.SYS_READ, archNumber, [2]uint64{}, false, allow},
		{"execve", syscall.SYS_EXECVE, archNumber, [2]uint64{}, false, allow},
		{"mount", syscall.SYS_MOUNT, archNumber, [2]uint64{}, false, deny},
		{"new mount", sysMoveMount, archNumber, [2]uint64{}, false, deny},
		{"unshare", syscall.SYS_UNSHARE, archNumber, [2]uint64{}, false, deny},
		{"fork", syscall.SYS_CLONE, archNumber, [2]uint64{uint64(syscall.SIGCHLD)}, false, allow},
		{"thread", syscall.SYS_CLONE, archNumber, [2]uint64{syscall.CLONE_VM | syscall.CLONE_THREAD | syscall.CLONE_SIGHAND}, false, allow},
		{"user namespace", syscall.SYS_CLONE, archNumber, [2]uint64{syscall.CLONE_NEWUSER | uint64(syscall.SIGCHLD)}, false, deny},
		{"network namespace", syscall.SYS_CLONE, archNumber, [2]uint64{syscall.CLONE_NEWNET}, false, deny},
		{"clone3", sysClone3, archNumber, [2]uint64{}, false, unknown},
		{"clone3 for a cgroup", sysClone3, archNumber, [2]uint64{}, true, allow},
		{"ioctl", syscall.SYS_IOCTL, archNumber, [2]uint64{0, syscall.TIOCGWINSZ}, false, allow},
		{"typing for others", syscall.SYS_IOCTL, archNumber, [2]uint64{0, tioCSTI}, false, deny},
		{"typing with more bits", syscall.SYS_IOCTL, archNumber, [2]uint64{0, 1<<32 | tioCSTI}, false, deny},
		{"selection of a console", syscall.SYS_IOCTL, archNumber, [2]uint64{0, tioLinux}, false, deny},
		{"a call of the future", unknownCall, archNumber, [2]uint64{}, false, unknown},
		{"a number of the other pointers", 0x40000000 | syscall.SYS_MOUNT, archNumber, [2]uint64{}, false, unknown},
		{"another architecture", syscall.SYS_READ, archNumber ^ 1, [2]uint64{}, false, unknown},
	} {
		program := filterProgram(archNumber, refusedCalls(), c.open)
		if got := interpret(program, uint32(c.number), c.arch, c.args); got != c.want {
			t.Errorf("%s gives %#x, want %#x", c.what, got, c.want)
		}
	}
	if length := len(filterProgram(archNumber, refusedCalls(), false)); length > 255 {
		t.Errorf("the filter has %d instructions", length)
	}
}

func TestIsolationValidate(t *testing.T) {
	good := func() *Isolation { return &Isolation{TaskDir: "/task"} }
	if err := good().validate(); err != nil {
		t.Error(err)
	}
	var none *Isolation
	if err := none.validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Isolation){
		"task directory": func(i *Isolation) { i.TaskDir = "relative" },
		"root":           func(i *Isolation) { i.Root = "/a/.." },
		"size":           func(i *Isolation) { i.ShmBytes = -1 },
		"source":         func(i *Isolation) { i.Mounts = []BindMount{{Source: "a", Target: "/b"}} },
		"target":         func(i *Isolation) { i.Mounts = []BindMount{{Source: "/a", Target: "/b/../c"}} },
		"node":           func(i *Isolation) { i.Nodes = []BindMount{{Source: "/dev/x", Target: "/"}} },
		"hidden":         func(i *Isolation) { i.Hidden = []string{"x"} },
	} {
		i := good()
		spoil(i)
		if i.validate() == nil {
			t.Errorf("a bad %s is accepted", name)
		}
	}
}
