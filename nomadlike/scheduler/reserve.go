package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// futileMax bounds the shapes that look for a reservation in vain: each look
// visits every node.
const futileMax = 16

// reservation keeps nodes for a gang that is blocked.
type reservation struct {
	job  *structs.Job
	need *need
}

// reserve keeps for e the nodes on which it is nearest to starting. The first
// blocked gang always gets them; further ones only while no more than half of
// the nodes that they could use are kept, so that reservations for many never
// stand in the way of all.
func (w *walk) reserve(e entry, sh *shape) {
	if len(w.kept) >= w.keepMax || w.futile >= futileMax || sh.unreservable {
		return
	}
	n := &sh.needs[sh.outlook.need]
	var free []int32
	able := 0
	for i := range w.able(e.job, n) {
		able++
		if w.seats[i].kept == nil {
			free = append(free, i)
		}
	}
	if len(free) < e.job.Nodes || len(w.kept) > 0 && 2*(w.seatsKept+e.job.Nodes) > able {
		sh.unreservable = true
		w.futile++
		return
	}
	chosen := w.nearest(n, free, e.job.Nodes)
	if chosen == nil {
		sh.unreservable = true
		w.futile++
		return
	}
	r := &reservation{job: e.job, need: n}
	for _, i := range chosen {
		w.seats[i].kept = r
	}
	w.kept = append(w.kept, r)
	w.seatsKept += len(chosen)
}

// nearest picks count of the free seats: for rank 0 the one that is nearest to
// holding it, then the nearest for the others, lower ids first among equals.
// It gives nil when no seat could ever give rank 0 its ports.
func (w *walk) nearest(n *need, free []int32, count int) []int32 {
	head, best := -1, -1
	for k, i := range free {
		s := &w.seats[i]
		if near := s.nearness(n, n.ports0); near > best && s.portsFitWhenEmpty(n.ports0) {
			head, best = k, near
		}
	}
	if head < 0 {
		return nil
	}
	chosen := append(make([]int32, 0, len(free)), free[head])
	chosen = append(append(chosen, free[:head]...), free[head+1:]...)
	near := make(map[int32]int, len(free))
	for _, i := range chosen[1:] {
		near[i] = w.seats[i].nearness(n, n.ports)
	}
	slices.SortFunc(chosen[1:], func(a, b int32) int { return cmp.Or(near[b]-near[a], cmp.Compare(a, b)) })
	return chosen[:count]
}

// able yields the schedulable seats that would have room for a rank if they
// were empty, by node id or as the job names them.
func (w *walk) able(job *structs.Job, n *need) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		for i := range w.all(job) {
			s := &w.seats[i]
			if s.node.Schedulable() && structs.NodeProblem(job, s.node) == nil && s.holdsWhenEmpty(n, n.ports) && !yield(i) {
				return
			}
		}
	}
}

// all yields every seat that the job may ask about, ready or not.
func (w *walk) all(job *structs.Job) func(yield func(int32) bool) {
	return func(yield func(int32) bool) {
		if len(job.Placement.Nodes) > 0 {
			for _, i := range w.namedSeats(job) {
				if !yield(i) {
					return
				}
			}
			return
		}
		for i := range w.seats {
			if !yield(int32(i)) {
				return
			}
		}
	}
}

// nearness tells in thousandths how much of the scarcest need of a rank with
// these ports is free: 1000 when it fits. It only grows while nothing new is
// put on the node.
func (s *seat) nearness(n *need, ports []structs.PortRequest) int {
	if !s.portsFit(ports) {
		return 0
	}
	near := min(share(s.cpu, n.cpu), share(s.memory, n.memory))
	if n.devices > 0 {
		meeting := 0
		for k := range s.node.Devices {
			d := &s.node.Devices[k]
			if d.Healthy && !s.holdsDevice(d.ID) && slices.ContainsFunc(n.spec.Devices, d.Meets) {
				meeting++
			}
		}
		near = min(near, share(int64(meeting), int64(n.devices)))
	}
	return near
}

func share(free, need int64) int {
	switch {
	case free >= need:
		return 1000
	case free <= 0:
		return 0
	}
	return int(float64(free) / float64(need) * 1000)
}

// spares tells whether a rank with the needs n may stand on a kept seat: it
// takes nothing that the reserved rank lacks, or would lack then.
func (r *reservation) spares(s *seat, n *need) bool {
	switch {
	case n.cpu > 0 && s.cpu-n.cpu < r.need.cpu:
		return false
	case n.memory > 0 && s.memory-n.memory < r.need.memory:
		return false
	case n.devices > 0 && r.need.devices > 0:
		return false
	}
	return r.sparesPorts(s, n)
}

// sparesPorts errs on the safe side: a port that the reserved gang names must
// not be taken, not even by chance, and its dynamic ones must remain.
func (r *reservation) sparesPorts(s *seat, n *need) bool {
	low, high := s.node.Capacity.PortMin, s.node.Capacity.PortMax
	if mine := dynamicPorts(r.need.ports0); mine > 0 {
		held := 0
		if s.usage != nil {
			held = len(s.usage.Ports)
		}
		if high-low+1-held < mine+len(n.ports0) {
			return false
		}
	}
	for _, mine := range r.need.ports0 {
		if mine.Static == 0 {
			continue
		}
		for _, its := range n.ports0 {
			if its.Static == mine.Static || its.Static == 0 && mine.Static >= low && mine.Static <= high {
				return false
			}
		}
	}
	return true
}

func dynamicPorts(ports []structs.PortRequest) int {
	count := 0
	for _, p := range ports {
		if p.Static == 0 {
			count++
		}
	}
	return count
}
