package httpapi

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// jobHistory answers jobs.past: what the ranks of one attempt used while they ran,
// which their nodes keep.
func (h *usageHandlers) jobHistory(r *front.Request, job *structs.Job) (*api.JobHistory, error) {
	q := front.Query{R: r}
	index, attempt, rank := int(q.Int("subjob", 0, structs.BatchCountMax)), q.Uint("attempt"), int(q.Int("rank", 0, math.MaxInt32))
	points := int(cmp.Or(q.Int("points", 1, structs.HistoryPointsMax), structs.HistoryPointsDefault))
	since, oneRank := q.Span("since", math.MaxInt64, math.MaxInt64), q.Text("rank") != ""
	if q.Err != nil {
		return nil, q.Err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	subjob := snapshot.Subjob(job.ID, index)
	if subjob == nil {
		return nil, structs.NewError(structs.CodeNotFound, "agent.subjob_unknown", "subjob", index)
	}
	out := api.JobHistory{JobID: job.ID, Subjob: index, Attempt: cmp.Or(attempt, subjob.Attempt), At: []structs.UnixNano{}, Ranks: []api.RankHistory{}}
	var gang []*structs.Allocation
	for alloc := range snapshot.Gang(job.ID, index, out.Attempt) {
		if !oneRank || alloc.Rank == rank {
			gang = append(gang, alloc)
		}
	}
	slices.SortFunc(gang, func(a, b *structs.Allocation) int { return a.Rank - b.Rank })
	if len(gang) > structs.RankHistoryAllocsMax {
		out.More = len(gang) - structs.RankHistoryAllocsMax
		gang = gang[:structs.RankHistoryAllocsMax]
	}
	if len(gang) == 0 {
		return &out, nil
	}
	ask := historyGrid(gang, h.now(), since, points)
	found := make(map[string][]structs.GaugeHistory)
	out.Away = gather(h.calls, r.Context(), gang, structs.MethodNodeRankHistory, func(ids []string) *structs.RankHistoryRequest {
		request := ask
		request.AllocIDs = ids
		return &request
	}, func(answer *structs.NodeRankHistory) {
		for _, one := range answer.Ranks {
			found[one.AllocID] = one.Series
		}
	})
	out.Step = ask.Step
	for i := range ask.Count {
		out.At = append(out.At, ask.From+structs.UnixNano(i)*structs.UnixNano(ask.Step))
	}
	for _, alloc := range gang {
		out.Ranks = append(out.Ranks, api.RankHistory{
			AllocID: alloc.ID, Rank: alloc.Rank, NodeID: alloc.NodeID, Node: alloc.NodeName, Status: alloc.Status,
			CPU: alloc.Spec.CPU, Memory: alloc.Spec.Memory, Series: whole(found[alloc.ID], ask.Count),
		})
	}
	return &out, nil
}

// pastTick is the finest that nodes keep what ranks use.
const pastTick = 5 * time.Second

// historyGrid chooses the points at which ranks of one attempt are told: from its
// first start, but no earlier than since before its end, to its end or now, as
// many as are wanted and as one answer may hold. Pure.
func historyGrid(gang []*structs.Allocation, now time.Time, since time.Duration, points int) structs.RankHistoryRequest {
	began, ended, runs := structs.At(now), structs.UnixNano(0), false
	for _, alloc := range gang {
		began = min(began, cmp.Or(alloc.StartedAt, alloc.PlacedAt, began))
		ended = max(ended, alloc.FinishedAt)
		runs = runs || !alloc.Status.Terminal()
	}
	if runs || ended < began { // or nobody knows when it was lost
		ended = max(structs.At(now), began)
	}
	if ended.Sub(began) > since {
		began = ended - structs.UnixNano(since)
	}
	first := began.Time().Truncate(pastTick)
	points = max(min(points, structs.HistoryValuesMax/(structs.HistoryGaugesMax*len(gang))), 1)
	span := ended.Time().Sub(first)/pastTick + 1 // in ticks
	step := (span + time.Duration(points) - 1) / time.Duration(points)
	return structs.RankHistoryRequest{From: structs.At(first), Step: structs.Duration(int64(step) * int64(pastTick)), Count: int((span + step - 1) / step)}
}
