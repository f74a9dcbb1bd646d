package httpapi

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// What is looked at for the results of a job, and of all jobs of one request: the nodes
// read a small file for each allocation.
const (
	resultAttemptsMax = 4    // newest attempts of a job that is no batch
	resultSubjobsMax  = 64   // subjobs of a batch, each in its newest attempt
	resultAllocsMax   = 2048 // allocations of one request
	resultRoundsMax   = 8    // times that one node is asked, structs.MetricsAllocsMax allocations each
)

// results answers jobs.results: where the metrics of some jobs stand. Jobs whose logs
// the caller may not read are left out, as if they were not there.
func (h *usageHandlers) results(r *front.Request) (*api.JobResults, error) {
	q := front.Query{R: r}
	ids, names := splitList(q.Text("job")), splitList(q.Text("name"))
	if len(q.Text("name")) > metricNameMax {
		q.Refuse("name", "…")
	}
	if len(ids) > api.ResultJobsMax {
		return nil, structs.NewError(structs.CodeTooLarge, "agent.result_jobs", "count", len(ids), "max", api.ResultJobsMax)
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	out := api.JobResults{Jobs: []api.JobResult{}}
	var asked []*structs.Allocation
	of := make(map[string][]*structs.Allocation)
	for _, id := range ids {
		view, ok := snapshot.Job(id)
		if !ok || of[id] != nil || !auth.Allowed(r.Caller.Principal, auth.VerbLogs, jobObject(view.Job)).Allow {
			continue
		}
		found := resultAllocs(snapshot, view.Job)
		if len(asked)+len(found) > resultAllocsMax {
			out.LeftOut++
			continue
		}
		of[id] = found
		asked = append(asked, found...)
	}
	metrics, away := h.resultMetrics(r.Context(), asked, names)
	out.Away = away
	for _, id := range ids {
		found := of[id]
		delete(of, id) // one that was named twice is answered once
		if one := resultsOf(found, metrics, names); len(one) > 0 {
			out.Jobs = append(out.Jobs, api.JobResult{JobID: id, Metrics: one})
		}
	}
	return &out, nil
}

// resultMetrics asks the nodes in rounds, each of them for as many allocations at a
// time as it takes.
func (h *usageHandlers) resultMetrics(ctx context.Context, allocs []*structs.Allocation, names []string) (map[string]structs.AllocMetrics, []string) {
	found, gone := make(map[string]structs.AllocMetrics), make(map[string]bool)
	var away []string
	for _, round := range roundsOf(allocs, structs.MetricsAllocsMax, resultRoundsMax) {
		round = slices.DeleteFunc(round, func(alloc *structs.Allocation) bool { return gone[alloc.NodeName] })
		more, missing := h.metricsOf(ctx, round, structs.MetricsRequest{Names: names, Points: 1})
		for id, one := range more {
			found[id] = one
		}
		for _, node := range missing {
			gone[node] = true // and is not waited for again
		}
		away = append(away, missing...)
	}
	slices.Sort(away)
	return found, slices.Compact(away)
}

// roundsOf deals allocations into rounds, in each of which no node has more than most,
// at most rounds of them.
func roundsOf(allocs []*structs.Allocation, most, rounds int) [][]*structs.Allocation {
	var out [][]*structs.Allocation
	count := make(map[string]int)
	for _, alloc := range allocs {
		round := count[alloc.NodeID] / most
		count[alloc.NodeID]++
		if round >= rounds {
			continue
		}
		for len(out) <= round {
			out = append(out, nil)
		}
		out[round] = append(out[round], alloc)
	}
	return out
}

// resultAllocs are the allocations that a job's results are taken from: the first rank
// and the last, one of which reports in every framework, newest attempts first.
func resultAllocs(snapshot *state.Snapshot, job *structs.Job) []*structs.Allocation {
	var found []*structs.Allocation
	count := min(job.SubjobCount(), resultSubjobsMax)
	for index := range count {
		subjob := snapshot.Subjob(job.ID, index)
		if subjob == nil {
			continue
		}
		attempts := uint64(1)
		if count == 1 {
			attempts = resultAttemptsMax
		}
		for number := subjob.Attempt; number > 0 && number+attempts > subjob.Attempt; number-- {
			found = append(found, attemptEnds(snapshot, job.ID, index, number)...)
		}
	}
	return found
}

// attemptEnds are the first rank of an attempt and the last, as far as they are known.
func attemptEnds(snapshot *state.Snapshot, jobID string, subjob int, number uint64) []*structs.Allocation {
	ranks := []int{0}
	if attempt := snapshot.Attempt(jobID, subjob, number); attempt != nil && len(attempt.Allocs) > 1 {
		ranks = append(ranks, len(attempt.Allocs)-1)
	}
	var found []*structs.Allocation
	for _, rank := range ranks {
		if alloc := snapshot.Alloc(structs.AllocID(jobID, subjob, number, rank)); alloc != nil {
			found = append(found, alloc)
		}
	}
	return found
}

// resultsOf sums up what allocations of one job measured, by the names of the metrics:
// the least and the most over all of them, and the newest. Of each allocation counts
// the log before event files, and rank 0 before others that tell the same.
func resultsOf(allocs []*structs.Allocation, found map[string]structs.AllocMetrics, names []string) []api.MetricResult {
	type place struct {
		name    string
		subjob  int
		attempt uint64
	}
	taken, at := make(map[place]bool), make(map[string]int)
	var out []api.MetricResult
	for _, alloc := range allocs {
		series := slices.Clone(found[alloc.ID].Series)
		slices.SortStableFunc(series, func(a, b structs.MetricSeries) int { return cmp.Compare(sourceRank(a.Source), sourceRank(b.Source)) })
		for i := range series {
			s := &series[i]
			here := place{s.Name, alloc.Subjob, alloc.Attempt}
			if s.Count == 0 || taken[here] || len(names) > 0 && !slices.Contains(names, s.Name) {
				continue
			}
			taken[here] = true
			index, known := at[s.Name]
			if !known {
				if len(out) == api.ResultMetricsMax {
					continue
				}
				at[s.Name] = len(out)
				out = append(out, api.MetricResult{Name: s.Name, Count: s.Count, Min: s.Min, Max: s.Max, Last: s.Last, Subjob: alloc.Subjob})
				continue
			}
			one := &out[index]
			one.Count, one.Min, one.Max = one.Count+s.Count, min(one.Min, s.Min), max(one.Max, s.Max)
			if s.Last.At > one.Last.At {
				one.Last, one.Subjob = s.Last, alloc.Subjob
			}
		}
	}
	slices.SortFunc(out, func(a, b api.MetricResult) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func sourceRank(source string) int {
	if source == structs.MetricFromLog {
		return 0
	}
	return 1
}
