package forecast

import (
	"nomadlike/nomadlike/structs"
)

// grounds is what is free on the nodes at now, and what every gang takes of it,
// in numbers that can be added up quickly.
type grounds struct {
	sites []site   // by node number; those without a node are nobody's
	known [][]part // by member that holds nodes at now
	parts [][]part // by future: those of its holds, one after the other
	from  [][]int32
	fills [][]bool // by future and hold: it began though others before it in its queue waited
}

// site is a node.
type site struct {
	node   *structs.Node // nil: none has this number
	free   room
	allocs int32
	claim  string // subjob that has been promised it
}

// room is what is free on a node.
type room struct {
	cpu     int64 // thousandths of cores
	memory  int64
	devices uint64 // one bit for each of the first 64 devices of the node
}

// part is what one rank takes of its node.
type part struct {
	at int32
	room
}

// ground works out the numbers of all futures, once.
func (f *Futures) ground() *grounds {
	if f.grounds != nil {
		return f.grounds
	}
	g := &grounds{sites: make([]site, f.base.NodeIndexes()), known: make([][]part, len(f.members))}
	for node, usage := range f.base.Nodes() {
		at, _ := f.base.NodeIndex(node.ID)
		s := site{node: node, free: room{node.FreeCPU(usage), node.FreeMemory(usage), 0}}
		for i := range node.Devices {
			if d := &node.Devices[i]; i < 64 && d.Healthy && !holds(usage, d.ID) {
				s.free.devices |= 1 << i
			}
		}
		if usage != nil {
			s.allocs = int32(usage.Allocs)
		}
		s.claim = f.base.Claim(int32(at))
		g.sites[at] = s
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
		from := make([]int32, 1, len(u.holds)+1)
		for i := range u.holds {
			h := &u.holds[i]
			if h.placed != nil {
				parts = g.partsOf(f, f.members[h.member].job, int(h.spec), h.placed, parts)
			}
			from = append(from, int32(len(parts)))
		}
		g.parts, g.from, g.fills = append(g.parts, parts), append(g.from, from), append(g.fills, f.fills(u))
	}
	f.grounds = g
	return g
}

func holds(usage *structs.Usage, device string) bool {
	if usage == nil {
		return false
	}
	_, held := usage.Devices[device]
	return held
}

// partsOf appends what the ranks of a gang take.
func (g *grounds) partsOf(f *Futures, job *structs.Job, spec int, placed []structs.RankPlacement, parts []part) []part {
	for rank := range placed {
		at, ok := f.base.NodeIndex(placed[rank].NodeID)
		if !ok {
			continue
		}
		r := job.SpecOf(spec, rank, len(placed))
		p := part{int32(at), room{structs.MilliCPU(r.CPU), max(r.Memory, 0), 0}}
		devices := g.sites[at].node.Devices
		next := 0 // they are mostly listed in the node's order
		for _, id := range placed[rank].Devices {
			for range devices {
				i := next
				if next++; next == len(devices) {
					next = 0
				}
				if devices[i].ID == id {
					if i < 64 && devices[i].Healthy {
						p.devices |= 1 << i
					}
					break
				}
			}
		}
		parts = append(parts, p)
	}
	return parts
}

// of gives what a hold of a future takes.
func (g *grounds) of(future int, u *future, hold int32) []part {
	h := &u.holds[hold]
	if h.placed == nil {
		return g.known[h.member]
	}
	return g.parts[future][g.from[future][hold]:g.from[future][hold+1]]
}
