package agent

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/audit"
	"nomadlike/nomadlike/audit/journal"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/codestore"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

const (
	codeDir        = "code"           // in the data directory of servers
	codePatience   = 10 * time.Minute // until another server has a whole tree
	codeLook       = 30 * time.Second // between looks for what is lacking here, where nothing changed
	codeRetry      = 2 * time.Second  // after nobody could be fetched from
	codeSweepFirst = 5 * time.Minute  // after the start
	codeSweepEvery = time.Hour
)

// codeKeeper has the code that travels with jobs on this server's disk: it takes what
// people send, has more than half of the servers keep it before that is acknowledged,
// fetches what it lacks from the others, and answers the nodes whose allocations need
// it. Its methods may be called from any goroutine.
type codeKeeper struct {
	disk     *codestore.Store
	store    *state.Store
	proposer *atomic.Pointer[server.Server]
	pool     *rpc.Pool
	servers  *servers
	journal  *journal.Journal
	life     *lifecycle
	log      *slog.Logger

	mu struct {
		sync.Mutex
		fetching map[structs.CodeRef]*fetching
	}
}

// fetching is one fetch that is under way, for all who wait for it.
type fetching struct {
	done chan struct{} // closed at its end
	err  error         // read after done
}

// openCode opens the code on a server's disk, and has it follow the log.
func openCode(a *Agent) (*codeKeeper, error) {
	disk, err := codestore.New(codestore.Config{
		Dir: filepath.Join(a.config.DataDir, codeDir), Server: a.config.Name, Log: a.log, FreeBytes: a.options.freeBytes,
	})
	if err != nil {
		return nil, err
	}
	k := &codeKeeper{
		disk: disk, store: a.store, proposer: &a.proposer, pool: a.pool, servers: a.servers, journal: a.journal, life: a.life, log: a.log,
	}
	k.mu.fetching = make(map[structs.CodeRef]*fetching)
	k.register(a.rpc)
	k.life.follow(k.follow)
	k.life.follow(k.sweepNowAndThen)
	return k, nil
}

// register declares how nodes and other servers get code.
func (k *codeKeeper) register(r *rpc.Server) {
	rpc.Stream(r, structs.MethodServerCode, rpc.FromAgents,
		func(ctx context.Context, peer rpc.Peer, stream *rpc.ServerStream[structs.CodeAsk, structs.CodePart]) error {
			ask, err := stream.Recv()
			if err != nil {
				return err
			}
			ref, err := k.mayRead(ctx, peer, ask)
			switch {
			case err != nil:
				return err
			case ref.Digest == "":
				return k.disk.ServeProject(ref.Project, stream)
			}
			return k.disk.Serve(ref, stream)
		})
	rpc.Unary(r, structs.MethodServerTakeCode, rpc.FromServers,
		func(ctx context.Context, peer rpc.Peer, take *structs.CodeTake) (*structs.CodeTaken, error) {
			if k.servers.shuns(peer.Identity) {
				return nil, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
			}
			for _, other := range k.servers.others() {
				if other.ID == peer.ID {
					return &structs.CodeTaken{}, k.fetch(ctx, take.Tree, []server.Agent{other})
				}
			}
			return nil, structs.NewError(structs.CodeUnavailable, "code.lacking")
		})
}

// mayRead judges who asks for code: a node gets that of an allocation of its own, other
// servers get all. They name homes, and what is returned is at its home, too.
func (k *codeKeeper) mayRead(ctx context.Context, peer rpc.Peer, ask *structs.CodeAsk) (structs.CodeRef, error) {
	if peer.Role == auth.RoleServer {
		if k.servers.shuns(peer.Identity) {
			return structs.CodeRef{}, structs.NewError(structs.CodeForbidden, "agent.server_is_out")
		}
		return ask.Tree, nil
	}
	snapshot, err := k.proposer.Load().Consistent(ctx)
	if err != nil {
		return structs.CodeRef{}, err
	}
	ref, err := codeOf(snapshot, peer.ID, ask.AllocID)
	k.record(peer.ID, ask.AllocID, ref, err)
	return atHome(snapshot, ref), err
}

// atHome is a tree of a project by where it lies on disks.
func atHome(snapshot *state.Snapshot, ref structs.CodeRef) structs.CodeRef {
	ref.Project = codestore.Home(ref.Project, snapshot.CodeSince(ref.Project))
	return ref
}

// home is where the code of a project lies, as this server knows it.
func (k *codeKeeper) home(project string) string {
	return codestore.Home(project, k.store.Snapshot().CodeSince(project))
}

// codeOf is the code that a node may read for an allocation: one that is the node's,
// and that has not ended. A node that asks for another is told the same as for one that
// is not there. Pure.
func codeOf(snapshot *state.Snapshot, nodeID, allocID string) (structs.CodeRef, error) {
	if alloc := snapshot.Alloc(allocID); alloc != nil && alloc.OccupiesNode() {
		view, ok := snapshot.Job(alloc.JobID)
		object := auth.Object{Kind: auth.ObjectJob, Project: alloc.Project, Node: alloc.NodeID}
		if ok && view.Job.Tree() != "" && auth.Allowed(auth.Principal{Kind: auth.KindNode, ID: nodeID}, auth.VerbRead, object).Allow {
			return structs.CodeRef{Project: view.Job.Project, Digest: view.Job.Tree()}, nil
		}
	}
	return structs.CodeRef{}, structs.NewError(structs.CodeForbidden, "agent.code_not_yours", "alloc", allocID)
}

