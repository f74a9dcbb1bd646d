package state

import (
	"nomadlike/nomadlike/structs"
)

// goesOn reports whether an attempt goes on without a rank that has just ended,
// because its launcher gathers the others again. The attempt ends as always when
// too few are left, or the rank is one that the others need.
func (tx *txn) goesOn(job *structs.Job, gone *structs.Allocation) bool {
	if !job.TorchRange() {
		return false
	}
	row, ok := tx.attempt(gone.JobID, gone.Subjob, gone.Attempt)
	if !ok || row.Attempt.State != structs.AttemptRunning {
		return false
	}
	left := 0
	for _, alloc := range tx.gang(gone.JobID, gone.Subjob, gone.Attempt) {
		if !alloc.Status.Terminal() || alloc.Status == structs.AllocComplete {
			left++
		}
	}
	if !job.GoesOnWithout(gone.Rank, left) {
		return false
	}
	if gone.Infra {
		attempt := *row.Attempt
		attempt.Lost++
		changed := *row
		changed.Attempt = &attempt
		tx.putAttempt(&changed)
	}
	event := structs.Event{
		Topic: topicAttempt, ID: "event.attempt.smaller", Project: job.Project, JobID: job.ID,
		Subjob: gone.Subjob, Attempt: gone.Attempt, AllocID: gone.ID, Severity: severityWarn,
	}
	tx.tell(event, "attempt", decimal(gone.Attempt), "rank", gone.Name, "node", gone.NodeName,
		"left", decimal(left), "nodes", decimal(len(row.Attempt.Allocs)))
	return true
}
