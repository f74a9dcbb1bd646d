// Package scheduler decides which queued gangs start now, on which nodes, and
// tells every other one why it waits.
//
// Flow: server/queue hands Schedule a snapshot of the state, the time and a
// seed; Schedule walks the queue once and returns a structs.Plan. A gang is in
// the plan with all its nodes or not at all. server/planapply proposes the
// plan, and state.Apply asks structs.GangProblem, the same feasibility function
// that places here, before it accepts a gang.
//
// The walk, in queue order (tier, then submission, then index):
//
//	restart delay not over ──────────────────────► waits, blocks nobody
//	larger than the cluster, or than what is ready ► waits, blocks nobody, says so
//	room for all its nodes ──────────────────────► placed
//	no room ─────────────────────────────────────► waits; the first such gangs reserve
//	                                               the nodes where they are nearest
//	                                               to starting
//
// A later job may start on a reserved node only if it takes nothing there that
// the reserved gang lacks or would then lack. So the first blocked gang is
// never delayed by anything behind it: on its nodes, what it needs is only ever
// freed. When other nodes come nearer to freeing, the reservation moves there,
// and its sum of free shares only grows. Every gang that fits the ready nodes
// therefore starts after finitely many ends of running jobs; it waits for
// tiers above it as long as they keep coming, and its explanation says so.
//
// Limits: no estimates of run times yet, so a reservation has no start time
// and a short job may wait beside an idle reserved node. No preemption, quota,
// elastic sizes, topology between nodes, or data locality yet.
//
// Everything here is pure: no clock, no chance but the seed, no log, and the
// plan does not depend on the order in which the snapshot lists nodes or jobs.
package scheduler
