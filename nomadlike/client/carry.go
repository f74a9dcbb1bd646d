package client

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Patience with drivers.
const (
	driverRetryFirst = 100 * time.Millisecond
	driverRetryMax   = 5 * time.Second
	listTimeout      = 2 * time.Second
)

// runner is what the loop holds of an allocation that is at work here: the
// things that are not data. Its fields are set by the loop's goroutine, or by
// the one goroutine of the allocation that the loop waits for.
type runner struct {
	id       string
	attempt  uint64
	watcher  *watcher                           // of its task; nil before the task runs
	assigned atomic.Pointer[structs.Assignment] // the server's newest word, for the watcher
	cancel   context.CancelFunc                 // of its preparation; nil without
	prepared *prepared                          // nil before
	driver   string
	devices  []string      // ids of the devices that it holds
	ended    chan struct{} // closed when the allocation has ended
	steering *steering     // carries out what people want of its command; nil before they want anything
}

func (c *Client) runner(id string) *runner {
	r, ok := c.loop.runners[id]
	if !ok {
		r = &runner{id: id, ended: make(chan struct{})}
		c.loop.runners[id] = r
	}
	return r
}

// carryOut does what the table asked for: the states go to the store first,
// in one transaction, then every effect in its order.
func (c *Client) carryOut(work context.Context) {
	if len(c.loop.effects) == 0 && len(c.loop.unsaved) == 0 {
		return
	}
	effects := c.loop.effects
	c.loop.effects = nil
	for _, e := range effects {
		if p, ok := e.(alloc.Persist); ok {
			c.loop.unsaved[p.AllocID] = true
		}
	}
	c.save()
	c.publishInventory()
	for _, e := range effects {
		c.carry(work, e)
	}
	c.wakeWaiters()
}

// wakeWaiters lets those go on who wait for an allocation to run, and to be
// known to whom it belongs.
func (c *Client) wakeWaiters() {
	for id, waiters := range c.loop.waiters {
		state, ok := c.loop.table.State(id)
		if ok && state.Phase != alloc.PhaseEnded && (state.Phase != alloc.PhaseRunning || c.loop.table.Assignment(id) == nil) {
			continue
		}
		for _, changed := range waiters {
			close(changed)
		}
		delete(c.loop.waiters, id)
	}
}

// save writes the states that the store does not have. What cannot be
// written now is tried again with the next effects: the drivers' own records
// and the allocation's directory stand in for it meanwhile.
func (c *Client) save() {
	for _, e := range c.loop.effects { // left by drain
		if p, ok := e.(alloc.Persist); ok {
			c.loop.unsaved[p.AllocID] = true
		}
	}
	if len(c.loop.unsaved) == 0 {
		return
	}
	var changes []store.Change
	for _, id := range slices.Sorted(maps.Keys(c.loop.unsaved)) {
		change := store.Change{AllocID: id}
		if s, ok := c.loop.table.State(id); ok {
			change.State = &s
		}
		changes = append(changes, change)
	}
	if err := c.store.Apply(changes); err != nil {
		c.log.Error("states are not stored", logkey.Count, len(changes), logkey.Error, err)
		return
	}
	clear(c.loop.unsaved)
}

// publishInventory keeps what the next Hello will say.
func (c *Client) publishInventory() {
	items := c.loop.table.Inventory()
	for id := range c.loop.strays {
		if allocOf(id) != "" {
			items = append(items, structs.InventoryItem{AllocID: allocOf(id)})
		}
	}
	items = append(items, c.heldItems()...)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.inventory = items
}

func (c *Client) carry(work context.Context, effect alloc.Effect) {
	id := effect.Alloc()
	switch e := effect.(type) {
	case alloc.Persist: // done by save
	case alloc.Report:
		c.session.Report(e.Report)
	case alloc.Prepare:
		c.startPreparing(work, id)
	case alloc.CancelPrepare:
		if r := c.loop.runners[id]; r != nil && r.cancel != nil {
			r.cancel()
		}
	case alloc.Start:
		r := c.runner(id)
		c.keepLease() // a strict task looks at it from its start on
		c.work.Go(func() { c.startTask(work, r) })
	case alloc.Recover:
		r := c.runner(id)
		handle := e.Handle
		c.work.Go(func() { c.recoverTask(work, r, handle) })
	case alloc.Control:
		c.steer(work, c.runner(id), e.Control)
	case alloc.Signal:
		r := c.runner(id)
		c.work.Go(func() { c.signalTask(work, r, e.Signal) })
	case alloc.Stop:
		r := c.runner(id)
		over := r.letGo()
		c.work.Go(func() {
			<-over // a throttle would hold the command in its grace
			c.beforeStop(work, r, e.Grace)
			c.stopTask(work, r, e.Signal, e.Grace)
		})
	case alloc.Clean:
		r := c.runner(id)
		close(r.ended)
		r.letGo()
		delete(c.loop.runners, id)
		var began time.Time
		if s, ok := c.loop.table.State(id); ok && s.Handle != nil {
			began = s.Handle.StartedAt
		}
		cleaned := make(chan struct{})
		c.loop.cleaning[id] = cleaned
		c.work.Go(func() {
			c.cleanTask(work, r)
			c.sweepShm(id, r.driver, began)
			close(cleaned)
			c.post(func() { delete(c.loop.cleaning, id) })
		})
	}
}

