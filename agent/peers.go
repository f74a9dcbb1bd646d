package agent

import (
	"context"
	"fmt"
	"path/filepath"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/wire"
)

// openGossip makes the agent a member.
func (a *Agent) openGossip(context.Context) error {
	port := a.config.Gossip
	if port == 0 {
		port = -1
	}
	var err error
	a.gossip, err = gossip.Open(gossip.Config{
		Name: a.ID(), Meta: a.gossipMeta(),
		Key: a.identity.gossip.primary(), Logger: a.log, BindAddr: a.config.Bind, Port: port, AdvertiseAddr: a.config.Advertise,
		Seeds: a.config.Server.Join, Known: gossip.KnownFile(filepath.Join(a.config.DataDir, knownFile)),
		Scale: a.config.Scale, Prove: a.prover(), Peers: a.servers.gossipOfPeers,
	})
	a.servers.gossip, a.removals.gossip, a.keyring.gossip, a.conditions.gossip = a.gossip, a.gossip, a.gossip, a.gossip
	if err == nil {
		err = a.gossip.SetKeys(a.identity.gossip.all())
	}
	if err != nil {
		return err
	}
	a.life.run(func() { // somebody must read; what is told is read from the table
		for range a.gossip.Events() {
			continue
		}
	})
	a.life.atStop(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, gossipGoodbye)
		defer cancel()
		if err := a.gossip.Leave(ctx); err != nil {
			a.log.Debug("leave gossip", logkey.Error, err) // nobody may be left to hear it
		}
	})
	a.life.run(a.certificates.renewInTime) // gossip knows the servers that a node asks
	return nil
}

// tellOthers tells the others anew how this agent is now.
func (a *Agent) tellOthers(ctx context.Context) error {
	a.telling.Lock()
	defer a.telling.Unlock()
	return a.gossip.UpdateMeta(ctx, a.gossipMeta())
}

// gossipMeta is what this agent tells the others about itself.
func (a *Agent) gossipMeta() gossip.Meta {
	return gossip.Meta{
		Name:    a.config.Name,
		Cluster: a.identity.credentials.Self.Cluster, Role: string(a.identity.role()), RPCAddr: a.addr,
		Protocol: wire.ProtocolVersion, Version: a.options.Version, Full: a.conditions.full(),
		CertificateEnds: a.certificates.end().Unix(),
	}
}

// prover asks servers for the proof of what gossip says of them; nil on nodes.
func (a *Agent) prover() gossip.Prove {
	if !a.config.Server.Enabled {
		return nil
	}
	return func(ctx context.Context, id, addr string) (int, error) {
		reply, err := proveServer(ctx, a.pool, id, addr)
		if err != nil {
			return 0, err
		}
		a.removed.take(reply.Removed)
		if reply.Protocol >= wire.ProtocolConditions {
			a.conditions.hear(id, reply.Condition)
		}
		return reply.Protocol, nil
	}
}

// proveServer asks whoever answers at addr to prove that it is the server with
// this id, and to say that it wants to be called there.
func proveServer(ctx context.Context, pool *rpc.Pool, id, addr string) (*rpc.PingReply, error) {
	conn, err := pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer, ID: id}})
	if err != nil {
		return nil, err
	}
	reply, err := rpc.Ping(ctx, conn)
	switch {
	case err != nil:
		pool.Drop(conn)
		return nil, fmt.Errorf("prove server %s: %w", id, err)
	case reply.Addr != "" && reply.Addr != addr:
		return nil, fmt.Errorf("prove server %s: it answers at %s and wants to be called at %s", id, addr, reply.Addr)
	}
	return reply, nil
}
