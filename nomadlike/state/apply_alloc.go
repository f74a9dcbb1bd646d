package state

import (
	"nomadlike/nomadlike/structs"
)

// applyAllocReports takes what a node says of its allocations, one report
// after the other. Reports that do not count are listed in the result and
// never keep the rest of the batch from counting.
func applyAllocReports(tx *txn, body *structs.AllocReports) (structs.ApplyResult, *structs.Error) {
	if len(body.Reports) > ReportsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "reports", "max", ReportsMax)
	}
	if len(body.Notes) > NotesMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "notes", "max", NotesMax)
	}
	for i := range body.Notes {
		tx.note(body.NodeID, &body.Notes[i])
	}
	var result structs.ApplyResult
	for i := range body.Reports {
		if !tx.report(body.NodeID, &body.Reports[i]) {
			result.Refused = append(result.Refused, body.Reports[i].AllocID)
		}
	}
	return result, nil
}

// verdict is what becomes of a report.
type verdict int

const (
	verdictRefuse  verdict = iota // it does not count: an old attempt, a foreign node, an illegal step
	verdictStale                  // it was true once and is known: reports are sent until acknowledged
	verdictFree                   // the last process of a lost allocation is gone: its devices are free
	verdictStep                   // the same status, another step of preparing
	verdictControl                // the same status, and an answer to what it was told
	verdictMove                   // the status moves forward
)

// weigh judges a report of a node against what is known of the allocation.
func weigh(alloc *structs.Allocation, nodeID string, report *structs.AllocReport) verdict {
	switch {
	case alloc.NodeID != nodeID || alloc.Attempt != report.Attempt:
		return verdictRefuse
	case alloc.Status == structs.AllocLost && alloc.Quarantined && report.Status.Terminal():
		return verdictFree
	case report.Status == structs.AllocLost:
		return verdictRefuse // the server's word alone
	case alloc.Status == report.Status:
		changed := alloc.Step != report.Step || alloc.Progress != report.Progress
		if changed && !alloc.Status.Terminal() {
			return verdictStep
		}
		if answersControl(alloc, report.Control) {
			return verdictControl
		}
		return verdictStale
	case alloc.Status.CanBecome(report.Status):
		if !alloc.Released && (report.Status == structs.AllocRunning || report.Status == structs.AllocComplete) {
			return verdictRefuse // no rank starts before the barrier opens
		}
		return verdictMove
	case alloc.Status != structs.AllocLost && report.Status.CanBecome(alloc.Status):
		return verdictStale
	}
	return verdictRefuse
}

// report takes one report, and reports whether it counted.
func (tx *txn) report(nodeID string, report *structs.AllocReport) bool {
	alloc, ok := tx.alloc(report.AllocID)
	if !ok {
		if report.Status.Terminal() {
			tx.endUnknown(nodeID, report.AllocID)
		}
		return false
	}
	switch weigh(alloc, nodeID, report) {
	case verdictRefuse:
		return false
	case verdictFree:
		tx.free(alloc)
	case verdictStep:
		after := *alloc
		after.Step, after.Progress = report.Step, percent(report.Progress)
		tx.putAlloc(alloc, &after)
		if answersControl(&after, report.Control) {
			tx.answer(&after, report.Control)
		}
	case verdictControl:
		tx.answer(alloc, report.Control)
	case verdictMove:
		tx.move(alloc, report)
		if moved, ok := tx.alloc(report.AllocID); ok && answersControl(moved, report.Control) {
			tx.answer(moved, report.Control) // of a report that took another's place
		}
	}
	return true
}

// free ends the quarantine of a lost allocation.
func (tx *txn) free(alloc *structs.Allocation) {
	after := *alloc
	after.Quarantined = false
	tx.putAlloc(alloc, &after)
	if _, ok := tx.attempt(alloc.JobID, alloc.Subjob, alloc.Attempt); !ok {
		tx.remove(tableAllocs, idKey(after.ID), &after) // its job was deleted meanwhile
		return
	}
	if job, ok := tx.job(after.JobID); ok {
		tx.settle(job, after.Subjob, after.Attempt) // a strict one may have waited for it
	}
}

