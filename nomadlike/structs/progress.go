package structs

import (
	"cmp"
	"slices"
)

// Progress is what a node says of a rank that has gone silent: it has logged
// nothing and made no step for longer than it ever takes, or it logs and makes no
// step while a device of it is idle. A rank that is heard
// again reports that with Silent unset. Ranks that are heard tell nothing.
type Progress struct {
	Silent bool     `json:"silent,omitempty"`
	Mute   bool     `json:"mute,omitempty"` // it has never logged anything, so its silence alone says nothing
	Over   bool     `json:"over,omitempty"` // for so long that it counts whatever its devices do
	For    Duration `json:"for,omitempty"`  // how long it had been silent
	Limit  Duration `json:"limit,omitempty"`
	Step   int64    `json:"step,omitempty"` // the last that it made; 0: none was seen
	// Measured reports that its devices, or its processors when it has none, are
	// measured; Idle that one of them at least had nothing to do, Cards which.
	Measured bool     `json:"measured,omitempty"`
	Idle     bool     `json:"idle,omitempty"`
	Cards    []string `json:"cards,omitempty"`
}

// ProgressCardsMax bounds Progress.Cards.
const ProgressCardsMax = 16

// Slowness is what the performance watch of a rank found.
type Slowness struct {
	Value     float64 `json:"value"` // of the last line
	Threshold float64 `json:"threshold"`
	Times     int     `json:"times"` // lines in a row
}

// RankProgress is one rank of a gang to JudgeProgress.
type RankProgress struct {
	Rank     int
	Progress *Progress // nil: it told nothing, so it is heard
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

// JudgeProgress reports whether a gang hangs, and who holds it up: when all of its
// ranks are silent, one of them at least has logged before (or all are silent
// for longer than anything may last), and a device has nothing to do while the
// others may well wait busily. What cannot be measured is not held against the
// verdict. Pure; ranks in any order.
func JudgeProgress(ranks []RankProgress) (Hung, bool) {
	spoke, over, measured, idle := false, true, false, false
	for _, r := range ranks {
		if r.Progress == nil || !r.Progress.Silent {
			return Hung{}, false
		}
		spoke = spoke || !r.Progress.Mute
		over = over && (r.Progress.Over || r.Progress.Mute)
		measured = measured || r.Progress.Measured
		idle = idle || r.Progress.Measured && r.Progress.Idle
	}
	if len(ranks) == 0 || !spoke && !slices.ContainsFunc(ranks, func(r RankProgress) bool { return r.Progress.Over }) {
		return Hung{}, false
	}
	if measured && !idle && !over {
		return Hung{}, false
	}
	return straggler(ranks), true
}

// straggler names who holds up a gang that hangs.
func straggler(ranks []RankProgress) Hung {
	ranks = slices.Clone(ranks)
	slices.SortFunc(ranks, func(a, b RankProgress) int { return cmp.Compare(a.Rank, b.Rank) })
	hung := Hung{Rank: -1}
	var stepped, lazy []RankProgress
	for _, r := range ranks {
		if r.Progress.For > hung.For {
			hung.For, hung.Limit = r.Progress.For, r.Progress.Limit
		}
		hung.Step = max(hung.Step, r.Progress.Step)
		if r.Progress.Step > 0 {
			stepped = append(stepped, r)
		}
		if r.Progress.Measured && r.Progress.Idle {
			lazy = append(lazy, r)
		}
	}
	hung.Others = hung.Step
	if len(stepped) > 1 {
		last := slices.MinFunc(stepped, func(a, b RankProgress) int { return cmp.Compare(a.Progress.Step, b.Progress.Step) })
		if last.Progress.Step < hung.Others {
			hung.Rank, hung.Why, hung.Step, hung.Cards = last.Rank, BehindSteps, last.Progress.Step, last.Progress.Cards
			return hung
		}
	}
	if len(lazy) == 1 && (len(ranks) > 1 || len(lazy[0].Progress.Cards) > 0) {
		hung.Rank, hung.Why, hung.Cards = lazy[0].Rank, BehindIdle, lazy[0].Progress.Cards
		if lazy[0].Progress.Step > 0 {
			hung.Step = lazy[0].Progress.Step
		}
	}
	return hung
}
