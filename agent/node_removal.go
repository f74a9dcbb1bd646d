package agent

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	removedFile = "removed.json"
	// removalGrace is how long the streams of a removed node live on, so that it
	// hears that it was removed and kills what it runs.
	removalGrace = 500 * time.Millisecond
	trustPushes  = 32 // to nodes, at once
	trustTimeout = 5 * time.Second
	trustEvery   = time.Second
)

// removals are the ids of the nodes that were removed, as this agent knows
// them: a server by the log, a node by what the leader tells it.
type removals struct {
	ids  atomic.Pointer[map[string]bool]
	path string // where a node keeps them; "" on servers
}

func openRemovals(dir string, server bool) *removals {
	r := &removals{}
	r.ids.Store(&map[string]bool{})
	if server {
		return r
	}
	r.path = filepath.Join(dir, removedFile)
	var ids []string
	if data, err := os.ReadFile(r.path); err == nil && json.Unmarshal(data, &ids) == nil {
		r.set(ids)
	}
	return r
}

// set replaces the ids and returns those that are new.
func (r *removals) set(ids []string) (fresh []string) {
	before, after := *r.ids.Load(), make(map[string]bool, len(ids))
	for _, id := range ids {
		if after[id] = true; !before[id] {
			fresh = append(fresh, id)
		}
	}
	r.ids.Store(&after)
	return fresh
}

// keep is set for a node, which remembers them over a restart.
func (r *removals) keep(ids []string) (fresh []string, err error) {
	if known := *r.ids.Load(); len(known) == len(ids) && !slices.ContainsFunc(ids, func(id string) bool { return !known[id] }) {
		return nil, nil
	}
	data, err := json.Marshal(ids)
	if err == nil {
		err = replaceFile(r.path, data)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return r.set(ids), nil
}

func (r *removals) has(id string) bool { return (*r.ids.Load())[id] }

// refuse says why a client's certificate is worth nothing any more. Servers
// are members by the log's configuration, which has its own removal.
func (r *removals) refuse(who auth.Identity) error {
	if who.Role == auth.RoleClient && r.has(who.ID) {
		return structs.NewError(structs.CodeForbidden, "server.node_removed")
	}
	return nil
}

// shutOut ends what removed nodes have open here.
func (a *Agent) shutOut(ids []string, after time.Duration) {
	for _, id := range ids {
		a.gossip.Refuse(id)
		a.log.Warn("node was removed: its certificate is refused", logkey.NodeID, id)
		a.life.run(func() {
			timer := time.NewTimer(after)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-a.life.stopping:
			}
			a.mux.Disconnect(auth.RoleClient, id)
		})
	}
}

// followRemovals keeps a server's list as the log has it.
func (a *Agent) followRemovals() {
	a.life.follow(func(ctx context.Context) {
		seen := uint64(0)
		for {
			snapshot, err := a.store.Block(ctx, func(now *state.Snapshot) (bool, <-chan struct{}) {
				cluster := now.Cluster()
				return cluster != nil && cluster.ModifyIndex != seen, now.WatchCluster()
			})
			if err != nil {
				return
			}
			cluster := snapshot.Cluster()
			seen = cluster.ModifyIndex
			a.shutOut(a.removals.set(removedNodeIDs(cluster)), removalGrace)
		}
	})
}

func removedNodeIDs(cluster *structs.Cluster) []string {
	var ids []string
	for i := range cluster.RemovedNodes {
		ids = append(ids, cluster.RemovedNodes[i].ID)
	}
	return ids
}

// registerTrust declares what the leader tells nodes about whom to trust.
func (a *Agent) registerTrust() {
	rpc.Unary(a.rpc, structs.MethodAgentTrust, rpc.FromServers,
		func(_ context.Context, _ rpc.Peer, news *structs.TrustNews) (*structs.TrustAck, error) {
			return a.takeTrust(news)
		})
}

