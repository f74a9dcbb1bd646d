package server

import (
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// dueRemovals lists the nodes that are to be forgotten at now.
func dueRemovals(snapshot *state.Snapshot, now structs.UnixNano, after time.Duration) []dueSweep {
	var due []dueSweep
	for node := range snapshot.Nodes() {
		if forgetIsDue(snapshot, node, now, after) {
			due = append(due, dueSweep{structs.CommandNodeRemove, &structs.NodeRemove{NodeID: node.ID, RegisterIndex: node.RegisterIndex}})
		}
	}
	return due
}

// forgetIsDue reports whether a node is to be forgotten: it was removed and no
// strict job waits for its lease any more, or it is down for longer than the
// administrator wants to see it, and nothing that may run is its.
func forgetIsDue(snapshot *state.Snapshot, node *structs.Node, now structs.UnixNano, after time.Duration) bool {
	if node.Status != structs.NodeLost && node.Status != structs.NodeLeft || strictMayRun(snapshot, node.ID) {
		return false
	}
	if node.Removed {
		return true
	}
	if after <= 0 || now.Sub(node.StatusAt) <= after {
		return false
	}
	for alloc := range snapshot.Occupants(node.ID) {
		if !alloc.Status.Terminal() {
			return false // tasks that outlive their agent
		}
	}
	return true
}
