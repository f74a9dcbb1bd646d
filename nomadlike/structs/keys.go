package structs

import "slices"

// KeyKind names one of the keys that all agents of a cluster share.
type KeyKind string

// KeyGossip encrypts gossip.
const KeyGossip KeyKind = "gossip"

// KeyStage is how far a rotation is. It moves forward only, each time when every
// agent that is alive has done what the stage asks:
//
//	(none) ──▶ install ──────▶ use ───────────▶ (none)
//	           has the new     uses the new,    forgets
//	           beside the old  knows the old    the old
type KeyStage string

// The stages of a rotation.
const (
	KeyInstall KeyStage = "install"
	KeyUse     KeyStage = "use"
	KeyDone    KeyStage = "done" // in commands only: the record has no rotation then
)

// KeyState is what the cluster's record says of one key. It names keys by their
// fingerprints; the keys themselves never reach the log, so that neither a
// snapshot nor a backup holds them.
type KeyState struct {
	Current  string       `json:"current,omitempty"` // fingerprint; "" until the first rotation: the founder's
	Rotation *KeyRotation `json:"rotation,omitempty"`
}

// KeyRotation is one replacement of a key that is under way.
type KeyRotation struct {
	From      string   `json:"from"` // fingerprints
	To        string   `json:"to"`
	Stage     KeyStage `json:"stage"` // install | use
	StartedAt UnixNano `json:"started_at"`
	StageAt   UnixNano `json:"stage_at"`
	By        string   `json:"by,omitempty"` // who asked for it
}

// KeyRotate begins a rotation, or takes it to its next stage.
type KeyRotate struct {
	Kind  KeyKind  `json:"kind"`
	Stage KeyStage `json:"stage"`
	From  string   `json:"from"`
	To    string   `json:"to"`
}

// Keys is what the record says of one kind of key; nil before its first rotation.
func (c *Cluster) Keys(kind KeyKind) *KeyState {
	switch {
	case c == nil:
		return nil
	case kind == KeyGossip:
		return c.GossipKey
	case kind == KeyCA && c.CA != nil:
		return &c.CA.Keys
	}
	return nil
}

// Fingerprints lists the fingerprints of the keys that an agent is to hold, the one that
// it uses first; nothing while the record names none.
func (s *KeyState) Fingerprints() []string {
	switch {
	case s == nil:
		return nil
	case s.Rotation != nil && s.Rotation.Stage == KeyInstall:
		return []string{s.Rotation.From, s.Rotation.To}
	case s.Rotation != nil:
		return []string{s.Rotation.To, s.Rotation.From}
	case s.Current != "":
		return []string{s.Current}
	}
	return nil
}

// AgentKeys is an agent that is alive, with the fingerprints of the keys that it
// said it holds, the one that it uses first.
type AgentKeys struct {
	Name string
	Keys []string
}

// Next is the stage that follows, "" while somebody has not done what the stage
// asks; waiting names them.
func (r *KeyRotation) Next(holders []AgentKeys) (next KeyStage, waiting []string) {
	for _, holder := range holders {
		done := slices.Contains(holder.Keys, r.To)
		if r.Stage == KeyUse {
			done = len(holder.Keys) > 0 && holder.Keys[0] == r.To
		}
		if !done {
			waiting = append(waiting, holder.Name)
		}
	}
	switch {
	case len(waiting) > 0 || len(holders) == 0:
		return "", waiting
	case r.Stage == KeyInstall:
		return KeyUse, nil
	}
	return KeyDone, nil
}

// GossipKeyRequest asks a server for a key of gossip by its fingerprint.
type GossipKeyRequest struct {
	Fingerprint string `json:"fingerprint"`
}

// GossipKeyReply is the key, or nothing when the server does not hold it.
type GossipKeyReply struct {
	Key []byte `json:"key,omitempty"`
}

// GossipKeyOffer sends a server a key that is about to be rotated in.
type GossipKeyOffer struct {
	Key []byte `json:"key"`
}

// GossipKeyKept says that a server has stored an offered key.
type GossipKeyKept struct{}
