package httpapi

import (
	"cmp"
	"context"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// metricNameMax bounds the names that are asked for.
const metricNameMax = 1024 // bytes

// usageHandlers answers what ranks and nodes use, used, and report.
type usageHandlers struct {
	*core
	calls  *nodeCalls
	survey *survey
}

// jobMetrics answers jobs.metrics: it gathers what the nodes keep.
func (h *usageHandlers) jobMetrics(r *front.Request, job *structs.Job) (*api.JobMetrics, error) {
	q := front.Query{R: r}
	attempt, subjob, rank := q.Uint("attempt"), q.Int("subjob", 0, structs.BatchCountMax), q.Int("rank", 0, 1<<30)
	oneSubjob, oneRank := q.Text("subjob") != "", q.Text("rank") != ""
	points := q.Int("points", 1, api.MetricPointsMax)
	names := splitList(q.Text("name"))
	if len(q.Text("name")) > metricNameMax {
		q.Refuse("name", "…")
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	var allocs []*structs.Allocation
	for alloc := range h.store.Snapshot().AllocsOfJob(job.ID) {
		if (attempt == 0 || alloc.Attempt == attempt) && (!oneSubjob || alloc.Subjob == int(subjob)) && (!oneRank || alloc.Rank == int(rank)) {
			allocs = append(allocs, alloc)
		}
	}
	slices.SortFunc(allocs, func(a, b *structs.Allocation) int {
		return cmp.Or(cmp.Compare(a.Subjob, b.Subjob), cmp.Compare(b.Attempt, a.Attempt), cmp.Compare(a.Rank, b.Rank))
	})
	out := api.JobMetrics{Ranks: []api.RankMetrics{}}
	if len(allocs) > structs.MetricsAllocsMax {
		out.LeftOut = len(allocs) - structs.MetricsAllocsMax
		allocs = allocs[:structs.MetricsAllocsMax]
	}
	found, away := h.metricsOf(r.Context(), allocs, structs.MetricsRequest{Names: names, Points: cmp.Or(int(points), api.MetricPointsDefault)})
	out.Away = away
	for _, alloc := range allocs {
		if one, ok := found[alloc.ID]; ok {
			out.Ranks = append(out.Ranks, api.RankMetrics{
				AllocID: alloc.ID, Subjob: alloc.Subjob, Attempt: alloc.Attempt,
				Rank: alloc.Rank, Node: alloc.NodeName, Series: one.Series, LeftOut: one.LeftOut,
			})
		}
	}
	return &out, nil
}

// metricsOf asks the nodes of allocations. It returns what they answered by
// allocation, and the names of those that did not.
func (h *usageHandlers) metricsOf(ctx context.Context, allocs []*structs.Allocation, ask structs.MetricsRequest) (map[string]structs.AllocMetrics, []string) {
	found := make(map[string]structs.AllocMetrics)
	away := gather(h.calls, ctx, allocs, structs.MethodNodeMetrics, func(ids []string) *structs.MetricsRequest {
		request := ask
		request.AllocIDs = ids
		return &request
	}, func(answer *structs.NodeMetrics) {
		for _, one := range answer.Allocs {
			found[one.AllocID] = one
		}
	})
	return found, away
}
