package state

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyJobControl pauses, continues or throttles what runs of a job. The ranks
// are told at once; the job is paused when the last of them stands still, and
// runs again when the last of them runs. What waits can be throttled in
// advance, but not paused: it uses nothing.
func applyJobControl(tx *txn, body *structs.JobControl) (structs.ApplyResult, *structs.Error) {
	job, targets, refusal := tx.targets(body.JobID, body.Subjob)
	if refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if body.Paused && body.Continue {
		return refuse(structs.CodeInvalid, "state.control_malformed", "job", job.Name)
	}
	throttle := !body.Paused && !body.Continue
	if throttle {
		if problem := structs.ThrottleProblem(body.Busy, body.Idle); problem != nil {
			return structs.ApplyResult{}, problem
		}
	}
	switch {
	case body.Paused && !job.Supports.Pauses():
		return refuse(structs.CodeConflict, "state.pause_unsupported", "job", job.Name)
	case throttle && body.Idle > 0 && !job.Supports.Throttles():
		return refuse(structs.CodeConflict, "state.throttle_unsupported", "job", job.Name)
	}
	var chosen []*structs.Subjob
	for _, subjob := range targets {
		if mayControl(subjob, body) {
			chosen = append(chosen, subjob)
		}
	}
	if len(chosen) == 0 {
		id := "state.job_not_running"
		if body.Continue {
			id = "state.job_not_paused"
		}
		return refuse(structs.CodeConflict, id, "job", job.Name, "state", stateOf(tx, job, body.Subjob))
	}
	id, params := controlEvent(body)
	tx.tell(jobEvent(id, job, only(chosen)), append(params, "job", job.Name, "by", tx.by, "reason", body.Reason)...)
	for _, subjob := range chosen {
		control := structs.Control{Seq: tx.index()}
		if subjob.Control != nil {
			control.Paused, control.Busy, control.Idle = subjob.Control.Paused, subjob.Control.Busy, subjob.Control.Idle
		}
		switch {
		case body.Paused:
			control.Paused = true
		case body.Continue:
			control.Paused = false
		case body.Idle == 0:
			control.Busy, control.Idle = 0, 0
		default:
			control.Busy, control.Idle = body.Busy, body.Idle
		}
		after := *subjob
		if body.Paused {
			after.Reason = byReason("reason.paused_by", "reason.paused_by_because", tx.by, body.Reason)
		}
		tx.control(job, subjob, &after, control)
	}
	return structs.ApplyResult{JobID: job.ID}, nil
}

// mayControl reports whether an order means something to a subjob as it stands.
// Asking again for what is so already does no harm.
func mayControl(subjob *structs.Subjob, body *structs.JobControl) bool {
	switch {
	case body.Paused:
		return subjob.State == structs.JobRunning || subjob.State == structs.JobPaused
	case body.Continue:
		return subjob.State == structs.JobPaused || subjob.State == structs.JobRunning && subjob.Control.Pauses()
	}
	return !subjob.State.Terminal() && subjob.State != structs.JobStopping
}

// only returns the one subjob that an event is about, nil for several.
func only(subjobs []*structs.Subjob) *structs.Subjob {
	if len(subjobs) == 1 {
		return subjobs[0]
	}
	return nil
}

// stateOf is the state of a job, or of one of its subjobs.
func stateOf(tx *txn, job *structs.Job, index *int) structs.JobState {
	if index != nil {
		if subjob, ok := tx.subjob(job.ID, *index); ok {
			return subjob.State
		}
	}
	return tx.jobStatus(job.ID).Status.State
}

// controlEvent says what was asked for.
func controlEvent(body *structs.JobControl) (id string, params []string) {
	switch {
	case body.Paused:
		return "event.job.pause_requested", nil
	case body.Continue:
		return "event.job.continue_requested", nil
	case body.Idle == 0:
		return "event.job.throttle_lifted", nil
	}
	return "event.job.throttled", []string{"busy", structs.FormatDuration(body.Busy), "idle", structs.FormatDuration(body.Idle)}
}

