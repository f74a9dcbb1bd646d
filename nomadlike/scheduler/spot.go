package scheduler

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// spot is what the board itself keeps of a node, by its floor index: enough to
// tell quickly that a rank has no room, and when it will have some. Who may
// stand where exactly is the floor's answer.
type spot struct {
	node  *structs.Node // nil: no node has this index
	build int32         // how it is built, an index of builds
	lane  int32         // of its pool
	shut  bool          // takes no new work, whatever is free: overcommitted
	seats int32         // first record of the seats on it, -1: none
	kept  int32         // reservation that keeps it + 1, an index of Board.kept
	rank  int32         // its place in that reservation
	place int32         // among all spots, by node id
	claim string        // subjob that has been promised it
}

// stay is one seat of a gang on a spot; those of a spot form a list.
type stay struct {
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
	}
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

// able reports whether a rank could stand on a spot if nothing held anything
// there, and nobody had been promised it.
func (b *Board) able(n *need, at int32) bool {
	s := &b.spots[at]
	if s.node == nil {
		return false
	}
	if n.Names() != nil { // the answer is the node's, not the build's
		return slices.ContainsFunc(n.Names(), s.called) && b.could(n, s.node)
	}
	if int(s.build) >= b.ableWidth || (int(n.at)+1)*b.ableWidth > len(b.ableCells) {
		b.widenAble()
	}
	cell := &b.ableCells[int(n.at)*b.ableWidth+int(s.build)]
	if *cell == 0 {
		*cell = 2
		if b.could(n, s.node) {
			*cell = 1
		}
	}
	return *cell == 1
}

func (s *spot) called(name string) bool { return name == s.node.Name || name == s.node.ID }

// could asks feasibility whether a rank could stand on the node if it were
// empty.
func (b *Board) could(n *need, node *structs.Node) bool {
	return b.couldHold(n, n.Spec(), node)
}

// couldHold is could for a rank that gets spec.
func (b *Board) couldHold(n *need, spec structs.Resources, node *structs.Node) bool {
	if !node.Schedulable() || structs.NodeProblem(n.job, node) != nil || structs.SpecProblem(n.job, spec, node) != nil ||
		structs.PoolProblem(n.job, spec, node, b.floor.Pool(node.PoolName())) != nil || structs.RoomProblem(node, nil, spec) != nil {
		return false
	}
	_, devicesOK := structs.ChooseDevices(node, nil, spec.Devices)
	_, portsOK := structs.ChoosePorts(node, nil, n.job.PortRequests(spec, 1), 0)
	return devicesOK && portsOK
}

// widenAble makes the table of what builds can hold large enough, and forgets
// what it knew.
func (b *Board) widenAble() {
	for b.ableWidth = max(b.ableWidth, 8); b.ableWidth <= len(b.builds.list); {
		b.ableWidth *= 2
	}
	b.ableCells = make([]int8, b.ableWidth*(int(b.shapes.needs)+64))
}

// rankOn is what a rank takes of a spot.
func (b *Board) rankOn(n *need, at int32) capacity.Amount {
	rank := n.rank
	if n.all {
		rank.Devices = max(rank.Devices, b.builds.list[b.spots[at].build].full.Devices)
	}
	return rank
}

// roomFor reports whether a rank seems to have room on a spot now: false is
// certain, true is not, because kinds of devices and ports are not looked at.
func (b *Board) roomFor(n *need, vip bool, at int32) bool {
	s := &b.spots[at]
	return !s.shut && b.rankOn(n, at).Fits(b.room(at)) && !(vip && b.floor.Allocs(int(at)) > 0) && b.able(n, at)
}

// room is what is free on a spot now.
func (b *Board) room(at int32) capacity.Amount { return b.floor.Free(int(at)) }

// open reports whether a spot has been promised to nobody else.
func (s *spot) open(key string) bool { return s.claim == "" || s.claim == key }

// putSpot brings a spot up to date with its node on the floor. It had room before,
// and held as many allocations.
func (b *Board) putSpot(at int32, node *structs.Node, usage *structs.Usage, room capacity.Amount, allocs int) {
	for int(at) >= len(b.spots) {
		b.spots = append(b.spots, spot{seats: -1})
	}
	s := &b.spots[at]
	before := *s
	if s.node != node {
		s.node = node
		s.build = b.builds.of(node)
		s.lane = b.laneOf(node.PoolName()).id
		b.built++
		if before.node == nil || before.lane != s.lane {
			b.listed = false
			if before.node != nil {
				b.soil(before.lane)
			}
		}
	}
	s.claim, s.shut = "", false
	if usage != nil {
		s.claim, s.shut = usage.Claim, usage.Overcommitted
	}
	b.touch(at)
	if before.node == nil || before.build != s.build || !b.room(at).Fits(room) || before.shut && !s.shut ||
		before.claim != s.claim || b.floor.Allocs(int(at)) < allocs {
		b.gain(at)
	}
}

