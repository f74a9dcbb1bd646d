package httpapi

import (
	"slices"
	"strings"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// list answers with the jobs that the caller may read and that pass the
// filters of the request.
func (h *jobHandlers) list(r *front.Request) (*api.JobList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	filter := api.JobFilter{
		Name: q.Text("name"), Project: q.Text("project"), User: q.Text("user"), State: structs.JobState(q.Text("state")),
		Code: q.Text("code"), Spec: q.Text("spec"), Output: q.Text("output"), Cause: q.Text("cause"), Tag: q.Text("tag"), Text: q.Text("text"),
	}
	trends := q.Bool("trends")
	if q.Err != nil {
		return nil, q.Err
	}
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchJobs))
	if err != nil {
		return nil, err
	}
	asked := searchOf(filter.Tag, filter.Text)
	views, next, refusal := snapshot.ListJobs(paging, func(view state.JobView) bool {
		return passes(snapshot, view, filter) && asked.finds(view.Job) && auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow
	})
	if refusal != nil {
		return nil, refusal
	}
	asks, now := askings(snapshot), structs.At(h.now())
	out := api.JobList{Jobs: make([]api.JobSummary, len(views)), Next: next}
	for i, view := range views {
		job := view.Job
		out.Jobs[i] = api.JobSummary{
			ID: job.ID, Number: job.Number, Name: job.Name, Project: job.Project, User: job.User, Type: job.Type, Priority: job.Priority,
			Preemptible: job.Preemptible, VIP: job.VIP != nil, Pool: job.Placement.Pool, Code: codeOf(job), Specs: specsOf(job), Output: job.Output,
			Nodes: job.Nodes, Subjobs: job.SubjobCount(), SubmittedAt: job.SubmittedAt, Tags: job.Tags, Note: noteShown(job.Note),
			JobStatus: explained(snapshot, job.ID, jobStatus(view.Status)),
		}
		out.Jobs[i].Wait = waitOf(r, snapshot, out.Jobs[i].Wait)
		addUnused(snapshot, job, &out.Jobs[i])
		open := slices.DeleteFunc(slices.Clone(asks[job.ID]), func(a asking) bool { return a.consent.Answer != structs.ConsentNone })
		if len(open) > 0 {
			out.Jobs[i].Asked = &askedOf(snapshot, open[:1], now)[0]
		}
	}
	if trends {
		h.usage.addTrends(r, snapshot, out.Jobs)
	}
	return &out, nil
}

// addUnused adds to a job that holds something whether it uses it, and until when
// it may have it.
func addUnused(snapshot *state.Snapshot, job *structs.Job, out *api.JobSummary) {
	over := out.State == structs.JobQueued || out.State.Terminal()
	if over && (job.Debug == nil || out.State == structs.JobSucceeded) {
		return
	}
	if !over {
		if out.LimitAt = snapshot.LimitAt(job.ID); out.LimitAt != 0 {
			out.TimeLimit = job.TimeLimit
		}
	}
	if out.Idle = idleOf(snapshot, job.ID); out.Idle == "" {
		return
	}
	looked := 0
	for alloc := range snapshot.AllocsOfJob(job.ID) {
		if looked++; looked > idleLook {
			break
		}
		if alloc.Hold != nil {
			out.HeldUntil = max(out.HeldUntil, alloc.Hold.Until)
		} else if out.Idle == api.IdleCards && !alloc.Status.Terminal() {
			out.IdleSince = max(out.IdleSince, alloc.IdleSince)
		}
	}
}

// passes reports whether a job passes the filters, of which empty ones pass all.
func passes(snapshot *state.Snapshot, view state.JobView, filter api.JobFilter) bool {
	job := view.Job
	return (filter.Name == "" || job.Name == filter.Name) &&
		(filter.Project == "" || job.Project == filter.Project) &&
		(filter.User == "" || job.User == filter.User) &&
		(filter.State == "" || view.Status.State == filter.State) &&
		(filter.Code == "" || slices.Contains(codeOf(job), filter.Code)) &&
		(filter.Spec == "" || slices.Contains(specsOf(job), filter.Spec)) &&
		(filter.Output == "" || strings.Contains(job.Output, filter.Output)) &&
		(filter.Cause == "" || causeOf(explained(snapshot, job.ID, jobStatus(view.Status))) == filter.Cause)
}

// codeOf names the algorithms of a job, and what it takes from the favourites,
// datasets and models included; one of a collection other than the usual one
// carries its name, as in favorite/tools.
func codeOf(job *structs.Job) []string {
	var names []string
	add := func(name, from string) {
		if from != "" && from != structs.FromPrivate {
			name = from + "/" + name
		}
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, code := range job.Algorithms {
		add(code.Name, code.From)
	}
	if job.Batch != nil {
		for _, subtask := range job.Batch.Subtasks {
			add(subtask.Algorithm, "")
		}
	}
	for _, data := range slices.Concat(job.Datasets, job.Models) {
		if data.From == structs.FromFavorite {
			add(data.Name, data.From)
		}
	}
	return names
}

// specsOf names the specs of a job by their labels and by the models of their
// cards.
func specsOf(job *structs.Job) []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, spec := range job.Resources {
		add(spec.Label)
		for _, device := range spec.Devices {
			add(device.Model)
			for _, model := range device.Models {
				add(model)
			}
		}
	}
	return names
}

// causeOf is the id of the one reason that a list shows for a job.
func causeOf(status api.JobStatus) string {
	switch {
	case status.State == structs.JobQueued && status.Wait != nil:
		return status.Wait.ID
	case status.State != structs.JobQueued && status.Reason != nil:
		return status.Reason.ID
	}
	return ""
}

// may spells what the caller of a request may do to an object.
func may(r *front.Request, object auth.Object) []string {
	verbs := auth.Verbs(r.Caller.Principal, object)
	out := make([]string, len(verbs))
	for i, verb := range verbs {
		out[i] = string(verb)
	}
	return out
}
