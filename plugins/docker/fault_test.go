package docker_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	containertypes "github.com/docker/docker/api/types/container"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/docker"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
)

// counting writes numbered lines for ever, fast enough that a lost or doubled
// piece would be seen.
const counting = `i=0; while :; do i=$((i+1)); echo $i; [ $((i % 20)) = 0 ] && sleep 0.005; done`

// numbers checks that a log holds 1, 2, 3, … and returns the last.
func numbers(t *testing.T, spec driver.TaskSpec) int {
	t.Helper()
	text := drivertest.Log(t, spec, tasklog.Stdout)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if n, err := strconv.Atoi(line); err != nil || n != i+1 {
			t.Fatalf("line %d of the log is %q", i+1, line)
		}
	}
	return len(lines)
}

// grows waits until a task has written more lines.
func grows(t *testing.T, spec driver.TaskSpec, more int) {
	t.Helper()
	before := strings.Count(drivertest.Log(t, spec, tasklog.Stdout), "\n")
	eventually.Within(t, limit, "the task writes on", func() bool {
		return strings.Count(drivertest.Log(t, spec, tasklog.Stdout), "\n") > before+more
	})
}

// counter is a task that counts.
func counter(t *testing.T) driver.TaskSpec {
	spec := drivertest.Shell(t, counting)
	spec.LogRotation = driver.LogRotation{MaxFiles: 100}
	return spec
}

// containerOf returns the id of a task's container.
func containerOf(t *testing.T, d *docker.Driver, id driver.TaskID) string {
	t.Helper()
	details, err := d.Details(id)
	if err != nil {
		t.Fatal(err)
	}
	return details.ContainerID
}