// takeTrust takes the leader's word, and keeps it before it says so. Servers have
// it from the log.
func (a *Agent) takeTrust(news *structs.TrustNews) (*structs.TrustAck, error) {
	if !a.config.Server.Enabled {
		fresh, err := a.removals.keep(news.Removed)
		if err != nil {
			return nil, err
		}
		a.shutOut(fresh, 0)
		if err := a.certificates.takeCA(caNews{news.CA, news.PastCA, news.Index, news.RevivedAt}); err != nil {
			return nil, err
		}
		if len(news.Gossip) > 0 {
			if err := a.identity.takeGossip(news.Gossip, news.Index, news.RevivedAt, a.gossip.SetKeys); err != nil {
				return nil, err
			}
		}
	}
	return &structs.TrustAck{Index: news.Index, Gossip: a.identity.gossip.fingerprints(), CA: a.certificates.ownCAs()}, nil
}

// teller is the leader's memory of what it has told which agent.
type teller struct {
	mu struct {
		sync.Mutex
		told map[string]toldAgent // by id
	}
	slots chan struct{}
}

type toldAgent struct {
	index, incarnation uint64
	asking             bool
	gossip, cas        []string // the keys that it holds and the CAs that it trusts, by its own word
}

// tellTrust tells every agent that can be reached, and was not told yet, what
// the cluster's record says. It runs on the leader, and does not wait for them.
func (a *Agent) tellTrust(ctx context.Context) {
	snapshot := a.store.Snapshot()
	cluster := snapshot.Cluster()
	if cluster == nil || !cluster.TellsTrust() {
		return
	}
	audience := a.audience(snapshot)
	a.tell(ctx, cluster, audience)
	a.driveRotation(ctx, cluster, audience)
}

func (a *Agent) tell(ctx context.Context, cluster *structs.Cluster, audience []trusted) {
	news, whole := a.trustNews(cluster)
	names, cas := cluster.Keys(structs.KeyGossip).Held(), cluster.Keys(structs.KeyCA).Held()
	a.teller.mu.Lock()
	defer a.teller.mu.Unlock()
	if a.teller.mu.told == nil {
		a.teller.mu.told, a.teller.slots = make(map[string]toldAgent), make(chan struct{}, trustPushes)
	}
	for _, agent := range audience {
		target, incarnation := agent.target, agent.incarnation
		if target.ID == a.ID() {
			a.teller.mu.told[a.ID()] = toldAgent{gossip: a.identity.gossip.fingerprints(), cas: a.certificates.ownCAs()}
			continue
		}
		told := a.teller.mu.told[target.ID]
		if told.asking || told.index == news.Index && told.incarnation == incarnation || target.Role == auth.RoleServer && names == nil && cas == nil {
			continue
		}
		select {
		case a.teller.slots <- struct{}{}:
		default:
			return // the next look goes on
		}
		told.asking = true
		a.teller.mu.told[target.ID] = told
		a.life.run(func() {
			if keys := cluster.Keys(structs.KeyCA); keys != nil {
				a.bringCA(ctx, keys.Rotation, target, told)
			}
			ack, err := a.tellAgent(ctx, target, news)
			a.teller.mu.Lock()
			defer a.teller.mu.Unlock()
			if told.incarnation != incarnation {
				told.gossip, told.cas = nil, nil // of a process that is gone
			}
			told := toldAgent{incarnation: incarnation, gossip: told.gossip, cas: told.cas}
			if err == nil {
				told.gossip, told.cas = ack.Gossip, ack.CA
				if whole && (names == nil || slices.Equal(ack.Gossip, names)) && (cas == nil || slices.Equal(ack.CA, cas)) {
					told.index = news.Index
				}
			}
			a.teller.mu.told[target.ID] = told
			<-a.teller.slots
		})
	}
}

func (a *Agent) tellAgent(ctx context.Context, target rpc.Target, news *structs.TrustNews) (*structs.TrustAck, error) {
	ctx, cancel := context.WithTimeout(ctx, trustTimeout)
	defer cancel()
	conn, err := a.pool.Conn(target)
	if err != nil {
		return nil, err
	}
	ack, err := rpc.Call[structs.TrustNews, structs.TrustAck](ctx, conn, structs.MethodAgentTrust, news)
	if err != nil && ctx.Err() == nil {
		a.log.Debug("agent was not told whom to trust", logkey.NodeID, target.ID, logkey.Error, err)
	}
	return ack, err
}
