package placement

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Fit is the way in which nodes are preferred.
type Fit uint8

// The fits.
const (
	// FitJob is Pack or Spread, as the job's placement says.
	FitJob Fit = iota
	// Pack keeps a gang within the closest topology and takes the fullest nodes.
	Pack
	// Spread parts a gang over the innermost places of the topology and takes the
	// emptiest nodes of each.
	Spread
	// Consolidate places a gang of several nodes on those that run nothing, by name,
	// and its last rank, when that gets fewer devices, on the next of these or else
	// on the node with the most free devices that fits. A gang of one node gets the
	// fullest that fits, the first by name among equals.
	Consolidate
)

// Options narrow a choice.
type Options struct {
	Fit       Fit
	PortStart uint64               // where the search for dynamic ports begins, see feasible.ChoosePorts
	Nominee   string               // structs.SubjobKey that may stand on nodes nominated for it
	Avoid     func(index int) bool // nodes not to take; nil: none
	Prefer    func(index int) int  // nodes with more come first, but not in Consolidate; nil: all are equal
}

// of fills in what the options leave to the job.
func (o Options) of(need *Need) Options {
	if o.Fit == FitJob {
		o.Fit = Pack
		if need.job.Placement.SpreadOrPack == structs.Spread {
			o.Fit = Spread
		}
	}
	if o.Fit == Consolidate {
		o.Prefer = nil
	}
	return o
}

// Choose finds nodes, devices and ports for count ranks, or false when there is
// no way to place them now. The floor is left as it is. Ranks stand in floor
// order (topology, then name), or as the job names its nodes; rank 0 is the
// first of them that has the ports of rank 0, and the last rank of a whole gang
// may get fewer devices.
//
// Pack: all within one innermost place of the topology if one has room for all,
// the one where the fewest nodes have enough free devices; else within one of
// the next larger places, the one in which the gang crosses the fewest inner
// places, and there across as few as possible, and so on outwards. Within a
// place the nodes with the fewest free devices come first. Among equals the
// first in floor order wins.
func (f *Floor) Choose(need *Need, count int, options Options) ([]structs.RankPlacement, bool) {
	seats, ok := f.Pick(need, count, options)
	if !ok {
		return nil, false
	}
	return f.Placements(seats), true
}

// Pick is Choose in the floor's own terms, by rank.
func (f *Floor) Pick(need *Need, count int, options Options) ([]Seat, bool) {
	if count < 1 || count > len(f.byID) {
		return nil, false
	}
	f.scratch.options = options.of(need)
	if count == 1 {
		need = need.of(0, 1)
		q := f.query(need, &need.head, &f.scratch.options)
		pos, ok := q.one()
		if !ok {
			return nil, false
		}
		return []Seat{f.seatAt(&q, pos)}, true
	}
	q := f.query(need, &need.ports, &f.scratch.options)
	g := gang{query: q, count: count, full: count}
	if last := need.of(count-1, count); last != need {
		small := f.query(last, &last.ports, &f.scratch.options)
		g.last, g.full = &small, count-1
	}
	if !need.spec.RDMA {
		return g.choose()
	}
	for i := range q.view.pools {
		if g.within(i) {
			if seats, ok := g.choose(); ok {
				return seats, true
			}
		}
	}
	return nil, false
}

// one finds the best position for a gang of one node.
func (q *query) one() (int32, bool) {
	n := len(q.f.layout.index)
	list := q.f.scratch.positions[:0]
	q.emptier = q.options.Fit == Spread
	switch {
	case q.view.named != nil:
		for _, pos := range q.named() {
			if q.fits(pos) {
				return pos, true
			}
		}
	case q.options.Fit == Consolidate && q.f.layout.names(q.f) != nil:
		for level := q.need.level; level < len(q.f.levels) && len(list) == 0; level++ {
			list = q.gatherLevel(list, level, 0, n, n)
		}
		slices.SortFunc(list, q.byName())
	default:
		list = q.take(list, 0, n, 1)
	}
	q.f.scratch.positions = list
	if len(list) == 0 {
		return 0, false
	}
	return list[0], true
}

// named are the positions of the nodes that the job names, in its order, those
// that the options prefer first: one where it could not be started comes last.
func (q *query) named() []int32 {
	if q.options.Prefer == nil || q.need.job.VIP != nil {
		return q.view.named
	}
	index := q.f.layout.index
	return slices.SortedStableFunc(slices.Values(q.view.named), func(a, b int32) int {
		return cmp.Compare(q.options.Prefer(int(index[b])), q.options.Prefer(int(index[a])))
	})
}

// byName compares positions by the names of their nodes.
func (q *query) byName() func(a, b int32) int {
	names := q.f.layout.names(q.f)
	if names == nil {
		return cmp.Compare[int32]
	}
	return func(a, b int32) int { return cmp.Compare(names[a], names[b]) }
}

