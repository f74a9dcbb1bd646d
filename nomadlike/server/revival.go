package server

import (
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	// unheardMost is how long the queue waits for nodes after the state was brought
	// back from a backup. Nodes that are gone are lost long before; one that its
	// peers reach and the servers do not must not hold up everybody for ever.
	unheardMost = 2 * time.Minute
	unheardLook = 100 * time.Millisecond
)

// revival is what the queue loop knows of a state that was brought back.
type revival struct {
	at    structs.UnixNano // which one
	since time.Time        // when the loop saw it first
	over  bool
}

// unheard reports whether the queue must wait for nodes that have not said what
// they run since the state was brought back. Until then any job may still run
// somewhere, in an attempt that the state does not know.
func (r *revival) unheard(snapshot *state.Snapshot, now time.Time) bool {
	cluster := snapshot.Cluster()
	if cluster == nil || cluster.RevivedAt == 0 {
		return false
	}
	if cluster.RevivedAt != r.at {
		*r = revival{at: cluster.RevivedAt, since: now}
	}
	if r.over {
		return false
	}
	if now.Sub(r.since) < unheardMost {
		for node := range snapshot.Nodes() {
			if node.Unheard() && (node.Status == structs.NodeReady || node.Status == structs.NodeDisconnected) {
				return true
			}
		}
	}
	r.over = true
	return false
}
