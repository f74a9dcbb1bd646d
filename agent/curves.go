package agent

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// How nodes are asked for the figures of a job.
const (
	curvesPatience = 5 * time.Second // with all nodes together
	metricNameMax  = 1024            // bytes of the names that are asked for
)

// readCurves answers jobs.metrics: it gathers what the nodes keep.
func (s *site) readCurves(r *request) error {
	q := query{r: r}
	attempt, subjob, rank := q.uint("attempt"), q.int("subjob", 0, structs.BatchCountMax), q.int("rank", 0, 1<<30)
	oneSubjob, oneRank := q.text("subjob") != "", q.text("rank") != ""
	points := q.int("points", 1, api.MetricPointsMax)
	names := splitList(q.text("name"))
	if len(q.text("name")) > metricNameMax {
		q.refuse("name", "…")
	}
	if q.err != nil {
		return q.err
	}
	if err := s.refresh(r); err != nil {
		return err
	}
	var allocs []*structs.Allocation
	for alloc := range s.store.Snapshot().AllocsOfJob(r.id) {
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
	found, away := s.curvesOf(r.Context(), allocs, structs.MetricsRequest{Names: names, Points: cmp.Or(int(points), api.MetricPointsDefault)})
	out.Away = away
	for _, alloc := range allocs {
		if one, ok := found[alloc.ID]; ok {
			out.Ranks = append(out.Ranks, api.RankMetrics{AllocID: alloc.ID, Subjob: alloc.Subjob, Attempt: alloc.Attempt,
				Rank: alloc.Rank, Node: alloc.NodeName, Series: one.Series, LeftOut: one.LeftOut})
		}
	}
	return r.reply(out)
}

// curvesOf asks the nodes of allocations, all at one time: they are few. It
// gives what they answered by allocation, and the names of those that did not.
func (s *site) curvesOf(ctx context.Context, allocs []*structs.Allocation, ask structs.MetricsRequest) (map[string]structs.AllocMetrics, []string) {
	byNode := make(map[string][]*structs.Allocation)
	for _, alloc := range allocs {
		byNode[alloc.NodeID] = append(byNode[alloc.NodeID], alloc)
	}
	ctx, cancel := context.WithTimeout(ctx, curvesPatience)
	defer cancel()
	var mu sync.Mutex
	found, away := make(map[string]structs.AllocMetrics), []string(nil)
	var asking sync.WaitGroup
	for _, here := range byNode {
		asking.Go(func() {
			request := ask
			for _, alloc := range here {
				request.AllocIDs = append(request.AllocIDs, alloc.ID)
			}
			answer, err := s.nodeCurves(ctx, here[0], &request)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.log.Debug("ask node for figures of a job", logkey.NodeID, here[0].NodeID, logkey.Error, err)
				away = append(away, here[0].NodeName)
				return
			}
			for _, one := range answer.Allocs {
				found[one.AllocID] = one
			}
		})
	}
	asking.Wait()
	slices.SortFunc(away, strings.Compare)
	return found, away
}

func (s *site) nodeCurves(ctx context.Context, alloc *structs.Allocation, request *structs.MetricsRequest) (*structs.NodeMetrics, error) {
	node := s.store.Snapshot().Node(alloc.NodeID)
	if node == nil || node.RPCAddr == "" {
		return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", alloc.NodeName)
	}
	conn, err := s.pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
	if err != nil {
		return nil, err
	}
	return rpc.Call[structs.MetricsRequest, structs.NodeMetrics](ctx, conn, structs.MethodNodeMetrics, request)
}