func stop(t *testing.T, d driver.Driver, id driver.TaskID) driver.ExitResult {
	t.Helper()
	if err := d.Stop(context.Background(), id, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	return drivertest.Wait(t, d, id)
}

// destroyAtEnd leaves nothing of a recovered task.
func destroyAtEnd(t *testing.T, d driver.Driver, id driver.TaskID) {
	t.Cleanup(func() {
		if err := d.Destroy(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
}

// TestKilledAgent kills the agent under a running task, and under one that
// ends before the next agent comes.
func TestKilledAgent(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := config(t)
	running, ended := dressed(counter(t)), dressed(drivertest.Shell(t, "echo short; exit 6"))
	ended.ID += "-2"
	handles := []driver.Handle{startInAgent(t, c, running), startInAgent(t, c, ended)}
	grows(t, running, 100) // with no agent at all
	d := open(t, func(fresh *docker.Config) { *fresh = c })
	listed, err := d.List(context.Background())
	if err != nil || len(listed) != 2 {
		t.Fatalf("listed %d tasks, %v", len(listed), err)
	}
	for _, handle := range handles {
		if err := d.Recover(context.Background(), handle); err != nil {
			t.Fatal(err)
		}
		destroyAtEnd(t, d, handle.TaskID)
	}
	if result := drivertest.Wait(t, d, ended.ID); result.Code != 6 || result.Err != nil {
		t.Errorf("result is %+v, want 6", result)
	}
	if out := drivertest.Log(t, ended, tasklog.Stdout); out != "short\n" {
		t.Errorf("log is %q", out)
	}
	if usage, err := d.Stats(context.Background(), running.ID); err != nil || usage.Processes < 1 {
		t.Errorf("usage is %+v, %v", usage, err)
	}
	grows(t, running, 100)
	if result := stop(t, d, running.ID); result.Signal != "SIGTERM" || result.Err != nil {
		t.Errorf("result is %+v", result)
	}
	numbers(t, running)
}

// TestKilledKeeper kills the process that writes the logs, again and again:
// not one line may be lost or doubled.
func TestKilledKeeper(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(counter(t))
	drivertest.Start(t, d, spec)
	for range 3 {
		grows(t, spec, 200)
		for _, pid := range keepers(t, spec) {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	grows(t, spec, 200)
	// The new keeper serves like the old one.
	var out strings.Builder
	result, err := d.Exec(context.Background(), spec.ID, driver.ExecSpec{Command: []string{"echo", "here"}}, driver.Streams{Stdout: &out})
	if err != nil || result.Code != 0 || out.String() != "here\n" {
		t.Errorf("exec gives %+v, %v, %q", result, err, out.String())
	}
	if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" || result.Err != nil {
		t.Errorf("result is %+v", result)
	}
	if n := numbers(t, spec); n < 800 {
		t.Errorf("only %d lines are logged", n)
	}
}

// TestKilledKeeperAndContainer leaves nobody who could tell but the engine.
func TestKilledKeeperAndContainer(t *testing.T) {
	t.Parallel()
	d := open(t)
	spec := dressed(counter(t))
	drivertest.Start(t, d, spec)
	grows(t, spec, 20)
	container := containerOf(t, d, spec.ID)
	for _, pid := range keepers(t, spec) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := world.api.ContainerKill(context.Background(), container, "SIGKILL"); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Err == nil || result.Err.ID != "docker.killed_outside" {
		t.Errorf("result is %+v", result)
	}
}

// keepers finds the keeper processes that write to a task's logs.
func keepers(t *testing.T, spec driver.TaskSpec) (pids []int) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		files, err := os.ReadDir("/proc/" + entry.Name() + "/fd")
		if err != nil {
			continue
		}
		for _, file := range files {
			target, err := os.Readlink("/proc/" + entry.Name() + "/fd/" + file.Name())
			if err == nil && target == spec.LogDir {
				pids = append(pids, pid)
				break
			}
		}
	}
	if len(pids) == 0 {
		t.Fatal("the task has no keeper")
	}
	return pids
}

// TestEngineCrash kills the engine, with its containerd, under a task: the
// task notices nothing, can be entered and stopped meanwhile, and the driver
// is healthy again by itself.
func TestEngineCrash(t *testing.T) {
	needEngine(t)
	c := config(t)
	d := open(t, func(fresh *docker.Config) { *fresh = c })
	spec, other := dressed(counter(t)), dressed(counter(t))
	other.ID += "-2"
	handle := drivertest.Start(t, d, spec)
	drivertest.Start(t, d, other)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports, err := d.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if first := <-reports; first.Health != driver.Healthy || first.Attributes["driver.docker.version"] == "" || first.Attributes["driver.docker.cgroup"] == "" {
		t.Fatalf("first report is %+v", first)
	}
	if _, err := engineScript("crash"); err != nil {
		t.Fatal(err)
	}
	if report := <-reports; report.Health == driver.Healthy || report.Reason == "" {
		t.Errorf("report of a dead engine is %+v", report)
	}
	grows(t, spec, 200)
	var out strings.Builder
	if _, err := d.Exec(ctx, spec.ID, driver.ExecSpec{Command: []string{"hostname"}}, driver.Streams{Stdout: &out}); err != nil || out.String() == "" {
		t.Errorf("exec without an engine gives %q, %v", out.String(), err)
	}
	// An agent that starts now takes the task over all the same.
	again := open(t, func(fresh *docker.Config) { *fresh = c })
	if err := again.Recover(ctx, handle); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Exec(ctx, spec.ID, driver.ExecSpec{Command: []string{"true"}}, driver.Streams{}); err != nil {
		t.Errorf("exec of a new agent without an engine gives %v", err)
	}
	if result := stop(t, d, spec.ID); result.Signal != "SIGTERM" || result.Err != nil {
		t.Errorf("result without an engine is %+v", result)
	}
	third := dressed(drivertest.Shell(t, "true"))
	third.ID += "-3"
	if _, err := d.Start(ctx, third); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("start without an engine gives %v", err)
	}
	if err := startEngine("--live-restore"); err != nil {
		t.Fatal(err)
	}
	healthy := false
	for !healthy {
		healthy = (<-reports).Health == driver.Healthy
	}
	grows(t, other, 200)
	if err := d.Pause(ctx, other.ID); err != nil {
		t.Errorf("pause after the engine's return: %v", err)
	}
	if result := stop(t, d, other.ID); result.Signal != "SIGTERM" || result.Err != nil {
		t.Errorf("result after the engine's return is %+v", result)
	}
	numbers(t, spec)
	numbers(t, other)
}

// TestEngineStop stops an engine that takes its containers along, and tells
// that apart from the task's own failure.
func TestEngineStop(t *testing.T) {
	long(t)
	d := open(t)
	if _, err := engineScript("stop"); err != nil {
		t.Fatal(err)
	}
	if err := startEngine(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := engineScript("stop"); err != nil {
			t.Error(err)
		}
		if err := startEngine("--live-restore"); err != nil {
			t.Error(err)
		}
	})
	heeds, ignores := dressed(counter(t)), dressed(drivertest.Shell(t, `trap "" TERM; `+counting))
	ignores.ID += "-2"
	for _, spec := range []driver.TaskSpec{heeds, ignores} {
		drivertest.Start(t, d, spec)
		grows(t, spec, 20)
	}
	if _, err := engineScript("stop"); err != nil {
		t.Fatal(err)
	}
	for _, spec := range []driver.TaskSpec{heeds, ignores} {
		result := drivertest.Wait(t, d, spec.ID)
		if result.Err == nil || !strings.HasSuffix(result.Err.ID, "_outside") {
			t.Errorf("result of %s is %+v", spec.ID, result)
		}
	}
	numbers(t, heeds)
	if err := startEngine(); err != nil { // to clean up
		t.Fatal(err)
	}
}

// TestOtherHands stops, kills and removes containers past the driver.
func TestOtherHands(t *testing.T) {
	t.Parallel()
	long(t)
	d := open(t)
	ctx := context.Background()
	seconds := 5
	for _, c := range []struct {
		name string
		act  func(id string) error
		want string
	}{
		{"stop", func(id string) error {
			return world.api.ContainerStop(ctx, id, containertypes.StopOptions{Timeout: &seconds})
		}, "docker.stopped_outside"},
		{"kill", func(id string) error { return world.api.ContainerKill(ctx, id, "SIGKILL") }, "docker.killed_outside"},
		{"remove", func(id string) error {
			return world.api.ContainerRemove(ctx, id, containertypes.RemoveOptions{Force: true})
		}, "docker.killed_outside"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := dressed(counter(t))
			drivertest.Start(t, d, spec)
			grows(t, spec, 20)
			if err := c.act(containerOf(t, d, spec.ID)); err != nil {
				t.Fatal(err)
			}
			if result := drivertest.Wait(t, d, spec.ID); result.Err == nil || result.Err.ID != c.want || result.OOMKilled {
				t.Errorf("result is %+v, want %s", result, c.want)
			}
			numbers(t, spec)
		})
	}
	t.Run("pause and continue", func(t *testing.T) {
		spec := dressed(counter(t))
		drivertest.Start(t, d, spec)
		grows(t, spec, 20)
		// The kernel's freezer gives up on a busy group now and then, and the
		// engine with it.
		eventually.Within(t, limit, "the container is paused", func() bool {
			return world.api.ContainerPause(ctx, containerOf(t, d, spec.ID)) == nil
		})
		// A stop with a frozen init: the engine ends it.
		if err := d.Stop(ctx, spec.ID, "", 0); err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Signal != "SIGKILL" {
			t.Errorf("result is %+v", result)
		}
	})
}

