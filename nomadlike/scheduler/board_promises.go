package scheduler

import "slices"

// promises is the part of a board that knows what is kept for gangs that wait:
// nodes nominated for them, starts that are reserved, and when nodes are
// expected to be free for those who ask.
type promises struct {
	nominations []int32 // nominated entries, and running ones that change their size

	kept      []*reservation // nil: free
	keptCount int
	// boundCount of them go by time limits alone.
	boundCount int
	picks      []pick // scratch
	profiles   []*profile
}

// clone copies what changes, and the profiles that were in use as of a pass.
func (p *promises) clone(serial uint64) promises {
	c := *p
	c.nominations, c.kept, c.picks = slices.Clone(p.nominations), slices.Clone(p.kept), nil
	c.profiles = p.cloneProfiles(serial)
	return c
}

// add notes a reservation, and returns its number.
func (p *promises) add(r *reservation) int {
	at := slices.Index(p.kept, nil)
	if at < 0 {
		at = len(p.kept)
		p.kept = append(p.kept, nil)
	}
	p.kept[at] = r
	p.keptCount++
	if r.bounded {
		p.boundCount++
	}
	return at
}

// drop drops the reservation with a number.
func (p *promises) drop(at int) {
	if p.kept[at].bounded {
		p.boundCount--
	}
	p.kept[at] = nil
	p.keptCount--
}
