package client

import (
	"context"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// StagingCalls asks servers and other nodes about copies of named data, over connections of
// Pool.
type StagingCalls struct {
	Pool    *rpc.Pool
	Servers func() []string // host:port
}

// Peers asks who takes part. The first server that knows decides.
func (s StagingCalls) Peers(ctx context.Context, ask *structs.StagingPeersAsk) (*structs.StagingPeers, error) {
	return askServers[structs.StagingPeersAsk, structs.StagingPeers](ctx, s, structs.MethodStagingPeers, ask)
}

// May asks whether a node may read.
func (s StagingCalls) May(ctx context.Context, ask *structs.StagingMayAsk) error {
	_, err := askServers[structs.StagingMayAsk, structs.StagingMay](ctx, s, structs.MethodStagingMay, ask)
	return err
}

// askServers asks one server after the other until one knows. Whoever answers has to prove
// that it is a server.
func askServers[Ask, Reply any](ctx context.Context, s StagingCalls, method string, ask *Ask) (*Reply, error) {
	err := error(structs.NewError(structs.CodeUnavailable, "client.no_server"))
	for _, addr := range s.Servers() {
		var conn *rpc.Conn
		if conn, err = s.Pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}}); err != nil {
			continue
		}
		var reply *Reply
		if reply, err = rpc.Call[Ask, Reply](ctx, conn, method, ask); err == nil || structs.CodeOf(err) == structs.CodeForbidden || ctx.Err() != nil {
			return reply, err
		}
	}
	return nil, err
}

// Ask asks another node, which has to prove its id.
func (s StagingCalls) Ask(ctx context.Context, peer *structs.StagingPeer, ask *structs.StagingAsk) (*structs.StagingReply, error) {
	conn, err := s.Pool.Conn(rpc.Target{Addr: peer.Addr, Expect: auth.Expect{ID: peer.NodeID}})
	if err != nil {
		return nil, err
	}
	return rpc.Call[structs.StagingAsk, structs.StagingReply](ctx, conn, structs.MethodNodeStaged, ask)
}
