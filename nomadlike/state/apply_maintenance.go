package state

import (
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// applyMaintenancePut makes a window of maintenance, or replaces one. One that has
// begun keeps its start: its nodes are closed already.
func applyMaintenancePut(tx *txn, body *structs.MaintenancePut) (structs.ApplyResult, *structs.Error) {
	cluster, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	window := body.Maintenance
	window.Nodes = slices.Compact(slices.Sorted(slices.Values(window.Nodes)))
	window.By, window.At, window.Begun, window.CreateIndex = tx.by, tx.now, false, tx.index()
	event := "event.maintenance.added"
	at := slices.IndexFunc(cluster.Maintenance, func(m structs.Maintenance) bool { return m.ID == window.ID })
	if at >= 0 {
		known := &cluster.Maintenance[at]
		event = "event.maintenance.changed"
		window.By, window.At, window.Begun, window.CreateIndex = known.By, known.At, known.Begun, known.CreateIndex
		if known.Begun {
			window.Start = known.Start
		}
	}
	window.ModifyIndex = tx.index()
	if problem := maintenanceProblem(&window); problem != "" {
		return refuse(structs.CodeInvalid, "state.maintenance_malformed", "id", window.ID, "field", problem)
	}
	windows := slices.Clone(cluster.Maintenance)
	switch {
	case at >= 0:
		windows[at] = window
	case len(windows) >= structs.MaintenanceMax:
		return refuse(structs.CodeTooLarge, "state.maintenance_many", "max", structs.MaintenanceMax)
	default:
		windows = append(windows, window)
	}
	tx.putMaintenance(cluster, windows)
	tx.tellMaintenance(event, &window)
	return accepted()
}

// applyMaintenanceStep begins a window, or removes it.
func applyMaintenanceStep(tx *txn, body *structs.MaintenanceStep) (structs.ApplyResult, *structs.Error) {
	cluster, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	at := slices.IndexFunc(cluster.Maintenance, func(m structs.Maintenance) bool { return m.ID == body.ID })
	if at < 0 {
		return refuse(structs.CodeNotFound, "state.maintenance_unknown", "id", body.ID)
	}
	window := cluster.Maintenance[at]
	windows := slices.Clone(cluster.Maintenance)
	switch body.Step {
	case structs.MaintenanceBegin:
		if window.Start > tx.now { // it was moved since the sweep looked
			return refuse(structs.CodeConflict, "state.maintenance_early", "id", window.ID)
		}
		if !window.Begun {
			windows[at].Begun, windows[at].ModifyIndex = true, tx.index()
			window = windows[at]
			tx.putMaintenance(cluster, windows)
			tx.tellMaintenance("event.maintenance.begun", &window)
		}
		if !window.KeepRunning {
			tx.clearForMaintenance(&window)
		}
		return accepted()
	case structs.MaintenanceOver:
		if window.End > tx.now {
			return refuse(structs.CodeConflict, "state.maintenance_early", "id", window.ID)
		}
	case structs.MaintenanceRemove:
	default:
		return refuse(structs.CodeInvalid, "state.maintenance_malformed", "id", window.ID, "field", "step")
	}
	tx.putMaintenance(cluster, slices.Delete(windows, at, at+1))
	if event := "event.maintenance.removed"; window.Begun || body.Step == structs.MaintenanceOver {
		tx.tellMaintenance("event.maintenance.ended", &window)
	} else {
		tx.tellMaintenance(event, &window)
	}
	return accepted()
}

// maintenanceProblem reports what keeps a window out of the tables, "" for nothing.
func maintenanceProblem(m *structs.Maintenance) string {
	ways := 0
	for _, given := range []bool{len(m.Nodes) > 0, m.Pool != "", m.All} {
		if given {
			ways++
		}
	}
	switch {
	case !validKey(m.ID):
		return "id"
	case ways != 1, len(m.Nodes) > NodesMax, m.Pool != "" && !validKey(m.Pool):
		return "nodes"
	case slices.ContainsFunc(m.Nodes, func(name string) bool { return !validKey(name) }):
		return "nodes"
	case m.Start <= 0:
		return "start"
	case m.End <= m.Start || m.End.Sub(m.Start) > structs.MaintenanceLengthMax.Std():
		return "end"
	case len(m.Reason) > structs.MaintenanceReasonMax:
		return "reason"
	}
	return ""
}

// putMaintenance replaces the windows, and what nodes carry of them.
func (tx *txn) putMaintenance(cluster *structs.Cluster, windows []structs.Maintenance) {
	after := *cluster
	structs.SortMaintenance(windows)
	if after.Maintenance = windows; len(windows) == 0 {
		after.Maintenance = nil
	}
	tx.putCluster(&after)
	tx.dealMaintenance()
}

// dealMaintenance sets on every node the windows that cover it now.
func (tx *txn) dealMaintenance() {
	for _, known := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		if own := tx.maintenanceOf(known); !slices.Equal(own, known.Maintenance) {
			node := *known
			node.Maintenance = own
			tx.putNode(&node)
		}
	}
}

// maintenanceOf returns the windows that cover a node.
func (tx *txn) maintenanceOf(node *structs.Node) []structs.NodeMaintenance {
	cluster, ok := tx.cluster()
	if !ok {
		return nil
	}
	return structs.MaintenanceOf(node, cluster.Maintenance)
}

// maintenanceAgainst reports which window a gang that starts now could run into, nil
// when it could into none.
func (tx *txn) maintenanceAgainst(job *structs.Job, gang *structs.GangPlan) *structs.Reason {
	for i := range gang.Placements {
		node, ok := tx.node(gang.Placements[i].NodeID)
		if !ok {
			continue
		}
		if w := node.MaintenanceAgainst(job, tx.now); w != nil {
			return structs.NewReason("scheduler.refused_maintenance", "node", node.Name, "start", w.Start.Time().Format(time.RFC3339))
		}
	}
	return nil
}

// clearForMaintenance stops what runs on the nodes of a window.
func (tx *txn) clearForMaintenance(window *structs.Maintenance) {
	for _, node := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		if window.Covers(node) {
			tx.evictAllocs(node, structs.NewReason("reason.maintenance", "node", node.Name, "until", window.End.Time().Format(time.RFC3339)))
		}
	}
}

// tellMaintenance records an event of a window.
func (tx *txn) tellMaintenance(id string, window *structs.Maintenance) {
	nodes := 0
	for _, node := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		if window.Covers(node) {
			nodes++
		}
	}
	tx.tell(structs.Event{Topic: topicNode, ID: id}, "id", window.ID, "by", tx.by, "nodes", decimal(nodes),
		"start", window.Start.Time().Format(time.RFC3339), "end", window.End.Time().Format(time.RFC3339), "reason", window.Reason)
}
