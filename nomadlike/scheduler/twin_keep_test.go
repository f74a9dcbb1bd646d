package scheduler

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// endOf is when a gang that runs, or starts now, is expected to end.
func (t *twin) endOf(id subjobID) structs.UnixNano {
	job, at := t.world.jobs[id.job], t.now
	a := t.world.attempts[id]
	if a != nil {
		at = a.PlacedAt
	}
	if model := t.settings.Model; model != nil {
		end, _ := outlive(model.Estimate(job), at, t.now)
		if a != nil && a.RunningAt != 0 {
			at = a.RunningAt
		}
		if limit := job.TimeLimit.Std(); limit > 0 {
			end = min(end, at.Add(limit))
		}
		return t.overdue(end)
	}
	if job.TimeLimit == 0 {
		return never
	}
	return t.overdue(at.Add(max(job.TimeLimit.Std(), time.Second)))
}

func (t *twin) overdue(end structs.UnixNano) structs.UnixNano {
	for end <= t.now {
		end = end.Add(overdue)
	}
	return end
}

// boundOf is when its limit ends it.
func (t *twin) boundOf(id subjobID) structs.UnixNano {
	job, start := t.world.jobs[id.job], t.now
	if a := t.world.attempts[id]; a != nil {
		start = cmp.Or(a.RunningAt, a.PlacedAt)
	}
	if job.TimeLimit == 0 {
		return never
	}
	return t.overdue(start.Add(job.TimeLimit.Std()))
}

func (t *twin) endBy(id subjobID, bounded bool) structs.UnixNano {
	if bounded {
		return t.boundOf(id)
	}
	return t.endOf(id)
}

// roomOn is what is free on a node at a time, as far as the ends of gangs are
// known.
func (t *twin) roomOn(node string, at structs.UnixNano, bounded bool) capacity.Amount {
	room := t.world.nodes[node].Free(t.usage(node))
	leave := func(id subjobID, spec structs.Resources, devices []string) {
		if t.endBy(id, bounded) <= at {
			room = capacity.Amount{CPU: room.CPU + structs.MilliCPU(spec.CPU), Memory: room.Memory + spec.Memory, Devices: room.Devices + int64(len(devices))}
		}
	}
	for _, a := range t.world.allocs {
		if a.NodeID == node {
			leave(subjobID{a.JobID, a.Subjob}, a.Spec, a.Devices)
		}
	}
	for id, gang := range t.started {
		for rank, p := range gang.Placements {
			if p.NodeID == node {
				leave(id, t.world.jobs[id.job].SpecOf(gang.Spec, rank, len(gang.Placements)), p.Devices)
			}
		}
	}
	return room
}

// freeAt is when a node has room for a rank.
func (t *twin) freeAt(node string, rank capacity.Amount, bounded bool) structs.UnixNano {
	if rank.Fits(t.world.nodes[node].Free(t.usage(node))) {
		return 0
	}
	var ends []structs.UnixNano
	for id := range t.world.attempts {
		ends = append(ends, t.endBy(id, bounded))
	}
	for id := range t.started {
		ends = append(ends, t.endBy(id, bounded))
	}
	slices.Sort(ends)
	for _, end := range ends {
		if end != never && rank.Fits(t.roomOn(node, end, bounded)) {
			return end
		}
	}
	return whenever
}

// opensTo is when a node with room at a time lets a job start, from a time on.
func (t *twin) opensTo(job *structs.Job, node string, when, from structs.UnixNano) structs.UnixNano {
	if when >= whenever {
		return when
	}
	open := max(when, from)
	for _, w := range t.world.nodes[node].Maintenance {
		if w.Bars(job, open) {
			return t.opensTo(job, node, w.End, from)
		}
	}
	if from == t.now && open == max(when, t.now) {
		return when
	}
	return open
}

// reserve reserves nodes for a blocked gang, and reports how many.
func (t *twin) reserve(id subjobID, before, nodes int) int {
	job := t.world.jobs[id.job]
	var best *twinReservation
	for index, spec := range job.Resources {
		if k := t.reservationFor(id, index, spec, before, nodes); k != nil && (best == nil || k.sooner(best)) {
			best = k
		}
	}
	if best == nil {
		return 0
	}
	if before == 0 && !best.strict && t.world.subjobs[id].NoPassingAt == 0 {
		t.strictAt[id] = best.due
	}
	t.reservations = append(t.reservations, best)
	t.reserveQuota(id, leastUsage(best.spec, job.NodesMin()), best.expected, best.strict)
	return len(best.spare)
}

// sooner reports whether one reservation is better for its gang than another: it keeps
// what was promised, or is there before.
func (k *twinReservation) sooner(other *twinReservation) bool {
	if k.bounded != other.bounded {
		return k.bounded
	}
	return k.at < other.at || k.at == other.at && k.sure < other.sure
}

