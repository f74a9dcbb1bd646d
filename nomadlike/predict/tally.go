package predict

import (
	"math"
	"sync"
	"time"
)

// Bins of run time: perOctave to each doubling, from one second to about 194
// days; what is longer counts in the last.
const (
	perOctave = 4
	octaves   = 24
	bins      = perOctave * octaves
)

// hazardMin and hazardMax keep every logarithm finite.
const (
	hazardMin = 1e-4
	hazardMax = 0.9995
)

// lindy is the hazard of a bin of which nothing is known: what has run for a
// time t goes on for another t with a chance of one half, whatever t.
const lindy = 0.1591035847462855 // 1 - 2^(-1/perOctave)

// edges are the lower ends of the bins, in seconds, and the end of the last.
var edges = sync.OnceValue(func() *[bins + 1]float64 {
	var e [bins + 1]float64
	for i := range e {
		e[i] = math.Exp2(float64(i) / perOctave)
	}
	return &e
})

// binOf returns the bin of a time in seconds and how far into it the time lies.
func binOf(seconds float64) (bin int, share float64) {
	if !(seconds > 1) {
		return 0, 0
	}
	bin = int(math.Log2(seconds) * perOctave)
	if bin >= bins {
		return bins - 1, 1
	}
	e := edges()
	share = (seconds - e[bin]) / (e[bin+1] - e[bin])
	return bin, min(max(share, 0), 1)
}

// kernel spreads the end of a run over neighbouring bins: that it took an hour
// says that it could as well have taken fifty minutes.
var kernel = [...]float64{0.13, 0.36, 0.78, 1, 0.78, 0.36, 0.13}

// tally counts the runs of a set: at each bin how many were at risk of ending
// in it, and how many did.
type tally struct {
	ended, risk [bins]float64
}

// end counts a run that ended after so many seconds.
func (t *tally) end(seconds, weight float64) {
	bin, _ := binOf(seconds)
	half := len(kernel) / 2
	low, high := max(0, bin-half), min(bins-1, bin+half)
	total := 0.0
	for k := low; k <= high; k++ {
		total += kernel[k-bin+half]
	}
	for k := range low {
		t.risk[k] += weight
	}
	left := weight
	for k := low; k <= high; k++ {
		part := weight * kernel[k-bin+half] / total
		t.risk[k] += left
		t.ended[k] += part
		left -= part
	}
}

// survive counts a run that went on after so many seconds, or was cut short
// then by others.
func (t *tally) survive(seconds float64) {
	bin, share := binOf(seconds)
	for k := range bin {
		t.risk[k]++
	}
	t.risk[bin] += share
}

// add counts all of other, each run with the weight.
func (t *tally) add(other *tally, weight float64) {
	for k := range t.risk {
		if other.risk[k] == 0 {
			break // fewer and fewer are at risk: nothing follows
		}
		t.ended[k] += weight * other.ended[k]
		t.risk[k] += weight * other.risk[k]
	}
}

// runs is how many runs the tally counts.
func (t *tally) runs() float64 { return t.risk[0] }

// curve is a survival function over the bins: the share of runs that reach the
// lower end of each, and the end of the last.
type curve [bins + 1]float64

// posterior is the hazard of each bin when a tally is seen against a prior
// that counts as much as strength runs at risk.
func posterior(t *tally, prior *hazards, strength float64, into *hazards) {
	for k := range into {
		into[k] = seenHazard(t, prior[k], strength, k)
	}
}

// seenHazard is that of one bin.
func seenHazard(t *tally, prior, strength float64, bin int) float64 {
	return min(max((t.ended[bin]+strength*prior)/(t.risk[bin]+strength), hazardMin), hazardMax)
}

// hazards are the chances to end in each bin of those that reach it.
type hazards [bins]float64

// survival turns hazards into a curve.
func (h *hazards) survival(into *curve) {
	into[0] = 1
	for k := range h {
		into[k+1] = into[k] * (1 - h[k])
	}
}

// at is the share of runs that last longer than so many seconds.
func (c *curve) at(seconds float64) float64 {
	bin, share := binOf(seconds)
	return c[bin] * math.Pow(c[bin+1]/c[bin], share)
}

// reach is the time in seconds that a share of runs lasts, at least from.
func (c *curve) reach(share, from float64) float64 {
	if !(share > c[bins]) {
		return max(from, edges()[bins])
	}
	low, high := 0, bins
	for high-low > 1 {
		if mid := (low + high) / 2; c[mid] > share {
			low = mid
		} else {
			high = mid
		}
	}
	e := edges()
	into := 0.0
	if share < c[low] {
		into = math.Log(c[low]/share) / math.Log(c[low]/c[low+1])
	}
	return max(from, e[low]+min(max(into, 0), 1)*(e[low+1]-e[low]))
}

// spanOf turns seconds into a duration, at most longest.
func spanOf(seconds float64) time.Duration {
	return time.Duration(min(max(seconds, 0), longest.Seconds()) * float64(time.Second))
}

// longest is the longest run time that is ever given: all that is known of
// longer runs is that they are.
const longest = 400 * 24 * time.Hour
