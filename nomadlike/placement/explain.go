package placement

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Shortage reports how the nodes that could hold a rank stand now.
type Shortage struct {
	Able     int    // nodes that take new work and could hold a rank if they held nothing
	Room     int    // of these, have room now
	Reserved int    // of these, have room now, but Options.Avoid or a nomination keeps them for others
	Lacks    []Lack // what the others are short of, the commonest first
	Full     []int  // indexes of the others, in floor order
}

// LackMachine is the lack of VIP jobs on machines that hold something yet, and of
// every job on nodes that hold more than they have.
const LackMachine = "machine"

// Lack is what nodes are short of for a rank.
type Lack struct {
	What  string // cpu | memory | a kind of device | ports | "port 8080" | LackMachine
	Nodes int
}

// Shortage finds out why the need has too little room. It visits every node that
// could hold a rank.
func (f *Floor) Shortage(need *Need, options Options) Shortage {
	q := f.query(need, &need.ports, &options)
	able := f.ableTo(need)
	s := Shortage{Able: able.nodes, Full: make([]int, 0, able.nodes)}
	cpu, memory := 0, 0 // lacks that need no closer look
	for w, word := range able.positions {
		for ; word != 0; word &= word - 1 {
			pos := int32(w<<6 + bits.TrailingZeros64(word))
			at := q.f.layout.index[pos]
			sp := &f.spaces[at]
			switch {
			case sp.cpu < need.amount.CPU:
				cpu++
			case sp.memory < need.amount.Memory:
				memory++
			case q.fits(pos):
				s.Room++
				continue
			default:
				what := q.lack(pos)
				if what == "" {
					s.Reserved++
					continue
				}
				s.Lacks = count(s.Lacks, what, 1)
			}
			s.Full = append(s.Full, int(at))
		}
	}
	s.Lacks = count(count(s.Lacks, "cpu", cpu), "memory", memory)
	slices.SortFunc(s.Lacks, func(a, b Lack) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return s
}

func count(lacks []Lack, what string, nodes int) []Lack {
	if nodes == 0 {
		return lacks
	}
	for i := range lacks {
		if lacks[i].What == what {
			lacks[i].Nodes += nodes
			return lacks
		}
	}
	return append(lacks, Lack{what, nodes})
}

// could reports whether the node at an open position takes new work and would hold
// a rank if it held nothing.
func (q *query) could(pos int32) bool {
	at := q.f.layout.index[pos]
	sp, site := &q.f.spaces[at], q.f.sites[at]
	if sp.flags&flagOpen == 0 || !q.need.amount.FitsBeside(site.whole) || !q.ports.fits(site.node, nil) {
		return false
	}
	_, healthy := q.f.devicesAt(at)
	return site.class.enough(q.view.matchAt(q.f.layout, pos), make(capacity.Set, len(healthy)), healthy)
}

// lack names what the node at an open position is short of for a rank: "" when
// it has room, whoever it is kept for.
func (q *query) lack(pos int32) string {
	at := q.f.layout.index[pos]
	sp, site := &q.f.spaces[at], q.f.sites[at]
	held, healthy := q.f.devicesAt(at)
	switch {
	case sp.cpu < q.need.amount.CPU:
		return "cpu"
	case sp.memory < q.need.amount.Memory:
		return "memory"
	case !site.class.enough(q.view.matchAt(q.f.layout, pos), held, healthy):
		return q.need.DeviceKind()
	case !q.ports.fits(site.node, q.f.ports[at]):
		return PortsText(q.ports.requests)
	case q.need.job.VIP != nil && sp.allocs > 0, sp.flags&flagOver != 0:
		return LackMachine
	}
	return ""
}

// problem reports what keeps the need off a node whatever it holds.
func (f *Floor) problem(need *Need, node *structs.Node) *structs.Reason {
	return feasible.Barred(need.job, need.spec, node, f.pools[node.PoolName()])
}

// Able counts the nodes that take new work and would have room for a rank if
// they held nothing. It is remembered until nodes change.
func (f *Floor) Able(need *Need) int { return f.ableTo(need).nodes }

func (f *Floor) ableTo(need *Need) *ableNodes {
	q := f.query(need, &need.ports, &Options{})
	if known := need.cache.able.Load(); known != nil && known.build == f.build {
		return known
	}
	able := &ableNodes{build: f.build, positions: make(capacity.Set, f.layout.words)}
	for _, pos := range q.open.Members() {
		if q.could(pos) {
			able.positions.Add(int(pos))
			able.nodes++
		}
	}
	need.cache.able.Store(able)
	return able
}

// DeviceKind is the kind of the need's devices, "devices" for several kinds,
// "" for none.
func (n *Need) DeviceKind() string {
	kind := ""
	for _, d := range n.spec.Devices {
		if kind != "" && kind != d.Kind {
			return "devices"
		}
		kind = d.Kind
	}
	return kind
}

// PortsText names the fixed ports among requests, or ports in general.
func PortsText(requests []structs.PortRequest) string {
	var fixed []string
	for _, p := range requests {
		if p.Static != 0 {
			fixed = append(fixed, strconv.Itoa(p.Static))
		}
	}
	if len(fixed) == 0 {
		return "ports"
	}
	return "port " + strings.Join(fixed, " ")
}

// Outlook reports whether the cluster could hold the ranks of a need at all.
type Outlook struct {
	Known    int        // nodes on the floor
	Unknown  []string   // nodes that the job names and nobody knows
	Barred   []Obstacle // what keeps the need off nodes whatever they hold, the commonest first
	Built    int        // nodes that could hold a rank if they held nothing, took work and had no sick devices
	Able     int        // of these, could now if they held nothing
	Away     []string   // names of the rest of these
	HeadPort bool       // one of the able nodes has the ports of rank 0
}

// Obstacle is what keeps a need off nodes.
type Obstacle struct {
	Reason structs.Reason // of the first such node in floor order
	Nodes  int
}

// Outlook finds out why the need could not start even on an empty cluster. It
// visits every node, and costs more for each than Able.
func (f *Floor) Outlook(need *Need) Outlook {
	q := f.query(need, &need.ports, &Options{})
	o := Outlook{Known: len(q.f.layout.index)}
	for pos, at := range q.f.layout.index {
		site := f.sites[at]
		if reason := f.problem(need, site.node); reason != nil {
			o.bar(reason)
			continue
		}
		if !q.built(int32(pos)) {
			continue
		}
		o.Built++
		if !q.could(int32(pos)) {
			o.Away = append(o.Away, away(site.node))
			continue
		}
		o.Able++
		o.HeadPort = o.HeadPort || need.head.fits(site.node, nil)
	}
	for _, name := range need.names {
		if !slices.ContainsFunc(q.f.layout.index, func(at int32) bool {
			return f.sites[at].node.Name == name || f.sites[at].node.ID == name
		}) {
			o.Unknown = append(o.Unknown, name)
		}
	}
	slices.SortStableFunc(o.Barred, func(a, b Obstacle) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return o
}

// away names a node that takes no new work, and its fault when it has one.
func away(node *structs.Node) string {
	if fault := node.Unfit(); fault != nil {
		return node.Name + " (" + fault.Name + ")"
	}
	return node.Name
}

// built reports whether a node that has nothing against the need could hold a rank
// if it held nothing, took work and had no sick devices.
func (q *query) built(pos int32) bool {
	site := q.f.sites[q.f.layout.index[pos]]
	return q.open.Has(int(pos)) && q.need.amount.FitsBeside(site.whole) && q.ports.fits(site.node, nil)
}

func (o *Outlook) bar(reason *structs.Reason) {
	for i := range o.Barred {
		if o.Barred[i].Reason.ID == reason.ID {
			o.Barred[i].Nodes++
			return
		}
	}
	o.Barred = append(o.Barred, Obstacle{*reason, 1})
}
