package structs

import (
	"slices"
	"time"
)

// After says that a job waits for another one, until that has got as far as When says.
type After struct {
	Job     string `json:"job"`               // name, number or id, as its author wrote it
	When    string `json:"when,omitempty"`    // one of the Until constants
	Project string `json:"project,omitempty"` // of the other job; "": the job's own
	// ID is the job that the name meant at submission. Set at admission.
	ID string `json:"id,omitempty"`
}

// How far the other job must have got. Of a batch all subjobs count but for UntilStarted,
// which is when the first of them runs.
const (
	UntilSucceeded = "succeeded" // default
	UntilFailed    = "failed"    // it has ended otherwise than with success
	UntilEnded     = "ended"     // it has ended in any way
	UntilStarted   = "started"   // it runs, or ran at some time
)

// AfterMax bounds the jobs that one job waits for.
const AfterMax = 32

// Come reports whether what it waits for has come, and whether it can come no more,
// of a job that is in state and that ran first at started, 0 for never.
func (a *After) Come(state JobState, started UnixNano) (come, never bool) {
	switch a.When {
	case UntilStarted:
		come = started != 0
	case UntilEnded:
		come = state.Terminal()
	case UntilFailed:
		come = state.Terminal() && state != JobSucceeded
	default:
		come = state == JobSucceeded
	}
	return come, !come && state.Terminal()
}

// Called is the other job as people know it: with its project where that is named.
func (a *After) Called() string {
	if a.Project == "" {
		return a.Job
	}
	return a.Project + "/" + a.Job
}

// AfterWait is why a job waits that still waits for these others, by id; nil without any.
func (j *Job) AfterWait(pending []string) *WaitReason {
	if len(pending) == 0 {
		return nil
	}
	at := slices.IndexFunc(j.After, func(a After) bool { return a.ID == pending[0] })
	if at < 0 {
		return nil
	}
	first := &j.After[at]
	wait := &WaitReason{Reason: *NewReason(afterReasons(first.When)[0], "job", first.Called()), Holders: slices.Clone(pending)}
	if len(pending) > 1 {
		wait.Reason = *NewReason(afterReasons(first.When)[1], "job", first.Called(), "more", len(pending)-1)
	}
	return wait
}

// afterReasons are the reasons of a job that waits for one other, and for more than that.
func afterReasons(when string) [2]string {
	switch when {
	case UntilStarted:
		return [2]string{"scheduler.after_started", "scheduler.after_started_more"}
	case UntilEnded:
		return [2]string{"scheduler.after_ended", "scheduler.after_ended_more"}
	case UntilFailed:
		return [2]string{"scheduler.after_failed", "scheduler.after_failed_more"}
	}
	return [2]string{"scheduler.after_succeeded", "scheduler.after_succeeded_more"}
}

// Waits reports whether a reason is one of AfterWait: the jobs that it names are waited
// for, and hold nothing.
func (w *WaitReason) Waits() bool {
	if w == nil {
		return false
	}
	for _, when := range []string{UntilSucceeded, UntilFailed, UntilEnded, UntilStarted} {
		if ids := afterReasons(when); w.ID == ids[0] || w.ID == ids[1] {
			return true
		}
	}
	return false
}

// TurnWait is why a subjob waits for its turn.
func (j *Job) TurnWait() *WaitReason {
	return &WaitReason{Reason: *NewReason("scheduler.turn")}
}

// NeverReason is why a job that waited for another does so no more, when that has ended
// in a state that leaves no hope.
func (a *After) NeverReason(state JobState) *Reason {
	id := "reason.after_succeeded"
	switch a.When {
	case UntilStarted:
		id = "reason.after_started"
	case UntilFailed:
		id = "reason.after_failed"
	}
	return NewReason(id, "job", a.Called(), "state", state)
}

// AfterIDs are the jobs that it waits for, each once.
func (j *Job) AfterIDs() []string {
	var ids []string
	for i := range j.After {
		if id := j.After[i].ID; id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// BeginWait is why a job waits that is not to begin before a time.
func (j *Job) BeginWait() *WaitReason {
	return &WaitReason{Reason: *NewReason("scheduler.begin", "until", instantText(j.BeginAt))}
}

// WithdrawAt is when a subjob that waits is taken out of the queue because it has not
// started, 0 for never: when it could no longer end before its deadline, or when it has
// waited for max_queue_time since nothing but room kept it waiting.
func (j *Job) WithdrawAt(s *Subjob) UnixNano {
	if s.State != JobQueued {
		return 0
	}
	at := UnixNano(0)
	if j.DeadlineAt != 0 {
		at = max(1, j.DeadlineAt.Add(-j.TimeLimit.Std()))
	}
	if j.MaxQueueTime > 0 && s.StartedAt == 0 && !s.Held() {
		if over := max(s.QueuedAt, j.BeginAt).Add(j.MaxQueueTime.Std()); at == 0 || over < at {
			at = over
		}
	}
	return at
}

// WithdrawReason is why a subjob was taken out of the queue at a time.
func (j *Job) WithdrawReason(s *Subjob) *Reason {
	if j.DeadlineAt != 0 && j.WithdrawAt(s) == max(1, j.DeadlineAt.Add(-j.TimeLimit.Std())) {
		if j.TimeLimit > 0 {
			return NewReason("reason.deadline_limit", "deadline", instantText(j.DeadlineAt), "limit", FormatDuration(j.TimeLimit))
		}
		return j.DeadlineReason()
	}
	return NewReason("reason.max_queue_time", "limit", FormatDuration(j.MaxQueueTime))
}

// DeadlineReason is why a job was ended at its deadline.
func (j *Job) DeadlineReason() *Reason {
	return NewReason("reason.deadline", "deadline", instantText(j.DeadlineAt))
}

// FixTimes sets what the times of a job mean for whoever submits it at now; local is the
// zone of those that name none. A text that is no time means none: Validate refuses it.
func (j *Job) FixTimes(now UnixNano, local *time.Location) {
	j.BeginAt, j.DeadlineAt = 0, 0
	for _, field := range []struct {
		text string
		at   *UnixNano
	}{{j.Begin, &j.BeginAt}, {j.Deadline, &j.DeadlineAt}} {
		if instant, err := ParseInstant(field.text); field.text != "" && err == nil {
			*field.at = instant.Resolve(now.Time(), local)
		}
	}
}

// Trial is a subjob of the job as it would stand in the queue, submitted at now, with all
// that the job comes after still to come.
func (j *Job) Trial(index int, now UnixNano, createIndex uint64) *Subjob {
	s := &Subjob{JobID: j.ID, Index: index, State: JobQueued, QueuedAt: now, CreateIndex: createIndex, Pending: j.AfterIDs()}
	if j.BeginAt > now {
		s.NotBefore, s.Wait = j.BeginAt, j.BeginWait()
	}
	if most := j.Parallel(); most > 0 && index >= most {
		s.Turn, s.Wait = true, j.TurnWait()
	}
	if len(s.Pending) > 0 {
		s.Wait = j.AfterWait(s.Pending)
	}
	return s
}
