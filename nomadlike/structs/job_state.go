package structs

// JobState is where a subjob (and, summed up, its job) stands.
//
//	                 ┌────────────── requeued (attempt+1) ──────────────┐
//	                 ▼                                                  │
//	submitted ──► queued ──placed──► starting ──started──► running ─────┤
//	                 │                   │                 │  ▲         │
//	                 │                   │           paused│  │continued│
//	                 │                   │                 ▼  │         │
//	                 │                   │                paused        │
//	                 │                   └───────┬─────────┴────────────┤
//	                 │                        ending                    │
//	                 │                           ▼                      │
//	                 │                       stopping ──────────────────┘
//	                 │                           │
//	                 ▼                           ▼
//	        stopped | expired      succeeded | failed | stopped | expired
//
// A state with an arrow to "ending" may also go straight to its end when no
// rank is left to stop. Terminal states are absorbing until a user resumes
// the job, which queues it for a new attempt.
type JobState string

// The states of a job. UI words: 排队中 启动中 运行中 暂停 停止中 成功 错误 停止 过期.
const (
	JobQueued    JobState = "queued"
	JobStarting  JobState = "starting"
	JobRunning   JobState = "running"
	JobPaused    JobState = "paused"
	JobStopping  JobState = "stopping"
	JobSucceeded JobState = "succeeded"
	JobFailed    JobState = "failed"
	JobStopped   JobState = "stopped"
	JobExpired   JobState = "expired"
)

// JobStates lists every state in the order in which people meet them.
func JobStates() []JobState {
	return []JobState{
		JobQueued, JobStarting, JobRunning, JobPaused, JobStopping,
		JobSucceeded, JobFailed, JobStopped, JobExpired,
	}
}

// Terminal reports whether nothing more happens by itself.
func (s JobState) Terminal() bool {
	switch s {
	case JobSucceeded, JobFailed, JobStopped, JobExpired:
		return true
	}
	return false
}

// Active reports whether an attempt of the job holds resources.
func (s JobState) Active() bool {
	switch s {
	case JobStarting, JobRunning, JobPaused, JobStopping:
		return true
	}
	return false
}

// JobStep is what can happen to a job.
type JobStep string

// The steps of the job state machine.
const (
	StepPlaced    JobStep = "placed"    // a plan gave its gang nodes
	StepStarted   JobStep = "started"   // every rank's command runs
	StepPaused    JobStep = "paused"    // every rank is frozen
	StepContinued JobStep = "continued" // every rank is thawed
	StepEnding    JobStep = "ending"    // the attempt ends, ranks are being stopped
	StepRequeued  JobStep = "requeued"  // attempt+1 waits for nodes
	StepSucceeded JobStep = "succeeded"
	StepFailed    JobStep = "failed"
	StepStopped   JobStep = "stopped"
	StepExpired   JobStep = "expired"
	StepResumed   JobStep = "resumed" // a user starts an ended job again
)

// Next is the one function that decides every transition of a job. It returns
// the state after step, and false when the step is not legal in s.
func (s JobState) Next(step JobStep) (JobState, bool) {
	//exhaustive:enforce
	switch step {
	case StepPlaced:
		return JobStarting, s == JobQueued
	case StepStarted:
		return JobRunning, s == JobStarting
	case StepPaused:
		return JobPaused, s == JobRunning
	case StepContinued:
		return JobRunning, s == JobPaused
	case StepEnding:
		return JobStopping, s == JobStarting || s == JobRunning || s == JobPaused
	case StepRequeued:
		return JobQueued, s.Active()
	case StepSucceeded:
		return JobSucceeded, s.Active()
	case StepFailed:
		return JobFailed, s.Active()
	case StepStopped:
		return JobStopped, s == JobQueued || s.Active()
	case StepExpired:
		return JobExpired, s == JobQueued || s.Active()
	case StepResumed:
		return JobQueued, s.Terminal()
	}
	return s, false
}

