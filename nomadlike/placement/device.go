package placement

import (
	"math/bits"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// This file chooses devices within a node as feasible.ChooseDevices does, on
// bits. TestPickAgainstTwin holds the two together.

// enough reports whether the requests can be answered from what is free. It is
// exact when no device meets two requests; else choose is asked.
func (c *class) enough(m *match, held, healthy capacity.Set) bool {
	if !m.apart {
		_, ok := c.choose(&picker{}, m, held, healthy)
		return ok
	}
	for i := range m.requests {
		if w := &m.requests[i]; !w.enough(held, healthy) {
			return false
		}
	}
	return true
}

func (w *want) enough(held, healthy capacity.Set) bool {
	free, all := 0, 0
	for i, meets := range w.meets {
		free += bits.OnesCount64(meets & healthy[i] &^ held[i])
		all += bits.OnesCount64(meets)
	}
	if w.count == structs.DevicesAll {
		return all > 0 && free == all
	}
	return free >= w.count
}

// picker is memory for one choice of devices.
type picker struct{ rest, chosen, meeting capacity.Set }

// reset makes the sets empty, and rest what is free.
func (p *picker) reset(held, healthy capacity.Set) {
	if len(p.rest) < len(held) {
		*p = picker{make(capacity.Set, len(held)), make(capacity.Set, len(held)), make(capacity.Set, len(held))}
	}
	p.rest, p.chosen, p.meeting = p.rest[:len(held)], p.chosen[:len(held)], p.meeting[:len(held)]
	for i := range held {
		p.rest[i], p.chosen[i] = healthy[i]&^held[i], 0
	}
}

// choose answers the requests with free devices; false when they are short. The
// answer lies in the picker.
func (c *class) choose(p *picker, m *match, held, healthy capacity.Set) (capacity.Set, bool) {
	p.reset(held, healthy)
	for i := range m.requests {
		w := &m.requests[i]
		if w.count == structs.DevicesAll {
			if !w.takeAll(p.rest, p.chosen) {
				return nil, false
			}
			continue
		}
		meeting := 0
		for k := range p.meeting {
			p.meeting[k] = p.rest[k] & w.meets[k]
			meeting += bits.OnesCount64(p.meeting[k])
		}
		switch {
		case meeting < w.count:
			return c.deal(p, m, held, healthy)
		case meeting == w.count:
			takeLowest(p.meeting, meeting, p.meeting, p.rest, p.chosen)
		default:
			c.closest(p.meeting, w.count, p.rest, p.chosen)
		}
	}
	return p.chosen, true
}

// takeAll moves every device that meets a request for all from rest to chosen;
// false when one of them is not there.
func (w *want) takeAll(rest, chosen capacity.Set) bool {
	all := uint64(0)
	for i, meets := range w.meets {
		if meets&^rest[i] != 0 {
			return false
		}
		all |= meets
		chosen[i] |= meets
		rest[i] &^= meets
	}
	return all != 0
}

// closest moves count of the meeting devices from rest to chosen, as the
// function of that name in structs does: from the smallest link group that has
// enough, else the smallest NUMA node, and there or else anywhere from the
// largest groups on.
func (c *class) closest(meeting capacity.Set, count int, rest, chosen capacity.Set) {
	for inNUMA := false; count > 0; {
		group := smallestWith(c.links, meeting, count)
		if group == nil && !inNUMA {
			if numa := smallestWith(c.numas, meeting, count); numa != nil {
				for i := range meeting {
					meeting[i] &= numa[i]
				}
				inNUMA = true
				continue
			}
		}
		if group == nil {
			group = largestIn(c.cells, meeting)
		}
		count -= takeLowest(group, count, meeting, rest, chosen)
	}
}

// smallestWith finds the group of which the fewest devices are among meeting,
// but at least count; nil when there is none.
func smallestWith(groups []capacity.Set, meeting capacity.Set, count int) capacity.Set {
	var best capacity.Set
	fewest := 0
	for _, group := range groups {
		if n := group.CountIn(meeting); n >= count && (best == nil || n < fewest) {
			best, fewest = group, n
		}
	}
	return best
}

// largestIn finds the group of which the most devices are among meeting.
func largestIn(groups []capacity.Set, meeting capacity.Set) capacity.Set {
	var best capacity.Set
	most := 0
	for _, group := range groups {
		if n := group.CountIn(meeting); n > most {
			best, most = group, n
		}
	}
	return best
}

// takeLowest moves up to count devices of a group from meeting and rest to
// chosen, and reports how many.
func takeLowest(group capacity.Set, count int, meeting, rest, chosen capacity.Set) int {
	taken := 0
	for i := range group {
		for word := group[i] & meeting[i]; word != 0 && taken < count; word &= word - 1 {
			bit := word & -word
			meeting[i] &^= bit
			rest[i] &^= bit
			chosen[i] |= bit
			taken++
		}
	}
	return taken
}

// deal answers requests that get into each other's way in any way that works,
// as the function of that name in structs does.
func (c *class) deal(p *picker, m *match, held, healthy capacity.Set) (capacity.Set, bool) {
	p.reset(held, healthy)
	rest, chosen := p.rest, p.chosen
	var seats []*want
	for i := range m.requests {
		w := &m.requests[i]
		if w.count == structs.DevicesAll {
			if !w.takeAll(rest, chosen) {
				return nil, false
			}
			continue
		}
		for range w.count {
			seats = append(seats, w)
		}
	}
	devices := rest.Members()
	if len(seats) > len(devices) {
		return nil, false
	}
	holder := make([]int, len(devices)) // device -> seat, -1 when free
	for i := range holder {
		holder[i] = -1
	}
	visited := make([]bool, len(devices))
	for s := range seats {
		clear(visited)
		if !augment(s, seats, devices, holder, visited) {
			return nil, false
		}
	}
	for i, s := range holder {
		if s >= 0 {
			chosen.Add(int(devices[i]))
		}
	}
	return chosen, true
}

// augment finds seat s a device, moving others along when it must.
func augment(s int, seats []*want, devices []int32, holder []int, visited []bool) bool {
	for i, d := range devices {
		if visited[i] || !seats[s].meets.Has(int(d)) {
			continue
		}
		visited[i] = true
		if holder[i] < 0 || augment(holder[i], seats, devices, holder, visited) {
			holder[i] = s
			return true
		}
	}
	return false
}
