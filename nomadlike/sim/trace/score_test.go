package trace

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

func TestStatistics(t *testing.T) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	records := []record{
		{gpus: 4, submit: second(100), duration: second(50), end: second(150)}, // at once
		{gpus: 2, submit: second(110), duration: second(1), end: second(161)},  // waited 50 s for a second
		{gpus: 4, submit: second(120), duration: second(100), end: second(300)},
	}
	want := Statistics{
		Jobs: 3, Dropped: 7, AvgJCT: 93.667, AvgWait: 43.333, AvgBSLD: 2.633, // (1 + 5.1 + 1.8) / 3
		P50Wait: 50, P90Wait: 80, P99Wait: 80, Utilisation: 0.37625, Makespan: 200, // (200 + 2 + 400) / (200 * 8)
	}
	if diff := cmp.Diff(want, statistics(records, 8, 7)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(Statistics{Dropped: 2}, statistics(nil, 8, 2)); diff != "" {
		t.Error(diff)
	}
}

func TestPercentile(t *testing.T) {
	var spans []time.Duration
	for i := 1; i <= 10; i++ {
		spans = append(spans, time.Duration(i)*time.Second)
	}
	for _, c := range []struct{ p, want int }{{1, 1}, {10, 1}, {11, 2}, {50, 5}, {51, 6}, {90, 9}, {99, 10}, {100, 10}} {
		if got := percentile(spans, c.p); got != float64(c.want) {
			t.Errorf("%d: %v, want %d", c.p, got, c.want)
		}
	}
}

func TestScore(t *testing.T) {
	minutes := func(point, p50, p90, wait int) forecastSample {
		return forecastSample{
			point: time.Duration(point) * time.Minute, p50: time.Duration(p50) * time.Minute,
			p90: time.Duration(p90) * time.Minute, wait: time.Duration(wait) * time.Minute,
		}
	}
	got := score([]forecastSample{
		minutes(5, 5, 8, 0),       // five minutes off: just a hit
		minutes(6, 6, 8, 0),       // six: no
		minutes(80, 80, 90, 100),  // a fifth of the wait: just a hit, and later than both
		minutes(79, 90, 120, 100), // no
	})
	want := &Score{N: 4, HitPct: 50, MAE: 780, MedAE: 360, P90Error: 1260, Cov50Pct: 50, Cov90Pct: 75}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := score(nil); got.N != 0 || got.HitPct != 0 {
		t.Errorf("nothing scored as %+v", got)
	}
}

// TestForecastIsExact: a policy that knows all run times and lets nobody pass foretells
// every start to the nanosecond.
func TestForecastIsExact(t *testing.T) {
	trace, pools := small(3)
	for _, place := range []Place{PlaceConsolidate, PlaceFungible} {
		report := replayed(t, trace, Options{Pools: pools, Policy: PolicyFIFO, Estimate: EstimateTrue, Place: place, Predict: &Predict{}})
		if diff := cmp.Diff(&Score{N: report.Jobs, HitPct: 100, Cov50Pct: 100, Cov90Pct: 100}, report.Score); diff != "" {
			t.Errorf("%s:\n%s", place, diff)
		}
	}
}

// TestForecastAsksOnly: asking changes nothing of what happens, and the same
// seed asks about the same jobs.
func TestForecastAsksOnly(t *testing.T) {
	trace, pools := small(4)
	for _, estimate := range []Estimate{EstimateLearned, EstimateLimit} {
		options := Options{Pools: pools, Policy: PolicyDefault, Estimate: estimate, Place: PlaceConsolidate}
		plain := replayed(t, trace, options)
		options.Predict = &Predict{Sample: 25, Seed: 9, OnlyQueued: true}
		asked := replayed(t, trace, options)
		again := replayed(t, trace, options)
		if diff := cmp.Diff(asked, again); diff != "" {
			t.Errorf("%s: the second replay differs:\n%s", estimate, diff)
		}
		if asked.Score.N != 25 {
			t.Errorf("%s: %d forecasts", estimate, asked.Score.N)
		}
		asked.Score = nil
		if diff := cmp.Diff(plain, asked); diff != "" {
			t.Errorf("%s: asking changed the replay:\n%s", estimate, diff)
		}
	}
}

// TestSampled: only those that waited are drawn when that is asked for, and no
// job twice.
func TestSampled(t *testing.T) {
	r := &replay{}
	for i := range 100 {
		first := time.Duration(0)
		if i%4 == 0 {
			first = time.Second
		}
		r.tasks = append(r.tasks, &task{trace: &Job{}, job: &structs.Job{ID: fmt.Sprint(i)}, first: first})
	}
	for _, c := range []struct {
		predict Predict
		want    int
	}{{Predict{Sample: 10}, 10}, {Predict{Sample: 10, OnlyQueued: true}, 10}, {Predict{OnlyQueued: true}, 25}, {Predict{Sample: 2000}, 100}} {
		chosen := c.predict.sampled(r)
		if len(chosen) != c.want {
			t.Errorf("%+v: %d jobs", c.predict, len(chosen))
		}
		for i, task := range r.tasks {
			if c.predict.OnlyQueued && chosen[task.job.ID] && i%4 != 0 {
				t.Errorf("%+v: job %d never waited", c.predict, i)
			}
		}
	}
}
