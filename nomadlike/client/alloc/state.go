package alloc

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Phase is where an allocation stands on its node, finer than the status
// that the servers know.
//
//	pending ──► preparing ──► prepared ──released──► starting ──► running ──► ended
//	   │            │             │                     │                       ▲
//	   └────────────┴─────────────┴─────────────────────┴───────────────────────┘
//
// Phases only move forward. A released allocation goes from preparing to starting at once.
type Phase string

// The phases of an allocation on its node. Processes may exist in starting
// and running only.
const (
	PhasePending   Phase = "pending"
	PhasePreparing Phase = "preparing"
	PhasePrepared  Phase = "prepared"
	PhaseStarting  Phase = "starting"
	PhaseRunning   Phase = "running"
	PhaseEnded     Phase = "ended"
)

// MayHaveProcesses reports whether processes of the allocation may exist.
func (p Phase) MayHaveProcesses() bool { return p == PhaseStarting || p == PhaseRunning }

// Force is how an allocation is being stopped. It only grows.
type Force int

// The forces.
const (
	ForceNone Force = iota
	ForceStop       // the stop signal, the grace, then the kill
	ForceKill       // the kill at once
)

// StopSignal is what a stopped task gets first, unless the servers order
// another one.
const StopSignal = "SIGTERM"

// State is all that a node remembers of one allocation. It is a value: Step
// returns a new one, and what its pointers lead to is never changed.
type State struct {
	AllocID string        `json:"alloc_id"`
	JobID   string        `json:"job_id"`
	Subjob  int           `json:"subjob"`
	Attempt uint64        `json:"attempt"`
	Driver  string        `json:"driver"`
	Strict  bool          `json:"strict,omitempty"` // fencing = "strict": killed when the lease ends
	Grace   time.Duration `json:"grace"`            // the job's stop grace, or that of the order to stop
	Signal  string        `json:"signal,omitempty"` // of the order to stop; "": StopSignal

	Phase    Phase           `json:"phase"`
	Released bool            `json:"released,omitempty"`
	Handle   *driver.Handle  `json:"handle,omitempty"`
	Image    string          `json:"image,omitempty"`    // by digest, of a driver that needs one
	Doubtful bool            `json:"doubtful,omitempty"` // an agent died while it started the command
	Force    Force           `json:"force,omitempty"`
	Cause    *structs.Reason `json:"cause,omitempty"`   // of the stop
	Infra    bool            `json:"infra,omitempty"`   // the stop is the node's own doing
	Charged  bool            `json:"charged,omitempty"` // the stop is the task's own fault
	// Control is what people want of the command while it runs, nil before
	// the servers said anything of it.
	Control *structs.Control `json:"control,omitempty"`
	// Warning is the signal that the command is to get beside its end, and Warned
	// the Seq of the newest one given: it comes once, also when the agent restarts.
	Warning *structs.Warning `json:"warning,omitempty"`
	Warned  uint64           `json:"warned,omitempty"`

	// Report is the last word to the servers, nil before the first; Acked
	// says that they have it.
	Report *structs.AllocReport `json:"report,omitempty"`
	Acked  bool                 `json:"acked,omitempty"`

	EndedAt structs.UnixNano `json:"ended_at,omitempty"`

	sent     Force  // strongest Stop given since this agent's start
	sentCtrl uint64 // Seq of the newest Control given since this agent's start
	// recovering reports that Recover is not answered yet: until then the driver
	// may not know the task, and orders to it would be lost.
	recovering bool
}

// New is the state of an allocation that was just assigned; an Assigned
// event has to follow.
func New(a *structs.Assignment) State {
	s := State{
		AllocID: a.Alloc.ID,
		JobID:   a.Alloc.JobID,
		Subjob:  a.Alloc.Subjob,
		Attempt: a.Alloc.Attempt,
		Phase:   PhasePending,
	}
	if a.Job != nil {
		s.Driver = a.Job.Task.Driver
		s.Strict = a.Job.Fencing == FencingStrict
		s.Grace = boundedGrace(a.Job.StopGrace)
	}
	return s
}

// boundedGrace is a grace that drivers take.
func boundedGrace(grace structs.Duration) time.Duration {
	return max(0, min(grace.Std(), driver.KillGraceMax))
}

// FencingStrict is the value of Job.Fencing whose tasks end with the lease.
const FencingStrict = "strict"

// Status is what the servers should believe of the allocation.
func (s State) Status() structs.AllocStatus {
	if s.Report != nil {
		return s.Report.Status
	}
	return structs.AllocPending
}