// Subjob is one independent gang of a job and everything that is true of it
// now: a training job has exactly the subjob 0, a batch of N has 0 to N-1.
// Written by state.Apply alone.
type Subjob struct {
	JobID        string      `json:"job_id"`
	Index        int         `json:"index"`
	State        JobState    `json:"state"`
	Attempt      uint64      `json:"attempt"`              // number of the newest attempt; 0 before the first
	Restarts     int         `json:"restarts"`             // failures charged to the user's budget
	InfraLosses  int         `json:"infra_losses"`         // attempts ended by nodes, devices or preemption
	QueuedAt     UnixNano    `json:"queued_at"`            // when it last entered the queue
	NotBefore    UnixNano    `json:"not_before,omitempty"` // restart delay: not placed earlier
	StartedAt    UnixNano    `json:"started_at,omitempty"`
	FinishedAt   UnixNano    `json:"finished_at,omitempty"`
	ExitCode     int         `json:"exit_code"`
	Reason       *Reason     `json:"reason,omitempty"`        // why it is in this state
	StopBy       string      `json:"stop_by,omitempty"`       // who asked for the stop
	StopIntended JobState    `json:"stop_intended,omitempty"` // where stopping leads: stopped, failed, succeeded, expired or queued
	Wait         *WaitReason `json:"wait,omitempty"`          // why it is still queued
	Place        uint64      `json:"place"`                   // within its tier of the queue, lower first; see QueueMove
	Moved        bool        `json:"moved,omitempty"`         // an administrator gave it its place: it stands before fair share
	Control      *Control    `json:"control,omitempty"`       // what people want of it while it runs; the throttle outlives an attempt
	Nomination   *Nomination `json:"claim,omitempty"`         // nodes nominated for it while others leave them
	// NoPassingAt is the start that the scheduler promised to this attempt when it
	// came to the front of its queue: see scheduler's promiseOf. From then on nobody passes
	// it on its nodes but by a time limit that ends before it gets them. Set once by a WaitUpdate, 0
	// again when it gets its nodes.
	NoPassingAt UnixNano `json:"no_passing_at,omitempty"`
	// Avoid are the nodes that its next attempts leave alone if they can, because
	// it was slow, stood still or could not be started there, at most AvoidMax, oldest first; Moves is
	// how often it was taken away from such a node.
	Avoid []string `json:"avoid,omitempty"`
	Moves int      `json:"moves,omitempty"`
	// Checkpoints are the newest that its attempts registered, oldest first, at
	// most CheckpointsKept; the next attempt starts from the last one. Versions
	// of the subjob share them: they are never changed in place.
	Checkpoints []SavedCheckpoint `json:"checkpoints,omitempty"`
	// AttemptsFrom is the last number that an attempt may have had that the state
	// does not know, because the state comes from a backup: none up to it is given
	// again.
	AttemptsFrom uint64 `json:"attempts_from,omitempty"`
	// Consents are what the owners on its machines were asked, at most ConsentsMax, by
	// the order in which they were. Versions of the subjob share them: they are never
	// changed in place.
	Consents []Consent `json:"consents,omitempty" since:"20"`
	// Pending are the jobs of Job.After that it still waits for, by id: while there are
	// any it stands in the queue and nobody looks at it. Versions of the subjob share
	// them: they are never changed in place.
	Pending []string `json:"pending,omitempty" since:"52"`
	// Turn: it waits until others of its job have ended, because no more than
	// Job.Parallel may be placed at a time.
	Turn        bool   `json:"turn,omitempty" since:"55"`
	CreateIndex uint64 `json:"create_index"`
	ModifyIndex uint64 `json:"modify_index"`
}

// Held reports whether it stands in the queue and may not start: for other jobs, or for
// its turn within its own.
func (s *Subjob) Held() bool { return s.Turn || len(s.Pending) > 0 }

// NextAttempt is the number that its next attempt must get.
func (s *Subjob) NextAttempt() uint64 { return max(s.Attempt, s.AttemptsFrom) + 1 }

// Newest is the checkpoint that the next attempt starts from, nil without any.
func (s *Subjob) Newest() *SavedCheckpoint {
	if len(s.Checkpoints) == 0 {
		return nil
	}
	newest := s.Checkpoints[len(s.Checkpoints)-1]
	return &newest
}

// Reason says in catalogue words why something is as it is.
type Reason struct {
	ID     string            `json:"id"`
	Params map[string]string `json:"params,omitempty"`
}

// NewReason returns a Reason; params come as pairs of name and value.
func NewReason(id string, params ...any) *Reason {
	e := NewError("", id, params...)
	return &Reason{ID: e.ID, Params: e.Params}
}

// WaitReason is the scheduler's explanation of a job that waits: the one
// blocking reason first, and who holds what it needs.
type WaitReason struct {
	Reason
	Holders  []string `json:"holders,omitempty"`  // job ids
	Position int      `json:"position,omitempty"` // place in the queue, from 1
	Never    bool     `json:"never,omitempty"`    // cannot start in this cluster as it is built
}
