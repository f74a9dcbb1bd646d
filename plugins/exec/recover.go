package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/proctree"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

// Bounds of killing what a dead supervisor left.
const (
	sweepPause    = 5 * time.Millisecond
	sweepPatience = 10 * time.Second
)

func bootID() (string, error) { return proctree.BootID() }

// Recover takes over a task of an earlier agent.
func (d *Driver) Recover(_ context.Context, handle driver.Handle) error {
	if handle.Version < 1 || handle.Version > driver.HandleVersion || handle.Driver != Name ||
		!driver.ValidTaskID(handle.TaskID) || len(handle.State) > driver.HandleStateMax {
		return fmt.Errorf("recover task %q: handle is not one of this driver", handle.TaskID)
	}
	t := newTask(d, handle.TaskID)
	if err := d.known.Add(t.id, t); err != nil {
		if errors.Is(err, driver.ErrTaskExists) {
			return nil
		}
		return err
	}
	t.load(handle)
	if !d.known.Go(func() { t.watch(nil) }) {
		d.known.Forget(t.id)
		return fmt.Errorf("recover task %s: %w", t.id, driver.ErrUnavailable)
	}
	return nil
}

// load gets the state of a task from its record, or else from the handle.
func (t *task) load(handle driver.Handle) {
	record, err := supervisor.ReadRecord(t.home.dir, string(t.id))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.home.log.Warn("record cannot be read", logkey.TaskID, t.id, logkey.Error, err)
	}
	state := record.State
	if state == nil && len(handle.State) > 0 {
		if state, err = supervisor.DecodeState(handle.State); err != nil {
			state = nil
		}
	}
	if state == nil || state.TaskID != string(t.id) {
		// Nothing is known but the id; it is part of the marker.
		state = &supervisor.State{TaskID: string(t.id), BootID: t.home.bootID}
	}
	if state.Marker == "" || !strings.HasPrefix(state.Marker, string(t.id)+":") {
		state.Marker = string(t.id) + ":"
	}
	t.state = *state
}

// sweep kills what the supervisor of this task left behind when it died, and
// returns how many processes that were and the ids of those that remain.
func (t *task) sweep() (killed int, unkillable []int) {
	if t.state.BootID != t.home.bootID {
		return 0, nil // the machine was restarted since
	}
	seen := make(map[int]bool)
	deadline := time.Now().Add(sweepPatience)
	for {
		left := t.leftovers(t.home.cgroups.kill(t.state.Marker))
		for _, p := range left {
			seen[p.PID] = true
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // gone meanwhile, or found again in the next pass
		}
		if len(left) == 0 || time.Now().After(deadline) {
			for _, p := range left {
				unkillable = append(unkillable, p.PID)
			}
			t.home.cgroups.remove(t.state.Marker)
			return len(seen), unkillable
		}
		time.Sleep(sweepPause)
	}
}

// leftovers lists living processes of the task: those in its cgroups, those
// with its marker in their environment, those in the session or group of its
// command, and all their descendants.
func (t *task) leftovers(members []int) []proctree.Process {
	all, err := proctree.All()
	if err != nil {
		t.home.log.Error("processes cannot be listed", logkey.TaskID, t.id, logkey.Error, err)
		return nil
	}
	command := t.state.Command
	reused := false // somebody else has the command's id, so maybe its session too
	for _, p := range all {
		if command.PID != 0 && p.PID == command.PID && p.StartTicks != command.StartTicks {
			reused = true
		}
	}
	marker := supervisor.MarkerEnv + "=" + t.state.Marker
	ours := make(map[int]bool)
	for _, p := range all {
		if p.PID == os.Getpid() || p.StartTicks < t.state.Supervisor.StartTicks {
			continue // older than the task
		}
		related := command.PID != 0 && !reused && (p.Session == command.PID || p.Group == command.PID)
		ours[p.PID] = related || slices.Contains(members, p.PID) || proctree.HasEnv(p.PID, marker)
	}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !ours[p.PID] && ours[p.Parent] {
				ours[p.PID], grown = true, true
			}
		}
	}
	var left []proctree.Process
	for _, p := range all {
		if ours[p.PID] && !p.Dead() {
			left = append(left, p)
		}
	}
	return left
}
