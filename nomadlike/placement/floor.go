package placement

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Floor is what is free on the nodes of a cluster. The zero Floor is not ready:
// see NewFloor. One goroutine at a time may use a floor.
type Floor struct {
	places []place // by index; a removed node leaves a hole
	byID   map[string]int
	order  []int // indexes of nodes in floor order
	pools  map[string]*structs.Pool
}

// place is one node with what it holds.
type place struct {
	node  *structs.Node  // nil: removed
	usage *structs.Usage // never nil; shared until a hold changes it
}

// NewFloor gives a floor without nodes.
func NewFloor() *Floor {
	return &Floor{byID: make(map[string]int), pools: make(map[string]*structs.Pool)}
}

// Put adds a node, or replaces what is known of it. A nil usage holds nothing.
// Neither is changed, now or later.
func (f *Floor) Put(node *structs.Node, usage *structs.Usage) {
	if usage == nil {
		usage = &structs.Usage{NodeID: node.ID}
	}
	at, known := f.byID[node.ID]
	if !known {
		at = len(f.places)
		f.places = append(f.places, place{})
		f.byID[node.ID] = at
		f.order = append(f.order, at)
	}
	f.places[at] = place{node: node, usage: usage}
	slices.SortFunc(f.order, func(a, b int) int { return compareNodes(f.places[a].node, f.places[b].node) })
}

// compareNodes is the floor order: by place in the building, outermost first,
// then by name as people count, then by id.
func compareNodes(a, b *structs.Node) int {
	for i := range min(len(a.Topology), len(b.Topology)) {
		if c := structs.CompareNames(a.Topology[i], b.Topology[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a.Topology), len(b.Topology)), structs.CompareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// Remove forgets a node; an unknown one is not there already.
func (f *Floor) Remove(id string) {
	at, known := f.byID[id]
	if !known {
		return
	}
	delete(f.byID, id)
	f.order = slices.DeleteFunc(f.order, func(i int) bool { return i == at })
	f.places[at] = place{}
}

// PutPool adds or replaces a pool's record.
func (f *Floor) PutPool(pool *structs.Pool) { f.pools[pool.Name] = pool }

// RemovePool forgets a pool's record.
func (f *Floor) RemovePool(name string) { delete(f.pools, name) }

// Pool gives a pool's record, nil when it has none.
func (f *Floor) Pool(name string) *structs.Pool { return f.pools[name] }

// Clone gives a floor that stands alone; indexes and seats of one mean the same
// on the other until either Puts or Removes nodes.
func (f *Floor) Clone() *Floor {
	return &Floor{places: slices.Clone(f.places), byID: maps.Clone(f.byID), order: slices.Clone(f.order), pools: maps.Clone(f.pools)}
}

// Len counts the nodes.
func (f *Floor) Len() int { return len(f.byID) }

// Node gives a node and what it holds now, nil for an unknown one. What is held
// since the node was Put is told without its holders.
func (f *Floor) Node(id string) (*structs.Node, *structs.Usage) {
	at, known := f.byID[id]
	if !known {
		return nil, nil
	}
	return f.places[at].node, f.places[at].usage
}

// Index gives the number by which Options ask about a node: at least 0, below
// Indexes, and the same until the node is removed.
func (f *Floor) Index(id string) (int, bool) {
	at, known := f.byID[id]
	return at, known
}

// Indexes bounds the indexes of all nodes.
func (f *Floor) Indexes() int { return len(f.places) }

// At gives the node with an index, nil when it was removed.
func (f *Floor) At(index int) *structs.Node { return f.places[index].node }
