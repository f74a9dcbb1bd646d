package agent

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Times and bounds of the work on outputs.
const (
	keepEvery   = 250 * time.Millisecond // looks for what is to be done
	keepAtOnce  = 8                      // versions that are made at once, by all nodes together
	keepAgain   = 10 * time.Second       // after a node could not; doubled each time
	keepAgainTo = 10 * time.Minute
	keepAskTime = 30 * time.Second // that one question may take
)

// keeper makes versions of what jobs wrote, while this server leads: the log says what
// is to be made, a node makes it, and the log is told. Each step may be repeated by
// whoever leads next.
type keeper struct {
	store    *state.Store
	leads    func() bool
	proposer *atomic.Pointer[server.Server]
	call     func(ctx context.Context, node *structs.Node, ask *structs.DataAsk) (*structs.DataReply, error)
	now      func() time.Time
	log      *slog.Logger

	changed <-chan struct{} // closed when there may be others; nil: nobody has looked
	mu      struct {
		sync.Mutex
		going map[string]bool    // by upload
		again map[string]waiting // those that failed
	}
	list []server.Taking // at the last look
}

type waiting struct {
	until time.Time
	after time.Duration
}

// openKeeper begins to make versions of what jobs wrote.
func openKeeper(a *Agent) {
	k := &keeper{
		store: a.store, leads: a.raft.IsLeader, proposer: &a.proposer, now: time.Now, log: a.log,
		call: callData(a.pool),
	}
	k.mu.going, k.mu.again = make(map[string]bool), make(map[string]waiting)
	a.life.follow(k.run)
}

func (k *keeper) run(ctx context.Context) {
	tick := time.NewTicker(keepEvery)
	defer tick.Stop()
	var making sync.WaitGroup
	defer making.Wait()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		k.look(ctx, making.Go)
	}
}

// look begins what is to be made and is not under way, by begin.
func (k *keeper) look(ctx context.Context, begin func(func())) {
	if !k.leads() {
		k.changed, k.list = nil, nil
		return
	}
	fresh := k.changed == nil
	select {
	case <-k.changed:
		fresh = true
	default:
	}
	if fresh {
		snapshot := k.store.Snapshot()
		k.changed, k.list = snapshot.WatchUploadingData(), server.Takings(snapshot)
		k.forget()
	}
	for i := range k.list {
		of, id := k.list[i].ID, k.list[i].UploadID
		if k.enter(id) {
			begin(func() { k.work(ctx, of, id) })
		}
	}
}

// forget drops what is known of versions that are not to be made any more.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for id := range k.mu.again {
		if !slices.ContainsFunc(k.list, func(one server.Taking) bool { return one.UploadID == id }) {
			delete(k.mu.again, id)
		}
	}
}

// enter reports whether something is to be begun now, and counts it as going.
func (k *keeper) enter(id string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.going[id] || len(k.mu.going) >= keepAtOnce || k.now().Before(k.mu.again[id].until) {
		return false
	}
	k.mu.going[id] = true
	return true
}

// leave notes what came of it: again is set where it is to be tried again.
func (k *keeper) leave(id string, again bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.mu.going, id)
	if !again {
		delete(k.mu.again, id)
		return
	}
	after := min(max(keepAgain, 2*k.mu.again[id].after), keepAgainTo)
	k.mu.again[id] = waiting{k.now().Add(after), after}
}

// work brings one version as far as it comes.
func (k *keeper) work(ctx context.Context, of structs.DataID, id string) {
	again := false
	defer func() { k.leave(id, again) }()
	for last := (*server.Taking)(nil); ctx.Err() == nil && k.leads(); {
		one, left := server.TakingOf(k.store.Snapshot(), of, id)
		if !left { // it is made, or given up
			if object := k.store.Snapshot().Data(of); last != nil && (object == nil || object.Upload(id) == nil) {
				k.clear(ctx, last)
			}
			return
		}
		last = &one
		done, err := k.step(ctx, &one)
		if err != nil {
			k.log.Warn("what a job wrote is not a version yet", "name", one.ID.Name, "version", one.Ask.Place.Version, logkey.Error, err)
			again = true
			return
		}
		if done {
			return
		}
	}
}

