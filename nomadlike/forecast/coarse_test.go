package forecast

import (
	"math"
	"slices"
	"testing"
)

func TestCoarse(t *testing.T) {
	in := crowd(410, 1000, 1000)
	a := Queue(in, start, 1)
	in.Exact = true
	c0 := cpu()
	b := Queue(in, start, 1)
	t.Log("exact cpu", cpu()-c0)
	var d50, d90, s50 []float64
	for i := range a {
		if a[i].Verdict != VerdictLater || b[i].Verdict != VerdictLater {
			continue
		}
		w := b[i].P50.Sub(start).Seconds()
		d50 = append(d50, math.Abs(a[i].P50.Sub(b[i].P50).Seconds())/max(300, w))
		s50 = append(s50, (a[i].P50.Sub(b[i].P50).Seconds())/max(300, w))
		d90 = append(d90, math.Abs(a[i].P90.Sub(b[i].P90).Seconds())/max(300, b[i].P90.Sub(start).Seconds()))
	}
	m := 0.0
	for _, x := range s50 {
		m += x / float64(len(s50))
	}
	slices.Sort(d50)
	slices.Sort(d90)
	slices.Sort(s50)
	t.Log(len(d50), rank(d50, .5), rank(d50, .9), rank(d90, .5), rank(d90, .9), rank(s50, .5), m)
}
