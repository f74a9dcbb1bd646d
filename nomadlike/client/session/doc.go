// Package session keeps one stream between a node and a server of the
// cluster: assignments come down it, heartbeats and status reports go up.
//
// Flow: Session.Run dials one server after the other in an order of the
// node's own, says Hello, waits for Welcome and then lives as long as the
// stream does; after a loss it goes on with the next server. Reports wait in
// an Outbox until a server has them in the log, over any number of streams.
//
// Limits: it decides nothing about allocations and knows no transport; the
// owner provides an Opener. Outbox, Lease and Order are pure.
package session