// startPreparing gets an allocation ready in a goroutine of its own.
func (c *Client) startPreparing(work context.Context, id string) {
	r := c.runner(id)
	assignment := c.loop.table.Assignment(id)
	if assignment == nil {
		return // it has ended before its effects were carried out
	}
	ctx, cancel := context.WithCancel(work)
	r.cancel, r.attempt = cancel, assignment.Alloc.Attempt
	r.assigned.Store(assignment)
	c.work.Go(func() {
		defer cancel()
		p, failure := c.prepare(ctx, assignment)
		if failure != nil {
			if work.Err() == nil {
				c.noteFailedStart(r, failure.Cause, failure.Infra)
				c.event(id, *failure)
			}
			return
		}
		c.post(func() {
			r.prepared, r.driver, r.devices = p, assignment.Job.Task.Driver, assignment.Alloc.Devices
			c.add(c.loop.table.Step(id, alloc.Prepared{Image: p.image}, c.now()))
		})
	})
}

// startTask starts the command and then waits for its end.
func (c *Client) startTask(work context.Context, r *runner) {
	select {
	case c.turns <- struct{}{}:
	case <-work.Done():
		return
	}
	d, ok := c.config.Drivers[r.driver]
	if !ok {
		<-c.turns
		c.event(r.id, alloc.StartFailed{Result: failedStart("client.driver_missing", "driver", r.driver), Infra: true})
		return
	}
	// A start is not broken off when the agent stops: it is short, and what
	// is half done is hard to tell from what is not done.
	start := d.Start
	if leaser, ok := d.(driver.Leaser); ok && r.prepared.strict {
		start = func(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
			return leaser.StartLeased(ctx, spec, c.files.lease())
		}
	}
	handle, err := start(context.WithoutCancel(work), r.prepared.spec)
	<-c.turns
	if errors.Is(err, driver.ErrTaskExists) {
		c.recoverTask(work, r, nil)
		return
	}
	if err != nil {
		failure := startFailure(err, r.driver, c.config.Now())
		c.noteFailedStart(r, failedBy(failure), failure.Infra)
		c.event(r.id, failure)
		return
	}
	c.noteStart()
	c.event(r.id, alloc.Started{Handle: handle})
	c.work.Go(func() {
		ctx, cancel := c.whileRunning(work, r)
		defer cancel()
		c.hooksBeside(ctx, d, r.id, structs.HookPoststart)
	})
	c.waitTask(work, r, d, handle.TaskID, true)
}

