// Package taskinit is the small program that the docker driver puts into and
// beside every container. It has two roles.
//
// The init is process 1 of the container. It starts the task's command and
// what is executed in the task later, hands signals on, kills the whole tree
// when the task ends, and exits as the command did. It gets the command and
// its environment over a socket, so that nothing of them stands in the
// engine's records.
//
// The keeper is a process of the node. It copies the task's output into its
// log files, tells the agent how the task goes and records its exit. It
// outlives the agent; when it is killed itself, the agent starts another one,
// and the init, which holds the pipes too, hands them over: no output is lost.
//
//	agent ── control.sock ──► keeper ◄── init.sock ── init (1) ──► command
//	  └──────── a caller's connection is handed through ──┘
//
// Flow: the driver makes both sockets, starts the keeper and then the
// container. The init connects, gets the Spec, answers Started or Refused and,
// at last, Exit. An agent that wants to execute or stop something asks the
// keeper to hand its connection to the init and talks to the init itself.
//
// Limits: standard library only, Linux only, statically linked: it runs in
// images that hold nothing else. It trusts the agent and the node, and nothing
// that comes from inside the container: the keeper takes process 1 only.
package taskinit
