package client

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/exec"
)

func hookText(t *testing.T, dir, id string) string {
	t.Helper()
	var text bytes.Buffer
	err := tasklog.Read(context.Background(), tasklog.Request{Dir: layout.Layout{Root: dir}.HookLogs(id), Stream: tasklog.Stdout}, func(chunk tasklog.Chunk) error {
		text.Write(chunk.Data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// toldHooks lists the events of hooks of an allocation.
func (c *control) toldHooks(id string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var events []string
	for _, note := range c.mu.notes {
		if note.AllocID == id && note.Told != nil {
			events = append(events, strings.TrimPrefix(note.Told.Event, "event.alloc.hook_")+" "+note.Told.Params["when"])
		}
	}
	return events
}

// TestHooks runs every kind of script around a command that ends by itself and
// around one that is stopped, with and without views of their own.
func TestHooks(t *testing.T) {
	for _, isolation := range []string{exec.IsolationRaw, exec.IsolationAuto} {
		t.Run(isolation, func(t *testing.T) {
			c := newControl()
			dir, _ := nodeWithData(t, c, isolation, "", nil)
			gate := t.TempDir()
			hooks := []structs.Hook{
				{When: "prestart", Command: `sh -c "echo one >first; echo before $NOMADLIKE_RANK"`},
				{When: "prestart", Command: "cat first"},
				{When: "poststart", Command: fmt.Sprintf(`sh -c "echo beside; touch %s/beside-$NOMADLIKE_JOB_NAME"`, gate)},
				{When: "prestop", Command: `sh -c "echo stopping; exit 3"`},
				{When: "poststop", Command: `sh -c "echo code $NOMADLIKE_EXIT_CODE; cat first"`},
			}
			wait := func(name string) string {
				return fmt.Sprintf(`sh -c "while [ ! -e %s/%s ]; do sleep 0.01; done; exit 4"`, gate, name)
			}
			ends, stopped := gang("ends", 1, wait("beside-ends"), "n1")[0], gang("stopped", 1, wait("never"), "n1")[0]
			ends.Job.Task.Hooks, stopped.Job.Task.Hooks = hooks, hooks
			c.assign(ends, stopped)
			r := wantEnd(t, c, ends.Alloc.ID)
			if r.Status != structs.AllocFailed || r.ExitCode != 4 {
				t.Errorf("report %+v", r)
			}
			text := hookText(t, dir, ends.Alloc.ID)
			for _, want := range []string{"before 0\n", "one\n", "beside\n", "code 4\none\n", "[nomadlike: hook poststop: sh -c "} {
				if !strings.Contains(text, want) {
					t.Errorf("scripts wrote %q, not %q", text, want)
				}
			}
			if got := c.toldHooks(ends.Alloc.ID); len(got) < 3 || got[0] != "done prestart" || got[1] != "done prestart" || !slices.Contains(got, "done poststop") {
				t.Errorf("notes %q", got)
			}
			eventually.Within(t, time.Minute, "poststart runs", func() bool {
				_, err := os.Stat(filepath.Join(gate, "beside-stopped"))
				return err == nil
			})
			c.change(stopped.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
			r = wantEnd(t, c, stopped.Alloc.ID)
			if got := c.toldHooks(stopped.Alloc.ID); r.Status != structs.AllocKilled || !slices.Contains(got, "failed prestop") || !slices.Contains(got, "done poststop") {
				t.Errorf("report %+v, notes %q", r, got)
			}
			if _, err := os.Stat(layout.Layout{Root: dir}.HookTaskLogs(ends.Alloc.ID)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestHooksThatFail: a script before the start that fails, or takes too long,
// ends the allocation, and the command is never run; one after a kill is left
// out.
func TestHooksThatFail(t *testing.T) {
	c := newControl()
	dir, _ := nodeWithData(t, c, exec.IsolationRaw, "", nil)
	ran := filepath.Join(t.TempDir(), "ran")
	for name, want := range map[string]struct{ command, cause string }{
		"fails":  {`sh -c "echo no such data >&2; exit 9"`, "client.hook_failed"},
		"long":   {"sleep 60", "client.hook_timeout"},
		"absent": {"/no/such/program", "client.hook_failed"},
	} {
		a := gang(name, 1, "touch "+ran, "n1")[0]
		a.Job.Task.Hooks = []structs.Hook{{When: "prestart", Command: want.command, Timeout: structs.Duration(2 * time.Second)}, {When: "poststop", Command: "true"}}
		c.assign(a)
		r := wantEnd(t, c, a.Alloc.ID)
		if r.Status != structs.AllocFailed || r.Infra || r.Cause == nil || r.Cause.ID != want.cause {
			t.Errorf("%s: report %+v, cause %+v", name, r, r.Cause)
		}
		if name == "fails" && (r.Cause.Params["code"] != "9" || r.Cause.Params["output"] != "no such data") {
			t.Errorf("%s: cause %+v", name, r.Cause)
		}
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command was run all the same")
	}
	a := gang("killed", 1, "sleep 60", "n1")[0]
	a.Job.StopGrace = 0
	a.Job.Task.Hooks = []structs.Hook{{When: "poststop", Command: "sh -c 'echo late'"}, {When: "prestart", Command: "true"}}
	c.assign(a)
	wantStatus(t, c, a.Alloc.ID, structs.AllocRunning)
	c.forget(a.Alloc.ID)
	c.pushGone(a.Alloc.ID)
	wantEnd(t, c, a.Alloc.ID)
	if text := hookText(t, dir, a.Alloc.ID); strings.Contains(text, "late") {
		t.Errorf("after a kill: %q", text)
	}
}
