package state

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// applyJobSubmit queues an admitted job. A key that was seen before gives the
// job it made then, if that is what is asked for now; so does the same admission when it
// arrives a second time, because its proposer could not know the outcome. A name belongs to one job of its
// project at a time, and is free again once that job has ended.
func applyJobSubmit(tx *txn, body *structs.JobSubmit) (structs.ApplyResult, *structs.Error) {
	job := body.Job
	if problem := jobProblem(job); problem != "" {
		return refuse(structs.CodeInvalid, "state.job_malformed", "field", problem)
	}
	if known, ok := tx.jobOfKey(job); ok {
		if before, kept := tx.job(known); kept && !sameRequest(before, job) {
			return refuse(structs.CodeConflict, "state.key_reused", "job", before.ID, "name", before.Name, "project", before.Project, "wanted", job.Name)
		}
		return structs.ApplyResult{JobID: known}, nil
	}
	known, exists := tx.job(job.ID)
	if exists && known.User == job.User && known.Project == job.Project && known.Name == job.Name {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	// Ids are random; one that a deleted job left behind in quarantine would
	// make allocation ids that exist.
	_, left := lookup[*structs.Allocation](tx, tableAllocs, indexGang+"_prefix", idKey(job.ID))
	if exists || left {
		return refuse(structs.CodeConflict, "state.job_exists", "job", job.ID)
	}
	if project := tx.project(job.Project); project != nil && project.Archived {
		return refuse(structs.CodeConflict, "state.project_archived", "project", project.Name, "by", project.ArchivedBy)
	}
	if live, state := tx.liveNamed(job.Project, job.Name); live != nil {
		return refuse(structs.CodeConflict, "state.job_name_taken", "name", job.Name, "project", job.Project,
			"job", live.ID, "state", state)
	}

	if refusal := tx.codeProblem(job); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if refusal := tx.dataProblem(job); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if tx.meta.Live+job.SubjobCount() > LiveSubjobsMax {
		return refuse(structs.CodeUnavailable, "state.queue_full", "max", LiveSubjobsMax)
	}
	if refusal := tx.bytesProblem(job, body.BytesMax); refusal != nil {
		return structs.ApplyResult{}, refusal
	}
	if job.Priority == structs.PriorityUrgent {
		if refusal := tx.urgentProblem(job); refusal != nil {
			return structs.ApplyResult{}, refusal
		}
	}

	pending, refusal := tx.pendingOf(job)
	if refusal != nil {
		return structs.ApplyResult{}, refusal
	}

	internJob(job)
	job.Number = 0
	if body.Numbered {
		tx.meta.Number++
		job.Number = tx.meta.Number
	}
	tx.meta.Jobs++
	row := &jobRow{Job: job, CreateIndex: tx.index()}
	tx.put(tableJobs, row.key(), row)
	tx.named[string(nameKey(job.Project, job.Name))] = job.ID
	tx.putJobStatus(&jobStatusRow{JobID: job.ID, SubmittedAt: tx.now, Status: JobStatus{
		State: structs.JobQueued, ExitOf: -1, CreateIndex: tx.index(), ModifyIndex: tx.index(),
	}})
	var wait *structs.WaitReason // most share one
	for i := range job.SubjobCount() {
		subjob := &structs.Subjob{
			JobID: job.ID, Index: i, State: structs.JobQueued,
			QueuedAt: tx.now, Place: placeOf(tx.index()), CreateIndex: tx.index(), Pending: pending,
			Turn: job.Parallel() > 0 && i >= job.Parallel(),
		}
		if i == 0 || i == job.Parallel() {
			wait = waitAtFirst(job, subjob, tx.now)
		}
		subjob.Wait = wait
		if job.BeginAt > tx.now {
			subjob.NotBefore = job.BeginAt
		}
		if t := job.Throttle; t != nil {
			subjob.Control = &structs.Control{Seq: tx.index(), Busy: t.Busy, Idle: t.Idle}
		}
		if job.Resume != nil {
			subjob.Checkpoints = []structs.SavedCheckpoint{*job.Resume}
		}
		if i == 0 {
			tx.putRow(subjob, row) // from now on the job is found
		}
		tx.putSubjob(job, nil, subjob)
	}
	tx.countUrgent(job, +1)
	tx.countLive(job, live{bytes: jobBytes(job)})
	tx.recordKey(job)
	event, params := submittedEvent(job)
	tx.tell(event, params...)
	return structs.ApplyResult{JobID: job.ID}, nil
}

// sameRequest reports whether two submissions asked for the same job: what the
// server adds, and what may be changed afterwards, does not count.
func sameRequest(before, job *structs.Job) bool {
	plain := func(job *structs.Job) []byte {
		one := *job
		one.ID, one.SubmittedAt, one.Priority, one.TimeLimit, one.Tags, one.Note = "", 0, "", 0, nil, ""
		if one.Batched() {
			one = *one.WithParallel(0)
		}
		one.Number, one.BeginAt, one.DeadlineAt, one.After = 0, 0, 0, slices.Clone(one.After)
		for i := range one.After {
			one.After[i].ID = "" // its name may mean another job by now
		}
		if one.OutputKeep != nil {
			one.OutputKeep = &structs.OutputKeep{As: one.OutputKeep.As, Name: one.OutputKeep.Name, When: one.OutputKeep.When, Path: one.OutputKeep.Path}
		}
		one.Algorithms, one.Datasets, one.Models = asAsked(one.Algorithms), asAsked(one.Datasets), asAsked(one.Models)
		data, err := wire.Marshal(&one)
		if err != nil {
			return nil // it came from a log entry; names decide
		}
		return data
	}
	return before.Project == job.Project && before.Name == job.Name && bytes.Equal(plain(before), plain(job))
}

// asAsked is references as a request spells them: where it asks for the newest version,
// or for a tag, that there is another one by now makes it no other request.
func asAsked(refs []structs.DataRef) []structs.DataRef {
	asked := slices.Clone(refs)
	for i := range asked {
		if pick := asked[i].Object; pick != nil && pick.Asked != "" {
			asked[i].Version, asked[i].Tag, asked[i].Object = 0, pick.Asked, nil
		}
	}
	return asked
}

// liveNamed returns the job of a name that has not ended, nil when there is none.
// Only the newest job of a name can be alive: one of this batch, or else the
// newest of the table.
func (tx *txn) liveNamed(project, name string) (*structs.Job, structs.JobState) {
	key := nameKey(project, name)
	job, ok := tx.job(tx.named[string(key)])
	if !ok {
		row, ok := newest[*jobRow](tx.db, tableJobs, indexID, key)
		if !ok {
			return nil, ""
		}
		job = row.Job
	}
	if state := tx.jobStatus(job.ID).Status.State; !state.Terminal() {
		return job, state
	}
	return nil, ""
}

// anyLive returns a job that has not ended and that is wanted, nil when there is
// none; it looks at the jobs whose project and name begin with prefix.
func (tx *txn) anyLive(prefix []byte, wanted func(*structs.Job) bool) *structs.Job {
	for _, row := range listRows[*jobRow](tx, tableJobs, indexID, prefix) {
		if wanted(row.Job) && !tx.jobStatus(row.Job.ID).Status.State.Terminal() {
			return row.Job
		}
	}
	return nil
}

// jobOfKey returns the job that an earlier submission with the same key made.
func (tx *txn) jobOfKey(job *structs.Job) (string, bool) {
	if job.IdempotencyKey == "" {
		return "", false
	}
	row, ok := get[*keyRow](tx, tableIdempotency, []byte(idempotencyKey(job.User, job.IdempotencyKey)))
	if !ok {
		return "", false
	}
	return row.JobID, true
}

// recordKey remembers the key of a submission.
func (tx *txn) recordKey(job *structs.Job) {
	if job.IdempotencyKey == "" {
		return
	}
	tx.remember(idempotencyKey(job.User, job.IdempotencyKey), job.ID)
}

// remember keeps a key, and forgets the oldest beyond the bound.
func (tx *txn) remember(key, jobID string) {
	tx.put(tableIdempotency, []byte(key), &keyRow{Key: key, JobID: jobID, Index: tx.index()})
	tx.meta.keys = append(tx.meta.keys, key)
	for len(tx.meta.keys) > IdempotencyKeysMax {
		oldest := []byte(tx.meta.keys[0])
		if row, ok := get[*keyRow](tx, tableIdempotency, oldest); ok {
			tx.remove(tableIdempotency, oldest, row)
		}
		tx.meta.keys = tx.meta.keys[1:]
	}
}

// applyJobStop ends a job or one of its subjobs by a person's wish. What waits
// is stopped at once; what runs is asked to stop and ends when its last rank
// is gone. Stopping what is being stopped already is no error.
func applyJobStop(tx *txn, body *structs.JobStop) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	var targets []*structs.Subjob
	if body.Subjob != nil {
		subjob, ok := tx.subjob(body.JobID, *body.Subjob)
		if !ok {
			return refuse(structs.CodeNotFound, "state.subjob_unknown", "job", job.Name, "subjob", *body.Subjob)
		}
		targets = append(targets, subjob)
	} else {
		for _, subjob := range tx.subjobs(body.JobID) {
			targets = append(targets, subjob.Subjob)
		}
	}
	if body.Release != "" {
		return tx.releaseHolds(job, targets, body)
	}
	cause := stopReason(tx.by, body.Reason)
	live := 0
	for _, subjob := range targets {
		if !subjob.State.Terminal() {
			live++
		}
	}
	if live == 0 {
		return refuse(structs.CodeConflict, "state.job_ended", "job", job.Name, "state", tx.jobStatus(job.ID).Status.State)
	}
	asked := "event.job.stop_requested"
	if body.Reason != "" {
		asked = "event.job.stop_requested_because"
	}
	tx.tell(jobEvent(asked, job, nil), "job", job.Name, "by", tx.by, "reason", body.Reason)
	for _, subjob := range targets {
		tx.stopSubjob(job, subjob, cause)
	}
	return structs.ApplyResult{JobID: body.JobID}, nil
}

