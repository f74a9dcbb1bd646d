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
