package scheduler

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
	Backfill  Passing = iota // the first Reservations blocked gangs of a pool keep a reserved start, which nobody delays
	Easy                     // as Backfill, with one reservation in each pool
	NoPassing                // strict order: no job of a pool passes another
)

// Settings are the rules of a board. The zero value is what the product does.
type Settings struct {
	Reservations  int // blocked gangs of a pool that keep a reserved start; 0: ReservationsDefault, negative: none
	Order         Order
	Passing       Passing
	PreemptLonger bool // a queued job ends running ones that have more time left; for the simulator's srtf only
	Quiet         bool // place only: no explanations, for passes that follow each other quickly
	// Alone: nobody else carries out the board's plans, as in a forecast: victims
	// end at once and are queued again, and claims are placed by Pass itself.
	Alone bool
}
