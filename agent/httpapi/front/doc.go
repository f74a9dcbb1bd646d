// Package front is the HTTP door of an agent: what holds for every request,
// whatever its route.
//
// Flow: a connection's heads are checked as they pass; a request is refused when
// it comes from another site's page, or by a name that is not this agent's. Then
// its caller is found by token or session and counted against the limits, its
// body is read within bounds, the object that it is about is found, and the
// policy is asked. Only what it allows reaches a handler. A door of a node
// passes everything on to a server.
//
// Limits: it knows no noun of the cluster but tokens, and decides nothing by
// itself: who may do what is in package auth.
package front
