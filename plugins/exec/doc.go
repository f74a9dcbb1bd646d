// Package exec is the driver that runs a task as plain processes of this
// node.
//
// Flow: Start hands the task to a supervisor process of its own (see package
// supervisor), as a rule one that was kept ready; it runs the command and
// lives on when the agent dies. A watcher per task waits on the connection to
// the supervisor for the exit result. Everything else is a request on the
// supervisor's control socket. Recover finds a live supervisor or a recorded
// exit; when there is neither, it kills what is left of the task and records
// the loss. The built-in driver runs inside the agent
// through the same interface that an external one is served by.
//
// The agent's own environment never reaches a task: it gets what its spec
// lists, a PATH if that lists none, and the task's marker.
//
// Limits: Linux. Processes are not bounded or isolated yet, beyond host name
// and hosts file; Resources, Devices and Mounts of a spec are ignored, which
// the fingerprint says. Without root, or without the right to make
// namespaces, host name and hosts file are the node's own too, and all tasks
// run as the agent's user and could disturb each other and the supervisors.
package exec
