package scheduler

import (
	"cmp"
	"iter"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Queued is a subjob that waits, at its place.
type Queued struct {
	Job       *structs.Job
	Subjob    *structs.Subjob
	Pool      string // in whose queue it stands
	Position  int    // there, from 1
	Nominated bool   // nodes are nominated for it
	Expected  bool   // Span is an estimate or a limit, not a guess into the blue
	Span      structs.Duration
}

// Running is a gang that occupies nodes.
type Running struct {
	Job          *structs.Job
	Subjob       *structs.Subjob
	Attempt      uint64
	Spec         int      // index into Job.Resources
	Nodes        []string // ids by rank; ranks that ended are left out
	PlacedAt     structs.UnixNano
	RunningAt    structs.UnixNano // when every rank ran, 0: not yet
	CheckpointAt structs.UnixNano
	Ending       bool             // its ranks are being stopped
	Again        bool             // Ending: it is queued again then
	End          structs.UnixNano // estimated at the newest pass; 0: not known
}

// Queued yields what waits: pool by pool, by name, each in the order in which
// it was served at the newest pass.
func (b *Board) Queued() iter.Seq[Queued] {
	return func(yield func(Queued) bool) {
		for _, list := range b.queues() {
			for i, id := range list {
				e := &b.queue.entries[id]
				b.modelEntry(e)
				q := Queued{Job: e.job, Subjob: e.subjob, Pool: b.queue.partitions[e.partition].pool, Position: i + 1, Nominated: e.stand == nominated}
				if q.Expected = e.span != spanUnknown; q.Expected {
					q.Span = structs.Duration(e.span)
				}
				if !yield(q) {
					return
				}
			}
		}
	}
}

// queues lists what waits by partition queue, partition queues by the name of their pool.
func (b *Board) queues() [][]int32 {
	lists := make([][]int32, len(b.queue.partitions))
	for id := range b.queue.entries {
		if e := &b.queue.entries[id]; e.queued() {
			b.modelEntry(e)
			lists[e.partition] = append(lists[e.partition], int32(id))
		}
	}
	for i := range lists {
		if len(lists[i]) == 0 {
			continue
		}
		order := b.orderOf(&b.queue.partitions[i], b.now)
		slices.SortFunc(lists[i], func(x, y int32) int {
			a, c := &b.queue.entries[x], &b.queue.entries[y]
			if (a.stand == held) != (c.stand == held) { // they stand behind all that may start
				return first(c.stand == held)
			}
			return order(a, c)
		})
	}
	byPool := make([]int, len(b.queue.partitions))
	for i := range byPool {
		byPool[i] = i
	}
	slices.SortFunc(byPool, func(x, y int) int { return cmp.Compare(b.queue.partitions[x].pool, b.queue.partitions[y].pool) })
	sorted := make([][]int32, 0, len(lists))
	for _, i := range byPool {
		sorted = append(sorted, lists[i])
	}
	return sorted
}

// Running yields the gangs that occupy nodes, by job id and subjob.
func (b *Board) Running() iter.Seq[Running] {
	return func(yield func(Running) bool) {
		ids := make([]int32, 0, len(b.queue.runs))
		for i := range b.queue.runs {
			ids = append(ids, b.queue.runs[i].entry)
		}
		for _, id := range b.queue.sortedEntries(ids) {
			if !yield(b.runningOf(&b.queue.entries[id])) {
				return
			}
		}
	}
}

func (b *Board) runningOf(e *entry) Running {
	g := e.gang
	r := Running{
		Job: e.job, Subjob: e.subjob, Attempt: g.attempt, Spec: g.spec, PlacedAt: g.placedAt, RunningAt: g.runningAt,
		CheckpointAt: g.checkpointAt, Ending: g.endingAt != 0,
		Again: g.endingAt != 0 && e.subjob.StopIntended == structs.JobQueued,
	}
	if end := b.queue.runs[e.run].end; end != never {
		r.End = end
	}
	for i := range g.seats {
		if node := b.nodes.states[g.seats[i].Index()].node; node != nil {
			r.Nodes = append(r.Nodes, node.ID)
		}
	}
	return r
}
