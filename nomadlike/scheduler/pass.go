package scheduler

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// fault is why a gang cannot start now.
type fault uint8

const (
	faultNone          fault = iota
	faultBound               // the pool's ceilings
	faultQuota               // its project's quota
	faultQuotaReserved       // its project's quota, reserved for gangs before it
	faultNever               // not even on the empty cluster
	faultRoom                // no room
	faultReserved            // room, but reserved for gangs before it, or closed before it could end
)

// pass is one walk over the queue.
type pass struct {
	*Board
	now               structs.UnixNano
	seed              uint64
	plan              structs.Plan
	ranks             int  // placements in plan
	full              bool // the plan takes no more
	walks             []queueWalk
	promised          []int32                     // gangs whose reserved start was fixed
	searches          int                         // searches for victims
	victims           []int32                     // victims, on a board that is alone
	quotaReservations map[int32]*quotaReservation // by project
	leavers           map[int32][]int32           // the running gangs of each project, when somebody asked
	keptBack          bool                        // a gang had room, but for a reservation
	passed            bool                        // a gang started after a reservation was made

	// What the gang that is being placed may take, for avoid.
	placing   *entry
	nominee   string
	ends      structs.UnixNano // when it would end
	bound     structs.UnixNano // and when at the latest
	taking    *need
	avoid     func(at int) bool // taken from others by a reservation or a nomination
	nominated func(at int) bool // by a nomination
	closed    func(at int) bool // avoid, or a window of maintenance
	shut      func(at int) bool // nominated, or a window of maintenance
}

// queueWalk is a walk over the queue of one pool.
type queueWalk struct {
	partition     int32
	heap          []cursor
	shares        []share // of a fair partition queue, by project
	owners        bool    // what is guaranteed is served before what is borrowed
	reservations  int     // made
	futile        int     // looks for a reservation in vain
	nodesReserved int     // nodes reserved
	closed        bool    // all reservations are made
	filling       bool    // and the shortest go first
}

// cursor is the next entry of a group that the walk will look at.
type cursor struct {
	group int32
	pos   int32
	list  []int32 // a heap of the entries that fill in, for which pos stays 0; nil: the group's queue
	rank  rank
}

// rank is where a project stands in the order of a partition queue, as of when its cursor
// was put into the heap. It only ever sinks during a walk.
type rank struct {
	borrows bool    // the gang would go beyond what is guaranteed to its project
	share   float64 // weighted use of its project
}

// answer is what a walk found out for a group.
type answer struct {
	serial uint64 // of the pass
	fault  fault
	span   time.Duration // run time of the gang that failed, for faultReserved
	limit  time.Duration // and its limit, as far as it matters: see latest
	reach  reach         // and for how long it counts where windows are concerned
	need   int           // the alternative that it waits for
	reason *structs.WaitReason
	figure *structs.WaitReason // explanation with figures
}

// Pass decides which queued gangs start at now, puts what it places on the
// board, and explains the rest. It returns the gangs that start now, in queue
// order, and the explanations that differ from what the waiting subjobs carry.
// An empty plan means that nothing is to be proposed. After a plan with gangs,
// or with WaitsMax explanations, another pass may have more to do; after any
// other, nothing until the board changes or the time that Due says.
//
// seed spreads dynamic ports; every other choice depends on the board and now
// alone. WaitReason.Position is left 0: the place in the queue shifts with
// every start, so whoever shows a queue counts it there instead of logging it.
func (b *Board) Pass(now structs.UnixNano, seed uint64) structs.Plan {
	b.now = now
	b.serial++
	b.accounts.bookAll(now)
	b.wake(now)
	b.refresh(now)
	p := &pass{Board: b, now: now, seed: seed, plan: structs.Plan{SnapshotIndex: b.index}}
	p.avoid, p.nominated, p.closed, p.shut = p.isReserved, p.isNominated, p.isClosed, p.isNominatedOrClosed
	if b.settings.Alone {
		p.fulfil()
	}
	p.killDue()
	p.begin()
	for !p.full {
		w := p.next()
		if w == nil {
			break
		}
		p.step(w)
	}
	if !p.full && !p.anyWaits() {
		p.grow()
	}
	if b.settings.Alone {
		p.carryOut()
	}
	p.explain()
	b.unsettled = p.keptBack && p.passed
	return p.plan
}

