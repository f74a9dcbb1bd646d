package agent

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/gossip"
)

// How autopilot judges servers.
const (
	stableAfter   = 500 * time.Millisecond // of gossip before a server is added
	replacedAfter = 10 * time.Second       // a dead server goes when its replacement votes already
	deadAfter     = 72 * time.Hour         // a dead server goes anyway
	behindMax     = 1000                   // log entries that a new voter may lack
)

// serverView is one server as the leader sees it: in Raft's configuration,
// proven to be there, or both. Gossip is but where the leader hears whom to ask.
type serverView struct {
	id       string
	addr     string // in Raft's configuration; "" when it is not there
	seenAddr string // where it proved to be; "" when it never did
	seen     bool   // it proved it just now
	seenFor  time.Duration
	voter    bool
	alive    bool          // it answers: the leader's Raft, or the call for its proof
	since    time.Duration // since when it does, or does not
	behind   uint64        // log entries it lacks, for nonvoters
	heard    bool          // it answered the leader in this term
	full     bool          // it has no room for log entries, as it says itself
	backup   string        // why its last backup failed, as it says itself
	self     bool
	removed  bool // by an administrator, and not let back in
}

// change is what autopilot wants next; the zero value is nothing.
type change struct {
	act  changeKind
	id   string
	addr string
}

type changeKind string

const (
	changeNone    changeKind = ""
	changeAdd     changeKind = "add"     // as a nonvoter
	changePromote changeKind = "promote" // give it its vote
	changeMove    changeKind = "move"    // it has a new address
	changeRemove  changeKind = "remove"
)

// nextChange decides the one next change of Raft's configuration, if any. A
// new server first gets the log and then, when it has caught up, its vote; a
// dead one goes when its place is taken, or after a long time. No change may
// leave a quorum that is not there. Pure.
func nextChange(servers []serverView, expect int) change {
	servers = slices.Clone(servers)
	slices.SortFunc(servers, func(a, b serverView) int { return cmp.Compare(a.id, b.id) })
	for _, s := range servers {
		if c, ok := removal(s, servers, expect); ok {
			return c
		}
	}
	for _, s := range servers {
		inRaft, steady := s.addr != "", s.alive && s.since >= stableAfter
		seen := s.seen && s.seenFor >= stableAfter
		if s.removed {
			continue
		}
		switch {
		case !inRaft && seen && !addressTaken(s, servers):
			return change{changeAdd, s.id, s.seenAddr}
		case inRaft && !s.self && seen && s.seenAddr != s.addr && !addressTaken(s, servers):
			return change{changeMove, s.id, s.seenAddr}
		case inRaft && !s.voter && steady && s.heard && s.behind <= behindMax:
			return change{changePromote, s.id, s.addr}
		}
	}
	return change{}
}

// addressTaken reports whether another server has, in Raft's configuration, the
// address under which s is seen.
func addressTaken(s serverView, servers []serverView) bool {
	return slices.ContainsFunc(servers, func(other serverView) bool {
		return other.id != s.id && other.addr == s.seenAddr
	})
}

// removal reports whether a server should go, and may.
func removal(s serverView, servers []serverView, expect int) (change, bool) {
	if s.addr == "" || s.alive || s.self {
		return change{}, false
	}
	// A wiped server came back under a new id: two ids on one address.
	supplanted := slices.ContainsFunc(servers, func(other serverView) bool {
		return other.id != s.id && other.alive && other.addr == "" && !other.removed && other.seen && other.seenAddr == s.addr && other.seenFor >= stableAfter
	})
	voters, living := 0, 0
	for _, other := range servers {
		if other.id != s.id && other.addr != "" && other.voter {
			voters++
			if other.alive {
				living++
			}
		}
	}
	// Of those who stay, and of those who are there now, most must live.
	quorum := living > voters/2 && (!s.voter || living > (voters+1)/2)
	replaced := s.since >= replacedAfter && living >= expect
	if !quorum || !(supplanted || replaced || !s.voter && s.since >= replacedAfter || s.since >= deadAfter) {
		return change{}, false
	}
	return change{changeRemove, s.id, s.addr}, true
}

// status is the word for a server of Raft's configuration, as for members.
func (s serverView) status() string {
	if s.alive {
		return string(gossip.StateAlive)
	}
	return string(gossip.StateDead)
}

// failureTolerance is how many voters may still fail without losing the
// quorum.
func failureTolerance(servers []serverView) int {
	voters, living := 0, 0
	for _, s := range servers {
		if s.addr != "" && s.voter {
			voters++
			if s.alive {
				living++
			}
		}
	}
	return max(0, living-(voters/2+1))
}