// touch notes that something about a spot changed: its room, its seats, or when
// they are expected to be free.
func (b *Board) touch(at int32) {
	if len(b.touches) >= touchesMax {
		b.forgetTouches()
	}
	b.touches = append(b.touches, at)
	b.changes++
	b.soil(b.spots[at].lane)
}

// touchesMax bounds the touches that are remembered; who looked before the
// oldest of them looks at every spot again.
const touchesMax = 1 << 14

func (b *Board) forgetTouches() {
	b.touchesFrom += len(b.touches) + 1
	b.touches = nil
}

// soil marks the lanes that a change of a pool's nodes may concern.
func (b *Board) soil(lane int32) {
	b.lanes[lane].dirty, b.lanes[lane].stale = true, true
	b.lanes[b.common].dirty, b.lanes[b.common].stale = true, true
}

// gain notes that a spot may have room for more than before.
func (b *Board) gain(at int32) {
	if len(b.gains) >= gainsMax {
		b.gainsFrom += len(b.gains)
		b.gains = b.gains[:0:0]
	}
	b.gains = append(b.gains, at)
}

// gainsMax bounds the gains that are remembered; who looked before the oldest
// of them looks at everything again.
const gainsMax = 4096

// mark is the place in the list of gains that a look taken now has seen.
func (b *Board) mark() int { return b.gainsFrom + len(b.gains) }

// gained reports whether some spot came to have room for a rank of the shape
// since a look at mark.
func (b *Board) gained(sh *shape, mark int) bool {
	if mark < b.gainsFrom {
		return true
	}
	for _, at := range b.gains[mark-b.gainsFrom:] {
		for i := range sh.needs {
			if b.spots[at].node != nil && b.roomFor(&sh.needs[i], sh.vip != nil, at) {
				return true
			}
		}
	}
	return false
}

// forgetGains makes everybody look at everything again.
func (b *Board) forgetGains() {
	b.gainsFrom += len(b.gains) + 1
	b.gains = nil
}

// listNodes lists the spots of each lane, and those of each name, anew if nodes
// came, went or changed pools.
func (b *Board) listNodes() {
	if b.listed {
		return
	}
	b.listed, b.byName = true, nil
	b.every = make([]int32, 0, len(b.spots))
	for at := range b.spots {
		if b.spots[at].node != nil {
			b.every = append(b.every, int32(at))
		}
	}
	// By id: indexes depend on the order in which nodes came to this board.
	slices.SortFunc(b.every, func(x, y int32) int { return strings.Compare(b.spots[x].node.ID, b.spots[y].node.ID) })
	for i := range b.lanes {
		b.lanes[i].nodes = nil
	}
	for place, at := range b.every {
		s := &b.spots[at]
		s.place = int32(place)
		l := &b.lanes[s.lane]
		l.nodes = append(l.nodes, at)
	}
}

// candidates lists the spots on which a shape may stand at all, as far as names
// and pools tell.
func (b *Board) candidates(sh *shape, l *lane) []int32 {
	b.listNodes()
	switch {
	case sh.named != nil:
		return b.namedSpots(sh.named)
	case l.id == b.common && sh.pool == "":
		return b.every
	}
	return l.nodes
}

// namedSpots gives the spots of nodes with one of the names or ids, each once.
func (b *Board) namedSpots(names []string) []int32 {
	if b.byName == nil {
		b.byName = make(map[string][]int32, 2*len(b.every))
		for _, at := range b.every {
			node := b.spots[at].node
			b.byName[node.ID] = append(b.byName[node.ID], at)
			if node.Name != node.ID {
				b.byName[node.Name] = append(b.byName[node.Name], at)
			}
		}
	}
	var spots []int32
	for _, name := range names {
		for _, at := range b.byName[name] {
			if !slices.Contains(spots, at) {
				spots = append(spots, at)
			}
		}
	}
	return spots
}

// never is a time that does not come.
const never = structs.UnixNano(math.MaxInt64)
