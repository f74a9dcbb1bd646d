package scheduler

import (
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// start places a gang under the first alternative that can start now; false
// says in the answer why none can.
func (p *pass) start(w *queueWalk, id int32, sh *shape, a *answer) bool {
	e := &p.queue.entries[id]
	if sh.odd {
		a.fault = faultRoom
		return false
	}
	memo := &p.queue.memos[sh.id]
	if memo.noRoom && !p.nodes.gained(sh, memo.mark) && p.underQuota(e, sh) {
		memo.mark, a.fault = p.nodes.mark(), faultRoom
		return false
	}
	memo.noRoom, a.fault = false, faultNone
	mark, quotas := p.nodes.mark(), false
	for i := range sh.needs {
		seats, placed, fault, reason := p.pick(e, sh, &sh.needs[i])
		if fault == faultNone {
			a.fault, a.reason = faultNone, nil // what kept it from others keeps nobody behind it from this one
			p.take(&sh.needs[i], seats)
			gang := p.newGang(e, i, e.subjob.NextAttempt(), seats, placed, p.now)
			p.started(w, id, gang, placed)
			return true
		}
		if !p.judge(sh).can(i) {
			continue // it could not on the empty cluster either
		}
		if fault == faultQuota || fault == faultQuotaReserved {
			if quotas = true; fault >= a.fault {
				a.reason = reason
			}
		}
		a.fault = max(a.fault, fault)
	}
	if a.fault == faultNone {
		a.fault = faultNever
	}
	memo.noRoom, memo.mark = a.fault == faultRoom && !quotas, mark
	return false
}

// pick finds seats for the largest gang that the alternative, the quota and the
// pool's ceilings allow now.
func (p *pass) pick(e *entry, sh *shape, n *need) ([]placement.Seat, []structs.RankPlacement, fault, *structs.WaitReason) {
	if problem := p.leastQuota(e, n); problem != nil {
		return nil, nil, faultQuota, p.overQuota(e, sh, problem)
	}
	if h := p.behindQuota(e, n.least); h != nil {
		return nil, nil, faultQuotaReserved, p.quotaReserved(e, h)
	}
	options := p.optionsFor(e, n)
	most := p.sizeMost(e, sh, n)
	if sh.min < most {
		most = min(most, p.nodes.floor.Fits(&n.Need, most, options))
	}
	var found fault
	var reason *structs.WaitReason
	for size := most; size >= sh.min; size = p.smaller(size, sh.min) {
		seats, ok := p.nodes.floor.Pick(&n.Need, size, options)
		if !ok {
			continue
		}
		placed := p.nodes.floor.Placements(seats)
		problem := p.quota(e, n, seats, placed)
		if problem == nil {
			h := p.behindQuotaOn(e, n, seats, placed)
			if h == nil {
				return seats, placed, faultNone, nil
			}
			found, reason = faultQuotaReserved, p.quotaReserved(e, h)
			continue
		}
		if seats, placed, ok = p.aside(e, n, size, options); ok && p.behindQuotaOn(e, n, seats, placed) == nil {
			return seats, placed, faultNone, nil
		}
		found, reason = faultQuota, p.overQuota(e, sh, problem)
	}
	if reason != nil {
		return nil, nil, found, reason
	}
	if options.Avoid != nil && (p.reserved() || p.nodes.windows > 0) {
		options.Avoid = p.nominated
		if p.nodes.floor.Fits(&n.Need, sh.min, options) >= sh.min {
			return nil, nil, faultReserved, nil
		}
	}
	return nil, nil, faultRoom, nil
}

// smaller is the next size to try below one that failed: a few steps down, then
// the smallest.
func (p *pass) smaller(size, least int) int {
	const steps = 8
	switch {
	case size == least:
		return least - 1
	case size-least > steps:
		return max(least, size-max(1, (size-least)/steps))
	}
	return size - 1
}

// sizeMost is the largest gang that the pool's ceilings let the job have.
func (p *pass) sizeMost(e *entry, sh *shape, n *need) int {
	most := sh.nodes
	record := p.queue.partitions[e.partition].record
	if record == nil || sh.pool == "" || sh.min == sh.nodes {
		return most
	}
	if c := record.Ceilings.Nodes; c > 0 {
		most = min(most, c)
	}
	if c := record.Ceilings.Devices; c > 0 && n.rank.Devices > 0 {
		most = min(most, c/int(n.rank.Devices))
	}
	return most
}

// optionsFor says what a gang may take; it holds until the next call.
func (p *pass) optionsFor(e *entry, n *need) placement.Options {
	p.modelEntry(e)
	p.placing, p.nominee, p.ends, p.bound, p.taking = e, "", later(p.now, e.span), later(p.now, limitOf(e.job)), n
	options := placement.Options{Fit: p.settings.Fit, PortStart: portStart(e.jobID, e.index, e.subjob.NextAttempt(), p.seed)}
	if e.nomination != nil {
		p.nominee = e.key()
		options.Nominee = p.nominee
	}
	switch {
	case n.job.VIP != nil && p.nodes.windows > 0:
		options.Avoid = p.shut
	case p.nodes.windows > 0:
		options.Avoid = p.closed
	case n.job.VIP != nil && len(p.promises.nominations) > 0:
		options.Avoid = p.nominated
	case n.job.VIP == nil && (p.reserved() || len(p.promises.nominations) > 0):
		options.Avoid = p.avoid
	}
	if prefer := p.settings.Prefer; prefer != nil && (p.settings.Prefers == nil || p.settings.Prefers(e.job)) {
		options.Prefer = func(at int) int { return prefer(e.job, p.nodes.states[at].node) }
	}
	if avoid := e.subjob.Avoid; len(avoid) > 0 {
		prefer := options.Prefer
		options.Prefer = func(at int) int {
			switch {
			case slices.Contains(avoid, p.nodes.states[at].node.ID):
				return avoided
			case prefer == nil:
				return 0
			}
			return prefer(at)
		}
	}
	return options
}

// avoided is what a node is worth to a job that was slow or hung there: less
// than any other.
const avoided = -1

// reserved reports whether any node is reserved.
func (p *pass) reserved() bool { return p.promises.reservationCount > 0 }

func (p *pass) isNominated(at int) bool { return !p.nodes.states[at].open(p.nominee) }

func (p *pass) isReserved(at int) bool {
	s := &p.nodes.states[at]
	if !s.open(p.nominee) {
		return true
	}
	if s.reservation == 0 {
		return false
	}
	r := p.promises.reservations[s.reservation-1]
	return !p.placing.is(r.jobID, r.index) && !p.mayPass(int32(at))
}

// mayPass reports whether the gang that is being placed may stand on a reserved node:
// it ends before the reserved start, or takes nothing that the gang which keeps
// the node will need.
func (p *pass) mayPass(at int32) bool {
	s := &p.nodes.states[at]
	r := p.promises.reservations[s.reservation-1]
	return p.endsBefore(r) || r.spares(p.Board, at, p.taking)
}

// endsBefore reports whether the gang that is being placed is out of the way of a
// reservation by its start.
func (p *pass) endsBefore(r *reservation) bool {
	return !r.strict && p.ends <= r.at && (!r.bounded || p.bound <= r.at)
}

// take notes what of the spare room of reserved nodes a gang takes.
func (p *pass) take(n *need, seats []placement.Seat) {
	if !p.reserved() {
		return
	}
	for i := range seats {
		at := int32(seats[i].Index())
		s := &p.nodes.states[at]
		if s.reservation == 0 {
			continue
		}
		r := p.promises.reservations[s.reservation-1]
		if p.endsBefore(r) {
			continue
		}
		own := *r
		own.spare = slices.Clone(r.spare)
		own.spare[s.rank] = own.spare[s.rank].Sub(p.nodes.rankOn(n, at))
		p.promises.reservations[s.reservation-1] = &own
	}
}

// quota reports which quota keeps a project from using a gang too.
func (p *pass) quota(e *entry, n *need, seats []placement.Seat, placed []structs.RankPlacement) *structs.Reason {
	project := &p.accounts.projects[e.project]
	if !project.counts() {
		return nil
	}
	return structs.QuotaProblem(project.record, project.due(), p.usageOf(e, n.Index(), seats, placed))
}

// leastQuota reports which quota keeps a project from using even the least that
// the smallest gang would count, whatever devices it gets.
func (p *pass) leastQuota(e *entry, n *need) *structs.Reason {
	project := &p.accounts.projects[e.project]
	if !project.counts() {
		return nil
	}
	return structs.QuotaProblem(project.record, project.due(), n.least)
}

// quotaFault reports whether quota, or a reservation of it, keeps a project from using
// even the least that the smallest gang would count.
func (p *pass) quotaFault(e *entry, n *need) fault {
	switch {
	case !p.accounts.projects[e.project].counts():
		return faultNone
	case p.leastQuota(e, n) != nil:
		return faultQuota
	case p.behindQuota(e, n.least) != nil:
		return faultQuotaReserved
	}
	return faultNone
}

// underQuota reports whether quotas, and reservations of them, let the project have some
// alternative that it could have on the empty cluster.
func (p *pass) underQuota(e *entry, sh *shape) bool {
	if !p.accounts.projects[e.project].counts() {
		return true
	}
	look := p.judge(sh)
	for i := range sh.needs {
		if look.can(i) && p.quotaFault(e, &sh.needs[i]) == faultNone {
			return true
		}
	}
	return false
}

// behindQuotaOn is behindQuota for what a gang would count on seats.
func (p *pass) behindQuotaOn(e *entry, n *need, seats []placement.Seat, placed []structs.RankPlacement) *quotaReservation {
	if p.quotaReservations[e.project] == nil {
		return nil
	}
	return p.behindQuota(e, p.usageOf(e, n.Index(), seats, placed))
}

// leastUsage is the least that size ranks of spec count in a quota.
func leastUsage(spec structs.Resources, size int) structs.QuotaUsage {
	used := structs.QuotaUsage{structs.QuotaCPU: structs.MilliCPU(spec.CPU) * int64(size)}
	for _, request := range spec.Devices {
		count := request.Count
		if count == structs.DevicesAll {
			count = 1
		}
		used[structs.DeviceKey(request.Kind, request.Model)] += int64(count) * int64(size)
	}
	if last := spec.LastDevices; last > 0 && len(spec.Devices) == 1 {
		used[structs.DeviceKey(spec.Devices[0].Kind, spec.Devices[0].Model)] -= int64(spec.Devices[0].Count - last)
	}
	return used
}

// usageOf is what a gang counts in the quota of its project.
func (p *pass) usageOf(e *entry, spec int, seats []placement.Seat, placed []structs.RankPlacement) structs.QuotaUsage {
	used := structs.QuotaUsage{}
	for rank := range seats {
		node := p.nodes.states[seats[rank].Index()].node
		for key, amount := range structs.QuotaUsageOf(e.job.SpecOf(spec, rank, len(seats)), node, placed[rank].Devices) {
			used[key] += amount
		}
	}
	return used
}

// aside looks for seats without the devices of a model whose quota is used up,
// for requests that may have several models.
func (p *pass) aside(e *entry, n *need, size int, options placement.Options) ([]placement.Seat, []structs.RankPlacement, bool) {
	project := &p.accounts.projects[e.project]
	var full []structs.Quota
	for _, quota := range project.record.Quotas {
		if most, bounded := quota.Most(); bounded && quota.Kind != structs.QuotaCPU && quota.Model != "" {
			if used := project.used(quota); used+n.rank.Devices*int64(size) > most {
				full = append(full, quota)
			}
		}
	}
	if len(full) == 0 {
		return nil, nil, false
	}
	before := options.Avoid
	options.Avoid = func(at int) bool {
		if before != nil && before(at) {
			return true
		}
		node := p.nodes.states[at].node
		for i := range node.Devices {
			d := &node.Devices[i]
			one := structs.QuotaUsage{structs.DeviceKey(d.Kind, d.Model): 1}
			for _, quota := range full {
				if one.Of(quota) > 0 {
					return true
				}
			}
		}
		return false
	}
	seats, ok := p.nodes.floor.Pick(&n.Need, size, options)
	if !ok {
		return nil, nil, false
	}
	placed := p.nodes.floor.Placements(seats)
	return seats, placed, p.quota(e, n, seats, placed) == nil
}

// used is what the project uses of a quota's kind.
func (p *project) used(quota structs.Quota) int64 {
	if due := p.due(); due != nil {
		return due.QuotaUsage.Of(quota)
	}
	return 0
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
