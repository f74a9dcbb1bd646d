// Package exec is the driver that runs a task as plain processes of this
// node.
//
// Flow: Start says what a task is in a supervisor's words (translate.go) and
// hands it to a supervisor process of its own (see package supervisor), as a
// rule one of the pool that was kept ready (ready.go); it runs the command and
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
// Cgroups of version 1 or 2, made by the driver (cgroup.go, devices.go), bound
// a task; the supervisor puts its processes in. Isolation (isolation.go) is
// tried out once and then done by the supervisors: namespaces, a view of the
// node, no rights. The fingerprint says what of both there is and why the rest
// is not.
//
// Limits: Linux. Without isolation, Devices and Mounts of a spec are ignored.
// Without root there are no bounds, and all tasks run as the agent's user.
// Container is ignored always. The network is the node's.
package exec
