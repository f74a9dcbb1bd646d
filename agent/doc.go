// Package agent is the front hall: one process that runs a server, a client
// or both, behind one TLS port.
//
// Flow: config.Load merges configuration files and flags into a Config and tells
// every problem at once. Run turns a Config into a running agent: it finds or
// makes the agent's identity (the first server makes the cluster's CA, others
// join with a join token), opens the port, and splits what arrives by ALPN:
// Raft to package consensus, RPC to package rpc, HTTPS to the API here. The
// API's router comes from the table api.Routes; one middleware
// (authorise.go) decides every request by package auth and denies what it
// does not know.
//
// Limits: what is decided about jobs, nodes and the cluster is decided in
// packages server and client; the agent only wires, translates HTTP, and
// renders. A client-only agent answers no API request itself: it passes them
// to a server with the caller's credentials.
package agent
