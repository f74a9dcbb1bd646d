package agent

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// keyring is what an agent holds of the cluster's keys and whom it trusts: nodes by
// the leader's word, servers by the log, with the keys that they give each other.
// What it holds lies in the identity; keyring keeps it as the cluster's record says.
type keyring struct {
	server bool // the agent is one
	log    *slog.Logger
	life   *lifecycle

	identity     *identity
	certificates *certificates
	removals     *removals
	servers      *servers
	gossip       *gossip.Gossip // openGossip sets it
	rpc          *rpc.Server
	pool         *rpc.Pool
}

// own are the keys that the agent holds and the CAs that it trusts.
func (k *keyring) own() toldAgent {
	return toldAgent{gossip: k.identity.gossip.fingerprints(), cas: k.certificates.ownCAs()}
}

// follow has a server hold the keys that the log names. It asks the
// other servers for one that it does not know: it was away when it was offered.
func (k *keyring) follow() {
	k.life.follow(func(ctx context.Context) {
		seen := uint64(0)
		for {
			snapshot, err := k.servers.store.Block(ctx, func(now *state.Snapshot) (bool, <-chan struct{}) {
				cluster := now.Cluster()
				return cluster != nil && cluster.ModifyIndex != seen, now.WatchCluster()
			})
			if err != nil {
				return
			}
			cluster := snapshot.Cluster()
			if err := k.take(ctx, cluster); err != nil {
				k.log.Warn("a key that the cluster uses is not here yet", logkey.Error, err)
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

// take takes the keys of gossip and the CAs that a record of the cluster names. A CA
// that is not here yet does not keep the keys of gossip from being taken: without
// them the server would be alone.
func (k *keyring) take(ctx context.Context, cluster *structs.Cluster) error {
	return errors.Join(k.takeCA(cluster), k.takeGossip(ctx, cluster))
}

func (k *keyring) takeGossip(ctx context.Context, cluster *structs.Cluster) error {
	names := cluster.Keys(structs.KeyGossip).Fingerprints()
	if names == nil {
		return nil
	}
	keys := make([][]byte, len(names))
	for i, name := range names {
		if keys[i] = k.identity.gossip.find(name); keys[i] != nil {
			continue
		}
		var err error
		if keys[i], err = k.fetchGossipKey(ctx, name); err != nil {
			return err
		}
	}
	return k.identity.takeGossip(keys, cluster.ModifyIndex, cluster.RevivedAt, k.gossip.SetKeys)
}

// takeCA takes the CAs that a record of the cluster names, on a server: with the
// key of that which signs, or is to.
func (k *keyring) takeCA(cluster *structs.Cluster) error {
	state := cluster.CA
	trusted := state.Trusted()
	if len(trusted) == 0 {
		return nil
	}
	signs := state.Keys.Current
	if state.Keys.Rotation != nil {
		signs = state.Keys.Rotation.To
	}
	if k.identity.held.Load().key(signs) == nil {
		return errors.New("the leader has not brought the key of the next CA yet")
	}
	return k.certificates.takeCA(caNews{trusted, state.Past, cluster.ModifyIndex, cluster.RevivedAt})
}

// fetchGossipKey asks the other servers for a key by its fingerprint.
func (k *keyring) fetchGossipKey(ctx context.Context, fingerprint string) ([]byte, error) {
	failure := errors.New("no other server is known")
	for _, other := range k.servers.others() {
		reply, err := askServer[structs.GossipKeyRequest, structs.GossipKeyReply](ctx, k.pool, other, structs.MethodServerKey,
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

// registerGossip declares how servers give each other keys of gossip. Nobody else
// is answered, and no server that an administrator took out.
func (k *keyring) registerGossip() {
	rpc.Unary(k.rpc, structs.MethodServerKey, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, request *structs.GossipKeyRequest) (*structs.GossipKeyReply, error) {
			if k.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			return &structs.GossipKeyReply{Key: k.identity.gossip.find(request.Fingerprint)}, nil
		})
	rpc.Unary(k.rpc, structs.MethodServerOfferKey, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.GossipKeyOffer) (*structs.GossipKeyKept, error) {
			if k.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			return &structs.GossipKeyKept{}, k.identity.offer(offer.Key)
		})
}

// registerCA declares how a leader brings the others the CA that is to take
// the place of the present one. Nobody can ask for it: while the CA of before is
// trusted, whoever has its key passes for any server, but is not at its address.
func (k *keyring) registerCA() {
	rpc.Unary(k.rpc, structs.MethodServerOfferCA, rpc.FromServers,
		func(_ context.Context, peer rpc.Peer, offer *structs.CAOffer) (*structs.GossipKeyKept, error) {
			if k.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			offered := offeredCA{offer.Certificate, offer.Key}
			if cluster := k.servers.store.Snapshot().Cluster(); cluster != nil && cluster.CA != nil && cluster.CA.Keys.Rotation != nil {
				ca, err := auth.ParseCA(offered.Certificate, offered.Key, cluster.ID)
				if err != nil || ca.Fingerprint() != cluster.CA.Keys.Rotation.To {
					return nil, structs.NewError(structs.CodeConflict, "state.rotation_other", "kind", string(structs.KeyCA)).Because(err)
				}
			}
			return &structs.GossipKeyKept{}, k.identity.offerCA(offered)
		})
}

// registerTrust declares what the leader tells nodes about whom to trust.
func (k *keyring) registerTrust() {
	rpc.Unary(k.rpc, structs.MethodAgentTrust, rpc.FromServers,
		func(_ context.Context, _ rpc.Peer, news *structs.TrustNews) (*structs.TrustAck, error) {
			return k.takeTrust(news)
		})
}

// takeTrust takes the leader's word, and keeps it before it says so. Servers have
// it from the log.
func (k *keyring) takeTrust(news *structs.TrustNews) (*structs.TrustAck, error) {
	if !k.server {
		fresh, err := k.removals.save(news.Removed)
		if err != nil {
			return nil, err
		}
		k.removals.shutOut(fresh, 0)
		if err := k.certificates.takeCA(caNews{news.CA, news.PastCA, news.Index, news.RevivedAt}); err != nil {
			return nil, err
		}
		if len(news.Gossip) > 0 {
			if err := k.identity.takeGossip(news.Gossip, news.Index, news.RevivedAt, k.gossip.SetKeys); err != nil {
				return nil, err
			}
		}
	}
	return &structs.TrustAck{Index: news.Index, Gossip: k.identity.gossip.fingerprints(), CA: k.certificates.ownCAs()}, nil
}
