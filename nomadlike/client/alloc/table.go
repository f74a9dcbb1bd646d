package alloc

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Table is every allocation that a node knows. Its methods are deterministic
// and are called by one goroutine; they give the effects in the order in
// which they must be executed.
type Table struct {
	nodeID  string
	entries map[string]*entry
	groups  map[group][]string  // ids of the attempts of each subjob, sorted
	live    map[string]struct{} // ids of those that have not ended
}

// group names one subjob: its attempts on this node exclude each other.
type group struct {
	jobID  string
	subjob int
}

func (s State) group() group { return group{s.JobID, s.Subjob} }

type entry struct {
	State
	assignment *structs.Assignment // nil until assigned since the agent's start
}

// NewTable makes an empty table for a node.
func NewTable(nodeID string) *Table {
	return &Table{
		nodeID: nodeID, entries: make(map[string]*entry), groups: make(map[group][]string), live: make(map[string]struct{}),
	}
}

func (t *Table) add(e *entry) {
	t.entries[e.AllocID] = e
	ids := append(t.groups[e.group()], e.AllocID)
	slices.Sort(ids)
	t.groups[e.group()] = ids
	if e.Phase != PhaseEnded {
		t.live[e.AllocID] = struct{}{}
	}
}

// Resume takes over what an earlier process of the agent knew. It is called
// before anything else.
func (t *Table) Resume(states []State, now structs.UnixNano) []Effect {
	states = slices.Clone(states)
	slices.SortFunc(states, func(a, b State) int { return cmp.Compare(a.AllocID, b.AllocID) })
	var effects []Effect
	for _, s := range states {
		next, more := Resume(s, now)
		if next.Phase != PhaseEnded && !next.Phase.MayHaveProcesses() {
			continue // nothing of it exists: the server will assign it again
		}
		t.add(&entry{State: next})
		effects = append(effects, more...)
	}
	return effects
}

// Assign takes the server's word. Assignments of other nodes, or without an
// allocation, are left out.
func (t *Table) Assign(a *structs.Assignments, now structs.UnixNano) []Effect {
	set := make([]*structs.Assignment, 0, len(a.Set))
	listed := make(map[string]bool, len(a.Set))
	for i := range a.Set {
		s := &a.Set[i]
		if s.Alloc == nil || s.Alloc.NodeID != t.nodeID || !driver.ValidTaskID(TaskID(s.Alloc.ID)) || listed[s.Alloc.ID] {
			continue
		}
		set = append(set, s)
		listed[s.Alloc.ID] = true
	}
	// New attempts first, so that old ones are killed and not just stopped.
	slices.SortStableFunc(set, func(x, y *structs.Assignment) int {
		return cmp.Or(cmp.Compare(y.Alloc.Attempt, x.Alloc.Attempt), cmp.Compare(x.Alloc.ID, y.Alloc.ID))
	})

	var effects []Effect
	if a.Full {
		for _, id := range slices.Sorted(maps.Keys(t.live)) {
			if !listed[id] {
				effects = append(effects, t.revoke(id, "client.unassigned", now)...)
			}
		}
	}
	for _, id := range a.Gone {
		effects = append(effects, t.revoke(id, "client.unassigned", now)...)
	}
	for _, s := range set {
		effects = append(effects, t.assign(s, now)...)
	}
	return effects
}

// Adopt takes over a task that was found on the node and of which nothing is
// remembered, when a server has said what it is. An allocation that is known
// already is left alone.
func (t *Table) Adopt(a *structs.Assignment, handle driver.Handle, now structs.UnixNano) []Effect {
	if _, known := t.entries[a.Alloc.ID]; known || a.Alloc.NodeID != t.nodeID {
		return nil
	}
	s := New(a)
	s.Phase, s.Released, s.Handle = PhaseStarting, true, &handle
	next, effects := Resume(s, now)
	t.add(&entry{State: next, assignment: a})
	return append([]Effect{Persist{of{s.AllocID}}}, effects...)
}

// Step takes an event of one allocation; an unknown one changes nothing.
func (t *Table) Step(id string, event Event, now structs.UnixNano) []Effect {
	e, ok := t.entries[id]
	if !ok {
		return nil
	}
	next, effects := Step(e.State, event, now)
	ended := next.Phase == PhaseEnded && e.Phase != PhaseEnded
	e.State = next
	if ended {
		delete(t.live, id)
		e.assignment = nil // large, and of no more use
		effects = append(effects, t.unblock(next, now)...)
	}
	return effects
}

// EndLease tells every strict allocation that the lease has ended.
func (t *Table) EndLease(now structs.UnixNano) []Effect {
	var effects []Effect
	for _, id := range slices.Sorted(maps.Keys(t.live)) {
		if t.entries[id].Strict {
			effects = append(effects, t.Step(id, LeaseEnded{}, now)...)
		}
	}
	return effects
}

