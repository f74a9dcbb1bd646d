package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	osexec "os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/exec"
	"nomadlike/plugins/exec/supervisor"
)

// wireSpec says a task in a supervisor's words.
func wireSpec(spec driver.TaskSpec) *supervisor.Spec {
	id := string(spec.ID)
	return &supervisor.Spec{
		TaskID: id, Marker: id + ":test", Command: spec.Command,
		Env: []string{"PATH=/usr/bin:/bin", supervisor.MarkerEnv + "=" + id + ":test"},
		Dir: spec.TaskDir, LogDir: spec.LogDir, LogFiles: 2, LogBytes: 1 << 20,
	}
}

// startLate sends a request to a supervisor whose agent is gone before it
// reads the first byte.
func startLate(t *testing.T, tasksDir string, request *supervisor.Request) *osexec.Cmd {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	theirs := os.NewFile(uintptr(pair[1]), "agent")
	defer theirs.Close()
	data, err := supervisor.EncodeRequest(request)
	if err == nil {
		_, err = syscall.Write(pair[0], data)
	}
	if err == nil {
		err = syscall.Close(pair[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	process := osexec.Command("/proc/self/exe", supervisor.Argument)
	process.Dir, process.Env, process.Stderr = tasksDir, supervisor.Environ(), os.Stderr
	process.ExtraFiles = []*os.File{theirs}
	process.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

func TestRequestOfADeadAgent(t *testing.T) {
	for name, hold := range map[string]bool{"command": false, "held": true} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			tasks := filepath.Join(stateDir(t, d), "tasks")
			spec := drivertest.Shell(t, `: >started; exec sleep 1000`)
			wire := wireSpec(spec)
			if hold {
				wire.Hold, wire.Command = true, nil
			}
			late := startLate(t, tasks, &supervisor.Request{Op: supervisor.OpStart, Protocol: supervisor.Protocol, Spec: wire})
			kill := time.AfterFunc(5*time.Second, func() { late.Process.Kill() })
			if err := late.Wait(); err != nil {
				t.Errorf("supervisor: %v, want it to give up", err)
			}
			kill.Stop()
			if handles, err := d.List(context.Background()); err != nil || len(handles) != 0 {
				t.Errorf("list is %+v, %v", handles, err)
			}
			if left, err := os.ReadDir(tasks); err != nil || len(left) != 0 {
				t.Errorf("files %v, %v are left", left, err)
			}
			if _, err := os.Stat(filepath.Join(spec.TaskDir, "started")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("command has run: %v", err)
			}
		})
	}
}

// heldRecord makes the record of a supervisor that has not come to the
// command yet.
func heldRecord(t *testing.T, d *exec.Driver, id driver.TaskID) *os.File {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(stateDir(t, d), "tasks", string(id)+supervisor.RecordSuffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestRecoverDuringAStart takes a task over whose supervisor has made the
// record and may execute the command in the next moment.
func TestRecoverDuringAStart(t *testing.T) {
	recovered := func(t *testing.T) (*exec.Driver, *os.File) {
		d := open(t)
		file := heldRecord(t, d, "early")
		handles, err := d.List(context.Background())
		if err != nil || len(handles) != 1 {
			t.Fatalf("list is %+v, %v", handles, err)
		}
		take(t, d, handles[0])
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		if result, err := d.Wait(ctx, "early"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("the task is given up: %+v, %v", result, err)
		}
		return d, file
	}
	t.Run("that is not executed", func(t *testing.T) {
		d, file := recovered(t)
		file.Close()
		if result := drivertest.Wait(t, d, "early"); result.Err == nil || result.Err.ID != "driver.task_lost" {
			t.Errorf("result is %+v, want a lost task", result)
		}
	})
	t.Run("that is executed", func(t *testing.T) {
		d, file := recovered(t)
		command := osexec.Command("/bin/sleep", "1000")
		command.Env = []string{supervisor.MarkerEnv + "=early:x"}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		collected := make(chan struct{})
		go func() {
			defer close(collected)
			_ = command.Wait() // killed
		}()
		// Its supervisor dies right after the state was recorded.
		boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
		if err != nil {
			t.Fatal(err)
		}
		state, err := json.Marshal(map[string]any{"state": &supervisor.State{
			Version: supervisor.RecordVersion, TaskID: "early", Marker: "early:x", BootID: string(boot[:len(boot)-1]),
			Supervisor: supervisor.Identity{PID: 1 << 22, StartTicks: 1}, StartedNS: 7,
		}})
		if err == nil {
			_, err = file.Write(append(state, '\n'))
		}
		if err != nil {
			t.Fatal(err)
		}
		file.Close()
		result := drivertest.Wait(t, d, "early")
		if result.Err == nil || result.Err.ID != "driver.task_lost" || result.StartedAt.UnixNano() != 7 {
			t.Errorf("result is %+v, want a lost task that was started", result)
		}
		<-collected
	})
}

// TestStartBesideAnother starts a task whose id another agent's supervisor
// has taken in the same moment: after the driver has looked for a record.
func TestStartBesideAnother(t *testing.T) {
	for name, end := range map[string]string{"that is refused": "exec \"$0\" task-supervisor", "that is killed": "kill -9 $$"} {
		t.Run(name, func(t *testing.T) {
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			first := open(t)
			dir := stateDir(t, first)
			slow := open(t, func(c *exec.Config) {
				c.StateDir, c.Spares, c.Isolation = dir, -1, exec.IsolationRaw
				c.Supervisor = []string{"/bin/sh", "-c", ": >../waits; while [ ! -e ../go ]; do sleep 0.01; done; " + end, program}
			})
			spec := drivertest.Shell(t, `trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done`)
			failed := make(chan error, 1)
			go func() {
				_, err := slow.Start(context.Background(), spec)
				failed <- err
			}()
			eventually.Within(t, time.Minute, "the start has looked for a record", func() bool {
				_, err := os.Stat(filepath.Join(dir, "waits"))
				return err == nil
			})
			handle := drivertest.Start(t, first, spec)
			drivertest.AwaitOutput(t, spec, "ready")
			if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			err = <-failed
			if err == nil || (end != "kill -9 $$") != errors.Is(err, driver.ErrTaskExists) {
				t.Errorf("start gives %v", err)
			}
			// The other one still lives and is found by the next agent.
			third := openAt(t, dir)
			take(t, third, handle)
			if err := third.Stop(context.Background(), spec.ID, "", time.Minute); err != nil {
				t.Fatal(err)
			}
			if result := drivertest.Wait(t, third, spec.ID); result.Code != 9 || result.Err != nil {
				t.Errorf("result is %+v, want 9", result)
			}
		})
	}
}
