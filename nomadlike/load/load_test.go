package load

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

var now = structs.At(time.Date(2026, 11, 2, 8, 7, 0, 0, time.UTC))

func before(span time.Duration) structs.UnixNano { return now.Add(-span) }

// fake is a state that is made up.
type fake struct {
	nodes  []*structs.Node
	allocs []*structs.Allocation
	events []*structs.Event
	runs   []*structs.PastRun
}

func (f *fake) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		for _, node := range f.nodes {
			if !yield(node, nil) {
				return
			}
		}
	}
}
func (f *fake) Allocs() iter.Seq[*structs.Allocation] { return slices.Values(f.allocs) }
func (f *fake) RecentEvents(since structs.UnixNano) iter.Seq[*structs.Event] {
	return slices.Values(slices.DeleteFunc(slices.Clone(f.events), func(e *structs.Event) bool { return e.Time < since }))
}
func (f *fake) PastRuns(uint64) []*structs.PastRun { return f.runs }

func (f *fake) node(name, pool string, cards int) *structs.Node {
	node := &structs.Node{ID: name, Name: name, Pool: pool, Status: structs.NodeReady, Eligibility: structs.NodeEligible}
	for i := range cards {
		node.Devices = append(node.Devices, structs.Device{ID: fmt.Sprint("card-", i), Healthy: true})
	}
	f.nodes = append(f.nodes, node)
	return node
}

func (f *fake) alloc(job, node string, cards int, status structs.AllocStatus, from, to structs.UnixNano) *structs.Allocation {
	alloc := &structs.Allocation{ID: fmt.Sprint("alloc-", len(f.allocs)), JobID: job, NodeID: node, Status: status, PlacedAt: from, StartedAt: from, FinishedAt: to}
	for i := range cards {
		alloc.Devices = append(alloc.Devices, fmt.Sprint("card-", i))
	}
	f.allocs = append(f.allocs, alloc)
	return alloc
}

func (f *fake) event(id, node string, at structs.UnixNano, params ...string) *structs.Event {
	event := &structs.Event{ID: id, NodeID: node, Time: at, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		event.Params[params[i]] = params[i+1]
	}
	f.events = append(f.events, event)
	slices.SortStableFunc(f.events, func(a, b *structs.Event) int { return cmp.Compare(a.Time, b.Time) })
	return event
}

