package agent

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/history/store"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Times of the history of ended attempts.
const (
	historyDir   = "history" // in the data directory
	historyLook  = time.Second
	historyAgain = time.Minute // after nobody had what is missing
	historyAsk   = 10 * time.Second
)

// openHistory opens the history of a server.
func openHistory(c *config.Config, life *lifecycle, log *slog.Logger) (*store.Store, error) {
	s, err := store.Open(store.Config{
		Dir: filepath.Join(c.DataDir, historyDir), Keep: c.Server.History.Keep, SizeMax: c.Server.History.SizeMax, Now: time.Now, Log: log,
	})
	if err != nil {
		return nil, err
	}
	life.atStop(func(context.Context) { life.stopFailed("history", s.Close()) })
	life.follow(s.Run)
	return s, nil
}

// historyFiller fetches what is missing in a server's history from the others, and answers
// them.
type historyFiller struct {
	history  *store.Store
	pool     *rpc.Pool
	servers  *servers
	protocol func() int // the lowest of all servers
	log      *slog.Logger
}

// register declares what servers answer each other about the history.
func (f *historyFiller) register(s *rpc.Server) {
	rpc.Unary(s, structs.MethodServerHistory, rpc.FromServers, func(ctx context.Context, peer rpc.Peer, ask *structs.HistoryAsk) (*structs.HistoryPart, error) {
		if f.servers.shuns(peer.Identity) {
			return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
		}
		part, err := f.history.Part(ctx, ask.After, ask.Until)
		return &part, err
	})
}

// run closes gaps until ctx ends.
func (f *historyFiller) run(ctx context.Context) {
	timer := time.NewTimer(historyLook)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		next := historyLook
		for _, gap := range f.history.Gaps() {
			if f.protocol() < wire.ProtocolHistory {
				break // an older server would not know the question
			}
			if !f.fill(ctx, gap) {
				next = historyAgain
			}
		}
		timer.Reset(next)
	}
}

// fill closes a gap as far as others can, and reports whether all of it is closed.
func (f *historyFiller) fill(ctx context.Context, gap store.Span) bool {
	for _, other := range f.servers.others() {
		for gap.After < gap.Until {
			begun, after, rows, until, err := f.gather(ctx, other, gap)
			if err != nil {
				f.log.Debug("another server's history was not fetched", logkey.ServerID, other.ID, logkey.Error, err)
				break
			}
			if !begun {
				break // it has nothing of it
			}
			if err := f.history.Fill(after, until, rows); err != nil {
				f.log.Warn("rows of the history that another server has were not taken", logkey.ServerID, other.ID, logkey.Error, err)
				break
			}
			f.log.Info("rows of the history were fetched", logkey.ServerID, other.ID, "rows", len(rows), "after", after, "until", until)
			if after > gap.After {
				break // what is before it another one may have
			}
			gap.After = until
		}
	}
	return gap.After >= gap.Until
}

// gather asks a server for as many rows of a gap as one segment holds.
func (f *historyFiller) gather(ctx context.Context, other server.Agent, gap store.Span) (begun bool, after uint64, rows []structs.HistoryRow, until uint64, err error) {
	after, until = gap.After, gap.After
	for until < gap.Until && len(rows) < history.SegmentRowsMax {
		part, err := f.ask(ctx, other, &structs.HistoryAsk{After: until, Until: gap.Until})
		if err != nil {
			return false, 0, nil, 0, err
		}
		if part.Until <= part.After || begun && part.After > until {
			break
		}
		if !begun {
			begun, after = true, part.After
		}
		rows, until = append(rows, part.Rows...), part.Until
	}
	return begun, after, rows, until, nil
}

func (f *historyFiller) ask(ctx context.Context, other server.Agent, ask *structs.HistoryAsk) (*structs.HistoryPart, error) {
	ctx, cancel := context.WithTimeout(ctx, historyAsk)
	defer cancel()
	conn, err := f.pool.Conn(rpc.Target{Addr: other.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: other.ID}})
	if err != nil {
		return nil, err
	}
	return rpc.Call[structs.HistoryAsk, structs.HistoryPart](ctx, conn, structs.MethodServerHistory, ask)
}
