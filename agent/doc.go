// Package agent is the front hall: one process that runs a server, a client
// or both, behind one TLS port.
//
// Flow: Start finds or makes the agent's identity (the first server makes the
// cluster's CA, others join with a join token), opens the port, and splits what
// arrives by ALPN: Raft to package consensus, RPC to package rpc, HTTPS to package
// httpapi. Agent opens its parts in order and hands each what it needs; lifecycle
// has what runs in them and how it ends. A part owns its state and reads no field
// of the agent:
//
//	identity, founderSecrets   files: certificate, CA, keys, the first secrets
//	founding                   whether this server may make a cluster
//	certificates               renewal; the CAs that certificates go by
//	servers                    who the servers are and where; changes nothing
//	membership                 what an operator and autopilot change of them
//	removals, dismissal        of nodes, of this server itself
//	keyring, teller            keys as the record names them; the leader tells all
//	conditions, backups        how servers do; copies of the state
//	clientPart                 the node: drivers, plugins, its own pool
//	signOuts, development      sign-ins that outlive a server; development mode
//
// Limits: what is decided about jobs, nodes and the cluster is decided in
// packages server and client; the agent only wires, and keeps what is this
// machine's. What it is told is package config. A client-only agent answers no API
// request itself: it passes them to a server with the caller's credentials.
package agent
