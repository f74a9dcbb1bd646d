package alloc

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// harness is a node around a table: it executes effects in its own time, as
// goroutines and disks would, and checks what must always hold.
type harness struct {
	t     *rapid.T
	table *Table
	now   structs.UnixNano

	stored   map[string]State
	released map[string]bool                // said by the server at any time
	statuses map[string]structs.AllocStatus // last reported
	starts   map[string]int                 // effects
	alive    map[string]bool                // processes exist, to the world's knowledge
	pending  map[string][]string            // alloc -> acts that are not answered
	stopping map[string]bool                // a Stop was given to a living task
}

func newHarness(t *rapid.T) *harness {
	return &harness{
		t: t, table: NewTable("n1"), stored: map[string]State{}, released: map[string]bool{},
		statuses: map[string]structs.AllocStatus{}, starts: map[string]int{}, alive: map[string]bool{},
		pending: map[string][]string{}, stopping: map[string]bool{},
	}
}

// execute notes the effects and checks them.
func (h *harness) execute(effects []Effect) {
	persisted := map[string]Phase{}
	for _, e := range effects {
		id := e.Alloc()
		state, _ := h.table.State(id)
		switch e := e.(type) {
		case Persist:
			h.stored[id] = state
			persisted[id] = state.Phase
		case Prepare, Recover:
			h.pending[id] = append(h.pending[id], fmt.Sprintf("%T", e))
		case Start:
			if !h.released[id] {
				h.t.Fatalf("%s starts before its release", id)
			}
			if persisted[id] != PhaseStarting {
				h.t.Fatalf("%s starts before the store knows", id)
			}
			if h.starts[id]++; h.starts[id] > 1 {
				h.t.Fatalf("%s starts twice", id)
			}
			for other := range h.alive {
				o, _ := h.table.State(other)
				if o.JobID == state.JobID && o.Attempt != state.Attempt {
					h.t.Fatalf("attempt %d starts while attempt %d lives", state.Attempt, o.Attempt)
				}
			}
			h.alive[id] = true
			h.pending[id] = append(h.pending[id], "Start")
		case Stop:
			if !h.alive[id] {
				h.t.Fatalf("%s is stopped without processes", id)
			}
			if h.stopping[id] && e.Grace > 0 {
				h.t.Fatalf("%s is given a second grace", id)
			}
			h.stopping[id] = true
		case Report:
			before := h.statuses[id]
			if before != "" && before != e.Report.Status && !before.CanBecome(e.Report.Status) {
				h.t.Fatalf("%s is reported %s after %s", id, e.Report.Status, before)
			}
			h.statuses[id] = e.Report.Status
		case Clean:
			if h.alive[id] {
				h.t.Fatalf("%s is cleaned away with processes", id)
			}
		}
	}
	// What may have processes is in the inventory.
	inventory := map[string]bool{}
	for _, item := range h.table.Inventory() {
		inventory[item.AllocID] = true
	}
	for id := range h.alive {
		if !inventory[id] {
			h.t.Fatalf("%s lives and is not in the inventory", id)
		}
	}
}

func (h *harness) step(id string, e Event) { h.execute(h.table.Step(id, e, h.now)) }

// answer answers the oldest unanswered act of an allocation, well or badly.
func (h *harness) answer(id string, well bool) {
	act := h.pending[id][0]
	h.pending[id] = h.pending[id][1:]
	handle := driver.Handle{TaskID: TaskID(id)}
	switch act {
	case "alloc.Prepare":
		if well {
			h.step(id, Prepared{})
		} else {
			h.step(id, PrepareFailed{Cause: structs.NewReason("why")})
		}
	case "Start":
		if well {
			h.step(id, Started{Handle: handle})
		} else {
			delete(h.alive, id)
			h.step(id, StartFailed{Result: driver.ExitResult{Code: 127}})
		}
	case "alloc.Recover":
		switch {
		case h.alive[id]:
			h.step(id, Started{Handle: handle})
		default: // the start of an earlier agent was never executed
			h.step(id, Absent{})
		}
	}
}

