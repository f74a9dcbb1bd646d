// Package driver is the contract between a node's client and what runs tasks
// on that node: processes (exec), containers (docker) or a program of a third
// party.
//
// Flow: client/prepare fills a TaskSpec; client/run calls Start, stores the
// returned Handle in the node's store and then blocks in Wait. After a restart of the agent it
// passes the stored Handle to Recover and waits again: whoever owns the task
// (a supervisor process, the container engine) outlives the agent and keeps
// its exit code. plugins/host speaks the same contract to drivers in other
// processes, through the adapter in plugins/driver/driverplugin.
//
// Limits: the package holds types and pure checks only. Drivers decide
// nothing about restarts, attempts or fencing; they start and stop what they
// are told. Growth comes as further optional interfaces such as Lister, not
// by widening Driver.
package driver

import (
	"context"
	"errors"
	"io"
	"time"

	"nomadlike/nomadlike/structs"
)

// TaskID names one task for the whole life of a node, for instance
// "<alloc id>.main". It is a file name: see TaskSpec.Validate for its form.
type TaskID string

// Errors that every driver returns, also through a plugin; match them with
// errors.Is.
var (
	// ErrUnknownTask is returned when a driver has no task with the given
	// id: never started, destroyed, or not recovered since the restart.
	ErrUnknownTask = errors.New("unknown task")
	// ErrTaskExists is returned by Start when the id is already in use.
	ErrTaskExists = errors.New("task already exists")
	// ErrTaskEnded is returned by Signal, Pause, Continue, Exec and Stats
	// when the task is no longer running.
	ErrTaskEnded = errors.New("task has ended")
	// ErrUnsupported is returned by a driver for an act that it cannot do.
	ErrUnsupported = errors.New("not supported by the driver")
	// ErrUnavailable is returned when the driver itself cannot answer: its
	// process crashed, hangs, or is being restarted. Try again later.
	ErrUnavailable = errors.New("driver unavailable")
)

// Driver runs tasks on this node. Every method may be called from any
// goroutine, several at a time, also for the same task; every one that takes
// a context returns soon after it is cancelled. Cancelling the context of a
// call never stops a task.
type Driver interface {
	Lifecycle
	Control
	Execer

	// Fingerprint reports whether the driver can run tasks here. It sends the
	// first report at once and another one after every change, and closes
	// the channel when ctx is cancelled. Called once by client/fingerprint,
	// which must keep receiving.
	Fingerprint(ctx context.Context) (<-chan Fingerprint, error)

	// Stats measures one task now, with everything it has forked.
	Stats(ctx context.Context, id TaskID) (Usage, error)
}

// Lifecycle takes a task from a spec to an exit result.
type Lifecycle interface {
	// Start runs the task and returns once its command has been executed
	// (or, for a held task, once processes may be put into it). The caller
	// stores the handle before it tells anyone that the task runs. A
	// *StartError says that the command itself could not be executed, and
	// with which exit code a shell would have said so; nothing is left
	// behind then. The driver keeps no reference into spec.
	Start(ctx context.Context, spec TaskSpec) (Handle, error)

	// Recover takes a task over that an earlier process of this agent
	// started. It returns nil when the task runs or when its exit result is
	// known; Wait then reports which. A task that vanished without a record
	// is recovered as well, with an exit result whose Err has the id
	// "driver.task_lost", after what was left of it has been killed.
	Recover(ctx context.Context, handle Handle) error

	// Wait blocks until the task has ended, all its processes are gone and
	// its logs are complete. Any number of callers may wait, before and
	// after the end, until Destroy.
	Wait(ctx context.Context, id TaskID) (ExitResult, error)

	// Stop sends signal to the task's processes and, when some are left
	// after grace, SIGKILL to all of them. It returns when the request is
	// taken, not when the task has ended; the request is executed even
	// when the agent dies. A later Stop may shorten the grace, never extend
	// it. With grace 0 the kill comes at once. An empty signal means
	// SIGTERM. Stopping a task that has ended does nothing.
	Stop(ctx context.Context, id TaskID, signal string, grace time.Duration) error

	// Destroy kills the task if it still runs and forgets it, with the
	// driver's own files; logs and the task's directory belong to the
	// caller and stay. Destroying an unknown task does nothing.
	Destroy(ctx context.Context, id TaskID) error
}

// Control acts on a running task.
type Control interface {
	// Signal sends a signal, by name such as "SIGUSR1", to the process
	// group of the task's command.
	Signal(ctx context.Context, id TaskID, signal string) error
	// Pause stops all processes of the task from using the CPU, until
	// Continue. Pausing a paused task does nothing.
	Pause(ctx context.Context, id TaskID) error
	// Continue lets a paused task go on.
	Continue(ctx context.Context, id TaskID) error
}