// table writes what pools held.
func table(times []structs.UnixNano, at int, loads ...outlook.PoolLoad) string {
	var b strings.Builder
	for _, p := range loads {
		unit := "cards"
		if p.CountsNodes {
			unit = "nodes"
		}
		fmt.Fprintf(&b, "%s of %s\n         total  used  held  foreseen  away  reserved\n", unit, cmp.Or(p.Pool, "all pools"))
		for i, t := range times {
			mark := ""
			if i == at {
				mark = "  now"
			}
			fmt.Fprintf(&b, "%s  %6d%6d%6d%10d%6d%10d%s\n", t.Time().Format("15:04"), p.Total[i], p.Used[i], p.Held[i], p.Foreseen[i], p.Away[i], p.Reserved[i], mark)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// day is a state with all that the past is made of.
func day() *fake {
	f := &fake{}
	f.node("a1", "a800", 8)
	lost := f.node("a2", "a800", 8)
	lost.Status, lost.StatusAt = structs.NodeLost, before(90*time.Minute)
	sick := f.node("a3", "a800", 8)
	sick.Devices[7].Healthy = false
	drained := f.node("a4", "a800", 8)
	drained.Eligibility = structs.NodeDraining
	planned := f.node("a5", "a800", 8)
	planned.Maintenance = []structs.NodeMaintenance{
		{ID: "now", Start: before(150 * time.Minute), End: now.Add(30 * time.Minute), Begun: true},
		{ID: "later", Start: now.Add(90 * time.Minute), End: now.Add(150 * time.Minute)},
	}
	f.node("c1", "cpu", 0)
	f.node("c2", "cpu", 0)

	f.alloc("train", "a1", 8, structs.AllocRunning, before(5*time.Hour), 0)
	f.alloc("was", "a1", 4, structs.AllocComplete, before(8*time.Hour), before(6*time.Hour))
	f.alloc("down", "a2", 8, structs.AllocLost, before(7*time.Hour), before(90*time.Minute)).Quarantined = true
	held := f.alloc("look", "a3", 2, structs.AllocFailed, before(4*time.Hour), before(2*time.Hour))
	held.Hold = &structs.Hold{Since: before(2 * time.Hour), Until: now.Add(time.Hour)}
	over := f.alloc("looked", "a3", 4, structs.AllocFailed, before(7*time.Hour), before(6*time.Hour))
	f.event("event.alloc.hold_over", "a3", before(5*time.Hour)).AllocID = over.ID
	f.alloc("serve", "c1", 0, structs.AllocRunning, before(3*time.Hour), 0)
	f.alloc("serve", "c1", 0, structs.AllocRunning, before(3*time.Hour), 0)
	f.alloc("removed", "a9", 8, structs.AllocComplete, before(3*time.Hour), before(time.Hour))

	f.event("event.node.registered", "a4", before(6*time.Hour))
	f.event("event.node.lost", "a2", before(90*time.Minute))
	f.event("event.node.device_unwell", "a3", before(3*time.Hour), "device", "card-7")
	f.event("event.node.cordoned", "a1", before(10*time.Hour))
	f.event("event.node.eligible", "a1", before(9*time.Hour))
	f.event("event.node.draining", "a4", before(30*time.Minute))
	f.event("event.node.unfit", "c2", before(8*time.Hour), "fault", "link/eth0")
	f.event("event.node.fault_over", "c2", before(7*time.Hour), "fault", "link/eth0")
	f.runs = []*structs.PastRun{
		{JobID: "forgotten", Pool: "a800", Devices: 6, Nodes: 1, Runtime: structs.Duration(time.Hour), EndedAt: before(9*time.Hour + 30*time.Minute)},
		{JobID: "was", Pool: "a800", Devices: 4, Nodes: 1, Runtime: structs.Duration(2 * time.Hour), EndedAt: before(6 * time.Hour)},
	}

	return f
}

// The day, hour by hour.
func TestPast(t *testing.T) {
	f := day()
	times, at := Times(now, 11*time.Hour, 3*time.Hour, time.Hour)
	sites, spans := Past(f, times[0], now)
	spans = append(spans,
		Span{Node: "a1", Kind: Used, Cards: 8, From: now + 1, To: now.Add(90 * time.Minute)},
		Span{Node: "a1", Kind: Foreseen, Cards: 4, From: now.Add(90 * time.Minute)},
		Span{Node: "a3", Kind: Reserved, Cards: 8, From: now + 1, To: now.Add(2 * time.Hour)},
		Span{Node: "c1", Kind: Used, From: now + 1},
	)
	all, pools := Sum(sites, spans, times)
	golden.Assert(t, "testdata/past.txt", table(times, at, append([]outlook.PoolLoad{all}, pools...)...))
}

// twin is Sum by asking of every instant, node and span.
func twin(sites []Site, spans []Span, times []structs.UnixNano) (outlook.PoolLoad, []outlook.PoolLoad) {
	within := func(from, to, at structs.UnixNano) bool { return from <= at && (to == 0 || at < to) }
	cards := map[string]int{}
	anywhere := 0
	for _, site := range sites {
		cards[site.Pool] += site.Cards
		anywhere += site.Cards
	}
	all := newLoad("", len(times))
	all.CountsNodes = anywhere == 0
	var pools []outlook.PoolLoad
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for pool := range cards {
			if !yield(pool) {
				return
			}
		}
	}) {
		p := newLoad(name, len(times))
		p.CountsNodes = cards[name] == 0
		for i, at := range times {
			for _, site := range sites {
				if site.Pool != name || at < site.From {
					continue
				}
				count := map[Kind]int{}
				for _, span := range spans {
					if span.Node == site.ID && within(span.From, span.To, at) {
						count[span.Kind] += span.Cards
						if p.CountsNodes {
							count[span.Kind] = 1
						}
					}
				}
				whole, down := site.Cards, 0
				if p.CountsNodes {
					whole = 1
				}
				for _, outage := range site.Down {
					if within(outage.From, outage.To, at) {
						down += cmp.Or(outage.Cards, whole)
					}
				}
				left := whole
				for _, part := range []struct {
					n   int
					sum []int
				}{{count[Used], p.Used}, {count[Held], p.Held}, {count[Foreseen], p.Foreseen}, {down, p.Away}, {count[Reserved], p.Reserved}} {
					n := min(part.n, left)
					left -= n
					part.sum[i] += n
				}
				p.Total[i] += whole
			}
			more := 0
			for _, span := range spans {
				if span.Node == "" && span.Kind == Used && span.Pool == name && within(span.From, span.To, at) {
					more += span.Cards
					if p.CountsNodes {
						more += span.Nodes - span.Cards
					}
				}
			}
			p.Used[i] += min(more, p.Total[i]-p.Used[i]-p.Held[i]-p.Foreseen[i]-p.Away[i]-p.Reserved[i])
		}
		if p.CountsNodes == all.CountsNodes {
			add(&all, &p)
		}
		pools = append(pools, p)
	}
	return all, pools
}

func TestSumAgreesWithTwin(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		moment := func() structs.UnixNano { return structs.UnixNano(rng.IntN(40)) }
		var sites []Site
		for i := range 1 + rng.IntN(6) {
			site := Site{ID: fmt.Sprint("n", i), Pool: fmt.Sprint("p", rng.IntN(3)), Cards: rng.IntN(3) * 4}
			if rng.IntN(3) == 0 {
				site.From = moment()
			}
			for range rng.IntN(4) {
				from := moment()
				outage := Outage{Cards: rng.IntN(3), From: from, To: from + moment()}
				if rng.IntN(4) == 0 {
					outage.To = 0
				}
				site.Down = append(site.Down, outage)
			}
			sites = append(sites, site)
		}
		var spans []Span
		for range rng.IntN(20) {
			from := moment()
			span := Span{Node: fmt.Sprint("n", rng.IntN(7)), Kind: Kind(rng.IntN(int(kinds))), Cards: rng.IntN(5), From: from, To: from + moment()}
			switch rng.IntN(6) {
			case 0:
				span.Node, span.Pool, span.Nodes = "", fmt.Sprint("p", rng.IntN(4)), rng.IntN(3)
			case 1:
				span.To = 0
			}
			spans = append(spans, span)
		}
		times, _ := Times(20, 17, 15, time.Duration(1+rng.IntN(4)))
		all, pools := Sum(sites, spans, times)
		slowAll, slowPools := twin(sites, spans, times)
		if !reflect.DeepEqual(all, slowAll) || !reflect.DeepEqual(pools, slowPools) {
			t.Fatalf("seed %d: sites %+v\nspans %+v\ntimes %v\n%+v\n%+v\ntwin\n%+v\n%+v", seed, sites, spans, times, all, pools, slowAll, slowPools)
		}
		for _, p := range pools {
			for i := range times {
				if free := p.Total[i] - p.Used[i] - p.Held[i] - p.Foreseen[i] - p.Away[i] - p.Reserved[i]; free < 0 {
					t.Fatalf("seed %d: %d cards are counted twice", seed, -free)
				}
			}
		}
	}
}

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		now         structs.UnixNano
		past, ahead time.Duration
		step        time.Duration
		times       []structs.UnixNano
		at          int
	}{
		{23, 10, 10, 5, []structs.UnixNano{15, 20, 23, 25, 30}, 2},
		{20, 10, 10, 5, []structs.UnixNano{10, 15, 20, 25, 30}, 2},
		{21, 0, 3, 5, []structs.UnixNano{21}, 0},
	} {
		if times, at := Times(c.now, c.past, c.ahead, c.step); !slices.Equal(times, c.times) || at != c.at {
			t.Errorf("at %d: %v, now at %d", c.now, times, at)
		}
	}
}

// large is a week of a large cluster.
func large() *fake {
	f := &fake{}
	rng := rand.New(rand.NewPCG(3, 3))
	for i := range 1000 {
		f.node(fmt.Sprintf("n%04d", i), fmt.Sprint("pool-", i%4), 8)
	}
	for i := range 100_000 {
		from := before(time.Duration(rng.Int64N(int64(7 * 24 * time.Hour))))
		f.alloc(fmt.Sprint("job-", i/4), fmt.Sprintf("n%04d", rng.IntN(1000)), 1+rng.IntN(8), structs.AllocComplete, from, from.Add(time.Duration(rng.Int64N(int64(4*time.Hour)))))
	}
	return f
}

// BenchmarkPastAndSum counts a day of a large cluster.
func BenchmarkPastAndSum(b *testing.B) {
	f := large()
	b.ReportAllocs()
	for b.Loop() {
		times, _ := Times(now, 24*time.Hour, 12*time.Hour, 15*time.Minute)
		sites, spans := Past(f, times[0], now)
		if all, _ := Sum(sites, spans, times); all.Total[0] != 8000 {
			b.Fatal(all.Total[0])
		}
	}
}
