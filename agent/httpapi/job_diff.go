package httpapi

import (
	"maps"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/jobspec"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// diff answers jobs.diff. What the caller may not read of either job is in neither.
func (h *jobHandlers) diff(r *front.Request, job *structs.Job) (*api.JobDiff, error) {
	q := front.Query{R: r}
	with := q.Text("with")
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot := h.store.Snapshot()
	before := lastSuccess(snapshot, job, func(other *structs.Job) bool { return mayRead(r, other) })
	if with != "" {
		named, err := findJob(r, with, snapshot)
		if err != nil {
			return nil, err
		}
		if !mayRead(r, named) {
			return nil, auth.NotFound(auth.ObjectJob, with)
		}
		before = named
	}
	out := api.JobDiff{After: diffJob(snapshot, job), Differences: []structs.Difference{}, Found: []structs.Difference{}}
	if before == nil {
		return &out, nil
	}
	told := diffJob(snapshot, before)
	out.Before = &told
	a, b := shown(r, before), shown(r, job)
	if a != before || b != job { // what is hidden of one is hidden of both
		out.Hidden = true
		a, b = before.WithoutEnvironment(), job.WithoutEnvironment()
	}
	out.Differences = append(out.Differences, jobspec.Differences(a, b)...)
	was, is := firstRank(snapshot, before.ID), firstRank(snapshot, job.ID)
	if out.Hidden {
		was, is = withoutSet(was, before, job), withoutSet(is, before, job)
	}
	out.Found = append(out.Found, foundDifferences(was, is)...)
	return &out, nil
}

// lastSuccess is the newest job of a job's lineage that succeeded, the nearest kin
// before others; nil when there is none among those that pass.
func lastSuccess(snapshot *state.Snapshot, job *structs.Job, pass func(*structs.Job) bool) *structs.Job {
	var best state.JobView
	nearest := structs.KinNone
	for view := range snapshot.Jobs() {
		kin := structs.KinshipOf(job, view.Job)
		if kin == structs.KinNone || kin < nearest || view.Status.State != structs.JobSucceeded || !pass(view.Job) {
			continue
		}
		if kin > nearest || view.Status.FinishedAt > best.Status.FinishedAt {
			best, nearest = view, kin
		}
	}
	return best.Job
}

func diffJob(snapshot *state.Snapshot, job *structs.Job) api.DiffJob {
	out := api.DiffJob{ID: job.ID, Name: job.Name, User: job.User, SubmittedAt: job.SubmittedAt}
	if view, ok := snapshot.Job(job.ID); ok {
		out.State, out.FinishedAt = view.Status.State, view.Status.FinishedAt
	}
	return out
}

// firstRank is rank 0 of the newest attempt of a job's first subjob, nil when it has none.
func firstRank(snapshot *state.Snapshot, id string) *structs.Allocation {
	subjob := snapshot.Subjob(id, 0)
	if subjob == nil || subjob.Attempt == 0 {
		return nil
	}
	for alloc := range snapshot.Gang(id, 0, subjob.Attempt) {
		if alloc.Rank == 0 {
			return alloc
		}
	}
	return nil
}

// withoutSet is a rank, nil for none, without the values of variables that one of two
// jobs sets.
func withoutSet(alloc *structs.Allocation, jobs ...*structs.Job) *structs.Allocation {
	if alloc == nil {
		return nil
	}
	hidden := *alloc
	for _, job := range jobs {
		hidden.Seen = job.SeenWithout(hidden.Seen)
	}
	return &hidden
}

// foundNode is where foundDifferences tells the node.
const foundNode = "node"

// foundDifferences compares what two ranks found. Pure.
func foundDifferences(before, after *structs.Allocation) []structs.Difference {
	if before == nil || after == nil {
		return nil
	}
	var list []structs.Difference
	add := func(path, was, is string) {
		if was != is {
			list = append(list, structs.Difference{Path: path, Before: was, After: is})
		}
	}
	add(foundNode, before.NodeName, after.NodeName)
	names := slices.Sorted(maps.Keys(before.Seen))
	for _, name := range slices.Sorted(maps.Keys(after.Seen)) {
		if _, both := before.Seen[name]; !both {
			names = append(names, name)
		}
	}
	for _, name := range names {
		add(name, before.Seen[name], after.Seen[name])
	}
	return list
}
