package structs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// This file holds the one answer to "may this rank stand on this node?". The
// scheduler asks it while it searches and state.Apply asks it again when a
// plan arrives, so that an accepted plan cannot be refused later for a reason
// that the scheduler did not know. Everything here is pure and reads its
// arguments only; any goroutine may call it.
//
// Cores are compared in whole thousandths: sums of fractions such as 0.1 drift
// in floating point, and a drift must never turn a full node into a fit.

// RanksMax bounds the nodes of one gang that a plan may carry.
const RanksMax = 16384

// GangProblem tells why a gang may not be placed now, or nil when it may.
// state.Apply calls it with its latest state for each gang of a plan, after the
// gangs before it were applied; for a gang with victims ground is as if they
// were gone.
func GangProblem(job *Job, subjob *Subjob, gang *GangPlan, ground Ground) *Reason {
	switch {
	case job == nil || subjob == nil:
		return NewReason("scheduler.refused_gone")
	case subjob.State != JobQueued:
		return NewReason("scheduler.refused_state", "state", subjob.State)
	case gang.Attempt != subjob.NextAttempt():
		return NewReason("scheduler.refused_attempt", "attempt", gang.Attempt, "next", subjob.NextAttempt())
	case gang.Spec < 0 || gang.Spec >= len(job.Resources):
		return NewReason("scheduler.refused_spec", "spec", gang.Spec)
	case len(gang.Placements) < job.NodesMin() || len(gang.Placements) > job.Nodes || job.Nodes > RanksMax:
		return NewReason("scheduler.refused_partial", "placed", len(gang.Placements), "nodes", job.Nodes)
	}
	more := Holding{}
	taken := make(map[string]bool, len(gang.Placements))
	pool := "" // of the ranks so far, when they must share RDMA
	for rank := range gang.Placements {
		placement := &gang.Placements[rank]
		if taken[placement.NodeID] {
			return NewReason("scheduler.refused_twice", "node", placement.NodeID)
		}
		taken[placement.NodeID] = true
		n, usage := ground.Node(placement.NodeID)
		if n == nil {
			return NewReason("scheduler.node_unknown", "node", placement.NodeID)
		}
		if usage != nil && usage.Claim != "" && usage.Claim != SubjobKey(job.ID, subjob.Index) {
			return NewReason("scheduler.node_claimed", "node", n.Name, "claim", usage.Claim)
		}
		spec := job.SpecOf(gang.Spec, rank, len(gang.Placements))
		if reason := PoolProblem(job, spec, n, ground.Pool(n.PoolName())); reason != nil {
			return reason
		}
		if spec.RDMA && pool != "" && n.PoolName() != pool {
			return NewReason("scheduler.refused_pools", "pool", pool, "other", n.PoolName())
		}
		pool = n.PoolName()
		if reason := PlacementProblem(job, n, usage, spec, rank, placement); reason != nil {
			return reason
		}
		more.holdBy(spec, n, placement.Devices)
	}
	return QuotaProblem(ground.Project(job.Project), ground.ProjectUsage(job.Project), more)
}

// PlacementProblem tells why rank may not stand on node with exactly the ports
// and devices of placement, or nil when it may. What the node's pool says is
// asked by PoolProblem.
func PlacementProblem(job *Job, node *Node, usage *Usage, spec Resources, rank int, placement *RankPlacement) *Reason {
	if fault := node.Unfit(); fault != nil {
		return NewReason("scheduler.node_unfit", "node", node.Name, "fault", fault.Name)
	}
	if !node.Schedulable() {
		return NewReason("scheduler.node_not_ready", "node", node.Name, "status", node.Status, "eligibility", node.Eligibility)
	}
	if reason := NodeProblem(job, node); reason != nil {
		return reason
	}
	if reason := SpecProblem(job, spec, node); reason != nil {
		return reason
	}
	if usage != nil && usage.Overcommitted {
		return NewReason("scheduler.node_overcommitted", "node", node.Name)
	}
	if job.VIP != nil && usage != nil && usage.Allocs > 0 {
		return NewReason("scheduler.node_busy", "node", node.Name, "allocs", usage.Allocs)
	}
	if reason := RoomProblem(node, usage, spec); reason != nil {
		return reason
	}
	if reason := portsProblem(node, usage, job.PortRequests(spec, rank), placement.Ports); reason != nil {
		return reason
	}
	return devicesProblem(node, usage, spec.Devices, placement.Devices)
}

// NodeProblem tells what about the node itself, whatever it holds, keeps the
// job away: its pool, its drivers, or that the job names other nodes. Named
// nodes may stand in any pool that is not dedicated; a VIP job gets the
// machines that were chosen for it and no others.
func NodeProblem(job *Job, node *Node) *Reason {
	switch {
	case len(job.Placement.Nodes) > 0 && !job.Names(node), job.VIP != nil && !job.VIP.Chooses(node):
		return NewReason("scheduler.node_not_named", "node", node.Name)
	case len(job.Placement.Nodes) == 0 && job.Placement.Pool != "" && node.PoolName() != job.Placement.Pool:
		return NewReason("scheduler.node_pool", "node", node.Name, "pool", job.Placement.Pool)
	case !node.HasDriver(job.Task.Driver):
		return NewReason("scheduler.node_driver", "node", node.Name, "driver", job.Task.Driver)
	}
	for _, need := range job.StorageNeeds() {
		if !node.Stores(need) {
			kind, name, _ := strings.Cut(need, "/")
			return NewReason("scheduler.node_storage", "node", node.Name, "kind", kind, "storage", name)
		}
	}
	return nil
}

