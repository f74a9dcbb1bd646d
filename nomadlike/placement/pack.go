package placement

import (
	"cmp"
	"math"
	"slices"

	"nomadlike/nomadlike/structs/capacity"
)

// This file keeps gangs within the closest topology.

// pack finds the innermost place of the topology that has room for the whole
// gang, and chooses there.
func (g *gang) pack() (team []int32, last int32, ok bool) {
	p := packing{gang: g}
	whole := g.f.layout.domains[0][0]
	g.f.scratch.positions = p.gather(g.f.scratch.positions[:0], whole.lo, whole.hi, g.full)
	if len(g.f.scratch.positions) < g.full {
		return nil, 0, false // found out at once when nothing is free
	}
	for level := g.f.layout.depth(); level >= 0; level-- {
		if team, d, found := p.bestOf(level, 0, whole, g.full, g.last != nil); found {
			if g.last != nil {
				last, ok = g.bestLast(team, d.lo, d.hi)
				return team, last, ok
			}
			return team, 0, true
		}
	}
	return nil, 0, false
}

// packing is the search of one gang, with what it counted on the way.
type packing struct {
	*gang
	fits    []int32      // by position, how many before it fit; nil: not counted yet
	small   []int32      // the same for the last rank
	fitting capacity.Set // positions that fit
}

// bestOf finds the best place of a level that lies within outer, a place of
// outerLevel, and has room for n full ranks, and for a last one too when that is
// asked; and positions there for the full ranks.
func (p *packing) bestOf(level, outerLevel int, outer domain, n int, withLast bool) ([]int32, domain, bool) {
	lo, hi := p.inside(level, outerLevel, outer)
	if level == p.f.layout.depth() {
		return p.bestLeaf(lo, hi, outer, n, withLast)
	}
	p.count()
	best, bestCrossed, found := domain{}, 0, false
	for _, d := range p.f.layout.domains[level][lo:hi] {
		if !p.roomy(d, n, withLast) {
			continue
		}
		crossed := p.crossed(level, d, n)
		if !found || cmp.Or(cmp.Compare(crossed, bestCrossed), cmp.Compare(p.room(d), p.room(best))) < 0 {
			best, bestCrossed, found = d, crossed, true
		}
	}
	if !found {
		return nil, domain{}, false
	}
	return p.fill(make([]int32, 0, p.gang.count), level, best, n), best, true
}

// inside returns the places of a level that lie within outer, as indexes.
func (p *packing) inside(level, outerLevel int, outer domain) (lo, hi int) {
	if level == outerLevel {
		lo = slices.Index(p.f.layout.domains[level], outer)
		return lo, lo + 1
	}
	lo, hi = outer.childLo, outer.childHi
	for inner := outerLevel + 1; inner < level; inner++ {
		domains := p.f.layout.domains[inner]
		lo, hi = domains[lo].childLo, domains[hi-1].childHi
	}
	return lo, hi
}

// bestLeaf finds among innermost places the one where the fewest nodes have
// enough free devices, but which has room, and positions there.
func (p *packing) bestLeaf(lo, hi int, outer domain, n int, withLast bool) ([]int32, domain, bool) {
	leaves := p.f.layout.domains[p.f.layout.depth()][lo:hi]
	near := p.near(outer.lo, outer.hi)
	free := p.f.scratch.free[:0]
	for _, d := range leaves {
		free = append(free, near.CountSpan(d.lo, d.hi))
	}
	p.f.scratch.free = free
	for {
		best, fewest := -1, math.MaxInt
		for i, count := range free {
			if count >= n && count < fewest {
				best, fewest = i, count
			}
		}
		if best < 0 {
			return nil, domain{}, false
		}
		free[best] = -1
		d := leaves[best]
		team := p.take(make([]int32, 0, p.gang.count), d.lo, d.hi, n)
		if len(team) < n {
			continue
		}
		if withLast && len(p.last.take(nil, d.lo, d.hi, n+1)) <= n {
			continue
		}
		return team, d, true
	}
}

// count finds out which positions fit.
func (p *packing) count() {
	if p.fits != nil {
		return
	}
	n := len(p.f.layout.index)
	p.fitting = capacity.NewSet(n)
	p.fits = countFits(&p.query, p.fitting)
	if p.last != nil {
		p.small = countFits(p.last, capacity.NewSet(n))
	}
}

func countFits(q *query, fitting capacity.Set) []int32 {
	n := len(q.f.layout.index)
	for _, pos := range q.gather(nil, 0, n, n) {
		fitting.Add(int(pos))
	}
	before := make([]int32, n+1)
	for pos := range n {
		before[pos+1] = before[pos]
		if fitting.Has(pos) {
			before[pos+1]++
		}
	}
	return before
}

// room is how many positions of a place fit.
func (p *packing) room(d domain) int { return int(p.fits[d.hi] - p.fits[d.lo]) }

// roomy reports whether a place has room for n ranks, and for a last one too when
// that is asked: whatever fits a full rank fits the last.
func (p *packing) roomy(d domain, n int, withLast bool) bool {
	return p.room(d) >= n && (!withLast || int(p.small[d.hi]-p.small[d.lo]) > n)
}

// crossed is the least number of inner places that n ranks within d stand in.
func (p *packing) crossed(level int, d domain, n int) int {
	crossed := 0
	for _, inner := range p.roomiest(level, d) {
		crossed++
		if n -= p.room(inner); n <= 0 {
			break
		}
	}
	return crossed
}

// roomiest lists the inner places of d, those with the most room first.
func (p *packing) roomiest(level int, d domain) []domain {
	inner := slices.Clone(p.f.layout.domains[level+1][d.childLo:d.childHi])
	slices.SortStableFunc(inner, func(a, b domain) int { return cmp.Compare(p.room(b), p.room(a)) })
	return inner
}

// fill appends n positions of a place that has room for them, across as few
// inner places as possible: the roomiest as a whole, and the rest in the
// tightest that has room for it.
func (p *packing) fill(team []int32, level int, d domain, n int) []int32 {
	if level == p.f.layout.depth() {
		return p.take(team, d.lo, d.hi, n)
	}
	inner := p.roomiest(level, d)
	for n > p.room(inner[0]) {
		for pos := inner[0].lo; pos < inner[0].hi; pos++ {
			if p.fitting.Has(pos) {
				team = append(team, int32(pos))
			}
		}
		n -= p.room(inner[0])
		inner = inner[1:]
	}
	rest := inner[0]
	for _, other := range inner[1:] {
		if room := p.room(other); room >= n && (room < p.room(rest) || room == p.room(rest) && other.lo < rest.lo) {
			rest = other
		}
	}
	return p.tuck(team, level+1, rest, n)
}

// tuck appends n positions of a place that has room for them, within the
// innermost place inside it that has.
func (p *packing) tuck(team []int32, outerLevel int, outer domain, n int) []int32 {
	for level := p.f.layout.depth(); level > outerLevel; level-- {
		if part, _, found := p.bestOf(level, outerLevel, outer, n, false); found {
			return append(team, part...)
		}
	}
	return p.fill(team, outerLevel, outer, n)
}
