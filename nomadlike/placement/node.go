package placement

import (
	"math/bits"

	"nomadlike/nomadlike/structs/capacity"
)

// This file answers questions about single nodes, without the maps that
// Floor.Node has to make.

// Free returns what is free on a node now, its healthy devices that nobody holds
// among it; nothing on one that was removed. Cores and memory are negative when
// the node holds more than it has.
func (f *Floor) Free(index int) capacity.Amount { return f.spaces[index].free() }

// Allocs counts the allocations that hold something of a node.
func (f *Floor) Allocs(index int) int { return int(f.spaces[index].allocs) }

// UsedPorts counts the ports of a node that are held, in and outside of the range
// for dynamic ones.
func (f *Floor) UsedPorts(index int) int { return len(f.ports[index]) }

// FitsAt reports whether a rank that is neither the first nor a smaller last one
// has room on a node now.
func (f *Floor) FitsAt(need *Need, index int, options Options) bool {
	q := f.query(need, &need.ports, &options)
	pos := q.f.layout.posOf[index]
	return pos >= 0 && q.open.Has(int(pos)) && q.fits(pos)
}

// HeadFitsAt is FitsAt for rank 0.
func (f *Floor) HeadFitsAt(need *Need, index int, options Options) bool {
	q := f.query(need, &need.head, &options)
	pos := q.f.layout.posOf[index]
	return pos >= 0 && q.open.Has(int(pos)) && q.fits(pos)
}

// CouldAt reports whether a node takes new work and would have room for a rank if
// it held nothing.
func (f *Floor) CouldAt(need *Need, index int) bool {
	q := f.query(need, &need.ports, &Options{})
	pos := q.f.layout.posOf[index]
	return pos >= 0 && q.open.Has(int(pos)) && q.could(pos)
}

// Meeting counts the free healthy devices of a node that meet one of the need's
// requests; 0 when the node is not open to the need.
func (f *Floor) Meeting(need *Need, index int) int {
	return f.meeting(need, index, func(word int, held, healthy uint64) uint64 { return healthy &^ held })
}

// MeetingIn counts the devices of a seat that meet one of the need's requests; 0
// when its node is not open to the need.
func (f *Floor) MeetingIn(need *Need, seat *Seat) int {
	return f.meeting(need, seat.Index(), func(word int, _, _ uint64) uint64 { return seat.devicesOf(word) })
}

// meeting counts those of the picked devices that meet one of the requests.
func (f *Floor) meeting(need *Need, index int, pick func(word int, held, healthy uint64) uint64) int {
	v := f.viewOf(need)
	pos := f.layout.posOf[index]
	if pos < 0 || !v.open.Has(int(pos)) {
		return 0
	}
	count, m := 0, v.matchAt(f.layout, pos)
	held, healthy := f.devicesAt(int32(index))
	for w := range held {
		meets := uint64(0)
		for i := range m.requests {
			meets |= m.requests[i].meets[w]
		}
		count += bits.OnesCount64(meets & pick(w, held[w], healthy[w]))
	}
	return count
}
