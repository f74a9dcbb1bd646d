package server

import (
	"context"
	"sync"

	"nomadlike/nomadlike/structs"
)

// FakePeers connects servers of one process, for tests and simulations: calls
// between them are function calls, and cuts and dead agents are data. Use For
// to get one server's end.
type FakePeers struct {
	mu struct {
		sync.Mutex
		servers map[string]*Server // by address
		cut     map[[2]string]bool // [from, to] by address
		dead    map[string]bool    // agents by address
	}
}

// NewFakePeers makes a network without servers.
func NewFakePeers() *FakePeers {
	f := &FakePeers{}
	f.mu.servers = make(map[string]*Server)
	f.mu.cut = make(map[[2]string]bool)
	f.mu.dead = make(map[string]bool)
	return f
}

// Add puts a server at an address.
func (f *FakePeers) Add(addr string, server *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.servers[addr] = server
}

// Cut stops, or with false lets through again, what one address says to
// another.
func (f *FakePeers) Cut(from, to string, cut bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.cut[[2]string{from, to}] = cut
}

// Kill makes an agent answer nobody, or with false everybody again.
func (f *FakePeers) Kill(addr string, dead bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.dead[addr] = dead
}

// For gives the end of the agent at an address.
func (f *FakePeers) For(addr string) Peers { return fakeEnd{f, addr} }

// reaches tells whether a call from one address to another gets through.
func (f *FakePeers) reaches(from, to string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.mu.cut[[2]string{from, to}] && !f.mu.dead[from] && !f.mu.dead[to]
}

func (f *FakePeers) server(addr string) *Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.servers[addr]
}

type fakeEnd struct {
	network *FakePeers
	addr    string
}

// leader gives the server to call, or why it can not be called.
func (e fakeEnd) leader(agent Agent) (*Server, error) {
	server := e.network.server(agent.Addr)
	if server == nil || !e.network.reaches(e.addr, agent.Addr) {
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", agent.Addr)
	}
	return server, nil
}

// Propose implements Peers.
func (e fakeEnd) Propose(ctx context.Context, leader Agent, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
	server, err := e.leader(leader)
	if err != nil {
		return nil, err
	}
	return server.AnswerPropose(ctx, request)
}

// ReadIndex implements Peers.
func (e fakeEnd) ReadIndex(ctx context.Context, leader Agent) (*structs.ReadIndexReply, error) {
	server, err := e.leader(leader)
	if err != nil {
		return nil, err
	}
	return server.AnswerReadIndex(ctx, &structs.ReadIndexRequest{})
}

// Liveness implements Peers.
func (e fakeEnd) Liveness(ctx context.Context, leader Agent, report *structs.LivenessReport) error {
	server, err := e.leader(leader)
	if err != nil {
		return err
	}
	_, err = server.AnswerLiveness(ctx, report)
	return err
}

// Alive implements Peers.
func (e fakeEnd) Alive(_ context.Context, agent Agent) error {
	if !e.network.reaches(e.addr, agent.Addr) {
		return structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", agent.Addr)
	}
	return nil
}

// Witness implements Peers.
func (e fakeEnd) Witness(_ context.Context, agent Agent, request *structs.WitnessRequest) (*structs.WitnessReply, error) {
	if !e.network.reaches(e.addr, agent.Addr) {
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", agent.Addr)
	}
	return &structs.WitnessReply{Reached: e.network.reaches(agent.Addr, request.RPCAddr)}, nil
}
