package state

import (
	"nomadlike/nomadlike/structs"
)

// applyNodeRegister makes a node known, or known again. An older incarnation
// than the known one is a clone or a ghost and is refused. What operators said
// of the node stays. Allocations that were lost with the node and are not in
// its inventory hold nothing any more; those that are in it go on holding
// their devices until the node has killed them.
func applyNodeRegister(tx *txn, body *structs.NodeRegister) (structs.ApplyResult, *structs.Error) {
	if problem := nodeProblem(&body.Node); problem != "" {
		return refuse(structs.CodeInvalid, "state.node_malformed", "node", body.Node.Name, "field", problem)
	}
	if len(body.Inventory) > InventoryMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "inventory", "max", InventoryMax)
	}
	node := body.Node
	known, returns := tx.node(node.ID)
	if returns && node.Incarnation < known.Incarnation {
		return refuse(structs.CodeConflict, "state.node_superseded", "node", known.Name,
			"incarnation", node.Incarnation, "known", known.Incarnation)
	}
	if cluster, ok := tx.cluster(); ok && cluster.IsNodeRemoved(node.ID) {
		return refuse(structs.CodeForbidden, "server.node_removed")
	}
	if body.Unique {
		if refusal := tx.checkName(&node); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}
	if !returns {
		if tx.meta.Nodes >= NodesMax {
			return refuse(structs.CodeTooLarge, "state.too_many", "what", "nodes", "max", NodesMax)
		}
		tx.meta.Nodes++
	}
	if node.OwnPool == "" {
		node.OwnPool = node.Pool // an agent that knows one field only
	}
	node.Pool = structs.PoolOf(&node, tx.pools())
	node.Status, node.StatusReason, node.StatusAt = structs.NodeReady, nil, tx.now
	node.Removed = false
	node.RegisteredAt, node.RegisterIndex = tx.now, tx.index()
	node.Eligibility, node.DrainDeadline, node.CreateIndex = structs.NodeEligible, 0, tx.index()
	id := "event.node.registered"
	if returns {
		node.Eligibility, node.DrainDeadline, node.CreateIndex = known.Eligibility, known.DrainDeadline, known.CreateIndex
		if known.Status == structs.NodeReady {
			node.StatusAt = known.StatusAt
		}
		id = "event.node.returned"
	}
	node.Unknown, node.Maintenance = nil, tx.maintenanceOf(&node) // not for the node to say
	tx.tellUnknown(known, &node, body.Inventory)
	internNode(&node)
	tx.putNode(&node)
	tx.freeAbsent(node.ID, body.Inventory)
	tx.putUsage(tx.usage(node.ID))
	if !returns || known.Status != structs.NodeReady || known.Incarnation != node.Incarnation {
		tx.tell(nodeEvent(id, &node), "node", node.Name, "version", node.Version)
	}
	if !returns {
		known = &structs.Node{}
	}
	tx.tellDevices(known, &node)
	tx.tellFaults(known, &node)
	return accepted()
}

// freeAbsent ends the quarantine, and the debug hold, of every allocation of a
// node that its inventory does not list.
func (tx *txn) freeAbsent(nodeID string, inventory []structs.InventoryItem) {
	present := make(map[string]bool, len(inventory)) // looked up, never ranged over
	for _, item := range inventory {
		present[item.AllocID] = true
	}
	for _, alloc := range tx.occupantsOf(nodeID) {
		switch {
		case present[alloc.ID]:
		case alloc.Quarantined:
			tx.free(alloc)
		case alloc.Hold != nil:
			tx.endHold(alloc)
		}
	}
}

// applyNodeStatus records what was concluded about a node's life. A judgement
// of another incarnation than the known one is out of date and refused. A lost
// node comes back by registering, with its inventory, and in no other way.
func applyNodeStatus(tx *txn, body *structs.NodeStatusChange) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.node(body.NodeID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	}
	if body.Incarnation != known.Incarnation {
		return refuse(structs.CodeConflict, "state.node_superseded", "node", known.Name,
			"incarnation", body.Incarnation, "known", known.Incarnation)
	}
	legal := known.Status.CanBecome(body.Status)
	switch body.Status {
	case structs.NodeReady:
		legal = legal && known.Status == structs.NodeDisconnected
	case structs.NodeDisconnected, structs.NodeLost, structs.NodeLeft:
	default:
		legal = false
	}
	if !legal {
		return refuse(structs.CodeConflict, "state.node_status", "node", known.Name, "from", known.Status, "to", body.Status)
	}
	node := *known
	node.Status, node.StatusReason, node.StatusAt = body.Status, body.Reason, tx.now
	tx.putNode(&node)
	event := nodeEvent("event.node."+string(body.Status), &node)
	switch body.Status {
	case structs.NodeLost:
		event.Severity = severityError
	case structs.NodeDisconnected:
		event.Severity = severityWarn
	}
	tx.tell(event, "node", node.Name)
	if body.Status == structs.NodeLost {
		tx.loseAllocs(&node)
	}
	return accepted()
}