// byReason is a reason with the name of a person and, if there are any, their
// words.
func byReason(id, because, by, words string) *structs.Reason {
	if words == "" {
		return structs.NewReason(id, "by", by)
	}
	return structs.NewReason(because, "by", by, "reason", words)
}

// targets finds a job and the subjobs that a person means.
func (tx *txn) targets(jobID string, index *int) (*structs.Job, []*structs.Subjob, *structs.Error) {
	job, ok := tx.job(jobID)
	if !ok {
		return nil, nil, structs.NewError(structs.CodeNotFound, "state.job_unknown", "job", jobID)
	}
	if index != nil {
		subjob, ok := tx.subjob(jobID, *index)
		if !ok {
			return nil, nil, structs.NewError(structs.CodeNotFound, "state.subjob_unknown", "job", job.Name, "subjob", *index)
		}
		return job, []*structs.Subjob{subjob}, nil
	}
	rows := tx.subjobs(jobID)
	subjobs := make([]*structs.Subjob, len(rows))
	for i, row := range rows {
		subjobs[i] = row.Subjob
	}
	return job, subjobs, nil
}

// control sets a new Control of a subjob and of every rank of its attempt.
func (tx *txn) control(job *structs.Job, before, after *structs.Subjob, control structs.Control) {
	after.Control = &control
	if before.Control.Pauses() && !control.Paused && before.State == structs.JobRunning {
		after.Reason = nil // it never came to the pause
	}
	if control == (structs.Control{Seq: control.Seq}) && !before.State.Active() {
		after.Control = nil // nobody has to hear that there is nothing
	}
	tx.putSubjob(job, before, after)
	if !after.State.Active() {
		return
	}
	for _, alloc := range tx.gang(after.JobID, after.Index, after.Attempt) {
		if alloc.Status.Terminal() {
			continue
		}
		told := *alloc
		told.Control = after.Control
		tx.putAlloc(alloc, &told)
	}
	tx.settle(job, after.Index, after.Attempt)
}

// withoutPause is what is left of a Control when its attempt ends: processes
// are paused, and they are gone. nil when nothing is left.
func withoutPause(control *structs.Control) *structs.Control {
	if !control.Throttled() {
		return nil
	}
	left := *control
	left.Paused = false
	return &left
}

// answer takes a node's word on a Control of a rank. An answer to an older one
// is no news.
func (tx *txn) answer(alloc *structs.Allocation, answer *structs.ControlAnswer) {
	job, ok := tx.job(alloc.JobID)
	if !ok {
		return
	}
	if answer.Failed != nil {
		tx.controlFailed(job, alloc, answer.Failed)
		return
	}
	after := *alloc
	after.Obeyed = answer.Seq
	tx.putAlloc(alloc, &after)
	tx.settle(job, after.Subjob, after.Attempt)
}

// answersControl reports whether a report says something new about what its rank
// was told.
func answersControl(alloc *structs.Allocation, answer *structs.ControlAnswer) bool {
	return answer != nil && alloc.Status == structs.AllocRunning && alloc.Desired == structs.DesiredRun &&
		alloc.Control != nil && alloc.Control.Seq == answer.Seq && alloc.Obeyed != answer.Seq
}

// controlFailed takes back for the whole gang what one rank cannot do: half a
// gang that stands still helps nobody.
func (tx *txn) controlFailed(job *structs.Job, alloc *structs.Allocation, why *structs.Reason) {
	before, ok := tx.subjob(alloc.JobID, alloc.Subjob)
	if !ok || before.Attempt != alloc.Attempt || !before.State.Active() || before.State == structs.JobStopping {
		return
	}
	control, id := *alloc.Control, "event.job.throttle_failed"
	control.Seq = tx.index()
	if control.Paused {
		control.Paused, id = false, "event.job.pause_failed"
	} else {
		control.Busy, control.Idle = 0, 0
	}
	event := jobEvent(id, job, before)
	event.Severity, event.AllocID, event.NodeID = severityWarn, alloc.ID, alloc.NodeID
	tx.tell(event, "job", job.Name, "rank", alloc.Name, "node", alloc.NodeName, "cause", cmp.Or(why.Params["cause"], why.ID))
	after := *before
	tx.control(job, before, &after, control)
}

