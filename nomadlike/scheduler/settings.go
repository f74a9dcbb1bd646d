package scheduler

import (
	"reflect"
	"time"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// Order is how the queue of a pool is ordered within a tier.
type Order int

// The orders of a queue.
const (
	OrderPool      Order = iota // as the pool's record says: submission, or fair share
	OrderShortest               // shortest estimated run time first, whatever the pool says (sjf)
	OrderRemaining              // shortest remaining time first (srtf); with PreemptLonger
)

// Passing is how far a later job may start before an earlier one that waits.
type Passing int

// The ways of passing.
const (
	Backfill  Passing = iota // the first blocked gang of a pool has a promised start, and up to Reservations a reserved one
	Easy                     // one reserved start in each pool, by estimates alone; a reference to compare with
	NoPassing                // strict order: no job of a pool passes another
)

// Settings are the rules of a board. The zero value is what the product does,
// but for its Model.
type Settings struct {
	Reservations  int // blocked gangs of a pool that have a reserved start; 0: ReservationsDefault, negative: none
	Order         Order
	Passing       Passing
	PreemptLonger bool // a queued job ends running ones that have more time left; for the simulator's srtf only
	Fit           placement.Fit
	Quiet         bool // place only: no explanations, for passes that follow each other quickly
	// Alone: nobody else carries out the board's plans, as in a forecast: victims
	// end at once and are queued again, and nominations are placed by Pass itself. Such
	// a board is not synced any more.
	Alone bool

	// Model estimates run times; nil: time limits alone, and no limit is any
	// length. Limits bound estimates in any case.
	Model Estimates
	// Runtime, when set, reports exactly how long a queued subjob will run from its
	// start on, instead of any estimate; for simulations that know.
	Runtime func(job *structs.Job, subjob int) time.Duration
	// Prefer, when set, reports how much a node is worth to a job for what it uses
	// already, prepared data for instance; nodes with more come first.
	Prefer func(job *structs.Job, node *structs.Node) int
	// Prefers reports which jobs Prefer is asked for: to ask for every node takes
	// time. nil: all jobs.
	Prefers func(job *structs.Job) bool
}

// sameRules reports whether what was found out under s holds under other too.
// Functions cannot be compared: they count as changed when one is set.
func (s *Settings) sameRules(other *Settings) bool {
	return s.Reservations == other.Reservations && s.Order == other.Order && s.Passing == other.Passing &&
		s.PreemptLonger == other.PreemptLonger && s.Fit == other.Fit &&
		sameModel(s.Model, other.Model) && s.Runtime == nil && other.Runtime == nil && (s.Prefer == nil) == (other.Prefer == nil)
}

func sameModel(a, b Estimates) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

// reservationsMax is how many blocked gangs of a pool have a reserved start.
func (s *Settings) reservationsMax() int {
	switch {
	case s.Passing == NoPassing || s.Reservations < 0:
		return 0
	case s.Passing == Easy:
		return 1
	case s.Reservations == 0:
		return ReservationsDefault
	}
	return s.Reservations
}
