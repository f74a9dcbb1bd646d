package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
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

// hold is one debug hold. The loop owns it; orders go to its goroutine.
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

// rememberHold keeps a hold of an earlier agent in the inventory until the
// servers have spoken.
func (c *Client) rememberHold(s alloc.State) {
	if _, err := os.Stat(c.files.hold(s.AllocID)); err == nil {
		c.loop.holds[s.AllocID] = &hold{id: s.AllocID, attempt: s.Attempt}
	}
}

// heldItems are the holds for the inventory.
func (c *Client) heldItems() []structs.InventoryItem {
	var items []structs.InventoryItem
	for _, id := range sortedHolds(c.loop.holds) {
		items = append(items, structs.InventoryItem{AllocID: id, Attempt: c.loop.holds[id].attempt})
	}
	return items
}

func sortedHolds(holds map[string]*hold) []string {
	ids := make([]string, 0, len(holds))
	for id := range holds {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// assignHolds takes the servers' word on holds. Called by the loop.
func (c *Client) assignHolds(work context.Context, a *structs.Assignments) {
	listed := make(map[string]bool, len(a.Set))
	for i := range a.Set {
		one := &a.Set[i]
		if one.Alloc == nil || one.Job == nil || one.Alloc.NodeID != c.identity.NodeID {
			continue
		}
		listed[one.Alloc.ID] = one.Alloc.Hold != nil
		if one.Alloc.Hold != nil {
			c.assignHold(work, one)
		}
	}
	for _, id := range sortedHolds(c.loop.holds) {
		gone := slices.Contains(a.Gone, id) || a.Full && !listed[id]
		if has, told := listed[id]; gone || told && !has {
			c.order(work, c.loop.holds[id], structs.Hold{Over: true})
		}
	}
	c.publishInventory()
}

// assignHold begins a hold, or tells one what the servers want now.
func (c *Client) assignHold(work context.Context, one *structs.Assignment) {
	id := one.Alloc.ID
	h := c.loop.holds[id]
	if h == nil {
		h = &hold{id: id, attempt: one.Alloc.Attempt}
		c.loop.holds[id] = h
	}
	h.assignment = one
	c.order(work, h, *one.Alloc.Hold)
}

// order hands a word of the servers to the goroutine of a hold, which it starts
// when there is none.
func (c *Client) order(work context.Context, h *hold, wanted structs.Hold) {
	if h.orders == nil {
		h.orders = make(chan structs.Hold, 1)
		var until time.Time
		if state, ok := c.loop.table.State(h.id); ok && state.EndedAt != 0 {
			until = state.EndedAt.Time().Add(wanted.For.Std())
		}
		if h.assignment != nil {
			h.driver = c.config.Drivers[h.assignment.Job.Task.Driver]
		}
		var cleaned <-chan struct{}
		if r := c.loop.runners[h.id]; r != nil {
			cleaned = r.ended
		}
		k := keeper{client: c, hold: h, id: h.id, attempt: h.attempt, driver: h.driver, orders: h.orders, until: until}
		if h.assignment != nil {
			k.devices = h.assignment.Alloc.Devices
		}
		c.work.Go(func() { k.run(work, wanted, cleaned) })
		return
	}
	select {
	case <-h.orders: // an older word
	default:
	}
	h.orders <- wanted
}

// keeper carries one debug hold out, in a goroutine of its own; its fields do
// not change.
type keeper struct {
	client  *Client
	hold    *hold // the loop's
	id      string
	attempt uint64
	driver  driver.Driver // nil: there is nothing but a record
	devices []string      // that it had at first
	orders  <-chan structs.Hold
	until   time.Time
}

// run keeps the place from the begin of the hold to its end, which it tells the
// servers. cleaned is closed when the failed task is out of the way.
func (k *keeper) run(work context.Context, wanted structs.Hold, cleaned <-chan struct{}) {
	c := k.client
	if cleaned != nil {
		select {
		case <-cleaned:
		case <-work.Done():
			return
		}
	}
	var cleaning <-chan struct{}
	if err := c.ask(work, func() { cleaning = c.loop.cleaning[k.id] }); err != nil {
		return
	}
	if cleaning != nil { // what it left is being kept
		select {
		case <-cleaning:
		case <-work.Done():
			return
		}
	}
	devices := !wanted.Freed
	var cause *structs.Reason
	if !wanted.Over {
		cause = k.begin(work, devices)
		if cause == nil {
			c.log.Info("failed allocation is held for debugging", logkey.AllocID, k.id)
			if !devices {
				k.note(structs.HoldNote{})
			}
		}
	}
	timer := time.NewTimer(max(0, k.until.Sub(c.config.Now())))
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
	c.dropLeft(work, k.id)
	if err := os.Remove(c.files.hold(k.id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("remove record of debug hold", logkey.AllocID, k.id, logkey.Error, err)
	}
	k.note(structs.HoldNote{Over: true, Cause: cause})
	c.post(func() {
		delete(c.loop.holds, k.id)
		c.publishInventory()
	})
}

// note tells the servers.
func (k *keeper) note(note structs.HoldNote) {
	c := k.client
	c.session.Note(structs.AllocNote{AllocID: k.id, Attempt: k.attempt, Seq: c.nextNote(), At: c.now(), Hold: &note})
}

// begin starts the task that holds the place, instead of an earlier one; nil
// when it runs or the agent stops.
func (k *keeper) begin(work context.Context, devices bool) *structs.Reason {
	c := k.client
	if k.driver == nil {
		return structs.NewReason("client.driver_missing", "driver", "")
	}
	record, err := json.Marshal(holdRecord{Attempt: k.attempt})
	if err == nil {
		err = store.WriteFile(c.files.hold(k.id), record, 0o600, false)
	}
	if err != nil {
		return structs.NewReason("client.hold_failed", "cause", err)
	}
	spec, err := c.holdSpec(k.id, devices)
	if err != nil {
		return structs.NewReason("client.hold_failed", "cause", err)
	}
	if !k.clear(work) {
		return nil
	}
	c.setHookTask(spec.ID, true)
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
		if !errors.Is(err, driver.ErrTaskExists) || !sleep(ctx, holdRetry) {
			return structs.NewReason("client.hold_failed", "cause", err)
		}
	}
	c.post(func() { k.hold.ready = true })
	return nil
}

// clear ends the task that holds the place, and what it left on devices; false
// when the agent stops before that is done.
func (k *keeper) clear(work context.Context) bool {
	c := k.client
	if err := c.ask(work, func() { k.hold.ready = false }); err != nil {
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
		c.log.Warn("end debug hold", logkey.AllocID, k.id, logkey.Error, err)
		if !sleep(work, holdRetry) {
			return false
		}
	}
	c.setHookTask(holdTaskID(k.id), false)
	if len(k.devices) > 0 {
		c.reap(work, k.devices)
	}
	return work.Err() == nil
}

// holdSpec is the task that failed, without its command, and without its devices
// once those were released.
func (c *Client) holdSpec(id string, devices bool) (driver.TaskSpec, error) {
	data, err := os.ReadFile(c.files.hookPlan(id))
	if err != nil {
		return driver.TaskSpec{}, fmt.Errorf("read task: %w", err)
	}
	var plan hookPlan
	if err := json.Unmarshal(data, &plan); err != nil {
		return driver.TaskSpec{}, fmt.Errorf("read task: %w", err)
	}
	spec := plan.Spec
	spec.ID, spec.Command, spec.Hold, spec.LogDir = holdTaskID(id), nil, true, c.files.holdLogs(id)
	if left, ok := c.leftBy(id); ok && spec.Container != nil {
		container := *spec.Container
		container.Image, container.Pull = left.Image, driver.PullNever
		spec.Container = &container
	}
	if !devices {
		for i := range spec.Reservations {
			r := &spec.Reservations[i]
			r.Nodes, r.CDI, r.Engine = nil, nil, nil
			for name := range r.Env {
				if strings.HasSuffix(name, visibleSuffix) {
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
		if name, _, _ := strings.Cut(pair, "="); strings.HasSuffix(name, visibleSuffix) {
			env[i] = name + "="
		}
	}
	return env
}

// enter lets a command into the task of a hold. Called by the loop.
func (h *hold) enter(t *execTarget) *structs.Error {
	if !h.ready {
		return structs.NewError(structs.CodeUnavailable, "client.hold_not_ready", "alloc", h.id)
	}
	t.assignment, t.driver, t.task = h.assignment, h.driver, holdTaskID(h.id)
	return nil
}
