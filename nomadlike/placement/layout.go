package placement

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// layout is how the nodes of a floor stand: in floor order, in the places of
// their topology, and in classes. It is never changed, but made anew when nodes
// come, go or change; floors that were cloned share it.
type layout struct {
	id      *byte    // no other layout has it
	index   []int32  // by position
	posOf   []int32  // by index, -1: removed
	class   []int32  // by position, into classes
	classes []*class // in the order of their first nodes
	words   int      // of a set of positions

	// domains are the places of each level of the topology, from the whole floor
	// (level 0, one place) to the innermost; each is a run of positions, and a run
	// of places of the next level.
	domains [][]domain
	leaf    []int32 // by position, into the innermost level

	mu struct {
		sync.Mutex
		views map[string]*view
		named map[string][]int32 // names and ids of nodes to positions

		ordered bool    // byName is known
		byName  []int32 // see names
	}
}

// domain is one place of the topology.
type domain struct {
	lo, hi           int // positions, hi excluded
	childLo, childHi int // of the next level
}

// compareNodes is the floor order: by place in the building, outermost first,
// then by name as people count, then by id.
func compareNodes(a, b *structs.Node) int {
	for i := range min(len(a.Topology), len(b.Topology)) {
		if c := structs.CompareNames(a.Topology[i], b.Topology[i]); c != 0 {
			return c
		}
	}
	return cmp.Or(cmp.Compare(len(a.Topology), len(b.Topology)), compareNodeNames(a, b))
}

