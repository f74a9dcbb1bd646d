package feasible

import (
	"cmp"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// GangProblem reports why a gang may not be placed now, or nil when it may.
// state.Apply calls it with its latest state for each gang of a plan, after the
// gangs before it were applied; for a gang with victims view is as if they
// were gone.
func GangProblem(job *structs.Job, subjob *structs.Subjob, gang *structs.GangPlan, view View) *structs.Reason {
	switch {
	case job == nil || subjob == nil:
		return structs.NewReason("scheduler.refused_gone")
	case subjob.State != structs.JobQueued:
		return structs.NewReason("scheduler.refused_state", "state", subjob.State)
	case subjob.Held():
		return structs.NewReason("scheduler.refused_pending")
	case gang.Attempt != subjob.NextAttempt():
		return structs.NewReason("scheduler.refused_attempt", "attempt", gang.Attempt, "next", subjob.NextAttempt())
	case gang.Spec < 0 || gang.Spec >= len(job.Resources):
		return structs.NewReason("scheduler.refused_spec", "spec", gang.Spec)
	case len(gang.Placements) < job.NodesMin() || len(gang.Placements) > job.Nodes || job.Nodes > structs.RanksMax:
		return structs.NewReason("scheduler.refused_partial", "placed", len(gang.Placements), "nodes", job.Nodes)
	}
	more := structs.QuotaUsage{}
	taken := make(map[string]bool, len(gang.Placements))
	pool := "" // of the ranks so far, when they must share RDMA
	for rank := range gang.Placements {
		placement := &gang.Placements[rank]
		if taken[placement.NodeID] {
			return structs.NewReason("scheduler.refused_twice", "node", placement.NodeID)
		}
		taken[placement.NodeID] = true
		n, usage := view.Node(placement.NodeID)
		if n == nil {
			return structs.NewReason("scheduler.node_unknown", "node", placement.NodeID)
		}
		if usage != nil && usage.NominatedFor != "" && usage.NominatedFor != structs.SubjobKey(job.ID, subjob.Index) {
			return structs.NewReason("scheduler.node_claimed", "node", n.Name, "claim", usage.NominatedFor)
		}
		spec := job.SpecOf(gang.Spec, rank, len(gang.Placements))
		if reason := PoolProblem(job, spec, n, view.Pool(n.PoolName())); reason != nil {
			return reason
		}
		if spec.RDMA && pool != "" && n.PoolName() != pool {
			return structs.NewReason("scheduler.refused_pools", "pool", pool, "other", n.PoolName())
		}
		pool = n.PoolName()
		if reason := PlacementProblem(job, n, usage, spec, rank, placement); reason != nil {
			return reason
		}
		more.AddRank(spec, n, placement.Devices)
	}
	return structs.QuotaProblem(view.Project(job.Project), view.ProjectUsage(job.Project), more)
}

// PlacementProblem reports why rank may not stand on node with exactly the ports
// and devices of placement, or nil when it may. What the node's pool says is
// asked by PoolProblem.
func PlacementProblem(job *structs.Job, node *structs.Node, usage *structs.Usage, spec structs.Resources, rank int, placement *structs.RankPlacement) *structs.Reason {
	if fault := node.Unfit(); fault != nil {
		return structs.NewReason("scheduler.node_unfit", "node", node.Name, "fault", fault.Name)
	}
	if !node.Schedulable() {
		return structs.NewReason("scheduler.node_not_ready", "node", node.Name, "status", node.Status, "eligibility", node.Eligibility)
	}
	if reason := NodeProblem(job, node); reason != nil {
		return reason
	}
	if reason := SpecProblem(job, spec, node); reason != nil {
		return reason
	}
	if usage != nil && usage.Overcommitted {
		return structs.NewReason("scheduler.node_overcommitted", "node", node.Name)
	}
	if job.VIP != nil && usage != nil && usage.Allocs > 0 {
		return structs.NewReason("scheduler.node_busy", "node", node.Name, "allocs", usage.Allocs)
	}
	if reason := RoomProblem(node, usage, spec); reason != nil {
		return reason
	}
	if reason := portsProblem(node, usage, job.PortRequests(spec, rank), placement.Ports); reason != nil {
		return reason
	}
	return devicesProblem(node, usage, spec.Devices, placement.Devices)
}

// NodeProblem reports what about the node itself, whatever it holds, keeps the
// job away: its pool, its drivers, or that the job names other nodes. Named
// nodes may stand in any pool that is not dedicated; a VIP job gets the
// machines that were chosen for it and no others.
func NodeProblem(job *structs.Job, node *structs.Node) *structs.Reason {
	switch {
	case len(job.Placement.Nodes) > 0 && !job.Names(node), job.VIP != nil && !job.VIP.Chooses(node):
		return structs.NewReason("scheduler.node_not_named", "node", node.Name)
	case len(job.Placement.Nodes) == 0 && job.Placement.Pool != "" && node.PoolName() != job.Placement.Pool:
		return structs.NewReason("scheduler.node_pool", "node", node.Name, "pool", job.Placement.Pool)
	case !node.HasDriver(job.Task.Driver):
		return structs.NewReason("scheduler.node_driver", "node", node.Name, "driver", job.Task.Driver)
	}
	for _, need := range job.StorageNeeds() {
		if !node.Stores(need) {
			kind, name, _ := strings.Cut(need, "/")
			return structs.NewReason("scheduler.node_storage", "node", node.Name, "kind", kind, "storage", name)
		}
	}
	return nil
}

// SpecProblem reports what about the node, whatever it holds, keeps ranks of
// spec away: it has no RDMA, or devices that they could get have a driver that
// the job's placement excludes.
func SpecProblem(job *structs.Job, spec structs.Resources, node *structs.Node) *structs.Reason {
	if spec.RDMA && !node.RDMA {
		return structs.NewReason("scheduler.node_rdma", "node", node.Name)
	}
	want := job.Placement.DriverVersion
	if want == "" || len(job.Placement.Nodes) > 0 {
		return nil
	}
	constraint, ok := structs.ParseVersionConstraint(want)
	for i := range node.Devices {
		d := &node.Devices[i]
		if slices.ContainsFunc(spec.Devices, d.Meets) && !(ok && constraint.Allows(d.Driver)) {
			return structs.NewReason("scheduler.node_driver_version", "node", node.Name, "version", d.Driver, "want", want)
		}
	}
	return nil
}

// PoolProblem reports what the pool of the node says against ranks of spec there:
// it is dedicated to jobs that name it, it has no RDMA, or it does not let
// processes run on nodes that isolate none. pool is the record of
// node.PoolName(), nil when there is none.
func PoolProblem(job *structs.Job, spec structs.Resources, node *structs.Node, pool *structs.Pool) *structs.Reason {
	switch {
	case pool != nil && pool.Dedicated && job.Placement.Pool != pool.Name:
		return structs.NewReason("scheduler.node_dedicated", "node", node.Name, "pool", pool.Name)
	case spec.RDMA && !pool.MayRDMA(spec):
		return structs.NewReason("scheduler.pool_rdma", "pool", node.PoolName())
	case node.Raw && job.Task.Driver == structs.DriverExec && (pool == nil || !pool.Raw):
		return structs.NewReason("scheduler.pool_raw", "node", node.Name, "pool", node.PoolName(),
			"cause", cmp.Or(node.Attributes[structs.AttrIsolationReason], "switched off"))
	}
	return nil
}

// RoomProblem reports whether cores or memory of the node are short for one rank
// of spec.
func RoomProblem(node *structs.Node, usage *structs.Usage, spec structs.Resources) *structs.Reason {
	switch need, free := spec.Amount(), node.FreeBeside(usage); {
	case need.CPU > free.CPU:
		return structs.NewReason("scheduler.node_cpu", "node", node.Name, "need", structs.FormatMilliCPU(need.CPU), "free", structs.FormatMilliCPU(free.CPU))
	case need.Memory > free.Memory:
		return structs.NewReason("scheduler.node_memory", "node", node.Name, "need", structs.FormatSize(need.Memory), "free", structs.FormatSize(max(free.Memory, 0)))
	}
	return nil
}

// portsProblem checks that given answers requests one by one with ports that
// nobody holds.
func portsProblem(node *structs.Node, usage *structs.Usage, requests []structs.PortRequest, given map[string]int) *structs.Reason {
	if len(given) != len(requests) {
		return structs.NewReason("scheduler.refused_ports", "node", node.Name)
	}
	taken := make(map[int]bool, len(requests))
	for _, request := range requests {
		port, ok := given[request.Name]
		inRange := port >= node.Capacity.PortMin && port <= node.Capacity.PortMax
		if request.Static != 0 {
			inRange = port == request.Static
		}
		if !ok || !inRange || port < 1 || port > 65535 || taken[port] {
			return structs.NewReason("scheduler.refused_ports", "node", node.Name)
		}
		taken[port] = true
		if usage.UsesPort(port) {
			return structs.NewReason("scheduler.node_port", "node", node.Name, "port", port)
		}
	}
	return nil
}

// ChoosePorts answers requests with ports of the node that nobody holds, in
// the order of requests; false when one cannot be answered. start moves the
// place where the search for a free port begins, so that two attempts of one
// job seldom get the same port: a port of the old attempt may linger in the
// kernel, and a peer of it may still knock there.
func ChoosePorts(node *structs.Node, usage *structs.Usage, requests []structs.PortRequest, start uint64) (map[string]int, bool) {
	if len(requests) == 0 {
		return nil, true
	}
	given := make(map[string]int, len(requests))
	taken := make(map[int]bool, len(requests))
	for _, request := range requests { // fixed ones first: a free one must not sit on them
		if request.Static == 0 {
			continue
		}
		if request.Static < 1 || request.Static > 65535 || taken[request.Static] || usage.UsesPort(request.Static) {
			return nil, false
		}
		given[request.Name], taken[request.Static] = request.Static, true
	}
	low, high := max(node.Capacity.PortMin, 1), min(node.Capacity.PortMax, 65535)
	width := high - low + 1
	for _, request := range requests {
		if request.Static != 0 {
			continue
		}
		port := 0
		for i := range max(width, 0) {
			candidate := low + int((start+uint64(i))%uint64(width))
			if !taken[candidate] && !usage.UsesPort(candidate) {
				port = candidate
				break
			}
		}
		if port == 0 {
			return nil, false
		}
		given[request.Name], taken[port] = port, true
	}
	return given, len(given) == len(requests) // two requests of one name cannot both be answered
}