// follows reports whether every living rank of an attempt does what its subjob
// was told, and the subjob does not say so yet.
func (tx *txn) follows(row *attemptRow) bool {
	subjob, ok := tx.subjob(row.Attempt.JobID, row.Attempt.Subjob)
	if !ok || subjob.Control == nil || row.Obeyed+row.Terminal < len(row.Attempt.Allocs) {
		return false
	}
	return subjob.Control.Paused && subjob.State == structs.JobRunning ||
		!subjob.Control.Paused && subjob.State == structs.JobPaused
}

// follow notes that every rank stands still, or that every rank runs again.
func (tx *txn) follow(job *structs.Job, row *attemptRow) {
	before, ok := tx.subjob(row.Attempt.JobID, row.Attempt.Subjob)
	if !ok {
		return
	}
	step, id := structs.StepContinued, "event.job.continued"
	if before.Control.Paused {
		step, id = structs.StepPaused, "event.job.paused"
	}
	state, legal := before.State.Next(step)
	if !legal {
		return
	}
	attempt := *row.Attempt
	if state == structs.JobPaused {
		attempt.PausedAt = tx.now
	} else {
		endPause(&attempt, tx.now)
	}
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)
	after := *before
	after.State = state
	if state == structs.JobRunning {
		after.Reason = nil
	}
	tx.putSubjob(job, before, &after)
	tx.tell(jobEvent(id, job, &after), "job", job.Name, "attempt", decimal(attempt.Number), "nodes", decimal(job.NodesOf(len(attempt.Allocs))))
}

// endPause books how long an attempt stood still.
func endPause(attempt *structs.Attempt, now structs.UnixNano) {
	if attempt.PausedAt != 0 {
		attempt.PausedFor += structs.Duration(max(now.Sub(attempt.PausedAt), 0))
		attempt.PausedAt = 0
	}
}

// applyJobFinish ends what runs of a job with success: every rank gets the
// signal and the grace with which it saves its work, and whatever it answers
// counts as done. Subjobs of it that wait are stopped, since they have done
// nothing.
func applyJobFinish(tx *txn, body *structs.JobFinish) (structs.ApplyResult, *structs.Error) {
	job, targets, refusal := tx.targets(body.JobID, body.Subjob)
	if refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if !job.Supports.Finishes() {
		return refuse(structs.CodeConflict, "state.finish_unsupported", "job", job.Name)
	}
	running := func(subjob *structs.Subjob) bool {
		return subjob.State == structs.JobRunning || subjob.State == structs.JobPaused
	}
	if !slices.ContainsFunc(targets, running) {
		return refuse(structs.CodeConflict, "state.job_not_running", "job", job.Name, "state", stateOf(tx, job, body.Subjob))
	}
	tx.tell(jobEvent("event.job.finish_requested", job, nil), "job", job.Name, "by", tx.by, "reason", body.Reason)
	finished, stopped := byReason("reason.finished_by", "reason.finished_by_because", tx.by, body.Reason), stopReason(tx.by, body.Reason)
	for _, subjob := range targets {
		if !running(subjob) {
			tx.stopSubjob(job, subjob, stopped)
			continue
		}
		asked := *subjob
		asked.StopBy = tx.by
		tx.putSubjob(job, subjob, &asked)
		tx.endAttempt(job, asked.Index, asked.Attempt, ending{outcome: structs.OutcomeSucceeded, cause: finished, saves: true})
	}
	return structs.ApplyResult{JobID: job.ID}, nil
}