// record puts into the audit record that a node was given code, or was not.
func (k *codeKeeper) record(nodeID, allocID string, ref structs.CodeRef, err error) {
	record := audit.Record{
		Actor: audit.Actor{Kind: string(auth.KindNode), User: nodeID}, Action: audit.ActionCodeUse,
		Object:  audit.Object{Kind: "code", ID: ref.Digest, Part: allocID, Project: ref.Project},
		Outcome: audit.Allowed,
	}
	if failure := new(structs.Error); errors.As(err, &failure) {
		record.Outcome, record.Reason = audit.Refused, failure.ID
	}
	if err := k.journal.Append(record); err != nil {
		k.log.Error("a delivery of code is not in the audit record", logkey.AllocID, allocID, logkey.Error, err)
	}
}

// source asks another server for code.
func (k *codeKeeper) source(ctx context.Context, other server.Agent, ask structs.CodeAsk) (*codestore.Source, error) {
	conn, err := k.pool.Conn(rpc.Target{Addr: other.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: other.ID}})
	if err != nil {
		return nil, err
	}
	stream, err := rpc.OpenStream[structs.CodeAsk, structs.CodePart](ctx, conn, structs.MethodServerCode)
	if err != nil {
		return nil, err
	}
	return codestore.NewSource(stream, ask), nil
}

