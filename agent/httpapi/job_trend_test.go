package httpapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func TestTrendOfAJob(t *testing.T) {
	series := func(name, source string, count int64, values ...float64) structs.MetricSeries {
		s := structs.MetricSeries{Name: name, Source: source, Count: count}
		for i, value := range values {
			s.Points = append(s.Points, structs.MetricPoint{Step: int64(i), Value: value})
		}
		return s
	}
	log := structs.MetricFromLog
	long := series("loss", log, 100)
	for i := range 2 * api.TrendPointsMax {
		long.Points = append(long.Points, structs.MetricPoint{Step: int64(i), Value: float64(i)})
	}
	newest := make([]float64, api.TrendPointsMax)
	for i := range newest {
		newest[i] = float64(api.TrendPointsMax + i)
	}
	turned := series("loss", log, 2, 1, 2)
	turned.Points[0].Step = 9 // a node tells points in any order
	for _, test := range []struct {
		name   string
		series []structs.MetricSeries
		want   *api.JobTrend
	}{
		{"nothing is told", nil, nil},
		{"one value is no trend", []structs.MetricSeries{series("loss", log, 1, 3)}, nil},
		{"loss before all else, the plain one first", []structs.MetricSeries{
			series("acc", log, 900, 0.1, 0.2), series("eval/aux_loss", log, 9, 1, 1), series("loss", log, 9, 3, 2), series("tokens_per_second", log, 9, 7, 8),
		}, &api.JobTrend{Metric: "loss", Values: []float64{3, 2}}},
		{"the log before event files", []structs.MetricSeries{series("loss", "runs/a", 9, 9, 9), series("loss", log, 9, 3, 2)}, &api.JobTrend{Metric: "loss", Values: []float64{3, 2}}},
		{"speed where there is no loss", []structs.MetricSeries{series("acc", log, 900, 0.1, 0.2), series("samples/s", log, 9, 7, 8)}, &api.JobTrend{Metric: "samples/s", Values: []float64{7, 8}}},
		{"else what has most", []structs.MetricSeries{series("a", log, 2, 1, 2), series("accuracy", log, 3, 0.1, 0.2)}, &api.JobTrend{Metric: "accuracy", Values: []float64{0.1, 0.2}}},
		{"the newest of many", []structs.MetricSeries{long}, &api.JobTrend{Metric: "loss", Values: newest}},
		{"in their order", []structs.MetricSeries{turned}, &api.JobTrend{Metric: "loss", Values: []float64{2, 1}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, trendOf(test.series)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A list with trends is the list, also while no node answers.
func TestListWithTrends(t *testing.T) {
	h := newHarness(t)
	h.node("machine-1", 8)
	h.start(h.admin, sleeper("train", "vision", "none"))
	plain, _, err := h.admin.Jobs(t.Context(), api.JobFilter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	with, _, err := h.admin.Jobs(t.Context(), api.JobFilter{Trends: true}, nil)
	if diff := cmp.Diff(plain, with); err != nil || diff != "" {
		t.Errorf("%v (-plain +with trends):\n%s", err, diff)
	}
}
