// Package docker is the driver that runs a task in a container of a Docker
// engine on this node.
//
// Flow: Start finds or pulls the image (image_store.go), decides the container's
// settings by what is known of the engine (host.go; settings.go, devices.go,
// options.go: pure), makes it and starts it (starter.go). Process 1 of every container is
// our own small init, and beside it on the node runs its keeper, which writes
// the task's logs and records its exit (keeper.go, package taskinit). So a task is
// started, signalled, stopped, entered and ended in the same way as by the
// exec driver, and neither the agent's nor the engine's restart disturbs it.
// What the engine does better stays its own: images, files, limits, freezing,
// devices.
//
//	agent ─ engine.go ─► dockerd ─► container: init (1) ─► command
//	   └──── taskinit ──► keeper ◄───────┘  logs, exit
//
// Recover finds the keeper, or starts another one; a container that ended
// without a keeper is told by what the engine knows. Labels name cluster, node,
// allocation and attempt, so that List finds containers whose handles were
// lost.
//
// A job's environment never stands in the engine's records: the init gets it
// over a socket. What is refused (policy), and what the container may do, is
// decided by one function and shown by its golden files.
//
// Limits: Linux, an engine on the same machine (API 1.41, Docker 20.10, or
// newer), an agent that runs as root. No process namespace of the host. A
// private network reaches tasks of the same node only.
package docker
