package load

import (
	"cmp"
	"fmt"
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

// everything is no limit.
var everything = Limits{Nodes: 1 << 20, Spans: 1 << 20, All: 1 << 20}

// draw writes a past: a line for each card with who held it at each hour, and below
// it the spans and outages.
func draw(p *outlook.Past) string {
	var b strings.Builder
	clock := func(at structs.UnixNano) string {
		if at == 0 {
			return "-----"
		}
		return at.Time().Format("15:04")
	}
	hours := int(p.To.Sub(p.From) / time.Hour)
	for i := range p.Nodes {
		n := &p.Nodes[i]
		fmt.Fprintf(&b, "%s of %s", n.Node, n.Pool)
		if n.Removed {
			b.WriteString(", removed")
		}
		if n.JoinedAt != 0 {
			b.WriteString(", joined " + clock(n.JoinedAt))
		}
		if n.CompleteSince != 0 {
			b.WriteString(", complete since " + clock(n.CompleteSince))
		}
		b.WriteByte('\n')
		for card := range n.Cards {
			line := make([]byte, hours+1)
			for h := range line {
				line[h] = holderAt(n, card, p.From.Add(time.Duration(h)*time.Hour))
			}
			fmt.Fprintf(&b, "  %d %s", n.Cards[card].Index, line)
			if n.Cards[card].Gone {
				b.WriteString("  " + n.Cards[card].ID + " is gone")
			}
			b.WriteByte('\n')
		}
		for _, s := range n.Spans {
			fmt.Fprintf(&b, "  %s–%s  %s %v", clock(s.From), clock(s.To), s.Job, s.Cards)
			if s.UnknownCards > 0 {
				fmt.Fprintf(&b, " and %d more", s.UnknownCards)
			}
			if s.Held {
				b.WriteString("  held to be looked at")
			}
			b.WriteByte('\n')
		}
		for _, o := range n.Outages {
			what := "the node"
			if o.Card != nil {
				what = fmt.Sprint("card ", *o.Card)
			}
			fmt.Fprintf(&b, "  %s–%s  %s away\n", clock(o.From), clock(o.To), what)
		}
	}
	for _, use := range p.Forgotten {
		fmt.Fprintf(&b, "forgotten: %s–%s  %d cards of %s\n", clock(use.From), clock(use.To), use.Cards, use.Pool)
	}
	if p.More > 0 {
		fmt.Fprintf(&b, "and %d nodes\n", p.More)
	}
	return b.String()
}

// holderAt is the first letter of who held a card.
func holderAt(n *outlook.PastNode, card int, at structs.UnixNano) byte {
	if at < n.JoinedAt {
		return ' '
	}
	mark := byte('.')
	if at < n.CompleteSince {
		mark = '?'
	}
	for _, o := range n.Outages {
		if (o.Card == nil || *o.Card == card) && o.From <= at && (o.To == 0 || at < o.To) {
			mark = 'x'
		}
	}
	for i := range n.Spans {
		if s := &n.Spans[i]; s.Covers(at) && slices.Contains(s.Cards, card) {
			mark = s.Job[0]
			if s.Held {
				mark -= 'a' - 'A'
			}
		}
	}
	return mark
}

func TestHolders(t *testing.T) {
	f := day()
	for _, alloc := range f.allocs {
		alloc.JobName, alloc.NodeName = alloc.JobID, alloc.NodeID
	}
	f.nodes[3].Devices = nil // a4: its cards have gone, and the job's ids with them
	f.alloc("part", "a4", 2, structs.AllocComplete, before(4*time.Hour), before(3*time.Hour)).JobName = "part"
	freed := f.alloc("freed", "a5", 2, structs.AllocFailed, before(9*time.Hour), before(7*time.Hour))
	freed.JobName, freed.Spec.Devices, freed.Devices = "freed", []structs.DeviceRequest{{Count: 2}}, nil
	freed.Hold = &structs.Hold{Since: before(7 * time.Hour), Freed: true}
	f.event("event.alloc.hold_freed", "a5", before(6*time.Hour)).AllocID = freed.ID
	golden.Assert(t, "testdata/holders.txt", draw(Holders(f, before(11*time.Hour), now, everything)))
	// The newest of what is too much are kept.
	golden.Assert(t, "testdata/holders_few.txt", draw(Holders(f, before(11*time.Hour), now, Limits{Nodes: 3, Spans: 1, All: 2})))
}

// world is a random state: no two allocations hold a card at once, as in a real one.
func world(rng *rand.Rand) *fake {
	f := &fake{}
	for i := range 1 + rng.IntN(4) {
		f.node(fmt.Sprint("n", i), "p", rng.IntN(4))
	}
	for n := range 5 { // the last node was removed, or never had that many
		for card := range 4 {
			at := before(time.Duration(rng.IntN(2000)) * time.Minute)
			for job := range rng.IntN(4) {
				end := at.Add(time.Duration(1+rng.IntN(600)) * time.Minute)
				alloc := f.alloc(fmt.Sprintf("j%d", job), fmt.Sprint("n", n), 0, structs.AllocComplete, at, end)
				alloc.Devices, alloc.JobName = []string{fmt.Sprint("card-", card)}, alloc.JobID
				if rng.IntN(4) == 0 {
					alloc.StartedAt = 0 // it ended before it ran
				}
				at = end.Add(time.Duration(rng.IntN(60)) * time.Minute)
				switch {
				case end > now:
					alloc.FinishedAt, alloc.Status, at = 0, structs.AllocRunning, now.Add(time.Hour)
				case rng.IntN(5) == 0: // held for people, until at or still
					alloc.Status = structs.AllocFailed
					if at <= now {
						f.event("event.alloc.hold_over", alloc.NodeID, at).AllocID = alloc.ID
					} else {
						alloc.Hold = &structs.Hold{Since: end, Until: at}
					}
				case rng.IntN(5) == 0 && job == 3:
					alloc.Status, alloc.Quarantined = structs.AllocLost, true
				}
				if at > now {
					break
				}
			}
		}
	}
	return f
}

// heldBy asks every allocation who holds a card at a time.
func heldBy(f *fake, node, card string, at structs.UnixNano) string {
	for _, a := range f.allocs {
		if a.NodeID != node || !slices.Contains(a.Devices, card) || at < a.PlacedAt {
			continue
		}
		until := a.FinishedAt
		for _, e := range f.events {
			if e.AllocID == a.ID {
				until = max(until, e.Time)
			}
		}
		if until == 0 || a.Hold != nil || a.Quarantined || at < until {
			return a.JobID
		}
	}
	return ""
}

func TestHoldersAgreesWithTwin(t *testing.T) {
	from := before(24 * time.Hour)
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		f := world(rng)
		whole := Holders(f, from, now, everything)
		limits := Limits{Nodes: 1 + rng.IntN(5), Spans: rng.IntN(8), All: rng.IntN(20)}
		some := Holders(f, from, now, limits)
		if !reflect.DeepEqual(whole, Holders(f, from, now, everything)) {
			t.Fatalf("seed %d: the answer depends on more than the state", seed)
		}
		if len(some.Nodes) > limits.Nodes || len(some.Nodes)+some.More != len(whole.Nodes) {
			t.Fatalf("seed %d: %d nodes and %d of %d", seed, len(some.Nodes), some.More, len(whole.Nodes))
		}
		ended := 0
		for i := range some.Nodes {
			of := len(ends(some.Nodes[i : i+1]))
			if ended += of; of > limits.Spans {
				t.Fatalf("seed %d: %d spans of a node, not %d", seed, of, limits.Spans)
			}
		}
		if ended > limits.All {
			t.Fatalf("seed %d: %d spans, not %d", seed, ended, limits.All)
		}
		for range 60 {
			at := from.Add(time.Duration(rng.IntN(24*60+1)) * time.Minute)
			for i := range whole.Nodes {
				n := &whole.Nodes[i]
				for card := range n.Cards {
					want := heldBy(f, n.NodeID, n.Cards[card].ID, at)
					if got := jobAt(n, n.Cards[card].ID, at); got != want {
						t.Fatalf("seed %d: %s of %s at %v: %q, twin %q\n%s", seed, n.Cards[card].ID, n.Node, at.Time(), got, want, draw(whole))
					}
					if i < len(some.Nodes) && at >= some.Nodes[i].CompleteSince {
						if got := jobAt(&some.Nodes[i], n.Cards[card].ID, at); got != want {
							t.Fatalf("seed %d: with limits %+v, %s of %s at %v: %q, twin %q", seed, limits, n.Cards[card].ID, n.Node, at.Time(), got, want)
						}
					}
				}
				moment := whole.At(at)
				held := slices.IndexFunc(moment.Nodes, func(one outlook.PastNode) bool { return one.NodeID == n.NodeID })
				for card := range n.Cards {
					want := heldBy(f, n.NodeID, n.Cards[card].ID, at)
					if held < 0 && want != "" || held >= 0 && jobAt(&moment.Nodes[held], n.Cards[card].ID, at) != want {
						t.Fatalf("seed %d: at %v, %s: %+v, twin %q", seed, at.Time(), n.Node, moment.Nodes, want)
					}
				}
			}
		}
	}
}

// jobAt is who held a card, "" for nobody.
func jobAt(n *outlook.PastNode, card string, at structs.UnixNano) (job string) {
	for i := range n.Spans {
		s := &n.Spans[i]
		for _, place := range s.Cards {
			if s.Covers(at) && n.Cards[place].ID == card {
				job = cmp.Or(job, s.JobID)
			}
		}
	}
	return job
}

// BenchmarkHolders tells a day of a large cluster.
func BenchmarkHolders(b *testing.B) {
	f := large()
	b.ReportAllocs()
	for b.Loop() {
		if p := Holders(f, before(24*time.Hour), now, Limits{Nodes: 2000, Spans: 400, All: 20_000}); len(p.Nodes) != 1000 {
			b.Fatal(len(p.Nodes))
		}
	}
}
