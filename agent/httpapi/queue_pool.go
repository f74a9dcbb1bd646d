package httpapi

import (
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// reach reports for which pools jobs wait, and remembers it for jobs that ask for
// the same.
type reach struct {
	pool  func(string) *structs.Pool // the record, nil: none
	nodes map[string][]*structs.Node // by pool
	known map[string][]string        // by what jobs ask for
	last  *structs.Job               // the subjobs of a batch follow each other
	found []string                   // of last
}

func newReach(snapshot *state.Snapshot) *reach {
	x := &reach{pool: snapshot.Pool, nodes: make(map[string][]*structs.Node), known: make(map[string][]string)}
	for node := range snapshot.Nodes() {
		x.nodes[node.PoolName()] = append(x.nodes[node.PoolName()], node)
	}
	return x
}

// of lists the pools for which a job waits, by name: the one that it names, or
// those with a node that could hold a rank of it if it held nothing. One that no
// node could hold waits for the default pool, in whose queue it stands.
func (x *reach) of(job *structs.Job) []string {
	if job == x.last {
		return x.found
	}
	x.last = job
	if job.Placement.Pool != "" {
		x.found = []string{job.Placement.Pool}
		return x.found
	}
	keys := make([]string, len(job.Resources))
	for i := range job.Resources {
		need := placement.NeedOf(job, i)
		keys[i] = need.Key()
	}
	key := strings.Join(keys, "\x00")
	found, known := x.known[key]
	if !known {
		for _, pool := range slices.Sorted(maps.Keys(x.nodes)) {
			if slices.ContainsFunc(x.nodes[pool], func(node *structs.Node) bool { return couldRun(job, node, x.pool(pool)) }) {
				found = append(found, pool)
			}
		}
		if len(found) == 0 {
			found = []string{structs.PoolDefault}
		}
		x.known[key] = found
	}
	x.found = found
	return found
}

// couldRun reports whether a node could hold a rank of a job under any of its
// alternatives if it held nothing, whether or not it takes work now. pool is the
// record of its pool.
func couldRun(job *structs.Job, node *structs.Node, pool *structs.Pool) bool {
	if feasible.NodeProblem(job, node) != nil {
		return false
	}
	return slices.ContainsFunc(job.Resources, func(spec structs.Resources) bool {
		return feasible.PoolProblem(job, spec, node, pool) == nil && feasible.SpecProblem(job, spec, node) == nil &&
			feasible.RoomProblem(node, nil, spec) == nil && !slices.ContainsFunc(spec.Devices, func(request structs.DeviceRequest) bool {
			have := 0
			for i := range node.Devices {
				if node.Devices[i].Meets(request) {
					have++
				}
			}
			return have < max(request.Count, 1)
		})
	})
}
