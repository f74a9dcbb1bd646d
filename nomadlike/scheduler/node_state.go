package scheduler

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// nodeState is what the board itself keeps of a node, by its floor index: enough to
// tell quickly that a rank has no room, and when it will have some. Who may
// stand where exactly is the floor's answer.
type nodeState struct {
	node         *structs.Node // nil: no node has this index
	build        int32         // how it is built, an index of builds
	partition    int32         // of its pool
	shut         bool          // takes no new work, whatever is free: overcommitted
	seats        int32         // first record of the seats on it, -1: none
	reservation  int32         // that it belongs to + 1, an index of promises.reservations
	rank         int32         // its place in that reservation
	place        int32         // among all nodes, by node id
	nominatedFor string        // subjob it is nominated for
}

// occupant is one seat of a gang on a node; those of a node form a list.
type occupant struct {
	entry int32
	rank  int32
	next  int32 // -1: the last
}

// build is what nodes have in common that differ only in name, place, and what
// they hold. Whether a rank could ever stand on a node is asked once for a build.
type build struct {
	node  *structs.Node   // one of them
	full  capacity.Amount // when empty
	mixed bool            // its devices are not all alike
}

// builds is the registry of builds; boards share it with their clones until
// one meets a new build.
type builds struct {
	byKey  map[string]int32
	list   []build
	shared bool
}

func (r *builds) of(node *structs.Node) int32 {
	key := buildKey(node)
	if id, ok := r.byKey[key]; ok {
		return id
	}
	if r.shared {
		byKey := make(map[string]int32, len(r.byKey)+1)
		for k, id := range r.byKey {
			byKey[k] = id
		}
		r.byKey, r.list, r.shared = byKey, slices.Clone(r.list), false
	}
	made := build{node: node, full: node.Free(nil)}
	for i := range node.Devices {
		d := &node.Devices[i]
		if first := &node.Devices[0]; d.Kind != first.Kind || d.Model != first.Model || d.Memory != first.Memory {
			made.mixed = true
		}
	}
	id := int32(len(r.list))
	r.byKey[key] = id
	r.list = append(r.list, made)
	return id
}

// buildKey writes all of a node that decides whether a rank could stand on it
// when it is empty, but for names.
func buildKey(node *structs.Node) string {
	b := make([]byte, 0, 256)
	text := func(s string) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
	}
	number := func(n int64) {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
	}
	text(node.PoolName())
	if node.Schedulable() {
		b = append(b, '!')
	}
	if node.RDMA {
		b = append(b, 'r')
	}
	if node.Raw {
		b = append(b, 'w')
	}
	number(structs.MilliCPU(node.Capacity.CPU))
	number(node.Capacity.Memory)
	number(int64(node.Capacity.PortMin))
	number(int64(node.Capacity.PortMax))
	number(int64(len(node.Drivers)))
	for _, driver := range node.Drivers {
		text(driver)
		text(node.Attributes[structs.AttrMasks(driver)])
	}
	text(node.Attributes[structs.AttrProtocol])
	number(int64(len(node.Storages)))
	for _, storage := range node.Storages {
		text(storage)
	}
	for i := range node.Devices {
		d := &node.Devices[i]
		if d.Healthy {
			b = append(b, '+')
		}
		text(d.Kind)
		text(d.Model)
		text(d.Driver)
		number(d.Memory)
	}
	return string(b)
}

// able reports whether a rank could stand on a node if nothing used anything
// there, and it was nominated for nobody.
func (ns *nodes) able(n *need, at int32) bool {
	s := &ns.states[at]
	if s.node == nil {
		return false
	}
	if n.Names() != nil { // the answer is the node's, not the build's
		return slices.ContainsFunc(n.Names(), s.called) && ns.could(n, s.node)
	}
	if int(s.build) >= ns.ableWidth || (int(n.at)+1)*ns.ableWidth > len(ns.ableCells) {
		ns.widenAble(int(n.at) + 1)
	}
	cell := &ns.ableCells[int(n.at)*ns.ableWidth+int(s.build)]
	if *cell == 0 {
		*cell = 2
		if ns.could(n, s.node) {
			*cell = 1
		}
	}
	return *cell == 1
}

