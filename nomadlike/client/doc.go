// Package client is the node: it keeps one stream to a server, runs what it
// is assigned, and lets other agents read logs and run commands in its tasks.
//
// Flow: package session brings assignments; package loop hands them, and every
// answer of the node's own work, to the pure tables of package alloc; states go
// to package store, and package run executes the other effects: prepare,
// start, recover and stop run in goroutines of their own against the drivers.
// Tasks outlive the agent: Run leaves them running when it ends, and takes them
// over when it begins. This package opens the rooms, runs them and closes them.
//
//	server ──session──► loop ──► alloc.Table ──effects──► store, session, drivers
//	                     ▲                                        │
//	                     └───────────────events───────────────────┘
//
// Of an allocation there is, under the data directory,
//
//	alloc/<id>/task/    the task's own directory
//	alloc/<id>/rsh/     the socket of package rankshell, for MPI
//	records/<id>/       what the agent keeps of it: logs, plans, its usage
//
// and beside them data/, the copies that package data keeps for jobs.
//
// What a restarted agent must know at once is in the store; the rest the
// server says again. A task of which the store knows nothing waits for the
// server's word too: it goes on if it is still assigned, and is killed if not.
//
// Limits: one task for each allocation.
// Package client never imports package server: the wall between them is the
// stream.
package client
