package consensus

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// Leadership is what LeadershipCh says.
type Leadership struct {
	Leader bool   // this server leads and has applied everything acknowledged before
	Term   uint64 // in which it does, or in which it does not any more
}

// leading is what a node knows about its own leadership.
type leading struct {
	heard  chan bool       // from raft, which blocks on it
	latest chan Leadership // holds at most the newest unread news
	mu     struct {
		sync.Mutex
		term    uint64        // term in which this server leads with its mark applied, 0 when none
		changed chan struct{} // closed and replaced at each change of term
		refused time.Time     // since when raft refuses writes because of a transfer
	}
}

func (l *leading) init() {
	l.heard = make(chan bool, 16)
	l.latest = make(chan Leadership, 1)
	l.mu.changed = make(chan struct{})
}

// establishedTerm is the term in which this server leads and may answer reads,
// 0 when none, with a channel that is closed when that changes.
func (l *leading) establishedTerm() (uint64, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mu.term, l.mu.changed
}

// publish makes news known; an unread older one is dropped.
func (l *leading) publish(news Leadership) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.term = 0
	if news.Leader {
		l.mu.term = news.Term
	}
	close(l.mu.changed)
	l.mu.changed = make(chan struct{})
	select {
	case <-l.latest:
	default:
	}
	l.latest <- news
}

func (l *leading) noteAccepted() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.refused = time.Time{}
}

func (l *leading) refusedFor(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.refused.IsZero() {
		l.mu.refused = now
	}
	return now.Sub(l.mu.refused)
}

// LeadershipCh reports this server's leadership. Gaining it is told once this
// server has applied all that earlier leaders acknowledged. One reader only;
// what it does not read in time is replaced by newer news, so a leadership that
// was lost and won again shows in the term alone.
func (n *Node) LeadershipCh() <-chan Leadership { return n.leading.latest }

// followLeadership reads raft's notices for as long as raft runs: raft blocks
// on them.
func (n *Node) followLeadership() {
	var attempt sync.WaitGroup
	cancel := func() {}
	for {
		select {
		case leads := <-n.leading.heard:
			cancel()
			attempt.Wait()
			if !leads {
				n.config.Log.Info("leadership lost", logkey.Term, n.Term())
				n.leading.publish(Leadership{Term: n.Term()})
				continue
			}
			var ctx context.Context
			ctx, cancel = context.WithCancel(context.Background())
			attempt.Go(func() { n.establish(ctx) })
		case <-n.stopped:
			cancel()
			attempt.Wait()
			return
		}
	}
}

// establish proposes this leader's mark until it is applied or leadership is
// lost. It never blocks longer than raft takes to answer.
func (n *Node) establish(ctx context.Context) {
	mark := raft.Log{Extensions: leaderMark{ServerID: n.config.ID}.encode()}
	for ctx.Err() == nil {
		if n.ops.begin() != nil {
			return
		}
		answer := n.append(mark)
		n.ops.end()
		if answer.err == nil {
			newest := n.machine.newestMark()
			if newest.Index != answer.result.Index || newest.ServerID != n.config.ID {
				return // a later leader's mark was applied already
			}
			n.config.Log.Info("leadership won", logkey.Term, newest.Term, logkey.Index, newest.Index)
			n.leading.publish(Leadership{Leader: true, Term: newest.Term})
			return
		}
		var notLeader *NotLeaderError
		if !errors.As(answer.err, &notLeader) || !n.IsLeader() {
			return
		}
		select { // a transfer is in progress
		case <-time.After(n.config.Timings.Election / 4):
		case <-ctx.Done():
		case <-n.closing:
		}
	}
}

// seekElection makes a follower without a leader stand for election now rather
// than when its timer runs out. Raft looks at the timer again when its length
// is reduced, by however little; pre-vote keeps it harmless.
func (n *Node) seekElection() {
	usual := n.raft.ReloadableConfig()
	shorter := usual
	shorter.HeartbeatTimeout -= time.Millisecond
	for _, config := range []raft.ReloadableConfig{shorter, usual} {
		if err := n.raft.ReloadConfig(config); err != nil {
			n.config.Log.Debug("election is not hastened", logkey.Error, err)
			return
		}
	}
}
