package scheduler

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

const (
	// searchesMax bounds the searches for victims of one pass: each visits every
	// node that the gang could use.
	searchesMax = 32
	// weighMax is up to which size of a gang each next node is chosen in the
	// light of the victims so far; a larger one weighs all nodes once.
	weighMax = 64
)

// search is a search for victims for one gang under one alternative.
type preemptionSearch struct {
	entry      *entry
	need       *need
	more       structs.QuotaUsage // what the gang would count in its project's quota
	candidates map[int32]bool     // entries that would have to yield
	taken      map[int32]bool     // of these, those that must
	young      bool               // some gang was spared because this pass placed it
}

// preempt looks for running gangs that must yield to a blocked one, so that the
// whole of it has room; true: it found them, and the gang left its group. Least
// loss decides: the device time since each victim's start or newest checkpoint.
func (p *pass) preempt(w *queueWalk, id int32, sh *shape) bool {
	e := &p.queue.entries[id]
	group := &p.queue.groups[e.group]
	if group.searchedAt == p.changes && !p.settings.PreemptLonger || p.searches >= searchesMax || !p.mayPreempt(e) {
		return false
	}
	p.searches++
	young := false
	for i := range sh.needs {
		n := &sh.needs[i]
		h := &preemptionSearch{entry: e, need: n, more: p.wouldUse(e, sh, n), taken: make(map[int32]bool)}
		if h.more == nil || p.behindQuota(e, h.more) != nil {
			continue
		}
		h.candidates = p.victimCandidates(h)
		if young = young || h.young; len(h.candidates) == 0 {
			continue
		}
		if victims, seats := p.chooseVictims(w, sh, h); victims != nil {
			p.nominateVictims(id, n, victims, seats)
			return true
		}
	}
	if !young { // else the next pass may find some
		p.queue.groups[e.group].searchedAt = p.changes
	}
	return false
}

// mayPreempt reports quickly that nobody yields to an entry.
func (p *pass) mayPreempt(e *entry) bool {
	if p.settings.PreemptLonger || e.job.Priority.Rank() > 0 {
		return true
	}
	return p.accounts.projects[e.project].guaranteed()
}

// wouldUse is what the smallest gang would count in its project's quota, by
// the devices of the first node that could run a rank; nil when none could.
func (p *pass) wouldUse(e *entry, sh *shape, n *need) structs.QuotaUsage {
	for _, at := range p.nodes.candidates(sh, e.partition) {
		if !p.nodes.able(n, at) {
			continue
		}
		spec := n.Spec()
		devices, _ := feasible.ChooseDevices(p.nodes.states[at].node, nil, spec.Devices)
		used := structs.QuotaUsageOf(spec, p.nodes.states[at].node, devices)
		for key := range used {
			used[key] *= int64(sh.min)
		}
		return used
	}
	return nil
}

// victimCandidates lists the gangs that would have to yield.
func (p *pass) victimCandidates(h *preemptionSearch) map[int32]bool {
	candidates := make(map[int32]bool)
	project := &p.accounts.projects[h.entry.project]
	reclaims := structs.WithinGuarantee(project.record, project.due(), h.more)
	for _, r := range p.queue.runs {
		v := &p.queue.entries[r.entry]
		switch {
		case v.gang.serial == p.serial:
			h.young = true
		case v.gang.endingAt != 0 || v.nomination != nil || v.job.ID == h.entry.job.ID || len(v.gang.seats) == 0:
		case p.settings.PreemptLonger:
			if r.end.Sub(p.now) > h.entry.span {
				candidates[r.entry] = true
			}
		case !v.job.Preemptible || v.job.Priority.Rank() > h.entry.job.Priority.Rank():
		case v.job.Priority.Rank() == h.entry.job.Priority.Rank() && !reclaims:
		case p.victimProblem(h, v, p.Board) == nil:
			candidates[r.entry] = true
		}
	}
	return candidates
}

func (p *pass) victimProblem(h *preemptionSearch, v *entry, view feasible.View) *structs.Reason {
	victim := feasible.Victim{Job: v.job, QuotaUsage: v.gang.quotaUsage, Consents: p.consented(h.entry, v)}
	for i := range v.gang.seats {
		victim.Nodes = append(victim.Nodes, p.nodes.states[v.gang.seats[i].Index()].node)
	}
	return feasible.VictimProblem(h.entry.job, h.more, victim, view)
}

