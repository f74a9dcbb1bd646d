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
//	alloc/<id>/assignment.cbor  what the server said, for a restarted agent
//	alloc/<id>/task/            the task's own directory
//	alloc/<id>/logs/            what it wrote, see plugins/driver/tasklog
//	alloc/<id>/rsh/             the socket of package rankshell
//
// Limits: one task for each allocation; no accelerators and no data yet.
// Package client never imports package server: the wall between them is the
// stream.
package client