// gang is the search for nodes of a gang of several.
type gang struct {
	query
	count int
	full  int    // ranks of query.need: count, or one less
	last  *query // for the last rank, when that needs less; nil: as the others
}

// within narrows the search to a pool; false when it has nothing for the last
// rank.
func (g *gang) within(pool int) bool {
	g.open = g.view.pools[pool]
	if g.last == nil {
		return true
	}
	class := func(q *query, pool int) string {
		first := q.view.pools[pool].Members()[0]
		return q.f.layout.classes[q.f.layout.class[first]].node.Pool
	}
	for i := range g.last.view.pools {
		if class(g.last, i) == class(&g.query, pool) {
			g.last.open = g.last.view.pools[i]
			return true
		}
	}
	return false
}

// choose finds nodes for all ranks, assigns them their ranks, and chooses ports
// and devices.
func (g *gang) choose() ([]Seat, bool) {
	team, last, ok := g.team()
	if !ok {
		return nil, false
	}
	if g.view.named == nil && g.options.Fit != Consolidate {
		slices.Sort(team)
	}
	if !g.putHeadFirst(team) {
		if team, last, ok = g.teamWithHead(); !ok {
			return nil, false
		}
	}
	seats := make([]Seat, 0, g.count)
	for rank, pos := range team {
		q := g.query
		if rank == 0 {
			q.ports = &g.need.head
		}
		seats = append(seats, g.f.seatAt(&q, pos))
	}
	if g.last != nil {
		seats = append(seats, g.f.seatAt(g.last, last))
	}
	return seats, true
}

// team finds positions for the full ranks, and for the last when it is another.
func (g *gang) team() (team []int32, last int32, ok bool) {
	switch {
	case g.view.named != nil:
		return g.named()
	case g.options.Fit == Consolidate:
		return g.consolidate()
	case g.options.Fit == Spread:
		return g.spread()
	}
	return g.pack()
}

// headFits reports whether the node at a position has the ports of rank 0.
func (g *gang) headFits(pos int32) bool {
	at := g.f.layout.index[pos]
	return len(g.need.head.requests) == len(g.need.ports.requests) || g.need.head.fits(g.f.sites[at].node, g.f.ports[at])
}

// putHeadFirst makes the first position that has the ports of rank 0 the first
// of all; false when none has.
func (g *gang) putHeadFirst(team []int32) bool {
	at := slices.IndexFunc(team, g.headFits)
	if at < 0 {
		return false
	}
	front := team[at]
	copy(team[1:at+1], team[:at])
	team[0] = front
	return true
}

// teamWithHead is for the rare gang whose best nodes all lack the ports of rank
// 0: it looks for a first node that has them, and takes the others by preference
// alone.
func (g *gang) teamWithHead() (team []int32, last int32, ok bool) {
	fits := g.view.named
	if fits == nil {
		n := len(g.f.layout.index)
		fits = g.take(nil, 0, n, n)
	} else {
		fits = slices.DeleteFunc(slices.Clone(fits), func(pos int32) bool { return !g.open.Has(int(pos)) || !g.fits(pos) })
	}
	at := slices.IndexFunc(fits, g.headFits)
	if at < 0 || len(fits) < g.full {
		return nil, 0, false
	}
	head := fits[at]
	rest := slices.Delete(fits, at, at+1)[:g.full-1]
	if g.view.named == nil {
		slices.Sort(rest)
	}
	team = append([]int32{head}, rest...)
	if g.last == nil {
		return team, 0, true
	}
	last, ok = g.bestLast(team, 0, len(g.f.layout.index))
	return team, last, ok
}

// bestLast finds the best position for the last rank from lo to below hi, apart
// from the team: as the job names it, or by preference, and where gangs are
// packed in one of the team's innermost places if possible.
func (g *gang) bestLast(team []int32, lo, hi int) (int32, bool) {
	if g.view.named != nil {
		for _, pos := range g.last.view.named {
			if g.last.open.Has(int(pos)) && !slices.Contains(team, pos) && g.last.fits(pos) {
				return pos, true
			}
		}
		return 0, false
	}
	if g.options.Fit == Consolidate {
		return g.idleLast(team)
	}
	leaf := g.f.layout.leaf
	used := make(map[int32]bool)
	for _, pos := range team {
		used[leaf[pos]] = true
	}
	best, found, taken := int32(0), false, g.taken(team)
	for _, pos := range g.last.take(nil, lo, hi, hi-lo) {
		if taken.Has(int(pos)) {
			continue
		}
		if used[leaf[pos]] || g.options.Fit != Pack {
			return pos, true
		}
		if !found {
			best, found = pos, true
		}
	}
	return best, found
}