// step asks a node once, and tells the log when it is done, or cannot be.
func (k *keeper) step(ctx context.Context, one *server.Taking) (done bool, err error) {
	reply, node, err := k.ask(ctx, one)
	if cause, final := refusal(err); final {
		return k.giveUp(ctx, one, cause)
	}
	if err != nil || !reply.Done {
		return false, err
	}
	commit := structs.DataCommit{ID: one.ID, UploadID: one.UploadID, Digest: reply.Digest, Files: reply.Files, Bytes: reply.Bytes}
	_, _, err = k.proposer.Load().Submit(ctx, structs.CommandDataCommit, "", &commit)
	if cause, final := refusal(err); final { // the project's quota, for one; or the version was removed meanwhile
		return k.giveUp(ctx, one, cause)
	}
	if err == nil {
		k.clean(ctx, node, one)
	}
	return err == nil, err
}

// giveUp tells the log why a version will never be, and has what was made of it removed.
func (k *keeper) giveUp(ctx context.Context, one *server.Taking, cause *structs.Reason) (bool, error) {
	drop := structs.DataDrop{ID: one.ID, UploadID: one.UploadID, Cause: cause}
	if _, _, err := k.proposer.Load().Submit(ctx, structs.CommandDataDrop, "", &drop); err != nil && structs.CodeOf(err) != structs.CodeNotFound {
		return false, err
	}
	k.clear(ctx, one)
	return true, nil
}

// clear has nodes remove what they made for a version that will never be. What stays is
// swept.
func (k *keeper) clear(ctx context.Context, one *server.Taking) {
	for _, node := range one.Nodes[:min(len(one.Nodes), keepAtOnce)] {
		ask := structs.DataAsk{What: structs.DataAskClear, Place: one.Ask.Place, Upload: one.UploadID, End: true}
		if node.Speaks() < wire.ProtocolDataLeft {
			ask.What, ask.End = structs.DataAskAbort, false
		}
		k.tell(ctx, node, &ask)
	}
}

// ask asks the nodes that can make a version, until one answers.
func (k *keeper) ask(ctx context.Context, one *server.Taking) (*structs.DataReply, *structs.Node, error) {
	err := error(structs.NewError(structs.CodeUnavailable, "agent.data_storage_away", "storage", one.Ask.Place.Storage, "kind", one.ID.Kind))
	for _, node := range one.Nodes[:min(len(one.Nodes), keepAtOnce)] {
		asked, cancel := context.WithTimeout(ctx, keepAskTime)
		var reply *structs.DataReply
		reply, err = k.call(asked, node, &one.Ask)
		cancel()
		if _, final := refusal(err); err == nil || final || ctx.Err() != nil {
			return reply, node, err
		}
	}
	return nil, nil, err
}

// refusal is why something will never be, from an error that says so.
func refusal(err error) (*structs.Reason, bool) {
	var told *structs.Error
	if !errors.As(err, &told) {
		return nil, false
	}
	switch told.Code {
	case structs.CodeInvalid, structs.CodeNotFound, structs.CodeForbidden, structs.CodeTooLarge, structs.CodeConflict:
		return &structs.Reason{ID: told.ID, Params: told.Params}, true
	}
	return nil, false
}

// clean has a node remove what is left beside a version. What stays is swept in a week.
func (k *keeper) clean(ctx context.Context, node *structs.Node, one *server.Taking) {
	ask := one.Ask
	ask.What, ask.From = structs.DataAskAbort, nil
	k.tell(ctx, node, &ask)
}

func (k *keeper) tell(ctx context.Context, node *structs.Node, ask *structs.DataAsk) {
	if node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keepAskTime)
	defer cancel()
	if _, err := k.call(ctx, node, ask); err != nil {
		k.log.Debug("what is left of an output stays for a while", logkey.NodeID, node.ID, logkey.Error, err)
	}
}
