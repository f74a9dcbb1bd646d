package load

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// tally is how much of something there is at each instant. While it is filled, a
// place says by how much it differs from the one before.
type tally []int

// over adds n from one instant on until another, that one not included; to 0 is
// for ever.
func (t tally) over(times []structs.UnixNano, from, to structs.UnixNano, n int) {
	first, _ := slices.BinarySearch(times, from)
	last := len(times)
	if to != 0 {
		last, _ = slices.BinarySearch(times, to)
	}
	if first >= last {
		return
	}
	t[first] += n
	if last < len(t) {
		t[last] -= n
	}
}

// summing is the work of one Sum.
type summing struct {
	times []structs.UnixNano
	pools map[string]*pool
	takes [kinds]tally // of the node at hand
	away  tally        // how many outages of the node at hand take all of it
	sick  tally
}

// pool is what is known of a pool.
type pool struct {
	outlook.PoolLoad
	past tally // used on no node that is known
}

// Sum reports how full pools are at some instants, in order, and all of them
// together: every card counts once, as the first of used, held, foreseen, away and
// reserved that it is. A pool without cards counts nodes; beside pools with cards
// it does not count in the sum of all.
func Sum(sites []Site, spans []Span, times []structs.UnixNano) (all outlook.PoolLoad, pools []outlook.PoolLoad) {
	s := &summing{times: times, pools: make(map[string]*pool), away: make(tally, len(times)), sick: make(tally, len(times))}
	for kind := range s.takes {
		s.takes[kind] = make(tally, len(times))
	}
	cards := false
	for i := range sites {
		p := s.pool(sites[i].Pool)
		p.CountsNodes = p.CountsNodes && sites[i].Cards == 0
		cards = cards || sites[i].Cards > 0
	}
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Node, b.Node) })
	for i := range sites {
		s.site(&sites[i], ofNode(spans, sites[i].ID))
	}
	for _, span := range ofNode(spans, "") {
		if p := s.pools[span.Pool]; p != nil && span.Kind == Used {
			n := span.Cards
			if p.CountsNodes {
				n = span.Nodes
			}
			p.past.over(times, span.From, span.To, n)
		}
	}
	all = newLoad("", len(times))
	all.CountsNodes = !cards
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		p := s.pools[name]
		p.addPast()
		if p.CountsNodes == all.CountsNodes {
			add(&all, &p.PoolLoad)
		}
		pools = append(pools, p.PoolLoad)
	}
	return all, pools
}

// ofNode are the spans of a node among those sorted by node.
func ofNode(spans []Span, id string) []Span {
	first, _ := slices.BinarySearchFunc(spans, id, func(s Span, id string) int { return cmp.Compare(s.Node, id) })
	last := first
	for last < len(spans) && spans[last].Node == id {
		last++
	}
	return spans[first:last]
}

// newLoad is a pool that holds nothing.
func newLoad(name string, count int) outlook.PoolLoad {
	zero := func() []int { return make([]int, count) }
	return outlook.PoolLoad{Pool: name, CountsNodes: true, Total: zero(), Used: zero(), Held: zero(), Foreseen: zero(), Away: zero(), Reserved: zero()}
}

func (s *summing) pool(name string) *pool {
	if s.pools[name] == nil {
		s.pools[name] = &pool{PoolLoad: newLoad(name, len(s.times)), past: make(tally, len(s.times))}
	}
	return s.pools[name]
}

// site adds a node with its spans to its pool.
func (s *summing) site(site *Site, spans []Span) {
	p := s.pools[site.Pool]
	whole := site.Cards
	if p.CountsNodes {
		whole = 1
	}
	if whole == 0 {
		return
	}
	for _, t := range s.takes {
		clear(t)
	}
	clear(s.away)
	clear(s.sick)
	for _, span := range spans {
		cards := span.Cards
		if p.CountsNodes {
			cards = 1
		}
		s.takes[span.Kind].over(s.times, span.From, span.To, cards)
	}
	for _, outage := range site.Down {
		if outage.Cards == 0 {
			s.away.over(s.times, outage.From, outage.To, 1)
		} else {
			s.sick.over(s.times, outage.From, outage.To, outage.Cards)
		}
	}
	var takes [kinds]int
	away, sick := 0, 0
	for i, at := range s.times {
		for kind := range takes {
			takes[kind] += s.takes[kind][i]
		}
		away += s.away[i]
		sick += s.sick[i]
		if at < site.From {
			continue
		}
		rest := whole
		take := func(n int) int {
			n = min(n, rest)
			rest -= n
			return n
		}
		p.Total[i] += whole
		p.Used[i] += take(takes[Used])
		p.Held[i] += take(takes[Held])
		p.Foreseen[i] += take(takes[Foreseen])
		if away > 0 {
			p.Away[i] += take(whole)
		} else {
			p.Away[i] += take(sick)
		}
		p.Reserved[i] += take(takes[Reserved])
	}
}

// addPast adds what was used on no node that is known, as far as there was room.
func (p *pool) addPast() {
	sum := 0
	for i, n := range p.past {
		sum += n
		p.Used[i] += min(sum, p.Total[i]-p.Used[i]-p.Held[i]-p.Foreseen[i]-p.Away[i]-p.Reserved[i])
	}
}

// add adds a pool to a sum.
func add(sum, one *outlook.PoolLoad) {
	for i := range sum.Total {
		sum.Total[i] += one.Total[i]
		sum.Used[i] += one.Used[i]
		sum.Held[i] += one.Held[i]
		sum.Foreseen[i] += one.Foreseen[i]
		sum.Away[i] += one.Away[i]
		sum.Reserved[i] += one.Reserved[i]
	}
}
