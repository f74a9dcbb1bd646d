package consensus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// connectionsKept is how many idle connections to each server are kept: one
// for entries, one for heartbeats, one for hints.
const connectionsKept = 3

// Node is one server's part in the replicated log. Its methods may be called
// from any goroutine.
type Node struct {
	config  Config
	raft    *raft.Raft
	machine *machine
	storage *storage
	gate    *gate
	guard   *guard

	changes chan struct{} // holds the one token of configuration changes
	places  chan struct{} // tokens of proposals in flight
	reads   readBatches
	// restoring is held from before the leader's own state is another until the
	// log says so. Raft's commit index does not count it until then: a follower
	// would answer from the old state after the leader did from the new one.
	restoring chan struct{} // its one token
	leading   leading
	diskFull  atomic.Bool
	freeBytes atomic.Uint64 // of the directory when it was last looked at
	lastLed   atomic.Int64  // when this server was last seen to lead, in nanoseconds since 1970

	handingOver atomic.Bool
	hints       hints

	ops     operations
	closing chan struct{}  // closed when Shutdown begins
	stopped chan struct{}  // closed when raft has ended
	tasks   sync.WaitGroup // goroutines of the node itself

	shutdown struct {
		sync.Once
		err error
	}
}

// Open starts a server on its data directory: it verifies the stored state,
// restores the newest snapshot into the FSM, and joins the traffic of its
// cluster. A new server waits until Bootstrap is called here or another server
// adds it.
func Open(config Config) (*Node, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	guard := newGuard(config)
	store, err := openStorage(config, guard)
	if err != nil {
		return nil, withOthers(config, err)
	}
	config.ID = store.identity.ServerID
	n := &Node{
		restoring: make(chan struct{}, 1),
		config:    config,
		storage:   store,
		guard:     guard,
		machine:   &machine{fsm: config.FSM},
		changes:   make(chan struct{}, 1),
		places:    make(chan struct{}, maxProposalsInFlight),
		closing:   make(chan struct{}),
		stopped:   make(chan struct{}),
	}
	if err := n.start(); err != nil {
		return nil, errors.Join(err, store.close())
	}
	return n, nil
}

// start brings up transport, raft and the node's own goroutines.
func (n *Node) start() error {
	n.reads.init()
	n.leading.init()
	n.hints.init()
	rc, err := n.config.raftConfig(n.leading.heard)
	if err != nil {
		return err
	}
	if n.gate, err = newGate(n.config.transport(), n.hints.soon); err != nil {
		return err
	}
	n.machine.onApplied = n.hints.soon
	n.machine.onRefused = func(err error) {
		n.guard.fail(exitState, "a snapshot cannot be restored", logkey.Error, err)
	}
	n.raft, err = n.newRaft(rc)
	if err != nil {
		n.gate.cut()
		return err
	}
	n.machine.countLeaders(n.Term())
	serves := n.serves
	n.gate.serves.Store(&serves)
	abstains := n.abstains
	n.gate.abstains.Store(&abstains)
	n.guard.arm(n.gate.cut)
	n.tasks.Go(n.followLeadership)
	n.tasks.Go(n.answerReads)
	n.tasks.Go(n.watchHealth)
	n.tasks.Go(n.sendHints)
	if n.isOnlyVoter() {
		n.seekElection()
	}
	return nil
}

// newRaft starts raft, which panics on some stored state that it cannot read.
func (n *Node) newRaft(rc *raft.Config) (r *raft.Raft, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			err = fmt.Errorf("start raft: %v", failure)
		}
	}()
	r, err = raft.NewRaft(rc, n.machine, n.storage.log, guardedVote{n.storage.vote, n.guard}, n.storage.snapshots, n.gate)
	if err != nil {
		return nil, fmt.Errorf("start raft: %w", errors.Join(err, n.machine.refused))
	}
	return r, nil
}

// transport returns what carries raft's calls.
func (c Config) transport() raft.Transport {
	if c.Transport != nil {
		return c.Transport
	}
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream:          advertised{c.Stream, c.Advertise},
		MaxPool:         connectionsKept,
		MaxRPCsInFlight: 1, // pipelining can leave a follower without entries for ever
		Timeout:         c.Timings.IO,
		Logger:          newHclog(c.Log, "raft-net"),
	})
}

// advertised is a stream layer that names the address under which others reach
// it, which may differ from the one it listens on.
type advertised struct {
	raft.StreamLayer
	addr string
}

// Addr implements net.Listener.
func (a advertised) Addr() net.Addr {
	if a.addr == "" {
		return a.StreamLayer.Addr()
	}
	return advertisedAddr(a.addr)
}

