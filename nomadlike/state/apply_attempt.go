package state

import (
	"cmp"
	"time"

	"nomadlike/nomadlike/structs"
)

// ending is why an attempt ends.
type ending struct {
	outcome structs.Outcome
	cause   *structs.Reason
	failed  *structs.Allocation // the allocation that failed first, if one did
	by      *structs.AttemptKey // the attempt that it makes room for, if it does
	saves   bool                // its ranks are to save a checkpoint first, if their job keeps any
	code    int                 // what the job answers to a shell when it was not a rank's own end
}

// exitCode is what the attempt, and so perhaps the job, answers to a shell.
func (e ending) exitCode() int {
	if e.failed == nil {
		return e.code
	}
	if e.failed.Signal != 0 {
		return 128 + e.failed.Signal
	}
	return e.failed.ExitCode
}

// destination is where a subjob goes when an attempt with this outcome is
// over: only its own failures count against the user's budget.
func destination(job *structs.Job, subjob *structs.Subjob, outcome structs.Outcome) structs.JobState {
	switch outcome {
	case structs.OutcomeSucceeded:
		return structs.JobSucceeded
	case structs.OutcomeStopped:
		return structs.JobStopped
	case structs.OutcomeExpired:
		return structs.JobExpired
	case structs.OutcomeFailed:
		if subjob.Restarts >= job.MaxRestarts() {
			return structs.JobFailed
		}
	}
	return structs.JobQueued
}

// restartDelay is how long a subjob stays out of the queue after an attempt:
// the user's delay after failures of their own, and a growing one when the command
// was not even started: what it lacks does not come in milliseconds; a growing one
// when the node's side failed again and again, so that a broken machine is not
// hammered; none when nodes were lost or drained.
func restartDelay(job *structs.Job, attempt *structs.Attempt, failures, losses int, unrun bool) time.Duration {
	switch {
	case attempt.Outcome == structs.OutcomeFailed:
		var delay time.Duration
		if job.Restart != nil {
			delay = job.Restart.Delay.Std()
		}
		if unrun && job.PatientStarts {
			delay = max(delay, min(unrunBackoffFirst<<min(max(failures-1, 0), 16), unrunBackoffMax))
		}
		return delay
	case attempt.Outcome == structs.OutcomeLost && attempt.FirstFailed != "":
		repeats := losses - infraFailuresAtOnce
		if repeats <= 0 {
			return 0
		}
		return min(infraBackoffFirst<<min(repeats-1, 16), infraBackoffMax)
	}
	return 0
}

// endAttempt asks every rank of an attempt to stop, and notes where its subjob
// goes then. The first outcome stays, with one exception: ranks often fail
// because a peer's node died, and say so before anybody knows that; such a
// failure turns out to be a loss and is charged to nobody.
func (tx *txn) endAttempt(job *structs.Job, subjob int, number uint64, end ending) {
	row, ok := tx.attempt(job.ID, subjob, number)
	if !ok || row.Attempt.State == structs.AttemptEnded {
		return
	}
	if row.Attempt.State == structs.AttemptEnding {
		if row.Attempt.Outcome == structs.OutcomeFailed && end.outcome == structs.OutcomeLost && end.failed == nil {
			tx.turnIntoLoss(job, row, end.cause)
		}
		return
	}
	before, ok := tx.subjob(job.ID, subjob)
	if !ok {
		return
	}
	stopping, legal := before.State.Next(structs.StepEnding)
	if !legal || !row.Attempt.State.CanBecome(structs.AttemptEnding) {
		return
	}

	attempt := *row.Attempt
	attempt.State, attempt.EndingAt = structs.AttemptEnding, tx.now
	attempt.Outcome, attempt.Cause, attempt.ExitCode, attempt.By = end.outcome, end.cause, end.exitCode(), end.by
	if end.failed != nil {
		attempt.FirstFailed = end.failed.ID
	}
	endPause(&attempt, tx.now)
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)

	if row.Terminal < len(attempt.Allocs) {
		tx.stopRanks(job, &attempt, end.saves || end.outcome == structs.OutcomePreempted || job.SavesAtEnds && end.outcome != structs.OutcomeSucceeded)
	}

	after := *before
	after.State, after.Reason, after.Control = stopping, end.cause, withoutPause(before.Control)
	after.StopIntended = destination(job, before, end.outcome)
	tx.putSubjob(job, before, &after)

	event := structs.Event{
		Topic: topicAttempt, ID: "event.attempt.ending", Project: job.Project,
		JobID: job.ID, Subjob: subjob, Attempt: number, AllocID: attempt.FirstFailed,
	}
	if end.outcome == structs.OutcomeFailed || end.outcome == structs.OutcomeLost {
		event.Severity = severityWarn
	}
	if job.PatientStarts && end.failed == nil && end.outcome != structs.OutcomeSucceeded {
		event.Cause = end.cause // otherwise the rank's own event names it
	}
	tx.tell(event, "attempt", decimal(number), "outcome", string(end.outcome))
	tx.tellBy(job, subjob, number, end)
	tx.settle(job, subjob, number)
}

