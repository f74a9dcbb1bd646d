package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Sequencer is one replicated log without raft, disks, clocks or goroutines: an
// oracle for simulations and for tests of packages that propose. What a real
// cluster does by accident, it does on request: acknowledgements get lost,
// proposals vanish or are applied twice, leaders change, servers lag, crash and
// come back from a snapshot.
//
// The same calls in the same order give the same outcome. Methods may be called
// from several goroutines; none of them waits.
type Sequencer struct {
	mu struct {
		sync.Mutex
		servers []*FakeNode
		leader  *FakeNode // nil while there is none
		term    uint64
		log     []fakeEntry // entries after base
		base    uint64      // index of the newest entry in snapshot
		state   []byte      // the snapshot
		fate    func(Proposal) Fate
	}
}

// fakeEntry is a log entry; nil stands for a leader's mark.
type fakeEntry struct{ command []byte }

// Proposal is what a fate is chosen for.
type Proposal struct {
	ServerID string
	Index    uint64 // that it will get if it is committed
	Command  []byte
}

// Fate is what becomes of one proposal.
type Fate int

// Fates.
const (
	FateCommit    Fate = iota // committed, applied, acknowledged
	FateLoseAck               // committed and applied; the caller gets ErrOutcomeUnknown
	FateDrop                  // lost with its leader; the caller gets ErrOutcomeUnknown
	FateDuplicate             // committed twice, as by a forwarder that retries; acknowledged once
	FateRefuse                // not taken; the caller gets *NotLeaderError
)

// NewSequencer makes a log without servers and without leader.
func NewSequencer() *Sequencer { return &Sequencer{} }

// SetFate sets who decides on each proposal; nil commits all. It is called
// without locks held, and may change the leader.
func (s *Sequencer) SetFate(choose func(Proposal) Fate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.fate = choose
}

// Add makes a server that applies to fsm, and brings it up to date. The first
// one leads.
func (s *Sequencer) Add(id string, fsm FSM) (*FakeNode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	node := &FakeNode{log: s, id: id, leadership: make(chan Leadership, 1)}
	s.mu.servers = append(s.mu.servers, node)
	if err := s.startLocked(node, fsm); err != nil {
		return nil, err
	}
	if len(s.mu.servers) == 1 {
		s.leadLocked(node)
	}
	return node, nil
}

// startLocked lets a server apply the snapshot and all that follows to fsm.
func (s *Sequencer) startLocked(node *FakeNode, fsm FSM) error {
	node.fsm, node.up, node.lags, node.applied = fsm, true, false, 0
	if s.mu.state != nil {
		if err := fsm.Restore(bytes.NewReader(s.mu.state)); err != nil {
			return fmt.Errorf("restore server %s: %w", node.id, err)
		}
		node.applied = s.mu.base
	}
	s.catchUpLocked(node, s.lastLocked())
	return nil
}

func (s *Sequencer) lastLocked() uint64 { return s.mu.base + uint64(len(s.mu.log)) }

// catchUpLocked applies entries up to index, and returns the answer to the last.
func (s *Sequencer) catchUpLocked(node *FakeNode, index uint64) any {
	var value any
	for node.applied < index {
		node.applied++
		value = nil
		if command := s.mu.log[node.applied-s.mu.base-1].command; command != nil {
			value = node.fsm.Apply(node.applied, bytes.Clone(command))
		}
	}
	return value
}

// appendLocked commits an entry, and applies it on all servers that run and
// do not lag. It returns the leader's answer.
func (s *Sequencer) appendLocked(entry fakeEntry) (uint64, any) {
	s.mu.log = append(s.mu.log, entry)
	var value any
	for _, node := range s.mu.servers {
		if !node.up || node.lags && node != s.mu.leader {
			continue
		}
		if answer := s.catchUpLocked(node, s.lastLocked()); node == s.mu.leader {
			value = answer
		}
	}
	return s.lastLocked(), value
}

// leadLocked begins a new term, with a leader's mark as its first entry, or
// without a leader.
func (s *Sequencer) leadLocked(node *FakeNode) {
	old := s.mu.leader
	s.mu.leader = node
	s.mu.term++
	if node != nil {
		s.appendLocked(fakeEntry{})
	}
	if old != nil && old != node {
		old.tell(Leadership{Term: s.mu.term})
	}
	if node != nil {
		node.tell(Leadership{Leader: true, Term: s.mu.term})
	}
}

// SetLeader makes a running server the leader of a new term. An empty id leaves
// the cluster without one.
func (s *Sequencer) SetLeader(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		s.leadLocked(nil)
		return nil
	}
	node, err := s.findLocked(id)
	if err != nil {
		return err
	}
	if !node.up {
		return fmt.Errorf("make %s the leader: it is down", id)
	}
	s.leadLocked(node)
	return nil
}

func (s *Sequencer) findLocked(id string) (*FakeNode, error) {
	at := slices.IndexFunc(s.mu.servers, func(node *FakeNode) bool { return node.id == id })
	if at < 0 {
		return nil, fmt.Errorf("%w: %s", ErrUnknownPeer, id)
	}
	return s.mu.servers[at], nil
}

// Lag lets a follower lag: it applies only what WaitApplied asks it for. With
// false it catches up.
func (s *Sequencer) Lag(id string, lags bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, err := s.findLocked(id)
	if err != nil {
		return err
	}
	node.lags = lags
	if !lags && node.up {
		s.catchUpLocked(node, s.lastLocked())
	}
	return nil
}

// Crash takes a server down. A leader leaves the cluster without one.
func (s *Sequencer) Crash(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, err := s.findLocked(id)
	if err != nil {
		return err
	}
	node.up = false
	if s.mu.leader == node {
		s.leadLocked(nil)
	}
	return nil
}

