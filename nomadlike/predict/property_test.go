package predict

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

var outcomes = []structs.Outcome{
	structs.OutcomeSucceeded, structs.OutcomeFailed, structs.OutcomeLost, structs.OutcomePreempted,
	structs.OutcomeStopped, structs.OutcomeExpired, "", "unheard of",
}

// drawRun makes any run at all, nonsense included.
func drawRun(t *rapid.T) Run {
	span := rapid.OneOf(rapid.Int64Range(0, int64(100*time.Hour)), rapid.Int64())
	return Run{
		Pool: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "pool"), Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"),
		User: rapid.SampledFrom([]string{"", "li", "wu"}).Draw(t, "user"), Name: rapid.SampledFrom([]string{"x-1", "x-22", "y", ""}).Draw(t, "name"),
		Devices: rapid.IntRange(-1, 16).Draw(t, "devices"), Nodes: rapid.IntRange(-1, 4).Draw(t, "nodes"), CPU: rapid.Float64().Draw(t, "cpu"),
		Waited: time.Duration(span.Draw(t, "waited")), Runtime: time.Duration(span.Draw(t, "runtime")),
		TimeLimit: time.Duration(span.Draw(t, "limit")), Expected: time.Duration(span.Draw(t, "expected")),
		Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), EndedAt: structs.UnixNano(span.Draw(t, "ended")),
	}
}

func drawJob(t *rapid.T) *structs.Job {
	span := rapid.OneOf(rapid.Int64Range(0, int64(100*time.Hour)), rapid.Int64())
	return &structs.Job{
		Project: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "project"), User: rapid.SampledFrom([]string{"", "li"}).Draw(t, "user"),
		Name: rapid.SampledFrom([]string{"x-7", "z"}).Draw(t, "name"), Nodes: rapid.IntRange(0, 4).Draw(t, "nodes"),
		Placement: structs.Placement{Pool: rapid.SampledFrom([]string{"", "a"}).Draw(t, "pool")}, SubmittedAt: structs.UnixNano(span.Draw(t, "submitted")),
		TimeLimit: structs.Duration(span.Draw(t, "limit")), ExpectedRuntime: structs.Duration(span.Draw(t, "expected")),
		Resources: []structs.Resources{{CPU: rapid.Float64Range(0, 64).Draw(t, "cpu"), Devices: []structs.DeviceRequest{{Count: rapid.IntRange(0, 8).Draw(t, "count")}}}},
	}
}

// checkEstimate holds an estimate to what everybody may rely on.
func checkEstimate(t interface{ Fatalf(string, ...any) }, e Estimate, limit time.Duration) {
	shares := []float64{math.NaN(), math.Inf(-1), -1, 0, 1e-9, 0.1, 0.5, 0.9, 0.999, 1, 2, math.Inf(1)}
	for _, elapsed := range []time.Duration{math.MinInt64, 0, time.Second, time.Hour, 10000 * time.Hour, math.MaxInt64} {
		last := time.Duration(0)
		for _, p := range shares {
			left := e.Remaining(elapsed, p)
			if left < 0 || left > longest {
				t.Fatalf("Remaining(%v, %v) is %v", elapsed, p, left)
			}
			if limit > 0 && max(elapsed, 0) < limit && left > limit {
				t.Fatalf("Remaining(%v, %v) is %v with a limit of %v", elapsed, p, left, limit)
			}
			if p >= 0 {
				if left < last {
					t.Fatalf("Remaining(%v, %v) is %v, less than %v for less", elapsed, p, left, last)
				}
				last = left
			}
			if s := e.Sample(p, elapsed); s < min(elapsed, longest) || s > 2*longest {
				t.Fatalf("Sample(%v, %v) is %v", p, elapsed, s)
			}
		}
	}
}

