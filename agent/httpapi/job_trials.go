package httpapi

import (
	"cmp"
	"slices"
	"strconv"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// setParallel answers jobs.parallel.
func (h *jobHandlers) setParallel(r *front.Request, job *structs.Job, body *api.ParallelRequest) (*api.Changed, error) {
	return h.change(r, structs.CommandJobParallel, structs.JobParallel{JobID: job.ID, Parallel: body.Parallel})
}

// trials answers jobs.trials. Whoever may not read the job's logs gets no metrics.
func (h *usageHandlers) trials(r *front.Request, job *structs.Job) (*api.TrialList, error) {
	q := front.Query{R: r}
	metric := q.Text("metric")
	if len(metric) > metricNameMax {
		q.Refuse("metric", "…")
	}
	if q.Err != nil {
		return nil, q.Err
	}
	if !job.Batched() {
		return nil, structs.NewError(structs.CodeConflict, "state.job_no_batch", "job", job.Name)
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	out := trialsOf(snapshot, job)
	if sweep := job.Sweep; sweep != nil {
		out.Metric, out.Goal = cmp.Or(metric, sweep.Metric), sweep.Goal
	} else {
		out.Metric, out.Goal = metric, structs.GoalMinimize
	}
	if out.Metric == "" {
		out.Goal = ""
		return &out, nil
	}
	if auth.Allowed(r.Caller.Principal, auth.VerbLogs, jobObject(job)).Allow {
		h.measureTrials(r, snapshot, job, &out)
	}
	orderTrials(&out)
	return &out, nil
}

// trialsOf lists the subjobs of a job by number.
func trialsOf(snapshot *state.Snapshot, job *structs.Job) api.TrialList {
	out := api.TrialList{Trials: make([]api.Trial, 0, job.SubjobCount())}
	var array structs.Array
	if job.Batch != nil && job.Batch.Array != "" {
		array, _ = structs.ParseArray(job.Batch.Array) // it was checked at admission
	}
	for subjob := range snapshot.Subjobs(job.ID) {
		one := api.Trial{
			Subjob: subjob.Index, State: subjob.State, Turn: subjob.Turn, Attempt: subjob.Attempt, ExitCode: subjob.ExitCode,
			StartedAt: subjob.StartedAt, FinishedAt: subjob.FinishedAt,
		}
		switch {
		case job.Sweep != nil:
			one.Params = job.Sweep.Trial(subjob.Index)
			one.Name = structs.TrialName(one.Params)
		case subjob.Index < len(array.IDs):
			one.Name = strconv.Itoa(array.IDs[subjob.Index])
		case subjob.Index < len(job.Batch.Subtasks):
			one.Name = job.Batch.Subtasks[subjob.Index].Name
		}
		if subjob.Turn {
			out.Waiting++
		}
		out.Trials = append(out.Trials, one)
	}
	return out
}

// measureTrials asks the nodes where the metric of the newest attempts stands.
func (h *usageHandlers) measureTrials(r *front.Request, snapshot *state.Snapshot, job *structs.Job, out *api.TrialList) {
	var asked []*structs.Allocation
	of := make(map[int][]*structs.Allocation)
	for i := range out.Trials {
		one := &out.Trials[i]
		if one.Attempt == 0 {
			continue
		}
		if len(of) == api.TrialMetricsMax {
			out.LeftOut++
			continue
		}
		found := attemptEnds(snapshot, job.ID, one.Subjob, one.Attempt)
		of[one.Subjob] = found
		asked = append(asked, found...)
	}
	names := []string{out.Metric}
	metrics, away := h.resultMetrics(r.Context(), asked, names)
	out.Away = away
	for i := range out.Trials {
		if results := resultsOf(of[out.Trials[i].Subjob], metrics, names); len(results) > 0 {
			out.Trials[i].Metric = &results[0]
		}
	}
}

// orderTrials puts the best first, by what they measured last, and those that measured
// nothing behind, all else by number.
func orderTrials(out *api.TrialList) {
	slices.SortStableFunc(out.Trials, func(a, b api.Trial) int {
		switch {
		case a.Metric == nil && b.Metric == nil:
			return 0
		case a.Metric == nil:
			return 1
		case b.Metric == nil:
			return -1
		}
		order := cmp.Compare(a.Metric.Last.Value, b.Metric.Last.Value)
		if out.Goal == structs.GoalMaximize {
			order = -order
		}
		return order
	})
}
