// Package scheduler decides which queued gangs start now, on which nodes, and
// tells every other one why it waits.
//
// Flow: a Board holds all that the scheduler knows. server/queue Syncs it with
// each newer state, which costs what changed, and calls Pass; the plan goes into
// the log, where state.Apply asks feasible.GangProblem and feasible.VictimProblem,
// the same feasibility that decided here, before it accepts a gang. A forecast or
// a simulation clones a board, or fills an empty one, and drives it by hand.
// Which of the fitting nodes a gang gets is package placement's choice.
//
//	state ──Changes──► Board ──Pass──► plan: starts, nominations with victims, waits
//	                     │
//	                     └─Clone─► Submit, End, PutNode … Pass: virtual time
//
// A board has four parts, each with a check of its own (CheckInvariants): the queue
// with the gangs that run, the nodes with what stands there, the promises and
// reservations, and the accounts of projects. They do not know each other; what
// concerns two of them is a method of the board.
//
// A pass walks the queue of each pool (see partitionQueue) in its order:
//
//	tier, what an administrator moved, what is guaranteed before what is
//	borrowed, then submission or fair share
//
//	over a ceiling of the pool ────────────────────► waits, blocks nobody
//	over a quota ──────────────────────────────────► waits; the first of its project reserves its amount
//	larger than the cluster, or than what is ready ► waits, blocks nobody, says so
//	room for all its nodes ────────────────────────► starts; elastic ones with what there is
//	others must yield to it, and it then fits ─────► nominated for their nodes
//	no room ───────────────────────────────────────► waits; the first such gangs keep a
//	                                                 reserved start, see reservation
//
// Behind them a gang starts only if it delays no reservation: it ends before the
// reserved start, or takes nothing that the reserved gang will need. The first gang is
// promised a start, which time limits keep where they can, so that no gang starves when
// estimates are wrong again and again: see promiseOf and bind. Elsewhere estimates decide. Quota is reserved in the same two forms, see quotaReservation. When all
// reservations are made, the shortest fill in first. Nothing is ever half placed.
//
// Why it is fast: entries that are alike to the scheduler stand in one group, so
// one failure answers for all behind it; a shape that found no room is asked again
// only when some node came to have room for a rank of it; partition queues about which nothing
// changed are not walked; and when each node will be free is remembered for the
// shapes that ask.
//
// Limits: quotas and ceilings aside, a gang is weighed against one alternative at
// a time. A quota of one model of devices is reserved only for gangs that name it.
// Reserved nodes are picked by when they are free, not by how close they stand.
// Devices are counted whatever their kind where only times are estimated. Estimates
// of running gangs are renewed at certain ages, not at every pass.
//
// Everything here is pure: no clock, no chance but the seed, no log, and the
// plan does not depend on the order in which the board came to know things.
package scheduler
