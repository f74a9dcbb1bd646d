package agent

import (
	"cmp"
	"context"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// keyRing is what the doors of key rotation need of a leading agent.
type keyRing interface {
	// newGossipKey makes a key that survives this server, and names it.
	newGossipKey(ctx context.Context) (fingerprint string, err error)
	// newCA makes a CA that every server holds, and tells how a rotation to it
	// begins; with revoke nobody follows from the one before.
	newCA(ctx context.Context, revoke bool) (structs.CARotate, error)
	// currentKey names the key that this agent uses.
	currentKey(kind structs.KeyKind) string
	// keyHolders asks the agents that have not told it yet which keys they hold.
	keyHolders(ctx context.Context, kind structs.KeyKind) []api.KeyAgent
}

func (a *Agent) currentKey(kind structs.KeyKind) string {
	if kind == structs.KeyCA {
		return a.identity.ca().Fingerprint()
	}
	return a.identity.gossip.fingerprints()[0]
}

// keyHolders lists the agents with their keys. Those that no rotation has asked
// so far are asked now.
func (a *Agent) keyHolders(ctx context.Context, kind structs.KeyKind) []api.KeyAgent {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	snapshot := a.store.Snapshot()
	audience := a.audience(snapshot)
	if cluster := snapshot.Cluster(); cluster != nil {
		a.tell(ctx, cluster, nil) // its memory exists
		a.askHolders(ctx, kind, cluster, audience)
	}
	a.teller.mu.Lock()
	defer a.teller.mu.Unlock()
	agents := []api.KeyAgent{}
	for _, agent := range audience {
		told := a.teller.mu.told[agent.target.ID]
		if agent.target.ID == a.ID() {
			told = toldAgent{gossip: a.identity.gossip.fingerprints(), cas: a.ownCAs()}
		}
		held := told.of(kind)
		agents = append(agents, api.KeyAgent{ID: agent.target.ID, Name: agent.name, Role: string(agent.target.Role), Alive: agent.alive, Awaited: agent.awaited(kind), Keys: append([]string{}, held...)})
	}
	slices.SortFunc(agents, func(x, y api.KeyAgent) int {
		return cmp.Or(cmp.Compare(y.Role, x.Role), cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	return agents
}

// askHolders waits until the agents that told no key so far have answered, or ctx
// ends.
func (a *Agent) askHolders(ctx context.Context, kind structs.KeyKind, cluster *structs.Cluster, audience []trusted) {
	news, _ := a.trustNews(cluster)
	answered := make(chan struct{}, len(audience))
	asked := 0
	for _, agent := range audience {
		a.teller.mu.Lock()
		known := len(a.teller.mu.told[agent.target.ID].of(kind)) > 0
		a.teller.mu.Unlock()
		if known || !agent.alive || agent.target.ID == a.ID() {
			continue
		}
		select {
		case a.teller.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		asked++
		a.tasks.Go(func() {
			ack, err := a.tellAgent(ctx, agent.target, news)
			if err == nil {
				a.teller.mu.Lock()
				told := a.teller.mu.told[agent.target.ID]
				told.gossip, told.cas, told.incarnation = ack.Gossip, ack.CA, agent.incarnation
				a.teller.mu.told[agent.target.ID] = told
				a.teller.mu.Unlock()
			}
			<-a.teller.slots
			answered <- struct{}{}
		})
	}
	for range asked {
		select {
		case <-answered:
		case <-ctx.Done():
			return
		}
	}
}

// readKeys answers operator.keys.
func (s *site) readKeys(r *request) error {
	kind, err := keyKind(r.id)
	if err != nil {
		return err
	}
	if err := s.refresh(r); err != nil {
		return err
	}
	return r.reply(s.showKeys(r.Context(), kind))
}

func keyKind(id string) (structs.KeyKind, error) {
	if kind := structs.KeyKind(id); kind == structs.KeyGossip || kind == structs.KeyCA {
		return kind, nil
	}
	return "", auth.NotFound("key", id)
}

func (s *site) showKeys(ctx context.Context, kind structs.KeyKind) api.Keys {
	out := api.Keys{Kind: string(kind), Current: s.keys.currentKey(kind), Waiting: []string{}, Agents: s.keys.keyHolders(ctx, kind)}
	cluster := s.store.Snapshot().Cluster()
	state := cluster.Keys(kind)
	if kind == structs.KeyCA {
		out.Past = s.pastCAs(cluster)
	}
	if state != nil && state.Current != "" {
		out.Current = state.Current
	}
	var holders []structs.KeyHolder
	for _, agent := range out.Agents {
		if agent.Awaited {
			holders = append(holders, structs.KeyHolder{Name: agent.Name, Keys: agent.Keys})
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

// rotateKeys answers operator.keys_rotate. It begins a rotation, and leaves one
// that is under way alone: the leader goes on with it by itself.
func (s *site) rotateKeys(r *request) error {
	kind, err := keyKind(r.id)
	if err != nil {
		return err
	}
	if err := s.refresh(r); err != nil {
		return err
	}
	cluster := s.store.Snapshot().Cluster()
	if cluster == nil {
		return structs.NewError(structs.CodeUnavailable, "state.cluster_unknown")
	}
	if keys := cluster.Keys(kind); keys != nil && keys.Rotation != nil {
		return r.reply(s.showKeys(r.Context(), kind))
	}
	needs := wire.ProtocolKeys
	if kind == structs.KeyCA {
		needs = wire.ProtocolCA
	}
	if err := s.mayRotate(needs); err != nil {
		return err
	}
	from := s.keys.currentKey(kind)
	if keys := cluster.Keys(kind); keys != nil && keys.Current != "" && keys.Current != from {
		return structs.NewError(structs.CodeUnavailable, "agent.rotation_unsettled")
	}
	var command structs.CommandKind
	var change any
	if kind == structs.KeyCA {
		q := query{r: r}
		revoke := q.bool("revoke")
		if q.err != nil {
			return q.err
		}
		command = structs.CommandCARotate
		change, err = s.keys.newCA(r.Context(), revoke)
	} else {
		var to string
		to, err = s.keys.newGossipKey(r.Context())
		command, change = structs.CommandKeyRotate, structs.KeyRotate{Kind: kind, Stage: structs.KeyInstall, From: from, To: to}
	}
	if err != nil {
		return err
	}
	index, err := s.propose(r, command, change)
	if err != nil {
		return err
	}
	r.setIndex(index)
	return r.reply(s.showKeys(r.Context(), kind))
}

// pastCAs lists the CAs of before that still lead to the present one.
func (s *site) pastCAs(cluster *structs.Cluster) (past []api.PastCA) {
	if cluster.CA == nil {
		return nil
	}
	for _, one := range cluster.CA.Past {
		if s.now().Before(one.Until.Time()) {
			past = append(past, api.PastCA{Fingerprint: one.Certificate.Fingerprint, Until: one.Until})
		}
	}
	return past
}

// mayRotate refuses while an agent that is alive is too old to take a new key.
func (s *site) mayRotate(needs int) error {
	if protocol, name := s.house.lowest(); protocol < needs {
		return structs.NewError(structs.CodeConflict, "agent.rotation_old", "name", name)
	}
	for node := range s.store.Snapshot().Nodes() {
		told := s.house.gossip.View(node.ID).Meta.Protocol
		if node.Status == structs.NodeReady && told != 0 && told < needs {
			return structs.NewError(structs.CodeConflict, "agent.rotation_old", "name", node.Name)
		}
	}
	return nil
}
