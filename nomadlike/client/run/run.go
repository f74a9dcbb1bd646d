package run

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/hold"
	"nomadlike/nomadlike/client/hooks"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/prepare"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/usage"
	"nomadlike/nomadlike/client/watch"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Patience with drivers.
const listTimeout = 2 * time.Second

// startsMax is how many tasks are being started at one time.
const startsMax = 16

// Runs executes what the loop decides of the node's tasks: it has them prepared,
// started, watched, paused, stopped and cleaned up. Methods with a *Loop are called
// by the loop, the others from anywhere.
type Runs struct {
	Config
	turns chan struct{} // one token for each task being started
	shm   shmWatch

	// The loop owns these.
	runners  map[string]*runner
	strays   map[driver.TaskID]stray
	sweeping bool
	sizes    map[string]int64 // bytes of the directories of ended allocations
}

// Config is what running needs.
type Config struct {
	Layout     layout.Layout
	Drivers    map[string]driver.Driver
	Inbox      *loop.Inbox
	Report     func(structs.AllocReport)
	Refresh    func() // has the servers told of the inventory
	Lease      *Lease
	Preparer   *prepare.Preparer
	Rooms      *room.Rooms
	Unkillable *machine.Unkillable
	Starts     *machine.Starts
	Watch      *watch.Watch
	Usage      *usage.Usage
	Hooks      *hooks.Hooks
	Secrets    *secrets.Keeper
	Holds      *hold.Holds
	Devices    *devices.Devices
	SharedDir  string
	ShmDir     string
	Keep       Retention
	Work       *sync.WaitGroup
	Now        func() time.Time
	Log        *slog.Logger
}

// New makes runs of nothing.
func New(config Config) *Runs {
	config.Keep = config.Keep.withDefaults()
	return &Runs{
		Config: config, turns: make(chan struct{}, startsMax), runners: make(map[string]*runner),
		strays: make(map[driver.TaskID]stray), sizes: make(map[string]int64),
	}
}

// runner is what running holds of an allocation that is at work here: the things
// that are not data. Its fields are set by the loop, or by the one goroutine of the
// allocation that the loop waits for.
type runner struct {
	*loop.Task
	cancel   context.CancelFunc // of its preparation; nil without
	prepared *prepare.Prepared  // nil before
	control  *pauseControl      // executes what people want of its command; nil before they want anything
}

func (x *Runs) runner(l *loop.Loop, id string) *runner {
	r, ok := x.runners[id]
	if !ok {
		r = &runner{Task: l.Task(id)}
		x.runners[id] = r
	}
	return r
}

// Inventory lists what may have processes here and is not in the table.
func (x *Runs) Inventory(*loop.Loop) []structs.InventoryItem {
	var items []structs.InventoryItem
	for id := range x.strays {
		if allocOf(id) != "" {
			items = append(items, structs.InventoryItem{AllocID: allocOf(id)})
		}
	}
	return append(items, x.Holds.Inventory()...)
}

// Idle reports whether nothing may run here.
func (x *Runs) Idle(l *loop.Loop) bool { return len(l.MayRun()) == 0 && len(x.strays) == 0 }

// Execute executes one effect.
func (x *Runs) Execute(work context.Context, l *loop.Loop, effect alloc.Effect) {
	id := effect.Alloc()
	switch e := effect.(type) {
	case alloc.Persist: // the loop has stored it
	case alloc.Report:
		x.Report(e.Report)
	case alloc.Prepare:
		x.startPreparing(work, l, id)
	case alloc.CancelPrepare:
		if r := x.runners[id]; r != nil && r.cancel != nil {
			r.cancel()
		}
	case alloc.Start:
		r := x.runner(l, id)
		x.Lease.Save(l) // a strict task looks at it from its start on
		x.Work.Go(func() { x.startTask(work, r) })
	case alloc.Recover:
		r := x.runner(l, id)
		handle := e.Handle
		x.Work.Go(func() { x.recoverTask(work, r, handle) })
	case alloc.Control:
		x.control(work, x.runner(l, id), e.Control)
	case alloc.Signal:
		r := x.runner(l, id)
		x.Work.Go(func() { x.signalTask(work, r, e.Signal) })
	case alloc.Stop:
		r := x.runner(l, id)
		over := r.letGo()
		x.Work.Go(func() {
			<-over // a throttle would hold the command in its grace
			x.beforeStop(work, r, e.Grace)
			x.stopTask(work, r, e.Signal, e.Grace)
		})
	case alloc.Clean:
		r := x.runner(l, id)
		r.letGo()
		l.End(r.Task)
		delete(x.runners, id)
		x.Watch.Forget(id)
		var began time.Time
		if s, ok := l.State(id); ok && s.Handle != nil {
			began = s.Handle.StartedAt
		}
		x.Work.Go(func() {
			x.cleanTask(work, r)
			x.sweepShm(id, r.Driver, began)
			close(r.Cleaned)
			x.Inbox.Post(func(l *loop.Loop) { l.Free(id) })
		})
	}
}

