package state

import (
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// note takes what a node says of one of its allocations besides its status.
// Only the newest attempt of a subjob is heard: what an older one saved may lie
// behind what the newer one has begun from.
func (tx *txn) note(nodeID string, note *structs.AllocNote) {
	before, ok := tx.alloc(note.AllocID)
	if !ok || before.NodeID != nodeID || before.Attempt != note.Attempt || note.Seq <= before.NoteSeq {
		return
	}
	if note.Hold != nil {
		tx.heldNoMore(before, note)
		return
	}
	job, ok := tx.job(before.JobID)
	if !ok {
		return
	}
	subjob, ok := tx.subjob(before.JobID, before.Subjob)
	if !ok || subjob.Attempt != note.Attempt {
		return
	}
	after := *before
	after.NoteSeq = note.Seq
	tx.putAlloc(before, &after)
	switch {
	case note.Checkpoint != nil:
		tx.saved(job, subjob, &after, note.Checkpoint)
	case note.Told != nil:
		tx.told(&after, note.Told)
	case note.Progress != nil:
		tx.progressed(job, &after, note.Progress)
	case note.Slow != nil:
		tx.slow(job, subjob, &after, note.Slow)
	case note.Idle != nil:
		tx.idle(&after, note.Idle)
	case note.Evicted != nil:
		tx.evicted(job, &after, note.Evicted)
	}
}

// idle keeps since when a rank's devices have had nothing to do. A node's clock
// may be ahead.
func (tx *txn) idle(before *structs.Allocation, note *structs.IdleNote) {
	since := max(0, min(note.Since, tx.now))
	if before.Status.Terminal() || before.IdleSince == since {
		return
	}
	after := *before
	after.IdleSince = since
	tx.putAlloc(before, &after)
}

// saved keeps a checkpoint that a rank registered. One that is known already is
// left as it is.
func (tx *txn) saved(job *structs.Job, before *structs.Subjob, alloc *structs.Allocation, checkpoint *structs.SavedCheckpoint) {
	if structs.CheckpointPathProblem(checkpoint.Path) != "" || checkpoint.Step < 0 {
		return
	}
	made := structs.SavedCheckpoint{
		Path: checkpoint.Path, Step: checkpoint.Step, JobID: job.ID,
		Attempt: alloc.Attempt, Rank: alloc.Rank, SavedAt: checkpoint.SavedAt,
	}
	if newest := before.Newest(); newest != nil && newest.Path == made.Path && newest.Step == made.Step &&
		newest.Attempt == made.Attempt && newest.JobID == made.JobID && newest.SavedAt == made.SavedAt {
		return
	}
	after := *before
	kept := before.Checkpoints[max(0, len(before.Checkpoints)+1-structs.CheckpointsKept):]
	after.Checkpoints = append(slices.Clone(kept), made)
	tx.putSubjob(job, before, &after)
	tx.keepCheckpoint(job, before.Index, &made)
	if row, ok := tx.attempt(alloc.JobID, alloc.Subjob, alloc.Attempt); ok {
		attempt := *row.Attempt
		attempt.CheckpointAt = tx.now
		changed := *row
		changed.Attempt = &attempt
		tx.putAttempt(&changed)
	}
	tx.tell(allocEvent(eventCheckpoint, alloc), "rank", alloc.Name, "path", made.Path, "step", decimal(uint64(made.Step)))
}

// told makes an event known that a node reports. What a node may tell is
// bounded, for its agent may be in strange hands.
func (tx *txn) told(alloc *structs.Allocation, told *structs.Told) {
	if !structs.ToldEvent(told.Event) || len(told.Params) > structs.NoteParamsMax {
		return
	}
	event := allocEvent(told.Event, alloc)
	switch told.Severity {
	case severityWarn, severityError:
		event.Severity = told.Severity
	}
	pairs := []string{"rank", alloc.Name, "node", alloc.NodeName}
	for _, name := range slices.Sorted(maps.Keys(told.Params)) {
		if name == "rank" || name == "node" || len(name) > structs.NoteParamMax {
			continue
		}
		value := told.Params[name]
		pairs = append(pairs, name, strings.ToValidUTF8(value[:min(len(value), structs.NoteParamMax)], ""))
	}
	tx.tell(event, pairs...)
	tx.seen(alloc, told.Seen)
}
