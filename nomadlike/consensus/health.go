package consensus

import (
	"strconv"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// watchEvery is how often the node looks at disk space and followers.
const watchEvery = time.Second

// backOffMax is the longest that raft waits after failures before it sends
// entries again: ten milliseconds, doubled ten times.
const backOffMax = 10240 * time.Millisecond

// Stats is the state of one server, for people and metrics.
type Stats struct {
	ID            string
	State         string // "follower", "candidate", "leader" or "shutdown"
	Term          uint64
	FirstIndex    uint64        // oldest entry in the log, 0 when empty
	LastIndex     uint64        // newest entry stored
	LastTerm      uint64        // of that entry
	LogBytes      int64         // length of the log files
	CommitIndex   uint64        // newest entry known to be committed
	AppliedIndex  uint64        // newest entry applied to the FSM
	SnapshotIndex uint64        // last entry in the newest snapshot
	SnapshotAt    time.Time     // when that was made; zero: there is none
	Leaders       uint64        // leaders that this server has seen since it was opened
	FreeBytes     uint64        // of the directory when it was last looked at, at most a second ago; 0 in memory
	LastContact   time.Duration // since the leader was heard; 0 on the leader, negative when never
	DiskFull      bool          // it has no room for entries: as leader it hands over, or Propose answers ErrDiskFull
}

// Stats returns the state of this server.
func (n *Node) Stats() Stats {
	s := Stats{
		ID:           n.config.ID,
		Term:         n.Term(),
		LastIndex:    n.raft.LastIndex(),
		CommitIndex:  n.raft.CommitIndex(),
		AppliedIndex: n.AppliedIndex(),
		DiskFull:     n.diskFull.Load(),
		Leaders:      n.machine.leaders(),
		FreeBytes:    n.freeBytes.Load(),
	}
	s.LastTerm, _ = strconv.ParseUint(n.raft.Stats()["last_log_term"], 10, 64) // raft tells it in no other way
	if n.config.Dir != "" {
		s.LogBytes = logBytes(n.config.Dir)
	}
	if first, err := n.storage.log.FirstIndex(); err == nil {
		s.FirstIndex = first
	}
	if newest, err := n.storage.snapshots.describe(); err == nil {
		s.SnapshotIndex, s.SnapshotAt = newest.Index, newest.CreatedAt
	}
	switch n.raft.State() {
	case raft.Follower:
		s.State = "follower"
	case raft.Candidate:
		s.State = "candidate"
	case raft.Leader:
		s.State = "leader"
	case raft.Shutdown:
		s.State = "shutdown"
	}
	if contact := n.raft.LastContact(); contact.IsZero() {
		s.LastContact = -1
	} else {
		s.LastContact = time.Since(contact)
	}
	if s.State == "leader" {
		s.LastContact = 0
	}
	return s
}

// DiskFull reports whether this server has no room for entries.
func (n *Node) DiskFull() bool { return n.diskFull.Load() }

// PeerHealth is what the leader knows about another server.
type PeerHealth struct {
	Peer
	LastContact time.Duration // since its last answer in this term; negative when there was none
	MatchIndex  uint64        // newest entry known to be on its disk
	Behind      uint64        // entries it lacks
	RoundTrip   time.Duration // of its last answer, its disk write included
	LastError   string        // of the last call to it, empty when that succeeded
}

// Health reports how the other servers do. Only a leader knows: others get nil.
func (n *Node) Health() []PeerHealth {
	if !n.IsLeader() {
		return nil
	}
	known := n.gate.followersAt(n.Term())
	last := n.raft.LastIndex()
	now := time.Now()
	var health []PeerHealth
	for _, peer := range n.Peers() {
		if peer.ID == n.config.ID {
			continue
		}
		f := known[raft.ServerID(peer.ID)]
		h := PeerHealth{
			Peer:        peer,
			LastContact: -1,
			MatchIndex:  f.match,
			Behind:      last - min(last, f.match),
			RoundTrip:   f.roundTrip,
			LastError:   f.lastError,
		}
		if !f.contact.IsZero() {
			h.LastContact = now.Sub(f.contact)
		}
		health = append(health, h)
	}
	return health
}

// watchHealth looks once a second for what raft does not see.
func (n *Node) watchHealth() {
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	silent := make(map[string]bool)
	for {
		n.checkFull()
		n.checkFollowers(time.Now(), silent)
		select {
		case <-ticker.C:
		case <-n.stopped:
			return
		}
	}
}

// checkSpace refuses proposals while the disk is nearly full, since an append
// that fails must end the process. The reserve lets elections and entries in
// flight go on.
func (n *Node) checkSpace() {
	if n.config.FreeBytes == nil {
		return // in memory
	}
	free, err := n.config.FreeBytes(n.config.Dir)
	if err != nil {
		n.config.Log.Warn("free space is unknown", logkey.Path, n.config.Dir, logkey.Error, err)
		return
	}
	n.freeBytes.Store(free)
	n.makeReserve(free)
	full := free < n.config.MinFreeBytes
	if n.diskFull.Swap(full) == full {
		return
	}
	if full {
		n.config.Log.Error("data directory is nearly full: another server has to lead until space is freed",
			logkey.Path, n.config.Dir, "free_bytes", free, "needed_bytes", n.config.MinFreeBytes)
	} else {
		n.config.Log.Info("data directory has space again", logkey.Path, n.config.Dir, "free_bytes", free)
	}
}

// checkFollowers tells once when a follower falls silent or is back, and ends
// the process when its own replication to one is wedged.
func (n *Node) checkFollowers(now time.Time, silent map[string]bool) {
	if !n.IsLeader() {
		clear(silent)
		return
	}
	known := n.gate.followersAt(n.Term())
	last := n.raft.LastIndex()
	for _, peer := range n.Peers() {
		f, ok := known[raft.ServerID(peer.ID)]
		if !ok || peer.ID == n.config.ID {
			continue
		}
		isSilent := f.lastError != "" && now.Sub(f.contact) > n.config.Timings.Heartbeat
		switch {
		case isSilent && !silent[peer.ID]:
			n.config.Log.Warn("server does not answer", logkey.PeerID, peer.ID, logkey.Addr, peer.Addr, logkey.Error, f.lastError)
		case !isSilent && silent[peer.ID]:
			n.config.Log.Info("server answers again", logkey.PeerID, peer.ID, logkey.Addr, peer.Addr)
		}
		silent[peer.ID] = isSilent
		if f.wedged(now, last, n.config.Timings) {
			n.guard.fail(exitWedged, "replication to a server hangs", logkey.PeerID, peer.ID, "match", f.match, logkey.Index, last)
		}
	}
}

// wedged reports whether our own replication to a follower hangs although it
// answers heartbeats: entries were handed to the transport and it gave them up
// long after its own deadline, or none were handed to it for longer than raft
// ever waits after failures. A follower that is slow, was away, or refuses is
// its own affair and not this.
func (f follower) wedged(now time.Time, last uint64, t Timings) bool {
	if f.match >= last || now.Sub(f.contact) > t.Wedge/2 {
		return false
	}
	if !f.appending.IsZero() {
		return now.Sub(f.appending) > t.Wedge+2*t.IO
	}
	return f.inFlight == 0 && !f.lastSend.IsZero() && now.Sub(f.lastSend) > t.Wedge+backOffMax
}
