package state

import (
	"cmp"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// asked lists what owners were asked for a subjob, with those who work on the machines
// of a new nomination where the job asks: nobody new comes there. Whoever was asked
// before is not asked again. A VIP job is never stopped, so nobody is asked about one.
func (tx *txn) asked(job *structs.Job, subjob *structs.Subjob, nomination *structs.Nomination) []structs.Consent {
	if job.VIP == nil || job.VIP.Ask == nil {
		return subjob.Consents
	}
	consents := slices.DeleteFunc(slices.Clone(subjob.Consents), func(c structs.Consent) bool {
		row, runs := tx.attempt(c.Of.JobID, c.Of.Subjob, c.Of.Number)
		return !runs || row.Attempt.State == structs.AttemptEnded
	})
	for _, placement := range nomination.Gang.Placements {
		node, ok := tx.node(placement.NodeID)
		if !ok || !job.VIP.Asks(node) {
			continue
		}
		for _, alloc := range tx.occupantsOf(node.ID) {
			of := structs.AttemptKey{JobID: alloc.JobID, Subjob: alloc.Subjob, Number: alloc.Attempt}
			victim, known := tx.job(alloc.JobID)
			row, runs := tx.attempt(alloc.JobID, alloc.Subjob, alloc.Attempt)
			if !known || !runs || victim.VIP != nil || !row.Attempt.State.CanBecome(structs.AttemptEnding) || len(consents) >= structs.ConsentsMax ||
				slices.ContainsFunc(consents, func(c structs.Consent) bool { return c.Of == of }) {
				continue
			}
			until := tx.now.Add(job.VIP.Ask.For.Std())
			consents = append(consents, structs.Consent{Of: of, AskedAt: tx.now, Until: until})
			event := jobEvent("event.job.asked", victim, nil)
			event.Subjob, event.Attempt, event.Severity = of.Subjob, of.Number, severityWarn
			tx.tell(event, "job", victim.Name, "to", job.Name, "user", job.User, "until", until.Time().Format(time.RFC3339), "message", job.VIP.Ask.Message)
		}
	}
	return consents
}

// applyJobConsent takes the answer of an owner to a VIP job that waits for machines.
// It may come after the time that was given, and be changed, while the gang runs.
func applyJobConsent(tx *txn, body *structs.JobConsent) (structs.ApplyResult, *structs.Error) {
	job, ok := tx.job(body.JobID)
	before, known := tx.subjob(body.JobID, body.Subjob)
	if !ok || !known {
		return refuse(structs.CodeNotFound, "state.job_unknown", "job", body.JobID)
	}
	if body.Answer != structs.ConsentYes && body.Answer != structs.ConsentNo {
		return refuse(structs.CodeInvalid, "state.consent_malformed", "job", job.Name)
	}
	victim, there := tx.job(body.Of.JobID)
	at := slices.IndexFunc(before.Consents, func(c structs.Consent) bool { return c.Of == body.Of })
	if at < 0 || !there {
		return refuse(structs.CodeNotFound, "state.consent_unknown", "job", cmp.Or(nameOf(victim), body.Of.JobID), "to", job.Name)
	}
	row, runs := tx.attempt(body.Of.JobID, body.Of.Subjob, body.Of.Number)
	if before.State != structs.JobQueued || !runs || !row.Attempt.State.CanBecome(structs.AttemptEnding) {
		return refuse(structs.CodeConflict, "state.consent_over", "job", victim.Name, "to", job.Name)
	}
	if before.Consents[at].Answer == body.Answer {
		return structs.ApplyResult{JobID: job.ID}, nil
	}
	after := *before
	after.Consents = slices.Clone(before.Consents)
	answered := &after.Consents[at]
	answered.Answer, answered.By, answered.At = body.Answer, tx.by, tx.now
	tx.putSubjob(job, before, &after)
	tx.wakeSchedule()
	event := "event.job.agreed"
	if body.Answer == structs.ConsentNo {
		event = "event.job.declined"
	}
	if body.Reason != "" {
		event += "_because"
	}
	own := jobEvent(event, victim, nil)
	own.Subjob, own.Attempt = body.Of.Subjob, body.Of.Number
	tx.tell(own, "job", victim.Name, "to", job.Name, "by", tx.by, "reason", body.Reason)
	tx.tell(jobEvent(event, job, &after), "job", victim.Name, "to", job.Name, "by", tx.by, "reason", body.Reason)
	return structs.ApplyResult{JobID: job.ID}, nil
}

func nameOf(job *structs.Job) string {
	if job == nil {
		return ""
	}
	return job.Name
}
