package state

import (
	"math"
	"time"

	"nomadlike/nomadlike/structs"
)

// Places in the queue. A job gets its place from the log index that made it,
// with room between two neighbours for others to be moved in.
const (
	placeGap    = 1 << 20 // between the places of two indexes
	placeRoom   = 1 << 8  // room that is made between neighbours when there is none left
	placeWindow = 16      // neighbours that are moved apart then, doubled until there is room
)

// placeOf is the place of a job that was made at a log index.
func placeOf(index uint64) uint64 { return index * placeGap }

// queuedJob returns a job that may still be moved in the queue: it waits, and
// nothing of it runs.
func (tx *txn) queuedJob(id string) (*structs.Job, *structs.Error) {
	job, ok := tx.job(id)
	if !ok {
		return nil, structs.NewError(structs.CodeNotFound, "state.job_unknown", "job", id)
	}
	switch state := tx.jobStatus(job.ID).Status.State; {
	case state.Terminal():
		return nil, structs.NewError(structs.CodeConflict, "state.job_ended", "job", job.Name, "state", state)
	case state != structs.JobQueued:
		return nil, structs.NewError(structs.CodeConflict, "state.job_not_queued", "job", job.Name, "state", state)
	}
	return job, nil
}

// applyJobPriority moves a job that waits to another tier of the queue, where
// it stands by its submission. Nodes that are being cleared for it were taken
// by the right of its tier: it keeps the tier until it runs.
func applyJobPriority(tx *txn, body *structs.JobPriority) (structs.ApplyResult, *structs.Error) {
	job, refusal := tx.queuedJob(body.JobID)
	if refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	switch body.Priority {
	case structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical:
	default:
		return refuse(structs.CodeInvalid, "state.priority_unknown", "priority", body.Priority)
	}
	if body.Priority == job.Priority {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	for _, row := range tx.subjobs(job.ID) {
		if row.Subjob.Nomination != nil {
			return refuse(structs.CodeConflict, "state.job_claims", "job", job.Name)
		}
	}
	moved := *job
	moved.Priority = body.Priority
	if body.Priority == structs.PriorityUrgent {
		if refusal := tx.urgentProblem(&moved); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}
	tx.countUrgent(job, -1)
	tx.countUrgent(&moved, +1)
	tx.changeJob(&moved)
	tx.movePlace(&moved, 0, false)
	tx.tell(jobEvent("event.job.priority", &moved, nil), "job", job.Name,
		"from", string(job.Priority), "to", string(body.Priority), "by", tx.by)
	return structs.ApplyResult{JobID: job.ID}, nil
}

// changeJob replaces what a person may change of a job, and wakes what waits
// for either.
func (tx *txn) changeJob(job *structs.Job) {
	known, _ := tx.jobRow(job.ID)
	row := &jobRow{Job: job, CreateIndex: known.CreateIndex}
	tx.put(tableJobs, row.key(), row)
	for _, subjob := range tx.subjobs(job.ID) {
		tx.putRow(subjob.Subjob, row)
	}
	tx.touchJobStatus(job.ID)
}

// touchJobStatus wakes what waits for a job.
func (tx *txn) touchJobStatus(jobID string) {
	status := *tx.jobStatus(jobID)
	status.Status.ModifyIndex = tx.index()
	tx.putJobStatus(&status)
}

// movePlace puts all live subjobs of a job in a place, 0 for the one of their
// submission.
func (tx *txn) movePlace(job *structs.Job, place uint64, moved bool) {
	for _, row := range tx.subjobs(job.ID) {
		if row.Subjob.State.Terminal() {
			continue
		}
		after := *row.Subjob
		after.Place, after.Moved, after.NoPassingAt = place, moved, 0 // what was announced was for another place
		if place == 0 {
			after.Place = placeOf(after.CreateIndex)
		}
		tx.putSubjob(job, row.Subjob, &after)
	}
	tx.wakeSchedule()
}

// applyQueueMove moves a waiting job to another place within its tier: before
// another waiting job, before all, or behind all. A job that was moved forward
// stands before those that fair share orders; one that was moved behind all
// stands like any other again.
func applyQueueMove(tx *txn, body *structs.QueueMove) (structs.ApplyResult, *structs.Error) {
	job, refusal := tx.queuedJob(body.JobID)
	if refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	event := jobEvent("event.job.moved_first", job, nil)
	params := []string{"job", job.Name, "by", tx.by}
	var place uint64
	switch {
	case body.Before != "" && (body.Last || body.Before == body.JobID):
		return refuse(structs.CodeInvalid, "state.move_malformed", "job", job.Name)
	case body.Before != "":
		other, refusal := tx.queuedJob(body.Before)
		if refusal != nil {
			return structs.ApplyResult{}, refusal
		}
		if other.Priority.Rank() != job.Priority.Rank() {
			return refuse(structs.CodeConflict, "state.move_tier", "job", job.Name, "tier", job.Priority,
				"before", other.Name, "other", other.Priority)
		}
		event.ID, params = "event.job.moved_before", append(params, "before", other.Name)
		place = tx.placeBefore(job, other.ID)
	case body.Last:
		event.ID, place = "event.job.moved_last", placeOf(tx.index()) // no other job is of this index
	default:
		place = tx.placeBefore(job, "")
	}
	tx.movePlace(job, place, !body.Last)
	tx.touchJobStatus(job.ID)
	tx.tell(event, params...)
	return structs.ApplyResult{JobID: job.ID}, nil
}

// stand is one job in the queue of a tier.
type stand struct {
	jobID string
	place uint64
}

// queueOf lists the waiting jobs of a tier in order, but for one.
func (tx *txn) queueOf(tier int, without string) []stand {
	var jobs []stand
	for _, row := range listRows[*subjobRow](tx, tableSubjobs, indexQueue, tierKey(tier, 0)) {
		if id := row.Subjob.JobID; id != without && (len(jobs) == 0 || jobs[len(jobs)-1].jobID != id) {
			jobs = append(jobs, stand{id, row.Subjob.Place})
		}
	}
	return jobs
}

// placeBefore finds a place for job before another, "" for before all, and
// makes room when there is none.
func (tx *txn) placeBefore(job *structs.Job, before string) uint64 {
	jobs := tx.queueOf(job.Priority.Rank(), job.ID)
	at := 0
	for before != "" && at < len(jobs) && jobs[at].jobID != before {
		at++
	}
	if at == len(jobs) {
		return placeOf(tx.index())
	}
	low, high := uint64(0), jobs[at].place
	if at > 0 {
		low = jobs[at-1].place
	} else if high > placeGap {
		low = high - placeGap
	}
	if high > low+1 {
		return low + (high-low)/2
	}
	return tx.spread(jobs, at)
}

// spread moves the neighbours of a position apart, as few as give room, and
// returns the place in their middle. The whole tier always has room: it holds
// fewer jobs than the log had indexes.
func (tx *txn) spread(jobs []stand, at int) uint64 {
	for reach := placeWindow; ; reach *= 2 {
		from, to := max(at-reach, 0), min(at+reach, len(jobs))
		low, high := uint64(0), placeOf(tx.index())
		if from > 0 {
			low = jobs[from-1].place
		}
		if to < len(jobs) {
			high = jobs[to].place
		}
		steps := uint64(to - from + 2) // the window, the newcomer, and the end
		whole := from == 0 && to == len(jobs)
		if high < low || (high-low)/steps < placeRoom && !whole {
			continue
		}
		step := (high - low) / steps
		for i, stand := range jobs[from:to] {
			seat := uint64(i + 1)
			if from+i >= at {
				seat++ // behind the newcomer
			}
			if job, ok := tx.job(stand.jobID); ok {
				tx.shift(job, low+step*seat)
			}
		}
		return low + step*uint64(at-from+1)
	}
}

// shift puts the live subjobs of a job in a place and leaves all else.
func (tx *txn) shift(job *structs.Job, place uint64) {
	for _, row := range tx.subjobs(job.ID) {
		if row.Subjob.State.Terminal() || row.Subjob.Place == place {
			continue
		}
		after := *row.Subjob
		after.Place = place
		tx.putSubjob(job, row.Subjob, &after)
	}
}

// applyJobTimeLimit changes how long the attempts of a job may run, those that
// run now included: their clock goes on from where it started. 0 lifts the
// limit.
func applyJobTimeLimit(tx *txn, body *structs.JobTimeLimit) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	if state := tx.jobStatus(job.ID).Status.State; state.Terminal() {
		return refuse(structs.CodeConflict, "state.job_ended", "job", job.Name, "state", state)
	}
	if body.TimeLimit < 0 {
		return refuse(structs.CodeInvalid, "state.time_limit_negative", "limit", body.TimeLimit)
	}
	if body.TimeLimit == job.TimeLimit {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	changed := *job
	changed.TimeLimit = body.TimeLimit
	tx.changeJob(&changed)
	for _, row := range listRows[*attemptRow](tx, tableAttempts, indexLive, idKey(job.ID)) {
		if row.Attempt.RunningAt != 0 {
			after, attempt := *row, *row.Attempt
			if attempt.WarnedAt != 0 && warnAt(&changed, &attempt) > tx.now {
				attempt.WarnedAt = 0 // it is warned anew, of the later end
				after.Attempt = &attempt
			}
			after.Due = dueAt(&changed, &attempt)
			if after.Attempt == row.Attempt {
				tx.putCounts(&after)
			} else {
				tx.putAttempt(&after)
			}
		}
	}
	tx.wakeSchedule() // reservations count with the ends of what runs
	params := []string{"job", job.Name, "by", tx.by, "from", structs.FormatDuration(job.TimeLimit), "to", structs.FormatDuration(body.TimeLimit)}
	id := "event.job.time_limit"
	switch {
	case job.TimeLimit == 0:
		id = "event.job.time_limit_set"
	case body.TimeLimit == 0:
		id = "event.job.time_limit_lifted"
	}
	tx.tell(jobEvent(id, &changed, nil), params...)
	return structs.ApplyResult{JobID: job.ID}, nil
}

// limitAt is when a running attempt reaches its job's limit or deadline, 0 for never.
func limitAt(job *structs.Job, attempt *structs.Attempt) structs.UnixNano {
	if job.TimeLimit <= 0 {
		return job.DeadlineAt
	}
	due := attempt.RunningAt.Add(job.TimeLimit.Std())
	if due <= attempt.RunningAt {
		due = math.MaxInt64
	}
	if job.DeadlineAt != 0 {
		due = min(due, job.DeadlineAt)
	}
	return due
}

// warnAt is when a running attempt is warned of its job's limit, 0 for never.
func warnAt(job *structs.Job, attempt *structs.Attempt) structs.UnixNano {
	limit := limitAt(job, attempt)
	if limit == 0 || job.LimitWarning == nil {
		return 0
	}
	return max(attempt.RunningAt, limit.Add(-job.LimitWarning.Before.Std()))
}

// dueAt is when something is to be done about the limit of a running attempt:
// to warn it, or to end it; 0 for never.
func dueAt(job *structs.Job, attempt *structs.Attempt) structs.UnixNano {
	if warn := warnAt(job, attempt); warn != 0 && attempt.WarnedAt == 0 {
		return warn
	}
	return limitAt(job, attempt)
}

// applyJobLimits expires attempts whose time limit has passed by the
// proposer's clock, warns those of which it will pass soon, and takes out of the queue
// what can start no more. Attempts that ended meanwhile are left alone, and so are
// those whose limit was raised meanwhile.
func applyJobLimits(tx *txn, body *structs.JobLimits) (structs.ApplyResult, *structs.Error) {
	if len(body.Expired)+len(body.Queued) > 2*LimitsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "expired", "max", LimitsMax)
	}
	for _, key := range body.Expired {
		job, ok := tx.job(key.JobID)
		row, known := tx.attempt(key.JobID, key.Subjob, key.Number)
		if !ok || !known || row.Due == 0 || row.Due > tx.now {
			continue
		}
		if job.LimitWarning != nil && row.Attempt.WarnedAt == 0 {
			tx.warn(job, row)
			continue // also where the limit itself has passed: one that was not warned goes a moment later
		}
		cause := structs.NewReason("reason.time_limit", "limit", job.TimeLimit)
		if job.DeadlineAt != 0 && limitAt(job, row.Attempt) == job.DeadlineAt {
			cause = job.DeadlineReason()
		}
		tx.endAttempt(job, key.Subjob, key.Number, ending{outcome: structs.OutcomeExpired, cause: cause})
	}
	for _, key := range body.Queued {
		tx.withdraw(key)
	}
	return accepted()
}

// warn has the ranks of an attempt sent the signal that comes before its end.
func (tx *txn) warn(job *structs.Job, row *attemptRow) {
	attempt := *row.Attempt
	attempt.WarnedAt = tx.now
	after := *row
	after.Attempt, after.Due = &attempt, dueAt(job, &attempt)
	tx.putAttempt(&after)
	warning := &structs.Warning{Seq: tx.index(), Signal: job.LimitWarning.Signal}
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Status != structs.AllocRunning || alloc.Desired == structs.DesiredStop || job.IsServer(alloc.Rank) {
			continue
		}
		warned := *alloc
		warned.Warning = warning
		tx.putAlloc(alloc, &warned)
	}
	tx.tell(structs.Event{
		Topic: topicAttempt, ID: "event.attempt.limit_warned", Project: job.Project, JobID: job.ID,
		Subjob: attempt.Subjob, Attempt: attempt.Number,
	}, "attempt", decimal(attempt.Number), "signal", warning.Signal,
		"left", structs.FormatDuration(structs.Duration(max(limitAt(job, &attempt).Sub(tx.now), 0).Round(time.Second))))
}
