package scheduler

import (
	"slices"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// nominateVIP starts a VIP job when all its machines are free, and else nominates
// them for it, so that no other job gets them. The jobs on machines to kill end with
// the nomination, or, if it kills last, when nothing else is on its machines: until
// then they would end for machines that stand idle. It does not ask for reservations.
func (p *pass) nominateVIP(w *queueWalk, id int32, sh *shape, a *answer) bool {
	if p.start(w, id, sh, a) {
		return true
	}
	if a.fault != faultRoom && a.fault != faultReserved || p.judge(sh).reason != nil {
		return false
	}
	e := &p.queue.entries[id]
	a.fault = faultRoom
	nodes := p.machines(sh)
	if len(nodes) < sh.min || slices.ContainsFunc(nodes, func(at int32) bool { return p.nodes.states[at].nominatedFor != "" }) {
		return false // another nomination stands before it
	}
	if slices.ContainsFunc(nodes, func(at int32) bool { return p.nodes.closedTo(e, at, p.now) }) {
		a.fault = faultReserved
		return false // its machines are closed before it could end
	}
	n := &sh.needs[p.judge(sh).need]
	used := structs.QuotaUsage{}
	placed := make([]structs.RankPlacement, len(nodes))
	for rank, at := range nodes {
		node := p.nodes.states[at].node
		spec := e.job.SpecOf(n.Index(), rank, len(nodes))
		devices, _ := feasible.ChooseDevices(node, nil, spec.Devices)
		used = used.Add(structs.QuotaUsageOf(spec, node, devices))
		placed[rank] = structs.RankPlacement{NodeID: node.ID, Devices: devices}
	}
	project := &p.accounts.projects[e.project]
	if problem := structs.QuotaProblem(project.record, project.due(), used); problem != nil {
		a.fault, a.reason = faultQuota, p.overQuota(e, sh, problem)
		return false
	}
	if h := p.behindQuota(e, used); h != nil {
		a.fault, a.reason = faultQuotaReserved, p.quotaReserved(e, h)
		return false
	}
	made := &nomination{spec: n.Index(), nodes: nodes, quotaUsage: used}
	if victims := p.killedBy(e, sh, nodes, used); !e.job.KillsLast || p.onlyThese(nodes, victims) {
		made.victims = p.end(victims)
	}
	p.nominate(id, made)
	p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
		JobID: e.jobID, Subjob: e.index, Attempt: e.subjob.NextAttempt(), Spec: n.Index(), Placements: placed,
		Victims: made.victims, Nominate: true,
	})
	p.ranks += len(placed)
	return true
}

// machines lists the nodes of a VIP job's machines that could run a rank, in
// its order.
func (p *pass) machines(sh *shape) []int32 {
	need := &sh.needs[p.judge(sh).need]
	nodes := slices.DeleteFunc(p.nodes.candidates(sh, p.queue.common), func(at int32) bool { return !p.nodes.able(need, at) })
	return nodes[:min(len(nodes), sh.nodes)]
}

// killedBy lists the gangs on the machines that the VIP job does not wait for.
func (p *pass) killedBy(e *entry, sh *shape, nodes []int32, more structs.QuotaUsage) []int32 {
	h := &preemptionSearch{entry: e, more: more}
	var victims []int32
	for _, at := range nodes {
		for record := p.nodes.states[at].seats; record >= 0; record = p.nodes.occupants[record].next {
			id := p.nodes.occupants[record].entry
			v := &p.queue.entries[id]
			if v.gang.endingAt == 0 && v.nomination == nil && !slices.Contains(victims, id) && (sh.kills(p.nodes.states[at].node) || p.consented(e, v)) &&
				p.victimProblem(h, v, p.Board) == nil {
				victims = append(victims, id)
			}
		}
	}
	return victims
}

// consented reports whether a gang may be stopped for a VIP job because its owner
// agreed, or did not answer in time.
func (p *pass) consented(e, v *entry) bool {
	return e.job.VIP != nil && e.subjob.Consented(e.job, structs.AttemptKey{JobID: v.jobID, Subjob: v.index, Number: v.gang.attempt}, p.now)
}

