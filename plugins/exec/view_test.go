package exec_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

// isolated returns a driver that isolates tasks; nil when the node cannot.
func isolated(t testing.TB, change ...func(*exec.Config)) *exec.Driver {
	t.Helper()
	d := open(t, change...)
	if level := attributes(t, d)["driver.exec.isolation"]; level == "raw" {
		t.Logf("the node cannot isolate tasks, %s: not run", attributes(t, d)["driver.exec.isolation_reason"])
		return nil
	}
	return d
}

func private(c *exec.Config) { c.View = exec.ViewPrivate }

// output runs a task to its end and returns what it has written.
func output(t *testing.T, d *exec.Driver, spec driver.TaskSpec) string {
	t.Helper()
	drivertest.Start(t, d, spec)
	result := drivertest.Wait(t, d, spec.ID)
	out := drivertest.Log(t, spec, tasklog.Stdout)
	if !result.Successful() {
		t.Errorf("result is %+v; it wrote %q and %q", result, out, drivertest.Log(t, spec, tasklog.Stderr))
	}
	return out
}

// TestIsolation tries what an isolated task must not be able to do.
func TestIsolation(t *testing.T) {
	for name, change := range map[string]func(*exec.Config){"shared": func(*exec.Config) {}, "private": private} {
		t.Run(name, func(t *testing.T) {
			d := isolated(t, change)
			if d == nil {
				return
			}
			refused := map[string]string{
				"sees its own processes only":           `[ $(ls /proc | grep -c '^[0-9]') -lt 8 ] && [ ! -e /proc/` + strconv.Itoa(os.Getpid()) + `/environ ] && echo refused`,
				"has no capabilities":                   `grep -q 'CapEff:.*0000000000000000' /proc/self/status && grep -q 'CapBnd:.*0000000000000000' /proc/self/status && echo refused`,
				"gets no new privileges":                `grep -q 'NoNewPrivs:.*1' /proc/self/status && echo refused`,
				"is filtered":                           `grep -q 'Seccomp:.*2' /proc/self/status && echo refused`,
				"cannot mount":                          `mount -t tmpfs x /mnt 2>/dev/null || echo refused`,
				"cannot make namespaces":                `unshare -U true 2>/dev/null || unshare -m true 2>/dev/null || echo refused`,
				"cannot make devices":                   `mknod "$PWD/sda" b 8 0 2>/dev/null || echo refused`,
				"cannot change settings of the node":    `(echo x >/proc/sys/kernel/hostname) 2>/dev/null || echo refused`,
				"cannot pull the emergency brake":       `(echo h >/proc/sysrq-trigger) 2>/dev/null || echo refused`,
				"does not see all memory":               `[ $(head -c 10 /proc/kcore 2>/dev/null | wc -c) = 0 ] && echo refused`,
				"does not see disks":                    `[ -z "$(find /dev -type b 2>/dev/null)" ] && echo refused`,
				"cannot end its init process":           `kill -9 1 2>/dev/null; kill -TERM 1 2>/dev/null; sleep 0.1; echo refused`,
				"cannot look into its init process":     `ls /proc/1/root/ >/dev/null 2>&1 || echo refused`,
				"cannot leave its root":                 `python3 -c 'import os; os.chroot(".")' 2>/dev/null || echo refused`,
				"cannot trace into the node":            `python3 -c 'import os; os.kill(` + strconv.Itoa(os.Getpid()) + `, 0)' 2>/dev/null || echo refused`,
				"does not see sockets of supervisors":   `[ -z "$(ls ` + filepath.Join(stateDir(t, d), "tasks") + ` 2>/dev/null)" ] && echo refused`,
				"has message queues of its own":         `[ $(ipcs -q | wc -l) -le 4 ] && echo refused`,
				"has the terminals of its own":          `[ -z "$(ls /dev/pts | grep -v ptmx)" ] && echo refused`,
				"can open its own terminals":            `python3 -c 'import os; os.openpty()' && echo refused`,
				"can write to common devices":           `echo x >/dev/null && head -c 1 /dev/urandom >/dev/null && echo refused`,
				"can write to its directory":            `echo x >"$PWD/file" && echo refused`,
				"can use threads and shared memory":     `python3 -c 'import threading, multiprocessing as m; t = threading.Thread(target=print); t.start(); t.join(); m.Lock(); p = m.Process(target=int); p.start(); p.join()' >/dev/null && echo refused`,
				"can reopen its output":                 `echo refused >/dev/stdout`,
				"can write to /tmp and /dev/shm":        `echo x >/tmp/nomadlike-test.$$ && rm /tmp/nomadlike-test.$$ && echo x >/dev/shm/nomadlike-test.$$ && rm /dev/shm/nomadlike-test.$$ && echo refused`,
				"can rename between its directories":    `mkdir a b && echo x >a/x && mv a/x b/y && echo refused`,
				"may be traced by its own processes":    `python3 -c 'import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0))' && echo refused`,
				"is not the owner of kernel parameters": `(echo 1 >/proc/sys/vm/drop_caches) 2>/dev/null || echo refused`,
			}
			for what, script := range refused {
				t.Run(what, func(t *testing.T) {
					if out := output(t, d, drivertest.Shell(t, script+"; exit 0")); out != "refused\n" {
						t.Errorf("task wrote %q", out)
					}
				})
			}
		})
	}
}

