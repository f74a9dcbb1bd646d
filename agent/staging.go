package agent

import (
	"context"

	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// stager answers nodes that hand each other copies of named data: who takes part, and who
// may read. No byte of data passes a server.
type stager struct {
	snapshot   func() *state.Snapshot
	consistent func(ctx context.Context) (*state.Snapshot, error)
}

// register declares what nodes ask.
func (s *stager) register(r *rpc.Server) {
	rpc.Unary(r, structs.MethodStagingPeers, rpc.FromClients,
		func(ctx context.Context, peer rpc.Peer, ask *structs.StagingPeersAsk) (reply *structs.StagingPeers, err error) {
			err = s.judge(ctx, func(snapshot *state.Snapshot) error {
				reply, err = server.StagingPeers(snapshot, peer.ID, ask)
				return err
			})
			return reply, err
		})
	rpc.Unary(r, structs.MethodStagingMay, rpc.FromClients,
		func(ctx context.Context, _ rpc.Peer, ask *structs.StagingMayAsk) (*structs.StagingMay, error) {
			return &structs.StagingMay{}, s.judge(ctx, func(snapshot *state.Snapshot) error {
				return server.MayReadData(snapshot, ask.NodeID, ask.AllocID, ask.Project, ask.Digest)
			})
		})
}

// judge asks what this server knows, and where that says no the newest state: the
// allocation may be one that the server has not heard of yet.
func (s *stager) judge(ctx context.Context, allowed func(*state.Snapshot) error) error {
	if err := allowed(s.snapshot()); err == nil {
		return nil
	}
	snapshot, err := s.consistent(ctx)
	if err != nil {
		return err
	}
	return allowed(snapshot)
}
