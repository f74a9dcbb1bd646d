// Package supervisor is the small process that owns one task of the exec
// driver: its standard streams, its process tree and its exit code. It lets
// tasks outlive the agent.
//
// Flow: the driver starts one supervisor per task, in a session of its own,
// with an environment of its own, the driver's state directory as its working
// directory and one end of a socket pair as descriptor 3. It sends a start
// request with the Spec; the supervisor opens the logs, enters new UTS and
// mount namespaces where it may, starts the command, records its state in
// <task>.json, listens on <task>.sock and answers. Both files are there before
// the command; claim.go has how that goes with agents that die. From then on it copies
// output into log files, collects every orphan of the task (it is their
// subreaper), and serves control requests. When the command has ended and
// nothing descended from it is left, it adds the exit to the record, synced,
// only then tells those who wait. An agent that comes later finds the socket
// or the exit. See task.go for the states.
//
// A supervisor may be started in advance, and may run one task after the
// other: it ends when it has no task and its first connection is closed.
// Nothing of a task stays behind in it: each has a thread, and with it
// namespaces, of its own, and a process with children that would not die takes
// no more tasks.
//
// Who dies with whom: the command is killed by the kernel when the supervisor
// dies (its parent-death signal); further descendants of a dead supervisor
// are found by the driver, by session, by marker and by cgroup. The death of
// the agent harms nobody. A spec that has not arrived completely when the
// agent dies starts nothing, and neither does one whose agent is gone when
// the command is due.
//
// A negative nice value, and protection when memory runs out, stay with the
// agent and the supervisor; the task runs without.
//
// An isolated task (isolation.go) has namespaces, a view of the node (view.go)
// and no rights (lockdown.go, seccomp.go), all taken on by the one thread that
// makes its processes; the first of these, init, is this program in another
// role.
//
// A task that is not isolated shares, without root or where the kernel forbids
// namespaces, the node's host name and /etc/hosts; the start answer says so in
// its notes.
//
// Limits: standard library only, and no package net: this process exists once
// per running task, so its size and start time count. One command per task; further
// ones are put into it by exec requests. Bounds are the driver's to set: this
// process only goes into the cgroups. What leaves the tree with the help of another service (at, systemd-run, a
// container engine) is not found. Processes of the same user can reach the
// control socket: tasks are kept apart by giving them users of their own.
package supervisor