// bill is what making room on a node would cost.
type bill struct {
	at      int32
	place   int32
	loss    float64
	victims []int32
}

func (x bill) compare(y bill) int {
	return cmp.Or(cmp.Compare(x.loss, y.loss), cmp.Compare(len(x.victims), len(y.victims)), cmp.Compare(x.place, y.place))
}

// chooseVictims chooses nodes for the gang where its candidates loses least, and tells the
// victims and the seats that the gang has without them; nil when there is none.
func (p *pass) chooseVictims(w *queueWalk, sh *shape, h *preemptionSearch) ([]int32, []placement.Seat) {
	options := p.optionsFor(h.entry, h.need)
	var nodes []int32
	for _, at := range p.nodes.candidates(sh, w.partition) {
		if p.nodes.able(h.need, at) && !p.nodes.states[at].shut && !p.isClosed(int(at)) {
			nodes = append(nodes, at)
		}
	}
	if len(nodes) < sh.min {
		return nil, nil
	}
	if sh.min > weighMax {
		bills := p.bills(h, nodes)
		if len(bills) < sh.min {
			return nil, nil
		}
		for _, b := range bills[:sh.min] {
			for _, v := range b.victims {
				h.taken[v] = true
			}
		}
	} else {
		for range sh.min {
			bills := p.bills(h, nodes)
			if len(bills) == 0 {
				return nil, nil
			}
			for _, v := range bills[0].victims {
				h.taken[v] = true
			}
			nodes = slices.DeleteFunc(nodes, func(at int32) bool { return at == bills[0].at })
		}
	}
	return p.settleOn(sh, h, options)
}

// bills reports for each node which further victims would make room there, the
// cheapest first. Spots that cannot be cleared are left out.
func (p *pass) bills(h *preemptionSearch, nodes []int32) []bill {
	var bills []bill
	for _, at := range nodes {
		if b, ok := p.billOf(h, at); ok {
			bills = append(bills, b)
		}
	}
	slices.SortFunc(bills, bill.compare)
	return bills
}

func (p *pass) billOf(h *preemptionSearch, at int32) (bill, bool) {
	s := &p.nodes.states[at]
	rank, room := p.nodes.rankOn(h.need, at), p.nodes.room(at)
	b := bill{at: at, place: s.place}
	var here []int32
	for record := s.seats; record >= 0; record = p.nodes.occupants[record].next {
		id := p.nodes.occupants[record].entry
		switch {
		case h.taken[id]:
			room = room.Add(p.queue.entries[id].gang.demands[p.nodes.occupants[record].rank])
		case h.candidates[id]:
			here = append(here, id)
		}
	}
	// The cheapest first, then without those that turn out not to be needed.
	p.byLoss(here)
	for _, id := range here {
		if rank.Fits(room) {
			break
		}
		room = room.Add(p.demandOn(id, at))
		b.victims = append(b.victims, id)
	}
	if !rank.Fits(room) {
		return b, false
	}
	for i := len(b.victims) - 1; i >= 0; i-- {
		if less := room.Sub(p.demandOn(b.victims[i], at)); rank.Fits(less) {
			room = less
			b.victims = slices.Delete(b.victims, i, i+1)
		}
	}
	for _, id := range b.victims {
		b.loss += p.queue.entries[id].gang.loss(p.now)
	}
	return b, true
}

func (p *pass) byLoss(ids []int32) {
	slices.SortFunc(ids, func(x, y int32) int {
		a, b := &p.queue.entries[x], &p.queue.entries[y]
		return cmp.Or(cmp.Compare(a.gang.loss(p.now), b.gang.loss(p.now)), cmp.Compare(b.gang.placedAt, a.gang.placedAt),
			cmp.Compare(a.jobID, b.jobID), cmp.Compare(a.index, b.index))
	})
}

func (p *pass) demandOn(id, at int32) capacity.Amount {
	g := p.queue.entries[id].gang
	for rank := range g.seats {
		if int32(g.seats[rank].Index()) == at {
			return g.demands[rank]
		}
	}
	return capacity.Amount{}
}