type advertisedAddr string

func (advertisedAddr) Network() string  { return "tcp" }
func (a advertisedAddr) String() string { return string(a) }

// ID is this server's id.
func (n *Node) ID() string { return n.config.ID }

// Term is the current term.
func (n *Node) Term() uint64 { return n.raft.CurrentTerm() }

// LeaderID is the id of the leader that this server knows, empty when none.
func (n *Node) LeaderID() string {
	_, id := n.leader()
	return string(id)
}

// LeaderAddr is the address of the leader that this server knows, empty when
// none.
func (n *Node) LeaderAddr() string {
	addr, _ := n.leader()
	return string(addr)
}

// leader is the leader that this server knows. A candidate knows none, but raft
// 1.8.0 may tell one: a heartbeat of the leader that hands over, between its
// TimeoutNow and the new term, does not end the candidacy (see appendEntries and
// candidateFromLeadershipTransfer there), and its sender stays the leader that
// LeaderWithID names until somebody is elected.
func (n *Node) leader() (raft.ServerAddress, raft.ServerID) {
	addr, id := n.raft.LeaderWithID()
	if n.raft.State() == raft.Candidate {
		return "", ""
	}
	return addr, id
}

// IsLeader reports whether this server believes to lead. It may be wrong for as
// long as a lease: only Propose and ReadIndex know.
func (n *Node) IsLeader() bool { return n.raft.State() == raft.Leader }

// serves reports whether this server leads in a term, and another is a member.
func (n *Node) serves(id raft.ServerID, term uint64) bool {
	return n.IsLeader() && n.Term() == term &&
		slices.ContainsFunc(n.Peers(), func(peer Peer) bool { return peer.ID == string(id) })
}

func (n *Node) notLeader() error {
	addr, id := n.leader()
	if string(id) == n.config.ID {
		return &NotLeaderError{} // it just lost or is just gaining leadership
	}
	return &NotLeaderError{LeaderID: string(id), LeaderAddr: string(addr)}
}

// Shutdown ends this server's part: no new calls are taken, those in flight
// get their answers, then everything is closed. With transfer, a leader first
// hands leadership to the most up-to-date follower; that is the only place
// where it is ever handed over, because raft may refuse all writes after a
// transfer that did not end the leader's process. ctx bounds the waiting; the
// node is closed in any case. Further calls return the first one's error.
func (n *Node) Shutdown(ctx context.Context, transfer bool) error {
	n.shutdown.Do(func() { n.shutdown.err = n.close(ctx, transfer) })
	return n.shutdown.err
}

func (n *Node) close(ctx context.Context, transfer bool) error {
	n.ops.close()
	close(n.closing)
	if transfer && n.IsLeader() && !n.isOnlyVoter() {
		if err := waitFor(ctx, n.raft.LeadershipTransfer().Error); err != nil {
			n.config.Log.Warn("leadership was not handed over", logkey.Error, err)
		}
	}
	// Raft answers calls in flight as long as it runs, and never after.
	if !n.guard.hasFailed() {
		n.ops.wait(ctx)
	}
	n.guard.disarm()
	ended := make(chan error, 1)
	go func() { ended <- n.raft.Shutdown().Error() }()
	var err error
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = fmt.Errorf("wait for raft to end: %w", ctx.Err())
	}
	close(n.stopped)
	n.gate.cut()
	if err != nil {
		return err // raft may still be writing: leave its files open and locked
	}
	n.tasks.Wait()
	return n.storage.close()
}

// waitFor runs do, which cannot be interrupted, and stops waiting when ctx
// ends.
func waitFor(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// operations counts the calls that wait for raft, so that Shutdown can let them
// finish.
type operations struct {
	mu struct {
		sync.Mutex
		closed bool
		count  int
		idle   chan struct{} // closed when count falls to 0 after close
	}
}

// begin admits one call, or answers ErrShutdown.
func (o *operations) begin() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.mu.closed {
		return ErrShutdown
	}
	o.mu.count++
	return nil
}

// end must follow each begin that succeeded.
func (o *operations) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.count--
	if o.mu.closed && o.mu.count == 0 {
		close(o.mu.idle)
	}
}

func (o *operations) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.mu.closed = true
	o.mu.idle = make(chan struct{})
	if o.mu.count == 0 {
		close(o.mu.idle)
	}
}

func (o *operations) wait(ctx context.Context) {
	select {
	case <-o.mu.idle:
	case <-ctx.Done():
	}
}
