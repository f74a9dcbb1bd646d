package server

import (
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// OpenFake makes a server that leads and has no duties, for tests of what asks one.
// Its log is in memory and applies to machine at once; nothing is scheduled, swept or
// foreseen but on request, so the state changes by nothing but what is submitted.
// Peers and nodes have no address. Ids come from random. Close ends looks into the
// future.
func OpenFake(machine Machine, now func() time.Time, random io.Reader) (*Server, error) {
	const id = "fake"
	store := machine.store
	log, err := consensus.NewSequencer().Add(id, machine)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s, err := assemble(ctx, cancel, Config{
		ID: id, Name: id, Store: store, Log: log, Peers: NewFakePeers().For(id), Now: now, Rand: random, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return s, nil
}

// FakePeers connects servers of one process, for tests and simulations: calls
// between them are function calls, and cuts and dead agents are data. Use For
// to get one server's end.
type FakePeers struct {
	mu struct {
		sync.Mutex
		servers map[string]*Server // by address
		cut     map[[2]string]bool // [from, to] by address
		dead    map[string]bool    // agents by address
		silent  bool               // what a dead agent does not answer ends with its context, or after forwardTimeout
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

// Silence lets calls to dead agents hang, as those to a machine that has
// vanished do, or with false fail at once.
func (f *FakePeers) Silence(silent bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.silent = silent
}

// hang waits as a call does that nobody answers, where that is wanted.
func (f *FakePeers) hang(ctx context.Context, addr string) error {
	f.mu.Lock()
	hangs := f.mu.silent && f.mu.dead[addr]
	f.mu.Unlock()
	if !hangs {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	<-ctx.Done()
	return structs.NewError(structs.CodeTimeout, "rpc.timeout").Because(ctx.Err())
}

// For returns the end of the agent at an address.
func (f *FakePeers) For(addr string) Peers { return fakeEnd{f, addr} }

// reaches reports whether a call from one address to another gets through.
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

// leader returns the server to call, or why it cannot be called.
func (e fakeEnd) leader(agent Agent) (*Server, error) {
	server := e.network.server(agent.Addr)
	if server == nil || !e.network.reaches(e.addr, agent.Addr) {
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.unreachable", "addr", agent.Addr)
	}
	return server, nil
}

// Propose implements Peers.
func (e fakeEnd) Propose(ctx context.Context, leader Agent, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
	if err := e.network.hang(ctx, leader.Addr); err != nil {
		return nil, err
	}
	server, err := e.leader(leader)
	if err != nil {
		return nil, err
	}
	return server.AnswerPropose(ctx, request)
}

// ReadIndex implements Peers.
func (e fakeEnd) ReadIndex(ctx context.Context, leader Agent) (*structs.ReadIndexReply, error) {
	if err := e.network.hang(ctx, leader.Addr); err != nil {
		return nil, err
	}
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
