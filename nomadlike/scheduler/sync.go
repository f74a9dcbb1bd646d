package scheduler

import (
	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// shapesMax bounds the shapes that a board remembers; beyond it the next Sync
// starts anew.
const shapesMax = 1 << 17

// Sync brings the board to the newest state, reading only what changed since
// the last call. Placements of earlier passes that the state does not have are
// dropped.
func (b *Board) Sync(snapshot Snapshot) {
	b.undo()
	since := b.index
	if len(b.queue.shapes.list) > shapesMax {
		since = 0
	}
	changes := snapshot.Changes(since)
	if changes.Full {
		model := b.modelled
		*b = *NewBoard(b.settings)
		b.modelled = model
	}
	b.index = snapshot.Index()
	for _, c := range changes.Pools {
		b.PutPool(c.Name, c.Pool)
	}
	for _, c := range changes.Projects {
		b.putProject(c)
	}
	for _, c := range changes.Nodes {
		b.PutNode(c.ID, c.Node, c.Usage)
	}
	for i := range changes.Subjobs {
		b.putSubjob(&changes.Subjobs[i])
	}
}

// note keeps an entry as it is, before a pass changes it, so that undo can
// bring it back.
func (b *Board) note(id int32) {
	if !b.settings.Alone && !b.changed[id] {
		b.changed[id] = true
		b.journal = append(b.journal, journalItem{id, b.queue.entries[id]})
	}
}

// undo takes back what passes did since the last Sync.
func (b *Board) undo() {
	for i := len(b.journal) - 1; i >= 0; i-- {
		item := &b.journal[i]
		now := &b.queue.entries[item.id]
		if now.stand == item.before.stand && now.gang == item.before.gang && now.nomination == item.before.nomination {
			now.recorded, now.strictAt = item.before.recorded, item.before.strictAt
			b.queue.distrust(item.id)
			continue
		}
		b.detach(item.id, true)
		*now = item.before
		now.group, now.run, now.oddIn = -1, -1, -1
		b.attach(item.id, true)
	}
	b.journal = b.journal[:0]
	clear(b.changed)
}

// distrust lets the next pass look at what an entry says.
func (q *queue) distrust(id int32) {
	e := &q.entries[id]
	q.partitions[e.partition].stale = true
	if e.group >= 0 && e.oddIn != e.group {
		e.oddIn = e.group
		q.groups[e.group].odd = append(q.groups[e.group].odd, id)
	}
}

func (b *Board) putProject(c structs.ProjectChange) {
	id := b.accounts.projectOf(c.Name)
	p := &b.accounts.projects[id]
	counted := p.counts()
	p.record, p.usage = c.Project, c.Usage
	if counted || p.counts() {
		b.changes++
		b.queue.soilAll()
	}
}

// putSubjob makes the board show a subjob as it is in the state. What it holds
// is in the usage of its nodes and its project already.
func (b *Board) putSubjob(c *structs.SubjobChange) {
	id, known := b.queue.found.find(b.queue.entries, c.JobID, c.Index)
	if known && b.queue.sameQueued(id, c) {
		e := &b.queue.entries[id]
		e.subjob, e.recorded, e.strictAt = c.Subjob, c.Subjob.Wait, c.Subjob.NoPassingAt
		b.queue.distrust(id)
		return
	}
	if known {
		b.detach(id, false)
		b.queue.remove(id)
	}
	if c.Job == nil || c.Subjob == nil || c.Subjob.State.Terminal() {
		return
	}
	e := b.newEntry(c.Job, c.Subjob)
	switch {
	case c.Subjob.State == structs.JobQueued && c.Subjob.Nomination != nil:
		e.stand, e.nomination = nominated, b.nodes.nominationOf(&e, c.Subjob.Nomination)
	case c.Subjob.State == structs.JobQueued && c.Subjob.Held():
		e.stand = held
	case c.Subjob.State == structs.JobQueued && c.Subjob.NotBefore > b.now:
		e.stand = delayed
	case c.Subjob.State == structs.JobQueued:
		e.stand = waiting
	case c.Attempt != nil:
		e.stand, e.gang = running, b.nodes.gangOf(c)
		if c.Subjob.Nomination != nil {
			e.nomination = b.nodes.nominationOf(&e, c.Subjob.Nomination)
			e.nomination.own = true
		}
	default:
		return
	}
	b.attach(b.queue.add(e), false)
}

// sameQueued reports whether a queued entry only says something else than before.
func (q *queue) sameQueued(id int32, c *structs.SubjobChange) bool {
	e := &q.entries[id]
	if e.stand != waiting || c.Job == nil || c.Subjob == nil || c.Subjob.State != structs.JobQueued || c.Subjob.Nomination != nil {
		return false
	}
	was := e.subjob
	return e.job == c.Job && was.Attempt == c.Subjob.Attempt && was.Place == c.Subjob.Place && was.Moved == c.Subjob.Moved &&
		was.NotBefore == c.Subjob.NotBefore && was.CreateIndex == c.Subjob.CreateIndex
}

func (ns *nodes) nominationOf(e *entry, c *structs.Nomination) *nomination {
	made := &nomination{spec: c.Gang.Spec, victims: c.Victims, quotaUsage: ns.usageAsNominated(e, c.Gang.Spec, c.Gang.Placements)}
	for i := range c.Gang.Placements {
		if at, ok := ns.floor.Index(c.Gang.Placements[i].NodeID); ok {
			made.nodes = append(made.nodes, int32(at))
		}
	}
	return made
}

// gangOf describes the attempt of a subjob that occupies nodes.
func (ns *nodes) gangOf(c *structs.SubjobChange) *gang {
	a := c.Attempt
	g := &gang{
		attempt: a.Number, spec: a.Spec, placedAt: a.PlacedAt, runningAt: a.RunningAt, checkpointAt: a.CheckpointAt,
		endingAt: a.EndingAt, left: a.RanksLeft(),
	}
	work := 0
	for _, alloc := range c.Allocs {
		if !alloc.Status.Terminal() {
			work++
		}
		seat, ok := ns.floor.SeatOf(alloc)
		if !ok {
			continue
		}
		d := alloc.Spec.Amount()
		d.Devices = int64(len(alloc.Devices))
		g.seats, g.demands, g.allocs = append(g.seats, seat), append(g.demands, d), append(g.allocs, alloc)
		g.devices += int(d.Devices)
		g.cpu += d.CPU
		g.quotaUsage = g.quotaUsage.Add(alloc.QuotaUsage)
		if g.pool == "" {
			g.pool = alloc.Pool
		}
	}
	g.whole = c.Job.NodesOf(g.left) >= c.Job.Nodes || work < g.left
	return g
}

// reseat finds the seats on a node anew after its node's devices changed.
func (b *Board) reseat(at int32) {
	for record := b.nodes.states[at].seats; record >= 0; record = b.nodes.occupants[record].next {
		e, rank := &b.queue.entries[b.nodes.occupants[record].entry], b.nodes.occupants[record].rank
		if e.gang.allocs == nil {
			continue
		}
		if seat, ok := b.nodes.floor.SeatOf(e.gang.allocs[rank]); ok {
			own := *e.gang
			own.seats = append([]placement.Seat(nil), own.seats...)
			own.seats[rank] = seat
			e.gang = &own
		}
	}
}