// Unsettled reports whether the next pass at the same time may start what the last one
// kept back for a reservation: a gang has started since that reservation was made, and it
// may lie elsewhere now. A leader passes until nothing starts in any case; this is for
// forecasts, which pass as rarely as they can.
func (b *Board) Unsettled() bool { return b.unsettled }

// Due reports when a pass may decide otherwise though nothing changed: a restart
// delay is over by then, or the time in which an owner may answer a VIP job. False:
// never, by time alone.
func (b *Board) Due(now structs.UnixNano) (structs.UnixNano, bool) {
	due := never
	for _, id := range b.queue.idle {
		due = min(due, b.queue.entries[id].subjob.NotBefore)
	}
	for _, id := range b.promises.nominations {
		if e := &b.queue.entries[id]; e.stand == nominated {
			if at := e.subjob.SilenceAt(e.job, now); at != 0 {
				due = min(due, at)
			}
		}
	}
	return max(due, now), due != never
}

// wake queues what was delayed until now.
func (b *Board) wake(now structs.UnixNano) {
	for i := 0; i < len(b.queue.idle); {
		id := b.queue.idle[i]
		e := &b.queue.entries[id]
		if e.subjob.NotBefore > now {
			i++
			continue
		}
		b.detach(id, true)
		e.stand = waiting
		b.attach(id, true)
	}
}

// begin chooses the partition queues to walk. Lanes share nodes only with the common one,
// and quotas with all others; else those about which nothing changed are left
// alone.
func (p *pass) begin() {
	all := p.queue.partitions[p.queue.common].queued > 0 || slices.ContainsFunc(p.accounts.projects, func(q project) bool { return q.counts() })
	owners := p.accounts.anyGuarantee()
	some := false
	for i := range p.queue.partitions {
		some = some || p.due(&p.queue.partitions[i])
	}
	for i := range p.accounts.projects {
		p.accounts.projects[i].quotaReserved = p.accounts.projects[i].quotaReserved && !some
	}
	for i := range p.queue.partitions {
		l := &p.queue.partitions[i]
		if !some || !all && !p.due(l) {
			continue
		}
		l.dirty = false
		if !p.settings.Quiet {
			l.stale = false
		}
		l.waits = false
		p.dropReservations(l.id)
		w := queueWalk{partition: l.id}
		if p.fair(l) {
			w.shares = p.shares(l, p.now)
		}
		w.owners = owners
		p.queue.dropEmpty(l)
		w.heap = make([]cursor, 0, len(l.groups))
		for _, g := range l.groups {
			w.heap = append(w.heap, cursor{group: g, rank: p.rankOf(&w, g)})
		}
		p.heapify(&w)
		p.walks = append(p.walks, w)
	}
}

// anyWaits reports whether a gang waits for room anywhere.
func (p *pass) anyWaits() bool {
	return slices.ContainsFunc(p.queue.partitions, func(l partitionQueue) bool { return l.waits })
}

func (p *pass) due(l *partitionQueue) bool {
	return l.dirty || l.stale && !p.settings.Quiet || p.fair(l) && l.queued > 0
}

// next returns the partition queue whose first gang is served next. Between partition queues it is the
// tier and the place that decide.
func (p *pass) next() *queueWalk {
	var best *queueWalk
	for i := range p.walks {
		w := &p.walks[i]
		if len(w.heap) > 0 && (best == nil || p.crosses(p.first(w), p.first(best)) < 0) {
			best = w
		}
	}
	return best
}

func (p *pass) crosses(x, y *entry) int {
	return cmp.Or(cmp.Compare(y.job.Priority.Rank(), x.job.Priority.Rank()), comparePlace(x, y))
}

func (p *pass) first(w *queueWalk) *entry { return p.at(w.heap[0]) }

func (p *pass) at(c cursor) *entry { return &p.queue.entries[p.listOf(c)[c.pos]] }

func (p *pass) listOf(c cursor) []int32 {
	if c.list != nil {
		return c.list
	}
	return p.queue.groups[c.group].queue
}

// less orders the cursors of a partition queue.
func (p *pass) less(w *queueWalk, a, b cursor) bool {
	x, y := p.at(a), p.at(b)
	switch {
	case w.filling:
		return p.shorter(x, a.rank, y, b.rank) < 0
	case w.shares == nil && !w.owners:
		return p.before(x, y) < 0
	}
	return p.ranked(&p.queue.partitions[w.partition], x, a.rank, y, b.rank) < 0
}

