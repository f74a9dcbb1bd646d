package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
)

// realExec is the exec driver with supervisors that are this test binary.
func realExec(t *testing.T, dir string) *exec.Driver {
	t.Helper()
	d, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// cleanUp destroys every task below dir, whoever started it.
func cleanUp(t *testing.T, dir string) {
	t.Helper()
	t.Cleanup(func() {
		d := realExec(t, dir)
		handles, err := d.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, handle := range handles {
			if err := d.Recover(context.Background(), handle); err != nil {
				t.Error(err)
			}
			if err := d.Destroy(context.Background(), handle.TaskID); err != nil {
				t.Error(err)
			}
		}
	})
}

func wantStatus(t *testing.T, c *control, id string, status structs.AllocStatus) structs.AllocReport {
	t.Helper()
	eventually.Within(t, time.Minute, fmt.Sprintf("%s is reported %s", id, status), func() bool {
		last := c.last(id)
		if last.Status.Terminal() && last.Status != status {
			t.Fatalf("%s ended, and was to be %s: %+v, because of %+v", id, status, last, last.Cause)
		}
		return last.Status == status
	})
	return c.last(id)
}

// wantEnd waits for the last report of an allocation.
func wantEnd(t *testing.T, c *control, id string) structs.AllocReport {
	t.Helper()
	eventually.Within(t, time.Minute, id+" ends", func() bool { return c.last(id).Status.Terminal() })
	return c.last(id)
}

func logText(t *testing.T, dir, id, stream string) string {
	t.Helper()
	var text bytes.Buffer
	err := tasklog.Read(context.Background(), tasklog.Request{Dir: layout.Layout{Root: dir}.Logs(id), Stream: stream}, func(chunk tasklog.Chunk) error {
		text.Write(chunk.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

func TestKilledAgentTakesItsTasksBack(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	server := c.listen(t)
	cleanUp(t, dir)
	kill := agent(t, dir, server)
	gate := t.TempDir()
	wait := func(name string) string {
		return fmt.Sprintf("sh -c 'echo before; touch %[1]s/%[2]s.started; while [ ! -e %[1]s/%[2]s ]; do sleep 0.01; done; echo after; touch %[1]s/%[2]s.ended; exit 7'", gate, name)
	}
	open := func(name string) {
		if err := os.WriteFile(filepath.Join(gate, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	exists := func(name string) func() bool {
		return func() bool {
			_, err := os.Stat(filepath.Join(gate, name))
			return err == nil
		}
	}
	a, b := gang("later", 1, wait("later"), "n1")[0], gang("meanwhile", 1, wait("meanwhile"), "n1")[0]
	c.assign(a, b)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	wantStatus(t, c, b.Alloc.ID, structs.AllocRunning)
	eventually.Within(t, time.Minute, "both run", func() bool { return exists("later.started")() && exists("meanwhile.started")() })

	kill()
	open("meanwhile")
	eventually.Within(t, time.Minute, "a task ends without an agent", exists("meanwhile.ended"))
	begun := time.Now()
	agent(t, dir, server)
	r := wantStatus(t, c, b.Alloc.ID, structs.AllocFailed)
	t.Logf("exit code of a task that ended meanwhile is known %s after the start of the agent's process", time.Since(begun))
	if r.ExitCode != 7 || r.Infra || r.Cause.ID != "client.task_exit" {
		t.Fatalf("report %+v", r)
	}
	inventories := c.inventories()
	if n := len(inventories[len(inventories)-1]); n < 1 || n > 2 {
		t.Fatalf("inventory of the new agent: %+v", inventories[len(inventories)-1])
	}
	open("later")
	if r := wantStatus(t, c, a.Alloc.ID, structs.AllocFailed); r.ExitCode != 7 {
		t.Fatalf("report %+v", r)
	}
	for _, id := range []string{a.Alloc.ID, b.Alloc.ID} {
		if got := logText(t, dir, id, "stdout"); got != "before\nafter\n" {
			t.Errorf("log of %s: %q", id, got)
		}
	}
}

// TestAgentKilledAtAnyMoment kills the agent again and again while jobs are
// being placed: no job runs twice, its end is told, and one that was killed
// with the agent in the moment of its start is blamed on the node.
func TestAgentKilledAtAnyMoment(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	server := c.listen(t)
	cleanUp(t, dir)
	ran := t.TempDir()
	const rounds = 15
	random := rand.New(rand.NewPCG(1, 2))
	var all []*structs.Assignment
	for round := range rounds {
		kill := agent(t, dir, server)
		known := len(c.inventories())
		eventually.Within(t, time.Minute, "agent registers", func() bool { return len(c.inventories()) > known-1 && c.connected() })
		var batch []*structs.Assignment
		for i := range 3 {
			name := fmt.Sprintf("job%d-%d", round, i)
			batch = append(batch, gang(name, 1, fmt.Sprintf("sh -c 'echo x >> %s/%s; sleep 0.0%d; exit %d'", ran, name, i, i), "n1")...)
		}
		c.assign(batch...)
		all = append(all, batch...)
		timer := time.NewTimer(time.Duration(random.IntN(300)) * time.Millisecond) // isolated starts take tens
		<-timer.C
		kill()
	}
	agent(t, dir, server)
	interrupted := 0
	for i, a := range all {
		eventually.Within(t, time.Minute, a.Alloc.JobName+" ends", func() bool { return c.last(a.Alloc.ID).Status.Terminal() })
		text, err := os.ReadFile(filepath.Join(ran, a.Alloc.JobName))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
		r := c.last(a.Alloc.ID)
		if r.Infra && r.Status == structs.AllocFailed && len(text) <= 2 {
			interrupted++ // in the moment of its start: the server tries again elsewhere
			continue
		}
		if string(text) != "x\n" || r.ExitCode != i%3 {
			t.Errorf("%s ran %q, report %+v, cause %+v", a.Alloc.JobName, text, r, r.Cause)
		}
	}
	t.Logf("%d of %d jobs were interrupted in the moment of their start", interrupted, len(all))
	if interrupted == len(all) {
		t.Error("no job came through")
	}
}

func (c *control) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.streams) > 0
}

func TestRealOutcomes(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	for _, one := range []struct {
		name, command string
		change        func(*structs.Assignment)
		status        structs.AllocStatus
		code, signal  int
		infra         bool
		cause         string
	}{
		{name: "good", command: "true", status: structs.AllocComplete},
		{name: "bad", command: "sh -c 'exit 3'", status: structs.AllocFailed, code: 3, cause: "client.task_exit"},
		{name: "missing", command: "no-such-command", status: structs.AllocFailed, code: 127, cause: "driver.command_not_found"},
		{name: "killed", command: "sh -c 'kill -9 $$'", status: structs.AllocFailed, code: 137, signal: 9, cause: "client.task_signal"},
		{name: "unreadable", command: "sh -c 'open", status: structs.AllocFailed, cause: "launch.command_unreadable"},
		{
			name: "dir", command: "true", change: func(a *structs.Assignment) { a.Job.Task.Dir = "/no/such/dir" },
			status: structs.AllocFailed, code: 126, cause: "driver.dir_missing",
		},
		{
			name: "user", command: "true", change: func(a *structs.Assignment) { a.Job.Task.User = "nobody-at-all" },
			status: structs.AllocFailed, cause: "driver.user_unknown",
		},
		{
			name: "driver", command: "true", change: func(a *structs.Assignment) { a.Job.Task.Driver = "docker" },
			status: structs.AllocFailed, infra: true, cause: "client.driver_missing",
		},
	} {
		t.Run(one.name, func(t *testing.T) {
			a := gang(one.name, 1, one.command, "n1")[0]
			if one.change != nil {
				one.change(a)
			}
			c.assign(a)
			r := wantStatus(t, c, a.Alloc.ID, one.status)
			cause := ""
			if r.Cause != nil {
				cause = r.Cause.ID
			}
			if r.ExitCode != one.code || r.Signal != one.signal || r.Infra != one.infra || cause != one.cause {
				t.Fatalf("report %+v cause %s", r, cause)
			}
			if ran := slices.Contains([]string{"good", "bad", "killed"}, one.name); ran != (r.StartedAt != 0) {
				t.Errorf("it ran: %v, started at %d", ran, r.StartedAt)
			}
		})
	}
}

func TestPortThatIsTakenIsTheNodesFault(t *testing.T) {
	dir := tempDir(t)
	c := newControl()
	cleanUp(t, dir)
	c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
	port := listenSomewhere(t)
	a := gang("port", 1, "true", "n1")[0]
	a.Alloc.Ports = map[string]int{"master": port}
	c.assign(a)
	if r := wantStatus(t, c, a.Alloc.ID, structs.AllocFailed); !r.Infra || r.Cause.ID != "client.port_taken" || r.Cause.Params["name"] != "master" {
		t.Fatalf("report %+v", r)
	}
}

func TestLostStoreIsRebuilt(t *testing.T) {
	for _, damage := range []string{"removed", "overwritten", "cut"} {
		t.Run(damage, func(t *testing.T) {
			dir := tempDir(t)
			c := newControl()
			cleanUp(t, dir)
			_, stop := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
			kept, dropped := gang("kept", 1, "sleep 100", "n1")[0], gang("dropped", 1, "sleep 100", "n1")[0]
			c.assign(kept, dropped)
			wantStatus(t, c, kept.Alloc.ID, structs.AllocRunning)
			wantStatus(t, c, dropped.Alloc.ID, structs.AllocRunning)
			stop()
			path := filepath.Join(dir, "allocs.db")
			var err error
			switch damage {
			case "removed":
				err = os.Remove(path)
			case "overwritten":
				err = os.WriteFile(path, []byte(strings.Repeat("garbage", 10_000)), 0o600)
			case "cut":
				err = os.Truncate(path, 5000)
			}
			if err != nil {
				t.Fatal(err)
			}
			c.forget(dropped.Alloc.ID)
			n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": realExec(t, dir)})
			// The first Hello tells both, the last one that one is gone.
			eventually.Within(t, time.Minute, "the task that nobody wants is gone", func() bool {
				inventories := c.inventories()
				last := inventories[len(inventories)-1]
				return len(last) == 1 && last[0].AllocID == kept.Alloc.ID
			})
			if told := c.inventories(); !slices.ContainsFunc(told[1:], func(i []structs.InventoryItem) bool { return len(i) == 2 }) {
				t.Errorf("inventories %v", told)
			}
			var phase alloc.Phase
			if err := n.inbox.Ask(context.Background(), func(l *loop.Loop) {
				s, _ := l.State(kept.Alloc.ID)
				phase = s.Phase
			}); err != nil || phase != alloc.PhaseRunning {
				t.Fatalf("%s %v", phase, err)
			}
			handles, err := n.config.Drivers["exec"].(driver.Lister).List(context.Background())
			if err != nil || len(handles) != 1 || handles[0].TaskID != alloc.TaskID(kept.Alloc.ID) {
				t.Errorf("the driver has %v %v", handles, err)
			}
		})
	}
}
