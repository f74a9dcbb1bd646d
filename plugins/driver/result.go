package driver

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// ExitResult is how a task, or a command run inside one, has ended.
type ExitResult struct {
	// Code is the exit code; for a process killed by a signal 128 plus the
	// signal's number, as shells count.
	Code int `json:"code"`
	// Signal names the signal that killed the process, "" when it exited by
	// itself.
	Signal    string `json:"signal,omitempty"`
	OOMKilled bool   `json:"oom_killed,omitempty"`
	// Err reports what went wrong around the process, such as a lost
	// supervisor or processes that cannot be killed; nil for a plain exit,
	// whatever its code.
	Err        *structs.Error `json:"err,omitempty"`
	StartedAt  time.Time      `json:"started_at,omitzero"`
	FinishedAt time.Time      `json:"finished_at,omitzero"`
}

// Successful reports whether the command did what it was asked to do.
func (r ExitResult) Successful() bool { return r.Code == 0 && r.Signal == "" && r.Err == nil }

// Exit codes of commands that could not be executed, as shells use them.
const (
	CodeNotExecutable = 126
	CodeNotFound      = 127
	// CodeUnknown stands for an exit that nobody saw.
	CodeUnknown = 255
)

// StartError says that a command could not be executed: it does not exist, is
// not executable, or its directory or user does not exist. It is the job's
// fault, not the node's. Err is made for users.
type StartError struct {
	ExitCode int // what a shell would have exited with: 126 or 127
	Err      *structs.Error
}

// Error returns the cause.
func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the error made for users.
func (e *StartError) Unwrap() error { return e.Err }

// Result is the exit result of a task that ended by e at the given time.
func (e *StartError) Result(at time.Time) ExitResult {
	return ExitResult{Code: e.ExitCode, Err: e.Err, StartedAt: at, FinishedAt: at}
}
