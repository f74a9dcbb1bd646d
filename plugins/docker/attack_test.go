package docker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	containertypes "github.com/docker/docker/api/types/container"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// run returns what a script in a container writes, and how it ends.
func run(t *testing.T, d driver.Driver, script string, change ...func(*driver.TaskSpec)) (string, driver.ExitResult) {
	t.Helper()
	spec := dressed(drivertest.Shell(t, script))
	for _, f := range change {
		f(&spec)
	}
	drivertest.Start(t, d, spec)
	result := drivertest.Wait(t, d, spec.ID)
	return drivertest.Log(t, spec, tasklog.Stdout) + drivertest.Log(t, spec, tasklog.Stderr), result
}

func refused(t *testing.T, err error, id string) {
	t.Helper()
	var told *structs.Error
	if !errors.As(err, &told) || told.ID != id {
		t.Errorf("error is %v, want %s", err, id)
	}
}

// Attack 35: settings that reach out of the container.
func TestAttackOptions(t *testing.T) {
	d := open(t)
	for name, value := range map[string]string{
		"privileged": "true", "cap_add": "SYS_ADMIN", "devices": "/dev/mem", "pid": "host", "ipc": "host", "uts": "host", "userns": "host",
		"security_opt": "apparmor=unconfined", "cgroup_parent": "/", "runtime": "other", "volumes_from": "other", "sysctls": "kernel.core_pattern=|/x",
		"extra_hosts": "server:1.2.3.4", "raw": "--privileged",
	} {
		spec := dressed(drivertest.Shell(t, "true"))
		spec.Container.Options = map[string]string{name: value}
		_, err := d.Start(context.Background(), spec)
		refused(t, err, "docker.option_refused")
	}
	spec := dressed(drivertest.Shell(t, "true"))
	spec.Container.Network = driver.NetworkHost
	_, err := d.Start(context.Background(), spec)
	refused(t, err, "docker.host_network_refused")
	if listed, err := d.List(context.Background()); err != nil || len(listed) != 0 {
		t.Errorf("refused starts left %v, %v", listed, err)
	}
}

// Attack 30: mounts that lead elsewhere.
func TestAttackMounts(t *testing.T) {
	t.Parallel()
	d := open(t)
	own := t.TempDir()
	link := func(target string) string {
		path := filepath.Join(own, strings.ReplaceAll("to"+target, "/", "-"))
		if err := os.Symlink(target, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(own, "socket")
	if err := os.Symlink(strings.TrimPrefix(world.endpoint, "unix://"), pipe); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"/", "/etc", "/proc", "/sys/fs/cgroup", "/dev", "/run", "/var/run/docker.sock", "/var/lib", "/tmp/../etc", pipe,
		link("/"), link("/etc"), link("/proc"), link("/var/lib"), link("/root"), world.dir, "/tmp/../proc/self/root/etc", link("/proc/self/root"),
	} {
		spec := dressed(drivertest.Shell(t, "true"))
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: path, TaskPath: "/stolen"})
		_, err := d.Start(context.Background(), spec)
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != "docker.mount_refused" && told.ID != "docker.mount_missing" {
			t.Errorf("mount of %s gives %v", path, err)
		}
	}
	// What is below the roots can be had through a link, by its real path.
	inside := filepath.Join(own, "inside")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(inside+"/file", []byte("data"), 0o644); err != nil {
		t.Fatal(err)
	}
	through := link(inside)
	out, result := run(t, d, "cat /m/file /m.file; echo x >/m/file; echo y > /m.file; touch /w/made", func(s *driver.TaskSpec) {
		s.Mounts = append(s.Mounts,
			driver.Mount{HostPath: through, TaskPath: "/m", ReadOnly: true},
			driver.Mount{HostPath: through + "/file", TaskPath: "/m.file", ReadOnly: true},
			driver.Mount{HostPath: inside, TaskPath: "/w"})
	})
	if !strings.HasPrefix(out, "datadata") || strings.Count(out, "Read-only file system") != 2 || result.Code != 0 {
		t.Errorf("task writes %q and ends with %+v", out, result)
	}
	if _, err := os.Stat(inside + "/made"); err != nil {
		t.Error(err)
	}
}

