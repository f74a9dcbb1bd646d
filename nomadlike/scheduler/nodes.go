package scheduler

import (
	"iter"

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
