package scheduler

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Submit puts a subjob into the queue. The board keeps both and never changes
// them. A subjob that is on the board already is replaced.
func (b *Board) Submit(job *structs.Job, subjob *structs.Subjob) {
	if id, ok := b.queue.found.find(b.queue.entries, subjob.JobID, subjob.Index); ok {
		b.detach(id, true)
		b.queue.remove(id)
	}
	e := b.newEntry(job, subjob)
	e.stand = waiting
	switch {
	case subjob.Held():
		e.stand = held
	case subjob.NotBefore > b.now:
		e.stand = delayed
	}
	b.attach(b.queue.add(e), true)
}

// Withdraw takes a subjob out of the queue, with what was nominated for it;
// false: it did not wait.
func (b *Board) Withdraw(jobID string, subjob int) bool {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand == running {
		return false
	}
	b.detach(id, true)
	b.queue.remove(id)
	return true
}

// End frees what a running subjob uses and forgets it; false: it does not run.
// The next pass books what it used, for fair share.
func (b *Board) End(jobID string, subjob int) bool {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand != running {
		return false
	}
	b.spend(&b.queue.entries[id])
	b.detach(id, true)
	b.queue.remove(id)
	return true
}

// Requeue ends a running subjob and queues it again at its old place, as when
// its nodes are lost or it is preempted; false: it does not run.
func (b *Board) Requeue(jobID string, subjob int) bool {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand != running {
		return false
	}
	b.requeue(id)
	return true
}

func (b *Board) requeue(id int32) {
	e := &b.queue.entries[id]
	if e.stand == running {
		b.spend(e)
		b.detach(id, true)
	}
	again := *e.subjob
	again.State, again.Attempt, again.QueuedAt = structs.JobQueued, e.gang.attempt, b.now
	again.NotBefore, again.Nomination, again.NoPassingAt, again.Wait = 0, nil, 0, nil
	e.subjob, e.gang, e.nomination, e.stand, e.recorded, e.strictAt = &again, nil, nil, waiting, nil, 0
	e.modelled = 0
	b.attach(id, true)
}

// Started notes that every rank of a gang runs since at: time limits and
// estimates count from there.
func (b *Board) Started(jobID string, subjob int, at structs.UnixNano) bool {
	id, ok := b.queue.found.find(b.queue.entries, jobID, subjob)
	if !ok || b.queue.entries[id].stand != running {
		return false
	}
	e := &b.queue.entries[id]
	own := *e.gang
	own.runningAt = at
	e.gang = &own
	b.queue.runs[e.run].again = 0
	return true
}

// PutNode makes or changes a node and what it uses, which counts the gangs on
// the board; a nil node removes it. Gangs on it are not ended.
func (b *Board) PutNode(id string, node *structs.Node, usage *structs.Usage) {
	before, known := b.nodes.floor.Index(id)
	if node == nil {
		if known {
			b.removeNode(int32(before), id)
		}
		return
	}
	var room capacity.Amount
	allocs := 0
	if known {
		room, allocs = b.nodes.floor.Free(before), b.nodes.floor.Allocs(before)
	}
	b.nodes.floor.Put(node, usage)
	at, _ := b.nodes.floor.Index(id)
	changed := at < len(b.nodes.states) && b.nodes.states[at].node != nil && b.nodes.states[at].node != node
	b.putState(int32(at), node, usage, room, allocs)
	if changed {
		b.reseat(int32(at))
	}
}

func (b *Board) removeNode(at int32, id string) {
	b.nodes.floor.Remove(id)
	s := &b.nodes.states[at]
	// Seats that point here would mean another node one day.
	for s.seats >= 0 {
		b.unseat(b.nodes.occupants[s.seats].entry, at)
	}
	b.touch(at)
	b.nodes.countWindows(s.node, nil)
	*s = nodeState{seats: -1, partition: s.partition}
	b.nodes.listed = false
	b.nodes.built++
}

// unseat makes a gang forget its seat on a node.
func (b *Board) unseat(id, at int32) {
	e := &b.queue.entries[id]
	b.unsettle(id, false)
	own := *e.gang
	own.seats, own.demands, own.allocs = nil, nil, nil
	for rank := range e.gang.seats {
		if int32(e.gang.seats[rank].Index()) == at {
			continue
		}
		own.seats, own.demands = append(own.seats, e.gang.seats[rank]), append(own.demands, e.gang.demands[rank])
		if e.gang.allocs != nil {
			own.allocs = append(own.allocs, e.gang.allocs[rank])
		}
	}
	e.gang = &own
	b.settle(id, false)
}

// NodeUsage is what a node runs on the board now, for PutNode; nil: nothing,
// or no such node.
func (b *Board) NodeUsage(id string) *structs.Usage {
	_, usage := b.nodes.floor.Node(id)
	return usage
}

// PutPool makes or changes the record of a pool; nil removes it.
func (b *Board) PutPool(name string, pool *structs.Pool) {
	l := b.queue.partitionOf(name)
	l.record = pool
	if pool == nil {
		b.nodes.floor.RemovePool(name)
	} else {
		b.nodes.floor.PutPool(pool)
	}
	b.nodes.ableCells, b.nodes.ableWidth = nil, 0
	b.nodes.built++
	b.changes++
	b.nodes.forgetGains()
	b.nodes.forgetTouches()
	b.queue.soilAll()
}

// PutProject makes or changes the record of a project; nil removes it.
func (b *Board) PutProject(name string, record *structs.Project) {
	id := b.accounts.projectOf(name)
	p := &b.accounts.projects[id]
	p.record = record
	b.changes++
	b.queue.soilAll()
	if !p.counts() {
		return
	}
	for _, r := range b.queue.runs { // those that nobody counted before
		e := &b.queue.entries[r.entry]
		if e.project != id || e.gang.quotaUsage != nil {
			continue
		}
		own := *e.gang
		for rank, placed := range b.nodes.floor.Placements(own.seats) {
			if node := b.nodes.states[own.seats[rank].Index()].node; node != nil {
				own.quotaUsage = own.quotaUsage.Add(structs.QuotaUsageOf(e.job.SpecOf(own.spec, rank, len(own.seats)), node, placed.Devices))
			}
		}
		e.gang = &own
		b.countQuota(id, own.quotaUsage, +1)
	}
}

// SetPriority changes the tier of a job; it bears on what of it waits. False:
// the board does not know the job.
func (b *Board) SetPriority(jobID string, priority structs.Priority) bool {
	return b.change(jobID, func(e *entry) {
		job := *e.job
		job.Priority = priority
		e.job = &job
	})
}

// Move puts a job in another place within its tier, as an administrator may.
func (b *Board) Move(jobID string, place uint64) bool {
	return b.change(jobID, func(e *entry) {
		subjob := *e.subjob
		subjob.Place, subjob.Moved = place, true
		e.subjob = &subjob
	})
}

// change replaces something about every subjob of a job.
func (b *Board) change(jobID string, how func(*entry)) bool {
	found := false
	for id := range b.queue.entries {
		e := &b.queue.entries[id]
		if e.stand == gone || e.jobID != jobID {
			continue
		}
		found = true
		if e.stand == waiting {
			b.dequeue(int32(id))
			how(e)
			b.enqueue(int32(id))
		} else {
			how(e)
		}
	}
	return found
}
