// Package client is the node: it keeps one stream to a server, runs what it
// is assigned, and lets other agents read logs and run commands in its tasks.
//
// Flow: package session brings assignments; the loop gives them, and every
// answer of the node's own work, to the pure tables of package alloc and
// carries out the effects: states go to package store, reports back to the
// session, and prepare, start, recover and stop run in goroutines of their
// own against the drivers. Tasks outlive the agent: Run leaves them running
// when it ends, and takes them over when it begins.
//
//	server ──session──► loop ──► alloc.Table ──effects──► store, session, drivers
//	                     ▲                                        │
//	                     └───────────────events───────────────────┘
//
// Of an allocation there is, under the data directory,
//
//	alloc/<id>/task/  the task's own directory
//	alloc/<id>/logs/  what it wrote, see plugins/driver/tasklog
//	alloc/<id>/rsh/   the socket of package rankshell, for MPI
//
// What a restarted agent must know at once is in the store; the rest the
// server says again. A task of which the store knows nothing waits for the
// server's word too: it goes on if it is still assigned, and is killed if not.
//
// Device plugins tell what accelerators there are and how they are; the loop
// registers that, prepares devices for tasks, and moves work away from those
// that fail (devices.go, cards.go). links.go looks at the network cards.
//
// Limits: one task for each allocation; no data yet.
// Package client never imports package server: the wall between them is the
// stream.
package client
