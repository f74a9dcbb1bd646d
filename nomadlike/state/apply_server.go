package state

import (
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyServerRemoval notes that a server must not come back, or that it may.
func applyServerRemoval(tx *txn, body *structs.ServerRemoval) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if !validKey(body.ID) {
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "id")
	}
	if known.IsRemoved(body.ID) != body.Back {
		return accepted() // the same command a second time
	}
	cluster := *known
	cluster.Removed = slices.DeleteFunc(slices.Clone(known.Removed), func(s structs.RemovedServer) bool { return s.ID == body.ID })
	event := "event.cluster.server_back"
	if !body.Back {
		event = "event.cluster.server_removed"
		cluster.Removed = append(cluster.Removed, structs.RemovedServer{ID: body.ID, By: tx.by, At: tx.now})
		cluster.Removed = cluster.Removed[max(0, len(cluster.Removed)-structs.RemovedServersMax):]
	}
	tx.putCluster(&cluster)
	tx.tell(structs.Event{Topic: topicCluster, ID: event}, "server", body.ID)
	return accepted()
}

// applyServerReport notes how a server does, and reports what has changed.
func applyServerReport(tx *txn, body *structs.ServerReport) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if !validKey(body.ID) || len(body.Name) > structs.ServerConditionText || len(body.Backup) > structs.ServerConditionText {
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "server")
	}
	before, now := known.Condition(body.ID), body.ServerCondition
	if body.Gone {
		now = structs.ServerCondition{ID: body.ID}
	}
	if before == now || before.Well() && now.Well() {
		return accepted()
	}
	cluster := *known
	cluster.Unwell = slices.DeleteFunc(slices.Clone(known.Unwell), func(c structs.ServerCondition) bool { return c.ID == body.ID })
	if !now.Well() {
		cluster.Unwell = append(cluster.Unwell, now)
		cluster.Unwell = cluster.Unwell[max(0, len(cluster.Unwell)-structs.UnwellServersMax):]
	}
	tx.putCluster(&cluster)
	if body.Gone {
		return accepted()
	}
	name := body.Name
	if name == "" {
		name = body.ID
	}
	switch {
	case now.Full && !before.Full:
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.server_full", Severity: severityWarn}, "server", name)
	case before.Full && !now.Full:
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.server_room"}, "server", name)
	}
	switch {
	case now.Backup != "" && before.Backup == "":
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.backup_failed", Severity: severityWarn}, "server", name, "reason", now.Backup)
	case before.Backup != "" && now.Backup == "":
		tx.tell(structs.Event{Topic: topicCluster, ID: "event.cluster.backup_made"}, "server", name)
	}
	return accepted()
}
