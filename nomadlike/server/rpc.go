package server

import (
	"context"
	"fmt"
	"net"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// forwardTimeout bounds one try of a call to the leader: a leader that does
// not answer for this long is likely no leader any more.
const forwardTimeout = 5 * time.Second

// Register declares the RPCs that a server answers. Call it before r serves.
func (s *Server) Register(r *rpc.Server) {
	rpc.Unary(r, structs.MethodLeaderPropose, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
			return s.AnswerPropose(ctx, request)
		})
	rpc.Unary(r, structs.MethodLeaderReadIndex, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, request *structs.ReadIndexRequest) (*structs.ReadIndexReply, error) {
			return s.AnswerReadIndex(ctx, request)
		})
	rpc.Unary(r, structs.MethodLeaderLiveness, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, report *structs.LivenessReport) (*structs.LivenessAck, error) {
			return s.AnswerLiveness(ctx, report)
		})
	rpc.Unary(r, structs.MethodServerRenew, rpc.FromClients,
		func(_ context.Context, peer rpc.Peer, request *structs.RenewRequest) (*structs.RenewReply, error) {
			return s.Renew(peer, request)
		})
	rpc.Stream(r, structs.MethodNodeSession, rpc.FromClients,
		func(ctx context.Context, peer rpc.Peer, stream *rpc.ServerStream[structs.SessionUp, structs.SessionDown]) error {
			return s.ServeNode(ctx, peer.ID, stream)
		})
}

// Renew answers Server.Renew: a new certificate for the caller's own identity,
// and for the address that its connection comes from. It is for nodes that are
// registered; servers hold the CA's key. While the CA is being replaced, whoever
// has the key of the old one must get no certificate of the new one for a server,
// nor for a node that does not exist.
func (s *Server) Renew(caller rpc.Peer, request *structs.RenewRequest) (*structs.RenewReply, error) {
	if s.config.SignCSR == nil {
		return nil, structs.NewError(structs.CodeUnavailable, "server.no_ca")
	}
	if s.config.Store.Snapshot().Node(caller.ID) == nil {
		return nil, structs.NewError(structs.CodeForbidden, "server.renew_unknown")
	}
	certificate, err := s.config.SignCSR(request.CSR, caller.Identity, ipOf(caller.Addr))
	if err != nil {
		return nil, structs.NewError(structs.CodeInvalid, "server.csr_refused").Because(err)
	}
	return &structs.RenewReply{Certificate: certificate}, nil
}

// ipOf is the IP of a peer's address, "" without one.
func ipOf(addr net.Addr) string {
	if addr == nil {
		return ""
	}
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return ""
	}
	return host
}

// RegisterWitness declares Agent.Witness, which servers and clients answer
// alike. Gossip returns an agent's state in the own gossip view, "" where it is
// unknown; it may be nil.
func RegisterWitness(r *rpc.Server, pool *rpc.Pool, gossip func(id string) string) {
	rpc.Unary(r, structs.MethodAgentWitness, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, request *structs.WitnessRequest) (*structs.WitnessReply, error) {
			reply := &structs.WitnessReply{}
			if gossip != nil {
				reply.Gossip = gossip(request.NodeID)
			}
			conn, err := pool.Conn(rpc.Target{Addr: request.RPCAddr, Expect: auth.Expect{ID: request.NodeID}})
			if err != nil {
				return nil, err
			}
			if reply.Reached = rpc.Alive(ctx, conn) == nil; !reply.Reached {
				pool.Drop(conn)
			}
			return reply, nil
		})
}

// PoolPeers reaches other agents over their RPC.
type PoolPeers struct{ Pool *rpc.Pool }

var _ Peers = PoolPeers{}

func (p PoolPeers) conn(agent Agent) (*rpc.Conn, error) {
	return p.Pool.Conn(rpc.Target{Addr: agent.Addr, Expect: auth.Expect{Role: agent.Role, ID: agent.ID}})
}

// Propose implements Peers.
func (p PoolPeers) Propose(ctx context.Context, leader Agent, request *structs.ProposeRequest) (*structs.ProposeReply, error) {
	return callLeader[structs.ProposeRequest, structs.ProposeReply](ctx, p, leader, structs.MethodLeaderPropose, request)
}

// ReadIndex implements Peers.
func (p PoolPeers) ReadIndex(ctx context.Context, leader Agent) (*structs.ReadIndexReply, error) {
	return callLeader[structs.ReadIndexRequest, structs.ReadIndexReply](ctx, p, leader, structs.MethodLeaderReadIndex, &structs.ReadIndexRequest{})
}

// Liveness implements Peers.
func (p PoolPeers) Liveness(ctx context.Context, leader Agent, report *structs.LivenessReport) error {
	_, err := callLeader[structs.LivenessReport, structs.LivenessAck](ctx, p, leader, structs.MethodLeaderLiveness, report)
	return err
}

func callLeader[Req, Resp any](ctx context.Context, p PoolPeers, leader Agent, method string, request *Req) (*Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, forwardTimeout)
	defer cancel()
	conn, err := p.conn(leader)
	if err != nil {
		return nil, err
	}
	return rpc.Call[Req, Resp](ctx, conn, method, request)
}

// Alive implements Peers.
func (p PoolPeers) Alive(ctx context.Context, agent Agent) error {
	conn, err := p.conn(agent)
	if err != nil {
		return err
	}
	if err := rpc.Alive(ctx, conn); err != nil {
		defer p.Pool.Drop(conn)
		if conn.Refused() {
			return fmt.Errorf("%w: %w", ErrAgentDown, err)
		}
		return err
	}
	return nil
}

// Witness implements Peers.
func (p PoolPeers) Witness(ctx context.Context, agent Agent, request *structs.WitnessRequest) (*structs.WitnessReply, error) {
	conn, err := p.conn(agent)
	if err != nil {
		return nil, err
	}
	return rpc.Call[structs.WitnessRequest, structs.WitnessReply](ctx, conn, structs.MethodAgentWitness, request)
}
