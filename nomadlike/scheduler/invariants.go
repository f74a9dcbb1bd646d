package scheduler

import (
	"fmt"
	"slices"

	"nomadlike/nomadlike/structs"
)

// CheckInvariants reports everything on a board that must never be, in words; an
// empty list is a sound board. Each part answers for itself, and then for what
// it says about the others:
//
//	queue     every live subjob is found, and stands in one place: delayed, in the
//	          one group of its kind, with a nomination, or among those that run
//	nodes     every state is that of the floor's node and has free what the node has left;
//	          a record of a seat is on one node or free
//	promises  reservations and nominations are counted right, and nodes that are reserved
//	          know for whom
//	accounts  projects are found, and count what their nominations sum up to
//
// It walks everything: for tests and simulation, not for production. It changes
// nothing.
func (b *Board) CheckInvariants() []string {
	found := slices.Concat(b.queue.check(b.settings.Order), b.nodes.check(), b.promises.check(), b.accounts.check())
	f := &findings{found}
	if len(found) == 0 { // a part that is broken says nothing about its neighbours
		b.checkSeats(f)
		b.checkPromises(f)
	}
	return f.list
}

// findings collects what is wrong.
type findings struct{ list []string }

func (f *findings) add(format string, args ...any) {
	f.list = append(f.list, fmt.Sprintf(format, args...))
}

// check walks the queue. Within a group, entries stand by place where no estimate
// of run times orders them.
func (q *queue) check(order Order) []string {
	f := &findings{}
	free := make(map[int32]bool, len(q.freeEntry))
	for _, id := range q.freeEntry {
		free[id] = true
	}
	runs, idle := 0, 0
	for i := range q.entries {
		id, e := int32(i), &q.entries[i]
		if free[id] != (e.stand == gone) {
			f.add("queue: entry %d is free: %t, and stands at %d", id, free[id], e.stand)
		}
		if e.stand == gone {
			continue
		}
		if at, ok := q.found.find(q.entries, e.jobID, e.index); !ok || at != id {
			f.add("queue: %s is found at %d, not %d", e.key(), at, id)
		}
		if (e.stand == waiting) != (e.group >= 0) || (e.stand == running) != (e.run >= 0) {
			f.add("queue: %s stands at %d, in group %d and run %d", e.key(), e.stand, e.group, e.run)
		}
		switch e.stand {
		case delayed:
			idle++
			if !slices.Contains(q.idle, id) {
				f.add("queue: %s is delayed and not listed so", e.key())
			}
		case nominated:
			if e.nomination == nil {
				f.add("queue: %s has no nomination", e.key())
			}
		case running:
			if runs++; e.run >= 0 && (int(e.run) >= len(q.runs) || q.runs[e.run].entry != id) {
				f.add("queue: run %d is not that of %s", e.run, e.key())
			}
			if e.gang == nil || len(e.gang.seats) != len(e.gang.demands) {
				f.add("queue: %s runs without a demand for each seat", e.key())
			}
		}
	}
	if runs != len(q.runs) || idle != len(q.idle) {
		f.add("queue: %d run and %d are delayed, and %d and %d are listed so", runs, idle, len(q.runs), len(q.idle))
	}
	q.checkPartitions(f, order)
	return f.list
}

func (q *queue) checkPartitions(f *findings, order Order) {
	waits := 0
	for i := range q.partitions {
		l := &q.partitions[i]
		if l.id != int32(i) || q.partitionByPool[l.pool] != l.id {
			f.add("queue: partition queue %d of pool %s is found as %d", l.id, l.pool, q.partitionByPool[l.pool])
		}
		queued := 0
		for _, at := range l.groups {
			g := &q.groups[at]
			queued += len(g.queue)
			if g.key.partition != l.id || q.groupByKey[g.key] != at {
				f.add("queue: group %d of pool %s is found as %d", at, l.pool, q.groupByKey[g.key])
			}
			for k, id := range g.queue {
				e := &q.entries[id]
				own := groupKey{partition: e.partition, shape: e.shape, project: e.project, tier: int8(e.job.Priority.Rank()), moved: e.subjob.Moved}
				if e.stand != waiting || e.group != at || own != g.key {
					f.add("queue: %s is in group %d and not of it", e.key(), at)
				}
				if k > 0 && order == OrderPool && comparePlace(&q.entries[g.queue[k-1]], e) >= 0 {
					f.add("queue: %s stands behind %s", e.key(), q.entries[g.queue[k-1]].key())
				}
			}
		}
		if queued != l.queued {
			f.add("queue: %d wait for pool %s, and %d are counted", queued, l.pool, l.queued)
		}
		waits += queued
	}
	for i := range q.entries {
		if q.entries[i].stand == waiting {
			waits--
		}
	}
	if waits != 0 {
		f.add("queue: %d more stand in groups than wait", waits)
	}
}

