package httpapi

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// trendPatience is how long a list waits for nodes: it says the rest without them.
const trendPatience = 250 * time.Millisecond

// trendSubjobsMax bounds the subjobs of a batch that are looked at for one that runs.
const trendSubjobsMax = 64

// addTrends adds to the first jobs of a page that run how one of their metrics goes.
// Jobs whose logs the caller may not read, and those whose nodes do not answer at once,
// have none.
func (h *usageHandlers) addTrends(r *front.Request, snapshot *state.Snapshot, jobs []api.JobSummary) {
	var asked []*structs.Allocation
	of := make(map[int][]*structs.Allocation)
	for i := range jobs {
		if len(of) == api.TrendJobsMax {
			break
		}
		view, ok := snapshot.Job(jobs[i].ID)
		if jobs[i].State != structs.JobRunning || !ok || !auth.Allowed(r.Caller.Principal, auth.VerbLogs, jobObject(view.Job)).Allow {
			continue
		}
		of[i] = trendAllocs(snapshot, view.Job)
		asked = append(asked, of[i]...)
	}
	if len(asked) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), trendPatience)
	defer cancel()
	found, _ := h.metricsOf(ctx, asked, structs.MetricsRequest{Points: api.TrendPointsMax})
	for i, allocs := range of {
		var series []structs.MetricSeries
		for _, alloc := range allocs {
			series = append(series, found[alloc.ID].Series...)
		}
		jobs[i].Trend = trendOf(series)
	}
}

// trendAllocs are the allocations that tell how a job goes: the first rank and the last
// of the first subjob that runs, one of which reports in every framework.
func trendAllocs(snapshot *state.Snapshot, job *structs.Job) []*structs.Allocation {
	for index := range min(job.SubjobCount(), trendSubjobsMax) {
		subjob := snapshot.Subjob(job.ID, index)
		if subjob == nil || subjob.State != structs.JobRunning {
			continue
		}
		attempt := snapshot.Attempt(job.ID, index, subjob.Attempt)
		if attempt == nil {
			continue
		}
		ranks := []int{0}
		if last := len(attempt.Allocs) - 1; last > 0 {
			ranks = append(ranks, last)
		}
		var found []*structs.Allocation
		for _, rank := range ranks {
			if alloc := snapshot.Alloc(structs.AllocID(job.ID, index, subjob.Attempt, rank)); alloc != nil {
				found = append(found, alloc)
			}
		}
		return found
	}
	return nil
}

// trendLeast is of how many observations a trend is made.
const trendLeast = 2

// speed finds the names of metrics that say how fast a training goes.
var speed = regexp.MustCompile(`(?i)throughput|per_s|/s\b|tokens|samples|tflops|it_s|step_time`)

// trendOf chooses the one metric by which somebody sees at a glance whether a training
// goes well: its loss, the shortest name first, since "loss" says more than
// "eval/aux_loss"; else its speed; else the one with most observations. nil: there is
// none. Pure.
func trendOf(all []structs.MetricSeries) *api.JobTrend {
	rank := func(name string) int {
		switch {
		case strings.Contains(strings.ToLower(name), "loss"):
			return 0
		case speed.MatchString(name):
			return 1
		}
		return 2
	}
	better := func(a, b *structs.MetricSeries) bool {
		switch x, y := rank(a.Name), rank(b.Name); {
		case x != y:
			return x < y
		case sourceRank(a.Source) != sourceRank(b.Source):
			return sourceRank(a.Source) < sourceRank(b.Source)
		case x == 2 && a.Count != b.Count:
			return a.Count > b.Count
		case len(a.Name) != len(b.Name):
			return len(a.Name) < len(b.Name)
		}
		return a.Name < b.Name
	}
	var best *structs.MetricSeries
	for i := range all {
		if one := &all[i]; len(one.Points) >= trendLeast && (best == nil || better(one, best)) {
			best = one
		}
	}
	if best == nil {
		return nil
	}
	points := slices.Clone(best.Points)
	slices.SortStableFunc(points, func(a, b structs.MetricPoint) int { return int(min(max(a.Step-b.Step, -1), 1)) })
	points = points[max(0, len(points)-api.TrendPointsMax):]
	trend := &api.JobTrend{Metric: best.Name, Values: make([]float64, len(points))}
	for i, point := range points {
		trend.Values[i] = point.Value
	}
	return trend
}
