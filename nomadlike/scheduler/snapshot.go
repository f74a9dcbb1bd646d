package scheduler

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Limits of one plan, so that its log entry stays small. What is left over is
// taken by the next call.
const (
	GangsMax = 512  // gangs of one plan
	RanksMax = 4096 // placements of one plan, a single larger gang excepted
	WaitsMax = 1024 // explanations of one plan
)

// Limits of explanations and reservations.
const (
	// ReservationsDefault is how many blocked gangs keep nodes for themselves.
	ReservationsDefault = 4
	// ExplainMax is how many waiting gangs get figures and holders; those
	// behind them get a reason that does not change with every start, so that
	// a long queue does not fill the log.
	ExplainMax = 10
	// HoldersMax bounds the jobs that one explanation names.
	HoldersMax = 8
	// holderNodesMax bounds the nodes that are searched for holders.
	holderNodesMax = 32
)

// Snapshot is what Schedule needs to see of the state at one index. Package
// state's snapshot satisfies it through a thin coat. Nothing that it hands out
// is changed or kept by Schedule; Schedule calls it from its own goroutine and
// may iterate each sequence once.
type Snapshot interface {
	// Index is the state's index; it becomes the plan's SnapshotIndex.
	Index() uint64
	// Queue yields every subjob in state queued with its job. Any order is
	// right; the order of Compare saves a sort.
	Queue() iter.Seq2[*structs.Job, *structs.Subjob]
	// Nodes yields every registered node, whatever its status, with what it
	// holds; a nil usage holds nothing. Any order is right; by id saves a sort.
	Nodes() iter.Seq2[*structs.Node, *structs.Usage]
	// Holders yields the allocations that hold resources on a node. It is
	// called for a few nodes, and only to explain.
	Holders(nodeID string) iter.Seq[*structs.Allocation]
}

// Input is what Schedule decides on.
type Input struct {
	Snapshot     Snapshot
	Reservations int  // blocked gangs that keep nodes for themselves; 0: ReservationsDefault, negative: none
	Quiet        bool // place only: no explanations, for calls that follow each other quickly
}

// Compare orders the queue: higher tiers first, then earlier submission, then
// the index within a batch. A requeued subjob keeps its job's place. Negative:
// a is served before b.
func Compare(jobA *structs.Job, a *structs.Subjob, jobB *structs.Job, b *structs.Subjob) int {
	return cmp.Or(
		cmp.Compare(jobB.Priority.Rank(), jobA.Priority.Rank()),
		cmp.Compare(a.CreateIndex, b.CreateIndex),
		cmp.Compare(a.JobID, b.JobID),
		cmp.Compare(a.Index, b.Index),
	)
}

// entry is one queued subjob.
type entry struct {
	job    *structs.Job
	subjob *structs.Subjob
}

// queueOf lists the queue in its order.
func queueOf(snapshot Snapshot) []entry {
	var queue []entry
	for job, subjob := range snapshot.Queue() {
		queue = append(queue, entry{job, subjob})
	}
	before := func(a, b entry) int { return Compare(a.job, a.subjob, b.job, b.subjob) }
	if !slices.IsSortedFunc(queue, before) {
		slices.SortFunc(queue, before)
	}
	return queue
}

// seatsOf lists the nodes by id.
func seatsOf(snapshot Snapshot) []seat {
	var seats []seat
	for node, usage := range snapshot.Nodes() {
		seats = append(seats, newSeat(node, usage))
	}
	byID := func(a, b seat) int { return strings.Compare(a.node.ID, b.node.ID) }
	if !slices.IsSortedFunc(seats, byID) {
		slices.SortFunc(seats, byID)
	}
	return seats
}
