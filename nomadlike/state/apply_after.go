package state

import (
	"iter"
	"slices"

	"nomadlike/nomadlike/structs"
)

// pendingOf lists the jobs that a new job has to wait for: those that it names and that
// have not got as far as it wants. One that can get there no more, or that is gone, refuses
// the job. They all are older than the job, so that no two ever wait for each other.
func (tx *txn) pendingOf(job *structs.Job) ([]string, *structs.Error) {
	return pendingOf(job, func(id string) (JobStatus, bool) {
		if _, ok := tx.job(id); !ok {
			return JobStatus{}, false
		}
		return tx.jobStatus(id).Status, true
	})
}

// Pending is what a job would have to wait for if it were submitted now.
func (s *Snapshot) Pending(job *structs.Job) ([]string, *structs.Error) {
	return pendingOf(job, func(id string) (JobStatus, bool) {
		view, ok := s.Job(id)
		return view.Status, ok
	})
}

func pendingOf(job *structs.Job, status func(id string) (JobStatus, bool)) ([]string, *structs.Error) {
	if len(job.After) > structs.AfterMax {
		return nil, structs.NewError(structs.CodeInvalid, "state.job_malformed", "field", "after")
	}
	var pending []string
	for i := range job.After {
		after := &job.After[i]
		other, known := status(after.ID)
		if !known || after.ID == job.ID {
			return nil, structs.NewError(structs.CodeConflict, "state.after_gone", "job", after.Called())
		}
		come, never := after.Come(other.State, other.StartedAt)
		if never {
			return nil, structs.NewError(structs.CodeConflict, "state.after_never_"+after.When, "job", after.Called(), "state", other.State)
		}
		if !come && !slices.Contains(pending, after.ID) {
			pending = append(pending, after.ID)
		}
	}
	return pending, nil
}

// waitAtFirst is why a subjob waits before any pass of the scheduler looks at it, nil for
// what only that knows.
func waitAtFirst(job *structs.Job, subjob *structs.Subjob, now structs.UnixNano) *structs.WaitReason {
	if len(subjob.Pending) > 0 {
		return job.AfterWait(subjob.Pending)
	}
	if subjob.Turn {
		return job.TurnWait()
	}
	if job.BeginAt > now {
		return job.BeginWait()
	}
	return nil
}

// followJobs lets go of what waited for jobs that ran or ended by this command, or takes
// it out of the queue where what it waited for can come no more; and what waited for that.
func (tx *txn) followJobs() {
	for len(tx.moved) > 0 {
		id := tx.moved[0]
		tx.moved = tx.moved[1:]
		if _, any := first[*subjobRow](tx.db, tableSubjobs, indexPending+"_prefix", idKey(id)); !any && !tx.pending {
			continue // the usual case costs no write of what the batch holds back
		}
		status := tx.jobStatus(id).Status
		for _, row := range listRows[*subjobRow](tx, tableSubjobs, indexPending, idKey(id)) {
			tx.followJob(row, id, status)
		}
	}
	tx.moved = nil
}

// followJob judges one subjob that waited for a job.
func (tx *txn) followJob(row *subjobRow, id string, status JobStatus) {
	job, waits := row.job.Job, false
	for i := range job.After {
		after := &job.After[i]
		if after.ID != id {
			continue
		}
		come, never := after.Come(status.State, status.StartedAt)
		if never {
			ended := *row.Subjob
			tx.endSubjob(job, row.Subjob, &ended, structs.JobStopped, after.NeverReason(status.State))
			return
		}
		waits = waits || !come
	}
	if waits {
		return
	}
	after := *row.Subjob
	after.Pending = slices.DeleteFunc(slices.Clone(after.Pending), func(other string) bool { return other == id })
	if len(after.Pending) == 0 {
		after.Pending = nil
		after.QueuedAt = tx.now // what it waited before was not for room
		if after.Index == 0 {
			tx.tell(jobEvent("event.job.released", job, &after), "job", job.Name)
		}
	}
	after.Wait = waitAtFirst(job, &after, tx.now)
	tx.putSubjob(job, row.Subjob, &after)
	if !after.Held() {
		tx.wakeSchedule()
	}
}

// withdraw takes a subjob out of the queue whose time to start has passed.
func (tx *txn) withdraw(key structs.AttemptKey) {
	subjob, ok := tx.subjob(key.JobID, key.Subjob)
	if !ok {
		return
	}
	job, _ := tx.job(key.JobID)
	if at := job.WithdrawAt(subjob); at == 0 || at > tx.now {
		return
	}
	ended := *subjob
	tx.endSubjob(job, subjob, &ended, structs.JobExpired, job.WithdrawReason(subjob))
}

// DueQueued lists up to limit queued subjobs whose time to start has passed at now,
// longest overdue first. It costs no more than what it lists.
func (s *Snapshot) DueQueued(now structs.UnixNano, limit int) []structs.AttemptKey {
	var due []structs.AttemptKey
	for row := range each[*subjobRow](s.db, tableSubjobs, indexWithdraw, nil) {
		if len(due) == limit || row.Withdraw > now {
			break
		}
		due = append(due, structs.AttemptKey{JobID: row.Subjob.JobID, Subjob: row.Subjob.Index})
	}
	return due
}

// Followers iterates the queued subjobs that wait for a job.
func (s *Snapshot) Followers(jobID string) iter.Seq[*structs.Subjob] {
	return func(yield func(*structs.Subjob) bool) {
		for row := range each[*subjobRow](s.db, tableSubjobs, indexPending, idKey(jobID)) {
			if !yield(row.Subjob) {
				return
			}
		}
	}
}

// JobNumbered returns the job of a number, false when there is none.
func (s *Snapshot) JobNumbered(number uint64) (JobView, bool) {
	row, ok := first[*jobRow](s.db, tableJobs, indexNumber, indexKey(number))
	if !ok || number == 0 {
		return JobView{}, false
	}
	return s.view(row), true
}
