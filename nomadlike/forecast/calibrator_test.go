package forecast

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// said is a forecast of thirty futures around a median, and those futures.
func said(job int, given structs.UnixNano, median time.Duration) (structs.Forecast, []time.Duration) {
	waits := make([]time.Duration, FuturesDefault)
	for i := range waits {
		waits[i] = time.Duration(float64(median) * math.Exp2(float64(i-14)/15))
	}
	x := make([]float64, Features)
	x[FeatureP10], x[FeatureP50], x[FeatureP90] = rank(waits, 0.1).Seconds(), rank(waits, 0.5).Seconds(), rank(waits, 0.9).Seconds()
	return structs.Forecast{JobID: fmt.Sprintf("job-%d", job), Pool: "a", GivenAt: given, Features: x}, waits
}

// correct asks what a calibrator makes of such a forecast.
func correct(c *Calibrator, pool string, at structs.UnixNano, median time.Duration) (point, p50, p90 time.Duration) {
	f, waits := said(0, at, median)
	return c.Correct(About{Pool: pool, At: at, Features: f.Features}, waits, HorizonDefault)
}

// near reports whether a span is within a share of another.
func near(got, want time.Duration, share float64) bool {
	return (got - want).Abs() <= time.Duration(share*float64(want))
}

func TestCalibratorWithoutPast(t *testing.T) {
	point, p50, p90 := correct(NewCalibrator(), "a", start, 3*time.Hour)
	_, waits := said(0, start, 3*time.Hour)
	if !near(point, rank(waits, 0.5), 0.1) || !near(p50, rank(waits, 0.5), 0.01) || !near(p90, rank(waits, coverage), 0.01) {
		t.Errorf("says %v, %v, %v of futures around %v", point, p50, p90, waits)
	}
}

// TestCalibratorFollowsBias: where waits were twice as long as forecast, the
// next answers are, and those of quite other forecasts are not.
func TestCalibratorFollowsBias(t *testing.T) {
	c := NewCalibrator()
	for i := range 100 {
		f, _ := said(i, start.Add(time.Duration(i)*time.Hour), 3*time.Hour)
		c.Learn(&f)
		f.StartedAt = f.GivenAt.Add(6 * time.Hour)
		c.Learn(&f)
	}
	now := start.Add(200 * time.Hour)
	if point, p50, p90 := correct(c, "a", now, 3*time.Hour); !near(point, 6*time.Hour, 0.15) || !near(p50, 6*time.Hour, 0.15) || p90 < 6*time.Hour {
		t.Errorf("after waits of 6h, 3h is corrected to %v, %v, %v", point, p50, p90)
	}
	if _, p50, _ := correct(c, "a", now, 5*time.Minute); !near(p50, 5*time.Minute, 0.3) {
		t.Errorf("after waits of 6h, 5m is corrected to %v", p50)
	}
}

// TestCalibratorHeedsOverdue: forecasts that are overdue widen the range before
// anybody starts, until they are withdrawn.
func TestCalibratorHeedsOverdue(t *testing.T) {
	c := NewCalibrator()
	now := start.Add(12 * time.Hour)
	_, _, before := correct(c, "a", now, time.Hour)
	var open []structs.Forecast
	for i := range 60 {
		f, _ := said(i, start, time.Hour)
		c.Learn(&f)
		open = append(open, f)
	}
	if _, _, p90 := correct(c, "a", now, time.Hour); p90 <= before {
		t.Errorf("P90 is %v although others wait for 12h already; it was %v", p90, before)
	}
	for i := range open {
		open[i].Withdrawn = true
		c.Learn(&open[i])
	}
	if _, _, p90 := correct(c, "a", now, time.Hour); p90 != before {
		t.Errorf("P90 is %v, and was %v before all that was withdrawn", p90, before)
	}
}

// TestCalibratorIsSane: whatever it learned, in whatever order, it remembers a
// bounded number of forecasts, and its answers are finite, not negative, in
// order, and the same for the same past.
func TestCalibratorIsSane(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		span := rapid.Int64Range(0, int64(HorizonMax))
		c, twin := NewCalibrator(), NewCalibrator()
		for range rapid.IntRange(0, 1200).Draw(t, "learned") {
			f := structs.Forecast{
				JobID: rapid.StringMatching(`[a-d]`).Draw(t, "job"), Revision: rapid.IntRange(0, 50).Draw(t, "revision"),
				Pool: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "pool"), GivenAt: start.Add(time.Duration(span.Draw(t, "given"))),
				Withdrawn: rapid.IntRange(0, 9).Draw(t, "withdrawn") == 0,
			}
			if rapid.IntRange(0, 9).Draw(t, "described") > 0 {
				f.Features = make([]float64, Features)
				for i := range f.Features {
					f.Features[i] = rapid.Float64Range(0, HorizonMax.Seconds()).Draw(t, "feature")
				}
			}
			if rapid.Bool().Draw(t, "started") {
				f.StartedAt = start.Add(time.Duration(span.Draw(t, "start")))
			}
			c.Learn(&f)
			twin.Learn(&f)
		}
		if len(c.past) > calibratorPast || len(c.open) > calibratorOpen || len(c.waiting) != len(c.open) {
			t.Fatalf("remembers %d, %d and %d forecasts", len(c.past), len(c.open), len(c.waiting))
		}
		waits := make([]time.Duration, rapid.IntRange(1, 40).Draw(t, "futures"))
		for i := range waits {
			waits[i] = time.Duration(span.Draw(t, "wait"))
		}
		slices.Sort(waits)
		x := make([]float64, Features)
		x[FeatureP10], x[FeatureP50], x[FeatureP90] = rank(waits, 0.1).Seconds(), rank(waits, 0.5).Seconds(), rank(waits, 0.9).Seconds()
		about := About{Pool: "a", At: start.Add(time.Duration(span.Draw(t, "now"))), Features: x}
		point, p50, p90 := c.Correct(about, waits, HorizonMax)
		if point < 0 || p50 < 0 || p90 < p50 || max(point, p90) > HorizonMax {
			t.Fatalf("says %v, %v, %v", point, p50, p90)
		}
		if a, b, c := twin.Correct(about, waits, HorizonMax); a != point || b != p50 || c != p90 {
			t.Fatalf("says %v, %v, %v the second time", a, b, c)
		}
	})
}

func BenchmarkCalibrator(b *testing.B) {
	c := NewCalibrator()
	for i := range calibratorPast + calibratorOpen {
		f, _ := said(i, start, time.Hour)
		if i < calibratorPast {
			f.StartedAt = start.Add(time.Duration(i) * time.Minute)
		}
		c.Learn(&f)
	}
	for b.Loop() {
		correct(c, "a", start.Add(time.Hour), 2*time.Hour)
	}
}
