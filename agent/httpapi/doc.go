// Package httpapi is the HTTP API of a server: what each route of api.Routes
// does.
//
// Flow: package front authenticates a caller, decodes the body, has the object
// found here and asks the policy about it; then the handler reads the replicated
// state, or puts one command into the log. What only the leader can do is
// passed on to it; what only a node knows is asked of that node.
//
// Each noun has a small type of handlers with what it needs of the server; core is
// what they share. endpoints.table is where an endpoint meets its finder and handler.
//
// Limits: handlers know neither the agent's life-cycle nor Raft. They take what
// they need as small interfaces, and keep nothing but answers that others will
// ask for as well.
package httpapi
