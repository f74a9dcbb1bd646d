package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// quotaReservation reserves a part of a project's quota for the first of its gangs that
// waits, for quota or with a reserved start. It is to quotas what a reservation is
// to nodes, and has the same two forms: timed and strict. Without it small jobs of
// a project would take every bit of its quota that becomes free before a large one
// could ever have enough.
type quotaReservation struct {
	jobID  string
	index  int
	at     structs.UnixNano // estimated start; never: not known
	strict bool
	spare  []int64 // by quota of the project: what others may take whenever they end; -1: not asked for
}

// awaitQuota reserves quota for a gang for which nothing else is in the way, if it is
// the first of its project.
func (p *pass) awaitQuota(id int32, sh *shape) {
	e := &p.queue.entries[id]
	if p.quotaReservations[e.project] != nil || p.settings.reservationsMax() == 0 && p.settings.Passing != NoPassing {
		return
	}
	need := sh.needs[p.judge(sh).need].least
	if structs.QuotaProblem(p.accounts.projects[e.project].record, nil, need) != nil {
		return // it never starts
	}
	h := &quotaReservation{at: p.quotaFreeAt(e.project, need)}
	late := e.strictAt != 0 && p.now > e.strictAt
	h.strict = h.at == never || late || p.settings.Passing == NoPassing
	if !h.strict && e.strictAt == 0 {
		p.promise(id, promiseOf(p.now, h.at, never))
	}
	p.reserveQuota(e, need, h)
}

// quotaPart is one quota of which something is asked for.
type quotaPart struct {
	quota int   // of the project's record
	spare int64 // what is left beside all that is used and what is asked for; negative: so much is missing
}

// partsOf reports how a project stands to what need asks of its quotas.
func (p *pass) partsOf(project int32, need structs.QuotaUsage) []quotaPart {
	var parts []quotaPart
	due := p.accounts.projects[project].due()
	for i, quota := range p.accounts.projects[project].record.Quotas {
		if most, bounded := quota.Most(); bounded && need.Of(quota) > 0 {
			part := quotaPart{i, most - need.Of(quota)}
			if due != nil {
				part.spare -= due.QuotaUsage.Of(quota)
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// leave adds what a gang will leave.
func (p *pass) leave(parts []quotaPart, v *entry) {
	for i := range parts {
		parts[i].spare += v.gang.quotaUsage.Of(p.accounts.projects[v.project].record.Quotas[parts[i].quota])
	}
}

// quotaFreeAt estimates when enough gangs of a project have ended for it to use
// need, too.
func (p *pass) quotaFreeAt(project int32, need structs.QuotaUsage) structs.UnixNano {
	parts := p.partsOf(project, need)
	for _, id := range p.leaversOf(project) {
		v := &p.queue.entries[id]
		end := p.queue.runs[v.run].end
		if end == never {
			break
		}
		p.leave(parts, v)
		if !slices.ContainsFunc(parts, func(x quotaPart) bool { return x.spare < 0 }) {
			return end
		}
	}
	return never
}

// leaversOf lists the running gangs of a project by the time at which they end.
func (p *pass) leaversOf(project int32) []int32 {
	if p.leavers == nil {
		p.leavers = make(map[int32][]int32)
		for i := range p.queue.runs {
			of := p.queue.entries[p.queue.runs[i].entry].project
			p.leavers[of] = append(p.leavers[of], p.queue.runs[i].entry)
		}
	}
	list := slices.DeleteFunc(p.leavers[project], func(id int32) bool { return p.queue.entries[id].stand != running })
	slices.SortFunc(list, func(a, b int32) int {
		return cmp.Compare(p.queue.runs[p.queue.entries[a].run].end, p.queue.runs[p.queue.entries[b].run].end)
	})
	p.leavers[project] = list
	return list
}

// reserveQuota reserves need for a gang.
func (p *pass) reserveQuota(e *entry, need structs.QuotaUsage, h *quotaReservation) {
	parts := p.partsOf(e.project, need)
	if len(parts) == 0 {
		return
	}
	if !h.strict {
		for _, id := range p.leaversOf(e.project) {
			if v := &p.queue.entries[id]; p.queue.runs[v.run].end <= h.at {
				p.leave(parts, v)
			}
		}
	}
	h.jobID, h.index = e.jobID, e.index
	h.spare = slices.Repeat([]int64{-1}, len(p.accounts.projects[e.project].record.Quotas))
	for _, part := range parts {
		h.spare[part.quota] = max(0, part.spare)
	}
	if p.quotaReservations == nil {
		p.quotaReservations = make(map[int32]*quotaReservation)
	}
	p.quotaReservations[e.project] = h
	p.accounts.projects[e.project].quotaReserved = true
}

// behindQuota reports which reservation keeps a gang from taking usage of its project's quota;
// nil: none.
func (p *pass) behindQuota(e *entry, usage structs.QuotaUsage) *quotaReservation {
	h := p.quotaReservations[e.project]
	if h == nil || p.passesQuota(e, h) {
		return nil
	}
	for i, quota := range p.accounts.projects[e.project].record.Quotas {
		if h.spare[i] >= 0 && usage.Of(quota) > h.spare[i] {
			return h
		}
	}
	return nil
}

// passesQuota reports whether a reservation does not concern a gang: it is its own, or the
// gang will have ended by then.
func (p *pass) passesQuota(e *entry, h *quotaReservation) bool {
	p.modelEntry(e)
	return e.is(h.jobID, h.index) || !h.strict && later(p.now, e.span) <= h.at
}

// takeSpare notes what of the spare quota beside a reservation a gang takes.
func (p *pass) takeSpare(e *entry, usage structs.QuotaUsage) {
	h := p.quotaReservations[e.project]
	if h == nil || p.passesQuota(e, h) {
		return
	}
	for i, quota := range p.accounts.projects[e.project].record.Quotas {
		if h.spare[i] >= 0 {
			h.spare[i] = max(0, h.spare[i]-usage.Of(quota))
		}
	}
}

// awaitQuotas reserves quota, before those that are left are no longer looked at in
// their order, for the first of each project that waits for it.
func (p *pass) awaitQuotas(w *queueWalk) {
	var blocked []cursor
	for _, c := range w.heap {
		g := &p.queue.groups[c.group]
		sh := p.queue.shapes.list[g.key.shape]
		if !p.accounts.projects[g.key.project].counts() || p.quotaReservations[g.key.project] != nil || sh.odd || p.ceiling(&p.queue.partitions[w.partition], sh) != nil ||
			p.judge(sh).reason != nil || p.underQuota(p.at(c), sh) {
			continue
		}
		c.rank = p.rankOf(w, c.group)
		blocked = append(blocked, c)
	}
	slices.SortFunc(blocked, func(a, b cursor) int {
		if p.less(w, a, b) {
			return -1
		}
		return 1
	})
	for _, c := range blocked {
		p.awaitQuota(p.listOf(c)[c.pos], p.queue.shapes.list[p.queue.groups[c.group].key.shape])
	}
}

// quotaReserved says for whom quota is reserved.
func (p *pass) quotaReserved(e *entry, h *quotaReservation) *structs.WaitReason {
	wait := waitFor("scheduler.quota_kept", "project", p.accounts.projects[e.project].name, "job", p.queue.jobName(h.jobID))
	wait.Holders = []string{h.jobID}
	return wait
}
