package structs

import (
	"testing"
	"time"
)

func TestJudgeProgress(t *testing.T) {
	silent := func(step int64, more ...func(*Progress)) *Progress {
		p := &Progress{Silent: true, Step: step, For: Duration(3 * time.Minute), Limit: Duration(2 * time.Minute), Measured: true}
		for _, change := range more {
			change(p)
		}
		return p
	}
	idle := func(p *Progress) { p.Idle, p.Cards = true, []string{"gpu-0"} }
	mute := func(p *Progress) { p.Mute = true }
	over := func(p *Progress) { p.Over = true }
	blind := func(p *Progress) { p.Measured = false }
	for _, test := range []struct {
		name  string
		ranks []*Progress
		hangs bool
		rank  int
		why   string
	}{
		{"nobody", nil, false, 0, ""},
		{"one is heard", []*Progress{silent(4, idle), nil}, false, 0, ""},
		{"all compute", []*Progress{silent(4), silent(4)}, false, 0, ""},
		{"all compute for too long", []*Progress{silent(4, over), silent(0, mute)}, true, -1, BehindNone},
		{"idle card", []*Progress{silent(4), silent(4, idle)}, true, 1, BehindIdle},
		{"all are idle", []*Progress{silent(4, idle), silent(4, idle)}, true, -1, BehindNone},
		{"behind in steps", []*Progress{silent(9, idle), silent(8), silent(9, idle)}, true, 1, BehindSteps},
		{"mute ranks have no steps", []*Progress{silent(9), silent(0, mute, idle)}, true, 1, BehindIdle},
		{"only mute ones", []*Progress{silent(0, mute, idle)}, false, 0, ""},
		{"only mute ones, for too long", []*Progress{silent(0, mute, idle, over)}, true, 0, BehindIdle},
		{"nothing is measured", []*Progress{silent(9, blind), silent(9, blind)}, true, -1, BehindNone},
		{"a single rank", []*Progress{silent(9, idle)}, true, 0, BehindIdle},
	} {
		t.Run(test.name, func(t *testing.T) {
			var ranks []RankProgress
			for i, p := range test.ranks {
				ranks = append([]RankProgress{{Rank: i, Progress: p}}, ranks...) // the order does not matter
			}
			got, hangs := JudgeProgress(ranks)
			if hangs != test.hangs || hangs && (got.Rank != test.rank || got.Why != test.why) {
				t.Errorf("hangs=%v %+v, want hangs=%v rank=%d why=%q", hangs, got, test.hangs, test.rank, test.why)
			}
		})
	}
}