// stopReason is what the ranks and the history are told.
func stopReason(by, words string) *structs.Reason {
	return byReason("reason.stopped_by", "reason.stopped_by_because", by, words)
}

// stopSubjob leads one subjob to stopped.
func (tx *txn) stopSubjob(job *structs.Job, subjob *structs.Subjob, cause *structs.Reason) {
	switch {
	case subjob.State.Terminal():
	case subjob.State == structs.JobQueued:
		stopped := *subjob
		stopped.StopBy = tx.by
		tx.endSubjob(job, subjob, &stopped, structs.JobStopped, cause)
	case subjob.State == structs.JobStopping:
		// An attempt that is ending already keeps its outcome; it only does
		// not come back any more.
		if subjob.StopIntended == structs.JobQueued {
			stopped := *subjob
			stopped.StopBy, stopped.StopIntended, stopped.Reason = tx.by, structs.JobStopped, cause
			if stopped.Nomination != nil { // it was being resized
				tx.releaseNodes(stopped.Nomination, structs.SubjobKey(job.ID, stopped.Index))
				stopped.Nomination = nil
			}
			tx.putSubjob(job, subjob, &stopped)
		}
	default:
		stopped := *subjob
		stopped.StopBy = tx.by
		tx.putSubjob(job, subjob, &stopped)
		tx.endAttempt(job, stopped.Index, stopped.Attempt, ending{outcome: structs.OutcomeStopped, cause: cause})
	}
}