// TestStrays finds a container of this node that no record tells about.
func TestStrays(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := config(t)
	first := open(t, func(fresh *docker.Config) { *fresh = c })
	spec := dressed(counter(t))
	if _, err := first.Start(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	container := containerOf(t, first, spec.ID)
	// A driver of another node does not see it; one of this node, with
	// nothing on disk, does.
	foreign := open(t, func(fresh *docker.Config) { fresh.Node = "another" })
	if listed, err := foreign.List(context.Background()); err != nil || len(listed) != 0 {
		t.Errorf("another node lists %v, %v", listed, err)
	}
	d := open(t, func(fresh *docker.Config) { fresh.Node = c.Node })
	listed, err := d.List(context.Background())
	if err != nil || len(listed) != 1 || listed[0].TaskID != spec.ID {
		t.Fatalf("listed %v, %v", listed, err)
	}
	if err := d.Recover(context.Background(), listed[0]); err != nil {
		t.Fatal(err)
	}
	if err := d.Destroy(context.Background(), spec.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := world.api.ContainerInspect(context.Background(), container); err == nil {
		t.Error("the container is still there")
	}
	if result := drivertest.Wait(t, first, spec.ID); result.Signal != "SIGKILL" {
		t.Errorf("the first driver is told %+v", result)
	}
	if err := first.Destroy(context.Background(), spec.ID); err != nil {
		t.Error(err)
	}
}

// TestUnfinishedStart takes over what an agent has left that died between
// making a container and starting it, or before.
func TestUnfinishedStart(t *testing.T) {
	t.Parallel()
	d := open(t)
	ctx := context.Background()
	made, err := world.api.ContainerCreate(ctx, &containertypes.Config{
		Image: hostImage, Entrypoint: []string{"/.nomadlike/init"},
		Labels: map[string]string{"nomadlike.cluster": "test", "nomadlike.node": t.Name(), "nomadlike.task": "made"},
	}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := stateDir(t)
	other := open(t, func(c *docker.Config) { c.StateDir, c.Node = dir, "other" })
	if err := os.MkdirAll(dir+"/tasks/begun/door", 0o700); err != nil {
		t.Fatal(err)
	}
	for id, driverOfTask := range map[driver.TaskID]*docker.Driver{"made": d, "begun": other} {
		listed, err := driverOfTask.List(ctx)
		if err != nil || len(listed) != 1 || listed[0].TaskID != id {
			t.Fatalf("listed %v, %v", listed, err)
		}
		if err := driverOfTask.Recover(ctx, listed[0]); err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, driverOfTask, id); result.Successful() || result.Err == nil || result.Err.ID != "docker.container_gone" {
			t.Errorf("result of %s is %+v", id, result)
		}
		if err := driverOfTask.Destroy(ctx, id); err != nil {
			t.Error(err)
		}
		if listed, err := driverOfTask.List(ctx); err != nil || len(listed) != 0 {
			t.Errorf("left are %v, %v", listed, err)
		}
	}
	if _, err := world.api.ContainerInspect(ctx, made.ID); err == nil {
		t.Error("the container is still there")
	}
}

// TestLostRecords takes a task over of which only damaged records are left.
func TestLostRecords(t *testing.T) {
	t.Parallel()
	needEngine(t)
	c := config(t)
	spec := dressed(drivertest.Shell(t, "sleep 0.5; exit 4"))
	handle := startInAgent(t, c, spec)
	dir := c.StateDir + "/tasks/" + string(spec.ID)
	for _, name := range []string{"/task.json", "/exit.json"} {
		if err := os.WriteFile(dir+name, []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	handle.State = []byte(fmt.Sprintf(`{"version":1,"task_id":%q,"container_id":"../../x","log_dir":"/"}`, spec.ID))
	d := open(t, func(fresh *docker.Config) { *fresh = c })
	if err := d.Recover(context.Background(), handle); err != nil {
		t.Fatal(err)
	}
	destroyAtEnd(t, d, spec.ID)
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 4 {
		t.Errorf("result is %+v, want 4", result)
	}
	bad := handle
	bad.TaskID = "../x"
	if err := d.Recover(context.Background(), bad); err == nil {
		t.Error("a handle that leads elsewhere is taken")
	}
	gone := driver.Handle{Version: 1, Driver: docker.Name, TaskID: "never"}
	if err := d.Recover(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, "never"); result.Err == nil || result.Err.ID != "docker.container_gone" {
		t.Errorf("result of a task that never was is %+v", result)
	}
}

// TestNoEngine has a driver without an engine come to life when one appears.
func TestNoEngine(t *testing.T) {
	t.Parallel()
	needEngine(t)
	path := stateDir(t) + "/s"
	d := open(t, func(c *docker.Config) { c.Endpoint = "unix://" + path })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	reports, err := d.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if report := <-reports; report.Health != driver.Undetected || report.Reason == "" {
		t.Errorf("report is %+v", report)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if report := <-reports; report.Health != driver.Unhealthy || report.Reason == "" {
		t.Errorf("report is %+v", report)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(strings.TrimPrefix(world.endpoint, "unix://"), path); err != nil {
		t.Fatal(err)
	}
	for report := range reports {
		if report.Health == driver.Healthy {
			break
		}
	}
	cancel()
	for range reports { // must be closed
	}
}
