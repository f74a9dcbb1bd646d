package httpapi

import (
	"context"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// keyHandlers answers about the cluster's keys, and rotates them.
type keyHandlers struct {
	*core
	keys     Keys
	members  Membership
	rotating chan struct{} // holds one while a request begins a rotation
}

// Keys is what the doors of key rotation need of a leading agent.
type Keys interface {
	// NewGossipKey makes a key that survives this server, and names it.
	NewGossipKey(ctx context.Context) (fingerprint string, err error)
	// NewCA makes a CA that every server holds, and reports how a rotation to it
	// begins; with revoke nobody follows from the one before.
	NewCA(ctx context.Context, revoke bool) (structs.CARotate, error)
	// CurrentKey names the key that this agent uses.
	CurrentKey(kind structs.KeyKind) string
	// KeyAgents asks the agents that have not told it yet which keys they hold.
	KeyAgents(ctx context.Context, kind structs.KeyKind) []api.KeyAgent
}

// read answers operator.keys.
func (h *keyHandlers) read(r *front.Request) (*api.Keys, error) {
	kind, err := keyKind(r.ID)
	if err != nil {
		return nil, err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	return answer(h.show(r.Context(), kind))
}

func keyKind(id string) (structs.KeyKind, error) {
	if kind := structs.KeyKind(id); kind == structs.KeyGossip || kind == structs.KeyCA {
		return kind, nil
	}
	return "", auth.NotFound("key", id)
}

func (h *keyHandlers) show(ctx context.Context, kind structs.KeyKind) api.Keys {
	out := api.Keys{Kind: string(kind), Current: h.keys.CurrentKey(kind), Waiting: []string{}, Agents: h.keys.KeyAgents(ctx, kind)}
	cluster := h.store.Snapshot().Cluster()
	state := cluster.Keys(kind)
	if kind == structs.KeyCA {
		out.Past = h.pastCAs(cluster)
	}
	if state != nil && state.Current != "" {
		out.Current = state.Current
	}
	var holders []structs.AgentKeys
	for _, agent := range out.Agents {
		if agent.Awaited {
			holders = append(holders, structs.AgentKeys{Name: agent.Name, Keys: agent.Keys})
		}
	}
	if state != nil && state.Rotation != nil {
		rotation := state.Rotation
		out.Rotation = &api.KeyRotation{
			From: rotation.From, To: rotation.To, Stage: rotation.Stage,
			StartedAt: rotation.StartedAt, StageAt: rotation.StageAt, By: rotation.By,
		}
		_, waiting := rotation.Next(holders)
		out.Waiting = append(out.Waiting, waiting...)
		return out
	}
	for _, holder := range holders {
		if len(holder.Keys) != 1 || holder.Keys[0] != out.Current {
			out.Waiting = append(out.Waiting, holder.Name)
		}
	}
	out.Settled = len(out.Waiting) == 0
	return out
}

// rotate answers operator.keys_rotate. It begins a rotation, and leaves one
// that is under way alone: the leader goes on with it by itself.
func (h *keyHandlers) rotate(r *front.Request) (*api.Keys, error) {
	kind, err := keyKind(r.ID)
	if err != nil {
		return nil, err
	}
	// Of two requests at a time the second would make a key for nothing.
	select {
	case h.rotating <- struct{}{}:
		defer func() { <-h.rotating }()
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	cluster := h.store.Snapshot().Cluster()
	if cluster == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if keys := cluster.Keys(kind); keys != nil && keys.Rotation != nil {
		return answer(h.show(r.Context(), kind))
	}
	needs := wire.ProtocolKeys
	if kind == structs.KeyCA {
		needs = wire.ProtocolCA
	}
	if err := h.mayRotate(needs); err != nil {
		return nil, err
	}
	from := h.keys.CurrentKey(kind)
	if keys := cluster.Keys(kind); keys != nil && keys.Current != "" && keys.Current != from {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.rotation_unsettled")
	}
	var command structs.CommandKind
	var change any
	if kind == structs.KeyCA {
		q := front.Query{R: r}
		revoke := q.Bool("revoke")
		if q.Err != nil {
			return nil, q.Err
		}
		command = structs.CommandCARotate
		change, err = h.keys.NewCA(r.Context(), revoke)
	} else {
		var to string
		to, err = h.keys.NewGossipKey(r.Context())
		command, change = structs.CommandKeyRotate, structs.KeyRotate{Kind: kind, Stage: structs.KeyInstall, From: from, To: to}
	}
	if err != nil {
		return nil, err
	}
	index, err := h.propose(r, command, change)
	if err != nil {
		return nil, err
	}
	r.SetIndex(index)
	return answer(h.show(r.Context(), kind))
}

// pastCAs lists the CAs of before that still lead to the present one.
func (h *keyHandlers) pastCAs(cluster *structs.Cluster) (past []api.PastCA) {
	if cluster.CA == nil {
		return nil
	}
	for _, one := range cluster.CA.Past {
		if h.now().Before(one.Until.Time()) {
			past = append(past, api.PastCA{Fingerprint: one.Certificate.Fingerprint, Until: one.Until})
		}
	}
	return past
}

// mayRotate refuses while an agent that is alive is too old to take a new key.
func (h *keyHandlers) mayRotate(needs int) error {
	return knownToAll(h.store.Snapshot(), h.members, needs, "agent.rotation_old")
}

// knownToAll refuses, by a message about an agent of a name, what a server or a node
// that is there is too old to know.
func knownToAll(snapshot *state.Snapshot, members Membership, needs int, refusal string) error {
	if protocol, name := members.Lowest(); protocol < needs {
		return structs.NewError(structs.CodeConflict, refusal, "name", name)
	}
	for node := range snapshot.Nodes() {
		told := members.Speaks(node.ID)
		if node.Status == structs.NodeReady && told != 0 && told < needs {
			return structs.NewError(structs.CodeConflict, refusal, "name", node.Name)
		}
	}
	return nil
}