// onlyThese reports whether nothing is on nodes but gangs that are ending or among
// victims: neither other gangs nor what is held for people to look at.
func (p *pass) onlyThese(nodes, victims []int32) bool {
	for _, at := range nodes {
		here := 0
		for record := p.nodes.states[at].seats; record >= 0; record = p.nodes.occupants[record].next {
			here++
			if id := p.nodes.occupants[record].entry; p.queue.entries[id].gang.endingAt == 0 && !slices.Contains(victims, id) {
				return false
			}
		}
		if _, usage := p.Node(p.nodes.states[at].node.ID); usage != nil && usage.Allocs > here {
			return false
		}
	}
	return true
}

// killDue ends what is left on the machines nominated for VIP jobs that kill
// last, once all of it is to be killed.
func (p *pass) killDue() {
	for _, id := range p.queue.sortedEntries(slices.Clone(p.promises.nominations)) {
		e := &p.queue.entries[id]
		if e.stand != nominated || !e.job.KillsLast {
			continue
		}
		sh, made := p.queue.shapes.list[e.shape], *e.nomination
		nodes := made.nodes
		victims := p.killedBy(e, sh, nodes, made.quotaUsage)
		if len(victims) == 0 || slices.ContainsFunc(nodes, func(at int32) bool { return p.nodes.states[at].node == nil }) || !p.onlyThese(nodes, victims) {
			continue
		}
		placed := make([]structs.RankPlacement, len(nodes))
		for rank, at := range nodes {
			node := p.nodes.states[at].node
			devices, _ := feasible.ChooseDevices(node, nil, e.job.SpecOf(made.spec, rank, len(nodes)).Devices)
			placed[rank] = structs.RankPlacement{NodeID: node.ID, Devices: devices}
		}
		made.victims = p.end(victims)
		p.note(id)
		p.detach(id, true)
		e.nomination = &made
		p.attach(id, true)
		p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
			JobID: e.jobID, Subjob: e.index, Attempt: e.subjob.NextAttempt(), Spec: made.spec, Placements: placed,
			Victims: made.victims, Nominate: true,
		})
	}
}

// kills reports whether the job ends what runs on a node.
func (s *shape) kills(node *structs.Node) bool {
	return slices.ContainsFunc(s.vip.Machines, func(m structs.VIPMachine) bool {
		return m.Busy == structs.BusyKill && (m.Node == node.Name || m.Node == node.ID)
	})
}

// carryOut does what the state does with a plan, on a board that is alone: the
// victims end and are queued again, and the nominations are fulfilled for which that
// was enough. What they leave beside is dealt out by the next pass.
func (p *pass) carryOut() {
	for _, id := range p.victims {
		p.requeue(id)
	}
	for _, id := range p.queue.sortedEntries(slices.Clone(p.promises.nominations)) {
		planned := slices.IndexFunc(p.plan.Gangs, func(g structs.GangPlan) bool { return p.queue.entries[id].is(g.JobID, g.Subjob) })
		if planned < 0 || !p.complete(id) {
			continue
		}
		last := len(p.plan.Gangs) - 1
		placed := p.plan.Gangs[last]
		placed.Victims = p.plan.Gangs[planned].Victims
		p.plan.Gangs[planned] = placed
		p.plan.Gangs = p.plan.Gangs[:last]
	}
}

// fulfil places the nominations whose nodes are free by now, on a board that is
// alone.
func (p *pass) fulfil() {
	for _, id := range p.queue.sortedEntries(slices.Clone(p.promises.nominations)) {
		p.complete(id)
	}
}

// complete places a nominated gang if all its nodes are free; it reports whether
// they were.
func (p *pass) complete(id int32) bool {
	e := &p.queue.entries[id]
	if e.stand == running {
		return p.resized(id)
	}
	sh := p.queue.shapes.list[e.shape]
	n := &sh.needs[e.nomination.spec]
	options := p.optionsFor(e, n)
	nodes := e.nomination.nodes
	options.Avoid = func(at int) bool { return !slices.Contains(nodes, int32(at)) || p.nodes.closedTo(e, int32(at), p.now) }
	seats, ok := p.nodes.floor.Pick(&n.Need, len(nodes), options)
	if !ok {
		return false
	}
	placed := p.nodes.floor.Placements(seats)
	p.started(nil, id, p.newGang(e, n.Index(), e.subjob.NextAttempt(), seats, placed, p.now), placed)
	return true
}
