package main

import (
	"math/rand/v2"
	"time"
)

// step is one turn of the nemesis: a fault, how long it lasts, and the number
// from which its victims are drawn when its time has come, since who leads then
// is not known before.
type step struct {
	Fault string
	Lasts time.Duration
	Rest  time.Duration // after the cluster is well again
	Draw  uint64
}

// plan draws the steps of a run: a function of the seed alone, so that a seed
// names the same attacks on every machine. Every fault comes once, in a drawn
// order, before any comes twice; length bounds the sum of what they last, with
// recoverySlack for each.
func plan(seed uint64, length time.Duration, faults []fault) []step {
	chance := rand.New(rand.NewPCG(seed, 0x6e656d65736973))
	var steps []step
	var left []fault
	for total := time.Duration(0); len(faults) > 0; {
		if len(left) == 0 {
			left = append(left, faults...)
			chance.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
		}
		f := left[0]
		left = left[1:]
		s := step{Fault: f.name, Lasts: f.least, Rest: time.Duration(chance.Int64N(int64(2 * time.Second))), Draw: chance.Uint64()}
		if f.most > f.least {
			s.Lasts += time.Duration(chance.Int64N(int64(f.most - f.least)))
		}
		if total += s.Lasts + s.Rest + recoverySlack; total > length && len(steps) > 0 {
			return steps
		}
		steps = append(steps, s)
	}
	return steps
}

// recoverySlack is what a recovery is thought to take when a plan is drawn.
const recoverySlack = 3 * time.Second
