package server

import (
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// killBudget is what a node may need, once its lease has ended, to notice that
// and to kill what is strict.
const killBudget = 1500 * time.Millisecond

// Fences remembers how long this leader has known that nodes are lost on which
// strict jobs may still run. It counts on its own clock from its own first look,
// so that clocks of servers are never compared: a new leader waits anew. Its
// methods are called by one goroutine.
type Fences struct {
	wait  time.Duration // until a lease has surely ended
	since map[fence]time.Duration
}

// fence is one loss of a node.
type fence struct {
	nodeID        string
	registerIndex uint64
}

// NewFences returns an empty memory. A node's lease counts from the sending of a
// heartbeat, which was before this leader judged it lost; servers out of contact
// renew leases for contactLasts more; clocks drift apart by one percent.
func NewFences(leaseTTL time.Duration) *Fences {
	return &Fences{wait: leaseTTL + leaseTTL/100 + contactLasts + killBudget, since: make(map[fence]time.Duration)}
}

// Step returns the leases that have surely ended at now, on a clock of the caller
// that only goes forward.
func (f *Fences) Step(snapshot *state.Snapshot, now time.Duration) []*structs.LeaseOver {
	var over []*structs.LeaseOver
	seen := make(map[fence]time.Duration)
	for node := range snapshot.Nodes() {
		if node.Status != structs.NodeLost || !strictMayRun(snapshot, node.ID) {
			continue
		}
		key := fence{node.ID, node.RegisterIndex}
		since, known := f.since[key]
		if !known {
			since = now
		}
		seen[key] = since
		if now-since >= f.wait {
			over = append(over, &structs.LeaseOver{NodeID: node.ID, RegisterIndex: node.RegisterIndex})
		}
	}
	f.since = seen
	return over
}

// strictMayRun reports whether a strict job waits for the lease of a node.
func strictMayRun(snapshot *state.Snapshot, nodeID string) bool {
	for alloc := range snapshot.Occupants(nodeID) {
		if alloc.Status != structs.AllocLost || alloc.LeaseOver {
			continue
		}
		if view, ok := snapshot.Job(alloc.JobID); ok && view.Job.Fencing == structs.FencingStrict {
			return true
		}
	}
	return false
}
