package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// Result is what became of a proposal.
type Result struct {
	Index uint64 // of its log entry
	Value any    // what the FSM's Apply returned on this server
}

// Propose puts a command into the log and returns when it is committed and
// applied on this server, which must be the leader. Many goroutines should
// propose at once: their commands share disk writes and messages.
//
// It returns *NotLeaderError, ErrDiskFull, ErrTooLarge, ErrShutdown or, before
// the command was handed over, the context's error: then the command has had
// no effect and never will. It returns ErrOutcomeUnknown when nobody can tell.
// The command must not be changed afterwards.
func (n *Node) Propose(ctx context.Context, command []byte) (Result, error) {
	switch {
	case len(command) > MaxCommandBytes:
		return Result{}, fmt.Errorf("propose %d bytes: %w", len(command), ErrTooLarge)
	case !n.IsLeader():
		return Result{}, n.notLeader()
	case n.handingOver.Load():
		return Result{}, &NotLeaderError{} // in milliseconds there is another
	case n.diskFull.Load():
		return Result{}, fmt.Errorf("propose: %w: %s", ErrDiskFull, n.config.Dir)
	}
	select {
	case n.places <- struct{}{}:
	case <-ctx.Done():
		return Result{}, fmt.Errorf("propose: %w", ctx.Err())
	case <-n.closing:
		return Result{}, ErrShutdown
	}
	if err := n.ops.begin(); err != nil {
		<-n.places
		return Result{}, err
	}
	answer := make(chan proposed, 1)
	go func() {
		answer <- n.append(raft.Log{Data: command})
		<-n.places
		n.ops.end()
	}()
	select {
	case a := <-answer:
		return a.result, a.err
	case <-ctx.Done():
		return Result{}, fmt.Errorf("propose: %w: %w", ErrOutcomeUnknown, ctx.Err())
	}
}

type proposed struct {
	result Result
	err    error
}

// append hands one entry to raft and waits for its fate. The caller holds an
// operation.
func (n *Node) append(entry raft.Log) proposed {
	began := time.Now()
	future := n.raft.ApplyLog(entry, 0)
	err := future.Error()
	if err == nil {
		if n.config.Committed != nil {
			n.config.Committed(time.Since(began))
		}
		n.leading.noteAccepted()
		return proposed{result: Result{Index: future.Index(), Value: future.Response()}}
	}
	if errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		n.noteTransferRefusal(time.Now())
	}
	return proposed{err: n.refusal("propose", err)}
}

// refusal turns raft's errors into those of this package.
func (n *Node) refusal(act string, err error) error {
	switch {
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return n.notLeader()
	case errors.Is(err, raft.ErrLeadershipLost), errors.Is(err, raft.ErrAbortedByRestore), errors.Is(err, raft.ErrRaftShutdown):
		return fmt.Errorf("%s: %w: %w", act, ErrOutcomeUnknown, err)
	}
	// What is left are failures of the leader's own log; the guard ends this
	// process, but a follower may have got the entry in an earlier try.
	return fmt.Errorf("%s: %w: %w", act, ErrOutcomeUnknown, err)
}

// noteTransferRefusal watches for a transfer that never ends: raft then
// refuses all writes of this leader for ever, and only a new process helps.
func (n *Node) noteTransferRefusal(now time.Time) {
	select {
	case <-n.closing:
		return // our own transfer
	default:
	}
	if n.leading.refusedFor(now) > 2*n.config.Timings.Election {
		n.guard.fail(exitWedged, "leadership transfer does not end", logkey.Term, n.Term())
	}
}