func (h *harness) exit(id string) {
	delete(h.alive, id)
	h.step(id, Exited{Result: driver.ExitResult{Code: 1}})
}

// restart is a new agent that knows what the store knows; unanswered acts of
// the old one are executed or not.
func (h *harness) restart(executed bool) {
	for id, acts := range h.pending {
		if slices.Contains(acts, "Start") && !executed {
			delete(h.alive, id)
		}
	}
	h.pending, h.stopping = map[string][]string{}, map[string]bool{}
	for id, s := range h.stored {
		s.sent = ForceNone
		h.stored[id] = s
	}
	h.table = NewTable("n1")
	h.execute(h.table.Resume(slices.Collect(maps.Values(h.stored)), h.now))
}

func (h *harness) assign(t *rapid.T) {
	a := &structs.Assignments{Full: rapid.Bool().Draw(t, "full")}
	for job := range 2 {
		newest := rapid.IntRange(0, 3).Draw(t, "newest attempt")
		for attempt := 1; attempt <= newest; attempt++ {
			if attempt < newest && rapid.Bool().Draw(t, "gone") {
				continue
			}
			jobID := fmt.Sprint("job", job)
			id := structs.AllocID(jobID, 0, uint64(attempt), 0)
			one := &structs.Allocation{
				ID: id, JobID: jobID, Attempt: uint64(attempt), NodeID: "n1", Status: structs.AllocPending,
				Desired: rapid.SampledFrom([]structs.AllocDesired{structs.DesiredRun, structs.DesiredRun, structs.DesiredStop}).Draw(t, "desired"),
				// A barrier, once open, stays open.
				Released: h.released[id] || rapid.Bool().Draw(t, "released"),
			}
			h.released[id] = one.Released
			a.Set = append(a.Set, structs.Assignment{Alloc: one, Job: &structs.Job{ID: jobID, StopGrace: 1}})
		}
	}
	h.execute(h.table.Assign(a, h.now))
}

func some(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

func (h *harness) waiting() []string {
	var ids []string
	for id, acts := range h.pending {
		if len(acts) > 0 {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// TestTableAlways drives a table with a world that answers in any order,
// fails, forgets and restarts.
func TestTableAlways(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHarness(t)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			h.now++
			switch rapid.SampledFrom([]string{"assign", "answer", "answer", "answer", "exit", "restart", "lease", "evict"}).Draw(t, "act") {
			case "assign":
				h.assign(t)
			case "answer":
				if ids := h.waiting(); len(ids) > 0 {
					h.answer(rapid.SampledFrom(ids).Draw(t, "who"), rapid.IntRange(0, 4).Draw(t, "well") > 0)
				}
			case "exit":
				if ids := some(h.alive); len(ids) > 0 {
					id := rapid.SampledFrom(ids).Draw(t, "who")
					if s, _ := h.table.State(id); s.Phase == PhaseRunning {
						h.exit(id)
					}
				}
			case "evict":
				if ids := some(h.alive); len(ids) > 0 {
					h.step(rapid.SampledFrom(ids).Draw(t, "whose device"), Evicted{Cause: structs.NewReason("device-failed")})
				}
			case "restart":
				h.restart(rapid.Bool().Draw(t, "executed"))
			case "lease":
				h.execute(h.table.EndLease(h.now))
			}
		}
		// Nothing is assigned any more: everything ends, in finitely many steps.
		h.execute(h.table.Assign(&structs.Assignments{Full: true}, h.now))
		for steps := 0; ; steps++ {
			if steps > 100 {
				t.Fatalf("does not end: alive %v, waiting %v", some(h.alive), h.waiting())
			}
			if ids := h.waiting(); len(ids) > 0 {
				h.answer(ids[0], true)
				continue
			}
			if ids := some(h.alive); len(ids) > 0 {
				if !h.stopping[ids[0]] {
					t.Fatalf("%s lives unassigned and is not being stopped", ids[0])
				}
				h.exit(ids[0])
				continue
			}
			break
		}
		for _, s := range h.table.States() {
			if s.Phase != PhaseEnded {
				t.Fatalf("%s is %s at the end", s.AllocID, s.Phase)
			}
		}
	})
}
