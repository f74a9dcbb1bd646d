package placement

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// twin does what Floor does in the slowest and plainest way: it keeps the nouns
// as they are, tries nodes one by one through the feasibility of structs, and
// sorts lists.
type twin struct {
	nodes map[string]*structs.Node
	usage map[string]*structs.Usage // nil: nothing held
	pools map[string]*structs.Pool
	near  func(*structs.Node) bool // has enough free devices for the rank at hand, whatever else it lacks
}

func (t *twin) Node(id string) (*structs.Node, *structs.Usage) { return t.nodes[id], t.usage[id] }
func (t *twin) Pool(name string) *structs.Pool                 { return t.pools[name] }
func (t *twin) Project(string) *structs.Project                { return nil }
func (t *twin) ProjectUsage(string) *structs.ProjectUsage      { return nil }

// twinOptions are Options in terms of node ids.
type twinOptions struct {
	fit     Fit
	start   uint64
	nominee string
	avoid   map[string]bool
	prefer  map[string]int // nil: all are equal
}

// sorted lists the nodes in floor order.
func (t *twin) sorted() []*structs.Node {
	var nodes []*structs.Node
	for _, node := range t.nodes {
		nodes = append(nodes, node)
	}
	slices.SortFunc(nodes, compareNodes)
	return nodes
}

// rank places one rank on a node, or says that there is no room.
func (t *twin) rank(job *structs.Job, node *structs.Node, spec structs.Resources, rank int, o twinOptions) (structs.RankPlacement, bool) {
	usage := t.usage[node.ID]
	devices, devicesOK := feasible.ChooseDevices(node, usage, spec.Devices)
	ports, portsOK := feasible.ChoosePorts(node, usage, job.PortRequests(spec, rank), o.start)
	placement := structs.RankPlacement{NodeID: node.ID, Devices: devices, Ports: ports}
	ok := devicesOK && portsOK && !o.avoid[node.ID] && (usage == nil || usage.NominatedFor == "" || usage.NominatedFor == o.nominee) &&
		feasible.PoolProblem(job, spec, node, t.pools[node.PoolName()]) == nil && feasible.AgentProblem(job, node) == nil &&
		feasible.PlacementProblem(job, node, usage, spec, rank, &placement) == nil
	return placement, ok
}

// fitting lists the nodes with room for such a rank, in floor order or as named.
func (t *twin) fitting(job *structs.Job, spec structs.Resources, rank int, pool string, o twinOptions) []*structs.Node {
	var fits []*structs.Node
	for _, node := range t.sorted() {
		if _, ok := t.rank(job, node, spec, rank, o); ok && (pool == "" || node.PoolName() == pool) {
			fits = append(fits, node)
		}
	}
	if names := namesOf(job); names != nil {
		at := func(n *structs.Node) int {
			return slices.IndexFunc(names, func(name string) bool { return name == n.Name || name == n.ID })
		}
		slices.SortStableFunc(fits, func(a, b *structs.Node) int { return cmp.Compare(at(a), at(b)) })
	}
	return fits
}

func namesOf(job *structs.Job) []string {
	var names []string
	if job.VIP != nil {
		for _, m := range job.VIP.Machines {
			names = append(names, m.Node)
		}
		return names
	}
	return job.Placement.Nodes
}

func (t *twin) free(node *structs.Node) int {
	n := 0
	for _, d := range node.Devices {
		held := false
		if u := t.usage[node.ID]; u != nil {
			_, held = u.Devices[d.ID]
		}
		if d.Healthy && !held {
			n++
		}
	}
	return n
}

func (t *twin) idle(node *structs.Node) bool {
	return t.usage[node.ID] == nil || t.usage[node.ID].Allocs == 0
}

// preferred sorts nodes by preference: fullest first, or emptiest.
func (t *twin) preferred(nodes []*structs.Node, emptiest bool, o twinOptions) []*structs.Node {
	sorted := slices.Clone(nodes)
	slices.SortStableFunc(sorted, func(a, b *structs.Node) int {
		c := cmp.Compare(t.free(a), t.free(b))
		if emptiest {
			c = -c
		}
		return cmp.Or(cmp.Compare(o.prefer[b.ID], o.prefer[a.ID]), c)
	})
	return sorted
}

// choose is Floor.Choose.
func (t *twin) choose(job *structs.Job, index, count int, o twinOptions) ([]structs.RankPlacement, bool) {
	if o.fit == FitJob {
		o.fit = Pack
		if job.Placement.SpreadOrPack == structs.Spread {
			o.fit = Spread
		}
	}
	if o.fit == Consolidate {
		o.prefer = nil
	}
	pools := []string{""}
	if job.SpecAt(index).RDMA && count > 1 {
		pools = nil
		for _, node := range t.sorted() {
			if !slices.Contains(pools, node.PoolName()) {
				pools = append(pools, node.PoolName())
			}
		}
		slices.SortFunc(pools, structs.CompareNames)
	}
	for _, pool := range pools {
		if placed, ok := t.chooseIn(job, index, count, pool, o); ok {
			return placed, true
		}
	}
	return nil, false
}