// TestAttackMountSwap swaps a directory for a link to somebody else's while
// tasks that mount it are being started: whatever gets mounted is one of the
// two that are allowed, never the third.
func TestAttackMountSwap(t *testing.T) {
	t.Parallel()
	long(t)
	own := t.TempDir()
	d := open(t, func(c *docker.Config) { c.MountRoots = []string{"/usr", own + "/root"} })
	secret, place, spare := own+"/secret", own+"/root/data", own+"/root/spare"
	for dir, text := range map[string]string{secret: "secret", place: "mine"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/file", []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(secret, spare); err != nil {
		t.Fatal(err)
	}
	var ended atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !ended.Load() {
			_ = os.Rename(place, place+".away") // in a race, any of the three may fail
			_ = os.Rename(spare, place)
			_ = os.Rename(place, spare)
			_ = os.Rename(place+".away", place)
		}
	}()
	started := 0
	for i := range 15 {
		spec := dressed(drivertest.Shell(t, "cat /m/file"))
		spec.ID = driver.TaskID(fmt.Sprintf("%s-%d", spec.ID, i))
		spec.Mounts = append(spec.Mounts, driver.Mount{HostPath: place, TaskPath: "/m"})
		if _, err := d.Start(context.Background(), spec); err != nil {
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != "docker.mount_refused" && told.ID != "docker.mount_missing" {
				t.Errorf("start gives %v", err)
			}
			continue
		}
		started++
		drivertest.Wait(t, d, spec.ID)
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "mine" {
			t.Errorf("the task reads %q", out)
		}
		if err := d.Destroy(context.Background(), spec.ID); err != nil {
			t.Error(err)
		}
	}
	ended.Store(true)
	<-done
	t.Logf("%d of 15 tasks were started during the swaps", started)
}

// Attack 36: images that use the container runtime against the node.
func TestAttackImage(t *testing.T) {
	t.Parallel()
	needEngine(t)
	const ref = "nomadlike-test/hostile:1"
	err := importImage(ref, append(links("bin", "lib", "lib64", "sbin"),
		file{name: "etc/passwd", body: []byte("root:x:0:0::/:/bin/sh\n"), mode: 0o644}, file{name: "suid", body: []byte("#!/bin/sh\nid -u\n"), mode: 0o4755}),
		[]string{"USER root", "WORKDIR /proc/self/fd/8", `ENTRYPOINT ["/proc/self/exe"]`, "ENV PATH=/usr/bin:/bin"})
	if err != nil {
		t.Fatal(err)
	}
	d := open(t)
	hostile := func(s *driver.TaskSpec) { s.Container.Image = ref }
	out, result := run(t, d, "pwd; ls /proc/self/fd; grep -E 'CapEff|CapBnd|NoNewPrivs|Seccomp:' /proc/self/status", hostile)
	for _, want := range []string{"CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "\n0\n1\n2\n3\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the task shows %q, want %q in it", out, want)
		}
	}
	if result.Code != 0 || strings.Contains(strings.SplitN(out, "\n", 2)[0], "/proc") {
		t.Errorf("the task begins in %q and ends with %+v", out, result)
	}
	t.Run("entrypoint", func(t *testing.T) {
		out, result := run(t, d, "true", hostile, func(s *driver.TaskSpec) { s.Container.ImageEntrypoint = true })
		if result.Code == 0 || !strings.Contains(out, "task-init") {
			t.Errorf("/proc/self/exe writes %q and ends with %+v", out, result)
		}
	})
	t.Run("directory of the job", func(t *testing.T) {
		spec := dressed(drivertest.Shell(t, "pwd; cat ../../../etc/hostname"))
		hostile(&spec)
		spec.Dir = "/proc/self/fd/8"
		_, err := d.Start(context.Background(), spec)
		refused(t, err, "driver.dir_missing")
	})
	t.Run("program", func(t *testing.T) {
		// The program of all containers cannot be written to from inside one.
		before, err := os.ReadFile(world.program)
		if err != nil {
			t.Fatal(err)
		}
		out, _ := run(t, d, "echo x > /.nomadlike/init; rm -f /.nomadlike/init; ln -sf /x /.nomadlike/init.sock; chmod 777 /.nomadlike/init", hostile)
		if n := strings.Count(out, "Read-only file system"); n != 4 {
			t.Errorf("the task writes %q", out)
		}
		if after, err := os.ReadFile(world.program); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the program was changed, %v", err)
		}
	})
}

