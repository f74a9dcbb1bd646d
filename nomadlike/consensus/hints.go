package consensus

import (
	"github.com/hashicorp/raft"
)

// hints tell followers of a commit at once. Raft lets them learn it with the
// next entries, or after an idle timeout of 50 to 100 ms, and a write that was
// forwarded by a follower waits there for its own state.
type hints struct{ wake chan struct{} }

func (h *hints) init() { h.wake = make(chan struct{}, 1) }

// soon makes sendHints look at the followers. It never blocks.
func (h *hints) soon() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// sendHints runs for as long as raft runs.
func (n *Node) sendHints() {
	for {
		select {
		case <-n.hints.wake:
			n.hintFollowers()
		case <-n.stopped:
			return
		}
	}
}

// hintFollowers sends each follower that has everything, and was not told yet
// that it is committed, an empty request that says so. The request names the
// newest applied entry as the one before it, so that a follower takes the commit
// only if it holds that very entry: the same proof raft's own requests carry.
// Followers that still get entries learn the commit with them.
func (n *Node) hintFollowers() {
	term, _ := n.leading.establishedTerm()
	if term == 0 || term != n.Term() {
		return
	}
	index, entryTerm := n.machine.newestApplied()
	last := n.raft.LastIndex()
	if index < last {
		return // the entries after it bring the news
	}
	for _, peer := range n.raft.GetConfiguration().Configuration().Servers {
		if string(peer.ID) == n.config.ID || !n.gate.claimHint(peer.ID, term, index) {
			continue
		}
		n.tasks.Go(func() {
			header := n.header()
			request := &raft.AppendEntriesRequest{
				RPCHeader:         header,
				Term:              term,
				PrevLogEntry:      index,
				PrevLogTerm:       entryTerm,
				LeaderCommitIndex: index,
			}
			// A failure shows in Health, and raft's own requests bring the news.
			_ = n.gate.AppendEntries(peer.ID, peer.Address, request, &raft.AppendEntriesResponse{})
		})
	}
}

// claimHint reports whether a follower should get a hint about index now, and
// notes that it does.
func (g *gate) claimHint(id raft.ServerID, term, index uint64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.mu.followers[id]
	if f == nil || f.term != term || f.match < index || f.commitKnown >= index || f.inFlight > 0 {
		return false
	}
	f.commitKnown = index
	return true
}
