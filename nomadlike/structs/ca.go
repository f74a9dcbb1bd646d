package structs

import "slices"

// KeyCA is the certificate authority of the cluster; its fingerprints are of the
// certificates.
const KeyCA KeyKind = "ca"

// PastCAsMax bounds the CAs of before that are still followed: what a server
// shows must stay short (auth.CrossMax).
const PastCAsMax = 2

// CACertificate is the public half of a CA.
type CACertificate struct {
	Fingerprint string `json:"fingerprint"` // SHA-256 of the certificate
	PEM         string `json:"pem"`
}

// PastCA is a CA of before. Whoever trusts it alone follows the cross-certificate
// to the one that took its place: people and joiners, and agents that were away.
type PastCA struct {
	Certificate CACertificate `json:"certificate"`
	Cross       string        `json:"cross"` // PEM: the next one, certified by this one
	Until       UnixNano      `json:"until"` // the end of Cross
}

// CAState is what the cluster's record says of its CA. Certificates are public:
// the keys are with the servers and never in the log.
type CAState struct {
	Keys         KeyState        `json:"keys"`
	Certificates []CACertificate `json:"certificates,omitempty"` // of every fingerprint in Keys
	Past         []PastCA        `json:"past,omitempty"`         // oldest first
}

// CARotate begins the replacement of the CA, or takes it to its next stage. The
// certificates come with KeyInstall, and so do the CAs that are followed to the new
// one, that of From last; none when the key of From may be in other hands.
type CARotate struct {
	Stage KeyStage      `json:"stage"`
	From  CACertificate `json:"from"`
	To    CACertificate `json:"to"`
	Past  []PastCA      `json:"past,omitempty"` // at most PastCAsMax
}

// CAOffer sends a server the CA that is about to take the place of the present
// one. It is answered like GossipKeyOffer.
type CAOffer struct {
	Certificate []byte `json:"certificate"` // PEM
	Key         []byte `json:"key"`         // PEM
}

// Trusted lists the certificates that agents trust, that which signs first;
// nothing while the record names none.
func (s *CAState) Trusted() []CACertificate {
	if s == nil {
		return nil
	}
	var certs []CACertificate
	for _, name := range s.Keys.Fingerprints() {
		if i := slices.IndexFunc(s.Certificates, func(c CACertificate) bool { return c.Fingerprint == name }); i >= 0 {
			certs = append(certs, s.Certificates[i])
		}
	}
	return certs
}

// Next is the state of keys after a stage of their replacement: the same when the
// stage is over already, and a refusal when it does not follow.
func (s KeyState) Next(stage KeyStage, from, to, by string, now UnixNano) (next KeyState, changed bool, refusal *Error) {
	running := s.Rotation
	switch {
	case to == "" || from == to:
		return s, false, NewError(CodeInvalid, "state.cluster_malformed", "field", "key")
	case running != nil && running.To != to, running == nil && stage == KeyInstall && s.Current != "" && s.Current != from:
		return s, false, NewError(CodeConflict, "state.rotation_other")
	}
	switch stage {
	case KeyInstall:
		if running != nil || s.Current == to {
			return s, false, nil
		}
		s.Rotation = &KeyRotation{From: from, To: to, Stage: KeyInstall, StartedAt: now, StageAt: now, By: by}
		return s, true, nil
	case KeyUse, KeyDone:
		if running == nil && s.Current == to || running != nil && stage == KeyUse && running.Stage == KeyUse {
			return s, false, nil
		}
		if running == nil || stage == KeyDone && running.Stage != KeyUse {
			return s, false, NewError(CodeConflict, "state.rotation_other")
		}
		if stage == KeyDone {
			return KeyState{Current: to}, true, nil
		}
		after := *running
		after.Stage, after.StageAt = KeyUse, now
		s.Rotation = &after
		return s, true, nil
	}
	return s, false, NewError(CodeInvalid, "state.cluster_malformed", "field", "stage")
}
