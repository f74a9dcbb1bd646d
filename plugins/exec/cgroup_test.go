package exec_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
)

// attributes returns what a driver's fingerprint says.
func attributes(t testing.TB, d *exec.Driver) map[string]string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports, err := d.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return (<-reports).Attributes
}

// bounded returns a driver that can bound tasks by all of the given controllers;
// nil when the node cannot do that.
func bounded(t *testing.T, controllers ...string) *exec.Driver {
	t.Helper()
	d := open(t)
	limits := attributes(t, d)["driver.exec.limits"]
	for _, name := range controllers {
		if !strings.Contains(limits, name) {
			t.Logf("the node has no controller %s: not run", name)
			return nil
		}
	}
	return d
}

// cgroupsLeft lists the tests' cgroups of a task.
func cgroupsLeft(t *testing.T, id driver.TaskID) []string {
	t.Helper()
	var left []string
	for _, pattern := range []string{"/sys/fs/cgroup/*/", "/sys/fs/cgroup/"} {
		dirs, err := filepath.Glob(pattern + cgroupParent() + "/" + string(id) + ":*")
		if err != nil {
			t.Fatal(err)
		}
		left = append(left, dirs...)
	}
	return left
}

// hog looks for the last lines of what has none, and keeps all of it.
const hog = "tail </dev/zero"

func TestMemoryBound(t *testing.T) {
	d := bounded(t, "memory")
	if d == nil {
		return
	}
	t.Run("a task over it is named as out of memory", func(t *testing.T) {
		spec := drivertest.Shell(t, "echo ready; exec "+hog)
		spec.Resources.Memory = 32 << 20
		drivertest.Start(t, d, spec)
		result := drivertest.Wait(t, d, spec.ID)
		if !result.OOMKilled || result.Successful() || result.Signal != "SIGKILL" {
			t.Errorf("result is %+v, want a kill for memory", result)
		}
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "ready\n" {
			t.Errorf("log is %q", out)
		}
		if left := cgroupsLeft(t, spec.ID); len(left) > 0 {
			t.Errorf("cgroups %q are left", left)
		}
	})
	t.Run("a task that loses a process and goes on has not failed of it", func(t *testing.T) {
		spec := drivertest.Shell(t, hog+"; echo $?; exit 0")
		spec.Resources.Memory = 32 << 20
		drivertest.Start(t, d, spec)
		if result := drivertest.Wait(t, d, spec.ID); result.OOMKilled || !result.Successful() {
			t.Errorf("result is %+v, want success", result)
		}
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "137\n" {
			t.Errorf("the process ended with %q", out)
		}
	})
	t.Run("a kill by somebody else is not for memory", func(t *testing.T) {
		spec := drivertest.Shell(t, "kill -KILL $$")
		spec.Resources.Memory = 32 << 20
		drivertest.Start(t, d, spec)
		if result := drivertest.Wait(t, d, spec.ID); result.OOMKilled || result.Signal != "SIGKILL" {
			t.Errorf("result is %+v", result)
		}
	})
	t.Run("counts what is put into a task", func(t *testing.T) {
		spec := drivertest.Spec(t)
		spec.Hold, spec.Resources.Memory = true, 32<<20
		drivertest.Start(t, d, spec)
		result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{Command: []string{"/bin/sh", "-c", "exec " + hog}}, driver.Streams{})
		if err != nil || result.Signal != "SIGKILL" {
			t.Errorf("exec gives %+v, %v", result, err)
		}
	})
}

func TestProcessBound(t *testing.T) {
	d := bounded(t, "pids")
	if d == nil {
		return
	}
	spec := drivertest.Shell(t, `i=0; while [ $i -lt 50 ]; do sleep 1000 & i=$((i+1)); done; echo started all; wait`)
	spec.Resources.PIDs = 20
	drivertest.Start(t, d, spec)
	result := drivertest.Wait(t, d, spec.ID)
	if out := drivertest.Log(t, spec, tasklog.Stderr); !strings.Contains(out, "ork") || result.Successful() {
		t.Errorf("result is %+v, and the shell says %q", result, out)
	}
}

func TestProcessorBound(t *testing.T) {
	d := bounded(t, "cpu")
	if d == nil {
		return
	}
	spec := drivertest.Shell(t, `sh -c 'while :; do :; done' & while :; do :; done`)
	spec.Resources.CPU = 0.2
	drivertest.Start(t, d, spec)
	cpu := func() time.Duration {
		usage, err := d.Stats(context.Background(), spec.ID)
		if err != nil {
			t.Fatal(err)
		}
		return usage.CPUTime
	}
	eventually.Within(t, time.Minute, "it runs", func() bool { return cpu() > 100*time.Millisecond })
	before, begun := cpu(), time.Now()
	window := time.NewTimer(2 * time.Second)
	<-window.C
	if share := float64(cpu()-before) / float64(time.Since(begun)); share > 0.3 {
		t.Errorf("a task with 0.2 cores has used %.2f", share)
	}
}

