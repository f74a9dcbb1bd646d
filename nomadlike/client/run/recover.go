package run

import (
	"context"
	"errors"
	"slices"
	"strings"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// stray is a task that its driver knows and the store does not.
type stray struct {
	driver string
	handle driver.Handle
	doomed bool // it is being destroyed
}

// TakeOver resumes what an earlier process of this agent left: allocations
// from the store, and tasks that only their drivers know of, which wait for
// the server's word. It runs before the session, so that the first Hello
// reports everything that may run here.
func (x *Runs) TakeOver(work context.Context, l *loop.Loop, states []alloc.State) {
	known := make(map[string]alloc.Phase, len(states))
	for _, s := range states {
		known[s.AllocID] = s.Phase
		if s.Phase.MayHaveProcesses() {
			r := x.runner(l, s.AllocID)
			r.Driver, r.Attempt = s.Driver, s.Attempt
		}
	}
	for name, d := range x.Drivers {
		lister, ok := d.(driver.Lister)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(work, listTimeout)
		handles, err := lister.List(ctx)
		cancel()
		if err != nil {
			x.Log.Error("driver cannot list its tasks", logkey.Driver, name, logkey.Error, err)
			continue
		}
		for _, handle := range handles {
			if phase := known[allocOf(handle.TaskID)]; !phase.MayHaveProcesses() {
				x.Log.Warn("task without a record is found", logkey.TaskID, handle.TaskID, logkey.Driver, name)
				x.strays[handle.TaskID] = stray{driver: name, handle: handle}
			}
		}
	}
	l.Resume(states)
	for _, s := range states {
		if s.Phase == alloc.PhaseEnded {
			x.Holds.Remember(s)
		}
	}
	for id, s := range x.strays {
		if phase := known[allocOf(id)]; phase == alloc.PhaseEnded || allocOf(id) == "" {
			x.destroyStray(work, s) // its end is known, or it is nobody's
		}
	}
	l.Execute(work)
	l.Publish()
	if n := len(l.MayRun()); n > 0 {
		x.Log.Info("tasks of an earlier agent are taken over", logkey.Count, n)
	}
}

// allocOf is the allocation whose task has the id, "" when it is none.
func allocOf(id driver.TaskID) string {
	name, ok := strings.CutSuffix(string(id), alloc.TaskSuffix)
	if !ok {
		return ""
	}
	return name
}

// SettleStrays takes the server's first full word on the tasks that nobody
// remembers: what is assigned goes on, the rest is destroyed.
func (x *Runs) SettleStrays(work context.Context, l *loop.Loop, a *structs.Assignments) {
	if !a.Full {
		return
	}
	for id, s := range x.strays {
		if s.doomed {
			continue
		}
		i := slices.IndexFunc(a.Set, func(one structs.Assignment) bool { return one.Alloc != nil && one.Alloc.ID == allocOf(id) })
		if i < 0 {
			x.destroyStray(work, s)
			continue
		}
		delete(x.strays, id)
		r := x.runner(l, allocOf(id))
		r.Driver, r.Attempt = s.driver, a.Set[i].Alloc.Attempt
		l.Adopt(&a.Set[i], s.handle)
	}
}

// Reopen listens again for ranks that were taken over, now that the
// server has said who their peers are.
func (x *Runs) Reopen(work context.Context, l *loop.Loop, a *structs.Assignments) {
	for i := range a.Set {
		one := &a.Set[i]
		if one.Alloc == nil || one.Job == nil {
			continue
		}
		r := x.runners[one.Alloc.ID]
		if r != nil {
			r.Assigned.Store(one)
		}
		state, ok := l.State(one.Alloc.ID)
		if r == nil || r.prepared != nil || !ok || !state.Phase.MayHaveProcesses() {
			continue
		}
		r.prepared, r.Devices = x.Preparer.Reopen(one), one.Alloc.Devices
		remask(work, x, r, one.Job)
	}
	if a.Full {
		x.Preparer.Guard.Settle()
	}
}

// remask has the driver of a task that was taken over told again what its logs do not
// hold.
func remask(work context.Context, x *Runs, r *runner, job *structs.Job) {
	masker, ok := x.Drivers[r.Driver].(driver.Masker)
	if !ok || !job.Task.HoldsSecrets() {
		return
	}
	x.Work.Go(func() {
		ctx, cancel := r.While(work, x.Work)
		defer cancel()
		err := x.Secrets.Remask(ctx, r.ID, func(ctx context.Context, mask []structs.Mask) error {
			return masker.Mask(ctx, alloc.TaskID(r.ID), mask)
		})
		if err != nil && ctx.Err() == nil && !errors.Is(err, driver.ErrUnsupported) {
			x.Log.Error("driver is not told what logs of a task do not hold", logkey.AllocID, r.ID, logkey.Error, err)
		}
	})
}

// destroyStray kills a task that nobody wants, and keeps it in the inventory
// until it is gone.
func (x *Runs) destroyStray(work context.Context, s stray) {
	s.doomed = true
	x.strays[s.handle.TaskID] = s
	d := x.Drivers[s.driver]
	x.Work.Go(func() {
		pause := retry.First
		for {
			err := d.Recover(work, s.handle)
			if err == nil {
				err = d.Destroy(work, s.handle.TaskID)
			}
			if err == nil {
				x.Inbox.Post(func(l *loop.Loop) {
					delete(x.strays, s.handle.TaskID)
					l.Publish()
					x.Refresh()
				})
				return
			}
			if work.Err() == nil {
				x.Log.Warn("destroy stray task", logkey.Driver, s.driver, logkey.TaskID, s.handle.TaskID, logkey.Error, err)
			}
			if !retry.Sleep(work, pause) {
				return
			}
			pause = min(2*pause, retry.Most)
		}
	})
}

// recoverTask finds a task again and then waits for its end.
func (x *Runs) recoverTask(work context.Context, r *runner, handle *driver.Handle) {
	d, ok := x.Drivers[r.Driver]
	if !ok && r.Driver == "" {
		x.Inbox.Event(r.ID, alloc.Absent{}) // nobody knows of anything to be found
		return
	}
	if !ok {
		// Its processes may live: it stays as it is until an agent comes that
		// has the driver.
		x.Log.Error("driver of a running task is missing", logkey.AllocID, r.ID, logkey.Driver, r.Driver)
		return
	}
	pause := retry.First
	for {
		done, err := x.tryRecover(work, r, d, &handle)
		if done {
			return
		}
		if work.Err() == nil {
			x.Log.Warn("recover task", logkey.AllocID, r.ID, logkey.Error, err)
		}
		if !retry.Sleep(work, pause) {
			return
		}
		pause = min(2*pause, retry.Most)
	}
}

// tryRecover makes one attempt; it reports whether another one is of no use.
func (x *Runs) tryRecover(work context.Context, r *runner, d driver.Driver, handle **driver.Handle) (done bool, err error) {
	if *handle == nil {
		found, err := findHandle(work, d, alloc.TaskID(r.ID))
		if err != nil {
			return false, err
		}
		if found == nil {
			x.Inbox.Event(r.ID, alloc.Absent{})
			return true, nil
		}
		*handle = found
	}
	err = d.Recover(work, **handle)
	switch {
	case err == nil:
		x.Inbox.Event(r.ID, alloc.Started{Handle: **handle})
		x.waitTask(work, r, d, (*handle).TaskID, false)
		return true, nil
	case errors.Is(err, driver.ErrUnavailable), work.Err() != nil:
		return false, err
	case errors.Is(err, driver.ErrUnknownTask):
		x.Inbox.Event(r.ID, alloc.Absent{})
		return true, nil
	default:
		x.Inbox.Event(r.ID, alloc.Unrecoverable{Cause: structs.NewReason("client.driver_failed", "driver", r.Driver, "cause", err)})
		return true, nil
	}
}

// findHandle asks a driver for a task by its id, nil when it has none. A
// driver that cannot list its tasks never had one that was not stored.
func findHandle(ctx context.Context, d driver.Driver, id driver.TaskID) (*driver.Handle, error) {
	lister, ok := d.(driver.Lister)
	if !ok {
		return nil, nil
	}
	handles, err := lister.List(ctx)
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(handles, func(h driver.Handle) bool { return h.TaskID == id }); i >= 0 {
		return &handles[i], nil
	}
	return nil, nil
}
