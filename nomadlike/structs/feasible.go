package structs

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// This file holds the one answer to "may this rank stand on this node?". The
// scheduler asks it while it searches and state.Apply asks it again when a
// plan arrives, so that an accepted plan can not be refused later for a reason
// that the scheduler did not know. Everything here is pure and reads its
// arguments only; any goroutine may call it.
//
// Cores are compared in whole thousandths: sums of fractions such as 0.1 drift
// in floating point, and a drift must never turn a full node into a fit.

// RanksMax bounds the nodes of one gang that a plan may carry.
const RanksMax = 16384

// milliMax keeps sums of cores far from the end of int64.
const milliMax = math.MaxInt64 / 4

// MilliCPU is an amount of cores as thousandths of a core, rounded to the
// nearest. What is not an amount (negative, not a number) is 0.
func MilliCPU(cores float64) int64 {
	switch milli := math.Round(cores * 1000); {
	case !(milli > 0):
		return 0
	case milli > milliMax:
		return milliMax
	default:
		return int64(milli)
	}
}

// FreeCPU is what the node can still give, in thousandths of a core; negative
// when its capacity shrank below what it holds. Usage may be nil: nothing held.
func (n *Node) FreeCPU(usage *Usage) int64 {
	free := MilliCPU(n.Capacity.CPU)
	if usage != nil {
		free -= MilliCPU(usage.CPU)
	}
	return free
}

// FreeMemory is what the node can still give, in bytes; negative when its
// capacity shrank below what it holds. Usage may be nil: nothing held.
func (n *Node) FreeMemory(usage *Usage) int64 {
	free := max(n.Capacity.Memory, 0)
	if usage != nil {
		free -= max(usage.Memory, 0)
	}
	return free
}

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
	case gang.Attempt != subjob.Attempt+1:
		return NewReason("scheduler.refused_attempt", "attempt", gang.Attempt, "next", subjob.Attempt+1)
	case gang.Spec < 0 || gang.Spec >= len(job.Resources):
		return NewReason("scheduler.refused_spec", "spec", gang.Spec)
	case len(gang.Placements) < job.NodesMin() || len(gang.Placements) > job.Nodes || job.Nodes > RanksMax:
		return NewReason("scheduler.refused_partial", "placed", len(gang.Placements), "nodes", job.Nodes)
	}
	more := Holding{}
	taken := make(map[string]bool, len(gang.Placements))
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
		if reason := PlacementProblem(job, n, usage, spec, rank, placement); reason != nil {
			return reason
		}
		more = more.Add(HeldBy(spec, n, placement.Devices))
	}
	return QuotaProblem(ground.Project(job.Project), ground.ProjectUsage(job.Project), more)
}

// PlacementProblem tells why rank may not stand on node with exactly the ports
// and devices of placement, or nil when it may.
func PlacementProblem(job *Job, node *Node, usage *Usage, spec Resources, rank int, placement *RankPlacement) *Reason {
	if !node.Schedulable() {
		return NewReason("scheduler.node_not_ready", "node", node.Name, "status", node.Status, "eligibility", node.Eligibility)
	}
	if reason := NodeProblem(job, node); reason != nil {
		return reason
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
// job away: its pool, its drivers, or that the job names other nodes.
func NodeProblem(job *Job, node *Node) *Reason {
	switch {
	case len(job.Placement.Nodes) > 0 && !job.Names(node):
		return NewReason("scheduler.node_not_named", "node", node.Name)
	case len(job.Placement.Nodes) == 0 && job.Placement.Pool != "" && node.Pool != job.Placement.Pool:
		return NewReason("scheduler.node_pool", "node", node.Name, "pool", job.Placement.Pool)
	case !node.HasDriver(job.Task.Driver):
		return NewReason("scheduler.node_driver", "node", node.Name, "driver", job.Task.Driver)
	}
	return nil
}

// Names tells whether the job's placement names the node, by name or by id.
func (j *Job) Names(node *Node) bool {
	return slices.Contains(j.Placement.Nodes, node.Name) || slices.Contains(j.Placement.Nodes, node.ID)
}

// RoomProblem tells whether cores or memory of the node are short for one rank
// of spec.
func RoomProblem(node *Node, usage *Usage, spec Resources) *Reason {
	if free, need := node.FreeCPU(usage), MilliCPU(spec.CPU); need > free {
		return NewReason("scheduler.node_cpu", "node", node.Name, "need", FormatMilliCPU(need), "free", FormatMilliCPU(free))
	}
	if free := node.FreeMemory(usage); spec.Memory > free {
		return NewReason("scheduler.node_memory", "node", node.Name, "need", FormatSize(spec.Memory), "free", FormatSize(max(free, 0)))
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
// the order of requests; false when one can not be answered. start moves the
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
	return given, len(given) == len(requests) // two requests of one name can not both be answered
}

// Meets tells whether a device is of the kind, model and size that a request
// asks for. Health and holders are not looked at.
func (d *Device) Meets(request DeviceRequest) bool {
	return d.Kind == request.Kind && d.Memory >= request.Memory && modelMatches(d.Model, request.Model) &&
		(len(request.IDs) == 0 || slices.Contains(request.IDs, d.ID))
}

// modelMatches tells whether want stands in model as a word of its own, in any
// letter case: "A800" is in "NVIDIA A800-SXM4-80GB" and "910B" in
// "Ascend910B3", but "A10" is not in "A100".
func modelMatches(model, want string) bool {
	if want == "" {
		return true
	}
	model, want = strings.ToLower(model), strings.ToLower(want)
	for from := 0; ; {
		at := strings.Index(model[from:], want)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(want)
		if (at == 0 || wordEdge(model[at-1], want[0])) && (end == len(model) || wordEdge(want[len(want)-1], model[end])) {
			return true
		}
		from = at + 1
	}
}

// wordEdge tells whether a word may end between two neighbouring characters:
// not within a number, and not within letters.
func wordEdge(left, right byte) bool {
	return characterClass(left) != characterClass(right) || characterClass(left) == 0
}

func characterClass(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 1
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
		return 2
	}
	return 0
}

// ChooseDevices answers requests with healthy devices that nobody holds; false
// when they are short. The choice is a function of the arguments alone. Within
// one request it stays in one link group if one has enough, and takes the group
// that is left fullest; narrow requests choose before wide ones.
func ChooseDevices(node *Node, usage *Usage, requests []DeviceRequest) ([]string, bool) {
	if len(requests) == 0 {
		return nil, true
	}
	order := make([]int, len(requests))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return narrowness(requests[b]) - narrowness(requests[a]) })
	taken := make(map[string]bool)
	var chosen []string
	for _, i := range order {
		request := requests[i]
		var free []*Device
		for k := range node.Devices {
			d := &node.Devices[k]
			if d.Healthy && !taken[d.ID] && !usage.holdsDevice(d.ID) && d.Meets(request) {
				free = append(free, d)
			}
		}
		if len(free) < request.Count {
			return nil, false
		}
		for _, d := range closest(free, request.Count) {
			taken[d.ID] = true
			chosen = append(chosen, d.ID)
		}
	}
	slices.Sort(chosen)
	return chosen, true
}

