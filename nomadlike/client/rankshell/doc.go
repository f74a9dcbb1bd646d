// Package rankshell is the remote shell of MPI and its like: `nomadlike
// mpi-rsh HOST COMMAND...` runs a command line in the task of the rank named
// HOST, with no sshd and no keys.
//
// Flow: RunShell, inside a rank's task, connects to a socket in the
// allocation's directory, proves itself by the allocation's token and says
// what it wants; Server, in the agent, checks the peer's user and the token
// and hands the request to its Handler, which runs it in the peer's task,
// here or over the peer's agent. Then frames carry the streams, signals and
// the exit code.
//
// Limits: one socket for each allocation, made for its one user; no terminal;
// frames are bounded. When the agent goes away the shell ends with 255, as
// ssh does, while what it has started lives on as part of its task.
package rankshell
