package client

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// holdNotes lists what a node told of the hold of an allocation.
func (c *control) holdNotes(id string) []structs.HoldNote {
	c.mu.Lock()
	defer c.mu.Unlock()
	var notes []structs.HoldNote
	for _, note := range c.mu.notes {
		if note.AllocID == id && note.Hold != nil {
			notes = append(notes, *note.Hold)
		}
	}
	return notes
}

// enter runs a command in a held allocation, as soon as it can be entered.
func enter(t *testing.T, n *Client, a *structs.Assignment, command ...string) string {
	t.Helper()
	var out string
	eventually.Within(t, time.Minute, "the hold can be entered", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		stdout, _, exit, err := runExec(t, openExec(ctx, n, service.Caller{Role: service.RoleServer, ID: "s1"}), &structs.ExecStart{AllocID: a.Alloc.ID, Attempt: a.Alloc.Attempt, Command: command}, "")
		out = stdout
		return err == nil && exit != nil && exit.Code == 0
	})
	return out
}

// TestDebugHold: a failed allocation that the servers hold is entered with its
// files and environment, loses its devices when told, and is gone in the end.
func TestDebugHold(t *testing.T) {
	for _, isolation := range []string{exec.IsolationRaw, exec.IsolationAuto} {
		t.Run(isolation, func(t *testing.T) {
			c := newControl()
			dir, n := nodeWithData(t, c, isolation, "", nil)
			a := gang("failing", 1, `sh -c "echo left >trace; exit 3"`, "n1")[0]
			a.Job.Debug = &structs.Debug{Hold: structs.Duration(time.Hour)}
			a.Job.Task.Env = map[string]string{"SECRET_OF_JOB": "42"}
			c.assign(a)
			if r := wantEnd(t, c, a.Alloc.ID); r.Status != structs.AllocFailed || r.ExitCode != 3 {
				t.Fatalf("report %+v", r)
			}
			hold := structs.Hold{For: structs.Duration(time.Hour)}
			c.change(a.Alloc.ID, func(a *structs.Allocation) {
				a.Status, a.Hold = structs.AllocFailed, &hold
			})
			if got := enter(t, n, a, "sh", "-c", "cat trace; echo $SECRET_OF_JOB; echo more >by-hand"); got != "left\n42\n" {
				t.Errorf("in the hold: %q", got)
			}
			freed := hold
			freed.Freed = true
			c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Hold = &freed })
			eventually.Within(t, time.Minute, "devices are let go", func() bool { return len(c.holdNotes(a.Alloc.ID)) == 1 })
			if got := enter(t, n, a, "cat", "by-hand"); got != "more\n" {
				t.Errorf("after the devices went: %q", got)
			}
			over := freed
			over.Over = true
			c.change(a.Alloc.ID, func(a *structs.Allocation) { a.Hold = &over })
			eventually.Within(t, time.Minute, "the hold is over", func() bool {
				notes := c.holdNotes(a.Alloc.ID)
				return len(notes) > 0 && notes[len(notes)-1].Over
			})
			handles, err := n.config.Drivers["exec"].(*exec.Driver).List(t.Context())
			if err != nil || len(handles) != 0 {
				t.Errorf("left over: %v %v", handles, err)
			}
			if left, err := filepath.Glob(layout.Layout{Root: dir}.Hold(a.Alloc.ID)); err != nil || len(left) != 0 {
				t.Errorf("record left: %v %v", left, err)
			}
		})
	}
}

// TestDebugHoldEndsByTime: and a hold that cannot be made says why.
func TestDebugHoldEndsByTime(t *testing.T) {
	c := newControl()
	nodeWithData(t, c, exec.IsolationRaw, "", nil)
	a, b := gang("short", 1, "false", "n1")[0], gang("impossible", 1, "false", "n1")[0]
	a.Job.Debug = &structs.Debug{Hold: structs.Duration(time.Second)}
	c.assign(a, b) // b did not ask for a hold, so nothing was kept for one
	wantEnd(t, c, a.Alloc.ID)
	wantEnd(t, c, b.Alloc.ID)
	for _, one := range []*structs.Assignment{a, b} {
		c.change(one.Alloc.ID, func(a *structs.Allocation) {
			a.Status, a.Hold = structs.AllocFailed, &structs.Hold{For: structs.Duration(time.Second)}
		})
	}
	for _, one := range []*structs.Assignment{a, b} {
		eventually.Within(t, time.Minute, "it ends", func() bool { return len(c.holdNotes(one.Alloc.ID)) == 1 })
	}
	if note := c.holdNotes(a.Alloc.ID)[0]; !note.Over || note.Cause != nil {
		t.Errorf("told %+v", note)
	}
	if note := c.holdNotes(b.Alloc.ID)[0]; !note.Over || note.Cause == nil || !strings.Contains(note.Cause.Params["cause"], "hold-task.json") {
		t.Errorf("told %+v", note)
	}
}
