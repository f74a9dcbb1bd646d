package agent

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// teller tells every agent on behalf of the leader whom to trust, and takes rotations
// of keys from stage to stage by what they answer. Every server has one, for people
// that ask it; what it was told before it led is of no harm, since agents keep the
// newest word. Its methods may be called from any goroutine once the server is open.
type teller struct {
	id         string
	now        func() time.Time
	lapseGrace time.Duration // how long a CA of before is a proof
	log        *slog.Logger
	life       *lifecycle

	identity *identity
	own      func() toldAgent // what this server holds itself
	pool     *rpc.Pool
	raft     *consensus.Node
	members  *membership
	store    *state.Store
	proposer *atomic.Pointer[server.Server] // nil until it is open

	// What was told, and to how many at once.
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

// tellAll tells every agent that can be reached, and was not told yet, what
// the cluster's record says. It runs on the leader, and does not wait for them.
func (t *teller) tellAll(ctx context.Context) {
	snapshot := t.store.Snapshot()
	cluster := snapshot.Cluster()
	if cluster == nil || !cluster.TellsTrust() {
		return
	}
	audience := t.audience(snapshot)
	t.tell(ctx, cluster, audience)
	t.driveRotation(ctx, cluster, audience)
}

func (t *teller) tell(ctx context.Context, cluster *structs.Cluster, audience []trusted) {
	news, whole := t.trustNews(cluster)
	names, cas := cluster.Keys(structs.KeyGossip).Fingerprints(), cluster.Keys(structs.KeyCA).Fingerprints()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mu.told == nil {
		t.mu.told, t.slots = make(map[string]toldAgent), make(chan struct{}, trustPushes)
	}
	for _, agent := range audience {
		target, incarnation := agent.target, agent.incarnation
		if target.ID == t.id {
			t.mu.told[t.id] = t.own()
			continue
		}
		told := t.mu.told[target.ID]
		if told.asking || told.index == news.Index && told.incarnation == incarnation || target.Role == auth.RoleServer && names == nil && cas == nil {
			continue
		}
		select {
		case t.slots <- struct{}{}:
		default:
			return // the next look goes on
		}
		told.asking = true
		t.mu.told[target.ID] = told
		t.life.run(func() {
			if keys := cluster.Keys(structs.KeyCA); keys != nil {
				t.bringCA(ctx, keys.Rotation, target, told)
			}
			ack, err := t.tellAgent(ctx, target, news)
			t.mu.Lock()
			defer t.mu.Unlock()
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
			t.mu.told[target.ID] = told
			<-t.slots
		})
	}
}

func (t *teller) tellAgent(ctx context.Context, target rpc.Target, news *structs.TrustNews) (*structs.TrustAck, error) {
	ctx, cancel := context.WithTimeout(ctx, trustTimeout)
	defer cancel()
	conn, err := t.pool.Conn(target)
	if err != nil {
		return nil, err
	}
	ack, err := rpc.Call[structs.TrustNews, structs.TrustAck](ctx, conn, structs.MethodAgentTrust, news)
	if err != nil && ctx.Err() == nil {
		t.log.Debug("agent was not told whom to trust", logkey.NodeID, target.ID, logkey.Error, err)
	}
	return ack, err
}

// trustNews is what agents are told of the cluster's record, and whether it is
// all that the record says: this server may not hold a key yet.
func (t *teller) trustNews(cluster *structs.Cluster) (news *structs.TrustNews, whole bool) {
	news = &structs.TrustNews{Index: cluster.ModifyIndex, RevivedAt: cluster.RevivedAt, Removed: removedNodeIDs(cluster)}
	if cluster.CA != nil {
		news.CA, news.PastCA = cluster.CA.Trusted(), cluster.CA.Past
	}
	for _, name := range cluster.Keys(structs.KeyGossip).Fingerprints() {
		key := t.identity.gossip.find(name)
		if key == nil {
			news.Gossip = nil
			return news, false
		}
		news.Gossip = append(news.Gossip, key)
	}
	return news, true
}

// audience lists the servers of the log, this one too, and the nodes that can be
// reached.
func (t *teller) audience(snapshot *state.Snapshot) []trusted {
	var all []trusted
	servers := make(map[string]bool)
	names := t.members.names()
	for _, view := range t.members.views() {
		if view.addr == "" || view.removed {
			continue
		}
		servers[view.id] = true
		name := names[view.id]
		if name == "" {
			name = view.addr
		}
		all = append(all, trusted{rpc.Target{Addr: view.addr, Expect: auth.Expect{Role: auth.RoleServer, ID: view.id}}, name, 0, view.alive})
	}
	for node := range snapshot.Nodes() {
		if node.RPCAddr == "" || node.Removed || servers[node.ID] || node.Status == structs.NodeLost || node.Status == structs.NodeLeft {
			continue
		}
		all = append(all, trusted{
			rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{Role: auth.RoleClient, ID: node.ID}},
			node.Name, node.Incarnation, node.Status == structs.NodeReady,
		})
	}
	return all
}

// driveRotation takes a rotation to its next stage when every agent that is alive
// has said that it has done what this one asks.
func (t *teller) driveRotation(ctx context.Context, cluster *structs.Cluster, audience []trusted) {
	proposer := t.proposer.Load()
	if proposer == nil {
		return // the next look goes on
	}
	for _, kind := range []structs.KeyKind{structs.KeyGossip, structs.KeyCA} {
		keys := cluster.Keys(kind)
		if keys == nil || keys.Rotation == nil {
			continue
		}
		next, _ := keys.Rotation.Next(t.keysOf(kind, audience))
		if next == "" {
			continue
		}
		command, body := structs.CommandKeyRotate, any(structs.KeyRotate{Kind: kind, Stage: next, From: keys.Rotation.From, To: keys.Rotation.To})
		if kind == structs.KeyCA {
			command, body = structs.CommandCARotate, structs.CARotate{
				Stage: next,
				From:  structs.CACertificate{Fingerprint: keys.Rotation.From}, To: structs.CACertificate{Fingerprint: keys.Rotation.To},
			}
		}
		if _, _, err := proposer.Submit(ctx, command, t.id, body); err != nil && ctx.Err() == nil {
			t.log.Warn("rotation of keys does not go on", "kind", string(kind), "stage", string(next), logkey.Error, err)
		}
	}
}