func (t *twin) chooseIn(job *structs.Job, index, count int, pool string, o twinOptions) ([]structs.RankPlacement, bool) {
	spec, last := job.SpecOf(index, 0, count), job.SpecOf(index, count-1, count)
	if count == 1 {
		fits := t.fitting(job, last, 0, pool, o)
		if len(fits) == 0 {
			return nil, false
		}
		if namesOf(job) == nil {
			if o.fit == Consolidate {
				slices.SortFunc(fits, compareNodeNames)
			}
			fits = t.preferred(fits, o.fit == Spread, o)
		} else if job.VIP == nil {
			slices.SortStableFunc(fits, func(a, b *structs.Node) int { return cmp.Compare(o.prefer[b.ID], o.prefer[a.ID]) })
		}
		placed, ok := t.rank(job, fits[0], last, 0, o)
		return []structs.RankPlacement{placed}, ok
	}
	full := count
	if last.DeviceCount() != spec.DeviceCount() {
		full--
	}
	t.near = func(n *structs.Node) bool {
		devices := 0
		for _, request := range spec.Devices {
			devices += max(request.Count, 1)
		}
		healthy := *n
		healthy.Devices = slices.Clone(n.Devices)
		for i := range healthy.Devices {
			healthy.Devices[i].Healthy = true
		}
		_, possible := feasible.ChooseDevices(&healthy, nil, spec.Devices)
		return possible && n.Schedulable() && t.free(n) >= devices && (pool == "" || n.PoolName() == pool) &&
			feasible.NodeProblem(job, n) == nil && feasible.SpecProblem(job, spec, n) == nil && feasible.AgentProblem(job, n) == nil &&
			feasible.PoolProblem(job, spec, n, t.pools[n.PoolName()]) == nil
	}
	fits, fitsLast := t.fitting(job, spec, 1, pool, o), t.fitting(job, last, 1, pool, o)
	team, place, ok := t.team(job, full, count, fits, fitsLast, o)
	if !ok {
		return nil, false
	}
	if namesOf(job) == nil && o.fit != Consolidate {
		slices.SortFunc(team, compareNodes)
	}
	hasHead := func(n *structs.Node) bool { _, ok := t.rank(job, n, spec, 0, o); return ok }
	head := slices.IndexFunc(team, hasHead)
	if head < 0 { // none of the best has the ports of rank 0: any that does, and the most preferred others
		all := fits
		place = nil
		if namesOf(job) == nil {
			all = t.preferred(fits, o.fit == Spread, o)
		}
		if head = slices.IndexFunc(all, hasHead); head < 0 {
			return nil, false
		}
		rest := slices.Delete(slices.Clone(all), head, head+1)[:full-1]
		if namesOf(job) == nil {
			slices.SortFunc(rest, compareNodes)
		}
		team = append([]*structs.Node{all[head]}, rest...)
	} else {
		team = slices.Concat([]*structs.Node{team[head]}, team[:head], team[head+1:])
	}
	if full < count {
		node := t.last(job, team, fitsLast, place, o)
		if node == nil {
			return nil, false
		}
		team = append(team, node)
	}
	var placed []structs.RankPlacement
	for rank, node := range team {
		p, ok := t.rank(job, node, job.SpecOf(index, rank, count), rank, o)
		if !ok {
			return nil, false
		}
		placed = append(placed, p)
	}
	return placed, true
}

// last picks the node of a smaller last rank, within a place of the topology.
func (t *twin) last(job *structs.Job, team, fitsLast []*structs.Node, place []string, o twinOptions) *structs.Node {
	rest := slices.DeleteFunc(t.within(fitsLast, place), func(n *structs.Node) bool { return slices.Contains(team, n) })
	switch {
	case len(rest) == 0:
		return nil
	case namesOf(job) != nil:
		return rest[0]
	case o.fit == Consolidate:
		slices.SortFunc(rest, compareNodeNames)
		if at := slices.IndexFunc(rest, t.idle); at >= 0 {
			return rest[at]
		}
		return t.preferred(rest, true, twinOptions{})[0]
	}
	rest = t.preferred(rest, o.fit == Spread, o)
	near := func(n *structs.Node) bool {
		return slices.ContainsFunc(team, func(m *structs.Node) bool { return slices.Equal(t.path(m), t.path(n)) })
	}
	if at := slices.IndexFunc(rest, near); at >= 0 && o.fit == Pack {
		return rest[at]
	}
	return rest[0]
}

// depth is how many levels the topology has.
func (t *twin) depth() int {
	depth := 0
	for _, n := range t.nodes {
		depth = max(depth, len(n.Topology))
	}
	return depth
}

// path is where a node stands, a name for each level.
func (t *twin) path(n *structs.Node) []string {
	path := slices.Clone(n.Topology)
	for len(path) < t.depth() {
		path = append(path, "")
	}
	return path
}

