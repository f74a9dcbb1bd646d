package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
)

func runLifecycle(t *testing.T, open Open) {
	d := open(t)
	t.Run("exit code and logs", func(t *testing.T) {
		spec := Shell(t, "echo out; echo err >&2; exit 7")
		handle := Start(t, d, spec)
		if handle.TaskID != spec.ID || handle.Version != driver.HandleVersion || handle.StartedAt.IsZero() {
			t.Errorf("handle is %+v", handle)
		}
		result := Wait(t, d, spec.ID)
		if result.Code != 7 || result.Signal != "" || result.Err != nil || result.Successful() {
			t.Errorf("result is %+v, want code 7", result)
		}
		if result.StartedAt.IsZero() || result.FinishedAt.Before(result.StartedAt) {
			t.Errorf("times are %v and %v", result.StartedAt, result.FinishedAt)
		}
		if out, err := Log(t, spec, tasklog.Stdout), Log(t, spec, tasklog.Stderr); out != "out\n" || err != "err\n" {
			t.Errorf("logs are %q and %q", out, err)
		}
		if again := Wait(t, d, spec.ID); again.Code != 7 {
			t.Errorf("second wait gives %+v", again)
		}
	})
	t.Run("killed by signal", func(t *testing.T) {
		spec := Shell(t, "kill -ABRT $$")
		Start(t, d, spec)
		if result := Wait(t, d, spec.ID); result.Signal != "SIGABRT" || result.Code != 128+6 {
			t.Errorf("result is %+v, want SIGABRT and 134", result)
		}
	})
	t.Run("environment and directory", func(t *testing.T) {
		t.Setenv("AGENT_SECRET", "leak")
		spec := Shell(t, "env; pwd")
		spec.Env = []string{"A=1", "B=two words"}
		Start(t, d, spec)
		Wait(t, d, spec.ID)
		checkEnvironment(t, Log(t, spec, tasklog.Stdout), spec.TaskDir)
	})
	t.Run("output to the last byte", func(t *testing.T) {
		spec := Shell(t, "i=0; while [ $i -lt 20000 ]; do echo line $i; i=$((i+1)); done")
		Start(t, d, spec)
		Wait(t, d, spec.ID)
		out := Log(t, spec, tasklog.Stdout)
		if got := strings.Count(out, "\n"); got != 20000 || !strings.HasSuffix(out, "line 19999\n") {
			t.Errorf("log has %d lines and ends in %q", got, out[max(len(out)-20, 0):])
		}
	})
	t.Run("leftovers of an exit are killed", func(t *testing.T) {
		spec := Shell(t, `(trap "" TERM HUP; setsid sh -c 'trap "" TERM; echo left; : >left; exec sleep 1000') & while [ ! -e left ]; do sleep 0.01; done; exit 3`)
		mark := marked(&spec)
		Start(t, d, spec)
		if result := Wait(t, d, spec.ID); result.Code != 3 {
			t.Errorf("result is %+v, want code 3", result)
		}
		if out := Log(t, spec, tasklog.Stdout); out != "left\n" {
			t.Errorf("the leftover wrote %q", out)
		}
		assertGone(t, mark)
	})
	t.Run("wait heeds its context", func(t *testing.T) {
		spec := Shell(t, "sleep 1000")
		Start(t, d, spec)
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		if _, err := d.Wait(ctx, spec.ID); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("wait gives %v", err)
		}
	})
	t.Run("same id twice", func(t *testing.T) {
		spec := Shell(t, "sleep 1000")
		Start(t, d, spec)
		if _, err := d.Start(context.Background(), spec); !errors.Is(err, driver.ErrTaskExists) {
			t.Errorf("second start gives %v", err)
		}
	})
	t.Run("destroy frees the id and keeps the logs", func(t *testing.T) {
		spec := Shell(t, "echo first; sleep 1000")
		if _, err := d.Start(context.Background(), spec); err != nil {
			t.Fatal(err)
		}
		AwaitOutput(t, spec, "first")
		if err := d.Destroy(context.Background(), spec.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := d.Wait(context.Background(), spec.ID); !errors.Is(err, driver.ErrUnknownTask) {
			t.Errorf("wait for a destroyed task gives %v", err)
		}
		Start(t, d, spec)
		eventually.Within(t, limit, "second output", func() bool {
			return strings.Count(Log(t, spec, tasklog.Stdout), "first") == 2
		})
	})
	t.Run("fingerprint", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		reports, err := d.Fingerprint(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if report := <-reports; report.Health != driver.Healthy || len(report.Attributes) == 0 {
			t.Errorf("report is %+v", report)
		}
		cancel()
		for range reports { // must be closed
		}
	})
}

