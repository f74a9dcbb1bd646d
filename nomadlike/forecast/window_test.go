package forecast

import (
	"math"
	"slices"
	"testing"
)

// TestWindowsAreClose: to count ends that are close to each other as one
// changes little, and nearly as often for the better as for the worse.
func TestWindowsAreClose(t *testing.T) {
	in := crowd(105, 250, 250)
	coarse := Queue(in, start, 1)
	in.Exact = true
	exact := Queue(in, start, 1)
	var off []float64
	bias := 0.0
	for i := range exact {
		if exact[i].Verdict != VerdictLater {
			continue
		}
		wait := max(exact[i].P50.Sub(start).Seconds(), 300)
		off = append(off, math.Abs(coarse[i].P50.Sub(exact[i].P50).Seconds())/wait)
		bias += coarse[i].P50.Sub(exact[i].P50).Seconds() / wait
	}
	slices.Sort(off)
	t.Logf("of %d P50s, half are within %.3f of the wait, nine tenths within %.3f; on average off by %.3f",
		len(off), rank(off, 0.5), rank(off, 0.9), bias/float64(len(off)))
	if len(off) < 200 || rank(off, 0.5) > 0.02 || rank(off, 0.9) > 0.06 || math.Abs(bias) > 0.03*float64(len(off)) {
		t.Error("windows are not close")
	}
}
