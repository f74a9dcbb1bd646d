package agent

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Times of the sweep of uploads that nobody goes on with.
const (
	leftEvery   = time.Hour
	leftFirst   = time.Minute // after a server began to lead
	leftAskTime = 30 * time.Second
)

// dataSweeper has nodes remove what uploads have left on their storages, while this server
// leads: a node lists what it finds, and the log says what of that nobody goes on with. A
// step that fails is taken again an hour later, by whoever leads then.
type dataSweeper struct {
	snapshot   func() *state.Snapshot
	consistent func(ctx context.Context) (*state.Snapshot, error)
	leads      func() bool
	call       func(ctx context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error)
	log        *slog.Logger
}

// openDataSweeper begins to sweep.
func openDataSweeper(a *Agent) {
	s := &dataSweeper{
		snapshot: a.store.Snapshot, consistent: a.server.Consistent, leads: a.raft.IsLeader, call: callData(a.pool), log: a.log,
	}
	a.life.follow(s.run)
}

// callData asks nodes about bytes of named data.
func callData(pool *rpc.Pool) func(ctx context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error) {
	return func(ctx context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error) {
		conn, err := pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
		if err != nil {
			return nil, err
		}
		return rpc.Call[structs.DataAsk, structs.DataReply](ctx, conn, structs.MethodNodeData, ask)
	}
}

func (s *dataSweeper) run(ctx context.Context) {
	tick := time.NewTicker(leftFirst)
	defer tick.Stop()
	var last time.Time
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if s.leads() && time.Since(last) >= leftEvery {
			s.sweep(ctx)
			last = time.Now()
		}
	}
}

// sweep looks at every storage once. A node of each is asked, another one each time.
func (s *dataSweeper) sweep(ctx context.Context) {
	for _, one := range server.SweptStorages(s.snapshot()) {
		if err := s.sweepOne(ctx, &one); err != nil && ctx.Err() == nil {
			s.log.Debug("a storage was not swept", "storage", one.Storage, "kind", one.Kind, logkey.Error, err)
		}
	}
}

func (s *dataSweeper) sweepOne(ctx context.Context, one *server.SweptStorage) error {
	drawn := make([]byte, 16)
	if _, err := rand.Read(drawn); err != nil {
		return err
	}
	node := one.Nodes[int(drawn[0])%len(one.Nodes)]
	place := structs.DataPlace{Kind: one.Kind, Storage: one.Storage}
	reply, err := s.ask(ctx, node, &structs.DataAsk{What: structs.DataAskLeft, Place: place, Upload: hex.EncodeToString(drawn)})
	if err != nil || len(reply.List) == 0 {
		return err
	}
	// What was found is judged by what the log has after that: who begins an upload tells
	// the log first.
	snapshot, err := s.consistent(ctx)
	if err != nil {
		return err
	}
	var ids []string
	for i := range reply.List {
		ids = append(ids, reply.List[i].ID)
	}
	for _, left := range server.LeftUploads(snapshot, ids) {
		if !s.leads() {
			return nil
		}
		if _, err := s.ask(ctx, node, &structs.DataAsk{What: structs.DataAskClear, Place: place, Upload: left.UploadID, End: left.Never}); err != nil {
			return err
		}
		s.log.Info("what was left of an upload was removed", "storage", one.Storage, "kind", one.Kind, "upload", left.UploadID, logkey.NodeID, node.ID)
	}
	return nil
}

// ask asks until what takes long is done.
func (s *dataSweeper) ask(ctx context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error) {
	for {
		asked, cancel := context.WithTimeout(ctx, leftAskTime)
		reply, err := s.call(asked, node, ask)
		cancel()
		if err != nil || reply.Done {
			return reply, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}