// whileRunning gives a context that ends with the allocation. The caller
// cancels it.
func (c *Client) whileRunning(work context.Context, r *runner) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(work)
	c.work.Go(func() {
		defer cancel()
		select {
		case <-r.ended:
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}

// beforeStop runs the hooks that come before the stop signal. A kill does not
// wait for them, and ends those that run.
func (c *Client) beforeStop(work context.Context, r *runner, grace time.Duration) {
	d, ok := c.config.Drivers[r.driver]
	if !ok {
		return
	}
	if grace > 0 {
		ctx, cancel := c.whileRunning(work, r)
		defer cancel()
		c.hooksBeside(ctx, d, r.id, structs.HookPrestop)
		return
	}
	if c.ownHookTask(hookTaskID(r.id)) {
		if err := d.Destroy(work, hookTaskID(r.id)); err != nil {
			c.log.Warn("destroy task of hooks", logkey.AllocID, r.id, logkey.Error, err)
		}
	}
}

// startFailure tells the job's faults from the node's.
func startFailure(err error, name string, now time.Time) alloc.StartFailed {
	var start *driver.StartError
	if errors.As(err, &start) {
		return alloc.StartFailed{Result: start.Result(now)}
	}
	var told *structs.Error
	if errors.As(err, &told) && (told.Code == structs.CodeInvalid || told.Code == structs.CodeForbidden) {
		return alloc.StartFailed{Result: driver.ExitResult{Code: driver.CodeNotExecutable, Err: told, FinishedAt: now}}
	}
	if told != nil { // it has words of its own
		return alloc.StartFailed{Result: driver.ExitResult{Code: driver.CodeUnknown, Err: told, FinishedAt: now}, Infra: true}
	}
	return alloc.StartFailed{Result: failedStart("client.driver_failed", "driver", name, "cause", err), Infra: true}
}

func failedStart(id string, params ...any) driver.ExitResult {
	return driver.ExitResult{Code: driver.CodeUnknown, Err: structs.NewError(structs.CodeUnavailable, id, params...)}
}

// waitTask tells the end of a task. A driver that cannot answer is asked
// again until the agent stops. fresh says that the task was started just now.
func (c *Client) waitTask(work context.Context, r *runner, d driver.Driver, task driver.TaskID, fresh bool) {
	endWatch := c.watchTask(work, r, fresh)
	c.work.Go(func() { c.measure(work, r) })
	c.work.Go(func() { c.keepRecord(work, r) })
	c.work.Go(func() { c.watchRoom(work, r) })
	retry := driverRetryFirst
	for {
		result, err := d.Wait(work, task)
		switch {
		case err == nil:
			c.noteUnkilled(r.id, &result)
			endWatch(result.Successful())
			c.after(work, r, d, result)
			if c.fenced(result) {
				c.event(r.id, alloc.LeaseEnded{})
			}
			c.event(r.id, alloc.Exited{Result: result})
			return
		case work.Err() != nil:
			endWatch(false)
			return
		case errors.Is(err, driver.ErrUnknownTask):
			endWatch(false)
			c.event(r.id, alloc.Unrecoverable{Cause: structs.NewReason("client.task_vanished")})
			return
		}
		c.log.Warn("driver cannot be waited for", logkey.TaskID, task, logkey.Error, err)
		if !sleep(work, retry) {
			endWatch(false)
			return
		}
		retry = min(2*retry, driverRetryMax)
	}
}

// fenced reports whether a task was killed while the node had no lease, as who
// watches over a strict task does when the agent is away or stands still. That is
// not the job's fault.
func (c *Client) fenced(result driver.ExitResult) bool {
	if result.Signal != "SIGKILL" {
		return false
	}
	ago := c.config.Now().Sub(result.FinishedAt)
	return c.session.Lease().Lapsed(c.config.Boottime() - max(ago, 0))
}

// stopTask asks the driver to stop a task, again and again while the driver
// cannot be asked, until the task has ended.
func (c *Client) stopTask(work context.Context, r *runner, signal string, grace time.Duration) {
	d, ok := c.config.Drivers[r.driver]
	if !ok {
		return
	}
	retry := driverRetryFirst
	for {
		err := d.Stop(work, alloc.TaskID(r.id), signal, grace)
		if err == nil || errors.Is(err, driver.ErrUnknownTask) {
			return
		}
		if work.Err() == nil {
			c.log.Warn("stop task", logkey.AllocID, r.id, logkey.Error, err)
		}
		timer := time.NewTimer(retry)
		select {
		case <-work.Done():
			timer.Stop()
			return
		case <-r.ended:
			timer.Stop()
			return
		case <-timer.C:
		}
		retry = min(2*retry, driverRetryMax)
	}
}

// signalTask sends a signal to a command that goes on. A driver that cannot be
// asked for a moment is asked again, until the command ends.
func (c *Client) signalTask(work context.Context, r *runner, signal string) {
	d, ok := c.config.Drivers[r.driver]
	if !ok {
		return
	}
	for retry := driverRetryFirst; ; retry = min(2*retry, driverRetryMax) {
		err := d.Signal(work, alloc.TaskID(r.id), signal)
		if err == nil || gone(err) {
			return
		}
		if work.Err() == nil {
			c.log.Warn("signal task", logkey.AllocID, r.id, logkey.Error, err)
		}
		select {
		case <-work.Done():
			return
		case <-r.ended:
			return
		case <-time.After(retry):
		}
	}
}

// cleanTask frees what the node held for an ended allocation.
func (c *Client) cleanTask(work context.Context, r *runner) {
	if len(c.devices.plugins) > 0 { // one of its devices may wait to be empty
		defer c.post(func() { c.actOnDevices(work) })
	}
	if r.prepared != nil {
		r.prepared.release(c)
	}
	if err := c.data.Release(r.id); err != nil {
		c.log.Warn("release prepared data", logkey.AllocID, r.id, logkey.Error, err)
	}
	d, ok := c.config.Drivers[r.driver]
	if !ok {
		return
	}
	c.keepLeft(work, r.id, d)
	if err := d.Destroy(work, alloc.TaskID(r.id)); err != nil && work.Err() == nil {
		c.log.Warn("destroy task", logkey.AllocID, r.id, logkey.Error, err)
	}
	if len(r.devices) > 0 {
		c.reap(work, r.devices)
	}
}

// sleep waits for d and reports whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
