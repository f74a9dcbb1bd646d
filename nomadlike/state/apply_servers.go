package state

import (
	"nomadlike/nomadlike/structs"
)

// Parameter servers serve as long as any worker needs them: a gang has
// succeeded when its workers have, and while workers save a checkpoint their
// servers go on.

// workersAre reports whether all workers of a gang with parameter servers meet a
// condition; false for other gangs.
func (tx *txn) workersAre(job *structs.Job, row *attemptRow, met func(structs.AllocStatus) bool) bool {
	if job.Servers() == 0 {
		return false
	}
	for _, alloc := range tx.gang(row.Attempt.JobID, row.Attempt.Subjob, row.Attempt.Number) {
		if !job.IsServer(alloc.Rank) && !met(alloc.Status) {
			return false
		}
	}
	return true
}

func isComplete(status structs.AllocStatus) bool { return status == structs.AllocComplete }

func isTerminal(status structs.AllocStatus) bool { return status.Terminal() }

// stopServers stops what is left of an ending attempt when its workers are gone.
func (tx *txn) stopServers(attempt *structs.Attempt) {
	for _, alloc := range tx.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.Status.Terminal() || alloc.Desired == structs.DesiredStop {
			continue
		}
		after := *alloc
		after.Desired, after.DesiredReason = structs.DesiredStop, attempt.Cause
		tx.putAlloc(alloc, &after)
	}
}