// taken is the team as a set.
func (g *gang) taken(team []int32) capacity.Set {
	set := make(capacity.Set, g.f.layout.words)
	for _, pos := range team {
		set.Add(int(pos))
	}
	return set
}

// named takes the first nodes that fit in the order in which the job names them.
func (g *gang) named() (team []int32, last int32, ok bool) {
	for _, pos := range g.view.named {
		if len(team) < g.full && g.open.Has(int(pos)) && g.fits(pos) {
			team = append(team, pos)
		}
	}
	if ok = len(team) == g.full; ok && g.last != nil {
		last, ok = g.bestLast(team, 0, 0)
	}
	return team, last, ok
}

// consolidate takes nodes that hold nothing, by name.
func (g *gang) consolidate() (team []int32, last int32, ok bool) {
	team = g.idle(&g.query)
	if len(team) < g.full {
		return nil, 0, false
	}
	team = team[:g.full]
	if g.last == nil {
		return team, 0, true
	}
	last, ok = g.idleLast(team)
	return team, last, ok
}

// idleLast finds for the last rank, apart from the team, the first node by name
// that holds nothing, or else the one with the most free devices.
func (g *gang) idleLast(team []int32) (last int32, found bool) {
	taken := g.taken(team)
	for _, pos := range g.idle(g.last) {
		if !taken.Has(int(pos)) {
			return pos, true
		}
	}
	n, byName := len(g.f.layout.index), g.byName()
	for _, pos := range g.last.gather(nil, 0, n, n) {
		if taken.Has(int(pos)) {
			continue
		}
		if c := cmp.Compare(g.levelAt(pos), g.levelAt(last)); !found || c > 0 || c == 0 && byName(pos, last) < 0 {
			last, found = pos, true
		}
	}
	return last, found
}

// idle lists the positions that fit and hold nothing, by name; of the first
// g.count of them all that one search can need.
func (g *gang) idle(q *query) []int32 {
	l := q.f.layout
	var list []int32
	for _, pos := range q.near(0, len(l.index)).Members() {
		if q.f.spaces[l.index[pos]].allocs == 0 && q.fits(pos) {
			list = append(list, pos)
			if len(list) == g.count && l.names(g.f) == nil {
				break
			}
		}
	}
	slices.SortFunc(list, g.byName())
	return list[:min(len(list), g.count)]
}

// spread takes the emptiest node of each innermost place, then the next of each.
func (g *gang) spread() (team []int32, last int32, ok bool) {
	l := g.f.layout
	g.emptier = true
	if g.last != nil {
		g.last.emptier = true
	}
	fits := g.gather(nil, 0, len(l.index), len(l.index))
	slices.SortFunc(fits, g.better)
	turn := make(map[int32]int, len(fits)) // of a position within its place
	next := make(map[int32]int)
	for _, pos := range fits {
		turn[pos] = next[l.leaf[pos]]
		next[l.leaf[pos]]++
	}
	slices.SortStableFunc(fits, func(a, b int32) int { return cmp.Compare(turn[a], turn[b]) })
	if len(fits) < g.full {
		return nil, 0, false
	}
	team = fits[:g.full:g.full]
	if g.last != nil {
		last, ok = g.bestLast(team, 0, len(l.index))
		return team, last, ok
	}
	return team, 0, true
}

// seatAt takes what a rank needs of a node that fits it.
func (f *Floor) seatAt(q *query, pos int32) Seat {
	at := q.f.layout.index[pos]
	site := f.sites[at]
	seat := Seat{index: at, amount: q.need.amount, plan: q.ports, ports: q.ports.choose(site.node, f.ports[at], q.options.PortStart)}
	if q.need.level > 0 {
		held, healthy := f.devicesAt(at)
		devices, _ := site.class.choose(&f.scratch.devices, q.view.matchAt(f.layout, pos), held, healthy)
		seat.setDevices(devices)
	}
	return seat
}

// Fits counts the nodes that have room for a rank now, up to limit. For gangs
// with RDMA it counts those of the pool that has the most.
func (f *Floor) Fits(need *Need, limit int, options Options) int {
	f.scratch.options = options.of(need)
	q := f.query(need, &need.ports, &f.scratch.options)
	n := len(q.f.layout.index)
	if !need.spec.RDMA {
		f.scratch.positions = q.gather(f.scratch.positions[:0], 0, n, limit)
		return len(f.scratch.positions)
	}
	most := 0
	for _, open := range q.view.pools {
		q.open = open
		f.scratch.positions = q.gather(f.scratch.positions[:0], 0, n, limit)
		most = max(most, len(f.scratch.positions))
	}
	return most
}
