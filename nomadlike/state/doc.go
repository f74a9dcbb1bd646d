// Package state is the meeting place of all rooms: what the cluster knows, in
// versioned tables that every server keeps alike. Rooms read snapshots, watch
// them change, and propose commands; nobody else writes here.
//
// Flow: the log hands committed commands to Apply in order. Each command is
// judged against the tables (apply_*.go), and either changes them in one
// transaction or is refused with a reason and changes nothing. Readers take a
// Snapshot, which never changes, and wait on the channels of its Watch twins.
// What happens to an object becomes an event; Follow reads events in strict
// order without gaps.
//
//	command ──► Apply ──► judge ──► rows ──► Snapshot, Watch ──► readers
//	                        │         └────► events ──► Follow ──► readers
//	                        └ refused: *structs.Error, nothing changed
//
// Apply is deterministic: it reads no clock and no randomness (time is the
// command's), ranges over no map into an output, and so replicas that applied
// the same log give the same Hash. The machines that decide what may follow
// what are drawn on the types of package structs; apply only asks them.
//
// Limits: everything is in memory. Events, idempotency keys and histories are
// bounded by the constants of bounds.go. Rows that were handed out are shared
// and must not be changed by anybody: copy first.
package state
