package state

import (
	"slices"

	"nomadlike/nomadlike/structs"
)

// applyJobParallel changes how many subjobs of a job may be placed, or wait for a place, at
// a time. With more of them the next get their turn; with fewer, those that have not
// started give it back, the last first, and what runs goes on.
func applyJobParallel(tx *txn, body *structs.JobParallel) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	if state := tx.jobStatus(job.ID).Status.State; state.Terminal() {
		return refuse(structs.CodeConflict, "state.job_ended", "job", job.Name, "state", state)
	}
	if !job.Batched() {
		return refuse(structs.CodeConflict, "state.job_no_batch", "job", job.Name)
	}
	if body.Parallel < 0 || body.Parallel > structs.BatchCountMax {
		return refuse(structs.CodeInvalid, "state.parallel_range", "value", body.Parallel, "max", structs.BatchCountMax)
	}
	before := job.Parallel()
	if body.Parallel == before {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	changed := job.WithParallel(body.Parallel)
	tx.changeJob(changed)
	tx.takeTurns(changed)
	tx.freed = append(tx.freed, job.ID)
	id := "event.job.parallel"
	if body.Parallel == 0 {
		id = "event.job.parallel_lifted"
	}
	tx.tell(jobEvent(id, changed, nil), "job", job.Name, "by", tx.by, "from", decimal(before), "to", decimal(body.Parallel))
	return structs.ApplyResult{JobID: job.ID}, nil
}

// takeTurns has subjobs wait for their turn again until no more have theirs than the job
// allows: the last of those that have no nodes, and none on their way.
func (tx *txn) takeTurns(job *structs.Job) {
	over := tx.jobStatus(job.ID).Status
	if job.Parallel() == 0 || over.Released() <= job.Parallel() {
		return
	}
	for _, row := range slices.Backward(tx.subjobs(job.ID)) {
		status := tx.jobStatus(job.ID).Status
		if status.Released() <= job.Parallel() {
			return
		}
		if s := row.Subjob; s.State != structs.JobQueued || s.Turn || s.Nomination != nil || s.Attempt != 0 {
			continue
		}
		after := *row.Subjob
		after.Turn, after.NoPassingAt = true, 0
		after.Wait = waitAtFirst(job, &after, tx.now)
		tx.putSubjob(job, row.Subjob, &after)
	}
}

// passTurns hands the turn of subjobs that ended by this command to the next of their
// jobs, in the order of their numbers.
func (tx *txn) passTurns() {
	for _, id := range slices.Compact(tx.freed) {
		job, ok := tx.job(id)
		if !ok {
			continue // forgotten by the same command
		}
		for {
			status := tx.jobStatus(id).Status
			if status.Turns == 0 || job.Parallel() > 0 && status.Released() >= job.Parallel() {
				break
			}
			row, ok := lookup[*subjobRow](tx, tableSubjobs, indexTurn+"_prefix", idKey(id))
			if !ok {
				break
			}
			after := *row.Subjob
			after.Turn = false
			if len(after.Pending) == 0 {
				after.QueuedAt = tx.now // what it waited before was not for room
			}
			after.Wait = waitAtFirst(job, &after, tx.now)
			tx.putSubjob(job, row.Subjob, &after)
			tx.wakeSchedule()
		}
	}
	tx.freed = nil
}