func compareNodeNames(a, b *structs.Node) int {
	return cmp.Or(structs.CompareNames(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// Ready brings the floor's order and indexes up to date with its nodes. Every
// question does so itself; calling it lets others Clone at the same time.
func (f *Floor) Ready() {
	if f.layout != nil {
		return
	}
	f.layout = f.newLayout()
	f.before, f.fresh = nil, nil
	f.own()
	f.dropClasses()
	f.pack()
	words := f.layout.words
	most := 0
	for _, c := range f.layout.classes {
		most = max(most, min(len(c.node.Devices), levelMax))
	}
	f.levels = make([]level, most+1)
	for i := range f.levels {
		f.levels[i] = newLevel(words)
	}
	f.mostCPU, f.mostMem, f.loose = make([]int64, words), make([]int64, words), capacity.NewSet(words)
	for at, s := range f.sites {
		if s != nil {
			f.list(int32(at))
		}
	}
}

// pack leaves out the device words that no node has any more.
func (f *Floor) pack() {
	var held, healthy capacity.Set
	for at, s := range f.sites {
		if s != nil {
			h, w := f.devicesAt(int32(at))
			f.spaces[at].word = int32(len(held))
			held, healthy = append(held, h...), append(healthy, w...)
		}
	}
	f.held, f.healthy = held, healthy
}

// dropClasses forgets classes that no node has any more.
func (f *Floor) dropClasses() {
	const spare = 64
	if len(f.classes) <= 2*len(f.layout.classes)+spare {
		return
	}
	live := make(map[*class]bool, len(f.layout.classes))
	for _, c := range f.layout.classes {
		live[c] = true
	}
	for key, c := range f.classes {
		if !live[c] {
			delete(f.classes, key)
		}
	}
}

func (f *Floor) newLayout() *layout {
	l := &layout{id: new(byte), index: f.sorted(), posOf: make([]int32, len(f.sites)), words: capacity.WordsFor(len(f.byID))}
	for at := range l.posOf {
		l.posOf[at] = -1
	}
	node := func(at int32) *structs.Node { return f.sites[at].node }
	numbers := make(map[*class]int32)
	l.class = make([]int32, len(l.index))
	depth := 0
	for pos, at := range l.index {
		l.posOf[at] = int32(pos)
		c := f.sites[at].class
		number, known := numbers[c]
		if !known {
			number = int32(len(l.classes))
			numbers[c] = number
			l.classes = append(l.classes, c)
		}
		l.class[pos] = number
		depth = max(depth, len(node(at).Topology))
	}
	l.findDomains(depth, func(pos int) []string { return node(l.index[pos]).Topology })
	l.mu.views = make(map[string]*view)
	return l
}

// sorted lists the nodes in floor order: those of the layout before as they
// stood, the fresh ones between them.
func (f *Floor) sorted() []int32 {
	compare := func(a, b int32) int { return compareNodes(f.sites[a].node, f.sites[b].node) }
	fresh := slices.DeleteFunc(f.fresh, func(at int32) bool { return f.sites[at] == nil })
	slices.SortFunc(fresh, compare)
	fresh = slices.Compact(fresh)
	if f.before == nil {
		return slices.Clone(fresh)
	}
	moved := make([]bool, len(f.sites))
	for _, at := range fresh {
		moved[at] = true
	}
	order := make([]int32, 0, len(f.byID))
	for _, at := range f.before.index {
		if f.sites[at] == nil || moved[at] {
			continue
		}
		for len(fresh) > 0 && compare(fresh[0], at) < 0 {
			order, fresh = append(order, fresh[0]), fresh[1:]
		}
		order = append(order, at)
	}
	return append(order, fresh...)
}

// names returns by position its place in the order of node names; nil when that is
// the position itself. It is worked out when it is first asked for.
func (l *layout) names(f *Floor) []int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.ordered || l.depth() == 0 {
		return l.mu.byName
	}
	l.mu.ordered = true
	order := make([]int32, len(l.index))
	for pos := range order {
		order[pos] = int32(pos)
	}
	node := func(pos int32) *structs.Node { return f.sites[l.index[pos]].node }
	slices.SortFunc(order, func(a, b int32) int { return compareNodeNames(node(a), node(b)) })
	l.mu.byName = make([]int32, len(order))
	for place, pos := range order {
		l.mu.byName[pos] = int32(place)
	}
	if slices.IsSorted(l.mu.byName) {
		l.mu.byName = nil
	}
	return l.mu.byName
}

// findDomains cuts the positions into the places of each level. Nodes that do
// not tell a level stand together in a place of their own there.
func (l *layout) findDomains(depth int, topology func(pos int) []string) {
	n := len(l.index)
	l.domains = make([][]domain, depth+1)
	l.domains[0] = []domain{{lo: 0, hi: n}}
	l.leaf = make([]int32, n)
	var before []string
	for pos := range n {
		path := topology(pos)
		alike := 0 // levels at which it stands with the node before
		for pos > 0 && alike < depth && nameAt(path, alike+1) == nameAt(before, alike+1) {
			alike++
		}
		for level := 1; level <= depth; level++ {
			places := l.domains[level]
			if level <= alike {
				places[len(places)-1].hi = pos + 1
				continue
			}
			l.domains[level] = append(places, domain{lo: pos, hi: pos + 1})
		}
		l.leaf[pos] = int32(len(l.domains[depth]) - 1)
		before = path
	}
	for level := range depth {
		child := 0
		for i := range l.domains[level] {
			outer := &l.domains[level][i]
			outer.childLo = child
			for child < len(l.domains[level+1]) && l.domains[level+1][child].lo < outer.hi {
				child++
			}
			outer.childHi = child
		}
	}
}

// nameAt is the place that a path names at a level, from 1.
func nameAt(path []string, level int) string {
	if level > len(path) {
		return ""
	}
	return path[level-1]
}

// depth is the innermost level of the topology.
func (l *layout) depth() int { return len(l.domains) - 1 }

// list puts a node that takes new work where it is found.
func (f *Floor) list(at int32) {
	sp := &f.spaces[at]
	held, healthy := f.devicesAt(at)
	free := 0
	for i, word := range healthy {
		free += bits.OnesCount64(word &^ held[i])
	}
	sp.devices = uint16(min(free, math.MaxUint16))
	if f.layout == nil || sp.flags&flagOpen == 0 {
		return
	}
	pos := int(f.layout.posOf[at])
	f.levels[sp.level()].add(pos)
	f.raise(pos>>6, sp)
}

// raise lets the bounds of a word of positions cover what a node has free.
func (f *Floor) raise(word int, sp *space) {
	f.mostCPU[word] = max(f.mostCPU[word], sp.cpu)
	f.mostMem[word] = max(f.mostMem[word], sp.memory)
}

// unlist takes a node from where it is found.
func (f *Floor) unlist(at int32) {
	sp := &f.spaces[at]
	if f.layout == nil || sp.flags&flagOpen == 0 {
		return
	}
	pos := int(f.layout.posOf[at])
	f.levels[sp.level()].drop(pos)
	f.loose.Add(pos >> 6)
}

// tighten works the bounds of a word of positions out anew when they may be
// loose: a search that found nothing there calls it.
func (f *Floor) tighten(word int) {
	if !f.loose.Has(word) {
		return
	}
	f.loose.Drop(word)
	f.mostCPU[word], f.mostMem[word] = 0, 0
	for pos := word << 6; pos < min((word+1)<<6, len(f.layout.index)); pos++ {
		if sp := &f.spaces[f.layout.index[pos]]; sp.flags&flagOpen != 0 {
			f.raise(word, sp)
		}
	}
}

// nodeAt is the node at a position.
func (f *Floor) nodeAt(pos int32) *structs.Node { return f.sites[f.layout.index[pos]].node }