// within keeps the nodes that stand in a place.
func (t *twin) within(nodes []*structs.Node, place []string) []*structs.Node {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *structs.Node) bool { return !slices.Equal(t.path(n)[:len(place)], place) })
}

// places lists the places of a level in which the nodes stand, in floor order.
func (t *twin) places(nodes []*structs.Node, level int) [][]string {
	var places [][]string
	for _, n := range t.sorted() {
		place := t.path(n)[:level]
		if slices.Contains(nodes, n) && !slices.ContainsFunc(places, func(p []string) bool { return slices.Equal(p, place) }) {
			places = append(places, place)
		}
	}
	return places
}

// team picks the nodes of the full ranks, and the place that they were sought in.
func (t *twin) team(job *structs.Job, full, count int, fits, fitsLast []*structs.Node, o twinOptions) ([]*structs.Node, []string, bool) {
	if len(fits) < full || full < count && len(fitsLast) < count {
		return nil, nil, false
	}
	switch {
	case namesOf(job) != nil:
		return fits[:full], nil, true
	case o.fit == Consolidate:
		idle := slices.DeleteFunc(slices.Clone(fits), func(n *structs.Node) bool { return !t.idle(n) })
		slices.SortFunc(idle, compareNodeNames)
		return idle[:min(full, len(idle))], nil, len(idle) >= full
	case o.fit == Spread:
		turns := make([][]*structs.Node, len(fits))
		for _, place := range t.places(fits, t.depth()) {
			for turn, n := range t.preferred(t.within(fits, place), true, o) {
				turns[turn] = append(turns[turn], n)
			}
		}
		var all []*structs.Node
		for _, turn := range turns {
			all = append(all, t.preferred(turn, true, o)...)
		}
		return all[:full], nil, true
	}
	for level := t.depth(); level >= 0; level-- {
		if team, place := t.pack(level, full, count, fits, fitsLast, o); team != nil {
			return team, place, true
		}
	}
	return nil, nil, false
}

// pack picks n nodes within the best place of a level among fits; nil when none
// has room. With n below count the place must have room for a last rank, too.
func (t *twin) pack(level, n, count int, fits, fitsLast []*structs.Node, o twinOptions) ([]*structs.Node, []string) {
	var best [][]string
	for _, place := range t.places(fits, level) {
		if len(t.within(fits, place)) >= n && (n == count || len(t.within(fitsLast, place)) > n) {
			best = append(best, place)
		}
	}
	if len(best) == 0 {
		return nil, nil
	}
	leaf := level == t.depth()
	slices.SortStableFunc(best, func(a, b []string) int {
		if leaf {
			return cmp.Compare(t.nearIn(a), t.nearIn(b))
		}
		return cmp.Or(cmp.Compare(len(t.inner(a, n, fits)), len(t.inner(b, n, fits))), cmp.Compare(len(t.within(fits, a)), len(t.within(fits, b))))
	})
	return t.fill(best[0], n, fits, o), best[0]
}

// inner lists the fewest places within place that have room for n nodes
// together, the roomiest first.
func (t *twin) inner(place []string, n int, fits []*structs.Node) [][]string {
	inner := t.places(t.within(fits, place), len(place)+1)
	slices.SortStableFunc(inner, func(a, b []string) int { return cmp.Compare(len(t.within(fits, b)), len(t.within(fits, a))) })
	for i, p := range inner {
		if n -= len(t.within(fits, p)); n <= 0 {
			return inner[:i+1]
		}
	}
	return inner
}

// fill picks n nodes of a place that has room for them.
func (t *twin) fill(place []string, n int, fits []*structs.Node, o twinOptions) []*structs.Node {
	here := t.within(fits, place)
	if len(place) == t.depth() {
		return t.preferred(here, false, o)[:n]
	}
	var team []*structs.Node
	inner := t.inner(place, n, fits)
	for _, whole := range inner[:len(inner)-1] {
		team = append(team, t.within(fits, whole)...)
	}
	n -= len(team)
	var rest []string // the tightest of those left that has room for the rest
	for _, p := range t.places(here, len(place)+1) {
		room := len(t.within(fits, p))
		used := slices.ContainsFunc(inner[:len(inner)-1], func(w []string) bool { return slices.Equal(w, p) })
		if !used && room >= n && (rest == nil || room < len(t.within(fits, rest))) {
			rest = p
		}
	}
	for level := t.depth(); level > len(rest); level-- {
		if part, _ := t.pack(level, n, n, t.within(fits, rest), nil, o); part != nil {
			return append(team, part...)
		}
	}
	return append(team, t.fill(rest, n, fits, o)...)
}

// nearIn counts the near nodes of a place.
func (t *twin) nearIn(place []string) int {
	return len(slices.DeleteFunc(t.within(t.sorted(), place), func(n *structs.Node) bool { return !t.near(n) }))
}