func (t *twin) reservationFor(id subjobID, index int, spec structs.Resources, before, nodes int) *twinReservation {
	job := t.world.jobs[id.job]
	able := t.ableOn(job, spec)
	free := slices.DeleteFunc(slices.Clone(able), func(node string) bool {
		return slices.ContainsFunc(t.reservations, func(k *twinReservation) bool { _, mine := k.spare[node]; return mine })
	})
	size := job.NodesMin()
	if len(free) < size || before > 0 && 2*(nodes+size) > len(able) {
		return nil
	}
	k := &twinReservation{id: id, pool: poolOf(job), spec: spec, job: job, spare: map[string]capacity.Amount{}}
	soon, at := t.soonest(job, spec, free, size, false)
	sureSoon, sure := t.soonest(job, spec, free, size, true)
	k.at, k.expected = at, at
	if before == 0 {
		promised := t.world.subjobs[id].NoPassingAt
		late := promised != 0 && t.now > promised
		far := t.settings.Passing == Easy // estimates alone
		if k.due = promised; promised == 0 && at != never {
			k.due = at.Add(max(promiseSlack, at.Sub(t.now)/promiseSlip))
			if !far && sure != never {
				if due := sure.Add(max(promiseSlack, sure.Sub(t.now)/limitSlip)); due <= t.now.Add(limitFar*at.Sub(t.now)+promiseSlack) {
					k.due = due
				}
			}
		}
		switch {
		case late:
			soon, k.at, k.expected, k.sure, k.bounded = sureSoon, sure, sure, sure, true
		case !far && at != never && sure != never && sure <= k.due.Add(promiseSlack):
			soon, k.at, k.sure, k.bounded = sureSoon, sure, sure, true
			if k.due > sure && !t.shut(job, soon, k.due) {
				k.at = k.due
			}
		}
	}
	if before > 0 && k.at == never {
		return nil
	}
	if k.at == never {
		k.strict, k.bounded, k.expected = true, false, never
		if soon = t.nearest(job, spec, free, size); soon == nil {
			return nil
		}
	}
	for _, node := range soon {
		room := t.world.nodes[node].Free(t.usage(node))
		if !k.strict {
			room = t.roomOn(node, k.at, k.bounded)
		}
		spare := room.Sub(t.rank(spec, node))
		k.spare[node] = capacity.Amount{CPU: max(spare.CPU, 0), Memory: max(spare.Memory, 0), Devices: max(spare.Devices, 0)}
	}
	return k
}

// soonest are the nodes that have room for the ranks of a gang first, as expected or
// by limits, and when all of them do.
func (t *twin) soonest(job *structs.Job, spec structs.Resources, free []string, size int, bounded bool) (soon []string, at structs.UnixNano) {
	for from := t.now; ; {
		when := map[string]structs.UnixNano{}
		for _, node := range free {
			when[node] = t.opensTo(job, node, t.freeAt(node, t.rank(spec, node), bounded), from)
		}
		soon = slices.SortedFunc(slices.Values(free), func(a, b string) int { return cmp.Or(cmp.Compare(when[a], when[b]), cmp.Compare(a, b)) })[:size]
		at = t.now
		for _, node := range soon {
			at = max(at, when[node])
		}
		if at >= whenever {
			return soon, never
		}
		if !t.shut(job, soon, at) {
			return soon, at
		}
		from = at
	}
}

// shut reports whether a window of maintenance keeps a job off any of the nodes at a time.
func (t *twin) shut(job *structs.Job, nodes []string, at structs.UnixNano) bool {
	return slices.ContainsFunc(nodes, func(node string) bool { return t.world.nodes[node].MaintenanceAgainst(job, at) != nil })
}

func (t *twin) nearest(job *structs.Job, spec structs.Resources, free []string, size int) []string {
	near := func(node string, rank int) int32 {
		u, r := t.usage(node), t.rank(spec, node)
		if ports := job.PortRequests(spec, rank); len(ports) > 0 {
			if _, ok := feasible.ChoosePorts(t.world.nodes[node], u, ports, 0); !ok {
				return 0
			}
		}
		room := t.world.nodes[node].Free(u)
		if room.CPU < 0 || room.Memory < 0 {
			return 0
		}
		return min(part(room.CPU, r.CPU), part(room.Memory, r.Memory), part(room.Devices, r.Devices))
	}
	by := func(rank int) func(a, b string) int {
		return func(a, b string) int { return cmp.Or(cmp.Compare(near(b, rank), near(a, rank)), cmp.Compare(a, b)) }
	}
	free = slices.SortedFunc(slices.Values(free), by(0))
	head := slices.IndexFunc(free, func(node string) bool { return t.headOn(job, spec, node) })
	if head < 0 {
		return nil
	}
	chosen := []string{free[head]}
	rest := slices.SortedFunc(slices.Values(slices.Delete(free, head, head+1)), by(1))
	return append(chosen, rest[:size-1]...)
}
