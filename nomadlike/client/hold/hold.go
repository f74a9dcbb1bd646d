package hold

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// This file keeps failed allocations enterable. When the servers say that one is
// held, a task without a command takes the place of the one that failed: with
// the same files, environment, mounts and devices, and what the command left in
// its container. People's commands run in it,
// until the time is over or somebody ends it. A restarted agent begins such a
// task anew; what ran in the old one is killed.

// holdSuffix names the task that holds the place of a failed one.
const holdSuffix = ".hold"

// holdRetry is between attempts to make or end such a task; holdPatience bounds
// those to make it.
const (
	holdRetry    = 500 * time.Millisecond
	holdPatience = time.Minute
)

func holdTaskID(id string) driver.TaskID { return driver.TaskID(id + holdSuffix) }

// Hold is one debug hold. The loop owns it; orders go to its goroutine.
type hold struct {
	id         string
	attempt    uint64
	assignment *structs.Assignment // nil: remembered, and no server has spoken yet
	driver     driver.Driver       // nil while there is no assignment
	orders     chan structs.Hold   // the newest of the servers' words; nil before it works
	ready      bool                // the task runs
}

// holdRecord is what a later agent has to know of a hold.
type holdRecord struct {
	Attempt uint64 `json:"attempt"`
}

// holdPlan is what a hold needs of the task that failed. It is kept in a file, since
// a later agent may begin the hold.
type holdPlan struct {
	Spec driver.TaskSpec `json:"spec"`
}

// Holds keeps failed allocations enterable.
type Holds struct {
	Config
	holds map[string]*hold // by allocation; the loop owns it
}

// Config is what debug holds need.
type Config struct {
	NodeID  string
	Layout  layout.Layout
	Drivers map[string]driver.Driver
	Inbox   *loop.Inbox
	Notes   HoldNotes
	Devices Reaper
	Own     OwnTasks
	Secrets *secrets.Keeper
	Work    *sync.WaitGroup
	Now     func() time.Time
	Log     *slog.Logger
}

// HoldNotes tells the servers what becomes of holds.
type HoldNotes interface{ Send(structs.AllocNote) }

// Reaper ends what a task has left on its devices.
type Reaper interface {
	Reap(work context.Context, ids []string)
}

// OwnTasks remembers which tasks without a command are this agent's own.
type OwnTasks interface {
	SetOwn(id driver.TaskID, runs bool)
}

// New makes holds of which none is there.
func New(config Config) *Holds {
	return &Holds{Config: config, holds: make(map[string]*hold)}
}

// Record stores what a hold of an allocation will need, when its job wants one; it
// holds the job's environment.
func (o *Holds) Record(id string, job *structs.Job, spec driver.TaskSpec) error {
	if job.Debug == nil {
		return nil
	}
	data, err := json.Marshal(holdPlan{Spec: spec})
	if err != nil {
		return fmt.Errorf("keep task for debugging: %w", err)
	}
	return store.WriteFile(o.Layout.HoldPlan(id), data, 0o600, false)
}

// plan reads what Record stored; ok is false when an allocation may not be held.
func (o *Holds) plan(id string) (plan holdPlan, ok bool, err error) {
	data, err := os.ReadFile(o.Layout.HoldPlan(id))
	if errors.Is(err, fs.ErrNotExist) {
		return o.olderPlan(id)
	}
	if err == nil {
		err = json.Unmarshal(data, &plan)
	}
	return plan, err == nil, err
}

// olderPlan reads what agents of protocol 15 and before have stored with the hooks.
func (o *Holds) olderPlan(id string) (plan holdPlan, ok bool, err error) {
	data, err := os.ReadFile(o.Layout.HookPlan(id))
	if errors.Is(err, fs.ErrNotExist) {
		return plan, false, nil
	}
	var older struct {
		holdPlan
		Debug bool `json:"debug"`
	}
	if err == nil {
		err = json.Unmarshal(data, &older)
	}
	return older.holdPlan, err == nil && older.Debug, err
}

// Remember keeps a hold of an earlier agent in the inventory until the servers have
// spoken.
func (o *Holds) Remember(s alloc.State) {
	if _, err := os.Stat(o.Layout.Hold(s.AllocID)); err == nil {
		o.holds[s.AllocID] = &hold{id: s.AllocID, attempt: s.Attempt}
	}
}

// Inventory lists the holds.
func (o *Holds) Inventory() []structs.InventoryItem {
	var items []structs.InventoryItem
	for _, id := range sortedHolds(o.holds) {
		items = append(items, structs.InventoryItem{AllocID: id, Attempt: o.holds[id].attempt})
	}
	return items
}

