package docker_test

import (
	"context"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// What a task writes into its container lies where the driver says.
func TestLayerHoldsWhatATaskWrites(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(drivertest.Shell(t, "head -c 300000 /dev/zero >/written && echo ready; sleep 1000"))
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	dir, err := d.Layer(t.Context(), spec.ID)
	if err != nil || dir == "" {
		t.Fatalf("layer %q, %v", dir, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "written")); err != nil || info.Size() != 300000 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := d.Layer(t.Context(), "nobody"); !errors.Is(err, driver.ErrUnknownTask) {
		t.Errorf("of no task: %v", err)
	}
}

// TestLimits reads back what the kernel enforces.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(drivertest.Shell(t, "echo ready; sleep 1000"))
	spec.Resources = driver.Resources{CPU: 0.5, Memory: 96 << 20, Shm: 32 << 20, PIDs: 70}
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	found, err := world.api.ContainerInspect(context.Background(), containerOf(t, d, spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	host := found.HostConfig
	if host.NanoCPUs != 5e8 || host.Memory != 96<<20 || host.MemorySwap != 96<<20 || host.ShmSize != 32<<20 || *host.PidsLimit != 70 {
		t.Errorf("the engine enforces %+v", host.Resources)
	}
	for _, masked := range []string{"/proc/kcore", "/proc/keys", "/sys/firmware"} {
		if !strings.Contains(strings.Join(host.MaskedPaths, " "), masked) {
			t.Errorf("%s is not masked", masked)
		}
	}
	text, err := os.ReadFile("/proc/" + strconv.Itoa(found.State.Pid) + "/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{"memory/memory.limit_in_bytes": "100663296", "pids/pids.max": "70", "cpu/cpu.cfs_quota_us": "50000"} {
		controller, name, _ := strings.Cut(file, "/")
		for line := range strings.SplitSeq(string(text), "\n") {
			parts := strings.SplitN(line, ":", 3)
			if len(parts) != 3 || parts[1] != controller {
				continue // version 2 has no such files; the engine's word has to do there
			}
			if got, err := os.ReadFile("/sys/fs/cgroup/" + controller + parts[2] + "/" + name); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, %v, want %s", file, got, err, want)
			}
		}
	}
	// RDMA needs to pin memory without a limit, which this engine may not give.
	rdma := dressed(drivertest.Shell(t, "ulimit -l"))
	rdma.ID += "-r"
	rdma.Container.RDMA = true
	if _, err = d.Start(context.Background(), rdma); err == nil {
		drivertest.Wait(t, d, rdma.ID)
		if out := drivertest.Log(t, rdma, tasklog.Stdout); out != "unlimited\n" {
			t.Errorf("RDMA task may pin %q", out)
		}
		if err := d.Destroy(context.Background(), rdma.ID); err != nil {
			t.Error(err)
		}
	} else {
		refused(t, err, "docker.rlimit_refused")
	}
}

// TestOwnDirectory: the image's user may write where its command stands, and
// sees files of that directory at other paths, also on a node that lets jobs
// mount next to nothing.
func TestOwnDirectory(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const ref = "nomadlike-test/own:1"
	files := append(links("bin", "lib", "lib64", "sbin"), file{name: "etc/", mode: 0o755},
		file{name: "etc/passwd", body: []byte("root:x:0:0::/:/bin/sh\napp:x:1234:1235::/:/bin/sh\n"), mode: 0o644})
	d := open(t, func(c *docker.Config) { c.MountRoots = []string{"/usr"} })
	for user, want := range map[string]string{"app": "1234:1235", "77": "77:0", "77:78": "77:78"} {
		if err := importImage(ref, files, []string{"USER " + user}); err != nil {
			t.Fatal(err)
		}
		spec := dressed(drivertest.Shell(t, "touch mine && stat -c %u:%g mine && cat /etc/mpi/hostfile"))
		spec.Container.Image = ref
		if err := os.WriteFile(filepath.Join(spec.TaskDir, "hosts"), []byte("rank-0 slots=8\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: filepath.Join(spec.TaskDir, "hosts"), TaskPath: "/etc/mpi/hostfile", ReadOnly: true})
		drivertest.Start(t, d, spec)
		result := drivertest.Wait(t, d, spec.ID)
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != want+"\nrank-0 slots=8\n" || !result.Successful() {
			t.Errorf("user %s: the task writes %q, ends with %+v: %s", user, out, result, drivertest.Log(t, spec, tasklog.Stderr))
		}
		if err := d.Destroy(context.Background(), spec.ID); err != nil {
			t.Error(err)
		}
	}
}

// TestUserAndDirectory runs as the image's user, as a named one and in a
// directory of the job's choice.
func TestUserAndDirectory(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const ref = "nomadlike-test/user:1"
	files := append(links("bin", "lib", "lib64", "sbin"), file{name: "etc/", mode: 0o755},
		file{name: "etc/passwd", body: []byte("root:x:0:0::/:/bin/sh\napp:x:1234:1235::/:/bin/sh\n"), mode: 0o644},
		file{name: "etc/group", body: []byte("app:x:1235:\nextra:x:1300:app\n"), mode: 0o644}, file{name: "app/", mode: 0o777})
	if err := importImage(ref, files, []string{"USER app"}); err != nil {
		t.Fatal(err)
	}
	d := open(t)
	for _, c := range []struct {
		name, user, dir, want string
	}{
		{"of the image", "", "/app", "1234 1235 1300\n/app\n"},
		{"by number", "4321:4322", "/app", "4321 4322\n/app\n"},
		{"by name", "root", "/", "0 0\n/\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := dressed(drivertest.Shell(t, "echo $(id -u) $(id -G); pwd; sleep 1000"))
			spec.Container.Image, spec.User, spec.Dir = ref, c.user, c.dir
			drivertest.Start(t, d, spec)
			drivertest.AwaitOutput(t, spec, c.dir+"\n")
			if out := drivertest.Log(t, spec, tasklog.Stdout); out != c.want {
				t.Errorf("the task writes %q, want %q", out, c.want)
			}
			// What is executed later is the same user, its terminal its own.
			var out strings.Builder
			result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{
				Command: []string{"sh", "-c", "id -u; touch $(tty) && echo tty"}, TTY: true,
			}, driver.Streams{Stdout: &out})
			if err != nil || result.Code != 0 || !strings.Contains(out.String(), "tty") || !strings.HasPrefix(out.String(), strings.Fields(c.want)[0]) {
				t.Errorf("exec gives %+v, %v, %q", result, err, out.String())
			}
			// An init that may not signal everybody still ends everything.
			if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" {
				t.Errorf("result is %+v", result)
			}
		})
	}
}

