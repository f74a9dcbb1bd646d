package placement

import (
	"slices"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// viewsMax bounds the views that a layout remembers; beyond it they are made
// anew.
const viewsMax = 4096

// view is which nodes of a layout are open to a need, whatever they hold. Needs
// that differ only in cores, memory, ports or numbers share it. It is never
// changed.
type view struct {
	of      *byte            // layout.id: a need must not keep an old layout alive
	open    capacity.Set     // positions whose nodes have nothing against the need
	matches []*match         // by class; nil: barred
	own     map[int32]*match // by position, for needs with device ids
	named   []int32          // positions in the order in which the job names them; nil: it names none
	pools   []capacity.Set   // open by pool, for gangs that must stand within one; nil: anywhere
}

// viewOf finds the view of a need on the floor's layout.
func (f *Floor) viewOf(need *Need) *view {
	f.Ready()
	if v := need.cache.view.Load(); v != nil && v.of == f.layout.id {
		return v
	}
	l := f.layout
	l.mu.Lock()
	defer l.mu.Unlock()
	v, known := l.mu.views[need.viewKey]
	if !known {
		if len(l.mu.views) >= viewsMax {
			clear(l.mu.views)
		}
		v = f.newView(need)
		l.mu.views[need.viewKey] = v
	}
	need.cache.view.Store(v)
	return v
}

// newView compares a need with each class, and with each node where classes do
// not tell. The layout is locked.
func (f *Floor) newView(need *Need) *view {
	l := f.layout
	v := &view{of: l.id, open: make(capacity.Set, l.words), matches: make([]*match, len(l.classes))}
	for i, c := range l.classes {
		switch {
		case need.barsClass(c):
		case need.byID:
			v.matches[i] = &match{} // until matchIDs
		default:
			if m := c.meet(need.spec.Devices, nil); m.possible(c) {
				v.matches[i] = &m
			}
		}
	}
	switch {
	case need.names != nil:
		v.named = make([]int32, 0, len(need.names))
		for _, name := range need.names {
			for _, pos := range l.namedLocked(f, name) {
				if v.matches[l.class[pos]] != nil && !v.open.Has(int(pos)) && f.problem(need, f.nodeAt(pos)) == nil {
					v.open.Add(int(pos))
					v.named = append(v.named, pos)
				}
			}
		}
	default:
		for pos, class := range l.class {
			if v.matches[class] != nil {
				v.open.Add(pos)
			}
		}
	}
	if need.byID {
		v.matchIDs(f, need)
	}
	if need.spec.RDMA {
		v.partByPool(l)
	}
	return v
}

// barsClass reports whether all nodes of a class have something against the need.
// What depends on names and ids is left to the single nodes.
func (n *Need) barsClass(c *class) bool {
	job := *n.job
	if len(job.Placement.Nodes) > 0 {
		job.Placement = structs.Placement{}
	}
	job.VIP = nil
	return feasible.NodeProblem(&job, c.node) != nil || feasible.AgentProblem(&job, c.node) != nil || feasible.PoolProblem(n.job, n.spec, c.node, c.pool) != nil ||
		!n.byID && feasible.SpecProblem(&job, n.spec, c.node) != nil
}

// possible reports whether empty healthy nodes of the class answer every request.
func (m *match) possible(c *class) bool {
	everything := capacity.NewSet(len(c.node.Devices))
	for i := range c.node.Devices {
		everything.Add(i)
	}
	nothing := capacity.NewSet(len(c.node.Devices))
	_, ok := c.choose(&picker{}, m, nothing, everything)
	return ok
}

// matchIDs compares requests that name devices with each node.
func (v *view) matchIDs(f *Floor, need *Need) {
	v.own = make(map[int32]*match)
	for _, pos := range v.open.Members() {
		s := f.sites[f.layout.index[pos]]
		m := s.class.meet(need.spec.Devices, s.devices)
		if m.possible(s.class) && f.problem(need, s.node) == nil {
			v.own[pos] = &m
			continue
		}
		v.open.Drop(int(pos))
		v.named = slices.DeleteFunc(v.named, func(other int32) bool { return other == pos })
	}
}

// partByPool parts the open positions by pool, pools in the order of their
// names.
func (v *view) partByPool(l *layout) {
	var names []string
	parts := make(map[string]capacity.Set)
	for _, pos := range v.open.Members() {
		name := l.classes[l.class[pos]].node.Pool
		if parts[name] == nil {
			parts[name] = make(capacity.Set, l.words)
			names = append(names, name)
		}
		parts[name].Add(int(pos))
	}
	slices.SortFunc(names, structs.CompareNames)
	for _, name := range names {
		v.pools = append(v.pools, parts[name])
	}
}

// matchAt is how the need's requests meet the node at an open position.
func (v *view) matchAt(l *layout, pos int32) *match {
	if v.own != nil {
		return v.own[pos]
	}
	return v.matches[l.class[pos]]
}

// namedLocked finds the positions of the nodes with a name or id.
func (l *layout) namedLocked(f *Floor, name string) []int32 {
	if l.mu.named == nil {
		l.mu.named = make(map[string][]int32, 2*len(l.index))
		for pos, at := range l.index {
			node := f.sites[at].node
			l.mu.named[node.Name] = append(l.mu.named[node.Name], int32(pos))
			if node.ID != node.Name {
				l.mu.named[node.ID] = append(l.mu.named[node.ID], int32(pos))
			}
		}
	}
	return l.mu.named[name]
}