// TestAbstractSockets keeps tasks from sockets that have no file, and so no
// owner, and are the network's, which tasks share with the node.
func TestAbstractSockets(t *testing.T) {
	d := isolated(t)
	if d == nil {
		return
	}
	level := attributes(t, d)["driver.exec.isolation"]
	_, version, _ := strings.Cut(level, "landlock")
	if number, err := strconv.Atoi(version); err != nil || number < 6 {
		t.Logf("the kernel cannot do that (%s): not run", level)
		return
	}
	name := "\x00nomadlike-test-" + strconv.Itoa(os.Getpid())
	listener, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	script := `python3 -c '
import socket
s = socket.socket(socket.AF_UNIX)
try:
    s.connect("\0` + name[1:] + `"); print("connected")
except PermissionError:
    print("refused")
own, peer = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
own.bind("\0own-` + name[1:] + `"); own.listen(); peer.connect("\0own-` + name[1:] + `"); print("own")'`
	if out := output(t, d, drivertest.Shell(t, script)); out != "refused\nown\n" {
		t.Errorf("task wrote %q", out)
	}
}

func TestPrivateView(t *testing.T) {
	t.Run("is read-only and hides", func(t *testing.T) {
		secret := filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(secret, []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		d := isolated(t, private, func(c *exec.Config) { c.Hidden = []string{"/opt"} })
		if d == nil {
			return
		}
		spec := drivertest.Shell(t, `for d in /etc /usr /var /opt /; do touch $d/x 2>/dev/null && echo wrote to $d; done
			cat `+secret+` 2>/dev/null; ls -A /opt /root 2>/dev/null | grep -v : ; cat /etc/shadow 2>/dev/null; ls /run | grep -v -e resolv -e systemd
			echo mine >/tmp/mine; df --output=size -B1 /dev/shm | tail -1; ls -d $PWD; exit 0`)
		spec.Resources.Shm = 8 << 20
		if out := output(t, d, spec); strings.Join(strings.Fields(out), " ") != "8388608 "+spec.TaskDir {
			t.Errorf("task wrote %q", out)
		}
		if text, err := os.ReadFile(filepath.Join(spec.TaskDir, "tmp", "mine")); err != nil || string(text) != "mine\n" {
			t.Errorf("the task's /tmp has %q, %v", text, err)
		}
	})
	t.Run("a chosen root", func(t *testing.T) {
		if !asRoot(t) {
			return
		}
		root := t.TempDir()
		for _, dir := range []string{"usr", "etc"} {
			if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "etc", "release"), []byte("chosen\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("/usr", filepath.Join(root, "usr"), "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(filepath.Join(root, "usr"), syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		for _, link := range []string{"bin", "lib", "lib64"} {
			if err := os.Symlink("usr/"+link, filepath.Join(root, link)); err != nil {
				t.Fatal(err)
			}
		}
		d := isolated(t, func(c *exec.Config) { c.Root = root })
		if d == nil {
			return
		}
		spec := drivertest.Shell(t, "cat /etc/release; ls /etc; touch /etc/x 2>/dev/null || echo read-only; hostname; ls -d /var 2>/dev/null; exit 0")
		spec.Hostname = "digits-1-0"
		spec.Hosts = nil
		out := output(t, d, spec)
		if !strings.HasPrefix(out, "chosen\n") || !strings.Contains(out, "read-only\ndigits-1-0\n") || strings.Contains(out, "/var") {
			t.Errorf("task wrote %q", out)
		}
	})
	t.Run("a link in place of its /tmp is not followed", func(t *testing.T) {
		d := isolated(t, private)
		if d == nil {
			return
		}
		spec := drivertest.Shell(t, "touch /tmp/x")
		if err := os.Symlink("/etc", filepath.Join(spec.TaskDir, "tmp")); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Start(context.Background(), spec); err == nil {
			t.Error("the task was started")
		}
	})
}

func TestMounts(t *testing.T) {
	ctx := context.Background()
	data := t.TempDir()
	for name, text := range map[string]string{"in": "data", "out": ""} {
		if err := os.Mkdir(filepath.Join(data, name), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(data, name, "file"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for name, change := range map[string]func(*exec.Config){"shared": func(*exec.Config) {}, "private": private} {
		t.Run(name, func(t *testing.T) {
			d := isolated(t, change, func(c *exec.Config) { c.MountRoots = []string{data} })
			if d == nil {
				return
			}
			t.Run("read-only and writable, where the node has no such place", func(t *testing.T) {
				spec := drivertest.Shell(t, `cat /nomadlike-data/in/file; echo; touch /nomadlike-data/in/x 2>/dev/null || echo read-only; echo `+name+` >/nomadlike-results/file`)
				spec.Mounts = []driver.Mount{
					{HostPath: filepath.Join(data, "in"), TaskPath: "/nomadlike-data/in", ReadOnly: true},
					{HostPath: filepath.Join(data, "out"), TaskPath: "/nomadlike-results"},
				}
				if out := output(t, d, spec); out != "data\nread-only\n" {
					t.Errorf("task wrote %q", out)
				}
				if text, err := os.ReadFile(filepath.Join(data, "out", "file")); err != nil || string(text) != name+"\n" {
					t.Errorf("the node has %q, %v", text, err)
				}
				if _, err := os.Stat("/nomadlike-data"); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the node has got the place: %v", err)
				}
			})
			t.Run("a file of its own", func(t *testing.T) {
				spec := drivertest.Shell(t, "cat /nomadlike-job/hostfile")
				if err := os.WriteFile(filepath.Join(spec.TaskDir, "hostfile"), []byte("a slots=1\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				spec.Mounts = []driver.Mount{{HostPath: filepath.Join(spec.TaskDir, "hostfile"), TaskPath: "/nomadlike-job/hostfile", ReadOnly: true}}
				if out := output(t, d, spec); out != "a slots=1\n" {
					t.Errorf("task wrote %q", out)
				}
			})
			t.Run("in a directory of the node that lacks the place", func(t *testing.T) {
				spec := drivertest.Shell(t, "cat /etc/nomadlike-test/deep/file; head -1 /etc/hosts; ls /etc/passwd /etc/nomadlike-test; touch /etc/x 2>/dev/null || echo read-only")
				spec.Hosts = []string{"127.0.0.1 localhost"}
				spec.Mounts = []driver.Mount{{HostPath: filepath.Join(data, "in", "file"), TaskPath: "/etc/nomadlike-test/deep/file", ReadOnly: true}}
				if out := output(t, d, spec); out != "data127.0.0.1 localhost\n/etc/passwd\n\n/etc/nomadlike-test:\ndeep\nread-only\n" {
					t.Errorf("task wrote %q", out)
				}
				if _, err := os.Lstat("/etc/nomadlike-test"); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the node has got the place: %v", err)
				}
			})
			t.Run("many in one directory of the node that lacks their places", func(t *testing.T) {
				spec := drivertest.Shell(t, "cat /etc/nomadlike-test/1 /etc/nomadlike-test/deep/3 /etc/nomadlike-test/in/file /etc/nomadlike-more; ls /etc/nomadlike-test")
				file := filepath.Join(data, "in", "file")
				for _, target := range []string{"nomadlike-test/1", "nomadlike-test/2", "nomadlike-test/deep/3", "nomadlike-test/deep/4", "nomadlike-more"} {
					spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: file, TaskPath: "/etc/" + target, ReadOnly: true})
				}
				spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: filepath.Join(data, "in"), TaskPath: "/etc/nomadlike-test/in", ReadOnly: true})
				if out := output(t, d, spec); out != "datadatadatadata1\n2\ndeep\nin\n" {
					t.Errorf("task wrote %q", out)
				}
			})
			t.Run("in a directory with other mounts in it, at any depth", func(t *testing.T) {
				if os.Geteuid() != 0 {
					t.Skip("mounting on the node needs root")
				}
				base, err := os.MkdirTemp("/var/tmp", "nomadlike-mnt-")
				if err != nil {
					t.Fatal(err)
				}
				mounted := []string{filepath.Join(base, "nas"), filepath.Join(base, "nas", "deep")}
				t.Cleanup(func() {
					for _, point := range slices.Backward(mounted) {
						_ = syscall.Unmount(point, syscall.MNT_DETACH) // it may not have come to that
					}
					os.RemoveAll(base)
				})
				for _, point := range mounted {
					if err := os.MkdirAll(point, 0o755); err != nil {
						t.Fatal(err)
					}
					if err := syscall.Mount("tmpfs", point, "tmpfs", 0, "size=64k,mode=0755"); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(point, "file"), []byte(filepath.Base(point)+"\n"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Symlink("nas/file", filepath.Join(base, "link")); err != nil {
					t.Fatal(err)
				}
				spec := drivertest.Shell(t, "cd "+base+" && cat user/li/file; echo; cat nas/li/file; echo; cat nas/deep/li/file; echo; cat nas/file nas/deep/file link; ls; touch x 2>/dev/null || echo read-only")
				for _, target := range []string{"user/li", "nas/li", "nas/deep/li"} {
					spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: filepath.Join(data, "in"), TaskPath: filepath.Join(base, target), ReadOnly: true})
				}
				if out := output(t, d, spec); out != "data\ndata\ndata\nnas\ndeep\nnas\nlink\nnas\nuser\nread-only\n" {
					t.Errorf("task wrote %q", out)
				}
				if _, err := os.Lstat(filepath.Join(base, "user")); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the node has got the place: %v", err)
				}
			})
			t.Run("below what the administrator has given", func(t *testing.T) {
				given := t.TempDir() // not below a mount root
				if err := os.MkdirAll(filepath.Join(given, "set", "v1"), 0o755); err != nil {
					t.Fatal(err)
				}
				for link, target := range map[string]string{"inside": "set/v1", "outside": "/etc", "upward": "../../../../etc"} {
					if err := os.Symlink(target, filepath.Join(given, link)); err != nil {
						t.Fatal(err)
					}
				}
				spec := drivertest.Shell(t, "ls -d /nomadlike-work/set/v1 /nomadlike-work/link")
				spec.Mounts = []driver.Mount{
					{HostPath: filepath.Join(given, "set"), TaskPath: "/nomadlike-work/set", Within: given, ReadOnly: true},
					{HostPath: filepath.Join(given, "inside"), TaskPath: "/nomadlike-work/link", Within: given},
				}
				if out := output(t, d, spec); out != "/nomadlike-work/link\n/nomadlike-work/set/v1\n" {
					t.Errorf("task wrote %q", out)
				}
				for _, mount := range []driver.Mount{
					{HostPath: filepath.Join(given, "outside"), TaskPath: "/nomadlike-work", Within: given},
					{HostPath: filepath.Join(given, "upward"), TaskPath: "/nomadlike-work", Within: given},
					{HostPath: given + "/../../etc", TaskPath: "/nomadlike-work", Within: given},
					{HostPath: filepath.Join(given, "set"), TaskPath: "/proc/sys", Within: given},
				} {
					spec := drivertest.Shell(t, "true")
					spec.Mounts = []driver.Mount{mount}
					if _, err := d.Start(ctx, spec); err == nil {
						t.Errorf("mounted %+v", mount)
					}
				}
			})
			for what, mount := range map[string]driver.Mount{
				"the root":               {HostPath: "/", TaskPath: "/nomadlike-data"},
				"a place that is hidden": {HostPath: "/etc", TaskPath: "/nomadlike-data"},
				"what lies elsewhere":    {HostPath: "/usr/share", TaskPath: "/nomadlike-data"},
				"a way out of the root":  {HostPath: data + "/in/../../..", TaskPath: "/nomadlike-data"},
				"over /proc":             {HostPath: data + "/in", TaskPath: "/proc/sys"},
				"over devices":           {HostPath: data + "/in", TaskPath: "/dev/nvidia0"},
				"no such place":          {HostPath: data + "/none", TaskPath: "/nomadlike-data"},
			} {
				t.Run("refuses "+what, func(t *testing.T) {
					spec := drivertest.Shell(t, "true")
					spec.Mounts = []driver.Mount{mount}
					_, err := d.Start(ctx, spec)
					var start *driver.StartError
					if !errors.As(err, &start) || !strings.HasPrefix(start.Err.ID, "driver.mount_") {
						t.Errorf("start gives %v", err)
					}
				})
			}
			t.Run("refuses links out of the root", func(t *testing.T) {
				for _, target := range []string{"/", "/etc", stateDir(t, d), "../../../../../../etc"} {
					spec := drivertest.Shell(t, "true")
					link := filepath.Join(data, "link")
					if err := os.Symlink(target, link); err != nil {
						t.Fatal(err)
					}
					spec.Mounts = []driver.Mount{{HostPath: link, TaskPath: "/nomadlike-data", ReadOnly: true}}
					_, err := d.Start(ctx, spec)
					var start *driver.StartError
					if !errors.As(err, &start) || start.Err.ID != "driver.mount_refused" {
						t.Errorf("a link to %s: start gives %v", target, err)
					}
					if err := os.Remove(link); err != nil {
						t.Fatal(err)
					}
				}
			})
			t.Run("a link in its directory stays in its view", func(t *testing.T) {
				spec := drivertest.Shell(t, "ls -A /etc | wc -l")
				if err := os.Symlink("/etc", filepath.Join(spec.TaskDir, "link")); err != nil {
					t.Fatal(err)
				}
				spec.Mounts = []driver.Mount{{HostPath: filepath.Join(data, "in"), TaskPath: filepath.Join(spec.TaskDir, "link", "nomadlike-none")}}
				drivertest.Start(t, d, spec) // it lands in the task's own /etc
				if _, err := os.Lstat("/etc/nomadlike-none"); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the node's /etc has it: %v", err)
				}
			})
		})
	}
}

