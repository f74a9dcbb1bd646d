// Package sim runs a whole cluster in one goroutine on virtual time: the
// production scheduler, state and liveness steps of the servers and the
// production allocation steps of the clients, with everything else (the log,
// the network, disks, processes, people) played by a seeded cluster that
// injects faults.
//
// Flow: New builds a Cluster from a seed; Run submits jobs, breaks things
// (lost and late messages, lost acknowledgements, leader changes, crashed
// servers, rebooted, cut and paused machines, agents and supervisors that restart,
// log files that a loss of power tears), heals everything, and lets the cluster come to rest. Checkers look at every
// committed state and at the true processes on every machine; what they find
// is returned with the seed that shows it again. The logs of ranks are true files
// in a temporary directory, written and read by the production code.
// Some jobs give torchrun a range of nodes: they start with what is free, go on
// without a rank, and start anew on more nodes once there is room. In some histories
// operators plan windows of maintenance, move them and call them off.
//
// The log is an oracle: it never loses what it committed, but it may lose an
// acknowledgement, commit after the proposer gave up, change its leader at any
// moment and let replicas lag. hashicorp/raft itself starts goroutines and
// reads the clock; it is exercised by consensus' own tests and by real
// clusters.
//
// Limits: one seed is one history; the same seed leads to the same history on
// every machine (its trace hash is compared in the tests).
package sim
