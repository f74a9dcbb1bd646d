package scheduler

import (
	"cmp"
	"iter"
	"slices"

	"nomadlike/nomadlike/structs"
)

// place finds nodes for every rank of the gang under the first alternative
// that fits now, and takes what they hold; false takes nothing.
func (w *walk) place(e entry, sh *shape) (structs.GangPlan, bool) {
	for i := range sh.needs {
		n := &sh.needs[i]
		chosen, ok := w.choose(e.job, n)
		if !ok {
			continue
		}
		if gang, ok := w.assign(e, n, chosen); ok {
			return gang, true
		}
	}
	return structs.GangPlan{}, false
}

// choose picks a seat for each rank: the first has room for rank 0. Choosing
// greedily loses nothing, because rank 0 needs all that the others need: any
// seat that fits rank 0 fits them too, and the ranks are equal otherwise.
func (w *walk) choose(job *structs.Job, n *need) ([]int32, bool) {
	others := make([]int32, 0, job.Nodes)
	head := int32(-1)
	plain := len(n.ports0) == len(n.ports)
	for i := range w.candidates(job, n) {
		s := &w.seats[i]
		if structs.NodeProblem(job, s.node) != nil || s.kept != nil && !s.kept.spares(s, n) || s.lack(n, n.ports) != "" {
			continue
		}
		switch {
		case head < 0 && (plain || s.portsFit(n.ports0)):
			head = i
		case len(others) < job.Nodes-1:
			others = append(others, i)
		}
		if head >= 0 && len(others) == job.Nodes-1 {
			return w.ranked(job, n, head, others), true
		}
	}
	return nil, false
}

// candidates yields the schedulable seats in order of preference: as the job
// names them, or from the fullest (pack) or emptiest (spread) on.
func (w *walk) candidates(job *structs.Job, n *need) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		if len(job.Placement.Nodes) > 0 {
			for _, i := range w.namedSeats(job) {
				if w.seats[i].node.Schedulable() && !yield(i) {
					return
				}
			}
			return
		}
		from := w.start(n)
		if job.Placement.SpreadOrPack == structs.Spread {
			for k := len(w.order) - 1; k >= from; k-- {
				if !yield(w.order[k]) {
					return
				}
			}
			return
		}
		for k := from; k < len(w.order); k++ {
			if !yield(w.order[k]) {
				return
			}
		}
	}
}

// namedSeats lists the seats that the job names, each once, in its order.
func (w *walk) namedSeats(job *structs.Job) []int32 {
	var seats []int32
	seen := make(map[int]bool)
	for _, name := range job.Placement.Nodes {
		for _, i := range w.named(name) {
			if !seen[i] {
				seen[i] = true
				seats = append(seats, int32(i))
			}
		}
	}
	return seats
}

// ranked orders the chosen seats by rank: as named, or by node name so that
// people find rank 3 where they expect it; in front the first that has the
// ports of rank 0.
func (w *walk) ranked(job *structs.Job, n *need, head int32, others []int32) []int32 {
	chosen := append([]int32{head}, others...)
	if len(job.Placement.Nodes) > 0 || len(chosen) == 1 {
		return chosen
	}
	slices.SortFunc(chosen, func(a, b int32) int {
		x, y := w.seats[a].node, w.seats[b].node
		// By length first, so that node-2 comes before node-10.
		return cmp.Or(cmp.Compare(len(x.Name), len(y.Name)), cmp.Compare(x.Name, y.Name), cmp.Compare(a, b))
	})
	at := slices.IndexFunc(chosen, func(i int32) bool { return w.seats[i].portsFit(n.ports0) })
	front := chosen[at]
	copy(chosen[1:at+1], chosen[:at])
	chosen[0] = front
	return chosen
}

// assign gives each rank its ports and devices and takes them out of the hall.
// The seats are distinct, so the ranks can not take from each other.
func (w *walk) assign(e entry, n *need, chosen []int32) (structs.GangPlan, bool) {
	gang := structs.GangPlan{
		JobID: e.job.ID, Subjob: e.subjob.Index, Attempt: e.subjob.Attempt + 1, Spec: n.index,
		Placements: make([]structs.RankPlacement, len(chosen)),
	}
	start := portStart(e.job.ID, e.subjob.Index, gang.Attempt, w.seed)
	for rank, i := range chosen {
		s, requests := &w.seats[i], n.ports
		if rank == 0 {
			requests = n.ports0
		}
		ports, portsOK := structs.ChoosePorts(s.node, s.usage, requests, start)
		devices, devicesOK := structs.ChooseDevices(s.node, s.usage, n.spec.Devices)
		if !portsOK || !devicesOK {
			return structs.GangPlan{}, false
		}
		gang.Placements[rank] = structs.RankPlacement{NodeID: s.node.ID, Ports: ports, Devices: devices}
	}
	for rank, i := range chosen {
		w.hold(i, n, &gang.Placements[rank], e.job.ID)
	}
	return gang, true
}

// portStart is where the search for a dynamic port begins. Attempts of one job
// begin far from each other whatever the seed.
func portStart(jobID string, subjob int, attempt, seed uint64) uint64 {
	const (
		fnvOffset = 14695981039346656037
		fnvPrime  = 1099511628211
		stride    = 7919 // a prime, so that no common port range is a multiple of it
	)
	h := uint64(fnvOffset)
	for i := 0; i < len(jobID); i++ {
		h = (h ^ uint64(jobID[i])) * fnvPrime
	}
	h = (h ^ uint64(subjob)) * fnvPrime
	h = (h ^ seed) * fnvPrime
	h ^= h >> 33
	return h>>1 + attempt*stride // the shift keeps the sum, and a search from it, from wrapping
}
