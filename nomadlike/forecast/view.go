package forecast

import (
	"math/bits"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// view is what is free on the nodes at now, and what every gang takes of it,
// in numbers that can be added up quickly.
type view struct {
	sites []site   // by node number; those without a node are nobody's
	known [][]part // by member that occupies nodes at now
	parts [][]part // by future: those of its occupancies, one after the other
	from  [][]int32
	fills [][]bool // by future and occupancy: it began though others before it in its queue waited
}

// site is a node.
type site struct {
	node         *structs.Node // nil: none has this number
	free         room
	nominatedFor string // subjob it is nominated for
}

// room is what is free on a node, or what a rank takes of it.
type room struct {
	capacity.Amount        // its devices are those of the bits
	devices         uint64 // one bit for each of the first 64 devices of the node
}

// roomOf is an amount with these devices.
func roomOf(amount capacity.Amount, devices uint64) room {
	amount.Devices = int64(bits.OnesCount64(devices))
	return room{amount, devices}
}

// take takes a part out of what is free.
func (r *room) take(p *part) {
	*r = roomOf(r.Sub(p.Amount), r.devices&^p.devices)
}

// give adds it again.
func (r *room) give(p *part) {
	*r = roomOf(r.Add(p.Amount), r.devices|p.devices)
}

// part is what one rank takes of its node.
type part struct {
	at int32
	room
}

// view works out the numbers of all futures, once.
func (f *Futures) view() *view {
	if f.known != nil {
		return f.known
	}
	g := &view{sites: make([]site, f.base.NodeIndexes()), known: make([][]part, len(f.members))}
	for node, usage := range f.base.Nodes() {
		at, _ := f.base.NodeIndex(node.ID)
		free := uint64(0)
		for i := range node.Devices {
			if d := &node.Devices[i]; i < 64 && d.Healthy && !uses(usage, d.ID) {
				free |= 1 << i
			}
		}
		g.sites[at] = site{node: node, free: roomOf(node.FreeBeside(usage), free), nominatedFor: f.base.NominatedFor(int32(at))}
	}
	for i := range f.members {
		m := &f.members[i]
		if placed := f.base.Placements(m.subjob.JobID, m.subjob.Index); placed != nil {
			g.known[i] = g.partsOf(f, m.job, m.gang.Spec, placed, nil)
		}
	}
	for k := range f.futures {
		u := &f.futures[k]
		var parts []part
		from := make([]int32, 1, len(u.occupancies)+1)
		for i := range u.occupancies {
			h := &u.occupancies[i]
			if h.placed != nil {
				parts = g.partsOf(f, f.members[h.member].job, int(h.spec), h.placed, parts)
			}
			from = append(from, int32(len(parts)))
		}
		g.parts, g.from, g.fills = append(g.parts, parts), append(g.from, from), append(g.fills, f.fills(u))
	}
	f.known = g
	return g
}

func uses(usage *structs.Usage, device string) bool {
	if usage == nil {
		return false
	}
	_, used := usage.Devices[device]
	return used
}

// partsOf appends what the ranks of a gang take.
func (g *view) partsOf(f *Futures, job *structs.Job, spec int, placed []structs.RankPlacement, parts []part) []part {
	for rank := range placed {
		at, ok := f.base.NodeIndex(placed[rank].NodeID)
		if !ok {
			continue
		}
		r := job.SpecOf(spec, rank, len(placed))
		used, devices := uint64(0), g.sites[at].node.Devices
		next := 0 // they are mostly listed in the node's order
		for _, id := range placed[rank].Devices {
			for range devices {
				i := next
				if next++; next == len(devices) {
					next = 0
				}
				if devices[i].ID == id {
					if i < 64 && devices[i].Healthy {
						used |= 1 << i
					}
					break
				}
			}
		}
		parts = append(parts, part{int32(at), roomOf(r.Amount(), used)})
	}
	return parts
}

// of returns what an occupancy of a future takes.
func (g *view) of(future int, u *future, index int32) []part {
	h := &u.occupancies[index]
	if h.placed == nil {
		return g.known[h.member]
	}
	return g.parts[future][g.from[future][index]:g.from[future][index+1]]
}
