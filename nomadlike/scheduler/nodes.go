package scheduler

import (
	"iter"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Nodes yields every node on the board with what it uses, which may be nil, by
// id.
func (b *Board) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		b.nodes.listNodes()
		for _, at := range b.nodes.every {
			if !yield(b.nodes.floor.Node(b.nodes.states[at].node.ID)) {
				return
			}
		}
	}
}

// NodeIndex returns the number by which Reserved names a node: at least 0, below
// NodeIndexes, the same on all clones and until the node is removed.
func (b *Board) NodeIndex(id string) (int, bool) { return b.nodes.floor.Index(id) }

// NodeIndexes bounds the numbers of nodes.
func (b *Board) NodeIndexes() int { return b.nodes.floor.Indexes() }

// Placements reports what a running subjob uses, by rank; ranks that ended are
// left out. Nil: it does not run.
func (b *Board) Placements(jobID string, subjob int) []structs.RankPlacement {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand != running {
		return nil
	}
	return b.nodes.floor.Placements(b.queue.entries[id].gang.seats)
}

// NominatedFor is the subjob that a node of this number is nominated for, as
// structs.SubjobKey writes it, "" when there is none. Unlike a node's usage it knows
// the nominations of the board's own passes.
func (b *Board) NominatedFor(number int32) string { return b.nodes.states[number].nominatedFor }

// Reserved is the nodes that are reserved for a blocked gang, as the newest pass left them. It
// never changes.
type Reserved struct{ r *reservation }

// Reserved appends to list what is reserved now, and returns it.
func (b *Board) Reserved(list []Reserved) []Reserved {
	for _, r := range b.promises.reservations {
		if r != nil {
			list = append(list, Reserved{r})
		}
	}
	return list
}

// Job names the gang that the nodes are reserved for.
func (k Reserved) Job() (jobID string, subjob int) { return k.r.jobID, k.r.index }

// Until is up to when another gang may stand on the nodes, as it is estimated;
// 0: for no time at all.
func (k Reserved) Until() structs.UnixNano {
	if k.r.strict {
		return 0
	}
	return k.r.at
}

// Bounded reports that only those may stand there until then whose time limit is
// over by then; otherwise their estimate counts.
func (k Reserved) Bounded() bool { return k.r.bounded }

// Nodes are the numbers of the nodes, not to be changed.
func (k Reserved) Nodes() []int32 { return k.r.nodes }

// Spare is what others may take on the i-th node for however long.
func (k Reserved) Spare(i int) capacity.Amount { return k.r.spare[i] }

// Equal reports whether two say the same.
func (k Reserved) Equal(other Reserved) bool {
	a, b := k.r, other.r
	if a == b {
		return true
	}
	if a.entry != b.entry || a.at != b.at || a.strict != b.strict || a.bounded != b.bounded || len(a.nodes) != len(b.nodes) || a.jobID != b.jobID {
		return false
	}
	for i := range a.nodes {
		if a.nodes[i] != b.nodes[i] || a.spare[i] != b.spare[i] {
			return false
		}
	}
	return true
}

// SpareEstimates lets the next pass, at now, leave the estimated ends of gangs
// as they are that were to end after until. By the age of a gang its estimate
// only gets later, so whoever looks for room before until misses nothing. It is
// for forecasts on clones, which make many passes and call it before each.
func (b *Board) SpareEstimates(now, until structs.UnixNano) {
	for i := range b.queue.runs {
		if r := &b.queue.runs[i]; r.again <= now && r.again != 0 && r.end > max(until, now) {
			r.again = now + 1
		}
	}
}
