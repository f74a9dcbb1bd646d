package consensus

import (
	"context"
	"fmt"
)

// readBatches gathers readers: all that arrive while one round of verification
// is under way share the next.
type readBatches struct {
	requests chan readRequest
}

type readRequest struct {
	answer chan readAnswer // buffered
}

type readAnswer struct {
	index uint64
	err   error
}

// readersMax is how many readers wait for a round before the next ones block.
const readersMax = 1024

func (r *readBatches) init() { r.requests = make(chan readRequest, readersMax) }

// ReadIndex returns an index that covers every write acknowledged before the
// call. A server whose FSM has applied it (WaitApplied, on any server) answers
// reads linearizably. Only the leader can tell; others get *NotLeaderError. A
// leader of a new term first applies an entry of that term.
func (n *Node) ReadIndex(ctx context.Context) (uint64, error) {
	if err := n.ops.begin(); err != nil {
		return 0, err
	}
	defer n.ops.end()
	request := readRequest{answer: make(chan readAnswer, 1)}
	select {
	case n.reads.requests <- request:
	case <-ctx.Done():
		return 0, fmt.Errorf("read index: %w", ctx.Err())
	}
	select {
	case answer := <-request.answer:
		return answer.index, answer.err
	case <-ctx.Done():
		return 0, fmt.Errorf("read index: %w", ctx.Err())
	}
}

// answerReads runs one round after another for as long as raft runs.
func (n *Node) answerReads() {
	for {
		select {
		case first := <-n.reads.requests:
			batch := []readRequest{first}
			for more := true; more && len(batch) < readersMax; {
				select {
				case next := <-n.reads.requests:
					batch = append(batch, next)
				default:
					more = false
				}
			}
			answer := n.verifyRead()
			for _, request := range batch {
				request.answer <- answer
			}
		case <-n.stopped:
			return
		}
	}
}

// verifyRead takes the commit index, and then makes sure that this server was
// still the leader when it took it.
func (n *Node) verifyRead() readAnswer {
	// An operation of its own: the readers may all have left already.
	if err := n.ops.begin(); err != nil {
		return readAnswer{err: err}
	}
	defer n.ops.end()
	term, err := n.awaitTerm()
	if err != nil {
		return readAnswer{err: err}
	}
	n.restoring <- struct{}{}
	defer func() { <-n.restoring }()
	call, index := n.gate.calls.Load(), n.raft.CommitIndex()
	for {
		if err := n.raft.VerifyLeader().Error(); err != nil {
			return readAnswer{err: n.notLeader()}
		}
		if n.Term() != term || !n.IsLeader() {
			return readAnswer{err: n.notLeader()}
		}
		// Raft also takes the answer to a heartbeat that was under way already,
		// and that answer may be old: a leader that was stopped finds it when it
		// wakes up, long after another one was elected.
		if n.quorumConfirmed(call, term) {
			return readAnswer{index: index}
		}
	}
}

// quorumConfirmed reports whether a majority of the voters, this server included,
// has followed this leader after the given call.
func (n *Node) quorumConfirmed(call, term uint64) bool {
	var others []string
	voters, self := 0, 0
	for _, peer := range n.Peers() {
		switch {
		case !peer.Voter:
			continue
		case peer.ID == n.config.ID:
			self = 1
		default:
			others = append(others, peer.ID)
		}
		voters++
	}
	return self+n.gate.confirmedAfter(call, term, others) > voters/2
}

// awaitTerm waits until this leader has applied an entry of its own term: only
// then does its commit index cover all that was acknowledged.
func (n *Node) awaitTerm() (uint64, error) {
	for {
		term, changed := n.leading.establishedTerm()
		switch {
		case !n.IsLeader():
			return 0, n.notLeader()
		case term != 0 && term == n.Term():
			return term, nil
		}
		select {
		case <-changed:
		case <-n.closing:
			return 0, ErrShutdown
		}
	}
}

// WaitApplied returns when this server's FSM has applied the log up to index,
// or with the error of ctx or ErrShutdown. It works on every server.
func (n *Node) WaitApplied(ctx context.Context, index uint64) error {
	return n.machine.wait(ctx, n.closing, index)
}

// AppliedIndex is the newest index that this server's FSM has applied.
func (n *Node) AppliedIndex() uint64 { return n.machine.applied() }