// startPreparing gets an allocation ready in a goroutine of its own.
func (x *Runs) startPreparing(work context.Context, l *loop.Loop, id string) {
	r := x.runner(l, id)
	assignment := l.Assignment(id)
	if assignment == nil {
		return // it has ended before its effects were executed
	}
	ctx, cancel := context.WithCancel(work)
	r.cancel, r.Attempt = cancel, assignment.Alloc.Attempt
	r.Assigned.Store(assignment)
	x.Work.Go(func() {
		defer cancel()
		p, failure := x.Preparer.Prepare(ctx, assignment)
		if failure != nil {
			if work.Err() == nil {
				x.Starts.Failed(r.Assigned.Load(), failure.Cause, failure.Infra)
				x.Inbox.Event(id, *failure)
			}
			return
		}
		x.Inbox.Post(func(l *loop.Loop) {
			r.prepared, r.Driver, r.Devices = p, assignment.Job.Task.Driver, assignment.Alloc.Devices
			l.Step(id, alloc.Prepared{Image: p.Image})
		})
	})
}

// startTask starts the command and then waits for its end.
func (x *Runs) startTask(work context.Context, r *runner) {
	select {
	case x.turns <- struct{}{}:
	case <-work.Done():
		return
	}
	d, ok := x.Drivers[r.Driver]
	if !ok {
		<-x.turns
		x.Inbox.Event(r.ID, alloc.StartFailed{Result: failedStart("client.driver_missing", "driver", r.Driver), Infra: true})
		return
	}
	// A start is not broken off when the agent stops: it is short, and what
	// is half done is hard to tell from what is not done.
	start := d.Start
	if leaser, ok := d.(driver.Leaser); ok && r.prepared.Strict {
		start = func(ctx context.Context, spec driver.TaskSpec) (driver.Handle, error) {
			return leaser.StartLeased(ctx, spec, x.Layout.Lease())
		}
	}
	handle, err := start(context.WithoutCancel(work), r.prepared.Spec)
	<-x.turns
	if errors.Is(err, driver.ErrTaskExists) {
		x.recoverTask(work, r, nil)
		return
	}
	if err != nil {
		failure := startFailure(err, r.Driver, x.Now())
		x.Starts.Failed(r.Assigned.Load(), failedBy(failure), failure.Infra)
		x.Inbox.Event(r.ID, failure)
		return
	}
	x.Starts.Worked()
	x.Inbox.Event(r.ID, alloc.Started{Handle: handle})
	x.Work.Go(func() {
		ctx, cancel := r.While(work, x.Work)
		defer cancel()
		x.Hooks.Beside(ctx, d, r.ID, structs.HookPoststart)
	})
	x.waitTask(work, r, d, handle.TaskID, true)
}

