package placement

import (
	"cmp"
	"math/bits"
	"slices"

	"nomadlike/nomadlike/structs/capacity"
)

// query is one search for nodes that have room for ranks of a need.
type query struct {
	f       *Floor
	need    *Need
	ports   *portPlan
	view    *view
	open    capacity.Set // positions to look at, of the view
	options *Options
	emptier bool // levels with more free devices come first
}

func (f *Floor) query(need *Need, ports *portPlan, options *Options) query {
	q := query{f: f, need: need, ports: ports, view: f.viewOf(need), options: options}
	q.open = q.view.open
	return q
}

// fits reports whether the node at an open position has room for a rank now.
func (q *query) fits(pos int32) bool {
	at := q.f.layout.index[pos]
	sp := &q.f.spaces[at]
	switch {
	case !q.need.amount.FitsBeside(sp.free()) || sp.flags&flagOpen == 0:
		return false
	case sp.flags&(flagNominated|flagOver) != 0 && (sp.flags&flagOver != 0 || q.f.sites[at].usage.NominatedFor != q.options.Nominee):
		return false
	case q.need.job.VIP != nil && sp.allocs > 0:
		return false
	case q.need.level > 0 && !q.devicesFit(pos, at, sp):
		return false
	case len(q.ports.requests) > 0 && !q.ports.fits(q.f.sites[at].node, q.f.ports[at]):
		return false
	}
	return q.options.Avoid == nil || !q.options.Avoid(int(at))
}

// devicesFit reports whether the node's free devices answer the requests.
func (q *query) devicesFit(pos, at int32, sp *space) bool {
	m := q.view.matchAt(q.f.layout, pos)
	if len(m.requests) == 1 && len(m.requests[0].meets) == 1 && m.requests[0].count > 0 { // the usual case
		free := q.f.healthy[sp.word] &^ q.f.held[sp.word]
		return bits.OnesCount64(m.requests[0].meets[0]&free) >= m.requests[0].count
	}
	held, healthy := q.f.devicesAt(at)
	return q.f.sites[at].class.enough(m, held, healthy)
}

// levelAt is how many free devices the node at a position has.
func (q *query) levelAt(pos int32) uint16 { return q.f.spaces[q.f.layout.index[pos]].level() }

// better orders positions by preference: what Options prefer, then the fullest
// nodes or the emptiest, then floor order.
func (q *query) better(a, b int32) int {
	if q.options.Prefer != nil {
		index := q.f.layout.index
		if c := cmp.Compare(q.options.Prefer(int(index[b])), q.options.Prefer(int(index[a]))); c != 0 {
			return c
		}
	}
	c := cmp.Compare(q.levelAt(a), q.levelAt(b))
	if q.emptier {
		c = -c
	}
	return cmp.Or(c, cmp.Compare(a, b))
}

// take appends the best positions from lo to below hi that fit, at most limit.
func (q *query) take(list []int32, lo, hi, limit int) []int32 {
	if q.options.Prefer == nil {
		return q.gather(list, lo, hi, limit)
	}
	from := len(list)
	list = q.gather(list, lo, hi, hi-lo)
	slices.SortFunc(list[from:], q.better)
	return list[:min(len(list), from+limit)]
}

// gather appends positions from lo to below hi that fit, at most limit, level
// by level and in floor order within each.
func (q *query) gather(list []int32, lo, hi, limit int) []int32 {
	from := len(list)
	for i := q.need.level; i < len(q.f.levels) && len(list)-from < limit; i++ {
		level := i
		if q.emptier {
			level = len(q.f.levels) - 1 - (i - q.need.level)
		}
		if q.f.levels[level].nodes > 0 {
			list = q.gatherLevel(list, level, lo, hi, from+limit)
		}
	}
	return list
}

// gatherLevel appends the positions of one level that fit, until the list has
// limit entries.
func (q *query) gatherLevel(list []int32, level, lo, hi, limit int) []int32 {
	l := &q.f.levels[level]
	for i := lo >> 12; i<<12 < hi; i++ { // words of words
		for words := l.words[i] & capacity.SpanMask(i, lo>>6, (hi+63)>>6); words != 0; words &= words - 1 {
			w := i<<6 + bits.TrailingZeros64(words)
			word := l.positions[w] & q.open[w] & capacity.SpanMask(w, lo, hi)
			if word == 0 || q.f.mostCPU[w] < q.need.amount.CPU || q.f.mostMem[w] < q.need.amount.Memory {
				continue
			}
			before := len(list)
			for ; word != 0; word &= word - 1 {
				if pos := int32(w<<6 + bits.TrailingZeros64(word)); q.fits(pos) {
					if list = append(list, pos); len(list) == limit {
						return list
					}
				}
			}
			if len(list) == before {
				q.f.tighten(w)
			}
		}
	}
	return list
}

// near finds the open positions from lo to below hi that have enough free
// devices, whatever else they lack.
func (q *query) near(lo, hi int) capacity.Set {
	if len(q.f.scratch.near) < q.f.layout.words {
		q.f.scratch.near = make(capacity.Set, q.f.layout.words)
	}
	near := q.f.scratch.near[:q.f.layout.words]
	for w := lo >> 6; w<<6 < hi; w++ {
		near[w] = 0
	}
	for i := q.need.level; i < len(q.f.levels); i++ {
		if l := &q.f.levels[i]; l.nodes > 0 {
			for w := lo >> 6; w<<6 < hi; w++ {
				near[w] |= l.positions[w]
			}
		}
	}
	for w := lo >> 6; w<<6 < hi; w++ {
		near[w] &= q.open[w] & capacity.SpanMask(w, lo, hi)
	}
	return near
}