// applyJobDelete forgets a job that has ended. Allocations in quarantine stay
// until their node returns: their devices must not be given away.
func applyJobDelete(tx *txn, body *structs.JobDelete) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	if !ok {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	if !tx.jobStatus(job.ID).Status.State.Terminal() {
		return refuse(structs.CodeConflict, "state.job_alive", "job", job.Name, "state", tx.jobStatus(job.ID).Status.State)
	}
	tx.forget(job)
	event := structs.Event{Topic: topicJob, ID: "event.job.deleted", Project: job.Project, JobID: job.ID}
	tx.tell(event, "job", job.Name)
	return structs.ApplyResult{JobID: body.JobID}, nil
}

// applyJobsForget removes ended jobs that are kept no longer. Those that are
// gone already, or have not ended, are left out.
func applyJobsForget(tx *txn, body *structs.JobsForget) (structs.ApplyResult, *structs.Error) {
	if len(body.JobIDs) > ForgottenMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "jobs", "max", ForgottenMax)
	}
	forgotten, last, of := 0, structs.UnixNano(0), make(map[string]int)
	for _, id := range body.JobIDs {
		job, ok := tx.job(id)
		if !ok || !tx.jobStatus(id).Status.State.Terminal() {
			continue
		}
		forgotten, last = forgotten+1, max(last, tx.jobStatus(id).Status.FinishedAt)
		of[job.Project]++
		tx.forget(job)
	}
	if forgotten == 0 {
		return accepted()
	}
	tx.meta.Forgotten += uint64(forgotten)
	id := "event.cluster.jobs_forgotten"
	switch {
	case body.Kept > 0 && body.For > 0:
		id += "_both"
	case body.For > 0:
		id += "_for"
	}
	params := []string{
		"jobs", decimal(forgotten), "kept", decimal(body.Kept),
		"for", structs.FormatDuration(body.For), "until", last.Time().UTC().Format(time.RFC3339),
	}
	if body.ByProject {
		params = append(params, "projects", mostOf(of))
		id += "_of"
	}
	tx.tell(structs.Event{Topic: topicCluster, ID: id}, params...)
	return accepted()
}