func checkEnvironment(t *testing.T, out, dir string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range got {
		name, _, _ := strings.Cut(line, "=")
		switch name {
		case "A", "B", "PATH", "PWD", "NOMADLIKE_TASK_MARKER", "SHLVL", "_", "OLDPWD", dir:
		default:
			t.Errorf("environment or output has %q", line)
		}
	}
	if text := "\n" + out; !strings.Contains(text, "\nA=1\n") || !strings.Contains(text, "\nB=two words\n") || !strings.HasSuffix(text, "\n"+dir+"\n") {
		t.Errorf("output is %q", out)
	}
}

// markName is a variable by which a test finds the processes of a task on the
// node, whatever process ids they have in their own namespace.
const markName = "DRIVERTEST_MARK"

// marked sets a mark in a task's environment and returns the whole variable.
func marked(spec *driver.TaskSpec) string {
	mark := markName + "=" + spec.TaskDir
	spec.Env = append(spec.Env, mark)
	return mark
}

// processes lists the living processes of this node with a mark.
func processes(t *testing.T, mark string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		if strings.Contains("\x00"+environ(entry.Name()), "\x00"+mark+"\x00") {
			found = append(found, entry.Name())
		}
	}
	return found
}

// environ returns the environment of a process; one that has ended meanwhile, or
// is a zombie, has none. A process that is just executing another program has
// the new one's memory for a moment, without an environment in it: it is read
// again until the kernel has put one there.
func environ(pid string) string {
	const environStart, environEnd = 47, 48 // fields of stat behind the name
	for range 1000 {
		data, err := os.ReadFile("/proc/" + pid + "/environ")
		if err != nil || len(data) > 0 {
			return string(data)
		}
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil {
			return ""
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		kernelThread := fields[environEnd] == "0" && !runsProgram(pid)
		if fields[0] == "Z" || kernelThread || fields[environEnd] != "0" && fields[environStart] == fields[environEnd] {
			return ""
		}
		turn := time.NewTimer(time.Millisecond)
		<-turn.C
	}
	return ""
}

// runsProgram tells a process from a thread of the kernel.
func runsProgram(pid string) bool {
	_, err := os.Readlink("/proc/" + pid + "/exe")
	return err == nil
}

// assertGone checks that no process with the mark is left.
func assertGone(t *testing.T, mark string) {
	t.Helper()
	for _, pid := range processes(t, mark) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s is still there: %s", pid, stat)
		}
	}
}

