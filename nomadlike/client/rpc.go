package client

import (
	"context"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client/code"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/codestore"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// Register declares the services of this node. It is called before s serves.
func (c *Client) Register(s *rpc.Server) {
	rpc.Stream(s, structs.MethodAllocLogs, rpc.FromServers,
		func(ctx context.Context, peer rpc.Peer, stream *rpc.ServerStream[structs.LogRequest, structs.LogChunk]) error {
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			return c.service.Logs(ctx, callerOf(peer), request, stream.Send)
		})
	rpc.Stream(s, structs.MethodAllocExec, rpc.FromAgents,
		func(ctx context.Context, peer rpc.Peer, stream *rpc.ServerStream[structs.ExecUp, structs.ExecDown]) error {
			return c.service.Exec(ctx, callerOf(peer), stream)
		})
	rpc.Stream(s, structs.MethodAllocFiles, rpc.FromServers,
		func(ctx context.Context, peer rpc.Peer, stream *rpc.ServerStream[structs.FileRequest, structs.FileChunk]) error {
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			return c.service.Files(ctx, callerOf(peer), request, stream.Send)
		})
	rpc.Unary(s, structs.MethodNodeUsage, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, _ *structs.UsageRequest) (*structs.NodeUsage, error) {
			return c.usage.Current(ctx)
		})
	rpc.Unary(s, structs.MethodNodeMetrics, rpc.FromServers,
		func(_ context.Context, _ rpc.Peer, request *structs.MetricsRequest) (*structs.NodeMetrics, error) {
			return c.usage.Metrics(request)
		})
	rpc.Unary(s, structs.MethodNodeHistory, rpc.FromServers,
		func(_ context.Context, _ rpc.Peer, request *structs.HistoryRequest) (*structs.NodeHistory, error) {
			return c.usage.History(request)
		})
	rpc.Unary(s, structs.MethodNodeLook, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, ask *structs.DataLook) (*structs.DataSeen, error) {
			return c.preparer.LookForData(ctx, ask)
		})
	rpc.Unary(s, structs.MethodNodeData, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, ask *structs.DataAsk) (*structs.DataReply, error) {
			return c.objects.Answer(ctx, ask)
		})
	rpc.Unary(s, structs.MethodNodeStaged, rpc.FromClients,
		func(ctx context.Context, peer rpc.Peer, ask *structs.StagingAsk) (*structs.StagingReply, error) {
			return c.staging.Answer(ctx, peer.ID, ask)
		})
	rpc.Unary(s, structs.MethodNodeRankHistory, rpc.FromServers,
		func(_ context.Context, _ rpc.Peer, request *structs.RankHistoryRequest) (*structs.NodeRankHistory, error) {
			return c.usage.RankHistory(request)
		})
	rpc.Unary(s, structs.MethodAllocCommit, rpc.FromServers,
		func(ctx context.Context, peer rpc.Peer, order *structs.CommitOrder) (*structs.Committed, error) {
			return c.service.Commit(ctx, callerOf(peer), order)
		})
	rpc.Unary(s, structs.MethodNodeImages, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, ask *structs.ImagesAsk) (*structs.NodeImages, error) {
			return c.images.List(ctx, ask)
		})
	rpc.Unary(s, structs.MethodNodeImage, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, order *structs.ImageOrder) (*structs.ImageWork, error) {
			return c.images.Order(ctx, order)
		})
	rpc.Unary(s, structs.MethodNodeTreat, rpc.FromServers,
		func(ctx context.Context, _ rpc.Peer, order *structs.DeviceTreat) (*structs.DeviceTreated, error) {
			return &structs.DeviceTreated{}, c.devices.Treat(ctx, order)
		})
}

func callerOf(peer rpc.Peer) service.Caller {
	return service.Caller{Role: string(peer.Role), ID: peer.ID}
}

// SessionOver opens sessions with servers over connections of pool.
func SessionOver(pool *rpc.Pool) session.Opener {
	return func(ctx context.Context, addr string) (session.Stream, error) {
		target := rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}}
		return openStream[structs.SessionUp, structs.SessionDown](ctx, pool, target, structs.MethodNodeSession)
	}
}

// SecretsOver asks servers for secrets over connections of pool. Whoever answers has to
// prove that it is a server.
func SecretsOver(pool *rpc.Pool) secrets.Ask {
	return func(ctx context.Context, addr, allocID string) (*structs.SecretsReply, error) {
		conn, err := pool.Conn(rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}})
		if err != nil {
			return nil, err
		}
		return rpc.Call[structs.SecretsRequest, structs.SecretsReply](ctx, conn, structs.MethodServerSecrets, &structs.SecretsRequest{AllocID: allocID})
	}
}

// CodeOver asks servers for the code of allocations over connections of pool. Whoever
// answers has to prove that it is a server. A source lives until its context ends, or it
// is closed.
func CodeOver(pool *rpc.Pool) func(ctx context.Context, addr, allocID string) (*codestore.Source, error) {
	return func(ctx context.Context, addr, allocID string) (*codestore.Source, error) {
		target := rpc.Target{Addr: addr, Expect: auth.Expect{Role: auth.RoleServer}}
		stream, err := openStream[structs.CodeAsk, structs.CodePart](ctx, pool, target, structs.MethodServerCode)
		if err != nil {
			return nil, err
		}
		return codestore.NewSource(stream, structs.CodeAsk{AllocID: allocID}), nil
	}
}

// AskCodeOver asks as CodeOver does, for a node.
func AskCodeOver(pool *rpc.Pool) code.Ask {
	ask := CodeOver(pool)
	return func(ctx context.Context, addr, allocID string) (code.Source, error) {
		source, err := ask(ctx, addr, allocID)
		if err != nil {
			return nil, err // and no source that is one of nothing
		}
		return source, nil
	}
}

// ExecOver opens exec streams to other nodes over connections of pool. The
// node has to prove its id.
func ExecOver(pool *rpc.Pool) service.ExecOpener {
	return func(ctx context.Context, nodeID, rpcAddr string) (service.ExecPeer, error) {
		target := rpc.Target{Addr: rpcAddr, Expect: auth.Expect{ID: nodeID}}
		return openStream[structs.ExecUp, structs.ExecDown](ctx, pool, target, structs.MethodAllocExec)
	}
}

// openStream opens a stream that is closed when ctx ends.
func openStream[Up, Down any](ctx context.Context, pool *rpc.Pool, target rpc.Target, method string) (*rpc.ClientStream[Up, Down], error) {
	conn, err := pool.Conn(target)
	if err != nil {
		return nil, err
	}
	stream, err := rpc.OpenStream[Up, Down](ctx, conn, method)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, stream.Close)
	return stream, nil
}
