package scheduler

import (
	"iter"
	"math/bits"
	"time"

	"nomadlike/nomadlike/structs"
)

// Nodes yields every node on the board with what it holds, which may be nil, by
// id.
func (b *Board) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		b.listNodes()
		for _, at := range b.every {
			if !yield(b.floor.Node(b.spots[at].node.ID)) {
				return
			}
		}
	}
}

// SpareEstimates lets the estimated ends of running gangs stand until their age
// is a power of two in minutes, instead of refining them several times on the
// way there. It is meant for forecasts on clones, which make many passes: they
// call it before each.
func (b *Board) SpareEstimates(now structs.UnixNano) {
	for i := range b.runs {
		r := &b.runs[i]
		if r.again > now || r.end <= now || r.again == 0 {
			continue
		}
		placed := b.entries[r.entry].gang.placedAt
		due := placed.Add(time.Minute << bits.Len64(uint64(max(r.again.Sub(placed), 1)-1)/uint64(time.Minute)))
		if due > now {
			r.again = min(due, r.end)
		}
	}
}
