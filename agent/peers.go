package agent

import (
	"context"
	"fmt"
	"net"
	"path/filepath"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
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
		Name: a.ID(), Meta: a.gossipMeta(false),
		Key: a.identity.gossip.primary(), Logger: a.log, BindAddr: a.config.Bind, Port: port, AdvertiseAddr: a.config.Advertise,
		Seeds: a.config.Server.Join, Known: gossip.KnownFile(filepath.Join(a.config.DataDir, knownFile)),
		Scale: a.config.Scale, Prove: a.prover(), Peers: a.gossipOfPeers,
	})
	if err == nil {
		err = a.gossip.SetKeys(a.identity.gossip.held())
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
	a.life.run(a.keepCertificate) // gossip knows the servers that a node asks
	return nil
}

// gossipMeta is what this agent tells the others about itself; full says that it
// is a server without room for log entries.
func (a *Agent) gossipMeta(full bool) gossip.Meta {
	return gossip.Meta{
		Name:    a.config.Name,
		Cluster: a.identity.credentials.Self.Cluster, Role: string(a.identity.role()), RPCAddr: a.addr,
		Protocol: wire.ProtocolVersion, Version: a.options.Version, Full: full,
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
		a.hearRemoval(reply.Removed)
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

// otherServers lists the other servers: those of Raft's configuration, which
// nobody can forge, and those that have proven themselves besides.
func (a *Agent) otherServers() []server.Agent {
	var others []server.Agent
	seen := map[string]bool{a.ID(): true}
	add := func(id, addr string) {
		if !seen[id] && !a.isRemoved(id) {
			seen[id] = true
			others = append(others, server.Agent{ID: id, Addr: addr, Role: auth.RoleServer})
		}
	}
	for _, peer := range a.raft.Peers() {
		add(peer.ID, peer.Addr)
	}
	for _, member := range a.gossip.Servers() {
		add(member.ID, member.Meta.RPCAddr)
	}
	return others
}

// serverAddresses lists the servers' ports, those first that nobody can forge:
// of Raft's configuration, of this agent's own; then those that gossip names, and
// those that it named before the agent's start.
func (a *Agent) serverAddresses() []string {
	var addresses []string
	seen := map[string]bool{}
	add := func(addr string) {
		if !seen[addr] {
			seen[addr] = true
			addresses = append(addresses, addr)
		}
	}
	if node := a.peers.Load(); node != nil {
		for _, peer := range node.Peers() {
			add(peer.Addr)
		}
	}
	for _, addr := range a.config.Client.Servers {
		add(addr)
	}
	for _, member := range a.gossip.Servers() {
		if !a.isRemoved(member.ID) {
			add(member.Meta.RPCAddr)
		}
	}
	for _, known := range a.gossip.Remembered() {
		if known.RPCAddr != "" && !a.isRemoved(known.ID) {
			add(known.RPCAddr)
		}
	}
	if len(addresses) == 0 && a.config.JoinToken.Addr != "" {
		add(a.config.JoinToken.Addr)
	}
	return addresses
}

// gossipOfPeers guesses where the gossip of the servers in Raft's configuration
// is: on their hosts, at this agent's own port. A server that remembers nobody
// finds them so; a wrong guess costs a connection that is refused.
func (a *Agent) gossipOfPeers() map[string]string {
	node := a.peers.Load()
	if node == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(a.gossip.Addr())
	if err != nil {
		return nil
	}
	places := make(map[string]string)
	for _, peer := range node.Peers() {
		if host, _, err := net.SplitHostPort(peer.Addr); err == nil && !a.isRemoved(peer.ID) {
			places[peer.ID] = net.JoinHostPort(host, port)
		}
	}
	return places
}
