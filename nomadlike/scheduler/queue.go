package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// partitionQueue is the queue of one pool. Jobs that name no pool stand in the partition queue of
// structs.PoolDefault.
type partitionQueue struct {
	id     int32
	pool   string
	record *structs.Pool
	groups []int32 // every group of the partition queue
	queued int     // entries in them
	dirty  bool    // something changed since its last walk that may let a gang start
	stale  bool    // something changed that may change an explanation
	waits  bool    // a gang waits for room, as of the newest walk
}

// groupKey is what the entries of a group have in common: what was found out
// for the first of them holds for all behind it.
type groupKey struct {
	partition int32
	shape     int32
	project   int32
	tier      int8
	moved     bool
}

// group is a part of a partition queue's queue in its order.
type group struct {
	key   groupKey
	queue []int32 // entries, the first to be served first
	odd   []int32 // entries that may say something else than tail

	tail       *structs.WaitReason // what those say that are not explained one by one
	searchedAt uint64              // changes of the board when victims were looked for in vain
	answer     answer              // of the newest walk
}

// before orders two waiting entries of one partition queue and negative means that x is
// served first. Both stand in groups.
func (b *Board) before(x, y *entry) int {
	if c := cmp.Compare(y.job.Priority.Rank(), x.job.Priority.Rank()); c != 0 {
		return c
	}
	switch b.settings.Order {
	case OrderShortest, OrderRemaining:
		if c := cmp.Compare(x.span, y.span); c != 0 {
			return c
		}
	}
	return comparePlace(x, y)
}

// comparePlace orders by place, submission and index.
func comparePlace(x, y *entry) int {
	if c := cmp.Compare(placeOf(x.subjob), placeOf(y.subjob)); c != 0 {
		return c
	}
	if c := cmp.Compare(x.subjob.CreateIndex, y.subjob.CreateIndex); c != 0 {
		return c
	}
	if c := strings.Compare(x.jobID, y.jobID); c != 0 {
		return c
	}
	return cmp.Compare(x.index, y.index)
}

// placeOf is the place of a subjob in its tier; one that was never given any
// stands by its creation.
func placeOf(s *structs.Subjob) uint64 {
	if s.Place == 0 {
		return s.CreateIndex
	}
	return s.Place
}

// Compare orders the queue of a pool in the order of submission: higher tiers
// first, then the place, which is earlier submission unless an administrator
// moved the job, then the index within a batch. A requeued subjob keeps its
// job's place. Negative: a is served before b. Fair share is the board's.
func Compare(jobA *structs.Job, a *structs.Subjob, jobB *structs.Job, b *structs.Subjob) int {
	return cmp.Or(
		cmp.Compare(jobB.Priority.Rank(), jobA.Priority.Rank()),
		cmp.Compare(placeOf(a), placeOf(b)),
		cmp.Compare(a.CreateIndex, b.CreateIndex),
		cmp.Compare(a.JobID, b.JobID),
		cmp.Compare(a.Index, b.Index),
	)
}

// poolOf is the pool in whose queue a job stands.
func poolOf(job *structs.Job) string {
	if job.Placement.Pool == "" {
		return structs.PoolDefault
	}
	return job.Placement.Pool
}

// partitionOf returns the partition queue of a pool, and makes it when it is new.
func (q *queue) partitionOf(pool string) *partitionQueue {
	if id, ok := q.partitionByPool[pool]; ok {
		return &q.partitions[id]
	}
	id := int32(len(q.partitions))
	q.partitionByPool[pool] = id
	q.partitions = append(q.partitions, partitionQueue{id: id, pool: pool})
	return &q.partitions[id]
}

// enqueue puts a waiting entry into its group.
func (b *Board) enqueue(id int32) {
	e := &b.queue.entries[id]
	l := &b.queue.partitions[e.partition]
	key := groupKey{partition: e.partition, shape: e.shape, project: e.project, tier: int8(e.job.Priority.Rank()), moved: e.subjob.Moved}
	at, ok := b.queue.groupByKey[key]
	if !ok {
		if last := len(b.queue.freeGroup) - 1; last >= 0 {
			at = b.queue.freeGroup[last]
			b.queue.freeGroup = b.queue.freeGroup[:last]
			b.queue.groups[at] = group{key: key}
		} else {
			at = int32(len(b.queue.groups))
			b.queue.groups = append(b.queue.groups, group{key: key})
		}
		b.queue.groupByKey[key] = at
		l.groups = append(l.groups, at)
	}
	g := &b.queue.groups[at]
	e.group = at
	if b.settings.Order != OrderPool {
		b.modelEntry(e)
	}
	if last := len(g.queue) - 1; last < 0 || b.before(&b.queue.entries[g.queue[last]], e) < 0 {
		g.queue = append(g.queue, id)
	} else {
		g.queue = slices.Insert(g.queue, b.search(g, e), id)
	}
	b.queue.distrust(id)
	l.queued++
	l.dirty = true
}

// search returns the place in the group at which an entry stands, or would.
func (b *Board) search(g *group, e *entry) int {
	at, _ := slices.BinarySearchFunc(g.queue, e, func(id int32, e *entry) int { return b.before(&b.queue.entries[id], e) })
	return at
}

// dequeue takes a waiting entry out of its group. Its place in the list of odd
// entries is given up when that list is read next.
func (b *Board) dequeue(id int32) {
	e := &b.queue.entries[id]
	g := &b.queue.groups[e.group]
	switch at := b.search(g, e); at {
	case 0:
		g.queue = g.queue[1:]
	default:
		g.queue = slices.Delete(g.queue, at, at+1)
	}
	l := &b.queue.partitions[e.partition]
	l.queued--
	l.dirty, l.stale = true, true
	e.group, e.oddIn = -1, -1
}

// dropEmpty forgets the groups of a partition queue that have no entries.
func (q *queue) dropEmpty(l *partitionQueue) {
	l.groups = slices.DeleteFunc(l.groups, func(at int32) bool {
		if g := &q.groups[at]; len(g.queue) == 0 {
			delete(q.groupByKey, g.key)
			*g = group{}
			q.freeGroup = append(q.freeGroup, at)
			return true
		}
		return false
	})
}

// reorder sorts the groups anew after run time estimates changed.
func (b *Board) reorder() {
	if b.settings.Order == OrderPool {
		return
	}
	for i := range b.queue.entries {
		if b.queue.entries[i].stand == waiting {
			b.modelEntry(&b.queue.entries[i])
		}
	}
	for i := range b.queue.groups {
		g := &b.queue.groups[i]
		slices.SortFunc(g.queue, func(x, y int32) int { return b.before(&b.queue.entries[x], &b.queue.entries[y]) })
	}
}