// TestForkBomb ends a task that forks faster than its processes can be listed.
func TestForkBomb(t *testing.T) {
	d := bounded(t, "pids")
	if d == nil {
		return
	}
	spec := drivertest.Shell(t, `echo ready; bomb() { bomb & bomb & }; while :; do bomb; done 2>/dev/null`)
	spec.Resources.PIDs = 200
	spec.LogRotation = driver.LogRotation{MaxFiles: 2, MaxBytes: driver.LogFileBytesMin}
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	if err := d.Stop(context.Background(), spec.ID, "SIGTERM", 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Err != nil {
		t.Errorf("result is %+v", result)
	}
	if left := cgroupsLeft(t, spec.ID); len(left) > 0 {
		t.Errorf("cgroups %q are left", left)
	}
}

// TestExecInPausedTask waits with what is put into a task until it goes on.
func TestExecInPausedTask(t *testing.T) {
	ctx := context.Background()
	for name, noCgroup := range map[string]bool{"cgroup": false, "signals": true} {
		t.Run(name, func(t *testing.T) {
			d := open(t, func(c *exec.Config) { c.NoCgroup = noCgroup })
			spec := drivertest.Shell(t, "echo ready; while :; do sleep 0.05; done")
			drivertest.Start(t, d, spec)
			drivertest.AwaitOutput(t, spec, "ready")
			if err := d.Pause(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				_, err := d.Exec(ctx, spec.ID, driver.ExecSpec{Command: []string{"true"}}, driver.Streams{})
				ended <- err
			}()
			window := time.NewTimer(200 * time.Millisecond)
			select {
			case err := <-ended:
				t.Errorf("the command has run in a paused task: %v", err)
			case <-window.C:
			}
			if err := d.Continue(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestThrottle(t *testing.T) {
	ctx := context.Background()
	d := open(t)
	spec := drivertest.Shell(t, "echo ready; while :; do :; done")
	drivertest.Start(t, d, spec)
	drivertest.AwaitOutput(t, spec, "ready")
	share := func() float64 {
		measure := func() time.Duration {
			usage, err := d.Stats(ctx, spec.ID)
			if err != nil {
				t.Fatal(err)
			}
			return usage.CPUTime
		}
		before, begun := measure(), time.Now()
		window := time.NewTimer(time.Second)
		<-window.C
		return float64(measure()-before) / float64(time.Since(begun))
	}
	if err := d.Throttle(ctx, spec.ID, 20*time.Millisecond, 80*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	// A machine that is late itself lets a task go on for longer now and then.
	throttled := func() bool {
		got := share()
		return got > 0 && got < 0.4
	}
	eventually.Within(t, time.Minute, "the task has a fifth of the time", throttled)
	// Pause wins over the throttle, and it goes on after that.
	if err := d.Pause(ctx, spec.ID); err != nil {
		t.Fatal(err)
	}
	if got := share(); got > 0.02 {
		t.Errorf("a paused task has used %.2f cores", got)
	}
	if err := d.Continue(ctx, spec.ID); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the task has a fifth of the time again", throttled)
	// A request in the middle of a long idle part ends it.
	if err := d.Throttle(ctx, spec.ID, 10*time.Millisecond, time.Minute); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the task is idle", func() bool { return share() == 0 })
	if err := d.Throttle(ctx, spec.ID, 0, 0); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the task runs without a throttle", func() bool { return share() > 0 })
	if err := d.Throttle(ctx, spec.ID, time.Hour, time.Hour); err == nil {
		t.Error("a throttle of an hour is accepted")
	}
}

func TestDefaultsOfCgroups(t *testing.T) {
	for _, name := range []string{"a/b", "..", ".hidden", "a\x00"} {
		if d, err := exec.New(exec.Config{StateDir: t.TempDir(), CgroupParent: name, Spares: -1}); err == nil {
			t.Errorf("the parent %q is accepted", name)
			d.Close()
		}
	}
	d := open(t, func(c *exec.Config) { c.NoCgroup = true })
	if got := attributes(t, d); got["driver.exec.limits"] != "none" || got["driver.exec.cgroup"] != "none" || got["driver.exec.limits_reason"] != "switched off" {
		t.Errorf("attributes are %v", got)
	}
	if os.Geteuid() == 0 {
		if got := attributes(t, open(t)); got["driver.exec.cgroup"] == "none" {
			t.Errorf("attributes are %v", got)
		}
	}
}