// SpecProblem tells what about the node, whatever it holds, keeps ranks of
// spec away: it has no RDMA, or devices that they could get have a driver that
// the job's placement excludes.
func SpecProblem(job *Job, spec Resources, node *Node) *Reason {
	if spec.RDMA && !node.RDMA {
		return NewReason("scheduler.node_rdma", "node", node.Name)
	}
	want := job.Placement.DriverVersion
	if want == "" || len(job.Placement.Nodes) > 0 {
		return nil
	}
	constraint, ok := ParseVersionConstraint(want)
	for i := range node.Devices {
		d := &node.Devices[i]
		if slices.ContainsFunc(spec.Devices, d.Meets) && !(ok && constraint.Holds(d.Driver)) {
			return NewReason("scheduler.node_driver_version", "node", node.Name, "version", d.Driver, "want", want)
		}
	}
	return nil
}

// PoolProblem tells what the pool of the node says against ranks of spec there:
// it is dedicated to jobs that name it, it has no RDMA, or it does not let
// processes run on nodes that isolate none. pool is the record of
// node.PoolName(), nil when there is none.
func PoolProblem(job *Job, spec Resources, node *Node, pool *Pool) *Reason {
	switch {
	case pool != nil && pool.Dedicated && job.Placement.Pool != pool.Name:
		return NewReason("scheduler.node_dedicated", "node", node.Name, "pool", pool.Name)
	case spec.RDMA && !pool.mayRDMA(spec):
		return NewReason("scheduler.pool_rdma", "pool", node.PoolName())
	case node.Raw && job.Task.Driver == DriverExec && (pool == nil || !pool.Raw):
		return NewReason("scheduler.pool_raw", "node", node.Name, "pool", node.PoolName(),
			"cause", cmp.Or(node.Attributes[AttrIsolationReason], "switched off"))
	}
	return nil
}

// mayRDMA reports whether the record of a pool, or that there is none, leaves RDMA to
// a spec: it may deny it, and must promise it to a spec of an older version.
func (p *Pool) mayRDMA(spec Resources) bool {
	if spec.RDMAByNodes {
		return p == nil || !p.NoRDMA
	}
	return p != nil && p.RDMA
}

// Names reports whether the job's placement names the node, by name or by id.
func (j *Job) Names(node *Node) bool {
	return slices.Contains(j.Placement.Nodes, node.Name) || slices.Contains(j.Placement.Nodes, node.ID)
}

// RoomProblem reports whether cores or memory of the node are short for one rank
// of spec.
func RoomProblem(node *Node, usage *Usage, spec Resources) *Reason {
	switch need, free := spec.Amount(), node.FreeBeside(usage); {
	case need.CPU > free.CPU:
		return NewReason("scheduler.node_cpu", "node", node.Name, "need", FormatMilliCPU(need.CPU), "free", FormatMilliCPU(free.CPU))
	case need.Memory > free.Memory:
		return NewReason("scheduler.node_memory", "node", node.Name, "need", FormatSize(need.Memory), "free", FormatSize(max(free.Memory, 0)))
	}
	return nil
}

// FormatMilliCPU writes thousandths of a core as cores: 1500 is "1.5".
func FormatMilliCPU(milli int64) string {
	return strconv.FormatFloat(float64(max(milli, 0))/1000, 'f', -1, 64)
}

// portsProblem checks that given answers requests one by one with ports that
// nobody holds.
func portsProblem(node *Node, usage *Usage, requests []PortRequest, given map[string]int) *Reason {
	if len(given) != len(requests) {
		return NewReason("scheduler.refused_ports", "node", node.Name)
	}
	taken := make(map[int]bool, len(requests))
	for _, request := range requests {
		port, ok := given[request.Name]
		inRange := port >= node.Capacity.PortMin && port <= node.Capacity.PortMax
		if request.Static != 0 {
			inRange = port == request.Static
		}
		if !ok || !inRange || port < 1 || port > 65535 || taken[port] {
			return NewReason("scheduler.refused_ports", "node", node.Name)
		}
		taken[port] = true
		if usage.holdsPort(port) {
			return NewReason("scheduler.node_port", "node", node.Name, "port", port)
		}
	}
	return nil
}

func (u *Usage) holdsPort(port int) bool {
	if u == nil {
		return false
	}
	_, held := u.Ports[port]
	return held
}

func (u *Usage) holdsDevice(id string) bool {
	if u == nil {
		return false
	}
	_, held := u.Devices[id]
	return held
}

// ChoosePorts answers requests with ports of the node that nobody holds, in
// the order of requests; false when one cannot be answered. start moves the
// place where the search for a free port begins, so that two attempts of one
// job seldom get the same port: a port of the old attempt may linger in the
// kernel, and a peer of it may still knock there.
func ChoosePorts(node *Node, usage *Usage, requests []PortRequest, start uint64) (map[string]int, bool) {
	if len(requests) == 0 {
		return nil, true
	}
	given := make(map[string]int, len(requests))
	taken := make(map[int]bool, len(requests))
	for _, request := range requests { // fixed ones first: a free one must not sit on them
		if request.Static == 0 {
			continue
		}
		if request.Static < 1 || request.Static > 65535 || taken[request.Static] || usage.holdsPort(request.Static) {
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
			if !taken[candidate] && !usage.holdsPort(candidate) {
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
