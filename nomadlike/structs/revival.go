package structs

import "time"

// Revival says what becomes of a state that is brought back: from an archive,
// or from what one server still had when most others were gone. The world went
// on without it, so what it says of attempts and nodes may be out of date.
type Revival struct {
	Now   UnixNano // when it is brought back
	Until UnixNano // when the state was whole last: what came after it is forgotten
	// Cluster and JoinTokens replace those of the state, where it becomes another
	// cluster's; nil: it stays the same cluster.
	Cluster    *Cluster
	JoinTokens []JoinToken
}

// Bounds of the gap that a revival leaves in the numbers of attempts.
const (
	revivalGapLeast = 1000
	revivalGapEvery = time.Second // an attempt of one subjob is not expected sooner than so long after the one before
	revivalGapRound = 1000        // so that people see where the gap is
)

// AttemptsFrom is the last number that an attempt may have got after number
// without the revived state knowing: none up to it is given again.
func (r *Revival) AttemptsFrom(number uint64) uint64 {
	forgotten := uint64(revivalGapLeast)
	if away := r.Now.Sub(r.Until); away > 0 {
		forgotten += uint64(away / revivalGapEvery)
	}
	last := number + forgotten
	return last + revivalGapRound - 1 - (last+revivalGapRound-1)%revivalGapRound
}

// The faults that a revival leaves on nodes.
const (
	// FaultUnheard stands until a node has registered with what it runs.
	FaultUnheard = "unheard"
	// FaultUnknown stands while a node runs allocations that the state does not
	// know.
	FaultUnknown = "unknown-tasks"
)

// Unheard reports whether the node has not registered since its state was brought
// back.
func (n *Node) Unheard() bool {
	for i := range n.Faults {
		if n.Faults[i].Name == FaultUnheard {
			return true
		}
	}
	return false
}
