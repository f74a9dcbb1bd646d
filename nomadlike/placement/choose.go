package placement

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Fit is the way in which nodes are preferred.
type Fit uint8

// The fits.
const (
	// FitJob is Pack or Spread, as the job's placement says.
	FitJob Fit = iota
	// Pack keeps a gang within the closest topology and takes the fullest nodes.
	Pack
	// Spread parts a gang over the topology and takes the emptiest nodes.
	Spread
	// Consolidate gives a gang of several nodes completely free ones, by name, and
	// its last rank the next of these or else the emptiest node that fits; one of
	// a single node the fullest that fits, the first by name among equals.
	Consolidate
)

// Options narrow a choice.
type Options struct {
	Fit       Fit
	PortStart uint64               // where the search for dynamic ports begins, see structs.ChoosePorts
	Claimant  string               // structs.SubjobKey that may stand on nodes claimed for it
	Avoid     func(index int) bool // nodes not to take; nil: none
	Prefer    func(index int) int  // nodes with more come first; nil: all equal
}

// Choose finds nodes, devices and ports for count ranks, or false when there is
// no way to place them now. The floor is left as it is. Ranks stand in floor
// order, or as the job names its nodes; rank 0 is the first that can have the
// ports of rank 0, and the last rank of a whole gang may get fewer devices.
//
// Pack: all within one innermost place of the topology when one has room, the
// one with the fewest nodes that have enough devices; else within the next
// larger place, and there across as few inner places as possible. On the way
// down the fullest nodes come first: those with the fewest free devices.
func (f *Floor) Choose(need *Need, count int, options Options) ([]structs.RankPlacement, bool) {
	seats, ok := f.Pick(need, count, options)
	if !ok {
		return nil, false
	}
	return f.Placements(seats), true
}

// Pick is Choose in the floor's own terms, by rank.
func (f *Floor) Pick(need *Need, count int, options Options) ([]Seat, bool) {
	if count < 1 || count > len(f.order) {
		return nil, false
	}
	var chosen []int
	for _, at := range f.fitting(need, need.specOf(0, count), need.ports, options) {
		if len(chosen) < count {
			chosen = append(chosen, at)
		}
	}
	if len(chosen) < count {
		return nil, false
	}
	seats := make([]Seat, count)
	for rank, at := range chosen {
		p, spec := &f.places[at], need.specOf(rank, count)
		devices, devicesOK := structs.ChooseDevices(p.node, p.usage, spec.Devices)
		ports, portsOK := structs.ChoosePorts(p.node, p.usage, need.portsOf(rank), options.PortStart)
		if !devicesOK || !portsOK {
			return nil, false
		}
		seats[rank] = Seat{index: at, cpu: spec.CPU, memory: spec.Memory, devices: devices, ports: ports}
	}
	return seats, true
}

// fitting lists the nodes that have room for one rank, the fullest first.
func (f *Floor) fitting(need *Need, spec *structs.Resources, ports []structs.PortRequest, options Options) []int {
	var fits []int
	for _, at := range f.order {
		p := &f.places[at]
		if f.allows(need, spec, at, options) && p.fits(need, spec, ports) {
			fits = append(fits, at)
		}
	}
	slices.SortStableFunc(fits, func(a, b int) int { return cmp.Compare(f.places[a].freeDevices(), f.places[b].freeDevices()) })
	return fits
}

// allows tells whether a node is open to the need, whatever it holds.
func (f *Floor) allows(need *Need, spec *structs.Resources, at int, options Options) bool {
	p := &f.places[at]
	return p.node.Schedulable() && structs.NodeProblem(need.job, p.node) == nil && structs.SpecProblem(need.job, *spec, p.node) == nil &&
		structs.PoolProblem(need.job, *spec, p.node, f.pools[p.node.PoolName()]) == nil &&
		options.open(p.usage, at)
}

// open tells whether nobody else keeps the node.
func (o *Options) open(usage *structs.Usage, at int) bool {
	return (usage.Claim == "" || usage.Claim == o.Claimant) && (o.Avoid == nil || !o.Avoid(at))
}

// fits tells whether the node has room for one rank.
func (p *place) fits(need *Need, spec *structs.Resources, ports []structs.PortRequest) bool {
	if p.usage.Overcommitted || need.job.VIP != nil && p.usage.Allocs > 0 || structs.RoomProblem(p.node, p.usage, *spec) != nil {
		return false
	}
	_, devicesOK := structs.ChooseDevices(p.node, p.usage, spec.Devices)
	_, portsOK := structs.ChoosePorts(p.node, p.usage, ports, 0)
	return devicesOK && portsOK
}

func (p *place) freeDevices() int {
	free := 0
	for i := range p.node.Devices {
		d := &p.node.Devices[i]
		if _, held := p.usage.Devices[d.ID]; d.Healthy && !held {
			free++
		}
	}
	return free
}

// Fits counts the nodes that have room for a rank now, up to limit.
func (f *Floor) Fits(need *Need, limit int, options Options) int {
	return min(limit, len(f.fitting(need, &need.spec, need.ports, options)))
}

// Able counts the nodes that take new work and would have room for a rank if
// they held nothing.
func (f *Floor) Able(need *Need) int {
	able := 0
	for _, at := range f.order {
		empty := place{node: f.places[at].node, usage: &structs.Usage{}}
		if f.allows(need, &need.spec, at, Options{Claimant: f.places[at].usage.Claim}) && empty.fits(need, &need.spec, need.ports) {
			able++
		}
	}
	return able
}
