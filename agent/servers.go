package agent

import (
	"errors"
	"net"
	"slices"
	"sync/atomic"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
)

// servers is whom an agent takes for the servers of its cluster, and where they
// are: by Raft's configuration, by its own, by gossip. It changes nothing. Its
// methods may be called from any goroutine once gossip is open.
type servers struct {
	self       string         // id of this agent
	configured []string       // addresses, of the agent's own configuration
	token      string         // the address in the join token; "" without one
	gossip     *gossip.Gossip // openGossip sets it

	// On servers; what runs while the log opens reads raft, and store only after it.
	store *state.Store
	raft  atomic.Pointer[consensus.Node] // nil until the log is open
}

// others lists the other servers: those of Raft's configuration, which nobody can
// forge, and those that have proven themselves besides. Servers call it once their
// log is open.
func (s *servers) others() []server.Agent {
	var others []server.Agent
	seen := map[string]bool{s.self: true}
	add := func(id, addr string) {
		if !seen[id] && !s.isRemoved(id) {
			seen[id] = true
			others = append(others, server.Agent{ID: id, Addr: addr, Role: auth.RoleServer})
		}
	}
	for _, peer := range s.raft.Load().Peers() {
		add(peer.ID, peer.Addr)
	}
	for _, member := range s.gossip.Servers() {
		add(member.ID, member.Meta.RPCAddr)
	}
	return others
}

// addresses lists the servers' ports, those first that nobody can forge: of Raft's
// configuration, of this agent's own; then those that gossip names, and those that
// it named before the agent's start.
func (s *servers) addresses() []string {
	var addresses []string
	seen := map[string]bool{}
	add := func(addr string) {
		if !seen[addr] {
			seen[addr] = true
			addresses = append(addresses, addr)
		}
	}
	if node := s.raft.Load(); node != nil {
		for _, peer := range node.Peers() {
			add(peer.Addr)
		}
	}
	for _, addr := range s.configured {
		add(addr)
	}
	for _, member := range s.gossip.Servers() {
		if !s.isRemoved(member.ID) {
			add(member.Meta.RPCAddr)
		}
	}
	for _, known := range s.gossip.Remembered() {
		if known.RPCAddr != "" && !s.isRemoved(known.ID) {
			add(known.RPCAddr)
		}
	}
	if len(addresses) == 0 && s.token != "" {
		add(s.token)
	}
	return addresses
}

// gossipOfPeers guesses where the gossip of the servers in Raft's configuration
// is: on their hosts, at this agent's own port. A server that remembers nobody
// finds them so; a wrong guess costs a connection that is refused.
func (s *servers) gossipOfPeers() map[string]string {
	node := s.raft.Load()
	if node == nil {
		return nil
	}
	_, port, err := net.SplitHostPort(s.gossip.Addr())
	if err != nil {
		return nil
	}
	places := make(map[string]string)
	for _, peer := range node.Peers() {
		if host, _, err := net.SplitHostPort(peer.Addr); err == nil && !s.isRemoved(peer.ID) {
			places[peer.ID] = net.JoinHostPort(host, port)
		}
	}
	return places
}

// raftIDAt returns the id of the server at an address of Raft's configuration,
// which has to prove it when it is dialed.
func (s *servers) raftIDAt(addr string) (string, error) {
	node := s.raft.Load()
	if node == nil {
		return "", errors.New("the log is not open yet")
	}
	for _, peer := range node.Peers() {
		if peer.Addr == addr {
			return peer.ID, nil
		}
	}
	return "", nil
}

// isRemoved reports whether an administrator took a server out of the cluster, as
// far as this server knows.
func (s *servers) isRemoved(id string) bool {
	node := s.raft.Load()
	if node == nil || !s.store.Snapshot().Cluster().IsRemoved(id) {
		return false
	}
	// It is still a peer: the removal is under way, or has failed.
	return !slices.ContainsFunc(node.Peers(), func(p consensus.Peer) bool { return p.ID == id })
}

// shuns is what this server answers another one that asks for itself.
func (s *servers) shuns(caller auth.Identity) bool {
	return caller.Role == auth.RoleServer && s.isRemoved(caller.ID)
}
