// Package api is the typed HTTP client of a nomadlike cluster and the one
// description of its routes. The command line has no other road to a
// cluster, and anybody else's Go program may take the same one.
//
// Flow: New builds a Client for one or more addresses of a cluster whose CA
// it knows. Every route has a method that takes and returns the nouns of
// package structs, or the request and answer bodies of this package. Failures
// arrive as *structs.Error with a code to decide by and an id to render.
// Requests that are safe to repeat are repeated while the cluster says
// "unavailable", for instance during an election; submissions carry an
// idempotency key, so they are safe too.
//
// Routes is the table of all routes as data: the agent builds its router and
// its OpenAPI document from it, and the tests of authorisation walk it.
//
// Limits: no caching and no state besides connections. Bodies are bounded by
// AnswerSizeMax, except streams (logs, events, snapshots, exec).
package api