// TestNetworks checks what a task sees in each network.
func TestNetworks(t *testing.T) {
	t.Parallel()
	long(t)
	d := open(t, func(c *docker.Config) { c.Policy.HostNetwork, c.PrivateNetwork = true, "nltest" })
	script := "hostname; ls /sys/class/net | tr '\\n' ' '; cat /etc/hosts; getent hosts peer-1-1"
	with := func(network string) func(*driver.TaskSpec) {
		return func(s *driver.TaskSpec) {
			s.ID += driver.TaskID("-" + network)
			s.Container.Network, s.Hostname = network, "digits-1-0"
			s.Hosts = []string{"127.0.0.1 localhost", "10.1.2.3 peer-1-1"}
		}
	}
	for network, want := range map[string]string{"host": "10.1.2.3", "none": "digits-1-0\nlo 127.0.0.1 localhost\n10.1.2.3 peer-1-1\n"} {
		out, _ := run(t, d, script, with(network))
		if !strings.HasPrefix(out, "digits-1-0\n") || !strings.Contains(out, want) {
			t.Errorf("in %s the task sees %q", network, out)
		}
	}
	// Two ranks in the private network find each other by name.
	listener := dressed(drivertest.Shell(t, `exec /usr/bin/python3 -c '
import socket
s = socket.create_server(("", 5000)); print("ready", flush=True); c, a = s.accept(); c.sendall(b"hello from " + socket.gethostname().encode())'`))
	listener.Container.Network, listener.Hostname = "private", "digits-1-0"
	drivertest.Start(t, d, listener)
	drivertest.AwaitOutput(t, listener, "ready")
	out, result := run(t, d, `exec /usr/bin/python3 -c '
import socket; print(socket.create_connection(("digits-1-0", 5000), 10).recv(100).decode())'`, func(s *driver.TaskSpec) {
		s.Container.Network, s.Hostname, s.ID = "private", "digits-1-1", s.ID+"-1"
	})
	if out != "hello from digits-1-0\n" || result.Code != 0 {
		t.Errorf("the peer writes %q, %+v", out, result)
	}
}

