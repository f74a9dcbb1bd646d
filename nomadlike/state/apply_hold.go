package state

import (
	"nomadlike/nomadlike/structs"
)

// holdOf reports whether an allocation is held for people to look at: it failed
// by itself, its job wants that, and its subjob is not started again.
func (tx *txn) holdOf(job *structs.Job, before, after *structs.Allocation) *structs.Hold {
	if job.Debug == nil || after.Status != structs.AllocFailed || after.Infra || before.Desired != structs.DesiredRun ||
		before.Status != structs.AllocRunning && after.StartedAt == 0 { // its command never ran
		return nil
	}
	subjob, ok := tx.subjob(after.JobID, after.Subjob)
	if !ok || subjob.Attempt != after.Attempt || destination(job, subjob, structs.OutcomeFailed) != structs.JobFailed {
		return nil
	}
	return &structs.Hold{Since: tx.now, For: job.Debug.Hold, Until: tx.now.Add(job.Debug.Hold.Std())}
}

func (tx *txn) tellHold(id string, alloc *structs.Allocation) {
	tx.tell(allocEvent(id, alloc), "rank", alloc.Name, "node", alloc.NodeName, "for", structs.FormatDuration(alloc.Hold.For))
}

// releaseHolds takes a person's word that debug holds may end, or that their
// devices may go. Nothing that runs is touched.
func (tx *txn) releaseHolds(job *structs.Job, targets []*structs.Subjob, body *structs.JobStop) (structs.ApplyResult, *structs.Error) {
	if body.Release != structs.ReleaseHold && body.Release != structs.ReleaseDevices {
		return refuse(structs.CodeInvalid, "state.release_unknown", "release", body.Release)
	}
	found := 0
	for _, subjob := range targets {
		for _, alloc := range tx.gang(subjob.JobID, subjob.Index, subjob.Attempt) {
			if alloc.Hold == nil {
				continue
			}
			if found++; found == 1 {
				id := "event.job.release_requested"
				if body.Release == structs.ReleaseDevices {
					id = "event.job.release_devices_requested"
				}
				tx.tell(jobEvent(id, job, only(targets)), "job", job.Name, "by", tx.by, "reason", body.Reason)
			}
			tx.orderHold(alloc, body.Release)
		}
	}
	if found == 0 {
		return refuse(structs.CodeConflict, "state.job_not_held", "job", job.Name)
	}
	return structs.ApplyResult{JobID: job.ID}, nil
}

// orderHold tells a node to let go.
func (tx *txn) orderHold(alloc *structs.Allocation, what string) {
	hold := *alloc.Hold
	hold.Over = hold.Over || what == structs.ReleaseHold
	hold.Freed = true
	if hold == *alloc.Hold {
		return
	}
	after := *alloc
	after.Hold = &hold
	tx.putAlloc(alloc, &after)
}

// heldNoMore takes a node's word that it has let go of a hold, or of its devices.
func (tx *txn) heldNoMore(before *structs.Allocation, note *structs.AllocNote) {
	if before.Hold == nil {
		return
	}
	heard := *before
	heard.NoteSeq = note.Seq
	tx.putAlloc(before, &heard)
	if note.Hold.Over {
		if note.Hold.Cause != nil {
			event := allocEvent("event.alloc.hold_failed", &heard)
			event.Severity = severityWarn
			tx.tell(event, "rank", heard.Name, "node", heard.NodeName, "cause", causeText(note.Hold.Cause))
		}
		tx.endHold(&heard)
		return
	}
	if !heard.Hold.Freed || len(heard.Devices) == 0 {
		return
	}
	without := heard
	without.Hold = nil
	tx.putAlloc(&heard, &without) // what it held is booked
	rest := heard
	rest.Devices, rest.PlacedAt = nil, tx.now
	if node, ok := tx.node(rest.NodeID); ok {
		rest.QuotaUsage = structs.QuotaUsageOf(rest.Spec, node, nil)
	}
	tx.putAlloc(&without, &rest)
	tx.tellHold("event.alloc.hold_freed", &rest)
}

// causeText is the most telling word of a reason for an event's parameter.
func causeText(reason *structs.Reason) string {
	text := reason.Params["cause"]
	if text == "" {
		text = reason.ID
	}
	return text[:min(len(text), structs.NoteParamMax)]
}

// endHold frees what a held allocation holds.
func (tx *txn) endHold(alloc *structs.Allocation) {
	after := *alloc
	after.Hold = nil
	tx.putAlloc(alloc, &after)
	if _, ok := tx.attempt(alloc.JobID, alloc.Subjob, alloc.Attempt); !ok {
		tx.remove(tableAllocs, idKey(after.ID), &after) // its job was deleted meanwhile
		return
	}
	tx.tell(allocEvent("event.alloc.hold_over", &after), "rank", after.Name, "node", after.NodeName)
}
