package placement

import (
	"maps"

	"nomadlike/nomadlike/structs"
)

// Seat is what one rank holds on one node, in the floor's own terms. It means
// the same on every clone.
type Seat struct {
	index   int
	cpu     float64
	memory  int64
	devices []string
	ports   map[string]int
}

// Index is the node's index on the floor.
func (s *Seat) Index() int { return s.index }

// SeatOf gives what an allocation holds; false when its node is unknown.
func (f *Floor) SeatOf(alloc *structs.Allocation) (Seat, bool) {
	at, known := f.byID[alloc.NodeID]
	return Seat{index: at, cpu: alloc.Spec.CPU, memory: alloc.Spec.Memory, devices: alloc.Devices, ports: alloc.Ports}, known
}

// SeatsOf gives what the ranks of a gang hold when they stand as placed. Ranks
// on unknown nodes are left out.
func (f *Floor) SeatsOf(need *Need, placed []structs.RankPlacement) []Seat {
	seats := make([]Seat, 0, len(placed))
	for rank := range placed {
		p, spec := &placed[rank], need.specOf(rank, len(placed))
		if at, known := f.byID[p.NodeID]; known {
			seats = append(seats, Seat{index: at, cpu: spec.CPU, memory: spec.Memory, devices: p.Devices, ports: p.Ports})
		}
	}
	return seats
}

// Placements names what seats hold, by rank.
func (f *Floor) Placements(seats []Seat) []structs.RankPlacement {
	placed := make([]structs.RankPlacement, len(seats))
	for rank := range seats {
		s := &seats[rank]
		placed[rank] = structs.RankPlacement{NodeID: f.places[s.index].node.ID, Devices: s.devices, Ports: s.ports}
	}
	return placed
}

// Hold takes what a gang holds out of what is free.
func (f *Floor) Hold(need *Need, placed []structs.RankPlacement) { f.Take(f.SeatsOf(need, placed)) }

// Release gives back what a gang held.
func (f *Floor) Release(need *Need, placed []structs.RankPlacement) { f.Give(f.SeatsOf(need, placed)) }

// Take takes seats out of what is free.
func (f *Floor) Take(seats []Seat) {
	for i := range seats {
		f.move(&seats[i], +1)
	}
}

// Give gives seats back.
func (f *Floor) Give(seats []Seat) {
	for i := range seats {
		f.move(&seats[i], -1)
	}
}

func (f *Floor) move(s *Seat, n int64) {
	p := &f.places[s.index]
	if p.node == nil {
		return
	}
	own := *p.usage
	own.Ports, own.Devices = maps.Clone(own.Ports), maps.Clone(own.Devices)
	if own.Ports == nil {
		own.Ports = make(map[int]string)
	}
	if own.Devices == nil {
		own.Devices = make(map[string]string)
	}
	own.CPU = float64(structs.MilliCPU(own.CPU)+n*structs.MilliCPU(s.cpu)) / 1000
	own.Memory += n * s.memory
	own.Allocs += int(n)
	for _, port := range s.ports {
		if n > 0 {
			own.Ports[port] = ""
		} else {
			delete(own.Ports, port)
		}
	}
	for _, id := range s.devices {
		if n > 0 {
			own.Devices[id] = ""
		} else {
			delete(own.Devices, id)
		}
	}
	p.usage = &own
}
