package scheduler

import (
	"time"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// stand is where a live subjob stands on the board.
//
//	held ──those it waits for got as far as it wants──► delayed or waiting
//
//	delayed ──its time comes──► waiting ──placed──► running ──ends──► gone
//	                               │  ▲                ▲
//	             others must leave │  │ refused        │ the nodes are free
//	                               ▼  │                │
//	                            nominated ─────────────┘
type stand uint8

const (
	gone      stand = iota // the slot is free
	held                   // queued, but not before other jobs got somewhere, or others of its job ended: nothing looks at it
	delayed                // queued, but not before a time
	waiting                // queued, in a group
	nominated              // queued, with nodes nominated for it
	running                // occupies nodes
)

// entry is one live subjob. Entries lie in one slice, so that a clone of the
// board is a few moves of memory; what they point to is shared between clones
// and never changed.
type entry struct {
	job       *structs.Job
	subjob    *structs.Subjob
	jobID     string
	index     int
	stand     stand
	shape     int32
	project   int32
	partition int32
	group     int32 // while waiting, -1 otherwise
	oddIn     int32 // group that lists it as odd, -1: none
	run       int32 // its place in the list of runs while it occupies nodes

	recorded *structs.WaitReason // the explanation that the state has, or will have
	strictAt structs.UnixNano    // the start that was promised, after which limits alone count on the nodes reserved for it; 0: none yet

	modelled uint32 // version of the estimates behind likely and span
	likely   predict.Estimate
	span     time.Duration // estimated run time from its start on; spanUnknown: any length

	gang       *gang // of a running or nominated one
	nomination *nomination
}

func (e *entry) is(jobID string, subjob int) bool { return e.index == subjob && e.jobID == jobID }

// queued reports whether it stands in the queue, whatever it waits for.
func (e *entry) queued() bool {
	return e.stand == held || e.stand == delayed || e.stand == waiting || e.stand == nominated
}

func (e *entry) key() string { return structs.SubjobKey(e.jobID, e.index) }

// gang is what an attempt uses. It is not changed once it is on the board,
// but replaced.
type gang struct {
	attempt      uint64
	spec         int // index into Job.Resources
	seats        []placement.Seat
	demands      []capacity.Amount     // by seat
	allocs       []*structs.Allocation // by seat; nil: placed by this board, or not known
	devices      int                   // of all seats
	cpu          int64                 // of all seats
	pool         string                // of rank 0
	quotaUsage   structs.QuotaUsage
	placedAt     structs.UnixNano
	runningAt    structs.UnixNano // 0: not yet
	checkpointAt structs.UnixNano
	endingAt     structs.UnixNano // 0: not ending
	serial       uint64           // of the pass that placed it, 0: it came with the state
	left         int              // ranks that take part, which may be fewer than seats
	whole        bool             // as many nodes as the job asked for, or ranks have ended
}

// nomination is the nodes nominated for a queued gang, or to a running one
// that changes its size.
type nomination struct {
	nodes      []int32 // floor indexes
	spec       int
	victims    []structs.AttemptKey
	quotaUsage structs.QuotaUsage // what it will count in its project's quota
	own        bool               // the victim is the gang's own attempt: a change of size
}

// since is when the work that an end would lose began: the newest checkpoint,
// or the start.
func (g *gang) since() structs.UnixNano {
	return max(g.runningAt, g.checkpointAt)
}

// loss is the device time that ending the gang at now would lose, cores
// counting as devices at coresPerDevice. What does not run yet loses nothing.
func (g *gang) loss(now structs.UnixNano) float64 {
	if g.runningAt == 0 || now <= g.since() {
		return 0
	}
	return now.Sub(g.since()).Seconds() * g.weight()
}

// weight is what the gang counts in fair share and losses, in devices.
func (g *gang) weight() float64 {
	return float64(g.devices) + float64(g.cpu)/(1000*coresPerDevice)
}
