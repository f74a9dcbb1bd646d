package scheduler

import (
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// project is what the board knows of a project.
type project struct {
	name   string
	record *structs.Project      // nil: no record
	usage  *structs.ProjectUsage // replaced, never changed; nil: uses nothing

	nominated     structs.QuotaUsage // what nominations will use; replaced, never changed
	quotaReserved bool               // quota is reserved for one of its gangs, as of the newest walk
}

// due is what the project uses, and what is nominated for it.
func (p *project) due() *structs.ProjectUsage {
	if len(p.nominated) == 0 {
		return p.usage
	}
	sum := structs.ProjectUsage{Project: p.name}
	if p.usage != nil {
		sum = *p.usage
	}
	sum.QuotaUsage = sum.QuotaUsage.Add(p.nominated)
	return &sum
}

func (a *accounts) projectOf(name string) int32 {
	if id, ok := a.projectByName[name]; ok {
		return id
	}
	id := int32(len(a.projects))
	a.projectByName[name] = id
	a.projects = append(a.projects, project{name: name})
	return id
}

// counts reports whether anybody asks what the project uses.
func (p *project) counts() bool { return p.record != nil && len(p.record.Quotas) > 0 }

// countQuota adds sign times used to what the project uses.
func (b *Board) countQuota(project int32, used structs.QuotaUsage, sign int) {
	p := &b.accounts.projects[project]
	if used == nil {
		return
	}
	usage := structs.ProjectUsage{Project: p.name}
	if p.usage != nil {
		usage = *p.usage
	}
	if sign > 0 {
		usage.QuotaUsage = usage.QuotaUsage.Add(used)
	} else {
		usage.QuotaUsage = usage.QuotaUsage.Sub(used)
		b.queue.soilAll()
	}
	p.usage = &usage
	b.changes++
}

func (q *queue) soilAll() {
	for i := range q.partitions {
		q.partitions[i].dirty, q.partitions[i].stale = true, true
	}
}

// run is a gang on the board, for whoever walks all of them.
type run struct {
	entry int32
	end   structs.UnixNano // estimated
	bound structs.UnixNano // by its time limit; never: it has none
	again structs.UnixNano // when the estimate is due to be made anew
}

// endBy is when the gang ends: as it is expected, or by its limit.
func (r *run) endBy(bounded bool) structs.UnixNano {
	if bounded {
		return r.bound
	}
	return r.end
}

// add assigns a new entry its slot and its place in the table.
func (q *queue) add(e entry) int32 {
	var id int32
	if last := len(q.freeEntry) - 1; last >= 0 {
		id = q.freeEntry[last]
		q.freeEntry = q.freeEntry[:last]
		q.entries[id] = e
	} else {
		id = int32(len(q.entries))
		q.entries = append(q.entries, e)
	}
	q.found.put(q.entries, id)
	return id
}

// remove forgets an entry that is detached.
func (q *queue) remove(id int32) {
	q.found.drop(q.entries, id)
	q.entries[id] = entry{group: -1, oddIn: -1, run: -1}
	q.freeEntry = append(q.freeEntry, id)
}

// newEntry describes a subjob that is not on the board yet.
func (b *Board) newEntry(job *structs.Job, subjob *structs.Subjob) entry {
	sh := b.queue.shapes.of(job)
	for len(b.queue.memos) < len(b.queue.shapes.list) {
		b.queue.memos = append(b.queue.memos, memo{})
	}
	return entry{
		job: job, subjob: subjob, jobID: subjob.JobID, index: subjob.Index, shape: sh.id,
		project: b.accounts.projectOf(job.Project), partition: b.queue.partitionOf(poolOf(job)).id,
		group: -1, oddIn: -1, run: -1, recorded: subjob.Wait, strictAt: subjob.NoPassingAt,
	}
}

// attach lets an entry have its effect on the board: its place in the queue, or
// what it uses. take: the floor and its project do not count its seats yet.
func (b *Board) attach(id int32, take bool) {
	e := &b.queue.entries[id]
	switch e.stand {
	case delayed:
		b.queue.idle = append(b.queue.idle, id)
		b.queue.partitions[e.partition].stale = true
	case waiting:
		b.enqueue(id)
	case running:
		b.settle(id, take)
	}
	if e.nomination != nil {
		b.addNomination(id)
	}
}

// detach undoes attach; give: the floor and its project still count its seats.
func (b *Board) detach(id int32, give bool) {
	e := &b.queue.entries[id]
	if e.nomination != nil {
		b.dropNomination(id)
	}
	switch e.stand {
	case delayed:
		b.queue.idle = without(b.queue.idle, id)
		b.queue.partitions[e.partition].stale = true
	case waiting:
		b.dequeue(id)
	case running:
		b.unsettle(id, give)
	}
}

func without(list []int32, id int32) []int32 {
	at := slices.Index(list, id)
	last := len(list) - 1
	list[at] = list[last]
	return list[:last]
}

// settle puts a gang onto its nodes.
func (b *Board) settle(id int32, take bool) {
	e := &b.queue.entries[id]
	e.run = int32(len(b.queue.runs))
	b.queue.runs = append(b.queue.runs, run{entry: id})
	if take {
		b.nodes.floor.Take(e.gang.seats)
		b.countQuota(e.project, e.gang.quotaUsage, +1)
	}
	for rank := range e.gang.seats {
		at := int32(e.gang.seats[rank].Index())
		s := &b.nodes.states[at]
		record := b.nodes.freeOccupant
		if record >= 0 {
			b.nodes.freeOccupant = b.nodes.occupants[record].next
		} else {
			record = int32(len(b.nodes.occupants))
			b.nodes.occupants = append(b.nodes.occupants, occupant{})
		}
		b.nodes.occupants[record] = occupant{entry: id, rank: int32(rank), next: s.seats}
		s.seats = record
		b.touch(at)
	}
	b.queue.partitions[e.partition].stale = true
	b.changes++
}

// unsettle takes a gang off its nodes.
func (b *Board) unsettle(id int32, give bool) {
	e := &b.queue.entries[id]
	last := len(b.queue.runs) - 1
	b.queue.runs[e.run] = b.queue.runs[last]
	b.queue.entries[b.queue.runs[e.run].entry].run = e.run
	b.queue.runs = b.queue.runs[:last]
	e.run = -1
	if give {
		b.nodes.floor.Give(e.gang.seats)
		b.countQuota(e.project, e.gang.quotaUsage, -1)
	}
	for rank := range e.gang.seats {
		at := int32(e.gang.seats[rank].Index())
		s := &b.nodes.states[at]
		for link := &s.seats; *link >= 0; link = &b.nodes.occupants[*link].next {
			if record := *link; b.nodes.occupants[record].entry == id {
				*link = b.nodes.occupants[record].next
				b.nodes.occupants[record].next = b.nodes.freeOccupant
				b.nodes.freeOccupant = record
				break
			}
		}
		if give && s.node != nil {
			b.nodes.gain(at)
		}
		b.touch(at)
	}
	b.changes++
}

// addNomination closes the nodes of a nomination to all others.
func (b *Board) addNomination(id int32) {
	e := &b.queue.entries[id]
	b.promises.nominations = append(b.promises.nominations, id)
	if p := &b.accounts.projects[e.project]; e.nomination.quotaUsage != nil {
		p.nominated = p.nominated.Add(e.nomination.quotaUsage)
	}
	for _, at := range e.nomination.nodes {
		b.nodes.states[at].nominatedFor = e.key()
		b.touch(at)
	}
}

func (b *Board) dropNomination(id int32) {
	e := &b.queue.entries[id]
	b.promises.nominations = without(b.promises.nominations, id)
	if p := &b.accounts.projects[e.project]; e.nomination.quotaUsage != nil {
		p.nominated = p.nominated.Sub(e.nomination.quotaUsage)
		b.queue.soilAll()
	}
	for _, at := range e.nomination.nodes {
		if s := &b.nodes.states[at]; s.nominatedFor == e.key() {
			s.nominatedFor = ""
			b.nodes.gain(at)
			b.touch(at)
		}
	}
}

// usageAsNominated is what a nomination will count in its project's quota, beyond what
// the gang that changes its size uses already. Devices are those of the empty
// nodes where the nomination names none.
func (ns *nodes) usageAsNominated(e *entry, spec int, placed []structs.RankPlacement) structs.QuotaUsage {
	used := structs.QuotaUsage{}
	for rank := range placed {
		at, ok := ns.floor.Index(placed[rank].NodeID)
		if !ok {
			continue
		}
		node, of, devices := ns.floor.At(at), e.job.SpecOf(spec, rank, len(placed)), placed[rank].Devices
		if len(devices) == 0 {
			devices, _ = feasible.ChooseDevices(node, nil, of.Devices)
		}
		used = used.Add(structs.QuotaUsageOf(of, node, devices))
	}
	if e.gang != nil {
		used = used.Sub(e.gang.quotaUsage)
		for key, amount := range used {
			used[key] = max(amount, 0)
		}
	}
	return used
}

// newGang describes a gang that gets seats now.
func (b *Board) newGang(e *entry, spec int, attempt uint64, seats []placement.Seat, placed []structs.RankPlacement, now structs.UnixNano) *gang {
	g := &gang{
		attempt: attempt, spec: spec, seats: seats, demands: make([]capacity.Amount, len(seats)), placedAt: now, serial: b.serial,
		left: len(seats), whole: len(seats) == e.job.Nodes,
	}
	counts := b.accounts.projects[e.project].counts()
	for rank := range seats {
		r := e.job.SpecOf(spec, rank, len(seats))
		d := r.Amount()
		d.Devices = int64(len(placed[rank].Devices))
		g.demands[rank] = d
		g.devices += int(d.Devices)
		g.cpu += d.CPU
		if node := b.nodes.states[seats[rank].Index()].node; node != nil {
			if rank == 0 {
				g.pool = node.PoolName()
			}
			if counts {
				g.quotaUsage = g.quotaUsage.Add(structs.QuotaUsageOf(r, node, placed[rank].Devices))
			}
		}
	}
	return g
}