// Attack 37: an image's environment chooses devices or loads code.
func TestAttackImageEnvironment(t *testing.T) {
	needEngine(t)
	const ref = "nomadlike-test/environment:1"
	err := importImage(ref, links("bin", "lib", "lib64", "sbin"), []string{
		"ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=all LD_PRELOAD=/proc/self/cwd/x.so ASCEND_VISIBLE_DEVICES=0-7 KEPT=yes PATH=/usr/bin",
	})
	if err != nil {
		t.Fatal(err)
	}
	d := open(t)
	spec := dressed(drivertest.Shell(t, "env"))
	spec.Container.Image = ref
	spec.Env = []string{"SECRET=canary"}
	spec.Reservations = []driver.Reservation{{
		Env:   map[string]string{"CUDA_VISIBLE_DEVICES": "GPU-own"},
		Nodes: []driver.Device{{HostPath: "/dev/fuse", Access: "rw"}},
	}}
	drivertest.Start(t, d, spec)
	drivertest.Wait(t, d, spec.ID)
	out := drivertest.Log(t, spec, tasklog.Stdout)
	for _, bad := range []string{"NVIDIA_", "LD_PRELOAD", "ASCEND_"} {
		if strings.Contains(out, bad) {
			t.Errorf("the task sees %q", out)
		}
	}
	for _, want := range []string{"KEPT=yes\n", "CUDA_VISIBLE_DEVICES=GPU-own\n", "SECRET=canary\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the task sees %q, want %q", out, want)
		}
	}
	details, err := d.Details(spec.ID)
	if err != nil || fmt.Sprint(details.DeviceWays) != "[raw]" {
		t.Errorf("details are %+v, %v", details, err)
	}
	_, raw, err := world.api.ContainerInspectWithRaw(context.Background(), details.ContainerID, false)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(raw, []byte("canary")) || bytes.Contains(raw, []byte("x.so")) || !bytes.Contains(raw, []byte(`"NVIDIA_VISIBLE_DEVICES=void"`)) ||
		!bytes.Contains(raw, []byte(`"LD_PRELOAD="`)) {
		t.Errorf("the engine's record of the container is %s", raw)
	}
	// Attack 14: nothing of the job's environment is on disk either.
	err = filepath.WalkDir(world.dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || strings.HasPrefix(path, world.dir+"/e/data/overlay2") {
			return nil
		}
		if body, err := os.ReadFile(path); err == nil && bytes.Contains(body, []byte("canary")) && !strings.Contains(path, "/logs/") {
			t.Errorf("%s holds the job's secret", path)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Attack 38: devices that are not the task's.
func TestAttackDevices(t *testing.T) {
	t.Parallel()
	d := open(t)
	script := `mknod /dev/mem c 1 1; mknod /tmp/k b 8 0; ls /dev/fuse /dev/mem /dev/kmsg /dev/loop-control
		exec 3<>/dev/card && echo opened; exec 4</dev/reader && echo readable; (exec 5>/dev/reader) && echo writable; true`
	out, _ := run(t, d, script, func(s *driver.TaskSpec) {
		s.Devices = []driver.Device{
			{HostPath: "/dev/fuse", TaskPath: "/dev/card", Access: "rw"},
			{HostPath: "/dev/loop-control", TaskPath: "/dev/reader", Access: "r"},
		}
	})
	if strings.Count(out, "Operation not permitted") < 3 || strings.Count(out, "No such file") != 4 ||
		!strings.Contains(out, "opened") || !strings.Contains(out, "readable") || strings.Contains(out, "writable") {
		t.Errorf("the task writes %q", out)
	}
	spec := dressed(drivertest.Shell(t, "true"))
	spec.ID += "-2"
	spec.Devices = []driver.Device{{HostPath: "/dev/nvidia9"}}
	_, err := d.Start(context.Background(), spec)
	refused(t, err, "docker.device_refused")
}

// Attack 39: taking more than one's share.
func TestAttackHogs(t *testing.T) {
	long(t)
	d := open(t)
	t.Run("memory", func(t *testing.T) {
		out, result := run(t, d, "exec tail /dev/zero", func(s *driver.TaskSpec) { s.Resources.Memory = 64 << 20 })
		if !result.OOMKilled || result.Signal != "SIGKILL" || result.Code != 137 || result.Err != nil {
			t.Errorf("result is %+v, output %q", result, out)
		}
	})
	t.Run("memory of a child", func(t *testing.T) {
		_, result := run(t, d, "tail /dev/zero; exit 1", func(s *driver.TaskSpec) { s.Resources.Memory = 64 << 20 })
		if !result.OOMKilled || result.Code != 1 {
			t.Errorf("result is %+v", result)
		}
	})
	t.Run("processes", func(t *testing.T) {
		spec := dressed(drivertest.Spec(t, "/usr/bin/python3", "-c", `
import os, time
os.write(1, b"alive\n")
while True:
    try: os.fork()
    except OSError: time.sleep(0.01)`))
		spec.Resources.PIDs = 100
		drivertest.Start(t, d, spec)
		drivertest.AwaitOutput(t, spec, "alive")
		eventually.Within(t, limit, "the bomb meets its limit", func() bool {
			usage, err := d.Stats(context.Background(), spec.ID)
			if err != nil || usage.Threads > 100 {
				t.Fatalf("usage is %+v, %v", usage, err)
			}
			return usage.Threads > 80
		})
		began := time.Now()
		if err := d.Stop(context.Background(), spec.ID, "", 0); err != nil {
			t.Fatal(err)
		}
		drivertest.Wait(t, d, spec.ID)
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("the bomb was ended after %v", took)
		}
	})
	t.Run("shared memory", func(t *testing.T) {
		out, _ := run(t, d, "head -c 20m /dev/zero >/dev/shm/x; df -k /dev/shm | tail -1", func(s *driver.TaskSpec) { s.Resources.Shm = 16 << 20 })
		if !strings.Contains(out, "No space left") || !strings.Contains(out, " 16384 ") {
			t.Errorf("the task writes %q", out)
		}
	})
	t.Run("open files", func(t *testing.T) {
		out, _ := run(t, d, "ulimit -Sn; ulimit -Hn; ulimit -c", func(s *driver.TaskSpec) {
			s.Ulimits = []driver.Ulimit{{Name: "nofile", Soft: 50, Hard: 60}, {Name: "core"}}
		})
		if out != "50\n60\n0\n" {
			t.Errorf("limits are %q", out)
		}
	})
	t.Run("logs", func(t *testing.T) {
		spec := dressed(drivertest.Spec(t, "yes", strings.Repeat("flood", 100)))
		spec.LogRotation = driver.LogRotation{MaxFiles: 3, MaxBytes: 1 << 20}
		drivertest.Start(t, d, spec)
		size := func() (total int64) {
			entries, err := os.ReadDir(spec.LogDir)
			if err != nil {
				t.Fatal(err)
			}
			for _, entry := range entries {
				if info, err := entry.Info(); err == nil {
					total += info.Size()
				}
			}
			return total
		}
		eventually.Within(t, limit, "the flood fills its files", func() bool { return size() >= 2<<20 })
		for range 20 {
			if n := size(); n > 4<<20 {
				t.Fatalf("logs have %d bytes", n)
			}
		}
		if err := d.Stop(context.Background(), spec.ID, "", 0); err != nil {
			t.Fatal(err)
		}
		drivertest.Wait(t, d, spec.ID)
	})
}

// Attack 40: sockets of the node.
func TestAttackSockets(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(drivertest.Shell(t, `
		ls /var/run/docker.sock /run/docker.sock /run/containerd 2>&1 | grep -c "No such file"
		/usr/bin/python3 - <<'PY'
import socket, os
s = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect("/.nomadlike/init.sock")
body = b'{"hello":true,"exit":{"code":0}}'
s.sendall(len(body).to_bytes(4, "big") + body)
print("answer", s.recv(100) if True else "")
PY
		echo ready; sleep 1000`))
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	out := drivertest.Log(t, spec, tasklog.Stdout) + drivertest.Log(t, spec, tasklog.Stderr)
	if !strings.HasPrefix(out, "3\n") || !strings.Contains(out, "answer b''") && !strings.Contains(out, "ConnectionResetError") && !strings.Contains(out, "BrokenPipe") {
		t.Errorf("the task writes %q", out)
	}
	// The keeper was not fooled: the task runs on.
	if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" || !result.StartedAt.Before(result.FinishedAt) {
		t.Errorf("result is %+v", result)
	}
}

