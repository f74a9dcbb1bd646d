package api

import (
	"context"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// Keys describes one kind of key that all agents share, by fingerprints.
type Keys struct {
	Kind     string       `json:"kind"`
	Current  string       `json:"current"`            // the key that agents use
	Rotation *KeyRotation `json:"rotation,omitempty"` // nil: none is under way
	Settled  bool         `json:"settled"`            // no rotation is under way, and every agent that is alive holds the current key alone
	Waiting  []string     `json:"waiting"`            // names of agents that have not done what the stage asks
	Agents   []KeyAgent   `json:"agents"`
	Past     []PastCA     `json:"past,omitempty"` // CAs of before that are still followed, oldest first
}

// PastCA is a CA of before: an agent that trusts it alone follows it to the present one.
type PastCA struct {
	Fingerprint string           `json:"fingerprint"`
	Until       structs.UnixNano `json:"until"`
}

// KeyRotation is a replacement that is under way.
type KeyRotation struct {
	From      string           `json:"from"`
	To        string           `json:"to"`
	Stage     structs.KeyStage `json:"stage"` // install | use
	StartedAt structs.UnixNano `json:"started_at"`
	StageAt   structs.UnixNano `json:"stage_at"`
	By        string           `json:"by,omitempty"`
}

// KeyAgent is an agent with the keys that it says it holds, the one that it uses
// first.
type KeyAgent struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Role  string `json:"role"`
	Alive bool   `json:"alive"`
	// Awaited: a rotation waits for it.
	Awaited bool     `json:"awaited"`
	Keys    []string `json:"keys"`
}

// Keys reports who holds which keys of a kind.
func (c *Client) Keys(ctx context.Context, kind structs.KeyKind) (*Keys, error) {
	out, _, err := read(ctx, c, OperatorKeys, string(kind), nil)
	return out, err
}

// RotateKeys begins to replace a key of a kind by a new one. While that is under
// way it only reports how far it is; servers go on with it by themselves.
//
// With revoke, for a CA whose key may be in other hands, nobody follows from it to
// the new one, and its certificates renew nothing.
func (c *Client) RotateKeys(ctx context.Context, kind structs.KeyKind, revoke bool) (*Keys, error) {
	query := url.Values{}
	if revoke {
		query.Set("revoke", "true")
	}
	return send(ctx, c, OperatorKeysRotate, call{path: OperatorKeysRotate.path(string(kind)), query: query})
}