// tellBy records on the side of an attempt for whom it makes room.
func (tx *txn) tellBy(job *structs.Job, subjob int, number uint64, end ending) {
	if end.by == nil || end.by.JobID == job.ID {
		return
	}
	event := structs.Event{
		Topic: topicAttempt, ID: "event.attempt.preempted", Project: job.Project, JobID: job.ID,
		Subjob: subjob, Attempt: number, Severity: severityWarn,
	}
	tx.tell(event, "attempt", decimal(number), "job", end.cause.Params["job"], "user", end.cause.Params["user"])
}

// stopRanks asks the ranks of an ending attempt to stop. At every end but that of
// work that is done they are told to save a checkpoint first, if their job keeps
// any; in jobs of older versions only those that make room for others, or are
// finished early.
func (tx *txn) stopRanks(job *structs.Job, attempt *structs.Attempt, saves bool) {
	var order *structs.StopOrder
	if c := job.Checkpoint; c != nil && saves {
		order = &structs.StopOrder{
			Signal: cmp.Or(c.Signal, structs.DefaultCheckpointSignal),
			Grace:  cmp.Or(c.Grace, structs.DefaultCheckpointGrace),
		}
	}
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Status.Terminal() || alloc.Desired == structs.DesiredStop {
			continue
		}
		if order != nil && job.IsServer(alloc.Rank) {
			continue // the workers save what it holds: it goes when they have
		}
		after := *alloc
		after.Desired, after.DesiredReason, after.Stop = structs.DesiredStop, attempt.Cause, order
		tx.putAlloc(alloc, &after)
	}
}

// turnIntoLoss clears a user of a failure that a lost node explains.
func (tx *txn) turnIntoLoss(job *structs.Job, row *attemptRow, cause *structs.Reason) {
	attempt := *row.Attempt
	attempt.Outcome, attempt.Cause, attempt.FirstFailed, attempt.ExitCode = structs.OutcomeLost, cause, "", 0
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)
	before, ok := tx.subjob(attempt.JobID, attempt.Subjob)
	if !ok || before.State != structs.JobStopping || before.StopIntended == structs.JobStopped {
		return
	}
	after := *before
	after.StopIntended, after.Reason = structs.JobQueued, cause
	tx.putSubjob(job, before, &after)
}

// settle moves an attempt as far as its allocations allow: the barrier opens
// when all are prepared, it runs when all run, it has succeeded when all are
// complete, and an ending one has ended when none is left.
func (tx *txn) settle(job *structs.Job, subjob int, number uint64) {
	for {
		row, ok := tx.attempt(job.ID, subjob, number)
		if !ok {
			return
		}
		all := len(row.Attempt.Allocs)
		switch {
		case row.Attempt.State == structs.AttemptPreparing && row.Prepared == all:
			tx.release(job, row)
		case row.Attempt.State == structs.AttemptReleased && row.Running == all:
			tx.start(job, row)
		case row.Attempt.State == structs.AttemptRunning && row.Complete == all:
			tx.endAttempt(job, subjob, number, ending{outcome: structs.OutcomeSucceeded})
			return
		case row.Attempt.State == structs.AttemptRunning && row.Terminal == all && job.TorchRange():
			// Without some that it went on without; rank 0 is complete, or it would have ended.
			tx.endAttempt(job, subjob, number, ending{outcome: structs.OutcomeSucceeded})
			return
		case row.Attempt.State.Commanded() && row.Complete > 0 && tx.workersAre(job, row, isComplete):
			tx.endAttempt(job, subjob, number, ending{outcome: structs.OutcomeSucceeded, cause: structs.NewReason("reason.workers_done")})
			return
		case row.Attempt.State == structs.AttemptRunning && tx.follows(row):
			tx.follow(job, row)
		case row.Attempt.State == structs.AttemptEnding && row.Terminal < all && tx.workersAre(job, row, isTerminal):
			tx.stopServers(row.Attempt)
			return
		case row.Attempt.State == structs.AttemptEnding && row.Terminal == all:
			if tx.fenced(job, row.Attempt) {
				return
			}
			tx.finish(job, row)
			return
		default:
			return
		}
	}
}

// release opens the barrier.
func (tx *txn) release(job *structs.Job, row *attemptRow) {
	attempt := *row.Attempt
	attempt.State, attempt.ReleasedAt = structs.AttemptReleased, tx.now
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)
	if !job.NeedsBarrier() {
		return // its one allocation was released when it was placed
	}
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Released || alloc.Status.Terminal() {
			continue
		}
		after := *alloc
		after.Released = true
		tx.putAlloc(alloc, &after)
	}
	tx.tell(structs.Event{
		Topic: topicAttempt, ID: "event.attempt.released", Project: job.Project, JobID: job.ID,
		Subjob: attempt.Subjob, Attempt: attempt.Number,
	}, "attempt", decimal(attempt.Number), "nodes", decimal(job.NodesOf(len(attempt.Allocs))))
}

