package state

import (
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyKeyRotate begins the replacement of a key that all agents share, or takes
// it a stage further. Repeated, it changes nothing.
func applyKeyRotate(tx *txn, body *structs.KeyRotate) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if body.Kind != structs.KeyGossip {
		return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "key")
	}
	var before structs.KeyState
	if known.GossipKey != nil {
		before = *known.GossipKey
	}
	keys, changed, refusal := before.Next(body.Stage, body.From, body.To, tx.by, tx.now)
	if refusal != nil {
		return refuseRotation(refusal, body.Kind)
	}
	if !changed {
		return accepted()
	}
	cluster := *known
	cluster.GossipKey = &keys
	tx.putCluster(&cluster)
	tx.tellRotation(body.Kind, body.Stage, body.To)
	return accepted()
}

// applyCARotate begins the replacement of the cluster's CA, or takes it a stage
// further. Repeated, it changes nothing.
func applyCARotate(tx *txn, body *structs.CARotate) (structs.ApplyResult, *structs.Error) {
	known, ok := tx.cluster()
	if !ok {
		return refuse(structs.CodeUnavailable, "state.cluster_unknown")
	}
	var ca structs.CAState
	if known.CA != nil {
		ca = *known.CA
	}
	keys, changed, refusal := ca.Keys.Next(body.Stage, body.From.Fingerprint, body.To.Fingerprint, tx.by, tx.now)
	if refusal != nil {
		return refuseRotation(refusal, structs.KeyCA)
	}
	if !changed {
		return accepted()
	}
	ca.Keys = keys
	cluster := *known
	switch body.Stage {
	case structs.KeyInstall:
		if body.From.PEM == "" || body.To.PEM == "" {
			return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "certificate")
		}
		ca.Certificates = []structs.CACertificate{body.From, body.To}
		if len(body.Past) > structs.PastCAsMax {
			return refuse(structs.CodeInvalid, "state.cluster_malformed", "field", "past")
		}
		ca.Past = body.Past
	case structs.KeyDone:
		ca.Certificates = slices.DeleteFunc(slices.Clone(ca.Certificates), func(c structs.CACertificate) bool { return c.Fingerprint != keys.Current })
		cluster.CAFingerprint = keys.Current
	}
	cluster.CA = &ca
	tx.putCluster(&cluster)
	tx.tellRotation(structs.KeyCA, body.Stage, body.To.Fingerprint)
	return accepted()
}

func refuseRotation(refusal *structs.Error, kind structs.KeyKind) (structs.ApplyResult, *structs.Error) {
	if refusal.ID == "state.rotation_other" {
		return refuse(refusal.Code, refusal.ID, "kind", string(kind))
	}
	return structs.ApplyResult{}, refusal
}

func (tx *txn) tellRotation(kind structs.KeyKind, stage structs.KeyStage, to string) {
	id := "event.cluster.key_" + string(stage)
	if kind == structs.KeyCA {
		id = "event.cluster.ca_" + string(stage)
	}
	tx.tell(structs.Event{Topic: topicCluster, ID: id}, "kind", string(kind), "key", shortKey(to), "by", tx.by)
}

// shortKey is as much of a fingerprint as people compare.
func shortKey(fingerprint string) string { return fingerprint[:min(len(fingerprint), 16)] }
