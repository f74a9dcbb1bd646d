package state

import "nomadlike/nomadlike/structs"

// JobStatus sums up the subjobs of a job, so that a list of jobs costs one row
// for each, whatever their size. Written by Apply alone.
type JobStatus struct {
	State       structs.JobState `json:"state"`
	Counts      Counts           `json:"counts"`
	Attempt     uint64           `json:"attempt"`              // highest attempt number of its subjobs
	StartedAt   structs.UnixNano `json:"started_at,omitempty"` // when the first subjob ran first
	FinishedAt  structs.UnixNano `json:"finished_at,omitempty"`
	ExitCode    int              `json:"exit_code"`                  // of the lowest subjob that ended without success, else 0
	ExitOf      int              `json:"exit_of"`                    // that subjob, or -1
	Turns       int              `json:"turns,omitempty" since:"55"` // queued subjobs that wait for their turn
	CreateIndex uint64           `json:"create_index"`
	ModifyIndex uint64           `json:"modify_index"`
}

// Released is how many subjobs have not ended and do not wait for their turn.
func (s *JobStatus) Released() int {
	c := &s.Counts
	return c.Queued + c.Starting + c.Running + c.Paused + c.Stopping - s.Turns
}

// Counts is the number of subjobs in each state.
type Counts struct {
	Queued    int `json:"queued,omitempty"`
	Starting  int `json:"starting,omitempty"`
	Running   int `json:"running,omitempty"`
	Paused    int `json:"paused,omitempty"`
	Stopping  int `json:"stopping,omitempty"`
	Succeeded int `json:"succeeded,omitempty"`
	Failed    int `json:"failed,omitempty"`
	Stopped   int `json:"stopped,omitempty"`
	Expired   int `json:"expired,omitempty"`
}

// of returns the counter of a state, nil for an unknown one.
func (c *Counts) of(state structs.JobState) *int {
	switch state {
	case structs.JobQueued:
		return &c.Queued
	case structs.JobStarting:
		return &c.Starting
	case structs.JobRunning:
		return &c.Running
	case structs.JobPaused:
		return &c.Paused
	case structs.JobStopping:
		return &c.Stopping
	case structs.JobSucceeded:
		return &c.Succeeded
	case structs.JobFailed:
		return &c.Failed
	case structs.JobStopped:
		return &c.Stopped
	case structs.JobExpired:
		return &c.Expired
	}
	return nil
}

// Of is the number of subjobs in state.
func (c Counts) Of(state structs.JobState) int {
	if n := c.of(state); n != nil {
		return *n
	}
	return 0
}

// Total is the number of subjobs.
func (c Counts) Total() int {
	return c.Queued + c.Starting + c.Running + c.Paused + c.Stopping +
		c.Succeeded + c.Failed + c.Stopped + c.Expired
}

// State sums up: a job is as lively as its liveliest subjob, and once all
// have ended, as bad as its worst.
func (c Counts) State() structs.JobState {
	for _, state := range []structs.JobState{
		structs.JobRunning, structs.JobStarting, structs.JobStopping, structs.JobPaused, structs.JobQueued,
		structs.JobFailed, structs.JobExpired, structs.JobStopped,
	} {
		if c.Of(state) > 0 {
			return state
		}
	}
	return structs.JobSucceeded
}

// after returns the status once one of its subjobs went from before to after;
// before is nil for a new subjob.
func (s JobStatus) after(before, after *structs.Subjob, now structs.UnixNano, index uint64) JobStatus {
	if before != nil {
		*s.Counts.of(before.State)--
	}
	*s.Counts.of(after.State)++
	if before != nil && before.Turn {
		s.Turns--
	}
	if after.Turn {
		s.Turns++
	}
	s.State = s.Counts.State()
	s.Attempt = max(s.Attempt, after.Attempt)
	if after.StartedAt != 0 && s.StartedAt == 0 {
		s.StartedAt = after.StartedAt
	}
	s.FinishedAt = 0
	if s.State.Terminal() {
		s.FinishedAt = now
	}
	bad := after.State.Terminal() && after.State != structs.JobSucceeded
	if bad && (s.ExitOf < 0 || after.Index <= s.ExitOf) {
		s.ExitOf, s.ExitCode = after.Index, after.ExitCode
	}
	s.ModifyIndex = index
	return s
}
