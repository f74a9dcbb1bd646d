package state

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
)

// exitHung is what a job answers to a shell that was ended because it hung, as
// timeout(1) does.
const exitHung = 124

// progressed takes that a rank has gone silent, or is heard again, and judges its
// gang. A gang that hangs is charged to the user: what the devices and nodes
// have to do with it, their own checks tell.
func (tx *txn) progressed(job *structs.Job, before *structs.Allocation, progress *structs.Progress) {
	if job.Hang == nil || before.Status != structs.AllocRunning {
		return
	}
	after := *before
	after.TrainingProgress = nil
	if progress.Silent {
		kept := *progress
		kept.Cards = slices.Clone(progress.Cards[:min(len(progress.Cards), structs.ProgressCardsMax)])
		after.TrainingProgress = &kept
	}
	tx.putAlloc(before, &after)
	row, ok := tx.attempt(after.JobID, after.Subjob, after.Attempt)
	if !ok || row.Attempt.State != structs.AttemptRunning {
		return
	}
	var ranks []structs.RankProgress
	gang := tx.gang(after.JobID, after.Subjob, after.Attempt)
	for _, alloc := range gang {
		if alloc.Status == structs.AllocRunning && (alloc.Rank == 0 || !job.FirstRankLeads()) && !job.IsServer(alloc.Rank) {
			ranks = append(ranks, structs.RankProgress{Rank: alloc.Rank, Progress: alloc.TrainingProgress})
		}
	}
	hung, hangs := structs.JudgeProgress(ranks)
	if hangs == (row.Attempt.HungAt != 0) {
		return
	}
	attempt := *row.Attempt
	attempt.HungAt = 0
	if hangs {
		attempt.HungAt = tx.now
	}
	changed := *row
	changed.Attempt = &attempt
	tx.putAttempt(&changed)
	if !hangs {
		tx.tell(allocEvent("event.alloc.heard", &after), "rank", after.Name, "node", after.NodeName, "step", decimal(uint64(max(progress.Step, 0))))
		return
	}
	tx.hangs(job, &attempt, gang, &hung)
}

// hangs reports that a gang hangs and who holds it up, and ends its attempt if
// its job wants that.
func (tx *txn) hangs(job *structs.Job, attempt *structs.Attempt, gang []*structs.Allocation, hung *structs.Hung) {
	id := "event.attempt.hangs"
	params := []string{"attempt", decimal(attempt.Number), "silent", seconds(hung.For), "limit", seconds(hung.Limit), "step", decimal(uint64(max(hung.Others, 0)))}
	event := structs.Event{
		Topic: topicAttempt, Project: job.Project, JobID: job.ID, Subjob: attempt.Subjob,
		Attempt: attempt.Number, Severity: severityWarn,
	}
	var late *structs.Allocation
	for _, alloc := range gang {
		if alloc.Rank == hung.Rank {
			late = alloc
		}
	}
	if late != nil {
		switch hung.Why {
		case structs.BehindSteps:
			id = "event.attempt.hangs_steps"
		case structs.BehindIdle:
			id = "event.attempt.hangs_idle"
		}
		event.AllocID, event.NodeID = late.ID, late.NodeID
		params = append(params, "rank", late.Name, "node", late.NodeName, "own", decimal(uint64(max(hung.Step, 0))), "cards", strings.Join(hung.Cards, ", "))
	}
	event.ID = id
	tx.tell(event, params...)
	if job.Hang.Action != structs.WatchReschedule {
		return
	}
	end := ending{
		outcome: structs.OutcomeFailed, saves: true, code: exitHung,
		cause: structs.NewReason("reason.hung", "silent", seconds(hung.For)),
	}
	if late != nil {
		end.cause = structs.NewReason("reason.hung_rank", "silent", seconds(hung.For), "rank", late.Name, "node", late.NodeName)
		tx.avoid(job, attempt.Subjob, late.NodeID, false)
	}
	tx.endAttempt(job, attempt.Subjob, attempt.Number, end)
}

// slow takes what a performance watch found: an event, and another place for
// the gang if its job wants that. That is charged to nobody, but it is not
// done more often than the job may be resumed: what is slow everywhere is slow
// by itself.
func (tx *txn) slow(job *structs.Job, subjob *structs.Subjob, alloc *structs.Allocation, found *structs.Slowness) {
	if job.Checkpoint == nil || job.Checkpoint.Performance == nil || alloc.Status != structs.AllocRunning || !finite(found.Value) || !finite(found.Threshold) {
		return
	}
	value, threshold := strconv.FormatFloat(found.Value, 'g', 6, 64), strconv.FormatFloat(found.Threshold, 'g', 6, 64)
	event := allocEvent("event.alloc.slow", alloc)
	event.Severity = severityWarn
	tx.tell(event, "rank", alloc.Name, "node", alloc.NodeName, "value", value, "threshold", threshold, "times", decimal(found.Times))
	if job.Checkpoint.Performance.Action != structs.WatchReschedule {
		return
	}
	if subjob.Moves >= job.Checkpoint.MaxResumes {
		stays := allocEvent("event.alloc.slow_stays", alloc)
		stays.Severity = severityWarn
		tx.tell(stays, "rank", alloc.Name, "node", alloc.NodeName, "moves", decimal(subjob.Moves))
		return
	}
	tx.avoid(job, alloc.Subjob, alloc.NodeID, true)
	tx.endAttempt(job, alloc.Subjob, alloc.Attempt, ending{
		outcome: structs.OutcomeLost, saves: true,
		cause: structs.NewReason(structs.ReasonSlow, "rank", alloc.Name, "node", alloc.NodeName, "value", value, "threshold", threshold),
	})
}

// avoid notes that a subjob had better not come back to a node.
func (tx *txn) avoid(job *structs.Job, index int, nodeID string, moved bool) {
	before, ok := tx.subjob(job.ID, index)
	if !ok {
		return
	}
	after := *before
	if !slices.Contains(before.Avoid, nodeID) {
		after.Avoid = append(slices.Clone(before.Avoid[max(0, len(before.Avoid)+1-structs.AvoidMax):]), nodeID)
	}
	if moved {
		after.Moves++
	}
	tx.putSubjob(job, before, &after)
}

// evicted ends the attempt of a rank whose node has to leave it: every rank is
// told to save its work at the same time, since most trainings can save
// together only.
func (tx *txn) evicted(job *structs.Job, alloc *structs.Allocation, cause *structs.Reason) {
	if alloc.Status.Terminal() || cause.ID == "" {
		return
	}
	event := allocEvent("event.alloc.evicted", alloc)
	event.Severity = severityWarn
	tx.tell(event, "rank", alloc.Name, "node", alloc.NodeName, "device", cause.Params["device"])
	tx.endAttempt(job, alloc.Subjob, alloc.Attempt, ending{outcome: structs.OutcomeLost, cause: cause, failed: alloc, saves: true})
}

func finite(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }

// seconds says how long something lasts, for people.
func seconds(d structs.Duration) string {
	return structs.FormatDuration(structs.Duration(d.Std().Round(time.Second)))
}