// narrowness orders requests: named devices, then a model, then a size.
func narrowness(r DeviceRequest) int {
	n := 0
	if len(r.IDs) > 0 {
		n += 4
	}
	if r.Model != "" {
		n += 2
	}
	if r.Memory > 0 {
		n++
	}
	return n
}

// closest takes count of the free devices: from the smallest link group that
// has enough, else from the largest groups on.
func closest(free []*Device, count int) []*Device {
	size := make(map[string]int)
	for _, d := range free {
		size[d.LinkGroup]++
	}
	slices.SortFunc(free, func(a, b *Device) int {
		na, nb := size[a.LinkGroup], size[b.LinkGroup]
		if enough := nb >= count; enough != (na >= count) {
			if enough {
				return 1
			}
			return -1
		} else if na != nb {
			if enough {
				return na - nb
			}
			return nb - na
		}
		if c := strings.Compare(a.LinkGroup, b.LinkGroup); c != 0 {
			return c
		}
		if a.Memory != b.Memory {
			if a.Memory < b.Memory {
				return -1
			}
			return 1
		}
		return strings.Compare(a.ID, b.ID)
	})
	return free[:max(count, 0)]
}

// devicesProblem checks that given answers requests with devices of the node
// that are healthy and that nobody holds.
func devicesProblem(node *Node, usage *Usage, requests []DeviceRequest, given []string) *Reason {
	want := 0
	for _, request := range requests {
		want += max(request.Count, 0)
	}
	if len(given) != want {
		return NewReason("scheduler.refused_devices", "node", node.Name)
	}
	if want == 0 {
		return nil
	}
	chosen := make([]*Device, 0, len(given))
	for _, id := range given {
		at := slices.IndexFunc(node.Devices, func(d Device) bool { return d.ID == id })
		if at < 0 || slices.ContainsFunc(chosen, func(d *Device) bool { return d.ID == id }) {
			return NewReason("scheduler.refused_devices", "node", node.Name)
		}
		d := &node.Devices[at]
		if !d.Healthy {
			return NewReason("scheduler.node_device_unhealthy", "node", node.Name, "device", id)
		}
		if usage.holdsDevice(id) {
			return NewReason("scheduler.node_device_held", "node", node.Name, "device", id)
		}
		chosen = append(chosen, d)
	}
	if !answers(chosen, requests) {
		return NewReason("scheduler.refused_devices", "node", node.Name)
	}
	return nil
}

// answers tells whether devices can be dealt out to requests so that each gets
// its count: a small matching, found by augmenting paths.
func answers(devices []*Device, requests []DeviceRequest) bool {
	var seats []DeviceRequest
	for _, request := range requests {
		for range max(request.Count, 0) {
			seats = append(seats, request)
		}
	}
	holder := make([]int, len(seats)) // seat -> device, -1 when empty
	for i := range holder {
		holder[i] = -1
	}
	var visited []bool
	var seat func(device int) bool
	seat = func(device int) bool {
		for s := range seats {
			if visited[s] || !devices[device].Meets(seats[s]) {
				continue
			}
			visited[s] = true
			if holder[s] < 0 || seat(holder[s]) {
				holder[s] = device
				return true
			}
		}
		return false
	}
	for d := range devices {
		visited = make([]bool, len(seats))
		if !seat(d) {
			return false
		}
	}
	return len(devices) == len(seats)
}
