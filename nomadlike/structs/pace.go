package structs

import (
	"cmp"
	"slices"
)

// Pace is what a node tells of a rank that has gone silent: it has logged
// nothing and made no step for longer than it ever takes, or it logs and makes no
// step while a device of it is idle. A rank that is heard
// again tells that with Silent unset. Ranks that are heard tell nothing.
type Pace struct {
	Silent bool     `json:"silent,omitempty"`
	Mute   bool     `json:"mute,omitempty"` // it has never logged anything, so its silence alone says nothing
	Over   bool     `json:"over,omitempty"` // for so long that it counts whatever its devices do
	For    Duration `json:"for,omitempty"`  // how long it had been silent
	Limit  Duration `json:"limit,omitempty"`
	Step   int64    `json:"step,omitempty"` // the last that it made; 0: none was seen
	// Measured tells that its devices, or its processors when it has none, are
	// measured; Idle that one of them at least had nothing to do, Cards which.
	Measured bool     `json:"measured,omitempty"`
	Idle     bool     `json:"idle,omitempty"`
	Cards    []string `json:"cards,omitempty"`
}

// PaceCardsMax bounds Pace.Cards.
const PaceCardsMax = 16

// Slowness is what the performance watch of a rank found.
type Slowness struct {
	Value     float64 `json:"value"` // of the last line
	Threshold float64 `json:"threshold"`
	Times     int     `json:"times"` // lines in a row
}

// RankPace is one rank of a gang to JudgePace.
type RankPace struct {
	Rank int
	Pace *Pace // nil: it told nothing, so it is heard
}

// Why a rank is the one that the others wait for.
const (
	BehindSteps = "steps" // it is behind the others in steps
	BehindIdle  = "idle"  // its card is idle while those of others wait busily
	BehindNone  = ""      // nothing tells one from the others
)

// Hung is the verdict on a gang that does not come back by itself.
type Hung struct {
	Rank   int    // the straggler, -1 when nothing tells one from the others
	Why    string // one of the Behind constants
	Step   int64  // of the straggler, or the last of any
	Others int64  // the furthest step of the others
	For    Duration
	Limit  Duration
	Cards  []string // of the straggler, idle
}

// JudgePace reports whether a gang hangs, and who holds it up: when all of its
// ranks are silent, one of them at least has logged before (or all are silent
// for longer than anything may last), and a device has nothing to do while the
// others may well wait busily. What cannot be measured is not held against the
// verdict. Pure; ranks in any order.
func JudgePace(ranks []RankPace) (Hung, bool) {
	spoke, over, measured, idle := false, true, false, false
	for _, r := range ranks {
		if r.Pace == nil || !r.Pace.Silent {
			return Hung{}, false
		}
		spoke = spoke || !r.Pace.Mute
		over = over && (r.Pace.Over || r.Pace.Mute)
		measured = measured || r.Pace.Measured
		idle = idle || r.Pace.Measured && r.Pace.Idle
	}
	if len(ranks) == 0 || !spoke && !slices.ContainsFunc(ranks, func(r RankPace) bool { return r.Pace.Over }) {
		return Hung{}, false
	}
	if measured && !idle && !over {
		return Hung{}, false
	}
	return straggler(ranks), true
}

// straggler names who holds up a gang that hangs.
func straggler(ranks []RankPace) Hung {
	ranks = slices.Clone(ranks)
	slices.SortFunc(ranks, func(a, b RankPace) int { return cmp.Compare(a.Rank, b.Rank) })
	hung := Hung{Rank: -1}
	var stepped, lazy []RankPace
	for _, r := range ranks {
		if r.Pace.For > hung.For {
			hung.For, hung.Limit = r.Pace.For, r.Pace.Limit
		}
		hung.Step = max(hung.Step, r.Pace.Step)
		if r.Pace.Step > 0 {
			stepped = append(stepped, r)
		}
		if r.Pace.Measured && r.Pace.Idle {
			lazy = append(lazy, r)
		}
	}
	hung.Others = hung.Step
	if len(stepped) > 1 {
		last := slices.MinFunc(stepped, func(a, b RankPace) int { return cmp.Compare(a.Pace.Step, b.Pace.Step) })
		if last.Pace.Step < hung.Others {
			hung.Rank, hung.Why, hung.Step, hung.Cards = last.Rank, BehindSteps, last.Pace.Step, last.Pace.Cards
			return hung
		}
	}
	if len(lazy) == 1 && (len(ranks) > 1 || len(lazy[0].Pace.Cards) > 0) {
		hung.Rank, hung.Why, hung.Cards = lazy[0].Rank, BehindIdle, lazy[0].Pace.Cards
		if lazy[0].Pace.Step > 0 {
			hung.Step = lazy[0].Pace.Step
		}
	}
	return hung
}
