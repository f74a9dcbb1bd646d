package scheduler

import (
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// project is what the board knows of a project.
type project struct {
	name   string
	record *structs.Project      // nil: no record
	usage  *structs.ProjectUsage // replaced, never changed; nil: holds nothing

	promised structs.Holding // what claims will hold; replaced, never changed
	kept     bool            // quota is kept for one of its gangs, as of the newest walk
}

// due is what the project holds and has been promised.
func (p *project) due() *structs.ProjectUsage {
	if len(p.promised) == 0 {
		return p.usage
	}
	sum := structs.ProjectUsage{Project: p.name}
	if p.usage != nil {
		sum = *p.usage
	}
	sum.Held = sum.Held.Add(p.promised)
	return &sum
}

func (b *Board) projectOf(name string) int32 {
	if id, ok := b.projectByName[name]; ok {
		return id
	}
	id := int32(len(b.projects))
	b.projectByName[name] = id
	b.projects = append(b.projects, project{name: name})
	return id
}

// counts reports whether anybody asks what the project holds.
func (p *project) counts() bool { return p.record != nil && len(p.record.Quotas) > 0 }

// hold adds sign times held to what the project holds.
func (b *Board) hold(project int32, held structs.Holding, sign int) {
	p := &b.projects[project]
	if held == nil {
		return
	}
	usage := structs.ProjectUsage{Project: p.name}
	if p.usage != nil {
		usage = *p.usage
	}
	if sign > 0 {
		usage.Held = usage.Held.Add(held)
	} else {
		usage.Held = usage.Held.Sub(held)
		b.soilAll()
	}
	p.usage = &usage
	b.changes++
}

func (b *Board) soilAll() {
	for i := range b.lanes {
		b.lanes[i].dirty, b.lanes[i].stale = true, true
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

// add gives a new entry its slot and its place in the table.
func (b *Board) add(e entry) int32 {
	var id int32
	if last := len(b.freeEntry) - 1; last >= 0 {
		id = b.freeEntry[last]
		b.freeEntry = b.freeEntry[:last]
		b.entries[id] = e
	} else {
		id = int32(len(b.entries))
		b.entries = append(b.entries, e)
	}
	b.found.put(b.entries, id)
	return id
}

// remove forgets an entry that is detached.
func (b *Board) remove(id int32) {
	b.found.drop(b.entries, id)
	b.entries[id] = entry{group: -1, oddIn: -1, run: -1}
	b.freeEntry = append(b.freeEntry, id)
}

// newEntry describes a subjob that is not on the board yet.
func (b *Board) newEntry(job *structs.Job, subjob *structs.Subjob) entry {
	sh := b.shapes.of(job)
	for len(b.memos) < len(b.shapes.list) {
		b.memos = append(b.memos, memo{})
	}
	return entry{
		job: job, subjob: subjob, jobID: subjob.JobID, index: subjob.Index, shape: sh.id,
		project: b.projectOf(job.Project), lane: b.laneOf(poolOf(job)).id,
		group: -1, oddIn: -1, run: -1, said: subjob.Wait, strictAt: subjob.NoPassingAt,
	}
}

// attach lets an entry have its effect on the board: its place in the queue, or
// what it holds. take: the floor and its project do not count its seats yet.
func (b *Board) attach(id int32, take bool) {
	e := &b.entries[id]
	switch e.stand {
	case delayed:
		b.idle = append(b.idle, id)
		b.lanes[e.lane].stale = true
	case waiting:
		b.enqueue(id)
	case running:
		b.settle(id, take)
	}
	if e.claim != nil {
		b.promise(id)
	}
}

// detach undoes attach; give: the floor and its project still count its seats.
func (b *Board) detach(id int32, give bool) {
	e := &b.entries[id]
	if e.claim != nil {
		b.unpromise(id)
	}
	switch e.stand {
	case delayed:
		b.idle = without(b.idle, id)
		b.lanes[e.lane].stale = true
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

// settle puts a gang onto its spots.
func (b *Board) settle(id int32, take bool) {
	e := &b.entries[id]
	e.run = int32(len(b.runs))
	b.runs = append(b.runs, run{entry: id})
	if take {
		b.floor.Take(e.gang.seats)
		b.hold(e.project, e.gang.held, +1)
	}
	for rank := range e.gang.seats {
		at := int32(e.gang.seats[rank].Index())
		s := &b.spots[at]
		record := b.freeStay
		if record >= 0 {
			b.freeStay = b.stays[record].next
		} else {
			record = int32(len(b.stays))
			b.stays = append(b.stays, stay{})
		}
		b.stays[record] = stay{entry: id, rank: int32(rank), next: s.seats}
		s.seats = record
		b.touch(at)
	}
	b.lanes[e.lane].stale = true
	b.changes++
}

// unsettle takes a gang off its spots.
func (b *Board) unsettle(id int32, give bool) {
	e := &b.entries[id]
	last := len(b.runs) - 1
	b.runs[e.run] = b.runs[last]
	b.entries[b.runs[e.run].entry].run = e.run
	b.runs = b.runs[:last]
	e.run = -1
	if give {
		b.floor.Give(e.gang.seats)
		b.hold(e.project, e.gang.held, -1)
	}
	for rank := range e.gang.seats {
		at := int32(e.gang.seats[rank].Index())
		s := &b.spots[at]
		for link := &s.seats; *link >= 0; link = &b.stays[*link].next {
			if record := *link; b.stays[record].entry == id {
				*link = b.stays[record].next
				b.stays[record].next = b.freeStay
				b.freeStay = record
				break
			}
		}
		if give && s.node != nil {
			b.gain(at)
		}
		b.touch(at)
	}
	b.changes++
}

// promise closes the spots of a claim for everybody else.
func (b *Board) promise(id int32) {
	e := &b.entries[id]
	b.claims = append(b.claims, id)
	if p := &b.projects[e.project]; e.claim.held != nil {
		p.promised = p.promised.Add(e.claim.held)
	}
	for _, at := range e.claim.nodes {
		b.spots[at].claim = e.key()
		b.touch(at)
	}
}

func (b *Board) unpromise(id int32) {
	e := &b.entries[id]
	b.claims = without(b.claims, id)
	if p := &b.projects[e.project]; e.claim.held != nil {
		p.promised = p.promised.Sub(e.claim.held)
		b.soilAll()
	}
	for _, at := range e.claim.nodes {
		if s := &b.spots[at]; s.claim == e.key() {
			s.claim = ""
			b.gain(at)
			b.touch(at)
		}
	}
}

// heldAsPromised is what a claim will count in its project's quota, beyond what
// the gang that changes its size holds already. Devices are those of the empty
// nodes where the claim names none.
func (b *Board) heldAsPromised(e *entry, spec int, placed []structs.RankPlacement) structs.Holding {
	held := structs.Holding{}
	for rank := range placed {
		at, ok := b.floor.Index(placed[rank].NodeID)
		if !ok {
			continue
		}
		node, of, devices := b.floor.At(at), e.job.SpecOf(spec, rank, len(placed)), placed[rank].Devices
		if len(devices) == 0 {
			devices, _ = structs.ChooseDevices(node, nil, of.Devices)
		}
		held = held.Add(structs.HeldBy(of, node, devices))
	}
	if e.gang != nil {
		held = held.Sub(e.gang.held)
		for key, amount := range held {
			held[key] = max(amount, 0)
		}
	}
	return held
}

// newGang describes a gang that gets seats now.
func (b *Board) newGang(e *entry, spec int, attempt uint64, seats []placement.Seat, placed []structs.RankPlacement, now structs.UnixNano) *gang {
	g := &gang{
		attempt: attempt, spec: spec, seats: seats, demands: make([]capacity.Amount, len(seats)), placedAt: now, serial: b.serial,
		left: len(seats), whole: len(seats) == e.job.Nodes,
	}
	counts := b.projects[e.project].counts()
	for rank := range seats {
		r := e.job.SpecOf(spec, rank, len(seats))
		d := r.Amount()
		d.Devices = int64(len(placed[rank].Devices))
		g.demands[rank] = d
		g.devices += int(d.Devices)
		g.cpu += d.CPU
		if node := b.spots[seats[rank].Index()].node; node != nil {
			if rank == 0 {
				g.pool = node.PoolName()
			}
			if counts {
				g.held = g.held.Add(structs.HeldBy(r, node, placed[rank].Devices))
			}
		}
	}
	return g
}
