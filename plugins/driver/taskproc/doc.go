// Package taskproc holds what the small programs beside tasks have in common:
// exec's supervisor, and the init and the keeper of docker's containers. Each
// finds and starts commands as a shell would (FindProgram, Explain), collects
// children until none is left (Reaper), and exchanges messages and descriptors
// with others over a Unix socket (Conn).
//
// Limits: standard library only and without package net, which would double
// the size of programs that run once per task. What a program does between
// these steps, isolation, cgroups, logs, stays in its own package.
package taskproc
