package state

import "nomadlike/nomadlike/structs"

// applyKeyRotate begins the replacement of a key that all agents share, or takes
// it a stage further. Repeated, it changes nothing.
func applyKeyRotate(tx *txn, body *structs.KeyRotate) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if body.Kind != structs.KeyGossip || body.To == "" || body.From == body.To {
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "key")
	}
	var keys structs.KeyState
	if before := known.Keys(body.Kind); before != nil {
		keys = *before
	}
	running := keys.Rotation
	if running != nil && running.To != body.To || running == nil && body.Stage == structs.KeyInstall && keys.Current != "" && keys.Current != body.From {
		return refuse(structs.CodeConflict, "state.rotation_other", "kind", string(body.Kind))
	}
	event := ""
	switch body.Stage {
	case structs.KeyInstall:
		if running != nil || keys.Current == body.To {
			return accepted()
		}
		event = "event.cluster.key_install"
		keys.Rotation = &structs.KeyRotation{
			From: body.From, To: body.To, Stage: structs.KeyInstall, StartedAt: tx.now, StageAt: tx.now, By: tx.by}
	case structs.KeyUse:
		if running == nil && keys.Current == body.To || running != nil && running.Stage == structs.KeyUse {
			return accepted()
		}
		if running == nil {
			return refuse(structs.CodeConflict, "state.rotation_other", "kind", string(body.Kind))
		}
		event = "event.cluster.key_use"
		after := *running
		after.Stage, after.StageAt = structs.KeyUse, tx.now
		keys.Rotation = &after
	case structs.KeyDone:
		if running == nil && keys.Current == body.To {
			return accepted()
		}
		if running == nil || running.Stage != structs.KeyUse {
			return refuse(structs.CodeConflict, "state.rotation_other", "kind", string(body.Kind))
		}
		event = "event.cluster.key_done"
		keys = structs.KeyState{Current: body.To}
	default:
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "stage")
	}
	cluster := *known
	cluster.GossipKey = &keys
	tx.putCluster(&cluster)
	tx.tell(structs.Event{Topic: topicCluster, ID: event}, "kind", string(body.Kind), "key", shortKey(body.To), "by", tx.by)
	return accepted()
}

// shortKey is as much of a fingerprint as people compare.
func shortKey(fingerprint string) string { return fingerprint[:min(len(fingerprint), 16)] }