// HasStrict reports whether an allocation has to be killed when the lease ends.
func (t *Table) HasStrict() bool {
	for id := range t.live {
		if t.entries[id].Strict {
			return true
		}
	}
	return false
}

// State returns the state of one allocation.
func (t *Table) State(id string) (State, bool) {
	if e, ok := t.entries[id]; ok {
		return e.State, true
	}
	return State{}, false
}

// Assignment returns what the server last said of an allocation, nil when it
// said nothing since the agent's start, and when the allocation has ended. The
// value is shared: do not change it.
func (t *Table) Assignment(id string) *structs.Assignment {
	if e, ok := t.entries[id]; ok {
		return e.assignment
	}
	return nil
}

// States returns every state, ordered by id.
func (t *Table) States() []State {
	states := make([]State, 0, len(t.entries))
	for _, id := range t.ids() {
		states = append(states, t.entries[id].State)
	}
	return states
}

// Inventory lists the allocations that may have processes, ordered by id.
func (t *Table) Inventory() []structs.InventoryItem {
	var items []structs.InventoryItem
	for _, id := range slices.Sorted(maps.Keys(t.live)) {
		if e := t.entries[id]; e.Phase.MayHaveProcesses() {
			items = append(items, structs.InventoryItem{AllocID: id, Attempt: e.Attempt})
		}
	}
	return items
}

// Forget removes an ended allocation whose files are gone. It reports whether
// it did.
func (t *Table) Forget(id string) bool {
	e, ok := t.entries[id]
	if !ok || e.Phase != PhaseEnded {
		return false
	}
	delete(t.entries, id)
	ids := slices.DeleteFunc(t.groups[e.group()], func(other string) bool { return other == id })
	if len(ids) == 0 {
		delete(t.groups, e.group())
	} else {
		t.groups[e.group()] = ids
	}
	return true
}

// assign takes one assignment.
func (t *Table) assign(a *structs.Assignment, now structs.UnixNano) []Effect {
	id := a.Alloc.ID
	e, known := t.entries[id]
	if !known {
		if a.Alloc.Status.Terminal() && a.Alloc.Status != structs.AllocLost {
			return nil // history
		}
		e = &entry{State: New(a)}
		t.add(e)
	}
	if e.Phase != PhaseEnded {
		e.assignment = a
	}

	effects, superseded := t.supersede(a, now)
	if superseded && e.Phase != PhaseEnded {
		return append(effects, t.Step(id, Revoked{Cause: structs.NewReason("client.superseded")}, now)...)
	}
	event := Assigned{
		Desired:  a.Alloc.Desired,
		Reason:   a.Alloc.DesiredReason,
		Stop:     a.Alloc.Stop,
		Control:  a.Alloc.Control,
		Warning:  a.Alloc.Warning,
		Released: a.Alloc.Released,
		Status:   a.Alloc.Status,
		Blocked:  t.blocked(e.State),
	}
	return append(effects, t.Step(id, event, now)...)
}

// supersede kills older attempts of the same subjob, and reports whether a
// newer one is known.
func (t *Table) supersede(a *structs.Assignment, now structs.UnixNano) (effects []Effect, superseded bool) {
	for _, id := range slices.Clone(t.groups[group{a.Alloc.JobID, a.Alloc.Subjob}]) {
		e := t.entries[id]
		switch {
		case e.Attempt < a.Alloc.Attempt && e.Phase != PhaseEnded:
			effects = append(effects, t.Step(id, Revoked{Cause: structs.NewReason("client.superseded")}, now)...)
		case e.Attempt > a.Alloc.Attempt:
			superseded = true
		}
	}
	return effects, superseded
}

// blocked reports whether an older attempt of the same subjob may still have
// processes on this node.
func (t *Table) blocked(s State) bool {
	for _, id := range t.groups[s.group()] {
		if e := t.entries[id]; e.Attempt < s.Attempt && e.Phase != PhaseEnded {
			return true
		}
	}
	return false
}

// unblock lets newer attempts go on after one has ended.
func (t *Table) unblock(ended State, now structs.UnixNano) []Effect {
	var effects []Effect
	for _, id := range slices.Clone(t.groups[ended.group()]) {
		e := t.entries[id]
		if e.Attempt > ended.Attempt && e.Phase == PhasePending && !t.blocked(e.State) {
			effects = append(effects, t.Step(id, Unblocked{}, now)...)
		}
	}
	return effects
}

func (t *Table) revoke(id, reason string, now structs.UnixNano) []Effect {
	return t.Step(id, Revoked{Cause: structs.NewReason(reason)}, now)
}

func (t *Table) ids() []string {
	return slices.Sorted(maps.Keys(t.entries))
}

// TaskSuffix follows the allocation's id in the id of its one task.
const TaskSuffix = ".main"

// TaskID is the id of the one task of an allocation, for its driver.
func TaskID(allocID string) driver.TaskID { return driver.TaskID(allocID + TaskSuffix) }
