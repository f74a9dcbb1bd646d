package state

import (
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyNodeRemove forgets a node: one that an operator removes, whatever its
// status, or one that was down for long. Its name is free again afterwards.
func applyNodeRemove(tx *txn, body *structs.NodeRemove) (structs.ApplyResult, *structs.Error) {
	cluster, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	known, exists := tx.node(body.NodeID)
	switch {
	case !exists && body.Revoke && cluster.IsNodeRemoved(body.NodeID):
		return accepted() // the same command a second time
	case !exists:
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	case !body.Revoke && (known.RegisterIndex != body.RegisterIndex || known.Status != structs.NodeLost && known.Status != structs.NodeLeft):
		return refuse(structs.CodeConflict, "state.node_status", "node", known.Name, "from", known.Status, "to", "forgotten")
	}
	if body.Revoke && !cluster.IsNodeRemoved(known.ID) {
		after := *cluster
		after.RemovedNodes = slices.DeleteFunc(slices.Clone(cluster.RemovedNodes), func(r structs.RemovedNode) bool { return r.Until < tx.now })
		if len(after.RemovedNodes) >= structs.RemovedNodesMax {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "removed nodes", "max", structs.RemovedNodesMax)
		}
		after.RemovedNodes = append(after.RemovedNodes, structs.RemovedNode{ID: known.ID, Name: known.Name, At: tx.now, By: tx.by, Until: body.Until})
		tx.putCluster(&after)
		event := nodeEvent("event.node.removed", known)
		event.Severity = severityWarn
		tx.tell(event, "node", known.Name, "by", tx.by)
	}
	tx.forgetNode(known, body.Revoke || known.Removed)
	return accepted()
}

// forgetNode loses what runs on a node and takes the node off the tables. While
// strict jobs wait for its lease it stays, lost and removed, until that is over.
func (tx *txn) forgetNode(known *structs.Node, removed bool) {
	node := *known
	if node.Status != structs.NodeLost || node.Removed != removed {
		node.Status, node.StatusReason, node.StatusAt = structs.NodeLost, structs.NewReason("server.node_removed"), tx.now
		node.Removed = removed
		tx.putNode(&node)
	}
	tx.loseAllocs(&node)
	if slices.ContainsFunc(tx.occupantsOf(node.ID), tx.waitsForLease) {
		return
	}
	for _, alloc := range tx.occupantsOf(node.ID) {
		if alloc.Quarantined {
			tx.free(alloc)
		} else if alloc.Hold != nil {
			tx.endHold(alloc)
		}
	}
	usage := tx.usage(node.ID)
	if usage.NominatedFor != "" {
		tx.review(usage.NominatedFor, true) // it is found to rest on a node that is gone
	}
	if row, ok := get[*structs.Usage](tx, tableUsage, idKey(node.ID)); ok {
		tx.remove(tableUsage, idKey(node.ID), row)
	}
	last, _ := tx.node(node.ID)
	tx.remove(tableNodes, idKey(node.ID), last)
	tx.touch(touchNode, node.ID, 0)
	tx.meta.Nodes--
	tx.wakeSchedule()
	tx.tell(nodeEvent("event.node.forgotten", &node), "node", node.Name)
}

// waitsForLease reports whether an allocation of a strict job may still run.
func (tx *txn) waitsForLease(alloc *structs.Allocation) bool {
	job, ok := tx.job(alloc.JobID)
	return ok && job.Fencing == structs.FencingStrict && mayStillRun(alloc)
}

// checkName lets a node register under its name, unless another has it that is
// alive or may come back with work. The same machine that comes as another
// node has lost its identity with its data directory: the old one is forgotten.
func (tx *txn) checkName(node *structs.Node) *structs.Error {
	for _, other := range listRows[*structs.Node](tx, tableNodes, indexName, nameKey1(node.Name)) {
		if other.ID == node.ID {
			continue
		}
		same := node.Machine != "" && node.Machine == other.Machine
		if other.Status == structs.NodeReady || !same && (other.Status != structs.NodeLost && len(tx.occupantsOf(other.ID)) > 0 || other.Status == structs.NodeDisconnected) {
			return structs.NewError(structs.CodeConflict, "state.node_name_taken", "node", node.Name, "id", other.ID[:min(8, len(other.ID))], "status", other.Status)
		}
		tx.forgetNode(other, false)
		if _, stays := tx.node(other.ID); stays {
			return structs.NewError(structs.CodeConflict, "state.node_name_taken", "node", node.Name, "id", other.ID[:min(8, len(other.ID))], "status", structs.NodeLost)
		}
	}
	return nil
}

// nameKey1 begins the keys of all rows with a name.
func nameKey1(name string) []byte { return appendString(make([]byte, 0, len(name)+1), name) }
