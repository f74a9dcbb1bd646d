package trace

import (
	"context"
	"testing"
)

// BenchmarkReplay replays three months of a full cluster. One op is the whole
// trace of 50,000 jobs.
func BenchmarkReplay(b *testing.B) {
	trace, pools := Generate(Workload{Seed: 1, Jobs: 50_000, Days: 90, Nodes: 48})
	for _, c := range []struct {
		name     string
		policy   Policy
		estimate Estimate
		engine   Engine
	}{
		{"fifo", PolicyFIFO, EstimateTrue, EngineBoard},
		{"sjf", PolicySJF, EstimateTrue, EngineBoard},
		{"default", PolicyDefault, EstimateLimit, EngineBoard},
		{"fifo-state", PolicyFIFO, EstimateTrue, EngineState},
	} {
		b.Run(c.name, func(b *testing.B) {
			for range b.N {
				options := Options{Pools: pools, Policy: c.policy, Estimate: c.estimate, Place: PlaceConsolidate, Engine: c.engine}
				if _, err := Replay(context.Background(), trace, options); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(trace.Jobs)*b.N)/b.Elapsed().Seconds(), "jobs/s")
		})
	}
}

// BenchmarkLearnedBackfill measures by how many per cent learned estimates
// lower the average bounded slowdown against time limits, under the product's
// own policy. The time of an op means little; the metrics count.
func BenchmarkLearnedBackfill(b *testing.B) {
	trace, pools := Generate(Workload{Seed: 1})
	slowdown := make(map[Estimate]float64)
	for range b.N {
		for _, estimate := range []Estimate{EstimateLimit, EstimateLearned} {
			report, err := Replay(context.Background(), trace, Options{Pools: pools, Policy: PolicyDefault, Estimate: estimate, Place: PlaceConsolidate})
			if err != nil {
				b.Fatal(err)
			}
			slowdown[estimate] = report.AvgBSLD
		}
	}
	b.ReportMetric(slowdown[EstimateLimit], "bsld-limit")
	b.ReportMetric(slowdown[EstimateLearned], "bsld-learned")
	b.ReportMetric(100*(1-slowdown[EstimateLearned]/slowdown[EstimateLimit]), "%-lower")
}

// BenchmarkGenerate makes a trace of 100,000 jobs.
func BenchmarkGenerate(b *testing.B) {
	for range b.N {
		Generate(Workload{Seed: 1, Jobs: 100_000, Days: 180, Nodes: 48})
	}
}