// Restart brings a server back with an empty fsm, which gets the snapshot, if
// there is one, and the log after it.
func (s *Sequencer) Restart(id string, fsm FSM) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, err := s.findLocked(id)
	if err != nil {
		return err
	}
	return s.startLocked(node, fsm)
}

// Compact replaces the log by a snapshot of the leader's state, so that servers
// which start or lag get that instead of entries.
func (s *Sequencer) Compact() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.leader == nil {
		return errors.New("compact log: there is no leader")
	}
	snapshot, err := s.mu.leader.fsm.Snapshot()
	if err != nil {
		return fmt.Errorf("compact log: %w", err)
	}
	defer snapshot.Release()
	var state bytes.Buffer
	if err := snapshot.Persist(&state); err != nil {
		return fmt.Errorf("compact log: %w", err)
	}
	s.mu.base, s.mu.log, s.mu.state = s.lastLocked(), nil, state.Bytes()
	for _, node := range s.mu.servers {
		if node.up && node.applied < s.mu.base {
			if err := node.fsm.Restore(bytes.NewReader(s.mu.state)); err != nil {
				return fmt.Errorf("install snapshot on server %s: %w", node.id, err)
			}
			node.applied = s.mu.base
		}
	}
	return nil
}

// FakeNode is a server of a Sequencer, with the methods of Node that propose
// and read.
type FakeNode struct {
	log        *Sequencer
	id         string
	leadership chan Leadership

	// Guarded by the Sequencer's lock.
	fsm     FSM
	up      bool
	lags    bool
	applied uint64
}

// tell replaces unread news, as Node does.
func (f *FakeNode) tell(news Leadership) {
	select {
	case <-f.leadership:
	default:
	}
	f.leadership <- news
}

// ID is the server's id; its address is the same.
func (f *FakeNode) ID() string { return f.id }

// LeadershipCh is as Node.LeadershipCh.
func (f *FakeNode) LeadershipCh() <-chan Leadership { return f.leadership }

// Propose is as Node.Propose, decided by the fate that SetFate chose.
func (f *FakeNode) Propose(ctx context.Context, command []byte) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, fmt.Errorf("propose: %w", err)
	}
	s := f.log
	s.mu.Lock()
	choose, proposal := s.mu.fate, Proposal{ServerID: f.id, Index: s.lastLocked() + 1, Command: command}
	err := s.refusalLocked(f)
	s.mu.Unlock()
	if err != nil {
		return Result{}, err
	}
	fate := FateCommit
	if choose != nil {
		fate = choose(proposal)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.refusalLocked(f); err != nil {
		return Result{}, err // the choice changed the leader
	}
	switch fate {
	case FateDrop:
		return Result{}, fmt.Errorf("propose: %w", ErrOutcomeUnknown)
	case FateRefuse:
		return Result{}, &NotLeaderError{}
	}
	entry := fakeEntry{command: append([]byte{}, command...)}
	index, value := s.appendLocked(entry)
	switch fate {
	case FateDuplicate:
		s.appendLocked(entry)
	case FateLoseAck:
		return Result{}, fmt.Errorf("propose: %w", ErrOutcomeUnknown)
	}
	return Result{Index: index, Value: value}, nil
}

// refusalLocked says why a server takes no proposal, nil when it does.
func (s *Sequencer) refusalLocked(f *FakeNode) error {
	switch {
	case !f.up:
		return ErrShutdown
	case s.mu.leader == nil:
		return &NotLeaderError{}
	case s.mu.leader != f:
		return &NotLeaderError{LeaderID: s.mu.leader.id, LeaderAddr: s.mu.leader.id}
	}
	return nil
}

// ReadIndex is as Node.ReadIndex.
func (f *FakeNode) ReadIndex(ctx context.Context) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fmt.Errorf("read index: %w", err)
	}
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if err := f.log.refusalLocked(f); err != nil {
		return 0, err
	}
	return f.log.lastLocked(), nil
}

// WaitApplied is as Node.WaitApplied, but never waits: a server that lags
// applies as much as is asked for. An index beyond the log returns the context's
// error, or ErrOutcomeUnknown while that is nil.
func (f *FakeNode) WaitApplied(ctx context.Context, index uint64) error {
	s := f.log
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !f.up:
		return ErrShutdown
	case index > s.lastLocked() && ctx.Err() != nil:
		return fmt.Errorf("wait for index %d: %w", index, ctx.Err())
	case index > s.lastLocked():
		return fmt.Errorf("wait for index %d: the log ends at %d: %w", index, s.lastLocked(), ErrOutcomeUnknown)
	}
	s.catchUpLocked(f, index)
	return nil
}

// AppliedIndex is as Node.AppliedIndex.
func (f *FakeNode) AppliedIndex() uint64 {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.applied
}

// IsLeader is as Node.IsLeader, and never wrong.
func (f *FakeNode) IsLeader() bool {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.mu.leader == f
}

// Term is as Node.Term.
func (f *FakeNode) Term() uint64 {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	return f.log.mu.term
}

// LeaderID is as Node.LeaderID.
func (f *FakeNode) LeaderID() string {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	if f.log.mu.leader == nil {
		return ""
	}
	return f.log.mu.leader.id
}

// LeaderAddr is as Node.LeaderAddr: the leader's id.
func (f *FakeNode) LeaderAddr() string { return f.LeaderID() }

// Peers is as Node.Peers: all servers are voters.
func (f *FakeNode) Peers() []Peer {
	f.log.mu.Lock()
	defer f.log.mu.Unlock()
	var peers []Peer
	for _, node := range f.log.mu.servers {
		peers = append(peers, Peer{ID: node.id, Addr: node.id, Voter: true})
	}
	return peers
}
