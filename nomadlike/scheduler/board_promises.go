package scheduler

import "slices"

// promises is the part of a board that knows what is reserved for gangs that wait:
// nodes nominated for them, starts that are reserved, and when nodes are
// expected to be free for those who ask.
type promises struct {
	nominations []int32 // nominated entries, and running ones that change their size

	reservations     []*reservation // nil: free
	reservationCount int
	// boundCount of them go by time limits alone.
	boundCount int
	picks      []pick // scratch
	profiles   []*profile
}

// clone copies what changes, and the profiles that were in use as of a pass.
func (p *promises) clone(serial uint64) promises {
	c := *p
	c.nominations, c.reservations, c.picks = slices.Clone(p.nominations), slices.Clone(p.reservations), nil
	c.profiles = p.cloneProfiles(serial)
	return c
}

// add notes a reservation, and returns its number.
func (p *promises) add(r *reservation) int {
	at := slices.Index(p.reservations, nil)
	if at < 0 {
		at = len(p.reservations)
		p.reservations = append(p.reservations, nil)
	}
	p.reservations[at] = r
	p.reservationCount++
	if r.bounded {
		p.boundCount++
	}
	return at
}

// drop drops the reservation with a number.
func (p *promises) drop(at int) {
	if p.reservations[at].bounded {
		p.boundCount--
	}
	p.reservations[at] = nil
	p.reservationCount--
}
