package agent

import (
	"cmp"
	"context"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// CurrentKey returns the fingerprint of the key of a kind that the agent uses now.
func (t *teller) CurrentKey(kind structs.KeyKind) string {
	if kind == structs.KeyCA {
		return t.identity.ca().Fingerprint()
	}
	return t.identity.gossip.fingerprints()[0]
}

// KeyAgents lists the agents with their keys. Those that no rotation has asked
// so far are asked now.
func (t *teller) KeyAgents(ctx context.Context, kind structs.KeyKind) []api.KeyAgent {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	snapshot := t.store.Snapshot()
	audience := t.audience(snapshot)
	if cluster := snapshot.Cluster(); cluster != nil {
		t.tell(ctx, cluster, nil) // its memory exists
		t.askKeys(ctx, kind, cluster, audience)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	agents := []api.KeyAgent{}
	for _, agent := range audience {
		told := t.mu.told[agent.target.ID]
		if agent.target.ID == t.id {
			told = t.own()
		}
		held := told.of(kind)
		agents = append(agents, api.KeyAgent{ID: agent.target.ID, Name: agent.name, Role: string(agent.target.Role), Alive: agent.alive, Awaited: agent.awaited(kind), Keys: append([]string{}, held...)})
	}
	slices.SortFunc(agents, func(x, y api.KeyAgent) int {
		return cmp.Or(cmp.Compare(y.Role, x.Role), cmp.Compare(x.Name, y.Name), cmp.Compare(x.ID, y.ID))
	})
	return agents
}

// askKeys waits until the agents that told no key so far have answered, or ctx
// ends.
func (t *teller) askKeys(ctx context.Context, kind structs.KeyKind, cluster *structs.Cluster, audience []trusted) {
	news, _ := t.trustNews(cluster)
	answered := make(chan struct{}, len(audience))
	asked := 0
	for _, agent := range audience {
		t.mu.Lock()
		known := len(t.mu.told[agent.target.ID].of(kind)) > 0
		t.mu.Unlock()
		if known || !agent.alive || agent.target.ID == t.id {
			continue
		}
		select {
		case t.slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		asked++
		t.life.run(func() {
			ack, err := t.tellAgent(ctx, agent.target, news)
			if err == nil {
				t.mu.Lock()
				told := t.mu.told[agent.target.ID]
				told.gossip, told.cas, told.incarnation = ack.Gossip, ack.CA, agent.incarnation
				t.mu.told[agent.target.ID] = told
				t.mu.Unlock()
			}
			<-t.slots
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
