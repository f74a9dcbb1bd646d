package state

import "nomadlike/nomadlike/structs"

// fenced reports whether an attempt of a strict job that has no rank left may
// still run somewhere: on a node that was lost and has not come back without
// it, whose lease may last. Until that is over, the attempt does not end.
func (tx *txn) fenced(job *structs.Job, attempt *structs.Attempt) bool {
	if job.Fencing != structs.FencingStrict {
		return false
	}
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if mayStillRun(alloc) {
			return true
		}
	}
	return false
}

// mayStillRun reports whether an allocation that was given up may have processes.
func mayStillRun(alloc *structs.Allocation) bool {
	return alloc.Status == structs.AllocLost && alloc.Quarantined && !alloc.LeaseOver
}

// applyLeaseOver lets strict jobs go on that wait for the lease of a lost node.
// A node that has come back meanwhile has a new lease: what it still runs of
// them is told by its inventory and its reports.
func applyLeaseOver(tx *txn, body *structs.LeaseOver) (structs.ApplyResult, *structs.Error) {
	node, ok := tx.node(body.NodeID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	}
	if node.Status != structs.NodeLost || node.RegisterIndex != body.RegisterIndex {
		return refuse(structs.CodeConflict, "state.node_status", "node", node.Name, "from", node.Status, "to", structs.NodeLost)
	}
	tx.tell(nodeEvent("event.node.lease_over", node), "node", node.Name)
	for _, alloc := range tx.occupantsOf(node.ID) {
		if !mayStillRun(alloc) {
			continue
		}
		after := *alloc
		after.LeaseOver = true
		tx.putAlloc(alloc, &after)
		if job, ok := tx.job(after.JobID); ok {
			tx.settle(job, after.Subjob, after.Attempt)
		}
	}
	return accepted()
}
