package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// twin is Schedule written slowly and plainly: no shapes, no index, no early
// end, usage summed anew for every question. It makes the gangs only.
type twin struct {
	world   *world
	now     structs.UnixNano
	holds   []twinHold
	kept    map[string]*structs.Job // node id -> job that keeps it
	keptFor map[string]need
	count   int // reservations
	gangs   []structs.GangPlan
}

type twinHold struct {
	node      string
	spec      structs.Resources
	placement structs.RankPlacement
}

func runTwin(w *world, reservations int, seed uint64) []structs.GangPlan {
	t := &twin{world: w, kept: map[string]*structs.Job{}, keptFor: map[string]need{}}
	var queue []entry
	for job, subjob := range w.Queue() {
		queue = append(queue, entry{job, subjob})
	}
	slices.SortFunc(queue, func(a, b entry) int { return Compare(a.job, a.subjob, b.job, b.subjob) })
	for _, e := range queue {
		if e.subjob.NotBefore > w.now || t.place(e, seed) {
			continue
		}
		if t.count < reservations {
			t.reserve(e)
		}
	}
	return t.gangs
}

// nodes lists the nodes the job may use, ready ones only, in its order or by id.
func (t *twin) nodes(job *structs.Job) []*structs.Node {
	var all, out []*structs.Node
	for _, n := range t.world.nodes {
		all = append(all, n)
	}
	slices.SortFunc(all, func(a, b *structs.Node) int { return cmp.Compare(a.ID, b.ID) })
	if len(job.Placement.Nodes) > 0 {
		var named []*structs.Node
		for _, name := range job.Placement.Nodes {
			for _, n := range all {
				if (n.Name == name || n.ID == name) && !slices.Contains(named, n) {
					named = append(named, n)
				}
			}
		}
		all = named
	}
	for _, n := range all {
		inPool := len(job.Placement.Nodes) > 0 || job.Placement.Pool == "" || job.Placement.Pool == n.Pool
		if n.Status == structs.NodeReady && n.Eligibility == structs.NodeEligible && slices.Contains(n.Drivers, job.Task.Driver) && inPool {
			out = append(out, n)
		}
	}
	return out
}

func (t *twin) usage(node string) *structs.Usage {
	u := t.world.usage(node)
	for _, h := range t.holds {
		if h.node != node {
			continue
		}
		u.CPU += h.spec.CPU
		u.Memory += h.spec.Memory
		for _, port := range h.placement.Ports {
			u.Ports[port] = "x"
		}
		for _, id := range h.placement.Devices {
			u.Devices[id] = "x"
		}
	}
	return u
}

func (t *twin) fits(job *structs.Job, n *structs.Node, u *structs.Usage, spec structs.Resources, rank int) bool {
	ports, portsOK := structs.ChoosePorts(n, u, job.PortRequests(spec, rank), 0)
	devices, devicesOK := structs.ChooseDevices(n, u, spec.Devices)
	return portsOK && devicesOK && structs.PlacementProblem(job, n, u, spec, rank,
		&structs.RankPlacement{NodeID: n.ID, Ports: ports, Devices: devices}) == nil
}

func (t *twin) freeDevices(n *structs.Node) int {
	u, free := t.usage(n.ID), 0
	for _, d := range n.Devices {
		if _, held := u.Devices[d.ID]; d.Healthy && !held {
			free++
		}
	}
	return free
}