// settleOn asks the floor whether the gang fits without the victims, and leaves
// out those that it does not need gone.
func (p *pass) settleOn(sh *shape, h *preemptionSearch, options placement.Options) ([]int32, []placement.Seat) {
	var victims []int32
	for id := range h.taken {
		victims = append(victims, id)
	}
	p.byLoss(victims)
	for _, id := range victims {
		p.nodes.floor.Give(p.queue.entries[id].gang.seats)
	}
	seats, ok := p.nodes.floor.Pick(&h.need.Need, sh.min, options)
	for i := len(victims) - 1; ok && i >= 0; i-- { // the dearest first
		own := p.queue.entries[victims[i]].gang.seats
		p.nodes.floor.Take(own)
		if fewer, still := p.nodes.floor.Pick(&h.need.Need, sh.min, options); still {
			seats = fewer
			victims = slices.Delete(victims, i, i+1)
			continue
		}
		p.nodes.floor.Give(own)
	}
	if ok {
		ok = p.lawful(h, victims, seats)
	}
	for _, id := range victims {
		p.nodes.floor.Take(p.queue.entries[id].gang.seats)
	}
	if !ok || len(victims) == 0 {
		return nil, nil
	}
	return victims, seats
}

// lawful asks feasibility about every victim, those before it being gone, and
// about the quota without them.
func (p *pass) lawful(h *preemptionSearch, victims []int32, seats []placement.Seat) bool {
	if p.settings.PreemptLonger {
		return true
	}
	view := thinned{p.Board, make(map[string]structs.QuotaUsage)}
	placed := p.nodes.floor.Placements(seats)
	h.more = p.usageOf(h.entry, h.need.Index(), seats, placed)
	for _, id := range victims {
		v := &p.queue.entries[id]
		if p.victimProblem(h, v, view) != nil {
			return false
		}
		view.gone[v.job.Project] = view.gone[v.job.Project].Add(v.gang.quotaUsage)
	}
	project := &p.accounts.projects[h.entry.project]
	return structs.QuotaProblem(project.record, view.ProjectUsage(project.name), h.more.Add(project.nominated)) == nil
}

// thinned is the board with some gangs gone.
type thinned struct {
	*Board
	gone map[string]structs.QuotaUsage
}

// ProjectUsage implements feasible.View.
func (g thinned) ProjectUsage(name string) *structs.ProjectUsage {
	usage := g.Board.ProjectUsage(name)
	if gone := g.gone[name]; gone != nil && usage != nil {
		less := *usage
		less.QuotaUsage = usage.QuotaUsage.Sub(gone)
		return &less
	}
	return usage
}

// nominateVictims nominates for a gang the nodes that its victims will leave.
func (p *pass) nominateVictims(id int32, n *need, victims []int32, seats []placement.Seat) {
	e := &p.queue.entries[id]
	keys := p.end(victims)
	placed := p.nodes.floor.Placements(seats)
	made := &nomination{spec: n.Index(), victims: keys, quotaUsage: p.nodes.usageAsNominated(e, n.Index(), placed)}
	for i := range seats {
		made.nodes = append(made.nodes, int32(seats[i].Index()))
	}
	p.nominate(id, made)
	p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
		JobID: e.jobID, Subjob: e.index, Attempt: e.subjob.NextAttempt(), Spec: n.Index(), Placements: placed, Victims: keys,
	})
	p.ranks += len(placed)
}

// end tells victims to stop, in the order of their jobs.
func (p *pass) end(victims []int32) []structs.AttemptKey {
	keys := make([]structs.AttemptKey, 0, len(victims))
	for _, id := range p.queue.sortedEntries(victims) {
		v := &p.queue.entries[id]
		keys = append(keys, structs.AttemptKey{JobID: v.jobID, Subjob: v.index, Number: v.gang.attempt})
		p.note(id)
		if p.settings.Alone {
			p.victims = append(p.victims, id)
		}
		own := *v.gang
		own.endingAt = p.now
		v.gang = &own
		p.foresee(v, p.now)
		for i := range own.seats {
			p.touch(int32(own.seats[i].Index()))
		}
	}
	return keys
}

// nominate takes a gang out of its group and closes the nodes nominated for it.
func (p *pass) nominate(id int32, made *nomination) {
	p.note(id)
	e := &p.queue.entries[id]
	p.detach(id, true)
	e.stand, e.nomination = nominated, made
	p.takeSpare(e, made.quotaUsage)
	p.attach(id, true)
}