// called reports whether a node has a name or id.
func (s *nodeState) called(name string) bool { return name == s.node.Name || name == s.node.ID }

// could asks feasibility whether a rank could stand on the node if it were
// empty.
func (ns *nodes) could(n *need, node *structs.Node) bool {
	return ns.couldRun(n, n.Spec(), node)
}

// couldRun is could for a rank that gets spec.
func (ns *nodes) couldRun(n *need, spec structs.Resources, node *structs.Node) bool {
	return feasible.CouldRun(n.job, spec, node, ns.floor.Pool(node.PoolName()))
}

// widenAble makes the table of what builds can run large enough for some more
// than rows, and forgets what it knew.
func (ns *nodes) widenAble(rows int) {
	for ns.ableWidth = max(ns.ableWidth, 8); ns.ableWidth <= len(ns.builds.list); {
		ns.ableWidth *= 2
	}
	ns.ableCells = make([]int8, ns.ableWidth*(rows+64))
}

// rankOn is what a rank takes of a node.
func (ns *nodes) rankOn(n *need, at int32) capacity.Amount {
	rank := n.rank
	if n.all {
		rank.Devices = max(rank.Devices, ns.builds.list[ns.states[at].build].full.Devices)
	}
	return rank
}

// roomFor reports whether a rank seems to have room on a node now: false is
// certain, true is not, because kinds of devices and ports are not looked at.
func (ns *nodes) roomFor(n *need, vip bool, at int32) bool {
	s := &ns.states[at]
	return !s.shut && ns.rankOn(n, at).Fits(ns.room(at)) && !(vip && ns.floor.Allocs(int(at)) > 0) && ns.able(n, at)
}

// room is what is free on a node now.
func (ns *nodes) room(at int32) capacity.Amount { return ns.floor.Free(int(at)) }

// open reports whether a node is nominated for nobody else.
func (s *nodeState) open(key string) bool { return s.nominatedFor == "" || s.nominatedFor == key }

// putState brings a node up to date with its node on the floor. It had room before,
// and had as many allocations.
func (b *Board) putState(at int32, node *structs.Node, usage *structs.Usage, room capacity.Amount, allocs int) {
	for int(at) >= len(b.nodes.states) {
		b.nodes.states = append(b.nodes.states, nodeState{seats: -1})
	}
	s := &b.nodes.states[at]
	before := *s
	if s.node != node {
		b.nodes.countWindows(s.node, node)
		s.node = node
		s.build = b.nodes.builds.of(node)
		s.partition = b.queue.partitionOf(node.PoolName()).id
		b.nodes.built++
		if before.node == nil || before.partition != s.partition {
			b.nodes.listed = false
			if before.node != nil {
				b.queue.soil(before.partition)
			}
		}
	}
	s.nominatedFor, s.shut = "", false
	if usage != nil {
		s.nominatedFor, s.shut = usage.NominatedFor, usage.Overcommitted
	}
	b.touch(at)
	if before.node == nil || before.build != s.build || !b.nodes.room(at).Fits(room) || before.shut && !s.shut ||
		before.nominatedFor != s.nominatedFor || b.nodes.floor.Allocs(int(at)) < allocs {
		b.nodes.gain(at)
	}
}

// touch notes that something about a node changed: its room, its seats, or when
// they are expected to be free.
func (b *Board) touch(at int32) {
	if len(b.nodes.touches) >= touchesMax {
		b.nodes.forgetTouches()
	}
	b.nodes.touches = append(b.nodes.touches, at)
	b.changes++
	b.queue.soil(b.nodes.states[at].partition)
}

