package client

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/launch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// stray is a task that its driver knows and the store does not.
type stray struct {
	driver string
	handle driver.Handle
	doomed bool // it is being destroyed
}

// takeOver resumes what an earlier process of this agent left: allocations
// from the store, and tasks that only their drivers know of, which wait for
// the server's word. It runs before the session, so that the first Hello
// tells everything that may run here.
func (c *Client) takeOver(work context.Context) {
	states := c.loop.recovered
	c.loop.recovered = nil
	known := make(map[string]alloc.Phase, len(states))
	for _, s := range states {
		known[s.AllocID] = s.Phase
		if s.Phase.MayHaveProcesses() {
			r := c.runner(s.AllocID)
			r.driver, r.attempt = s.Driver, s.Attempt
		}
	}
	for name, d := range c.config.Drivers {
		lister, ok := d.(driver.Lister)
		if !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(work, listTimeout)
		handles, err := lister.List(ctx)
		cancel()
		if err != nil {
			c.log.Error("driver cannot list its tasks", logkey.Driver, name, logkey.Error, err)
			continue
		}
		for _, handle := range handles {
			if phase := known[allocOf(handle.TaskID)]; !phase.MayHaveProcesses() {
				c.log.Warn("task without a record is found", logkey.TaskID, handle.TaskID, logkey.Driver, name)
				c.loop.strays[handle.TaskID] = stray{driver: name, handle: handle}
			}
		}
	}
	c.add(c.loop.table.Resume(states, c.now()))
	for _, s := range states {
		if s.Phase == alloc.PhaseEnded {
			c.rememberHold(s)
		}
	}
	for id, s := range c.loop.strays {
		if phase := known[allocOf(id)]; phase == alloc.PhaseEnded || allocOf(id) == "" {
			c.destroyStray(work, s) // its end is known, or it is nobody's
		}
	}
	c.carryOut(work)
	c.publishInventory()
	if n := len(c.loop.table.Inventory()); n > 0 {
		c.log.Info("tasks of an earlier agent are taken over", logkey.Count, n)
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

// settleStrays takes the server's first full word on the tasks that nobody
// remembers: what is assigned goes on, the rest is destroyed.
func (c *Client) settleStrays(work context.Context, a *structs.Assignments) {
	if !a.Full {
		return
	}
	for id, s := range c.loop.strays {
		if s.doomed {
			continue
		}
		i := slices.IndexFunc(a.Set, func(one structs.Assignment) bool { return one.Alloc != nil && one.Alloc.ID == allocOf(id) })
		if i < 0 {
			c.destroyStray(work, s)
			continue
		}
		delete(c.loop.strays, id)
		r := c.runner(allocOf(id))
		r.driver, r.attempt = s.driver, a.Set[i].Alloc.Attempt
		c.add(c.loop.table.Adopt(&a.Set[i], s.handle, c.now()))
	}
}

// reopenShells listens again for ranks that were taken over, now that the
// server has said who their peers are.
func (c *Client) reopenShells(a *structs.Assignments) {
	for i := range a.Set {
		one := &a.Set[i]
		if one.Alloc == nil || one.Job == nil {
			continue
		}
		r := c.loop.runners[one.Alloc.ID]
		if r != nil {
			r.assigned.Store(one)
		}
		state, ok := c.loop.table.State(one.Alloc.ID)
		if r == nil || r.prepared != nil || !ok || !state.Phase.MayHaveProcesses() {
			continue
		}
		r.prepared = &prepared{shell: c.reopenShell(one), links: c.linksOf(one), guarded: one.Alloc.ID}
		r.devices = one.Alloc.Devices
		if by, err := c.ownerOfRunning(one); err == nil {
			c.guard(one, by)
		}
	}
	if a.Full {
		c.settleGuard()
	}
}

// destroyStray kills a task that nobody wants, and keeps it in the inventory
// until it is gone.
func (c *Client) destroyStray(work context.Context, s stray) {
	s.doomed = true
	c.loop.strays[s.handle.TaskID] = s
	d := c.config.Drivers[s.driver]
	c.work.Go(func() {
		retry := driverRetryFirst
		for {
			err := d.Recover(work, s.handle)
			if err == nil {
				err = d.Destroy(work, s.handle.TaskID)
			}
			if err == nil {
				c.post(func() {
					delete(c.loop.strays, s.handle.TaskID)
					c.publishInventory()
					c.session.Refresh()
				})
				return
			}
			if work.Err() == nil {
				c.log.Warn("destroy stray task", logkey.Driver, s.driver, logkey.TaskID, s.handle.TaskID, logkey.Error, err)
			}
			if !sleep(work, retry) {
				return
			}
			retry = min(2*retry, driverRetryMax)
		}
	})
}

// linksOf lists the links that the preparation of an assignment may have made.
func (c *Client) linksOf(a *structs.Assignment) []launch.Link {
	shared := c.sharedDir(a.Job)
	if shared == "" || len(a.Members) == 0 {
		return nil
	}
	return []launch.Link{{Path: path.Join(shared, a.Members[0].Name), Target: c.files.task(a.Alloc.ID)}}
}

// recoverTask finds a task again and then waits for its end.
func (c *Client) recoverTask(work context.Context, r *runner, handle *driver.Handle) {
	d, ok := c.config.Drivers[r.driver]
	if !ok && r.driver == "" {
		c.event(r.id, alloc.Absent{}) // nobody knows of anything to be found
		return
	}
	if !ok {
		// Its processes may live: it stays as it is until an agent comes that
		// has the driver.
		c.log.Error("driver of a running task is missing", logkey.AllocID, r.id, logkey.Driver, r.driver)
		return
	}
	retry := driverRetryFirst
	for {
		done, err := c.tryRecover(work, r, d, &handle)
		if done {
			return
		}
		if work.Err() == nil {
			c.log.Warn("recover task", logkey.AllocID, r.id, logkey.Error, err)
		}
		if !sleep(work, retry) {
			return
		}
		retry = min(2*retry, driverRetryMax)
	}
}

// tryRecover makes one attempt; it reports whether another one is of no use.
func (c *Client) tryRecover(work context.Context, r *runner, d driver.Driver, handle **driver.Handle) (done bool, err error) {
	if *handle == nil {
		found, err := findHandle(work, d, alloc.TaskID(r.id))
		if err != nil {
			return false, err
		}
		if found == nil {
			c.event(r.id, alloc.Absent{})
			return true, nil
		}
		*handle = found
	}
	err = d.Recover(work, **handle)
	switch {
	case err == nil:
		c.event(r.id, alloc.Started{Handle: **handle})
		c.waitTask(work, r, d, (*handle).TaskID, false)
		return true, nil
	case errors.Is(err, driver.ErrUnavailable), work.Err() != nil:
		return false, err
	case errors.Is(err, driver.ErrUnknownTask):
		c.event(r.id, alloc.Absent{})
		return true, nil
	default:
		c.event(r.id, alloc.Unrecoverable{Cause: structs.NewReason("client.driver_failed", "driver", r.driver, "cause", err)})
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

// leaseRecord is the lease as the file keeps it over a restart of the agent
// within one boot of the machine, in nanoseconds.
type leaseRecord struct {
	TTL  time.Duration `json:"ttl"`
	From time.Duration `json:"from"` // CLOCK_BOOTTIME
}

// checkLease kills strict allocations when the lease has ended, and keeps
// the lease for the next process of the agent while there are any.
func (c *Client) checkLease() {
	if !c.loop.table.HasStrict() {
		c.loop.leaseOver = false
		return
	}
	lease := c.keepLease()
	if lease.Remaining(c.config.Boottime()) > 0 {
		c.loop.leaseOver = false
		return
	}
	if !c.loop.leaseOver {
		c.loop.leaseOver = true
		c.log.Error("lease has ended: strict jobs are killed")
	}
	c.add(c.loop.table.EndLease(c.now()))
}

// keepLease writes the lease for the next process of the agent, and for strict
// tasks, while there are any, and gives it.
func (c *Client) keepLease() session.Lease {
	lease := c.session.Lease()
	if !c.loop.table.HasStrict() || lease.From == c.loop.leaseFrom {
		return lease
	}
	c.loop.leaseFrom = lease.From
	data, err := json.Marshal(leaseRecord{TTL: lease.TTL, From: lease.From})
	if err == nil {
		err = store.WriteFile(c.files.lease(), data, 0o600, false)
	}
	if err != nil {
		c.log.Error("lease is not stored", logkey.Error, err)
	}
	return lease
}

// restoreLease takes over the lease of an earlier process in this boot.
func (c *Client) restoreLease() {
	data, err := os.ReadFile(c.files.lease())
	if err != nil {
		return
	}
	var record leaseRecord
	if err := json.Unmarshal(data, &record); err != nil || record.TTL < 0 || record.From < 0 {
		c.log.Warn("stored lease cannot be read", logkey.Error, err)
		return
	}
	c.session.RestoreLease(session.Lease{TTL: record.TTL, From: record.From})
}
