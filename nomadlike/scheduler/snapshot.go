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

// Snapshot is the newest state as a Board reads it; package state's snapshot
// satisfies it. What it hands out is shared: the board keeps it and never
// changes it. It is called from the goroutine of the board's owner only.
type Snapshot interface {
	// Index is the state's index; it becomes the plan's SnapshotIndex.
	Index() uint64
	// Changes lists what changed after the index since, so that a board that
	// stood at since stands at Index afterwards. When that is not known any more,
	// or since is 0, it lists everything and says so with Full. The order within
	// a list means nothing; a key may be listed though nothing about it changed.
	Changes(since uint64) Changes
}

// Changes is the difference between two states, as far as a Board cares.
type Changes struct {
	Full     bool // the lists are everything there is; what they leave out is gone
	Nodes    []NodeChange
	Subjobs  []SubjobChange
	Pools    []PoolChange
	Projects []ProjectChange
}

// NodeChange is a node whose record or usage changed.
type NodeChange struct {
	ID    string
	Node  *structs.Node  // nil: gone
	Usage *structs.Usage // nil: holds nothing
}

// SubjobChange is a subjob that changed in anything: its own row, its job's
// priority or time limit, its newest attempt (also RunningAt, CheckpointAt), or
// one of that attempt's allocations ceased to hold resources. Full lists those
// that have not ended; an ended or deleted one is listed when it was not before.
type SubjobChange struct {
	JobID   string
	Index   int
	Job     *structs.Job          // nil: gone
	Subjob  *structs.Subjob       // nil: gone
	Attempt *structs.Attempt      // the newest, when it has not ended; nil while queued
	Allocs  []*structs.Allocation // of Attempt, those that hold resources, by rank
}

// PoolChange is a pool whose record changed.
type PoolChange struct {
	Name string
	Pool *structs.Pool // nil: gone
}

// ProjectChange is a project whose record or usage changed.
type ProjectChange struct {
	Name    string
	Project *structs.Project      // nil: no record
	Usage   *structs.ProjectUsage // nil: holds nothing and used nothing of late
}

// Still is a state listed whole, for Schedule.
type Still interface {
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
	Snapshot     Still
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
func queueOf(snapshot Still) []entry {
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
func seatsOf(snapshot Still) []seat {
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
