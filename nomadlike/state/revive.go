package state

import (
	"io"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Revive reads a stored state and writes it as it is to be when it is brought
// back (structs.Revival), in the same form.
//
//   - No attempt gets a number that one may have had which the state does not
//     know: the next number of every subjob is behind a gap.
//   - Nodes take no work until they have registered with what they really run.
//   - What was running goes on: the nodes tell what became of it. What had not
//     begun to run is given up, since nobody can tell how far it came; its
//     resources are held until its node has registered without it.
//   - Nominations of nodes end.
func Revive(r io.Reader, w io.Writer, revival structs.Revival) error {
	store := New()
	if err := store.Restore(r); err != nil {
		return err
	}
	store.revive(revival)
	return store.Snapshot().Persist(w)
}

// revive makes the changes of a revival, one log index after the last command.
func (s *Store) revive(revival structs.Revival) {
	tx := s.begin()
	defer tx.db.Abort()
	tx.meta.Index, tx.seq, tx.now = tx.meta.Index+1, 0, revival.Now
	tx.reviveCluster(revival)
	for _, row := range listRows[*subjobRow](tx, tableSubjobs, indexID, nil) {
		tx.reviveSubjob(row, revival)
	}
	for _, node := range listRows[*structs.Node](tx, tableNodes, indexID, nil) {
		tx.reviveNode(node)
	}
	tx.reviewNominations()
	tx.commit()
	s.nodes.Store(int64(tx.meta.Nodes))
}

// reviveCluster keeps when the state was brought back, and gives it to another
// cluster where it is to be one's.
func (tx *txn) reviveCluster(revival structs.Revival) {
	known, ok := tx.cluster()
	event := structs.Event{Topic: topicCluster, ID: "event.cluster.revived", Severity: severityWarn}
	params := []string{"until", revival.Until.Time().UTC().Format(time.RFC3339)}
	if revival.Cluster != nil && (!ok || known.ID != revival.Cluster.ID) {
		for _, token := range listRows[*structs.JoinToken](tx, tableJoinTokens, indexID, nil) {
			tx.remove(tableJoinTokens, idKey(token.ID), token) // they name a CA that nobody has any more
		}
		for i := range revival.JoinTokens {
			token := revival.JoinTokens[i]
			token.ModifyIndex = tx.index()
			tx.put(tableJoinTokens, idKey(token.ID), &token)
		}
		if ok {
			event.ID, params = "event.cluster.revived_foreign", append(params, "from", known.ID)
		}
		known, ok = revival.Cluster, true
	}
	if ok {
		cluster := *known
		cluster.RevivedAt = revival.Now
		cluster.GossipKey, cluster.CA = nil, nil // agents keep what they hold: it may be newer than this state
		tx.putCluster(&cluster)
	}
	tx.tell(event, params...)
}

func (tx *txn) reviveSubjob(row *subjobRow, revival structs.Revival) {
	subjob, ok := tx.subjob(row.Subjob.JobID, row.Subjob.Index)
	if !ok || subjob.State.Terminal() {
		return
	}
	job := row.job.Job
	if subjob.State == structs.JobQueued {
		tx.endForecasts(job.ID, subjob.Index, subjob.NextAttempt(), false)
	}
	if subjob.Nomination != nil {
		tx.dropNomination(job, subjob, structs.NewReason("reason.revived"))
		subjob, _ = tx.subjob(job.ID, subjob.Index)
	}
	after := *subjob
	after.AttemptsFrom = revival.AttemptsFrom(max(subjob.Attempt, subjob.AttemptsFrom))
	tx.putSubjob(job, subjob, &after)
}

// reviveNode ends what is known of a node's stream, and keeps work away from it
// until it has registered.
func (tx *txn) reviveNode(known *structs.Node) {
	node := *known
	node.Session, node.Unknown = "", nil
	node.Faults = withFault(node.Faults, structs.NodeFault{Name: structs.FaultUnheard, Unfit: true, Reason: structs.NewReason("server.node_unheard")})
	tx.putNode(&node)
	cause := structs.NewReason("reason.revived")
	for _, alloc := range tx.occupantsOf(node.ID) {
		if alloc.Status != structs.AllocRunning && alloc.Status.CanBecome(structs.AllocLost) {
			tx.loseAlloc(alloc, cause)
		}
	}
}

// withFault puts a fault in the place of the one of its name.
func withFault(faults []structs.NodeFault, fault structs.NodeFault) []structs.NodeFault {
	kept := slices.DeleteFunc(slices.Clone(faults), func(f structs.NodeFault) bool { return f.Name == fault.Name })
	return append(kept, fault)
}

// tellUnknown notes what a node runs that a state from a backup does not know:
// until it has ended, the node takes no work. before is the node as it was, nil
// for a new one.
func (tx *txn) tellUnknown(before, node *structs.Node, inventory []structs.InventoryItem) {
	if cluster, ok := tx.cluster(); !ok || cluster.RevivedAt == 0 {
		return
	}
	if before != nil && !before.Unheard() && len(before.Unknown) == 0 {
		return
	}
	var unknown []string
	for _, item := range inventory {
		if _, known := tx.alloc(item.AllocID); !known && validKey(item.AllocID) {
			unknown = append(unknown, item.AllocID)
		}
	}
	slices.Sort(unknown)
	node.Unknown = slices.Compact(unknown)
	markUnknown(node)
}

// markUnknown lets the faults of a node say what Unknown says.
func markUnknown(node *structs.Node) {
	if len(node.Unknown) == 0 {
		node.Faults = slices.DeleteFunc(slices.Clone(node.Faults), func(f structs.NodeFault) bool { return f.Name == structs.FaultUnknown })
		return
	}
	node.Faults = withFault(node.Faults, structs.NodeFault{
		Name: structs.FaultUnknown, Unfit: true,
		Reason: structs.NewReason("server.tasks_unknown", "count", len(node.Unknown)),
	})
}

// endUnknown takes a node's word that an allocation which nobody knows has
// ended.
func (tx *txn) endUnknown(nodeID, allocID string) {
	known, ok := tx.node(nodeID)
	if !ok {
		return
	}
	at, found := slices.BinarySearch(known.Unknown, allocID)
	if !found {
		return
	}
	node := *known
	node.Unknown = slices.Delete(slices.Clone(known.Unknown), at, at+1)
	markUnknown(&node)
	tx.putNode(&node)
	tx.tellFaults(known, &node)
}
