package httpapi

import (
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// asking is what one VIP job asked about one gang.
type asking struct {
	job     *structs.Job // that asks
	subjob  *structs.Subjob
	consent *structs.Consent
}

// askings lists, by the job that is asked about, what VIP jobs that wait for their
// machines asked the owners of gangs that run.
func askings(snapshot *state.Snapshot) map[string][]asking {
	var found map[string][]asking
	for subjob := range snapshot.Nominated() {
		if len(subjob.Consents) == 0 {
			continue
		}
		view, ok := snapshot.Job(subjob.JobID)
		if !ok || view.Job.VIP == nil || view.Job.VIP.Ask == nil {
			continue
		}
		for i := range subjob.Consents {
			c := &subjob.Consents[i]
			attempt := snapshot.Attempt(c.Of.JobID, c.Of.Subjob, c.Of.Number)
			if attempt == nil || !attempt.State.CanBecome(structs.AttemptEnding) {
				continue
			}
			if found == nil {
				found = make(map[string][]asking)
			}
			found[c.Of.JobID] = append(found[c.Of.JobID], asking{view.Job, subjob, c})
		}
	}
	return found
}

// askedOf shows the owner of a job what is asked.
func askedOf(snapshot *state.Snapshot, list []asking, now structs.UnixNano) []api.Asked {
	var out []api.Asked
	for _, a := range list {
		c := a.consent
		asked := api.Asked{
			To: jobRef(snapshot, a.job.ID, a.subjob.Index), Subjob: c.Of.Subjob, Attempt: c.Of.Number, AskedAt: c.AskedAt, Until: c.Until,
			Silence: a.job.VIP.Ask.Silence, Message: a.job.VIP.Ask.Message, Answer: c.Answer, By: c.By, At: c.At, Stops: c.Allows(a.job.VIP.Ask, now),
		}
		for alloc := range snapshot.Gang(c.Of.JobID, c.Of.Subjob, c.Of.Number) {
			if node := snapshot.Node(alloc.NodeID); node != nil && a.job.VIP.Asks(node) && !slices.Contains(asked.Machines, node.Name) {
				asked.Machines = append(asked.Machines, node.Name)
			}
		}
		out = append(out, asked)
	}
	return out
}

// answers shows a VIP job what owners were asked for it, and said.
func answers(r *front.Request, snapshot *state.Snapshot, jobID string) []api.Answered {
	var out []api.Answered
	for subjob := range snapshot.Subjobs(jobID) {
		for i := range subjob.Consents {
			c := &subjob.Consents[i]
			attempt := snapshot.Attempt(c.Of.JobID, c.Of.Subjob, c.Of.Number)
			out = append(out, api.Answered{
				Of: visibleRef(r, snapshot, c.Of.JobID, c.Of.Subjob), AskedAt: c.AskedAt, Until: c.Until, Answer: c.Answer, By: c.By, At: c.At,
				Over: attempt == nil || !attempt.State.CanBecome(structs.AttemptEnding),
			})
		}
	}
	return out
}

// consent answers jobs.consent: what the owner of a job says to a VIP job.
func (h *jobHandlers) consent(r *front.Request, job *structs.Job, body *api.ConsentRequest) (*api.AskedList, error) {
	if body.Answer != structs.ConsentYes && body.Answer != structs.ConsentNo {
		return nil, structs.NewError(structs.CodeInvalid, "agent.consent_answer", "value", string(body.Answer))
	}
	if !structs.PlainText(body.Reason, structs.ConsentMessageMax) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.text_bad", "field", "reason", "max", structs.ConsentMessageMax)
	}
	snapshot, err := h.replica.Consistent(r.Context())
	if err != nil {
		return nil, err
	}
	asked := askings(snapshot)[job.ID]
	if body.To != "" {
		asked = slices.DeleteFunc(slices.Clone(asked), func(a asking) bool { return a.job.ID != body.To && a.job.Name != body.To })
	}
	if len(asked) == 0 {
		return nil, structs.NewError(structs.CodeConflict, "agent.consent_none", "job", job.Name)
	}
	first := asked[0].job
	if slices.ContainsFunc(asked, func(a asking) bool { return a.job.ID != first.ID }) {
		return nil, structs.NewError(structs.CodeConflict, "agent.consent_several", "job", job.Name, "to", first.Name)
	}
	out := &api.AskedList{JobID: job.ID}
	for _, a := range asked { // the gangs of a batch that the same job asks about
		changed, err := h.change(r, structs.CommandJobConsent, structs.JobConsent{
			JobID: a.job.ID, Subjob: a.subjob.Index, Of: a.consent.Of, Answer: body.Answer, Reason: body.Reason,
		})
		if err != nil {
			return nil, err
		}
		out.Index = changed.Index
	}
	now := h.store.Snapshot()
	if _, ok := now.Job(job.ID); !ok {
		return nil, auth.NotFound(auth.ObjectJob, job.ID)
	}
	out.Asked = slices.Concat([]api.Asked{}, askedOf(now, askings(now)[job.ID], structs.At(h.now())))
	return out, nil
}
