package httpapi

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/agent/httpapi/front"
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

// errNodeAway is returned when a node cannot be asked because servers do not
// know where it is.
var errNodeAway = errors.New("the node is away")

// readMetrics answers jobs.metrics: it gathers what the nodes keep.
func (s *handlers) readMetrics(r *front.Request, job *structs.Job) (*api.JobMetrics, error) {
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
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	var allocs []*structs.Allocation
	for alloc := range s.store.Snapshot().AllocsOfJob(job.ID) {
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
	found, away := s.metricsOf(r.Context(), allocs, structs.MetricsRequest{Names: names, Points: cmp.Or(int(points), api.MetricPointsDefault)})
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

// metricsOf asks the nodes of allocations. It gives what they answered by
// allocation, and the names of those that did not.
func (s *handlers) metricsOf(ctx context.Context, allocs []*structs.Allocation, ask structs.MetricsRequest) (map[string]structs.AllocMetrics, []string) {
	found := make(map[string]structs.AllocMetrics)
	away := gather(s, ctx, allocs, structs.MethodNodeMetrics, func(ids []string) *structs.MetricsRequest {
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

// gather asks every node of allocations one question about those of them that
// are there, several nodes at a time, within curvesPatience. take gets the
// answers one after the other. It gives the names of the nodes that did not
// answer.
func gather[Request, Reply any](s *handlers, ctx context.Context, allocs []*structs.Allocation, method string, request func(ids []string) *Request, take func(*Reply)) []string {
	byNode := make(map[string][]*structs.Allocation)
	for _, alloc := range allocs {
		byNode[alloc.NodeID] = append(byNode[alloc.NodeID], alloc)
	}
	ctx, cancel := context.WithTimeout(ctx, curvesPatience)
	defer cancel()
	snapshot := s.store.Snapshot()
	var mu sync.Mutex
	var away []string
	var asking sync.WaitGroup
	places := make(chan struct{}, usageAsked)
	for id, here := range byNode {
		ids := make([]string, len(here))
		for i, alloc := range here {
			ids[i] = alloc.ID
		}
		places <- struct{}{}
		asking.Go(func() {
			defer func() { <-places }()
			answer, err := askNode[Request, Reply](ctx, s, snapshot.Node(id), method, request(ids))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				s.log.Debug("ask node about ranks of a job", logkey.NodeID, id, logkey.Error, err)
				away = append(away, here[0].NodeName)
				return
			}
			take(answer)
		})
	}
	asking.Wait()
	slices.SortFunc(away, strings.Compare)
	return away
}

// askNode asks one node; nil: it is gone.
func askNode[Request, Reply any](ctx context.Context, s *handlers, node *structs.Node, method string, request *Request) (*Reply, error) {
	if node == nil || node.RPCAddr == "" || node.Status == structs.NodeLost || node.Status == structs.NodeLeft {
		return nil, errNodeAway
	}
	conn, err := s.pool.Conn(rpc.Target{Addr: node.RPCAddr, Expect: auth.Expect{ID: node.ID}})
	if err != nil {
		return nil, err
	}
	return rpc.Call[Request, Reply](ctx, conn, method, request)
}