func runStartErrors(t *testing.T, open Open) {
	d := open(t)
	script := func(t *testing.T, dir string, mode os.FileMode, text string) string {
		path := filepath.Join(dir, "script")
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cases := []struct {
		name    string
		command func(t *testing.T, dir string) []string // dir is the task's, which it sees in any case
		code    int
		id      string
	}{
		{"not in PATH", func(*testing.T, string) []string { return []string{"no-such-command", "x"} }, 127, "driver.command_not_found"},
		{"no such file", func(*testing.T, string) []string { return []string{"/no/such/file"} }, 127, "driver.command_missing"},
		{"no execute bit", func(t *testing.T, dir string) []string { return []string{script(t, dir, 0o644, "#!/bin/sh\n")} }, 126, "driver.command_not_executable"},
		{"directory", func(*testing.T, string) []string { return []string{"/etc/"} }, 126, "driver.command_not_executable"},
		{"no interpreter", func(t *testing.T, dir string) []string { return []string{script(t, dir, 0o755, "#!/no/such/python\n")} }, 127, "driver.interpreter_missing"},
		{"not a program", func(t *testing.T, dir string) []string { return []string{script(t, dir, 0o755, "hello\n")} }, 126, "driver.command_not_executable"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			spec := Spec(t)
			spec.Command = c.command(t, spec.TaskDir)
			_, err := d.Start(context.Background(), spec)
			assertStartError(t, err, c.code, c.id)
			if _, err := d.Wait(context.Background(), spec.ID); !errors.Is(err, driver.ErrUnknownTask) {
				t.Errorf("a task that did not start can be waited for: %v", err)
			}
		})
	}
	t.Run("no directory", func(t *testing.T) {
		spec := Shell(t, "true")
		spec.Dir = "/no/such/dir"
		_, err := d.Start(context.Background(), spec)
		assertStartError(t, err, 126, "driver.dir_missing")
	})
	t.Run("no user", func(t *testing.T) {
		spec := Shell(t, "true")
		spec.User = "no-such-user"
		_, err := d.Start(context.Background(), spec)
		assertStartError(t, err, 126, "driver.user_unknown")
	})
	for name, spoil := range map[string]func(*driver.TaskSpec){
		"id":      func(s *driver.TaskSpec) { s.ID = "../evil" },
		"command": func(s *driver.TaskSpec) { s.Command = nil },
		"logs":    func(s *driver.TaskSpec) { s.LogDir = s.TaskDir + "/logs" },
		"env":     func(s *driver.TaskSpec) { s.Env = []string{"=x"} },
	} {
		t.Run("bad "+name, func(t *testing.T) {
			spec := Shell(t, "true")
			spoil(&spec)
			_, err := d.Start(context.Background(), spec)
			var told *structs.Error
			if !errors.As(err, &told) || told.ID != "driver.bad_spec" {
				t.Errorf("start gives %v, want driver.bad_spec", err)
			}
		})
	}
}

func assertStartError(t *testing.T, err error, code int, id string) {
	t.Helper()
	var start *driver.StartError
	if !errors.As(err, &start) {
		t.Fatalf("start gives %v, want a start error", err)
	}
	if start.ExitCode != code || start.Err.ID != id || start.Err.Code != structs.CodeInvalid {
		t.Errorf("start error is %d %v, want %d %s", start.ExitCode, start.Err, code, id)
	}
}

func runUnknown(t *testing.T, open Open) {
	d := open(t)
	ctx := context.Background()
	const id = driver.TaskID("nobody")
	_, waitErr := d.Wait(ctx, id)
	_, statsErr := d.Stats(ctx, id)
	_, execErr := d.Exec(ctx, id, driver.ExecSpec{Command: []string{"true"}}, driver.Streams{})
	for name, err := range map[string]error{
		"wait": waitErr, "stats": statsErr, "exec": execErr,
		"stop":     d.Stop(ctx, id, "", time.Second),
		"signal":   d.Signal(ctx, id, "SIGUSR1"),
		"pause":    d.Pause(ctx, id),
		"continue": d.Continue(ctx, id),
	} {
		if !errors.Is(err, driver.ErrUnknownTask) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if err := d.Destroy(ctx, id); err != nil {
		t.Errorf("destroy gives %v", err)
	}
}

// tasksAtOnce is how many tasks the concurrency test runs, and fewTasks on
// machines that are slow, which say so by -short.
const (
	tasksAtOnce = 50
	fewTasks    = 10
)

func runConcurrency(t *testing.T, open Open) {
	d := open(t)
	tasks := tasksAtOnce
	if testing.Short() {
		tasks = fewTasks
	}
	var all sync.WaitGroup
	for i := range tasks {
		spec := Shell(t, fmt.Sprintf("echo task %d; exit %d", i, i))
		spec.ID = driver.TaskID(fmt.Sprintf("%s-%d", spec.ID, i))
		all.Go(func() {
			if _, err := d.Start(context.Background(), spec); err != nil {
				t.Errorf("start %d: %v", i, err)
				return
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			result, err := d.Wait(ctx, spec.ID)
			if err != nil || result.Code != i {
				t.Errorf("task %d gives %+v, %v", i, result, err)
			}
			if err := d.Destroy(context.Background(), spec.ID); err != nil {
				t.Errorf("destroy %d: %v", i, err)
			}
		})
	}
	all.Wait()
}