func TestEstimatesMakeSenseWhateverWasLearned(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(drawRun), 0, 20).Draw(t, "runs")
		jobs := rapid.SliceOfN(rapid.Custom(drawJob), 1, 6).Draw(t, "jobs")
		now := structs.UnixNano(rapid.Int64().Draw(t, "now"))
		one, two := NewModel(), NewModel()
		for _, run := range runs {
			one.Learn(run)
			two.Learn(run)
		}
		ongoing := func(yield func(Ongoing) bool) {
			for i, job := range jobs {
				if !yield(Ongoing{Job: job, Since: now.Add(-time.Duration(i) * time.Hour)}) {
					return
				}
			}
		}
		a, b := one.Outlook(now, ongoing), two.Outlook(now, ongoing)
		for _, job := range jobs {
			e := a.Estimate(job)
			checkEstimate(t, e, job.TimeLimit.Std())
			checkEstimate(t, a.Draw(7).Estimate(job), job.TimeLimit.Std())
			f := b.Estimate(job)
			if e.Quantile(0.37) != f.Quantile(0.37) || a.Draw(9).Estimate(job).Quantile(0.37) != b.Draw(9).Estimate(job).Quantile(0.37) {
				t.Fatalf("the same history gave %v and %v", e.Quantile(0.37), f.Quantile(0.37))
			}
		}
		for _, job := range jobs {
			checkEstimate(t, one.Estimate(job), job.TimeLimit.Std())
		}
		checkEstimate(t, Estimate{}, 0)
	})
}

// TestCurveAgainstSortedRuns holds tallies to the obvious: with much data the
// quantiles are those of the sorted run times, give or take the width of bins.
func TestCurveAgainstSortedRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(3, 12).Draw(t, "low")
		logs := rapid.SliceOfN(rapid.Float64Range(low, low+6), 300, 400).Draw(t, "log2 of seconds")
		var runs tally
		for _, l := range logs {
			runs.end(math.Exp2(l), 1)
		}
		var h hazards
		var c curve
		posterior(&runs, limitPrior(), 0.01, &h)
		h.survival(&c)
		slices.Sort(logs)
		for _, p := range []float64{0.2, 0.5, 0.8} {
			got := math.Log2(c.reach(1-p, 0))
			below, above := logs[int((p-0.06)*float64(len(logs)))], logs[int((p+0.06)*float64(len(logs)))]
			if got < below-0.8 || got > above+0.8 {
				t.Fatalf("quantile %v is 2^%.2f s, of the sorted runs 2^%.2f to 2^%.2f", p, got, below, above)
			}
		}
	})
}

func FuzzLearn(f *testing.F) {
	f.Add("a", "li", "job-1", int64(time.Hour), int64(time.Hour), int64(0), int64(0), 8)
	f.Add("", "", "", int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(1), -8)
	f.Fuzz(func(t *testing.T, pool, user, name string, runtime, waited, limit, expected int64, devices int) {
		m := NewModel()
		for i := range 3 {
			m.Learn(Run{Pool: pool, User: user, Name: name, Devices: devices, Runtime: time.Duration(runtime), Waited: time.Duration(waited), TimeLimit: time.Duration(limit), Expected: time.Duration(expected), EndedAt: structs.UnixNano(int64(i) * runtime), Outcome: structs.OutcomeFailed})
		}
		job := &structs.Job{User: user, Name: name, Nodes: devices, TimeLimit: structs.Duration(limit), ExpectedRuntime: structs.Duration(expected), Placement: structs.Placement{Pool: pool}}
		checkEstimate(t, m.Estimate(job), time.Duration(limit))
	})
}

// The short way to a curve is that over the hazards of every bin.
func TestFormWith(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var prior, seen tally
		for range rapid.IntRange(0, 5).Draw(t, "runs of the form") {
			prior.end(rapid.Float64Range(1, 1e8).Draw(t, "seconds"), rapid.Float64Range(0.1, 50).Draw(t, "weight"))
		}
		for range rapid.IntRange(0, 3).Draw(t, "runs") {
			seen.end(rapid.Float64Range(1, 1e8).Draw(t, "seconds"), 1)
			seen.survive(rapid.Float64Range(1, 1e8).Draw(t, "seconds"))
		}
		f := newForm(&prior, limitPrior())
		var h hazards
		var want, got curve
		posterior(&seen, &f.hazards, ownStrength, &h)
		h.survival(&want)
		f.with(&seen, &got)
		for k := range want {
			if math.Abs(got[k]-want[k]) > 1e-12*want[k]+1e-250 {
				t.Fatalf("bin %d: %g, want %g", k, got[k], want[k])
			}
		}
	})
}