func (t *twin) place(e entry, seed uint64) bool {
	job := e.job
	for index, spec := range job.Resources {
		nodes := t.nodes(job)
		if len(job.Placement.Nodes) == 0 {
			slices.SortFunc(nodes, func(a, b *structs.Node) int {
				order := cmp.Or(cmp.Compare(t.freeDevices(a), t.freeDevices(b)),
					cmp.Compare(a.FreeCPU(t.usage(a.ID)), b.FreeCPU(t.usage(b.ID))),
					cmp.Compare(a.FreeMemory(t.usage(a.ID)), b.FreeMemory(t.usage(b.ID))),
					cmp.Compare(a.ID, b.ID))
				if job.Placement.SpreadOrPack == structs.Spread {
					return -order
				}
				return order
			})
		}
		nodes = slices.DeleteFunc(nodes, func(n *structs.Node) bool {
			return !t.fits(job, n, t.usage(n.ID), spec, 1) || !t.spared(job, n, index)
		})
		first := slices.IndexFunc(nodes, func(n *structs.Node) bool { return t.fits(job, n, t.usage(n.ID), spec, 0) })
		if first < 0 || len(nodes) < job.Nodes {
			continue
		}
		head := nodes[first]
		chosen := append([]*structs.Node{head}, slices.Delete(nodes, first, first+1)[:job.Nodes-1]...)
		if len(job.Placement.Nodes) == 0 {
			slices.SortFunc(chosen, func(a, b *structs.Node) int {
				return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
			})
			at := slices.IndexFunc(chosen, func(n *structs.Node) bool { return t.fits(job, n, t.usage(n.ID), spec, 0) })
			head = chosen[at]
			chosen = append([]*structs.Node{head}, slices.Delete(chosen, at, at+1)...)
		}
		gang := structs.GangPlan{JobID: job.ID, Subjob: e.subjob.Index, Attempt: e.subjob.Attempt + 1, Spec: index}
		for rank, n := range chosen {
			ports, _ := structs.ChoosePorts(n, t.usage(n.ID), job.PortRequests(spec, rank),
				portStart(job.ID, e.subjob.Index, gang.Attempt, seed))
			devices, _ := structs.ChooseDevices(n, t.usage(n.ID), spec.Devices)
			placement := structs.RankPlacement{NodeID: n.ID, Ports: ports, Devices: devices}
			gang.Placements = append(gang.Placements, placement)
			t.holds = append(t.holds, twinHold{n.ID, spec, placement})
		}
		t.gangs = append(t.gangs, gang)
		return true
	}
	return false
}

// spared tells whether the reservation on n, if any, loses nothing to job.
func (t *twin) spared(job *structs.Job, n *structs.Node, spec int) bool {
	if t.kept[n.ID] == nil {
		return true
	}
	kept := t.keptFor[n.ID]
	r := reservation{need: &kept}
	s := newSeat(n, t.usage(n.ID))
	mine := needOf(job, spec)
	return r.spares(&s, &mine)
}

func (t *twin) reserve(e entry) {
	job := e.job
	for index, spec := range job.Resources {
		var able, free []*structs.Node
		head := false
		for _, n := range t.nodes(job) {
			if !t.fits(job, n, nil, spec, 1) {
				continue
			}
			able = append(able, n)
			head = head || t.fits(job, n, nil, spec, 0)
			if t.kept[n.ID] == nil {
				free = append(free, n)
			}
		}
		if len(able) < job.Nodes || !head {
			continue
		}
		if len(free) < job.Nodes || t.count > 0 && 2*(len(t.kept)+job.Nodes) > len(able) {
			return
		}
		mine := needOf(job, index)
		near := func(n *structs.Node, rank int) int {
			s := newSeat(n, t.usage(n.ID))
			return s.nearness(&mine, job.PortRequests(spec, rank))
		}
		// In front goes the nearest that could host rank 0, then the nearest.
		nearer := func(rank int) func(a, b *structs.Node) int {
			return func(a, b *structs.Node) int {
				return cmp.Or(cmp.Compare(near(b, rank), near(a, rank)), cmp.Compare(a.ID, b.ID))
			}
		}
		slices.SortFunc(free, nearer(0))
		at := slices.IndexFunc(free, func(n *structs.Node) bool { return t.fits(job, n, nil, spec, 0) })
		if at < 0 {
			return
		}
		chosen := []*structs.Node{free[at]}
		rest := slices.Delete(free, at, at+1)
		slices.SortFunc(rest, nearer(1))
		chosen = append(chosen, rest[:job.Nodes-1]...)
		for _, n := range chosen {
			t.kept[n.ID], t.keptFor[n.ID] = job, mine
		}
		t.count++
		return
	}
}