// Tasks lists the tasks of the holds.
func (o *Holds) Tasks() []driver.TaskID {
	var tasks []driver.TaskID
	for _, id := range sortedHolds(o.holds) {
		tasks = append(tasks, holdTaskID(id))
	}
	return tasks
}

// Has reports whether an allocation is held.
func (o *Holds) Has(id string) bool { return o.holds[id] != nil }

func sortedHolds(holds map[string]*hold) []string {
	ids := make([]string, 0, len(holds))
	for id := range holds {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Assign takes the servers' word on holds. Called by the loop.
func (o *Holds) Assign(work context.Context, l *loop.Loop, a *structs.Assignments) {
	listed := make(map[string]bool, len(a.Set))
	for i := range a.Set {
		one := &a.Set[i]
		if one.Alloc == nil || one.Job == nil || one.Alloc.NodeID != o.NodeID {
			continue
		}
		listed[one.Alloc.ID] = one.Alloc.Hold != nil
		if one.Alloc.Hold != nil {
			o.assign(work, l, one)
		}
	}
	for _, id := range sortedHolds(o.holds) {
		gone := slices.Contains(a.Gone, id) || a.Full && !listed[id]
		if has, told := listed[id]; gone || told && !has {
			o.order(work, l, o.holds[id], structs.Hold{Over: true})
		}
	}
	l.Publish()
}

// assign begins a hold, or tells one what the servers want now.
func (o *Holds) assign(work context.Context, l *loop.Loop, one *structs.Assignment) {
	id := one.Alloc.ID
	h := o.holds[id]
	if h == nil {
		h = &hold{id: id, attempt: one.Alloc.Attempt}
		o.holds[id] = h
	}
	h.assignment = one
	o.order(work, l, h, *one.Alloc.Hold)
}

// order hands a word of the servers to the goroutine of a hold, which it starts
// when there is none.
func (o *Holds) order(work context.Context, l *loop.Loop, h *hold, wanted structs.Hold) {
	if h.orders == nil {
		h.orders = make(chan structs.Hold, 1)
		var until time.Time
		if state, ok := l.State(h.id); ok && state.EndedAt != 0 {
			until = state.EndedAt.Time().Add(wanted.For.Std())
		}
		if h.assignment != nil {
			h.driver = o.Drivers[h.assignment.Job.Task.Driver]
		}
		cleaned := l.Cleaned(h.id)
		k := executor{holds: o, hold: h, id: h.id, attempt: h.attempt, driver: h.driver, orders: h.orders, until: until}
		if h.assignment != nil {
			k.devices = h.assignment.Alloc.Devices
		}
		o.Work.Go(func() { k.run(work, wanted, cleaned) })
		return
	}
	select {
	case <-h.orders: // an older word
	default:
	}
	h.orders <- wanted
}

// executor executes one debug hold, in a goroutine of its own; its fields do
// not change.
type executor struct {
	holds   *Holds
	hold    *hold // the loop's
	id      string
	attempt uint64
	driver  driver.Driver // nil: there is nothing but a record
	devices []string      // that it had at first
	orders  <-chan structs.Hold
	until   time.Time
}

// Run keeps the place from the begin of the hold to its end, which it tells the
// servers. cleaned is closed when the failed task is out of the way.
func (k *executor) run(work context.Context, wanted structs.Hold, cleaned <-chan struct{}) {
	o := k.holds
	if cleaned != nil { // what it left is being saved
		select {
		case <-cleaned:
		case <-work.Done():
			return
		}
	}
	devices := !wanted.Freed
	var cause *structs.Reason
	if !wanted.Over {
		cause = k.begin(work, devices)
		if cause == nil {
			o.Log.Info("failed allocation is held for debugging", logkey.AllocID, k.id)
			if !devices {
				k.note(structs.HoldNote{})
			}
		}
	}
	timer := time.NewTimer(max(0, k.until.Sub(o.Now())))
	defer timer.Stop()
	for over := wanted.Over || cause != nil; !over; {
		select {
		case <-work.Done():
			return // a later agent goes on
		case <-timer.C:
			over = true
		case wanted = <-k.orders:
			over = wanted.Over
			if over || !wanted.Freed || !devices {
				continue
			}
			devices = false
			if cause = k.begin(work, false); cause != nil {
				over = true
			} else {
				k.note(structs.HoldNote{})
			}
		}
	}
	if !k.clear(work) {
		return
	}
	o.DropState(work, k.id)
	if err := os.Remove(o.Layout.Hold(k.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("remove record of debug hold", logkey.AllocID, k.id, logkey.Error, err)
	}
	k.note(structs.HoldNote{Over: true, Cause: cause})
	o.Inbox.Post(func(l *loop.Loop) {
		delete(o.holds, k.id)
		l.Publish()
	})
}

// note tells the servers.
func (k *executor) note(note structs.HoldNote) {
	k.holds.Notes.Send(structs.AllocNote{AllocID: k.id, Attempt: k.attempt, Hold: &note})
}

// begin starts the task that holds the place, instead of an earlier one; nil
// when it runs or the agent stops.
func (k *executor) begin(work context.Context, devices bool) *structs.Reason {
	o := k.holds
	if k.driver == nil {
		return structs.NewReason("client.driver_missing", "driver", "")
	}
	record, err := json.Marshal(holdRecord{Attempt: k.attempt})
	if err == nil {
		err = store.WriteFile(o.Layout.Hold(k.id), record, 0o600, false)
	}
	if err != nil {
		return structs.NewReason("client.hold_failed", "cause", err)
	}
	spec, err := o.spec(k.id, devices)
	if err != nil {
		return structs.NewReason("client.hold_failed", "cause", err)
	}
	spec.Env = o.Secrets.Added(work, k.id, spec.Secrets, spec.Env)
	if !k.clear(work) {
		return nil
	}
	o.Own.SetOwn(spec.ID, true)
	ctx, cancel := context.WithTimeout(work, holdPatience)
	defer cancel()
	for {
		_, err := k.driver.Start(context.WithoutCancel(ctx), spec)
		if err == nil {
			break
		}
		if work.Err() != nil {
			return nil
		}
		if !errors.Is(err, driver.ErrTaskExists) || !retry.Sleep(ctx, holdRetry) {
			return structs.NewReason("client.hold_failed", "cause", err)
		}
	}
	o.Inbox.Post(func(*loop.Loop) { k.hold.ready = true })
	return nil
}

// clear ends the task that holds the place, and what it left on devices; false
// when the agent stops before that is done.
func (k *executor) clear(work context.Context) bool {
	o := k.holds
	if err := o.Inbox.Ask(work, func(*loop.Loop) { k.hold.ready = false }); err != nil {
		return false
	}
	if k.driver == nil {
		return work.Err() == nil // destroyed as a stray when this agent began
	}
	for {
		err := k.driver.Destroy(work, holdTaskID(k.id))
		if err == nil || errors.Is(err, driver.ErrUnknownTask) {
			break
		}
		o.Log.Warn("end debug hold", logkey.AllocID, k.id, logkey.Error, err)
		if !retry.Sleep(work, holdRetry) {
			return false
		}
	}
	o.Own.SetOwn(holdTaskID(k.id), false)
	if len(k.devices) > 0 {
		o.Devices.Reap(work, k.devices)
	}
	return work.Err() == nil
}

// Spec is the task that failed, without its command, and without its devices
// once those were released.
func (o *Holds) spec(id string, devices bool) (driver.TaskSpec, error) {
	plan, ok, err := o.plan(id)
	if err == nil && !ok {
		err = &fs.PathError{Op: "open", Path: o.Layout.HoldPlan(id), Err: fs.ErrNotExist}
	}
	if err != nil {
		return driver.TaskSpec{}, fmt.Errorf("read task: %w", err)
	}
	spec := plan.Spec
	spec.ID, spec.Command, spec.Hold, spec.LogDir = holdTaskID(id), nil, true, o.Layout.HoldLogs(id)
	if saved, ok := o.SavedState(id); ok && spec.Container != nil {
		container := *spec.Container
		container.Image, container.Pull = saved.Image, driver.PullNever
		spec.Container = &container
	}
	if !devices {
		for i := range spec.Reservations {
			r := &spec.Reservations[i]
			r.Nodes, r.CDI, r.Engine = nil, nil, nil
			for name := range r.Env {
				if strings.HasSuffix(name, structs.DeviceVisibleSuffix) {
					r.Env[name] = ""
				}
			}
		}
		spec.Env = withoutDevices(spec.Env)
	}
	return spec, nil
}

// withoutDevices empties the variables by which frameworks choose devices.
func withoutDevices(env []string) []string {
	env = slices.Clone(env)
	for i, pair := range env {
		if name, _, _ := strings.Cut(pair, "="); strings.HasSuffix(name, structs.DeviceVisibleSuffix) {
			env[i] = name + "="
		}
	}
	return env
}

// Enter lets a command into the task of a hold.
func (o *Holds) Enter(id string) (task driver.TaskID, d driver.Driver, a *structs.Assignment, refusal *structs.Error) {
	h := o.holds[id]
	if h == nil || !h.ready {
		return "", nil, nil, structs.NewError(structs.CodeUnavailable, "client.hold_not_ready", "alloc", id)
	}
	return holdTaskID(id), h.driver, h.assignment, nil
}