// touchesMax bounds the touches that are remembered; a reader that looked before the
// oldest of them looks at every node again.
const touchesMax = 1 << 14

func (ns *nodes) forgetTouches() {
	ns.touchesFrom += len(ns.touches) + 1
	ns.touches = nil
}

// soil marks the partition queues that a change of a pool's nodes may concern.
func (q *queue) soil(partition int32) {
	q.partitions[partition].dirty, q.partitions[partition].stale = true, true
	q.partitions[q.common].dirty, q.partitions[q.common].stale = true, true
}

// gain notes that a node may have room for more than before.
func (ns *nodes) gain(at int32) {
	if len(ns.gains) >= gainsMax {
		ns.gainsFrom += len(ns.gains)
		ns.gains = ns.gains[:0:0]
	}
	ns.gains = append(ns.gains, at)
}

// gainsMax bounds the gains that are remembered; a reader that looked before the oldest
// of them looks at everything again.
const gainsMax = 4096

// mark is the place in the list of gains that a look taken now has seen.
func (ns *nodes) mark() int { return ns.gainsFrom + len(ns.gains) }

// gained reports whether some node came to have room for a rank of the shape
// since a look at mark.
func (ns *nodes) gained(sh *shape, mark int) bool {
	if mark < ns.gainsFrom {
		return true
	}
	for _, at := range ns.gains[mark-ns.gainsFrom:] {
		for i := range sh.needs {
			if ns.states[at].node != nil && ns.roomFor(&sh.needs[i], sh.vip != nil, at) {
				return true
			}
		}
	}
	return false
}

// forgetGains makes everybody look at everything again.
func (ns *nodes) forgetGains() {
	ns.gainsFrom += len(ns.gains) + 1
	ns.gains = nil
}

// listNodes lists the nodes of each partition queue, and those of each name, anew if nodes
// came, went or changed pools.
func (ns *nodes) listNodes() {
	if ns.listed {
		return
	}
	ns.listed, ns.byName = true, nil
	ns.every = make([]int32, 0, len(ns.states))
	for at := range ns.states {
		if ns.states[at].node != nil {
			ns.every = append(ns.every, int32(at))
		}
	}
	// By id: indexes depend on the order in which nodes came to this board.
	slices.SortFunc(ns.every, func(x, y int32) int { return strings.Compare(ns.states[x].node.ID, ns.states[y].node.ID) })
	ns.byPartition = nil
	for place, at := range ns.every {
		s := &ns.states[at]
		s.place = int32(place)
		for len(ns.byPartition) <= int(s.partition) {
			ns.byPartition = append(ns.byPartition, nil)
		}
		ns.byPartition[s.partition] = append(ns.byPartition[s.partition], at)
	}
}

// candidates lists the nodes on which a shape may stand at all, as far as names
// and pools tell.
func (ns *nodes) candidates(sh *shape, partition int32) []int32 {
	ns.listNodes()
	switch {
	case sh.named != nil:
		return ns.namedNodes(sh.named)
	case sh.pool == "":
		return ns.every
	case int(partition) < len(ns.byPartition):
		return ns.byPartition[partition]
	}
	return nil
}

// namedNodes lists the nodes with one of the names or ids, each once.
func (ns *nodes) namedNodes(names []string) []int32 {
	if ns.byName == nil {
		ns.byName = make(map[string][]int32, 2*len(ns.every))
		for _, at := range ns.every {
			node := ns.states[at].node
			ns.byName[node.ID] = append(ns.byName[node.ID], at)
			if node.Name != node.ID {
				ns.byName[node.Name] = append(ns.byName[node.Name], at)
			}
		}
	}
	var nodes []int32
	for _, name := range names {
		for _, at := range ns.byName[name] {
			if !slices.Contains(nodes, at) {
				nodes = append(nodes, at)
			}
		}
	}
	return nodes
}

// never is a time that does not come.
const never = structs.UnixNano(math.MaxInt64)