// beforeStop runs the hooks that come before the stop signal. A kill does not
// wait for them, and ends those that run.
func (x *Runs) beforeStop(work context.Context, r *runner, grace time.Duration) {
	d, ok := x.Drivers[r.Driver]
	if !ok {
		return
	}
	if grace > 0 {
		ctx, cancel := r.While(work, x.Work)
		defer cancel()
		x.Hooks.Beside(ctx, d, r.ID, structs.HookPrestop)
		return
	}
	x.Hooks.Kill(work, d, r.ID)
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

// waitTask returns the end of a task. A driver that cannot answer is asked
// again until the agent stops. fresh says that the task was started just now.
func (x *Runs) waitTask(work context.Context, r *runner, d driver.Driver, task driver.TaskID, fresh bool) {
	var told *environment.Told
	if fresh { // a task that was found has a preparation later, by the loop
		told = r.prepared.Told
	}
	endWatch := x.Watch.Begin(work, r.Task, told, fresh)
	x.Work.Go(func() { x.Usage.Measure(work, r.Task) })
	x.Work.Go(func() { x.Usage.RecordRank(work, r.Task) })
	x.Work.Go(func() { x.Rooms.Watch(work, r.Task) })
	pause := retry.First
	for {
		result, err := d.Wait(work, task)
		switch {
		case err == nil:
			x.Unkillable.Note(r.ID, &result)
			endWatch(result.Successful())
			x.after(work, r, d, result)
			if x.Lease.Fenced(result) {
				x.Inbox.Event(r.ID, alloc.LeaseEnded{})
			}
			x.Inbox.Event(r.ID, alloc.Exited{Result: result})
			return
		case work.Err() != nil:
			endWatch(false)
			return
		case errors.Is(err, driver.ErrUnknownTask):
			endWatch(false)
			x.Inbox.Event(r.ID, alloc.Unrecoverable{Cause: structs.NewReason("client.task_vanished")})
			return
		}
		x.Log.Warn("driver cannot be waited for", logkey.TaskID, task, logkey.Error, err)
		if !retry.Sleep(work, pause) {
			endWatch(false)
			return
		}
		pause = min(2*pause, retry.Most)
	}
}

// stopTask asks the driver to stop a task, again and again while the driver
// cannot be asked, until the task has ended.
func (x *Runs) stopTask(work context.Context, r *runner, signal string, grace time.Duration) {
	d, ok := x.Drivers[r.Driver]
	if !ok {
		return
	}
	pause := retry.First
	for {
		err := d.Stop(work, alloc.TaskID(r.ID), signal, grace)
		if err == nil || errors.Is(err, driver.ErrUnknownTask) {
			return
		}
		if work.Err() == nil {
			x.Log.Warn("stop task", logkey.AllocID, r.ID, logkey.Error, err)
		}
		timer := time.NewTimer(pause)
		select {
		case <-work.Done():
			timer.Stop()
			return
		case <-r.Ended:
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, retry.Most)
	}
}

// signalTask sends a signal to a command that goes on. A driver that cannot be
// asked for a moment is asked again, until the command ends.
func (x *Runs) signalTask(work context.Context, r *runner, signal string) {
	d, ok := x.Drivers[r.Driver]
	if !ok {
		return
	}
	for pause := retry.First; ; pause = min(2*pause, retry.Most) {
		err := d.Signal(work, alloc.TaskID(r.ID), signal)
		if err == nil || gone(err) {
			return
		}
		if work.Err() == nil {
			x.Log.Warn("signal task", logkey.AllocID, r.ID, logkey.Error, err)
		}
		select {
		case <-work.Done():
			return
		case <-r.Ended:
			return
		case <-time.After(pause):
		}
	}
}

// cleanTask frees what the node held for an ended allocation.
func (x *Runs) cleanTask(work context.Context, r *runner) {
	if x.Devices.Any() { // one of its devices may wait to be empty
		defer x.Inbox.Post(func(l *loop.Loop) { x.Devices.Act(work, l) })
	}
	if r.prepared != nil {
		x.Preparer.Release(r.prepared)
	}
	x.Preparer.Data.Release(r.ID)
	d, ok := x.Drivers[r.Driver]
	if !ok {
		return
	}
	x.Holds.SaveState(work, r.ID, d)
	if err := d.Destroy(work, alloc.TaskID(r.ID)); err != nil && work.Err() == nil {
		x.Log.Warn("destroy task", logkey.AllocID, r.ID, logkey.Error, err)
	}
	if assigned := r.Assigned.Load(); assigned == nil || assigned.Job == nil || assigned.Job.Debug == nil { // a hold needs them
		x.forgetSecrets(r.ID)
	}
	if len(r.Devices) > 0 {
		x.Devices.Reap(work, r.Devices)
	}
}

func (x *Runs) forgetSecrets(id string) {
	if err := x.Secrets.Forget(id); err != nil {
		x.Log.Warn("files of secrets of an ended task stay in memory", logkey.AllocID, id, logkey.Error, err)
	}
}

// Close closes the sockets of all ranks, when the agent stops.
func (x *Runs) Close() {
	for _, id := range slices.Sorted(maps.Keys(x.runners)) {
		if p := x.runners[id].prepared; p != nil {
			x.Preparer.CloseShell(p)
		}
	}
}

// after runs the hooks that follow the command, unless the task was killed: then
// nobody has the time. The result is the command's own.
func (x *Runs) after(work context.Context, r *runner, d driver.Driver, result driver.ExitResult) {
	if !x.Hooks.Follow(r.ID) {
		return
	}
	killed := false
	if err := x.Inbox.Ask(work, func(l *loop.Loop) {
		state, ok := l.State(r.ID)
		killed = !ok || state.Force == alloc.ForceKill
	}); err != nil || killed {
		return
	}
	x.Hooks.After(work, d, r.ID, result)
}

// failedBy is what a failed start says of its cause.
func failedBy(e alloc.StartFailed) *structs.Reason {
	if e.Result.Err == nil {
		return nil
	}
	return &structs.Reason{ID: e.Result.Err.ID, Params: e.Result.Err.Params}
}