// TestEntrypoint checks what becomes of an image's entrypoint and command.
func TestEntrypoint(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const ref = "nomadlike-test/entry:1"
	files := append(links("bin", "lib", "lib64", "sbin"), file{name: "entry.sh", body: []byte("#!/bin/sh\necho entry $#\nexec \"$@\"\n")})
	if err := importImage(ref, files, []string{`ENTRYPOINT ["/entry.sh"]`, `CMD ["false"]`}); err != nil {
		t.Fatal(err)
	}
	d := open(t)
	for _, c := range []struct {
		entry bool
		want  string
	}{{false, "ran\n"}, {true, "entry 3\nran\n"}} {
		out, result := run(t, d, "echo ran", func(s *driver.TaskSpec) {
			s.Container.Image, s.Container.ImageEntrypoint = ref, c.entry
			if c.entry {
				s.ID += "-entry"
			}
		})
		if out != c.want || result.Code != 0 {
			t.Errorf("the task writes %q, %+v, want %q", out, result, c.want)
		}
	}
}

// TestPlainErrors provokes the errors of a spec that docker alone checks.
func TestPlainErrors(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := drivertest.Shell(t, "true")
	_, err := d.Start(context.Background(), spec)
	refused(t, err, "driver.bad_spec")
	spec = dressed(spec)
	spec.Container.Image = "nomadlike-test/none:1"
	_, err = d.Start(context.Background(), spec)
	refused(t, err, "docker.image_absent")
	spec.Container.Image = hostImage
	spec.Resources.Memory = 1 << 10
	_, err = d.Start(context.Background(), spec)
	refused(t, err, "docker.limit_refused")
	spec.Resources.Memory = 0
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = d.Start(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled start gives %v", err)
	}
	// None of them has left anything behind: the id is free.
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
}

// TestPyTorch trains with two ranks in two containers of a private network.
func TestPyTorch(t *testing.T) {
	t.Parallel()
	long(t)
	needEngine(t)
	if err := osexec.Command("/usr/bin/python3", "-c", "import torch").Run(); err != nil {
		t.Skip("PyTorch is not installed here: apt-get install python3-torch")
	}
	d := open(t, func(c *docker.Config) { c.PrivateNetwork = "nltorch" })
	rank := func(n string) driver.TaskSpec {
		spec := dressed(drivertest.Spec(t, "/usr/bin/python3", "-c", `
import os, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DDP(torch.nn.Linear(8, 1)); optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
x = torch.randn(64, 8); y = x.sum(1, keepdim=True)
for step in range(60):
    optimizer.zero_grad(); loss = ((model(x) - y) ** 2).mean(); loss.backward(); optimizer.step()
total = torch.ones(1); dist.all_reduce(total)
print(f"world {dist.get_world_size()} sum {int(total)} loss {loss.item():.6f}", flush=True)
`))
		spec.ID += driver.TaskID("-" + n)
		spec.Env = []string{"MASTER_ADDR=torch-1-0", "MASTER_PORT=29500", "WORLD_SIZE=2", "RANK=" + n, "OMP_NUM_THREADS=1", "GLOO_SOCKET_IFNAME=eth0"}
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: "/etc/alternatives", TaskPath: "/etc/alternatives", ReadOnly: true})
		spec.Container.Network, spec.Hostname = driver.NetworkPrivate, "torch-1-"+n
		spec.Resources = driver.Resources{CPU: 1, Memory: 1500 << 20, Shm: 128 << 20}
		return spec
	}
	ranks := []driver.TaskSpec{rank("0"), rank("1")}
	for _, spec := range ranks {
		drivertest.Start(t, d, spec)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var outputs []string
	for _, spec := range ranks {
		result, err := d.Wait(ctx, spec.ID)
		outputs = append(outputs, drivertest.Log(t, spec, tasklog.Stdout))
		if err != nil || !result.Successful() {
			t.Fatalf("rank ends with %+v, %v: %s", result, err, drivertest.Log(t, spec, tasklog.Stderr))
		}
	}
	if outputs[0] != outputs[1] || !strings.HasPrefix(outputs[0], "world 2 sum 2 loss 0.") {
		t.Errorf("the ranks write %q", outputs)
	}
}
