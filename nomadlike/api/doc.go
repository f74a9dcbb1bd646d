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
// It is stable, for programs outside of this module: within version 1 of the API, which
// is what the OpenAPI document calls itself, things are added and none is taken away.
// Whatever this package exports, with the nouns of package structs that its bodies hold,
// keeps its name, its type and its meaning; routes keep their names and paths, codes and
// ids of errors what they say. Their texts may change, and so may what other packages
// export, and the order of what is not said to be sorted. Fields, methods, routes, codes,
// states and ids come to it: treat one that you do not know as other. An answer may hold
// fields that this version does not know, and leaves them out. A request that has set a
// field which an older server does not know is refused by it, never done without the
// field. Struct literals name their fields, since more will come.
//
// Routes is the table of all routes as data: the agent builds its router and
// its OpenAPI document from it, and the tests of authorisation walk it.
//
// Limits: no caching and no state besides connections. Bodies are bounded by
// AnswerSizeMax, except streams (logs, events, snapshots, exec).
package api
