// Package server is what a server of the cluster does beside keeping the log:
// it lets requests in, keeps the streams of nodes, and, on the leader, places
// what waits, watches nodes live and die, and sweeps up after time.
//
// Flow: each duty reads the state, waits for it to change, decides with a pure
// function, and proposes a command. Duties do not call each other; they meet
// in the state. What they share are the configuration and the proposals
// (propose.go), which know the way into the log; those of a leader begin and
// end with its term (leader.go).
//
//	people ──► admit ──► Submit ──► log ──► state ──► queue ──► Schedule ──► Submit
//	nodes  ◄──► session (any server)           │
//	              │ reports: Submit            ├────► session ──► assignments
//	              │ heartbeats                 ├────► sweep: limits, drains, bounds
//	              ▼                            ▼
//	        heartbeats ──► leader's watch ──► Liveness ──► probes, witnesses, Submit
//
// Any server takes any request: it fixes time and ids, encodes the command and
// hands the bytes to the leader at most once per try; then it waits until its
// own state has applied them, so that whoever asked reads what they wrote.
//
// Limits: the log, the other agents, the clock and randomness are interfaces
// and functions of Config; this package opens no socket and no file.
package server