// check walks the nodes.
func (ns *nodes) check() []string {
	f := &findings{}
	records := make([]int, len(ns.occupants))
	for i := range ns.states {
		s := &ns.states[i]
		for record, steps := s.seats, 0; record >= 0 && steps <= len(ns.occupants); record, steps = ns.occupants[record].next, steps+1 {
			records[record]++
		}
		if i < ns.floor.Indexes() && ns.floor.At(i) != s.node {
			f.add("nodes: node %d is not the floor's node", i)
		}
		if s.node == nil {
			continue
		}
		if _, usage := ns.floor.Node(s.node.ID); ns.room(int32(i)) != s.node.Free(usage) {
			f.add("nodes: %s has %+v free, and %+v is counted", s.node.Name, s.node.Free(usage), ns.room(int32(i)))
		}
		if s.build < 0 || int(s.build) >= len(ns.builds.list) {
			f.add("nodes: %s is built like nothing", s.node.Name)
		}
		if ns.listed && (int(s.place) >= len(ns.every) || ns.every[s.place] != int32(i)) {
			f.add("nodes: %s does not stand at place %d", s.node.Name, s.place)
		}
	}
	for record, steps := ns.freeOccupant, 0; record >= 0 && steps <= len(ns.occupants); record, steps = ns.occupants[record].next, steps+1 {
		records[record]++
	}
	for record, count := range records {
		if count != 1 {
			f.add("nodes: the record %d of a seat is in %d lists", record, count)
		}
	}
	return f.list
}

// check walks the reservations.
func (p *promises) check() []string {
	f := &findings{}
	reserved, bound := 0, 0
	keeper := make(map[int32]int)
	for i, r := range p.reservations {
		if r == nil {
			continue
		}
		if reserved++; r.bounded {
			bound++
		}
		if len(r.nodes) != len(r.spare) {
			f.add("promises: reservation %d has %d nodes, and spare room of %d", i, len(r.nodes), len(r.spare))
		}
		for _, at := range r.nodes {
			if other, taken := keeper[at]; taken {
				f.add("promises: node %d is reserved by %d and %d", at, other, i)
			}
			keeper[at] = i
		}
	}
	if reserved != p.reservationCount || bound != p.boundCount {
		f.add("promises: %d are reserved, %d of them by limits; %d and %d are counted", reserved, bound, p.reservationCount, p.boundCount)
	}
	return f.list
}

// check walks the projects.
func (a *accounts) check() []string {
	f := &findings{}
	if len(a.projectByName) != len(a.projects) {
		f.add("accounts: %d projects have %d names", len(a.projects), len(a.projectByName))
	}
	for i := range a.projects {
		if p := &a.projects[i]; a.projectByName[p.name] != int32(i) {
			f.add("accounts: project %s is found at %d, not %d", p.name, a.projectByName[p.name], i)
		}
	}
	return f.list
}

// checkSeats compares the gangs of the queue with what stands on the nodes.
func (b *Board) checkSeats(f *findings) {
	type seat struct{ entry, rank, at int32 }
	seats := make(map[seat]bool)
	for i := range b.nodes.states {
		for record := b.nodes.states[i].seats; record >= 0; record = b.nodes.occupants[record].next {
			occupant := b.nodes.occupants[record]
			seats[seat{occupant.entry, occupant.rank, int32(i)}] = true
		}
	}
	for i := range b.queue.runs {
		id := b.queue.runs[i].entry
		gang := b.queue.entries[id].gang
		for rank := range gang.seats {
			own := seat{id, int32(rank), int32(gang.seats[rank].Index())}
			if !seats[own] {
				f.add("nodes: rank %d of %s has no seat on node %d", rank, b.queue.entries[id].key(), own.at)
			}
			delete(seats, own)
		}
	}
	for s := range seats {
		f.add("nodes: entry %d has a seat on node %d that its gang does not know", s.entry, s.at)
	}
}

// checkPromises compares nominations and reservations with entries, nodes and
// projects.
func (b *Board) checkPromises(f *findings) {
	used := make(map[int32]structs.QuotaUsage)
	nominations := 0
	for i := range b.queue.entries {
		if e := &b.queue.entries[i]; e.nomination != nil {
			nominations++
			used[e.project] = used[e.project].Add(e.nomination.quotaUsage)
			if !slices.Contains(b.promises.nominations, int32(i)) {
				f.add("promises: that to %s is not listed", e.key())
			}
		}
	}
	if nominations != len(b.promises.nominations) {
		f.add("promises: %d were made, and %d are listed", nominations, len(b.promises.nominations))
	}
	for i := range b.accounts.projects {
		if p := &b.accounts.projects[i]; len(p.nominated.Sub(used[int32(i)])) > 0 {
			f.add("accounts: project %s has nominations of %v, and %v is counted", p.name, used[int32(i)], p.nominated)
		}
	}
	for i := range b.nodes.states {
		s := &b.nodes.states[i]
		if s.reservation == 0 {
			continue
		}
		at := int(s.reservation) - 1
		if at >= len(b.promises.reservations) || b.promises.reservations[at] == nil || b.promises.reservations[at].nodes[s.rank] != int32(i) {
			f.add("promises: node %d is reserved by no reservation", i)
		}
	}
}
