package exec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
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

// stateOf returns what a handle says about its supervisor.
func stateOf(t testing.TB, handle driver.Handle) *supervisor.State {
	t.Helper()
	state, err := supervisor.DecodeState(handle.State)
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// gone waits until none of the processes is left.
func gone(t testing.TB, what string, pids ...int) {
	t.Helper()
	eventually.Within(t, time.Minute, what, func() bool {
		for _, pid := range pids {
			if p, err := proctree.Read(pid); err == nil && !p.Dead() {
				return false
			}
		}
		return true
	})
}

// pids reads the ids that a task has written to stdout.
func pids(t testing.TB, spec driver.TaskSpec) []int {
	t.Helper()
	var all []int
	for _, word := range strings.Fields(drivertest.Log(t, spec, tasklog.Stdout)) {
		if pid, err := strconv.Atoi(word); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// family forks in every direction: a child, a daemon in a session of its own,
// and one of those that has thrown its environment away.
const family = `trap "" TERM HUP; echo $$
sh -c 'echo $$; : >a; exec sleep 1000' &
(setsid sh -c 'echo $$; : >b; exec sleep 1000' &)
(setsid sh -c 'echo $$; : >c; env -i sleep 1000' &)
until [ -e a ] && [ -e b ] && [ -e c ]; do sleep 0.01; done; echo ready; while :; do sleep 0.05; done`

func TestKilledSupervisor(t *testing.T) {
	for name, change := range map[string]func(*exec.Config){
		"with cgroup":    func(c *exec.Config) { c.Isolation = exec.IsolationRaw },
		"without cgroup": func(c *exec.Config) { c.Isolation, c.NoCgroup = exec.IsolationRaw, true },
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, change)
			spec := drivertest.Shell(t, family)
			handle := drivertest.Start(t, d, spec)
			drivertest.AwaitOutput(t, spec, "ready")
			all := pids(t, spec)
			if len(all) != 4 {
				t.Fatalf("family has %d members", len(all))
			}
			if err := syscall.Kill(stateOf(t, handle).Supervisor.PID, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			result := drivertest.Wait(t, d, spec.ID)
			if result.Err == nil || result.Err.ID != "driver.task_lost" || result.Successful() {
				t.Errorf("result is %+v, want a lost task", result)
			}
			gone(t, "family is gone", all...)
			// The loss is on record: a later agent hears of it, too.
			record, err := supervisor.ReadRecord(filepath.Join(stateDir(t, d), "tasks"), string(spec.ID))
			if err != nil || record.Exit == nil || !record.Exit.Lost {
				t.Errorf("record is %+v, %v", record, err)
			}
		})
	}
}

const agentArgument = "play-agent"

// playAgent starts a task, tells its handle and waits to be killed.
func playAgent(stateDir, cgroupParent, isolation string) {
	d, err := exec.New(exec.Config{StateDir: stateDir, Supervisor: []string{"/proc/self/exe", supervisor.Argument}, CgroupParent: cgroupParent, Isolation: isolation})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	var spec driver.TaskSpec
	err = json.NewDecoder(os.Stdin).Decode(&spec)
	if err == nil {
		var handle driver.Handle
		if handle, err = d.Start(context.Background(), spec); err == nil {
			err = json.NewEncoder(os.Stdout).Encode(handle)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

// killedAgent starts a task from another process, kills that with SIGKILL
// and returns what it had stored. The task is not isolated, so that it knows
// the ids of its processes.
func killedAgent(t *testing.T, stateDir string, spec driver.TaskSpec) driver.Handle {
	t.Helper()
	return killedAgentWith(t, stateDir, exec.IsolationRaw, spec)
}

func killedAgentWith(t *testing.T, stateDir, isolation string, spec driver.TaskSpec) driver.Handle {
	t.Helper()
	agent := osexec.Command("/proc/self/exe", agentArgument, stateDir, cgroupParent(), isolation)
	agent.Stderr = os.Stderr
	stdin, err := agent.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := agent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(stdin).Encode(spec); err != nil {
		t.Fatal(err)
	}
	var handle driver.Handle
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(&handle); err != nil {
		t.Fatal(err)
	}
	if err := agent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = agent.Wait() // killed
	return handle
}

// openAt returns a driver on a given state directory.
func openAt(t *testing.T, dir string) *exec.Driver {
	t.Helper()
	return open(t, func(c *exec.Config) { c.StateDir = dir })
}

func take(t *testing.T, d driver.Driver, handle driver.Handle) {
	t.Helper()
	if err := d.Recover(context.Background(), handle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Destroy(context.Background(), handle.TaskID); err != nil {
			t.Error(err)
		}
	})
}

func TestKilledAgent(t *testing.T) {
	t.Run("task runs on and is taken over", func(t *testing.T) {
		dir := t.TempDir()
		spec := drivertest.Shell(t, `echo ready; trap 'echo bye; exit 42' TERM; while :; do sleep 0.05; done`)
		handle := killedAgent(t, dir, spec)
		drivertest.AwaitOutput(t, spec, "ready")
		d := openAt(t, dir)
		begun := time.Now()
		take(t, d, handle)
		if _, err := d.Stats(context.Background(), spec.ID); err != nil {
			t.Errorf("stats: %v", err)
		}
		t.Logf("re-attached in %v", time.Since(begun))
		if err := d.Stop(context.Background(), spec.ID, "", time.Minute); err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Code != 42 || result.Err != nil {
			t.Errorf("result is %+v, want 42", result)
		}
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "ready\nbye\n" {
			t.Errorf("log is %q", out)
		}
	})
	t.Run("task ends while nobody is there", func(t *testing.T) {
		dir := t.TempDir()
		spec := drivertest.Shell(t, `sleep 0.3; echo last words; exit 17`)
		handle := killedAgent(t, dir, spec)
		gone(t, "supervisor ends", stateOf(t, handle).Supervisor.PID)
		d := openAt(t, dir)
		take(t, d, handle)
		if result := drivertest.Wait(t, d, spec.ID); result.Code != 17 || result.Err != nil {
			t.Errorf("result is %+v, want 17", result)
		}
		if out := drivertest.Log(t, spec, tasklog.Stdout); out != "last words\n" {
			t.Errorf("log is %q", out)
		}
	})
	t.Run("supervisor is killed, too", func(t *testing.T) {
		dir := t.TempDir()
		spec := drivertest.Shell(t, family)
		handle := killedAgent(t, dir, spec)
		drivertest.AwaitOutput(t, spec, "ready")
		if err := syscall.Kill(stateOf(t, handle).Supervisor.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		d := openAt(t, dir)
		take(t, d, handle)
		if result := drivertest.Wait(t, d, spec.ID); result.Err == nil || result.Err.ID != "driver.task_lost" {
			t.Errorf("result is %+v, want a lost task", result)
		}
		gone(t, "family is gone", pids(t, spec)...)
	})
	t.Run("handle was never stored", func(t *testing.T) {
		dir := t.TempDir()
		spec := drivertest.Shell(t, `echo $$; exec sleep 1000`)
		killedAgent(t, dir, spec)
		d := openAt(t, dir)
		handles, err := d.List(context.Background())
		if err != nil || len(handles) != 1 || handles[0].TaskID != spec.ID {
			t.Fatalf("list is %+v, %v", handles, err)
		}
		if _, err := d.Start(context.Background(), spec); !errors.Is(err, driver.ErrTaskExists) {
			t.Errorf("start gives %v", err)
		}
		take(t, d, handles[0])
		if err := d.Destroy(context.Background(), spec.ID); err != nil {
			t.Fatal(err)
		}
		gone(t, "task is gone", pids(t, spec)...)
		if handles, err := d.List(context.Background()); err != nil || len(handles) != 0 {
			t.Errorf("list is %+v, %v", handles, err)
		}
	})
	t.Run("record is damaged", func(t *testing.T) {
		for name, text := range map[string]string{"empty": "", "cut": `{"state":{"ver`, "garbage": "\x00\x01\n{}\n[1]\n"} {
			t.Run(name, func(t *testing.T) {
				dir := t.TempDir()
				spec := drivertest.Shell(t, `exec sleep 1000`)
				handle := killedAgent(t, dir, spec)
				record := filepath.Join(dir, "tasks", string(spec.ID)+supervisor.RecordSuffix)
				if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				d := openAt(t, dir)
				take(t, d, handle)
				if err := d.Stop(context.Background(), spec.ID, "SIGINT", time.Minute); err != nil {
					t.Fatal(err)
				}
				if result := drivertest.Wait(t, d, spec.ID); result.Signal != "SIGINT" {
					t.Errorf("result is %+v, want SIGINT", result)
				}
			})
		}
	})
}

func TestRecover(t *testing.T) {
	ctx := context.Background()
	t.Run("refuses handles that are not its own", func(t *testing.T) {
		d := open(t)
		for _, handle := range []driver.Handle{
			{Version: 1, Driver: "docker", TaskID: "a"},
			{Version: 99, Driver: exec.Name, TaskID: "a"},
			{Version: 1, Driver: exec.Name, TaskID: "../a"},
			{Version: 1, Driver: exec.Name, TaskID: "a", State: make([]byte, driver.HandleStateMax+1)},
		} {
			if err := d.Recover(ctx, handle); err == nil {
				t.Errorf("handle %s %d %q is accepted", handle.Driver, handle.Version, handle.TaskID)
			}
		}
	})
	t.Run("after the machine was restarted", func(t *testing.T) {
		d := open(t)
		// The ids belong to somebody else by now: this process.
		self, err := proctree.Read(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		state, err := json.Marshal(&supervisor.State{
			Version: 1, TaskID: "old", Marker: "old:x", BootID: "another boot",
			Supervisor: supervisor.Identity{PID: self.PID, StartTicks: self.StartTicks},
			Command:    supervisor.Identity{PID: self.PID, StartTicks: self.StartTicks},
		})
		if err != nil {
			t.Fatal(err)
		}
		take(t, d, driver.Handle{Version: 1, Driver: exec.Name, TaskID: "old", State: state})
		if result := drivertest.Wait(t, d, "old"); result.Err == nil || result.Err.ID != "driver.task_lost" {
			t.Errorf("result is %+v, want a lost task", result)
		}
	})
	t.Run("twice does nothing", func(t *testing.T) {
		d := open(t)
		spec := drivertest.Shell(t, "exit 3")
		handle := drivertest.Start(t, d, spec)
		if err := d.Recover(ctx, handle); err != nil {
			t.Error(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Code != 3 {
			t.Errorf("result is %+v", result)
		}
	})
	t.Run("a closed driver gives its tasks up", func(t *testing.T) {
		dir := t.TempDir()
		first := openAt(t, dir)
		spec := drivertest.Shell(t, "sleep 0.5; exit 8")
		handle, err := first.Start(ctx, spec)
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() {
			_, err := first.Wait(ctx, spec.ID)
			waited <- err
		}()
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		if err := <-waited; !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("wait gives %v", err)
		}
		if _, err := first.Start(ctx, drivertest.Shell(t, "true")); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("start gives %v", err)
		}
		second := openAt(t, dir)
		take(t, second, handle)
		if result := drivertest.Wait(t, second, spec.ID); result.Code != 8 {
			t.Errorf("result is %+v, want 8", result)
		}
	})
}

func TestSpareSupervisorsThatDied(t *testing.T) {
	d := open(t)
	spec := drivertest.Shell(t, "exit 6")
	eventually.Within(t, time.Minute, "spares are there", func() bool { return len(children(t)) >= 2 })
	for _, pid := range children(t) {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	drivertest.Start(t, d, spec)
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 6 {
		t.Errorf("result is %+v, want 6", result)
	}
}

// children lists this process's living children.
func children(t *testing.T) []int {
	t.Helper()
	processes, err := proctree.Descendants(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var all []int
	for _, p := range processes {
		if p.Parent == os.Getpid() && !p.Dead() {
			all = append(all, p.PID)
		}
	}
	return all
}

func TestStartHeedsItsContext(t *testing.T) {
	d := open(t, func(c *exec.Config) {
		// A supervisor that never answers.
		c.Supervisor = []string{"/bin/sh", "-c", "exec sleep 1000"}
		c.Spares, c.Isolation = -1, exec.IsolationRaw
	})
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	spec := drivertest.Shell(t, "true")
	if _, err := d.Start(ctx, spec); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("start gives %v", err)
	}
	if left := children(t); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
	if handles, err := d.List(context.Background()); err != nil || len(handles) != 0 {
		t.Errorf("list is %+v, %v", handles, err)
	}
}

// smallDisk mounts a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "mode=0700,size="+size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		eventually.Within(t, time.Minute, "unmount", func() bool { return syscall.Unmount(dir, 0) == nil })
	})
	return dir
}

// fill takes all the space that a disk has left.
func fill(t *testing.T, dir string) {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	block := make([]byte, 4096)
	for err == nil {
		_, err = file.Write(block)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("needs root for a disk of its own: not run")
		return
	}
	t.Run("of the logs costs output, not the task", func(t *testing.T) {
		disk := smallDisk(t, "64k")
		d := open(t)
		spec := drivertest.Shell(t, `head -c 200000 /dev/zero | tr '\0' x; echo; echo full; : >written; while [ ! -e go ]; do sleep 0.02; done; echo after; exit 4`)
		spec.LogDir = filepath.Join(disk, "logs")
		spec.LogRotation = driver.LogRotation{MaxFiles: 100, MaxBytes: 1 << 20}
		drivertest.Start(t, d, spec)
		// Disk and pipe together hold less than what was written.
		eventually.Within(t, time.Minute, "disk is full", func() bool {
			_, err := os.Stat(filepath.Join(spec.TaskDir, "written"))
			return err == nil
		})
		// Space comes back: an administrator has removed something.
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=1m"); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(spec.TaskDir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Code != 4 {
			t.Errorf("result is %+v, want 4", result)
		}
		out := drivertest.Log(t, spec, tasklog.Stdout)
		if !strings.Contains(out, "bytes of output lost: no space left on device]") || !strings.HasSuffix(out, "after\n") {
			t.Errorf("log ends in %q", out[max(len(out)-200, 0):])
		}
	})
	t.Run("of the records does not lose the exit code", func(t *testing.T) {
		disk := smallDisk(t, "6m")
		d := openAt(t, disk)
		spec := drivertest.Shell(t, `while [ ! -e go ]; do sleep 0.02; done; exit 11`)
		drivertest.Start(t, d, spec)
		fill(t, disk)
		if err := os.WriteFile(filepath.Join(spec.TaskDir, "go"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if result := drivertest.Wait(t, d, spec.ID); result.Code != 11 || result.Err != nil {
			t.Errorf("result is %+v, want 11", result)
		}
		record, err := supervisor.ReadRecord(filepath.Join(disk, "tasks"), string(spec.ID))
		if err != nil || record.Exit == nil || record.Exit.Code != 11 {
			t.Errorf("record is %+v, %v", record, err)
		}
		late := drivertest.Shell(t, "true")
		late.ID = "late"
		if _, err := d.Start(context.Background(), late); err == nil || errors.As(err, new(*driver.StartError)) {
			t.Errorf("a start on a full disk gives %v, want a fault of the node", err)
		}
	})
}
