package forecast

import (
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// reservationsMax is how many blocked gangs of a pool have a reserved start.
func reservationsMax(s scheduler.Settings) int {
	switch {
	case s.Passing == scheduler.NoPassing || s.Reservations < 0:
		return 0
	case s.Passing == scheduler.Easy:
		return 1
	case s.Reservations == 0:
		return scheduler.ReservationsDefault
	}
	return s.Reservations
}

// filling reports whether a gang of a pool's queue is served when it is only about
// filling what is left: the shortest first, whatever the place. That is so when
// somebody before it waits without reserved nodes, or as many have some as may.
func (f *Futures) filling(before, reserved int) bool {
	return before > reserved || reserved > 0 && reserved >= f.reservationsMax
}

// reservedBefore counts those of a turn that have nodes reserved in a pool's queue before a
// place.
func (f *Futures) reservedBefore(t *turn, pool string, place int) int {
	count := 0
	for _, k := range t.reserved {
		id, index := k.Job()
		if at, ok := f.found[structs.AttemptKey{JobID: id, Subjob: index}]; ok && int(at) < f.queued {
			if m := &f.members[at]; m.pool == pool && m.place < place {
				count++
			}
		}
	}
	return count
}

// fills reports of each gang that started in a future whether it filled in. Those
// of pools that are ordered by fair share keep their order.
func (f *Futures) fills(u *future) []bool {
	fills := make([]bool, len(u.occupancies))
	if f.strict {
		return fills
	}
	lines := make(map[string]*line)
	for i := range f.members[:f.queued] {
		if m := &f.members[i]; !m.now && !m.stuck {
			l := lines[m.pool]
			if l == nil {
				l = &line{fair: f.fair(m.pool)}
				lines[m.pool] = l
			}
			if !m.away {
				l.add(m.place, +1)
			}
		}
	}
	done, opened := int32(0), false
	for i := range u.turns {
		t := &u.turns[i]
		if !opened && t.at >= f.opening() {
			opened = true
			for k := range f.members[:f.queued] {
				if m := &f.members[k]; m.away && !m.now && !m.stuck {
					lines[m.pool].add(m.place, +1)
				}
			}
		}
		news := u.log[done:t.log]
		done = t.log
		for _, entry := range news {
			if m := f.starter(u, entry); m != nil {
				lines[m.pool].add(m.place, -1)
			}
		}
		for _, entry := range news {
			if m := f.starter(u, entry); m != nil && !lines[m.pool].fair {
				before := lines[m.pool].before(m.place)
				fills[entry-1] = before > 0 && f.filling(before, f.reservedBefore(t, m.pool, m.place))
			}
		}
	}
	return fills
}

// starter is the queued member that an entry of the log starts for the first
// time; nil: it does something else.
func (f *Futures) starter(u *future, entry int32) *member {
	if entry < 0 {
		return nil
	}
	h := &u.occupancies[entry-1]
	if m := &f.members[h.member]; int(h.member) < f.queued && !m.now && !m.stuck && u.starts[h.member] == h.from {
		return m
	}
	return nil
}

// fair reports whether a pool's queue is ordered by fair share.
func (f *Futures) fair(pool string) bool {
	record := f.base.Pool(pool)
	return record != nil && record.Order == structs.OrderFair
}

// line counts who waits in a queue, by place: a binary indexed tree.
type line struct {
	fair bool
	sums []int
}

func (l *line) add(place, by int) {
	for len(l.sums) <= place {
		l.grow()
	}
	for ; place > 0 && place < len(l.sums); place += place & -place {
		l.sums[place] += by
	}
}

// grow doubles the places.
func (l *line) grow() {
	size := max(64, 2*len(l.sums))
	all := 0
	if n := len(l.sums); n > 0 {
		all = l.before(n)
	}
	sums := make([]int, size)
	copy(sums, l.sums)
	for at := len(l.sums); at > 0 && at < size; at += at & -at {
		sums[at] += all
	}
	l.sums = sums
}

// before counts those in places before one.
func (l *line) before(place int) int {
	sum := 0
	for at := min(place, len(l.sums)) - 1; at > 0; at -= at & -at {
		sum += l.sums[at]
	}
	return sum
}
