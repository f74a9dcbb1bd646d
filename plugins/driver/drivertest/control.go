package drivertest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/driver/taskside"
)

func runStop(t *testing.T, open Open) {
	d := open(t)
	ctx := context.Background()
	stop := func(t *testing.T, id driver.TaskID, signal string, grace time.Duration) {
		t.Helper()
		if err := d.Stop(ctx, id, signal, grace); err != nil {
			t.Fatalf("stop: %v", err)
		}
	}
	t.Run("heeded", func(t *testing.T) {
		spec := Shell(t, `trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		stop(t, spec.ID, "", time.Minute)
		if result := Wait(t, d, spec.ID); result.Code != 5 || result.Signal != "" {
			t.Errorf("result is %+v, want code 5", result)
		}
		if out := Log(t, spec, tasklog.Stdout); !strings.HasSuffix(out, "bye\n") {
			t.Errorf("log is %q", out)
		}
	})
	t.Run("another signal", func(t *testing.T) {
		spec := Shell(t, "echo ready; exec sleep 1000")
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		stop(t, spec.ID, "SIGINT", time.Minute)
		if result := Wait(t, d, spec.ID); result.Signal != "SIGINT" || result.Code != 130 {
			t.Errorf("result is %+v, want SIGINT", result)
		}
	})
	t.Run("ignored by a tree that forks away", func(t *testing.T) {
		spec := Shell(t, `trap "" TERM HUP INT
			echo $$
			sh -c 'echo $$; exec sleep 1000' &
			setsid sh -c 'echo $$; (setsid sh -c "echo \$\$; exec sleep 1000" &) ; exec sleep 1000' &
			while :; do sleep 0.05; done`)
		mark := marked(&spec)
		Start(t, d, spec)
		eventually.Within(t, limit, "four ids are told", func() bool { return strings.Count(Log(t, spec, tasklog.Stdout), "\n") == 4 })
		if n := len(processes(t, mark)); n < 4 {
			t.Errorf("%d processes are found, want 4", n)
		}
		stop(t, spec.ID, "SIGTERM", 100*time.Millisecond)
		result := Wait(t, d, spec.ID)
		if result.Signal != "SIGKILL" || result.Code != 137 {
			t.Errorf("result is %+v, want SIGKILL", result)
		}
		assertGone(t, mark)
	})
	t.Run("grace belongs to the whole tree", func(t *testing.T) {
		// The shell dies of the signal at once; its child still saves.
		spec := Shell(t, `sh -c 'trap "sleep 0.3; echo saved; exit" TERM; echo ready; while :; do sleep 0.05; done' & wait`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		stop(t, spec.ID, "", time.Minute)
		if result := Wait(t, d, spec.ID); result.Signal != "SIGTERM" {
			t.Errorf("result is %+v", result)
		}
		if out := Log(t, spec, tasklog.Stdout); !strings.Contains(out, "saved") {
			t.Errorf("log is %q", out)
		}
	})
	t.Run("grace can be shortened", func(t *testing.T) {
		spec := Shell(t, `trap "" TERM; echo ready; while :; do sleep 0.05; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		stop(t, spec.ID, "", time.Hour)
		stop(t, spec.ID, "", 0)
		if result := Wait(t, d, spec.ID); result.Signal != "SIGKILL" {
			t.Errorf("result is %+v", result)
		}
		stop(t, spec.ID, "", 0) // after the end: nothing
	})
	t.Run("held task", func(t *testing.T) {
		spec := Spec(t)
		spec.Hold = true
		Start(t, d, spec)
		stop(t, spec.ID, "", time.Minute)
		if result := Wait(t, d, spec.ID); !result.Successful() {
			t.Errorf("result is %+v, want success", result)
		}
	})
}

func runControl(t *testing.T, open Open) {
	d := open(t)
	ctx := context.Background()
	t.Run("signal", func(t *testing.T) {
		spec := Shell(t, `trap 'echo got; exit 9' USR1; echo ready; while :; do sleep 0.05; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		if err := d.Signal(ctx, spec.ID, "SIGUSR1"); err != nil {
			t.Fatal(err)
		}
		if result := Wait(t, d, spec.ID); result.Code != 9 {
			t.Errorf("result is %+v, want 9", result)
		}
		if err := d.Signal(ctx, spec.ID, "SIGUSR1"); !errors.Is(err, driver.ErrTaskEnded) {
			t.Errorf("signal after the end gives %v", err)
		}
	})
	t.Run("unknown signal", func(t *testing.T) {
		spec := Shell(t, "sleep 1000")
		Start(t, d, spec)
		if err := d.Signal(ctx, spec.ID, "SIGNONSENSE"); err == nil {
			t.Error("an unknown signal is accepted")
		}
	})
	t.Run("pause and continue", func(t *testing.T) {
		spec := Shell(t, `echo ready; sh -c 'while :; do :; done' & while :; do :; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		both := false // processes have been seen
		cpu := func() time.Duration {
			usage, err := d.Stats(ctx, spec.ID)
			if err != nil {
				t.Fatalf("stats: %v", err)
			}
			if usage.RSSBytes <= 0 || usage.Threads < usage.Processes {
				t.Errorf("usage is %+v", usage)
			}
			both = both || usage.Processes == 2
			return usage.CPUTime
		}
		eventually.Within(t, limit, "processor time passes", func() bool { return cpu() > 100*time.Millisecond && both })
		for range 2 {
			if err := d.Pause(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
		}
		before := cpu()
		window := time.NewTimer(300 * time.Millisecond)
		<-window.C
		if used := cpu() - before; used > 20*time.Millisecond {
			t.Errorf("a paused task has used %v", used)
		}
		if err := d.Continue(ctx, spec.ID); err != nil {
			t.Fatal(err)
		}
		eventually.Within(t, limit, "processor time passes again", func() bool { return cpu() > before+100*time.Millisecond })
	})
	t.Run("throttle", func(t *testing.T) {
		throttler, able := d.(driver.Throttler)
		if !able {
			return // its tasks are throttled by Pause and Continue
		}
		spec := Shell(t, `echo ready; while :; do :; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		cpu := func() time.Duration {
			usage, err := d.Stats(ctx, spec.ID)
			if err != nil {
				t.Fatalf("stats: %v", err)
			}
			return usage.CPUTime
		}
		if err := throttler.Throttle(ctx, spec.ID, 20*time.Millisecond, 80*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		before, begun := cpu(), time.Now()
		window := time.NewTimer(500 * time.Millisecond)
		<-window.C
		if used, passed := cpu()-before, time.Since(begun); used > passed/2 {
			t.Errorf("a task that may use a fifth has used %v of %v", used, passed)
		}
		if err := throttler.Throttle(ctx, spec.ID, 0, 0); err != nil {
			t.Fatal(err)
		}
		if err := throttler.Throttle(ctx, spec.ID, time.Hour, time.Hour); err == nil {
			t.Error("a throttle of an hour is accepted")
		}
	})
	t.Run("pausing a task that forks all the time", func(t *testing.T) {
		spec := Shell(t, `echo ready; while :; do /bin/true; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		for range 20 {
			if err := d.Pause(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
			if err := d.Continue(ctx, spec.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a paused task can be stopped", func(t *testing.T) {
		spec := Shell(t, `trap 'exit 4' TERM; echo ready; while :; do sleep 0.05; done`)
		Start(t, d, spec)
		AwaitOutput(t, spec, "ready")
		if err := d.Pause(ctx, spec.ID); err != nil {
			t.Fatal(err)
		}
		if err := d.Stop(ctx, spec.ID, "", time.Minute); err != nil {
			t.Fatal(err)
		}
		if result := Wait(t, d, spec.ID); result.Code != 4 {
			t.Errorf("result is %+v, want 4", result)
		}
	})
}

// hold starts a held task with an environment.
func hold(t *testing.T, d driver.Driver) driver.TaskSpec {
	t.Helper()
	spec := Spec(t)
	spec.Hold = true
	spec.Env = []string{"A=task", "B=task"}
	Start(t, d, spec)
	return spec
}

func runExec(t *testing.T, open Open) {
	d := open(t)
	ctx := context.Background()
	shell := func(script string) driver.ExecSpec {
		return driver.ExecSpec{Command: []string{"/bin/sh", "-c", script}}
	}
	t.Run("streams, code, environment", func(t *testing.T) {
		task := hold(t, d)
		spec := shell(`echo "$A $B $(pwd)"; echo err >&2; cat; exit 6`)
		spec.Env = []string{"B=exec"}
		var out, errOut bytes.Buffer
		result, err := d.Exec(ctx, task.ID, spec, driver.Streams{Stdin: strings.NewReader("typed"), Stdout: &out, Stderr: &errOut})
		if err != nil || result.Code != 6 {
			t.Fatalf("exec gives %+v, %v", result, err)
		}
		if want := "task exec " + task.TaskDir + "\ntyped"; out.String() != want || errOut.String() != "err\n" {
			t.Errorf("output is %q and %q, want %q", out.String(), errOut.String(), want)
		}
	})
	t.Run("no streams", func(t *testing.T) {
		task := hold(t, d)
		result, err := d.Exec(ctx, task.ID, shell("cat; echo lost; exit 2"), driver.Streams{})
		if err != nil || result.Code != 2 {
			t.Errorf("exec gives %+v, %v", result, err)
		}
	})
	t.Run("much data", func(t *testing.T) {
		task := hold(t, d)
		const size = 4 << 20
		var out bytes.Buffer
		result, err := d.Exec(ctx, task.ID, driver.ExecSpec{Command: []string{"cat"}},
			driver.Streams{Stdin: io.LimitReader(zeros{}, size), Stdout: &out})
		if err != nil || result.Code != 0 || out.Len() != size {
			t.Errorf("exec gives %+v, %v and %d bytes", result, err, out.Len())
		}
	})
	t.Run("not found", func(t *testing.T) {
		task := hold(t, d)
		_, err := d.Exec(ctx, task.ID, driver.ExecSpec{Command: []string{"no-such-command"}}, driver.Streams{})
		assertStartError(t, err, 127, "driver.command_not_found")
	})
	t.Run("a program of the driver", func(t *testing.T) {
		task := hold(t, d)
		var out, errOut bytes.Buffer
		spec := driver.ExecSpec{Command: []string{taskside.SFTP}, Side: true}
		// The first packet of the protocol, and where the program works.
		stdin := strings.NewReader("\x00\x00\x00\x05\x01\x00\x00\x00\x03" + "\x00\x00\x00\x0a\x10\x00\x00\x00\x01\x00\x00\x00\x01.")
		result, err := d.Exec(ctx, task.ID, spec, driver.Streams{Stdin: stdin, Stdout: &out, Stderr: &errOut})
		if errors.Is(err, driver.ErrNoSide) {
			return // a plugin's
		}
		if err != nil || result.Code != 0 || !strings.Contains(out.String(), "posix-rename@openssh.com") || !strings.Contains(out.String(), task.TaskDir) {
			t.Errorf("sftp gives %+v, %v, %q, %q", result, err, out.String(), errOut.String())
		}
		out.Reset()
		spec.Command = []string{taskside.Dial, "tcp", "127.0.0.1:1"}
		result, err = d.Exec(ctx, task.ID, spec, driver.Streams{Stdout: &out, Stderr: &errOut})
		if err != nil || result.Code != 1 || out.Len() > 0 || !strings.Contains(errOut.String(), "refused") {
			t.Errorf("dial gives %+v, %v, %q", result, err, errOut.String())
		}
		spec.Command = []string{"/bin/sh"}
		if _, err := d.Exec(ctx, task.ID, spec, driver.Streams{}); err == nil {
			t.Error("any program is the driver's")
		}
	})
	t.Run("signal", func(t *testing.T) {
		task := hold(t, d)
		signals := make(chan string, 1)
		out := &trigger{text: "ready", then: func() { signals <- "SIGUSR2" }}
		result, err := d.Exec(ctx, task.ID, shell(`trap 'exit 8' USR2; echo ready; while :; do sleep 0.05; done`),
			driver.Streams{Stdout: out, Signals: signals})
		if err != nil || result.Code != 8 {
			t.Errorf("exec gives %+v, %v", result, err)
		}
	})
	t.Run("terminal", func(t *testing.T) {
		task := hold(t, d)
		resizes := make(chan driver.WindowSize, 1)
		spec := shell(`trap 'stty size; exit 3' WINCH; tty; stty size; echo ready; while :; do sleep 0.05; done`)
		spec.TTY, spec.Size = true, driver.WindowSize{Rows: 31, Cols: 77}
		out := &trigger{text: "ready", then: func() { resizes <- driver.WindowSize{Rows: 50, Cols: 132} }}
		result, err := d.Exec(ctx, task.ID, spec, driver.Streams{Stdout: out, Resize: resizes})
		if err != nil || result.Code != 3 {
			t.Errorf("exec gives %+v, %v", result, err)
		}
		text := out.String()
		if !strings.Contains(text, "/dev/pts/") || !strings.Contains(text, "31 77") || !strings.Contains(text, "50 132") {
			t.Errorf("terminal shows %q", text)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		task := hold(t, d)
		ctx, cancel := context.WithCancel(ctx)
		mark := markName + "=" + task.TaskDir
		found := 0
		out := &trigger{text: "ready", then: func() { found = len(processes(t, mark)); cancel() }}
		spec := shell(`echo ready; exec sleep 1000`)
		spec.Env = []string{mark}
		_, err := d.Exec(ctx, task.ID, spec, driver.Streams{Stdout: out})
		if !errors.Is(err, context.Canceled) || found != 1 {
			t.Errorf("exec gives %v, %d processes were found", err, found)
		}
		eventually.Within(t, limit, "command is gone", func() bool { return len(processes(t, mark)) == 0 })
	})
	t.Run("daemon lives on in the task and dies with it", func(t *testing.T) {
		task := hold(t, d)
		mark := markName + "=" + task.TaskDir
		spec := shell(`setsid sh -c 'exec sleep 1000 >/dev/null 2>&1' & sleep 0.2`)
		spec.Env = []string{mark}
		var out bytes.Buffer
		result, err := d.Exec(ctx, task.ID, spec, driver.Streams{Stdout: &out})
		if err != nil || result.Code != 0 {
			t.Fatalf("exec gives %+v, %v", result, err)
		}
		if n := len(processes(t, mark)); n != 1 {
			t.Errorf("%d daemons live, want 1", n)
		}
		if err := d.Stop(ctx, task.ID, "", time.Minute); err != nil {
			t.Fatal(err)
		}
		Wait(t, d, task.ID)
		assertGone(t, mark)
	})
	t.Run("in a task that has ended", func(t *testing.T) {
		spec := Shell(t, "true")
		Start(t, d, spec)
		Wait(t, d, spec.ID)
		if _, err := d.Exec(ctx, spec.ID, shell("true"), driver.Streams{}); !errors.Is(err, driver.ErrTaskEnded) {
			t.Errorf("exec gives %v", err)
		}
	})
}

// zeros is an endless input.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// trigger collects output and acts once when a text has appeared in it.
type trigger struct {
	text string
	then func()

	mu struct {
		sync.Mutex
		seen bytes.Buffer
		done bool
	}
}

func (w *trigger) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.seen.Write(p)
	if !w.mu.done && strings.Contains(w.mu.seen.String(), w.text) {
		w.mu.done = true
		w.then()
	}
	return len(p), nil
}

func (w *trigger) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mu.seen.String()
}
