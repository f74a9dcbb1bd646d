package placement

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Shortage tells how the nodes that could hold a rank stand now.
type Shortage struct {
	Able  int    // nodes that take new work and could hold a rank if they held nothing
	Room  int    // of these, have room now
	Kept  int    // of these, have room now, but Options.Avoid or a claim keeps them for others
	Lacks []Lack // what the others are short of, the commonest first
	Full  []int  // indexes of the others, in floor order
}

// Lack is what nodes are short of for a rank.
type Lack struct {
	What  string // cpu | memory | a kind of device | ports | "port 8080"
	Nodes int
}

// Shortage finds out why the need has too little room. It visits every node.
func (f *Floor) Shortage(need *Need, options Options) Shortage {
	var s Shortage
	for _, at := range f.order {
		p := &f.places[at]
		if !f.could(need, p) {
			continue
		}
		s.Able++
		switch lack := p.lack(need); {
		case lack != "":
			s.Full = append(s.Full, at)
			s.Lacks = count(s.Lacks, lack)
		case !options.open(p.usage, at):
			s.Kept++
		default:
			s.Room++
		}
	}
	slices.SortFunc(s.Lacks, func(a, b Lack) int { return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.What, b.What)) })
	return s
}

func count(lacks []Lack, what string) []Lack {
	for i := range lacks {
		if lacks[i].What == what {
			lacks[i].Nodes++
			return lacks
		}
	}
	return append(lacks, Lack{what, 1})
}

// could tells whether a node takes new work and would hold a rank if it held
// nothing.
func (f *Floor) could(need *Need, p *place) bool {
	empty := place{node: p.node, usage: &structs.Usage{}}
	return p.node.Schedulable() && f.problem(need, p.node) == nil && empty.fits(need, &need.spec, need.ports)
}

// problem tells what keeps the need off a node whatever it holds.
func (f *Floor) problem(need *Need, node *structs.Node) *structs.Reason {
	if reason := structs.NodeProblem(need.job, node); reason != nil {
		return reason
	}
	if reason := structs.PoolProblem(need.job, need.spec, node, f.pools[node.PoolName()]); reason != nil {
		return reason
	}
	return structs.SpecProblem(need.job, need.spec, node)
}

// lack names what keeps one rank off the node: "" when it fits.
func (p *place) lack(need *Need) string {
	switch {
	case p.node.FreeCPU(p.usage) < need.cpu:
		return "cpu"
	case p.node.FreeMemory(p.usage) < need.memory:
		return "memory"
	}
	if _, ok := structs.ChooseDevices(p.node, p.usage, need.spec.Devices); !ok {
		return need.DeviceKind()
	}
	if _, ok := structs.ChoosePorts(p.node, p.usage, need.ports, 0); !ok {
		return PortsText(need.ports)
	}
	if !p.fits(need, &need.spec, need.ports) {
		return "machine" // a VIP machine that is not empty yet, or an overfull node
	}
	return ""
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

// Outlook tells whether the cluster could hold the ranks of a need at all.
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
	o := Outlook{Known: len(f.order)}
	found := make([]bool, len(need.names))
	for _, at := range f.order {
		p := &f.places[at]
		for i, name := range need.names {
			found[i] = found[i] || name == p.node.Name || name == p.node.ID
		}
		if reason := f.problem(need, p.node); reason != nil {
			o.bar(reason)
			continue
		}
		healthy := *p.node
		healthy.Devices = slices.Clone(p.node.Devices)
		for i := range healthy.Devices {
			healthy.Devices[i].Healthy = true
		}
		built := place{node: &healthy, usage: &structs.Usage{}}
		if !built.fits(need, &need.spec, need.ports) {
			continue
		}
		o.Built++
		if !f.could(need, p) {
			o.Away = append(o.Away, p.node.Name)
			continue
		}
		o.Able++
		_, portsOK := structs.ChoosePorts(p.node, nil, need.head, 0)
		o.HeadPort = o.HeadPort || portsOK
	}
	for i, name := range need.names {
		if !found[i] {
			o.Unknown = append(o.Unknown, name)
		}
	}
	slices.SortStableFunc(o.Barred, func(a, b Obstacle) int { return cmp.Compare(b.Nodes, a.Nodes) })
	return o
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