// Throttler is an optional interface: a driver that by itself lets a task run
// and stand still in turns, also while no agent lives. Tasks of other drivers
// are throttled by Pause and Continue.
type Throttler interface {
	// Throttle lets the task run for busy and holds it for idle, in turns; an
	// idle of 0 lets it run again. Both are at most a minute. The last call
	// counts. It works on beside Pause and Continue, and ends with the task.
	Throttle(ctx context.Context, id TaskID, busy, idle time.Duration) error
}

// Execer runs further commands inside a task.
type Execer interface {
	// Exec runs a command in the task's namespaces, with the task's
	// environment and user, and blocks until it has ended. The result
	// carries the command's exit code; a *StartError says that it could not
	// be executed. When ctx is cancelled the command's process group is
	// killed, unless spec.Survive. Children that the command leaves behind
	// as daemons live on as part of the task.
	Exec(ctx context.Context, id TaskID, spec ExecSpec, streams Streams) (ExitResult, error)
}

// Masker is an optional interface: a driver that masks texts in the logs of tasks
// (TaskSpec.Mask), and whose log writers may have to be started anew while a task
// runs. The texts are on no disk, so that whoever recovers a task has to be told them
// again. A driver that masks says so in its fingerprint, by structs.AttrMasks; the
// client calls Mask for each task with secrets that it has recovered.
type Masker interface {
	// Mask says what the logs of a task do not hold: what its spec said. A list without
	// the secrets, or the versions, that the task was started with, such as an empty one,
	// says that they are no longer known. Of a task that needs neither it changes nothing.
	// Until it is called a log writer that was started anew writes nothing.
	Mask(ctx context.Context, id TaskID, mask []structs.Mask) error
}

// Lister is an optional interface: a driver that can name the tasks that it
// finds on this node, known to the caller or not. client asks it at start,
// so that a task whose handle was not stored before a crash is destroyed.
type Lister interface {
	List(ctx context.Context) ([]Handle, error)
}

// Layered is an optional interface: a driver whose tasks write into a layer of their
// own beside their directory, as containers do.
type Layered interface {
	// Layer is the directory of the node that holds what the task wrote there; ""
	// when there is none that can be read. It changes only with the task.
	Layer(ctx context.Context, id TaskID) (string, error)
}

// Leaser is an optional interface: a driver whose tasks can end with the lease
// of their node though the agent is gone. StartLeased is Start; lease is the
// file in which the agent keeps the lease, and which it has written before.
type Leaser interface {
	StartLeased(ctx context.Context, spec TaskSpec, lease string) (Handle, error)
}

// Handle is what a driver needs to find a task again after the agent was
// restarted. The client stores it as it is and looks at TaskID only.
type Handle struct {
	Version   int       `json:"version"` // HandleVersion
	Driver    string    `json:"driver"`
	TaskID    TaskID    `json:"task_id"`
	StartedAt time.Time `json:"started_at"`
	State     []byte    `json:"state,omitempty"` // the driver's own, at most HandleStateMax bytes
}

// HandleVersion is written into new handles; a driver refuses greater ones.
const HandleVersion = 1

// HandleStateMax bounds the driver's own part of a handle, in bytes.
const HandleStateMax = 64 << 10

// Fingerprint is what a driver says about itself and this node.
type Fingerprint struct {
	Health     Health            `json:"health"`
	Reason     string            `json:"reason,omitempty"` // why it is not healthy, for people
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Health says whether a driver can start tasks.
type Health string

// The states of a driver. Undetected means that what it needs is not
// installed here, which is no fault.
const (
	Healthy    Health = "healthy"
	Unhealthy  Health = "unhealthy"
	Undetected Health = "undetected"
)

// Usage is what a task uses at one moment, with all its processes.
type Usage struct {
	At        time.Time     `json:"at"`
	CPUTime   time.Duration `json:"cpu_time"`  // since the start, user and system
	RSSBytes  int64         `json:"rss_bytes"` // resident memory, shared pages counted per process
	Processes int           `json:"processes"`
	Threads   int           `json:"threads"`
}

// Streams connects a command run by Exec. The driver reads Stdin and writes
// Stdout and Stderr from goroutines of its own, and has stopped doing so when
// Exec returns, except for one blocked read of Stdin, whose result is
// dropped: the caller closes what Stdin reads from. Nil means no input, or
// output that is thrown away. With a TTY all output comes on Stdout.
type Streams struct {
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Resize  <-chan WindowSize // nil: no resizing; the driver stops receiving when Exec returns
	Signals <-chan string     // nil: no signals; names as for Control.Signal
}

// WindowSize is the size of a terminal in characters.
type WindowSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}
