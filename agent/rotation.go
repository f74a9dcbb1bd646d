package agent

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

const (
	keyRetry   = time.Second     // between attempts to get a key that the log names
	keyTimeout = 3 * time.Second // of one exchange about keys
)

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

// trusted is one agent that the leader tells whom to trust.
type trusted struct {
	target      rpc.Target
	name        string
	incarnation uint64 // of nodes: another process is told again
	alive       bool   // a rotation waits for it
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

// keysOf are the agents that a rotation waits for, with the keys that they said
// they hold.
func (t *teller) keysOf(kind structs.KeyKind, audience []trusted) []structs.AgentKeys {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []structs.AgentKeys
	for _, agent := range audience {
		if agent.awaited(kind) {
			all = append(all, structs.AgentKeys{Name: agent.name, Keys: slices.Clone(t.mu.told[agent.target.ID].of(kind))})
		}
	}
	return all
}

// NewGossipKey makes a key and sends it to the other servers that answer, before
// the log names it: a leader that dies must not take it along.
func (t *teller) NewGossipKey(ctx context.Context) (fingerprint string, err error) {
	key := make([]byte, gossipKeySize)
	rand.Read(key)
	if err := t.identity.offer(key); err != nil {
		return "", err
	}
	peers := t.raft.Peers()
	var kept sync.WaitGroup
	answers := make(chan error, len(peers))
	for _, peer := range peers {
		if peer.ID == t.id {
			continue
		}
		kept.Go(func() {
			_, err := askServer[structs.GossipKeyOffer, structs.GossipKeyKept](ctx, t.pool,
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
