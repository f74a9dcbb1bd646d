package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

const (
	keyRetry   = time.Second     // between attempts to get a key that the log names
	keyTimeout = 3 * time.Second // of one exchange about keys
)

// followKeys has a server hold the keys that the log names. It asks the
// other servers for one that it does not know: it was away when it was offered.
func (a *Agent) followKeys() {
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
			if err := a.holdKeys(ctx, cluster); err != nil {
				a.log.Warn("a key that the cluster uses is not here yet", logkey.Error, err)
				timer := time.NewTimer(keyRetry)
				select {
				case <-ctx.Done():
					timer.Stop()
					return
				case <-timer.C:
				}
				continue
			}
			seen = cluster.ModifyIndex
		}
	})
}

// holdKeys takes the keys of gossip and the CAs that a record of the cluster names.
func (a *Agent) holdKeys(ctx context.Context, cluster *structs.Cluster) error {
	if err := a.holdCA(cluster); err != nil {
		return err
	}
	names := cluster.Keys(structs.KeyGossip).Held()
	if names == nil {
		return nil
	}
	keys := make([][]byte, len(names))
	for i, name := range names {
		if keys[i] = a.identity.gossip.find(name); keys[i] != nil {
			continue
		}
		var err error
		if keys[i], err = a.fetchGossipKey(ctx, name); err != nil {
			return err
		}
	}
	return a.identity.takeGossip(keys, cluster.ModifyIndex, cluster.RevivedAt, a.gossip.SetKeys)
}

// fetchGossipKey asks the other servers for a key by its fingerprint.
func (a *Agent) fetchGossipKey(ctx context.Context, fingerprint string) ([]byte, error) {
	failure := errors.New("no other server is known")
	for _, other := range a.servers.others() {
		reply, err := askServer[structs.GossipKeyRequest, structs.GossipKeyReply](ctx, a.pool, other, structs.MethodServerKey,
			&structs.GossipKeyRequest{Fingerprint: fingerprint})
		switch {
		case err != nil:
			failure = err
		case len(reply.Key) == gossipKeySize && gossipFingerprint(reply.Key) == fingerprint:
			return reply.Key, nil
		default:
			failure = errors.New("another server does not have it either")
		}
	}
	return nil, failure
}

// askServer calls a server, which has to prove that it is the one that is meant.
func askServer[Request, Reply any](ctx context.Context, pool *rpc.Pool, other server.Agent, method string, request *Request) (*Reply, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	conn, err := pool.Conn(rpc.Target{Addr: other.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: other.ID}})
	if err != nil {
		return nil, err
	}
	return rpc.Call[Request, Reply](ctx, conn, method, request)
}

// registerKeys declares how servers give each other keys of gossip. Nobody else
// is answered, and no server that an administrator took out.
func (a *Agent) registerKeys() {
	rpc.Unary(a.rpc, structs.MethodServerKey, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, request *structs.GossipKeyRequest) (*structs.GossipKeyReply, error) {
			if a.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			return &structs.GossipKeyReply{Key: a.identity.gossip.find(request.Fingerprint)}, nil
		})
	rpc.Unary(a.rpc, structs.MethodServerOfferKey, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.GossipKeyOffer) (*structs.GossipKeyKept, error) {
			if a.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			return &structs.GossipKeyKept{}, a.identity.offer(offer.Key)
		})
}

// NewGossipKey makes a key and gives it to the other servers that answer, before
// the log names it: a leader that dies must not take it along.
func (a *Agent) NewGossipKey(ctx context.Context) (fingerprint string, err error) {
	key := make([]byte, gossipKeySize)
	rand.Read(key)
	if err := a.identity.offer(key); err != nil {
		return "", err
	}
	peers := a.raft.Peers()
	var kept sync.WaitGroup
	answers := make(chan error, len(peers))
	for _, peer := range peers {
		if peer.ID == a.ID() {
			continue
		}
		kept.Go(func() {
			_, err := askServer[structs.GossipKeyOffer, structs.GossipKeyKept](ctx, a.pool,
				server.Agent{ID: peer.ID, Addr: peer.Addr, Role: auth.RoleServer}, structs.MethodServerOfferKey, &structs.GossipKeyOffer{Key: key})
			answers <- err
		})
	}
	kept.Wait()
	close(answers)
	have, failure := 1, error(nil)
	for err := range answers {
		if err == nil {
			have++
		} else {
			failure = err
		}
	}
	if have <= len(peers)/2 {
		return "", structs.NewError(structs.CodeUnavailable, "agent.rotation_servers", "have", have, "servers", len(peers)).Because(failure)
	}
	return gossipFingerprint(key), nil
}

// trustNews is what agents are told of the cluster's record, and whether it is
// all that the record says: this server may not hold a key yet.
func (a *Agent) trustNews(cluster *structs.Cluster) (news *structs.TrustNews, whole bool) {
	news = &structs.TrustNews{Index: cluster.ModifyIndex, RevivedAt: cluster.RevivedAt, Removed: removedNodeIDs(cluster)}
	if cluster.CA != nil {
		news.CA, news.PastCA = cluster.CA.Trusted(), cluster.CA.Past
	}
	for _, name := range cluster.Keys(structs.KeyGossip).Held() {
		key := a.identity.gossip.find(name)
		if key == nil {
			news.Gossip = nil
			return news, false
		}
		news.Gossip = append(news.Gossip, key)
	}
	return news, true
}

// trusted is one agent that the leader tells whom to trust.
type trusted struct {
	target      rpc.Target
	name        string
	incarnation uint64 // of nodes: another process is told again
	alive       bool   // a rotation waits for it
}

// audience lists the servers of the log, this one too, and the nodes that can be
// reached.
func (a *Agent) audience(snapshot *state.Snapshot) []trusted {
	var all []trusted
	servers := make(map[string]bool)
	names := a.members.names()
	for _, view := range a.members.views() {
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
func (a *Agent) driveRotation(ctx context.Context, cluster *structs.Cluster, audience []trusted) {
	for _, kind := range []structs.KeyKind{structs.KeyGossip, structs.KeyCA} {
		keys := cluster.Keys(kind)
		if keys == nil || keys.Rotation == nil {
			continue
		}
		next, _ := keys.Rotation.Next(a.teller.holders(kind, audience))
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
		if _, _, err := a.server.Submit(ctx, command, a.ID(), body); err != nil && ctx.Err() == nil {
			a.log.Warn("rotation of keys does not go on", "kind", string(kind), "stage", string(next), logkey.Error, err)
		}
	}
}

// awaited reports whether a rotation waits for an agent: for all that are alive,
// and with the CA for every server, since one that was away would be shut out.
func (t trusted) awaited(kind structs.KeyKind) bool {
	return t.alive || kind == structs.KeyCA && t.target.Role == auth.RoleServer
}

// of are the fingerprints of one kind.
func (t toldAgent) of(kind structs.KeyKind) []string {
	if kind == structs.KeyCA {
		return t.cas
	}
	return t.gossip
}

// holders are the agents that a rotation waits for, with the keys that they said
// they hold.
func (t *teller) holders(kind structs.KeyKind, audience []trusted) []structs.KeyHolder {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []structs.KeyHolder
	for _, agent := range audience {
		if agent.awaited(kind) {
			all = append(all, structs.KeyHolder{Name: agent.name, Keys: slices.Clone(t.mu.told[agent.target.ID].of(kind))})
		}
	}
	return all
}
