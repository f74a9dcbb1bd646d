package consensus

import (
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
)

// errCut is returned for calls through a gate that was cut.
var errCut = errors.New("transport is cut")

// gate is the transport as raft sees it. It can be cut for good in one step,
// never pipelines (raft's pipeline can hang for ever), sends entries to nobody
// who answers nothing, and notes what each follower answered.
type gate struct {
	inner   raft.Transport
	preVote raft.WithPreVote
	isCut   atomic.Bool
	idle    func()        // called when a call other than a heartbeat has ended; must not block
	calls   atomic.Uint64 // numbers the calls that followers acknowledge, in the order of their beginning

	// serves reports whether this server still leads, in a term, a cluster of
	// which another is a member; nil until raft runs.
	serves atomic.Pointer[func(id raft.ServerID, term uint64) bool]
	// abstains reports whether this server asks for no votes; nil until raft runs.
	abstains atomic.Pointer[func() bool]

	mu struct {
		sync.Mutex
		followers map[raft.ServerID]*follower
	}
}

var (
	_ raft.Transport   = (*gate)(nil)
	_ raft.WithPreVote = (*gate)(nil)
	_ raft.WithClose   = (*gate)(nil)
)

// follower is what the leader's calls tell about one other server, in one term.
type follower struct {
	term        uint64        // of ours in which the rest holds
	contact     time.Time     // last answer of any kind
	confirmed   uint64        // newest call after whose beginning it still followed us
	match       uint64        // last entry known to be on its disk
	back        chan struct{} // closed, and replaced, by an answer after a failure
	appending   time.Time     // when the entries being sent now were handed to the transport; zero without any
	inFlight    int           // entries or snapshots being sent now
	lastSend    time.Time     // last time such a call began or ended
	lastError   string        // of the last call, empty when it succeeded
	roundTrip   time.Duration
	commitKnown uint64 // highest commit index sent to it
}

func newGate(inner raft.Transport, idle func()) (*gate, error) {
	preVote, ok := inner.(raft.WithPreVote)
	if !ok {
		return nil, errors.New("open consensus: transport knows no pre-vote")
	}
	g := &gate{inner: inner, preVote: preVote, idle: idle}
	g.mu.followers = make(map[raft.ServerID]*follower)
	return g, nil
}

// cut ends all traffic in both directions, for good.
func (g *gate) cut() {
	if g.isCut.Swap(true) {
		return
	}
	if closer, ok := g.inner.(raft.WithClose); ok {
		closer.Close()
	}
}

// Close implements raft.WithClose.
func (g *gate) Close() error {
	g.cut()
	return nil
}

// Consumer implements raft.Transport.
func (g *gate) Consumer() <-chan raft.RPC { return g.inner.Consumer() }

// LocalAddr implements raft.Transport.
func (g *gate) LocalAddr() raft.ServerAddress { return g.inner.LocalAddr() }

// EncodePeer implements raft.Transport.
func (g *gate) EncodePeer(id raft.ServerID, addr raft.ServerAddress) []byte {
	return g.inner.EncodePeer(id, addr)
}

// DecodePeer implements raft.Transport.
func (g *gate) DecodePeer(data []byte) raft.ServerAddress { return g.inner.DecodePeer(data) }

// SetHeartbeatHandler implements raft.Transport. Heartbeats of the leader are
// not answered any more once the gate is cut: their path leads past the disk.
func (g *gate) SetHeartbeatHandler(handle func(raft.RPC)) {
	g.inner.SetHeartbeatHandler(func(rpc raft.RPC) {
		if g.isCut.Load() {
			rpc.Respond(nil, errCut)
			return
		}
		handle(rpc)
	})
}

// AppendEntriesPipeline implements raft.Transport and refuses.
func (g *gate) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

// AppendEntries implements raft.Transport.
func (g *gate) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	if g.isCut.Load() {
		return errCut
	}
	// A heartbeat carries nothing but the term.
	heartbeat := req.PrevLogEntry == 0 && len(req.Entries) == 0 && req.LeaderCommitIndex == 0
	if !heartbeat {
		g.awaitAnswer(id, req.Term)
	}
	number, started := g.calls.Add(1), time.Now()
	if !heartbeat {
		g.note(id, req.Term, func(f *follower) {
			f.inFlight++
			f.lastSend, f.appending = started, started
			f.commitKnown = max(f.commitKnown, req.LeaderCommitIndex)
		})
	}
	err := g.inner.AppendEntries(id, target, req, resp)
	g.note(id, req.Term, func(f *follower) {
		f.answered(started, err)
		if err == nil && resp.Term <= req.Term {
			f.confirmed = max(f.confirmed, number)
		}
		if heartbeat {
			return
		}
		f.inFlight--
		f.lastSend, f.appending = time.Now(), time.Time{}
		if err == nil && resp.Success {
			f.match = max(f.match, req.PrevLogEntry+uint64(len(req.Entries)))
		}
	})
	if !heartbeat {
		g.idle()
	}
	return err
}

