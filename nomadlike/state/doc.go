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
// Nodes can be nominated for a gang while others still leave them (apply_nomination.go):
// every command ends with a look at the nominations that it touched, so that the
// entry which frees the last node is the entry in which the gang starts. What
// projects hold is kept with every allocation, and booked hour by hour when it
// ends (usage_project.go). Planning keeps in step by Snapshot.Changes, from a
// bounded journal of what was touched (journal.go).
//
// Apply is deterministic: it reads no clock and no randomness (time is the
// command's), ranges over no map into an output, and so replicas that applied
// the same log give the same Hash. The machines that decide what may follow
// what are drawn on the types of package structs; apply only asks them.
//
// Limits: everything is in memory. Events, idempotency keys, histories,
// ledgers, past runs and forecasts are bounded by the constants of bounds.go.
// Rows that were handed out are shared and must not be changed by anybody: copy
// first.
package state