// loseAllocs writes off everything that runs on a lost node: its devices stay
// in quarantine, and the attempts it took part in end and queue again.
func (tx *txn) loseAllocs(node *structs.Node) {
	cause := structs.NewReason("reason.node_lost", "node", node.Name)
	for _, alloc := range tx.occupantsOf(node.ID) {
		if alloc.Status.CanBecome(structs.AllocLost) {
			tx.loseAlloc(alloc, cause)
		}
	}
}

// loseAlloc writes off one allocation.
func (tx *txn) loseAlloc(alloc *structs.Allocation, cause *structs.Reason) {
	after := *alloc
	after.Status, after.Step, after.Quarantined = structs.AllocLost, "", true
	after.Cause, after.Infra, after.FinishedAt = cause, true, tx.now
	after.Desired, after.DesiredReason = structs.DesiredStop, cause
	tx.putAlloc(alloc, &after)
	tx.tellAlloc(&after)
	job, ok := tx.job(alloc.JobID)
	if !ok {
		return
	}
	if !tx.goesOn(job, &after) {
		tx.endAttempt(job, alloc.Subjob, alloc.Attempt, ending{outcome: structs.OutcomeLost, cause: cause})
	}
	if job.Fencing == structs.FencingStrict {
		event := allocEvent("event.alloc.fenced", &after)
		event.Severity = severityWarn
		tx.tell(event, "rank", after.Name, "node", after.NodeName)
	}
	tx.settle(job, alloc.Subjob, alloc.Attempt)
}

// applyNodeEligibility records an operator's word. A node that drains without
// a deadline, or past it, gives its work away at once; before its deadline the
// work may end by itself.
func applyNodeEligibility(tx *txn, body *structs.NodeEligibilityChange) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.node(body.NodeID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	}
	switch body.Eligibility {
	case structs.NodeEligible, structs.NodeCordoned, structs.NodeDraining:
	default:
		return refuse(structs.CodeInvalid, "state.eligibility_unknown", "eligibility", body.Eligibility)
	}
	node := *known
	node.Eligibility, node.DrainDeadline = body.Eligibility, 0
	if body.Eligibility == structs.NodeDraining {
		node.DrainDeadline = body.DrainDeadline
	}
	tx.putNode(&node)
	if known.Eligibility != node.Eligibility || known.DrainDeadline != node.DrainDeadline {
		tx.tell(nodeEvent("event.node."+string(node.Eligibility), &node), "node", node.Name, "by", tx.by)
	}
	if node.Eligibility == structs.NodeDraining && node.DrainDeadline <= tx.now {
		tx.evictAllocs(&node, structs.NewReason("reason.node_drained", "node", node.Name))
	}
	return accepted()
}

// evictAllocs moves the work of a node away that is drained or in maintenance.
func (tx *txn) evictAllocs(node *structs.Node, cause *structs.Reason) {
	for _, alloc := range tx.occupantsOf(node.ID) {
		job, ok := tx.job(alloc.JobID)
		if alloc.Hold != nil {
			tx.orderHold(alloc, structs.ReleaseHold)
		}
		if !ok || alloc.Status.Terminal() {
			continue
		}
		tx.endAttempt(job, alloc.Subjob, alloc.Attempt, ending{outcome: structs.OutcomePreempted, cause: cause})
	}
}

// applyDeviceTreated keeps what an operator has done to a device.
func applyDeviceTreated(tx *txn, body *structs.DeviceTreatment) (structs.ApplyResult, *structs.Error) {
	node, ok := tx.node(body.NodeID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.node_unknown", "node", body.NodeID)
	}
	if !body.Act.Known() {
		return refuse(structs.CodeInvalid, "client.device_act", "act", body.Act)
	}
	if len(body.Device) > idLengthMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "device", "max", idLengthMax)
	}
	event := nodeEvent("event.node.device_"+string(body.Act), node)
	event.Severity = severityWarn
	tx.tell(event, "node", node.Name, "device", body.Device, "number", decimal(body.Number), "by", tx.by)
	return accepted()
}
