package placement

import (
	"math/bits"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Seat is what one rank holds on one node, in the floor's own terms. It means
// the same on every clone, until nodes are Put or Removed there.
type Seat struct {
	index  int32
	amount capacity.Amount
	first  uint64       // devices of the first word
	more   capacity.Set // of the words after it
	plan   *portPlan    // names the ports; nil: their names are not known
	ports  []int32
}

// Index is the node's index on the floor.
func (s *Seat) Index() int { return int(s.index) }

// setDevices notes the devices that the seat holds.
func (s *Seat) setDevices(devices capacity.Set) {
	s.amount.Devices = int64(devices.Count())
	if len(devices) > 0 {
		s.first = devices[0]
	}
	if len(devices) > 1 {
		s.more = slices.Clone(devices[1:])
	}
}

// devicesOf is word w of the devices that the seat holds.
func (s *Seat) devicesOf(w int) uint64 {
	switch {
	case w == 0:
		return s.first
	case w <= len(s.more):
		return s.more[w-1]
	}
	return 0
}

// SeatOf returns what an allocation holds; false when its node is unknown.
func (f *Floor) SeatOf(alloc *structs.Allocation) (Seat, bool) {
	return f.seatOf(alloc.NodeID, &alloc.Spec, alloc.Devices, alloc.Ports)
}

// SeatsOf returns what the ranks of a gang hold when they stand as placed. Ranks
// on unknown nodes are left out.
func (f *Floor) SeatsOf(need *Need, placed []structs.RankPlacement) []Seat {
	seats := make([]Seat, 0, len(placed))
	for rank := range placed {
		p := &placed[rank]
		if s, known := f.seatOf(p.NodeID, need.specOf(rank, len(placed)), p.Devices, p.Ports); known {
			seats = append(seats, s)
		}
	}
	return seats
}

func (f *Floor) seatOf(nodeID string, spec *structs.Resources, devices []string, ports map[string]int) (Seat, bool) {
	at, known := f.byID[nodeID]
	if !known {
		return Seat{}, false
	}
	seat := Seat{index: at, amount: spec.Amount()}
	for _, port := range ports {
		seat.ports = append(seat.ports, int32(port))
	}
	site := f.sites[at]
	if site.class.words > 1 {
		seat.more = make(capacity.Set, site.class.words-1)
	}
	for _, id := range devices {
		switch bit := site.bitOf(id); {
		case bit >= 64:
			seat.more.Add(bit - 64)
		case bit >= 0:
			seat.first |= 1 << bit
		}
	}
	seat.amount.Devices = int64(bits.OnesCount64(seat.first) + seat.more.Count())
	return seat, true
}

// Placements names what seats hold that Pick gave, by rank. The lists may be
// shared and must not be changed.
func (f *Floor) Placements(seats []Seat) []structs.RankPlacement {
	placed := make([]structs.RankPlacement, len(seats))
	for rank := range seats {
		s := &seats[rank]
		site := f.sites[s.index]
		placed[rank] = structs.RankPlacement{NodeID: site.node.ID, Devices: site.names(s)}
		if s.plan != nil {
			placed[rank].Ports = s.plan.named(s.ports)
		}
	}
	return placed
}

// names lists the devices of a seat as feasible.ChooseDevices does.
func (s *site) names(seat *Seat) []string {
	n := 0
	for w := range s.class.words {
		n += bits.OnesCount64(seat.devicesOf(w))
	}
	switch {
	case n == 0:
		return nil
	case n == len(s.devices) && s.inOrder:
		return s.devices[:n:n]
	}
	names := make([]string, 0, n)
	for bit, id := range s.devices {
		if seat.devicesOf(bit>>6)&(1<<(bit&63)) != 0 {
			names = append(names, id)
		}
	}
	if !s.inOrder {
		slices.SortFunc(names, structs.CompareNames)
	}
	return names
}

// Occupy takes what a gang uses out of what is free.
func (f *Floor) Occupy(need *Need, placed []structs.RankPlacement) { f.Take(f.SeatsOf(need, placed)) }

// Release frees what a gang had.
func (f *Floor) Release(need *Need, placed []structs.RankPlacement) { f.Give(f.SeatsOf(need, placed)) }

// Take takes seats out of what is free. Seats on nodes that were removed count
// for nothing.
func (f *Floor) Take(seats []Seat) {
	for i := range seats {
		f.move(&seats[i], +1)
	}
}

// Give frees seats.
func (f *Floor) Give(seats []Seat) {
	for i := range seats {
		f.move(&seats[i], -1)
	}
}

// move takes a seat (+1) or frees it (-1).
func (f *Floor) move(s *Seat, n int32) {
	site := f.sites[s.index]
	if site == nil {
		return
	}
	f.unlist(s.index)
	sp := &f.spaces[s.index]
	if n > 0 {
		sp.setFree(sp.free().Sub(s.amount))
	} else if sp.setFree(sp.free().Add(s.amount)); !sp.free().Over() {
		sp.flags &^= flagOver
	}
	sp.allocs += n
	sp.flags |= flagMoved
	held, _ := f.devicesAt(s.index)
	for w := range held {
		if n > 0 {
			held[w] |= s.devicesOf(w)
		} else {
			held[w] &^= s.devicesOf(w)
		}
	}
	if len(s.ports) > 0 {
		f.movePorts(s, n > 0)
	}
	f.list(s.index)
}

// movePorts replaces the list of held ports, which other floors may share.
func (f *Floor) movePorts(s *Seat, take bool) {
	held := f.ports[s.index]
	if take {
		held = held.With(s.ports)
	} else {
		held = held.Without(s.ports)
	}
	f.setPorts(s.index, held)
}
