// Package taskssh is the server of the ssh protocol for the tasks of a node. No
// socket listens: each connection comes over a stream that a server has judged, for
// one task, and ends there.
//
// Flow: Serve makes the handshake with a host key that the cluster has certified
// for this connection, and serves its channels until the client leaves, the task
// ends or the context does. Sessions (shell, command, sftp) and connections that
// the client forwards become commands that Config.Run executes inside of the task,
// so that whoever comes in reaches what the task reaches and nothing else.
//
// Limits: whoever comes has been judged, so the protocol's own authentication is
// "none", and the name of a user is ignored. No forwarding from the task to the
// client, of the client's agent, nor of X11. Channels and their words are bounded.
package taskssh