// forgottenNamed bounds the projects that an event of forgotten jobs names.
const forgottenNamed = 8

// mostOf lists the projects that have most, with how many.
func mostOf(counts map[string]int) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	var b strings.Builder
	for i, name := range names {
		if i == forgottenNamed {
			b.WriteString(", …")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(name + " " + decimal(counts[name]))
	}
	return b.String()
}

// forget removes an ended job and its history.
func (tx *txn) forget(job *structs.Job) {
	for _, alloc := range listRows[*structs.Allocation](tx, tableAllocs, indexGang, idKey(job.ID)) {
		if alloc.Hold != nil {
			tx.orderHold(alloc, structs.ReleaseHold) // it is forgotten when its node has let go
		}
		if !alloc.OccupiesNode() {
			tx.remove(tableAllocs, idKey(alloc.ID), alloc)
		}
	}
	for _, row := range listRows[*attemptRow](tx, tableAttempts, indexID, idKey(job.ID)) {
		tx.remove(tableAttempts, attemptKey(row.Attempt.JobID, row.Attempt.Subjob, row.Attempt.Number), row)
	}
	row, _ := tx.jobRow(job.ID)
	tx.remove(tableJobStatuses, indexKey(row.CreateIndex), tx.jobStatus(job.ID))
	tx.remove(tableJobs, row.key(), row)
	for _, row := range tx.subjobs(job.ID) {
		tx.countWaiting(row, nil)
		tx.remove(tableSubjobs, subjobKey(row.Subjob.JobID, row.Subjob.Index), row)
	}
	tx.meta.Jobs--
}

// applyWaitReasons replaces the explanations of subjobs that still wait.
func applyWaitReasons(tx *txn, body *structs.WaitReasons) (structs.ApplyResult, *structs.Error) {
	if len(body.Waits) > WaitsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "waits", "max", WaitsMax)
	}
	tx.explainWaits(body.Waits)
	return accepted()
}

// explainWaits replaces explanations. Most of a long queue waits for the same
// reason, and shares it.
func (tx *txn) explainWaits(waits []structs.WaitUpdate) {
	for i, update := range waits {
		if i > 0 && sameWait(update.Wait, waits[i-1].Wait) {
			update.Wait = waits[i-1].Wait
			waits[i].Wait = update.Wait
		}
		job, _ := tx.job(update.JobID)
		subjob, ok := tx.subjob(update.JobID, update.Subjob)
		if !ok || subjob.State != structs.JobQueued || subjob.Held() {
			continue
		}
		after := *subjob
		if update.Wait != nil {
			after.Wait = update.Wait
		}
		if after.NoPassingAt == 0 {
			after.NoPassingAt = update.NoPassingAt
		}
		tx.putSubjob(job, subjob, &after)
	}
}