// Attack 41: other processes, and the init itself.
func TestAttackProcesses(t *testing.T) {
	t.Parallel()
	d := open(t)
	neighbour := dressed(counter(t))
	neighbour.ID += "-n"
	drivertest.Start(t, d, neighbour)
	out, result := run(t, d, `kill -9 1; kill -STOP 1; kill -SEGV 1; sleep 0.2
		for fd in /proc/1/fd/*; do readlink $fd && echo opened $fd; ls $fd/ && echo opened $fd; done; cat /proc/1/environ; cat /proc/1/mem; ls -l /proc/1/exe; ls /proc/1/root/
		ls /proc | grep -c '^[0-9]'; grep -c keeper /proc/*/cmdline
		echo 0 > /proc/sys/kernel/pid_max; echo b > /proc/sysrq-trigger; mount -t proc p /mnt; unshare -m true; unshare -r true; chroot / true
		echo done; exit 3`)
	if !strings.Contains(out, "done") || result.Code != 3 || result.Err != nil {
		t.Errorf("the task ends with %+v and writes %q", result, out)
	}
	for _, want := range []string{"/proc/1/fd/3/': Permission denied", "/proc/1/environ: Permission denied", "/proc/1/mem: Permission denied"} {
		if !strings.Contains(out, want) {
			t.Errorf("the task writes %q, want %q", out, want)
		}
	}
	if strings.Contains(out, "/proc/1/exe ->") || strings.Contains(out, "opened") {
		t.Errorf("the task sees the init: %q", out)
	}
	grows(t, neighbour, 20)
	// A task that asks its own init to end has ended itself.
	spec := dressed(drivertest.Shell(t, "kill -TERM 1; sleep 1000"))
	spec.ID += "-t"
	drivertest.Start(t, d, spec)
	if result := drivertest.Wait(t, d, spec.ID); result.Signal != "SIGTERM" || result.Err != nil {
		t.Errorf("result is %+v", result)
	}
}