// fetch brings a tree to this disk, from the first of some servers that has it. Who
// asks for one that is being fetched waits for that.
func (k *codeKeeper) fetch(ctx context.Context, ref structs.CodeRef, from []server.Agent) error {
	for {
		if k.disk.Has(ref) {
			return nil
		}
		k.mu.Lock()
		other := k.mu.fetching[ref]
		if other == nil {
			break
		}
		k.mu.Unlock()
		select {
		case <-other.done:
			if other.err != nil {
				return other.err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	own := &fetching{done: make(chan struct{})}
	k.mu.fetching[ref] = own
	k.mu.Unlock()
	own.err = k.fetchFrom(ctx, ref, from)
	k.mu.Lock()
	delete(k.mu.fetching, ref)
	k.mu.Unlock()
	close(own.done)
	return own.err
}

func (k *codeKeeper) fetchFrom(ctx context.Context, ref structs.CodeRef, from []server.Agent) error {
	ctx, cancel := context.WithTimeout(ctx, codePatience)
	defer cancel()
	err := error(structs.NewError(structs.CodeUnavailable, "code.lacking"))
	for _, other := range from {
		var source *codestore.Source
		if source, err = k.source(ctx, other, structs.CodeAsk{Tree: ref}); err != nil {
			continue
		}
		err = k.disk.Fetch(ctx, ref, source)
		source.Close()
		if err == nil {
			k.log.Debug("code was fetched from another server", logkey.ServerID, other.ID, "tree", ref.ID())
			return nil
		}
	}
	return err
}

// Ensure has a tree on this disk that the log knows.
func (k *codeKeeper) Ensure(ctx context.Context, ref structs.CodeRef) error {
	return k.fetch(ctx, atHome(k.store.Snapshot(), ref), k.servers.others())
}

// Scratch makes a directory on this server's disk for what somebody sends of a project,
// of so many bytes at most. The function that it returns removes it.
func (k *codeKeeper) Scratch(project string, bytes int64) (string, func(), error) {
	return k.disk.Scratch(k.home(project), bytes)
}

// Take keeps a tree that somebody sent, here and on more than half of the servers.
func (k *codeKeeper) Take(ctx context.Context, project string, data []byte) (*structs.CodePut, error) {
	manifest, err := tree.Decode(data)
	if err != nil {
		return nil, err
	}
	since := k.store.Snapshot().CodeSince(project)
	home := codestore.Home(project, since)
	if err := k.gather(ctx, home, manifest.Chunks()); err != nil {
		return nil, err
	}
	digest, err := k.disk.Commit(home, data)
	if err != nil {
		return nil, err
	}
	made := structs.CodeTree{Project: project, Digest: string(digest), Files: manifest.Files(), Bytes: manifest.Bytes()}
	return &structs.CodePut{Tree: made, Since: since}, k.spread(ctx, structs.CodeRef{Project: home, Digest: made.Digest})
}

// gather fetches chunks of a home that were sent to other servers than this one: whoever stands
// in between may have asked any of them. What nobody has is told by the commit.
func (k *codeKeeper) gather(ctx context.Context, project string, chunks []tree.Chunk) error {
	for _, other := range k.servers.others() {
		missing, err := k.disk.Missing(project, chunks)
		if err != nil || len(missing) == 0 {
			return err
		}
		source, err := k.source(ctx, other, structs.CodeAsk{Tree: structs.CodeRef{Project: project}})
		if err == nil {
			err = k.disk.FetchChunks(project, chunks, source)
			source.Close()
		}
		if err != nil {
			k.log.Debug("another server was not asked for chunks", logkey.ServerID, other.ID, logkey.Error, err)
		}
	}
	return nil
}

// spread returns when more than half of the servers have a tree that is here. The
// others are having it fetched still.
func (k *codeKeeper) spread(ctx context.Context, ref structs.CodeRef) error {
	peers := k.servers.raft.Load().Peers()
	answers := make(chan error, len(peers))
	asked := 0
	for _, peer := range peers {
		if peer.ID == k.servers.self {
			continue
		}
		asked++
		k.life.run(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), codePatience)
			defer cancel()
			stop := context.AfterFunc(k.stopped(ctx), cancel)
			defer stop()
			conn, err := k.pool.Conn(rpc.Target{Addr: peer.Addr, Expect: auth.Expect{Role: auth.RoleServer, ID: peer.ID}})
			if err == nil {
				_, err = rpc.Call[structs.CodeTake, structs.CodeTaken](ctx, conn, structs.MethodServerTakeCode, &structs.CodeTake{Tree: ref})
			}
			answers <- err
		})
	}
	have, failure := 1, error(nil)
	for ; have <= len(peers)/2 && asked > 0; asked-- {
		select {
		case err := <-answers:
			if err == nil {
				have++
			} else {
				failure = cmp.Or(failure, err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if have <= len(peers)/2 {
		return structs.NewError(structs.CodeUnavailable, "agent.code_servers", "have", have, "servers", len(peers)).Because(failure)
	}
	return nil
}

// stopped is a context that ends when the agent stops, or with ctx.
func (k *codeKeeper) stopped(ctx context.Context) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-k.life.stopping:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// Known reports whether the log and this disk have a tree.
func (k *codeKeeper) Known(ref structs.CodeRef) bool {
	snapshot := k.store.Snapshot()
	return snapshot.Code(ref) != nil && k.disk.Has(atHome(snapshot, ref))
}

// Missing lists the chunks that are not on this disk.
func (k *codeKeeper) Missing(project string, chunks []tree.Chunk) ([]tree.Digest, error) {
	return k.disk.Missing(k.home(project), chunks)
}

// Put keeps chunks on this disk.
func (k *codeKeeper) Put(project string, pieces []codestore.Piece) (fresh int, err error) {
	return k.disk.Put(k.home(project), pieces)
}

// Manifest returns the manifest of a tree that the log knows.
func (k *codeKeeper) Manifest(ctx context.Context, ref structs.CodeRef) ([]byte, error) {
	if err := k.Ensure(ctx, ref); err != nil {
		return nil, err
	}
	return k.disk.Manifest(atHome(k.store.Snapshot(), ref))
}

// Chunk opens a chunk of a tree that the log knows. Reading to the end verifies it.
func (k *codeKeeper) Chunk(ctx context.Context, ref structs.CodeRef, chunk tree.Chunk) (io.ReadCloser, error) {
	from, err := k.disk.Open(atHome(k.store.Snapshot(), ref), chunk)
	if !errors.Is(err, codestore.ErrLacking) {
		return from, err
	}
	if err := k.Ensure(ctx, ref); err != nil {
		return nil, err
	}
	return k.disk.Open(atHome(k.store.Snapshot(), ref), chunk)
}

// follow fetches what the log knows and this disk lacks: of a server that was away, or
// joined later, or whose disk was found to have changed bytes.
func (k *codeKeeper) follow(ctx context.Context) {
	for {
		snapshot := k.store.Snapshot()
		wait := codeLook
		for made := range snapshot.AllCode() {
			if ctx.Err() != nil {
				return
			}
			if k.disk.Has(atHome(snapshot, made.Ref())) {
				continue
			}
			if err := k.Ensure(ctx, made.Ref()); err != nil {
				k.log.Debug("code is not fetched yet", "tree", made.Ref().ID(), logkey.Error, err)
				wait = codeRetry
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-snapshot.WatchAllCode():
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

func (k *codeKeeper) sweepNowAndThen(ctx context.Context) {
	timer := time.NewTimer(codeSweepFirst)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		k.sweep(ctx, structs.CodeGrace.Std())
		timer.Reset(codeSweepEvery)
	}
}

// sweep removes from this disk what the log does not know any more. A server that does
// not know the newest state removes nothing.
func (k *codeKeeper) sweep(ctx context.Context, grace time.Duration) {
	snapshot, err := k.proposer.Load().Consistent(ctx)
	if err != nil {
		k.log.Debug("code is not swept", logkey.Error, err)
		return
	}
	known := func(ref structs.CodeRef) bool {
		project, since, problem := codestore.OfHome(ref.Project)
		return problem == "" && since == snapshot.CodeSince(project) && snapshot.Code(structs.CodeRef{Project: project, Digest: ref.Digest}) != nil
	}
	files, bytes, err := k.disk.Sweep(ctx, known, grace)
	if err != nil {
		k.log.Warn("code was not swept", logkey.Error, err)
	}
	if files > 0 {
		k.log.Info("code that no job names was removed", "files", files, "bytes", bytes)
	}
}