// TestNamespaceDiesWhole kills the supervisor of an isolated task, whose
// processes have gone every way that they can.
func TestNamespaceDiesWhole(t *testing.T) {
	d := isolated(t)
	if d == nil {
		return
	}
	spec := drivertest.Shell(t, family)
	handle := drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	state := stateOf(t, handle)
	members := namespace(t, state.Init.PID)
	if len(members) < 5 { // with the init process
		t.Fatalf("the namespace has %d processes", len(members))
	}
	if err := syscall.Kill(state.Supervisor.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Err == nil || result.Err.ID != "driver.task_lost" {
		t.Errorf("result is %+v, want a lost task", result)
	}
	gone(t, "family is gone", members...)
}

// namespace lists the processes in the process namespace of one of them.
func namespace(t *testing.T, pid int) []int {
	t.Helper()
	want, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	all, err := proctree.All()
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, p := range all {
		if got, err := os.Readlink("/proc/" + strconv.Itoa(p.PID) + "/ns/pid"); err == nil && got == want {
			found = append(found, p.PID)
		}
	}
	return found
}

// TestIsolatedTaskIsTakenOver enters the namespaces of a task that another
// agent has started.
func TestIsolatedTaskIsTakenOver(t *testing.T) {
	if isolated(t) == nil {
		return
	}
	dir := t.TempDir()
	spec := drivertest.Shell(t, `echo ready; trap 'exit 42' TERM; while :; do sleep 0.05; done`)
	spec.Hostname = "digits-1-0"
	handle := killedAgentWith(t, dir, exec.IsolationAuto, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	d := openAt(t, dir)
	take(t, d, handle)
	var out strings.Builder
	command := driver.ExecSpec{Command: []string{"/bin/sh", "-c", "hostname; tty; readlink /proc/1/exe; ls /proc | grep -c '^[0-9]'"}, TTY: true}
	if _, err := d.Exec(context.Background(), spec.ID, command, driver.Streams{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(out.String())
	if len(words) != 3 || words[0] != "digits-1-0" || words[1] != "/dev/pts/0" {
		t.Errorf("terminal shows %q", out.String())
	}
	if err := d.Stop(context.Background(), spec.ID, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 42 || result.Err != nil {
		t.Errorf("result is %+v, want 42", result)
	}
}

// TestDeviceNodes shows a task the devices that it was given, and their
// environment.
func TestDeviceNodes(t *testing.T) {
	if !asRoot(t) {
		return
	}
	d := isolated(t)
	if d == nil {
		return
	}
	spec := drivertest.Shell(t, `ls /dev/nomadlike-cards; echo $VISIBLE; ls /dev/loop-control 2>/dev/null; exit 0`)
	spec.Env = []string{"VISIBLE=all"}
	spec.Reservations = []driver.Reservation{{
		Env:   map[string]string{"VISIBLE": "GPU-1"},
		Nodes: []driver.Device{{HostPath: "/dev/zero", TaskPath: "/dev/nomadlike-cards/zero", Access: "rw"}},
	}}
	if out := output(t, d, spec); out != "zero\nGPU-1\n" {
		t.Errorf("task wrote %q", out)
	}
}

// TestDeviceRules shows a task nodes of devices, and lets it open only those
// that it was given.
func TestDeviceRules(t *testing.T) {
	if !asRoot(t) {
		return
	}
	d := isolated(t)
	if d == nil {
		return
	}
	readable := ""
	for _, path := range []string{"/dev/fuse", "/dev/cpu_dma_latency"} {
		if file, err := os.OpenFile(path, os.O_RDWR, 0); err == nil && readable == "" {
			readable = path
			file.Close()
		}
	}
	if readable == "" || attributes(t, d)["driver.exec.device_rules"] != "true" {
		t.Log("the node has no rules for devices, or none that anybody may open: not run")
		return
	}
	spec := drivertest.Shell(t, `for n in given readable other; do (: </dev/cards/$n) 2>/dev/null && echo read $n; (: >/dev/cards/$n) 2>/dev/null && echo wrote $n; done; exit 0`)
	spec.Reservations = []driver.Reservation{{
		Nodes: []driver.Device{
			{HostPath: "/dev/zero", TaskPath: "/dev/cards/given", Access: "rw"},
			{HostPath: readable, TaskPath: "/dev/cards/readable", Access: "r"},
		},
		// Another device's node comes by a mistake, as a mount.
		Mounts: []driver.Mount{{HostPath: readable, TaskPath: "/dev/cards/other"}},
	}}
	if out := output(t, d, spec); out != "read given\nwrote given\nread readable\n" {
		t.Errorf("task wrote %q", out)
	}
	spec = drivertest.Shell(t, "true")
	spec.ID = "none"
	spec.Devices = []driver.Device{{HostPath: "/dev/nomadlike-none", TaskPath: "/dev/none"}}
	if _, err := d.Start(context.Background(), spec); err == nil {
		t.Error("a task without its device was started")
	}
}

func TestIsolationSettings(t *testing.T) {
	for name, change := range map[string]func(*exec.Config){
		"isolation": func(c *exec.Config) { c.Isolation = "some" },
		"view":      func(c *exec.Config) { c.View = "other" },
		"root":      func(c *exec.Config) { c.Root = "relative" },
		"hidden":    func(c *exec.Config) { c.Hidden = []string{"/a/../b"} },
	} {
		config := exec.Config{StateDir: t.TempDir(), Isolation: exec.IsolationAuto, Spares: -1}
		change(&config)
		if d, err := exec.New(config); err == nil {
			t.Errorf("%s: accepted", name)
			d.Close()
		}
	}
	t.Run("raw", func(t *testing.T) {
		d := open(t, func(c *exec.Config) { c.Isolation = exec.IsolationRaw })
		if got := attributes(t, d); got["driver.exec.isolation"] != "raw" || got["driver.exec.isolation_reason"] != "switched off" {
			t.Errorf("attributes are %v", got)
		}
	})
	t.Run("required where it cannot be", func(t *testing.T) {
		// A program that is no supervisor: nothing can be tried out.
		d := open(t, func(c *exec.Config) {
			c.Isolation, c.Spares = exec.IsolationRequired, -1
			c.Supervisor = []string{"/bin/false"}
		})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		reports, err := d.Fingerprint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if report := <-reports; report.Health != driver.Unhealthy || report.Reason == "" || report.Attributes["driver.exec.isolation"] != "raw" {
			t.Errorf("report is %+v", report)
		}
		if _, err := d.Start(ctx, drivertest.Shell(t, "true")); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("start gives %v", err)
		}
	})
	t.Run("in the record", func(t *testing.T) {
		d := isolated(t)
		if d == nil {
			return
		}
		spec := drivertest.Shell(t, "exec sleep 1000")
		handle := drivertest.Start(t, d, spec)
		record, err := supervisor.ReadRecord(filepath.Join(stateDir(t, d), "tasks"), string(spec.ID))
		if err != nil || record.State == nil || record.State.Init.PID == 0 || record.State.Init != stateOf(t, handle).Init {
			t.Errorf("record is %+v, %v", record, err)
		}
		eventually.Within(t, time.Minute, "it is alone", func() bool {
			usage, err := d.Stats(context.Background(), spec.ID)
			return err == nil && usage.Processes == 1
		})
	})
}