// move takes a report that brings an allocation forward, and lets its attempt
// follow.
func (tx *txn) move(before *structs.Allocation, report *structs.AllocReport) {
	after := *before
	after.Status, after.Step, after.Progress = report.Status, report.Step, percent(report.Progress)
	after.ExitCode, after.Signal, after.OOMKilled = report.ExitCode, report.Signal, report.OOMKilled
	after.Cause, after.Infra = report.Cause, report.Infra
	if report.StartedAt != 0 {
		after.StartedAt = report.StartedAt
	}
	if after.Status.Terminal() {
		after.Step, after.Progress, after.FinishedAt = "", 0, report.FinishedAt
		if after.FinishedAt == 0 {
			after.FinishedAt = tx.now
		}
	}
	job, ok := tx.job(after.JobID)
	if ok {
		after.Hold = tx.holdOf(job, before, &after)
	}
	tx.putAlloc(before, &after)
	tx.tellAlloc(&after)
	if !ok {
		return
	}
	if after.Hold != nil {
		tx.tellHold("event.alloc.held", &after)
	}
	if after.Status == structs.AllocFailed && after.Infra && after.StartedAt == 0 {
		tx.avoid(job, after.Subjob, after.NodeID, false) // another node may start it
	}
	if end, ends := endingBy(job, &after); ends && (end.outcome == structs.OutcomeSucceeded || !tx.goesOn(job, &after)) {
		tx.endAttempt(job, after.Subjob, after.Attempt, end)
	}
	tx.settle(job, after.Subjob, after.Attempt)
}

// endingBy reports whether what became of one rank ends its whole attempt:
// a rank that failed; one that was killed without being asked to stop, which
// is not the user's fault; and the rank that leads the others, whose end is the
// job's.
func endingBy(job *structs.Job, alloc *structs.Allocation) (ending, bool) {
	switch alloc.Status {
	case structs.AllocFailed:
		if alloc.Infra {
			return ending{outcome: structs.OutcomeLost, cause: causeOf(alloc, "reason.node_failed"), failed: alloc}, true
		}
		return ending{outcome: structs.OutcomeFailed, cause: causeOf(alloc, bySignal(alloc, "reason.rank_failed", "reason.rank_failed_signal")), failed: alloc}, true
	case structs.AllocKilled:
		if alloc.Desired == structs.DesiredRun {
			return ending{outcome: structs.OutcomeLost, cause: causeOf(alloc, "reason.rank_killed"), failed: alloc}, true
		}
	case structs.AllocComplete:
		if alloc.Rank == 0 && job.FirstRankLeads() {
			return ending{outcome: structs.OutcomeSucceeded, cause: structs.NewReason("reason.launcher_done")}, true
		}
	}
	return ending{}, false
}

// causeOf is the client's word for what happened, or the general one.
func causeOf(alloc *structs.Allocation, id string) *structs.Reason {
	if alloc.Cause != nil {
		return alloc.Cause
	}
	return structs.NewReason(id, "rank", alloc.Name, "node", alloc.NodeName,
		"exit_code", alloc.ExitCode, "signal", alloc.Signal)
}

// bySignal chooses between the texts of a failed rank: the second one names the
// signal that ended it.
func bySignal(alloc *structs.Allocation, without, with string) string {
	if alloc.Signal == 0 {
		return without
	}
	return with
}

// failedEvent is the text of a failed rank. One that neither a signal nor an exit
// code ended never ran its command: its files, its image or a hook failed it.
func failedEvent(alloc *structs.Allocation) string {
	if alloc.Signal == 0 && alloc.ExitCode == 0 {
		return "event.alloc.failed_unrun"
	}
	return bySignal(alloc, "event.alloc.failed", "event.alloc.failed_signal")
}

func percent(n int) int { return max(0, min(n, 100)) }

// tellAlloc records that a rank started or ended.
func (tx *txn) tellAlloc(alloc *structs.Allocation) {
	switch alloc.Status {
	case structs.AllocRunning, structs.AllocComplete, structs.AllocFailed, structs.AllocKilled, structs.AllocLost:
	default:
		return // preparing tells its step on the allocation itself
	}
	event := allocEvent("event.alloc."+string(alloc.Status), alloc)
	params := []string{"rank", alloc.Name, "node", alloc.NodeName}
	switch alloc.Status {
	case structs.AllocFailed:
		event.ID = failedEvent(alloc)
		event.Severity = severityError
		if job, ok := tx.job(alloc.JobID); ok && job.PatientStarts {
			event.Cause = alloc.Cause
		}
		params = append(params, "exit_code", decimal(alloc.ExitCode), "signal", decimal(alloc.Signal))
	case structs.AllocLost:
		event.Severity = severityWarn
	}
	tx.tell(event, params...)
}