// start notes that every rank's command runs.
func (tx *txn) start(job *structs.Job, row *attemptRow) {
	attempt := *row.Attempt
	attempt.State, attempt.RunningAt = structs.AttemptRunning, tx.now
	changed := *row
	changed.Attempt, changed.Due = &attempt, dueAt(job, &attempt)
	tx.putAttempt(&changed)
	if job.Resizes() && job.NodesOf(attempt.RanksLeft()) < job.Nodes {
		tx.wakeSchedule() // from now on it is known when the gang may grow
	}
	before, ok := tx.subjob(attempt.JobID, attempt.Subjob)
	if !ok {
		return
	}
	running, legal := before.State.Next(structs.StepStarted)
	if !legal {
		return
	}
	after := *before
	after.State = running
	if after.StartedAt == 0 {
		after.StartedAt = tx.now
	}
	tx.putSubjob(job, before, &after)
	tx.tell(jobEvent("event.job.running", job, &after), "job", job.Name, "attempt", decimal(attempt.Number))
}

// finish ends an attempt of which nothing runs any more, and sends its subjob
// where it was meant to go.
func (tx *txn) finish(job *structs.Job, row *attemptRow) {
	attempt := *row.Attempt
	attempt.State, attempt.EndedAt = structs.AttemptEnded, tx.now
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)

	before, ok := tx.subjob(attempt.JobID, attempt.Subjob)
	if !ok {
		return
	}
	tx.recordRun(job, before, &attempt)
	tx.recordAttempt(job, before, &attempt)
	after := *before
	if before.StopIntended == structs.JobQueued {
		tx.requeue(job, before, &after, &attempt)
		return
	}
	after.ExitCode = attempt.ExitCode
	tx.endSubjob(job, before, &after, before.StopIntended, before.Reason)
}

// requeue puts a subjob back into the queue for another attempt.
func (tx *txn) requeue(job *structs.Job, before, after *structs.Subjob, attempt *structs.Attempt) {
	state, legal := before.State.Next(structs.StepRequeued)
	if !legal {
		return
	}
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Hold != nil { // a lost node explains its failure: nobody has to look for it
			tx.orderHold(alloc, structs.ReleaseHold)
		}
	}
	resized := attempt.By != nil && attempt.By.JobID == attempt.JobID && attempt.By.Subjob == attempt.Subjob
	switch {
	case attempt.Outcome == structs.OutcomeFailed:
		after.Restarts++
	case !resized:
		after.InfraLosses++
	}
	after.State, after.QueuedAt, after.StopIntended = state, tx.now, ""
	after.NotBefore = 0
	if delay := restartDelay(job, attempt, after.Restarts, after.InfraLosses, tx.unrun(attempt)); delay > 0 {
		after.NotBefore = tx.now.Add(delay)
	}
	tx.putSubjob(job, before, after)
	tx.tell(jobEvent("event.job.requeued", job, after), "job", job.Name, "attempt", decimal(attempt.Number),
		"outcome", string(attempt.Outcome))
	if after.Nomination != nil {
		tx.review(structs.SubjobKey(job.ID, after.Index), true)
	}
}

// unrun reports whether the rank that failed an attempt never ran its command.
func (tx *txn) unrun(attempt *structs.Attempt) bool {
	failed, ok := tx.alloc(attempt.FirstFailed)
	return ok && failed.StartedAt == 0 // though the driver may tell the exit code that a shell would have
}

// stepTo is the step of the job machine that leads to an end.
func stepTo(end structs.JobState) structs.JobStep {
	switch end {
	case structs.JobSucceeded:
		return structs.StepSucceeded
	case structs.JobFailed:
		return structs.StepFailed
	case structs.JobExpired:
		return structs.StepExpired
	}
	return structs.StepStopped
}

// endSubjob brings a subjob to its end.
func (tx *txn) endSubjob(job *structs.Job, before, after *structs.Subjob, end structs.JobState, reason *structs.Reason) {
	state, legal := before.State.Next(stepTo(end))
	if !legal {
		return
	}
	after.State, after.FinishedAt, after.Reason = state, tx.now, reason
	after.StopIntended, after.Wait, after.NotBefore, after.NoPassingAt, after.Control = "", nil, 0, 0, nil
	after.Pending, after.Turn = nil, false
	if after.Nomination != nil {
		tx.releaseNodes(after.Nomination, structs.SubjobKey(job.ID, after.Index))
		after.Nomination = nil
	}
	tx.putSubjob(job, before, after)
	if state == structs.JobSucceeded {
		tx.keepSuccess(job, after)
	}
	if before.State == structs.JobQueued {
		tx.endForecasts(job.ID, after.Index, after.NextAttempt(), false)
	}
	event := jobEvent("event.job."+string(state), job, after)
	if before.State == structs.JobQueued && (state == structs.JobExpired || len(before.Pending) > 0 && after.StopBy == "") {
		event.ID, event.Cause = "event.job.withdrawn", reason
	}
	if state == structs.JobFailed || state == structs.JobExpired {
		event.Severity = severityError
	}
	if state == structs.JobFailed && after.ExitCode == 0 {
		event.ID = "event.job.failed_unrun"
	}
	if state == structs.JobFailed && job.PatientStarts {
		event.Cause = reason
	}
	tx.tell(event, "job", job.Name, "attempt", decimal(after.Attempt), "exit_code", decimal(after.ExitCode))
}
