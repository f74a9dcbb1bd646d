// Package alloc decides what a node does with its allocations: which to
// prepare, when a command may start, what to stop and how hard, and what to
// report. It is pure: events in, effects out.
//
// Flow: Table takes what the server assigns and what the node's own work
// reports (Prepared, Started, Exited, ...), advances each allocation with
// Step and returns effects as data. Package run executes them in
// their order; nomadlike/sim runs the same tables on virtual time.
//
// Rules kept here: no command starts before its attempt is released; a
// command is started at most once for each allocation, a restart being a new
// attempt made by the server; what the node is not assigned, what a newer attempt
// supersedes and what the server has declared lost is killed without grace;
// statuses only move forward; a disconnected node changes nothing, except
// that strict jobs are killed when the lease ends.
//
// Limits: one task for each allocation, named "main". No clock, no chance,
// no I/O, no logging.
package alloc