// InstallSnapshot implements raft.Transport.
func (g *gate) InstallSnapshot(id raft.ServerID, target raft.ServerAddress, req *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, data io.Reader) error {
	if g.isCut.Load() {
		return errCut
	}
	g.awaitAnswer(id, req.Term)
	started := time.Now()
	g.note(id, req.Term, func(f *follower) {
		f.inFlight++
		f.lastSend = started
	})
	err := g.inner.InstallSnapshot(id, target, req, resp, data)
	g.note(id, req.Term, func(f *follower) {
		f.answered(started, err)
		f.inFlight--
		f.lastSend = time.Now()
		if err == nil && resp.Success {
			f.match = max(f.match, req.LastLogIndex)
		}
	})
	return err
}

// answerEvery is how often a call that is held back looks whether it is still
// wanted.
const answerEvery = 50 * time.Millisecond

// awaitAnswer holds a call back for as long as the last call to a follower has
// failed: until a heartbeat gets through, or this server leads no more. Raft
// would try again and again, wait twice as long after each failure, and so leave
// a follower that has long come back, and answers heartbeats, without entries
// for up to ten seconds.
func (g *gate) awaitAnswer(id raft.ServerID, term uint64) {
	for !g.isCut.Load() {
		serves := g.serves.Load()
		back := g.silence(id, term)
		if back == nil || serves == nil || !(*serves)(id, term) {
			return
		}
		timer := time.NewTimer(answerEvery)
		select {
		case <-back:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// silence returns what is closed when a follower answers whose last call failed,
// nil when that succeeded or there was none.
func (g *gate) silence(id raft.ServerID, term uint64) <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.mu.followers[id]
	if f == nil || f.term != term || f.lastError == "" {
		return nil
	}
	return f.back
}

// RequestVote implements raft.Transport.
func (g *gate) RequestVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	if g.isCut.Load() {
		return errCut
	}
	// Whom the leader named to follow it stands, with room or without: by now the
	// others know its term, and without it nobody would lead for a while. It hands
	// over in turn to whoever has room.
	if !req.LeadershipTransfer && g.withholds() {
		return errAbstains
	}
	return g.inner.RequestVote(id, target, req, resp)
}

// RequestPreVote implements raft.WithPreVote.
func (g *gate) RequestPreVote(id raft.ServerID, target raft.ServerAddress, req *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	if g.isCut.Load() {
		return errCut
	}
	if g.withholds() {
		return errAbstains
	}
	return g.preVote.RequestPreVote(id, target, req, resp)
}

func (g *gate) withholds() bool {
	abstains := g.abstains.Load()
	return abstains != nil && (*abstains)()
}

// TimeoutNow implements raft.Transport.
func (g *gate) TimeoutNow(id raft.ServerID, target raft.ServerAddress, req *raft.TimeoutNowRequest, resp *raft.TimeoutNowResponse) error {
	if g.isCut.Load() {
		return errCut
	}
	return g.inner.TimeoutNow(id, target, req, resp)
}

// note updates what is known about a follower; a call of an older term of ours
// says nothing any more.
func (g *gate) note(id raft.ServerID, term uint64, update func(*follower)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.mu.followers[id]
	if f == nil || f.term < term {
		f = &follower{term: term, back: make(chan struct{})}
		g.mu.followers[id] = f
	}
	if f.term == term {
		update(f)
	}
}

func (f *follower) answered(started time.Time, err error) {
	if err != nil {
		f.lastError = err.Error()
		return
	}
	f.contact = time.Now()
	f.roundTrip = f.contact.Sub(started)
	if f.lastError != "" {
		f.lastError = ""
		close(f.back)
		f.back = make(chan struct{})
	}
}

// followersAt returns a copy of what is known about each follower in term.
func (g *gate) followersAt(term uint64) map[raft.ServerID]follower {
	g.mu.Lock()
	defer g.mu.Unlock()
	known := make(map[raft.ServerID]follower, len(g.mu.followers))
	for id, f := range g.mu.followers {
		if f.term == term {
			known[id] = *f
		}
	}
	return known
}

// confirmedAfter counts the servers among ids that have acknowledged our term
// in a call begun after the given one.
func (g *gate) confirmedAfter(call, term uint64, ids []string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := 0
	for _, id := range ids {
		if f := g.mu.followers[raft.ServerID(id)]; f != nil && f.term == term && f.confirmed > call {
			count++
		}
	}
	return count
}

// forget drops a server that is no member any more.
func (g *gate) forget(id raft.ServerID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.mu.followers, id)
}
