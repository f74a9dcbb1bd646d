package predict

import (
	"math"
	"time"

	"nomadlike/nomadlike/structs"
)

// Limits of what a model keeps.
const (
	// burstsMax bounds the bursts kept; those go first that nothing has asked
	// for longest.
	burstsMax = 8192
	// gapMax is how soon after each other the jobs of one burst are submitted.
	gapMax = structs.UnixNano(2 * time.Minute)
	// farthest is up to when submissions are told apart: sums with gapMax stay in
	// range.
	farthest = structs.UnixNano(1 << 62)
)

// burst is the jobs of one project, user and size in one pool that were
// submitted one soon after the other.
type burst struct {
	id          uint64 // rises with each
	first, last structs.UnixNano
	touched     uint64                // when it was asked for last, by the model's clock
	cohorts     [cohortLevels]*cohort // the cohorts it belongs to, by level
	tally       tally                 // of its ended runs
	judged      bool                  // its first end has taught the levels their weights
	live        *tally                // with what runs now; nil when nothing does
	form        *form                 // as a candidate for others; nil: to be made
}

// form is what a burst says about others like it.
type form struct {
	hazards   hazards
	logEnd    [bins]float64     // logarithm of each hazard
	logGo     [bins]float64     // and of its complement
	logRemain [bins + 1]float64 // logarithm of the survival at the lower end of each bin
	survival  curve
}

// near reports whether a submission at that time belongs to the burst.
func (s *burst) near(at structs.UnixNano) bool { return at >= s.first-gapMax && at <= s.last+gapMax }

// join stretches the burst over a submission.
func (s *burst) join(at structs.UnixNano) { s.first, s.last = min(s.first, at), max(s.last, at) }

// seen is what the burst has shown so far.
func (s *burst) seen() *tally {
	if s.live != nil {
		return s.live
	}
	return &s.tally
}

// newForm is the form of a tally seen against a prior.
func newForm(t *tally, prior *hazards) *form {
	f := &form{}
	posterior(t, prior, candidateStrength, &f.hazards)
	f.finish()
	return f
}

// finish fills what follows from the hazards.
func (f *form) finish() {
	sum := 0.0
	for k, h := range f.hazards {
		f.logRemain[k] = sum
		f.logEnd[k], f.logGo[k] = math.Log(h), math.Log1p(-h)
		sum += f.logGo[k]
	}
	f.logRemain[bins] = sum
	f.hazards.survival(&f.survival)
}

// survivalMin is the least share that others are divided by.
const survivalMin = 1e-200

// with is the curve of jobs of this form once a tally is seen. Where the tally
// has nothing at risk the form alone speaks, so little is to be reckoned for
// the many bursts that have shown nothing yet.
func (f *form) with(t *tally, into *curve) {
	into[0] = 1
	k := 0
	for ; k < bins && (t.risk[k] > 0 || f.survival[k] < survivalMin); k++ {
		into[k+1] = into[k] * (1 - seenHazard(t, f.hazards[k], ownStrength, k))
	}
	if k == bins {
		return
	}
	scale := into[k] / f.survival[k]
	for ; k < bins; k++ {
		into[k+1] = scale * f.survival[k+1]
	}
}

// explains is the logarithm of the chance that jobs like these would show what
// the tally shows.
func (f *form) explains(t *tally) float64 {
	sum := 0.0
	for k := range t.risk {
		if t.risk[k] <= 0 {
			break
		}
		sum += t.ended[k]*f.logEnd[k] + max(t.risk[k]-t.ended[k], 0)*f.logGo[k]
	}
	return sum
}

// density is the chance that a job of this form ends in a bin.
func (f *form) density(bin int) float64 { return math.Exp(f.logRemain[bin]) * f.hazards[bin] }
