package structs

import (
	"testing"
	"time"
)

func TestJudgePace(t *testing.T) {
	silent := func(step int64, more ...func(*Pace)) *Pace {
		p := &Pace{Silent: true, Step: step, For: Duration(3 * time.Minute), Limit: Duration(2 * time.Minute), Measured: true}
		for _, change := range more {
			change(p)
		}
		return p
	}
	idle := func(p *Pace) { p.Idle, p.Cards = true, []string{"gpu-0"} }
	mute := func(p *Pace) { p.Mute = true }
	over := func(p *Pace) { p.Over = true }
	blind := func(p *Pace) { p.Measured = false }
	for _, test := range []struct {
		name  string
		ranks []*Pace
		hangs bool
		rank  int
		why   string
	}{
		{"nobody", nil, false, 0, ""},
		{"one is heard", []*Pace{silent(4, idle), nil}, false, 0, ""},
		{"all compute", []*Pace{silent(4), silent(4)}, false, 0, ""},
		{"all compute for too long", []*Pace{silent(4, over), silent(0, mute)}, true, -1, BehindNone},
		{"idle card", []*Pace{silent(4), silent(4, idle)}, true, 1, BehindIdle},
		{"all are idle", []*Pace{silent(4, idle), silent(4, idle)}, true, -1, BehindNone},
		{"behind in steps", []*Pace{silent(9, idle), silent(8), silent(9, idle)}, true, 1, BehindSteps},
		{"mute ranks have no steps", []*Pace{silent(9), silent(0, mute, idle)}, true, 1, BehindIdle},
		{"only mute ones", []*Pace{silent(0, mute, idle)}, false, 0, ""},
		{"only mute ones, for too long", []*Pace{silent(0, mute, idle, over)}, true, 0, BehindIdle},
		{"nothing is measured", []*Pace{silent(9, blind), silent(9, blind)}, true, -1, BehindNone},
		{"a single rank", []*Pace{silent(9, idle)}, true, 0, BehindIdle},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ranks []RankPace
			for i, p := range test.ranks {
				ranks = append([]RankPace{{Rank: i, Pace: p}}, ranks...) // the order does not matter
			}
			got, hangs := JudgePace(ranks)
			if hangs != test.hangs || hangs && (got.Rank != test.rank || got.Why != test.why) {
				t.Errorf("hangs=%v %+v, want hangs=%v rank=%d why=%q", hangs, got, test.hangs, test.rank, test.why)
			}
		})
	}
}
