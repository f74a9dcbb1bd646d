package httpapi

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// timed returns a job with what its names of other jobs and its times mean now, or all
// that is wrong with these. The job itself stays as it is.
func (h *submissionHandlers) timed(r *front.Request, snapshot *state.Snapshot, job *structs.Job) (*structs.Job, *structs.Error) {
	if len(job.After) == 0 && job.Begin == "" && job.Deadline == "" && job.MaxQueueTime == 0 {
		return job, nil
	}
	if protocol, name := h.members.Lowest(); protocol < wire.ProtocolAfter {
		return nil, structs.NewError(structs.CodeConflict, "agent.after_old", "name", name)
	}
	job = job.Copy()
	if len(job.StartProblems()) > 0 {
		return job, nil // told with all else that is wrong with it
	}
	now := structs.At(h.now())
	job.FixTimes(now, time.Local)
	var problems []structs.Problem
	if job.DeadlineAt != 0 && max(now, job.BeginAt).Add(job.TimeLimit.Std()) > job.DeadlineAt {
		problems = append(problems, problemAt("deadline", "agent.deadline_early", "deadline", job.DeadlineAt.Time().Format(time.RFC3339),
			"begin", max(now, job.BeginAt).Time().Truncate(time.Second).Format(time.RFC3339), "limit", structs.FormatDuration(job.TimeLimit)))
	}
	for i := range job.After {
		after := &job.After[i]
		view, known := awaitedJob(r, snapshot, job, after)
		if !known {
			problems = append(problems, problemAt(structs.IndexedPath("after", i)+".job", "agent.after_unknown", "job", after.Called()))
			continue
		}
		after.ID = view.Job.ID
		r.RestsOn(structs.RestJob, view.Job.ID, view.Status.CreateIndex)
	}
	if len(problems) == 0 {
		if _, refusal := snapshot.Pending(job); refusal != nil {
			problem := problemAt("after", refusal.ID)
			maps.Copy(problem.Params, refusal.Params)
			problems = append(problems, problem)
		}
	}
	if refusal := structs.InvalidJob(structs.CodeInvalid, problems); refusal != nil {
		return nil, refusal
	}
	return job, nil
}

// problemAt is a problem of a field; params are pairs of name and value.
func problemAt(path, id string, params ...string) structs.Problem {
	problem := structs.Problem{Path: path, ID: id, HintID: id + ".hint", Params: map[string]string{"path": path}}
	for i := 0; i+1 < len(params); i += 2 {
		problem.Params[params[i]] = params[i+1]
	}
	return problem
}

// awaitedJob finds the job that another is to wait for among those that the caller may
// read, so that nobody learns here of any other: by its id or number, by its name in the
// project, or by the beginning of its id where that fits one alone.
func awaitedJob(r *front.Request, snapshot *state.Snapshot, job *structs.Job, after *structs.After) (state.JobView, bool) {
	fits := func(view state.JobView, known bool) bool {
		return known && mayRead(r, view.Job) && (after.Project == "" || view.Job.Project == after.Project)
	}
	if view, known := snapshot.Job(after.Job); fits(view, known) {
		return view, true
	}
	if view, known := snapshot.JobNamed(cmp.Or(after.Project, job.Project), after.Job); fits(view, known) {
		return view, true
	}
	if number, err := strconv.ParseUint(after.Job, 10, 64); err == nil {
		if view, known := snapshot.JobNumbered(number); fits(view, known) {
			return view, true
		}
	}
	found := snapshot.JobsWithPrefix(after.Job, candidatesMax)
	found = slices.DeleteFunc(found, func(view state.JobView) bool { return !fits(view, true) })
	if len(found) != 1 {
		return state.JobView{}, false
	}
	return found[0], true
}

// unmet is a job that waits only for what has not come, as one that is tried is put into
// a copy of the queue.
func unmet(snapshot *state.Snapshot, job *structs.Job) *structs.Job {
	if len(job.After) == 0 {
		return job
	}
	pending, _ := snapshot.Pending(job)
	own := *job
	own.After = slices.DeleteFunc(slices.Clone(job.After), func(a structs.After) bool { return !slices.Contains(pending, a.ID) })
	return &own
}

// awaitedBy is what a job waits for, or waited, as the caller may see it.
func awaitedBy(r *front.Request, snapshot *state.Snapshot, job *structs.Job) []api.AwaitedJob {
	var list []api.AwaitedJob
	first := snapshot.Subjob(job.ID, 0)
	for i := range job.After {
		after := &job.After[i]
		one := api.AwaitedJob{Called: after.Called(), When: after.When}
		one.Waits = first != nil && first.State == structs.JobQueued && slices.Contains(first.Pending, after.ID)
		if view, known := snapshot.Job(after.ID); known && mayRead(r, view.Job) {
			one.JobRef, one.State = jobRef(snapshot, after.ID, 0), view.Status.State
		}
		list = append(list, one)
	}
	return list
}

// followers lists the first jobs that wait for a job and that the caller may read.
func followers(r *front.Request, snapshot *state.Snapshot, jobID string) []api.JobRef {
	var found []*structs.Subjob
	looked := 0
	for subjob := range snapshot.Followers(jobID) {
		if looked++; looked > candidatesMax {
			break
		}
		if view, known := snapshot.Job(subjob.JobID); subjob.Index == 0 && known && mayRead(r, view.Job) {
			found = append(found, subjob)
		}
	}
	slices.SortFunc(found, func(a, b *structs.Subjob) int { return cmp.Compare(a.CreateIndex, b.CreateIndex) })
	var list []api.JobRef
	for _, subjob := range found[:min(len(found), api.FollowersMax)] {
		list = append(list, jobRef(snapshot, subjob.JobID, 0))
	}
	return list
}

// withoutHidden is a job without the ids of others that the caller may not read.
func withoutHidden(r *front.Request, snapshot *state.Snapshot, job *structs.Job) *structs.Job {
	if len(job.After) == 0 {
		return job
	}
	own := *job
	own.After = slices.Clone(job.After)
	for i := range own.After {
		if view, known := snapshot.Job(own.After[i].ID); !known || !mayRead(r, view.Job) {
			own.After[i].ID = ""
		}
	}
	return &own
}

// pendingShown is what a subjob waits for without the jobs that the caller may not read.
func pendingShown(r *front.Request, snapshot *state.Snapshot, pending []string) []string {
	return slices.DeleteFunc(slices.Clone(pending), func(id string) bool {
		view, known := snapshot.Job(id)
		return !known || !mayRead(r, view.Job)
	})
}

// numbered finds a job by its number among those that the caller may read.
func numbered(r *front.Request, text string, snapshot *state.Snapshot) (state.JobView, bool) {
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return state.JobView{}, false
	}
	view, known := snapshot.JobNumbered(number)
	if !known || !auth.Allowed(r.Caller.Principal, auth.VerbRead, jobObject(view.Job)).Allow {
		return state.JobView{}, false
	}
	return view, true
}