// Attack 42 beside the conformance tests: nothing brings a container back.
func TestAttackRestart(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(counter(t))
	drivertest.Start(t, d, spec)
	found, err := world.api.ContainerInspect(context.Background(), containerOf(t, d, spec.ID))
	if err != nil {
		t.Fatal(err)
	}
	if policy := found.HostConfig.RestartPolicy.Name; policy != "" && policy != "no" || found.HostConfig.AutoRemove {
		t.Errorf("restart policy is %q", policy)
	}
	// A container that somebody starts again has no keeper that wants it.
	stop(t, d, spec.ID)
	before := drivertest.Log(t, spec, tasklog.Stdout)
	_ = world.api.ContainerStart(context.Background(), found.ID, containertypes.StartOptions{}) // the engine may refuse it
	eventually.Within(t, limit, "the container is down again", func() bool {
		again, err := world.api.ContainerInspect(context.Background(), found.ID)
		return err == nil && !again.State.Running
	})
	if after := drivertest.Log(t, spec, tasklog.Stdout); after != before {
		t.Errorf("the container wrote on: %q", strings.TrimPrefix(after, before))
	}
}

// Attack 43: strange requests to execute.
func TestAttackExec(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(drivertest.Spec(t))
	spec.Hold = true
	drivertest.Start(t, d, spec)
	ctx := context.Background()
	var out bytes.Buffer
	// Words are words: no shell, no options of the engine.
	result, err := d.Exec(ctx, spec.ID, driver.ExecSpec{Command: []string{"printf", "%s|", "--privileged", "-u", "root; id", "$(id)", "\n"}}, driver.Streams{Stdout: &out})
	if err != nil || result.Code != 0 || out.String() != "--privileged|-u|root; id|$(id)|\n|" {
		t.Errorf("exec gives %+v, %v, %q", result, err, out.String())
	}
	for name, bad := range map[string]driver.ExecSpec{
		"nothing": {}, "NUL": {Command: []string{"a\x00b"}}, "relative directory": {Command: []string{"true"}, Dir: "x"},
		"bad variable": {Command: []string{"true"}, Env: []string{"=x"}}, "too long": {Command: []string{strings.Repeat("x", driver.ArgumentBytesMax)}},
	} {
		_, err := d.Exec(ctx, spec.ID, bad, driver.Streams{})
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != "driver.bad_spec" {
			t.Errorf("%s gives %v", name, err)
		}
	}
	out.Reset()
	result, err = d.Exec(ctx, spec.ID, driver.ExecSpec{
		Command: []string{"sh", "-c", "stty size; grep -E 'CapEff|NoNewPrivs' /proc/self/status"}, TTY: true, Size: driver.WindowSize{Rows: 65535, Cols: 65535},
	}, driver.Streams{Stdout: &out})
	if err != nil || result.Code != 0 || !strings.Contains(out.String(), "65535 65535") || !strings.Contains(out.String(), "CapEff:\t0000000000000000") ||
		!strings.Contains(out.String(), "NoNewPrivs:\t1") {
		t.Errorf("terminal gives %+v, %v, %q", result, err, out.String())
	}
	// Many at once, all of them gone with their callers.
	cancelled, cancel := context.WithCancel(ctx)
	ended := make(chan error, 20)
	for range cap(ended) {
		go func() {
			_, err := d.Exec(cancelled, spec.ID, driver.ExecSpec{Command: []string{"sleep", "1000"}}, driver.Streams{})
			ended <- err
		}()
	}
	eventually.Within(t, limit, "all are executed", func() bool {
		usage, err := d.Stats(ctx, spec.ID)
		return err == nil && usage.Processes == cap(ended)
	})
	cancel()
	for range cap(ended) {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("exec gives %v", err)
		}
	}
	eventually.Within(t, limit, "all are gone", func() bool {
		usage, err := d.Stats(ctx, spec.ID)
		return err == nil && usage.Processes == 0
	})
}
