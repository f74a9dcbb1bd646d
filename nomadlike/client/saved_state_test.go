package client

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec"
)

// savingDriver runs processes, and says that it saves what they left.
type savingDriver struct {
	*exec.Driver
	mu struct {
		sync.Mutex
		acts []string
	}
}

func (d *savingDriver) note(act string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.acts = append(d.mu.acts, act)
}

func (d *savingDriver) acts() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.mu.acts)
}

// SaveState implements driver.StateSaver.
func (d *savingDriver) SaveState(_ context.Context, id driver.TaskID) (string, error) {
	d.note("keep " + string(id))
	return "sha256:1", nil
}

// DropState implements driver.StateSaver.
func (d *savingDriver) DropState(_ context.Context, id driver.TaskID) error {
	d.note("drop " + string(id))
	return nil
}

// TestStateIsSaved: what a command left is saved when it failed by itself and may
// be held, and removed with the hold, or when there is none.
func TestStateIsSaved(t *testing.T) {
	dir := tempDir(t)
	inner, err := exec.New(exec.Config{StateDir: filepath.Join(dir, "exec"), Supervisor: []string{os.Args[0], "task-supervisor"}, Logger: testLogger(t), Isolation: exec.IsolationRaw})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { inner.Close() })
	cleanUp(t, dir)
	d := &savingDriver{Driver: inner}
	c := newControl()
	n, _ := c.node(t, dir, "n1", map[string]driver.Driver{"exec": d})
	start := func(name, command string, debug bool) *structs.Assignment {
		a := gang(name, 1, command, "n1")[0]
		if debug {
			a.Job.Debug = &structs.Debug{Hold: structs.Duration(time.Hour)}
		}
		c.assign(a)
		return a
	}
	well, plain, stopped := start("well", "true", true), start("plain", "false", false), start("stopped", "sleep 60", true)
	wantEnd(t, c, well.Alloc.ID)
	wantEnd(t, c, plain.Alloc.ID)
	wantStatus(t, c, stopped.Alloc.ID, structs.AllocRunning)
	c.change(stopped.Alloc.ID, func(a *structs.Allocation) { a.Desired = structs.DesiredStop })
	wantEnd(t, c, stopped.Alloc.ID)

	held := start("held", "false", true)
	wantEnd(t, c, held.Alloc.ID)
	hold := structs.Hold{For: structs.Duration(time.Hour)}
	c.change(held.Alloc.ID, func(a *structs.Allocation) { a.Status, a.Hold = structs.AllocFailed, &hold })
	enter(t, n, held, "true")
	if got, want := d.acts(), []string{"keep " + string(alloc.TaskID(held.Alloc.ID))}; !slices.Equal(got, want) {
		t.Fatalf("acts %q, want %q", got, want)
	}
	over := hold
	over.Over = true
	c.change(held.Alloc.ID, func(a *structs.Allocation) { a.Hold = &over })
	eventually.Within(t, time.Minute, "what was held is dropped", func() bool {
		return slices.Equal(d.acts(), []string{"keep " + string(alloc.TaskID(held.Alloc.ID)), "drop " + string(alloc.TaskID(held.Alloc.ID))})
	})

	retried := start("retried", "false", true)
	wantEnd(t, c, retried.Alloc.ID)
	eventually.Within(t, time.Minute, "what a failed one left is saved", func() bool { _, ok := n.holds.SavedState(retried.Alloc.ID); return ok })
	n.holds.DropState(t.Context(), retried.Alloc.ID) // as the sweep does
	if acts := d.acts(); len(acts) != 4 || acts[3] != "drop "+string(alloc.TaskID(retried.Alloc.ID)) {
		t.Errorf("acts %q", acts)
	}
	n.holds.DropState(t.Context(), retried.Alloc.ID)
	if acts := d.acts(); len(acts) != 4 {
		t.Errorf("dropped twice: %q", acts)
	}
}