// rankOf is where the next gang of a group stands now.
func (p *pass) rankOf(w *queueWalk, group int32) (r rank) {
	g := &p.queue.groups[group]
	if w.owners {
		r.borrows = p.accounts.borrows(g.key.project, p.queue.shapes.list[g.key.shape])
	}
	if w.shares != nil {
		r.share = w.shares[g.key.project].weighted()
	}
	return r
}

// sink brings the heap of a partition queue in order after its first cursor moved on.
func (p *pass) sink(w *queueWalk) {
	sink(w.heap, 0, func(a, b cursor) bool { return p.less(w, a, b) })
}

func (p *pass) heapify(w *queueWalk) {
	heapify(w.heap, func(a, b cursor) bool { return p.less(w, a, b) })
}

// drop ends the walk over the first group of the heap.
func (p *pass) drop(w *queueWalk) {
	last := len(w.heap) - 1
	w.heap[0] = w.heap[last]
	w.heap = w.heap[:last]
	p.sink(w)
}

// advance goes on with the entry of the first group that stands at pos now.
func (p *pass) advance(w *queueWalk, pos int32) {
	c := &w.heap[0]
	if int(pos) >= len(p.listOf(*c)) {
		p.drop(w)
		return
	}
	c.pos, c.rank = pos, p.rankOf(w, c.group)
	p.sink(w)
}

// step looks at the first gang of a partition queue.
func (p *pass) step(w *queueWalk) {
	c := w.heap[0]
	g := &p.queue.groups[c.group]
	if now := p.rankOf(w, c.group); now != c.rank { // its project started something since
		w.heap[0].rank = now
		p.sink(w)
		return
	}
	id := p.listOf(c)[c.pos]
	a := &g.answer
	if a.serial != p.serial {
		*a = answer{serial: p.serial}
	}
	e := &p.queue.entries[id]
	p.modelEntry(e)
	sh := p.queue.shapes.list[e.shape]
	if p.worthTrying(e, sh, a) {
		if p.overflows(sh) {
			p.full = true
			return
		}
		if p.try(w, id, sh, a) {
			if c.list != nil {
				w.heap[0].list = p.pop(c.list)
			}
			p.advance(w, c.pos) // the next one of the group stands here now
			return
		}
	}
	p.blocked(w, id, sh, a)
}

// worthTrying reports whether what was found out for the group so far leaves an
// entry a chance to start, or another reason to wait.
func (p *pass) worthTrying(e *entry, sh *shape, a *answer) bool {
	switch a.fault {
	case faultNone:
		return true
	case faultQuotaReserved:
		return e.span < a.span
	case faultReserved:
		return p.sooner(e, a) || !p.underQuota(e, sh)
	}
	return a.fault == faultRoom && !p.underQuota(e, sh)
}

// overflows reports whether a gang of the shape has no place in the plan.
func (p *pass) overflows(sh *shape) bool {
	return len(p.plan.Gangs) >= GangsMax || p.ranks > 0 && p.ranks+sh.nodes > RanksMax
}

// try starts a gang, or finds out why it cannot start; true: the gang left its
// group.
func (p *pass) try(w *queueWalk, id int32, sh *shape, a *answer) bool {
	e := &p.queue.entries[id]
	l := &p.queue.partitions[w.partition]
	a.span, a.limit, a.reach = e.span, p.latest(e), p.reachOf(e)
	if a.reason = p.ceiling(l, sh); a.reason != nil {
		a.fault = faultBound
		return false
	}
	if sh.vip != nil {
		if p.nominateVIP(w, id, sh, a) {
			return true
		}
	} else if p.start(w, id, sh, a) {
		return true
	}
	look := p.judge(sh)
	switch {
	case look.reason != nil:
		a.fault, a.reason = faultNever, look.reason
	case a.fault == faultRoom || a.fault == faultReserved:
		a.need = look.need
		return p.preempt(w, id, sh)
	}
	return false
}

