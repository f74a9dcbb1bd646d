package agent

import (
	"cmp"
	"context"
	"slices"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// CurrentKey returns the fingerprint of the key of a kind that the agent uses now.
func (a *Agent) CurrentKey(kind structs.KeyKind) string {
	if kind == structs.KeyCA {
		return a.identity.ca().Fingerprint()
	}
	return a.identity.gossip.fingerprints()[0]
}

// KeyHolders lists the agents with their keys. Those that no rotation has asked
// so far are asked now.
func (a *Agent) KeyHolders(ctx context.Context, kind structs.KeyKind) []api.KeyAgent {
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
			told = toldAgent{gossip: a.identity.gossip.fingerprints(), cas: a.certificates.ownCAs()}
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
		a.life.run(func() {
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