// blocked notes that a gang waits, reserves nodes for it where that is due, and
// goes on.
func (p *pass) blocked(w *queueWalk, id int32, sh *shape, a *answer) {
	switch a.fault {
	case faultQuota:
		if !w.closed {
			p.awaitQuota(id, sh)
		}
		p.drop(w)
		return
	case faultBound, faultNever: // of the whole group, and in nobody's way
		p.drop(w)
		return
	case faultQuotaReserved:
		p.keptBack = true
		if w.filling {
			p.drop(w)
		} else {
			p.goOn(w, a)
		}
		return
	}
	p.queue.partitions[w.partition].waits = true
	p.keptBack = p.keptBack || a.fault == faultReserved
	switch {
	case p.settings.Passing == NoPassing:
		w.heap = nil // nobody passes it
	case w.filling:
		p.fillOn(w, a)
	case w.closed || p.settings.reservationsMax() == 0:
		p.goOn(w, a)
	case !p.reserve(w, id, sh) && w.reservations == 0 && w.futile < futileMax:
		p.goOn(w, a)
	case w.reservations == p.settings.reservationsMax() || w.futile > 0 || p.lone(w):
		p.fill(w)
	default:
		p.advance(w, w.heap[0].pos+1)
	}
}

// sooner reports whether an entry would be out of the way sooner than the one of
// its group that failed.
func (p *pass) sooner(e *entry, a *answer) bool {
	p.modelEntry(e)
	return e.span < a.span || p.latest(e) < a.limit || p.reachOf(e).within(a.reach)
}

// latest is how long an entry may run, as far as that matters: while nobody
// reserves nodes by limits alone all are alike.
func (p *pass) latest(e *entry) time.Duration {
	if p.promises.boundCount == 0 {
		return 0
	}
	return limitOf(e.job)
}

// goOn goes on with the next gang of the group that may have more luck: one
// that would end sooner.
func (p *pass) goOn(w *queueWalk, a *answer) {
	c := w.heap[0]
	queue, next := p.queue.groups[c.group].queue, c.pos+1
	if a.fault == faultRoom {
		next = int32(len(queue))
	}
	for int(next) < len(queue) && !p.sooner(&p.queue.entries[queue[next]], a) {
		next++
	}
	p.advance(w, next)
}

// started moves a gang from the queue to its nodes and into the plan.
func (p *pass) started(w *queueWalk, id int32, g *gang, placed []structs.RankPlacement) {
	p.note(id)
	e := &p.queue.entries[id]
	p.detach(id, true)
	e.stand, e.gang, e.nomination = running, g, nil
	p.attach(id, true)
	p.foresee(e, p.now)
	if p.takeSpare(e, g.quotaUsage); p.leavers != nil {
		p.leavers[e.project] = append(p.leavers[e.project], id)
	}
	if w != nil && w.shares != nil && g.pool == p.queue.partitions[w.partition].pool {
		w.shares[e.project].inUse += g.weight()
	}
	p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
		JobID: e.jobID, Subjob: e.index, Attempt: g.attempt, Spec: g.spec, Placements: placed,
	})
	p.ranks += len(placed)
	p.passed = p.passed || slices.ContainsFunc(p.walks, func(w queueWalk) bool { return w.reservations > 0 || w.closed })
}

// ceiling reports what the pool's record says against gangs of a shape.
func (p *pass) ceiling(l *partitionQueue, sh *shape) *structs.WaitReason {
	if l.record == nil || sh.pool == "" {
		return nil
	}
	if most := l.record.Ceilings.Nodes; most > 0 && sh.min > most {
		return overCeiling("scheduler.ceiling_nodes", "scheduler.ceiling_nodes_by", l, "nodes", sh.min, most)
	}
	if most := l.record.Ceilings.Devices; most > 0 {
		fewest := -1
		for i := range sh.needs {
			if count := int(sh.needs[i].rank.Devices) * sh.min; fewest < 0 || count < fewest {
				fewest = count
			}
		}
		if fewest > most {
			return overCeiling("scheduler.ceiling_devices", "scheduler.ceiling_devices_by", l, "devices", fewest, most)
		}
	}
	return nil
}

// overCeiling says that a gang is over a ceiling of its pool, and who set that where it
// was written down.
func overCeiling(id, known string, l *partitionQueue, what string, asked, most int) *structs.WaitReason {
	if by := l.record.CeilingsBy; by != "" {
		return waitFor(known, "pool", l.pool, what, asked, "most", most, "by", by)
	}
	return waitFor(id, "pool", l.pool, what, asked, "most", most)
}

// sortedEntries orders entries by job and subjob, for lists that people read.
func (q *queue) sortedEntries(ids []int32) []int32 {
	slices.SortFunc(ids, func(x, y int32) int {
		a, c := &q.entries[x], &q.entries[y]
		return cmp.Or(cmp.Compare(a.jobID, c.jobID), cmp.Compare(a.index, c.index))
	})
	return ids
}
