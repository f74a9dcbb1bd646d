package httpapi

import (
	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/faults"
	"nomadlike/nomadlike/structs"
)

// jobFaults answers jobs.faults. Steps stand in logs: they are told to whoever may
// read those.
func (h *usageHandlers) jobFaults(r *front.Request, job *structs.Job) (*api.JobFaults, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	in := faults.Input{Job: job, Now: structs.At(h.now())}
	for attempt := range snapshot.Attempts(job.ID) {
		in.Attempts = append(in.Attempts, attempt)
	}
	for alloc := range snapshot.AllocsOfJob(job.ID) {
		in.Allocs = append(in.Allocs, alloc)
	}
	var dropped int
	in.Events, dropped = snapshot.JobEvents(job.ID)
	in.Dropped = dropped > 0
	out := api.JobFaults{JobID: job.ID, Faults: []faults.Fault{}}
	if asked := in.Stepping(structs.MetricsAllocsMax); len(asked) > 0 && auth.Allowed(r.Caller.Principal, auth.VerbLogs, jobObject(job)).Allow {
		found, away := h.metricsOf(r.Context(), asked, structs.MetricsRequest{Points: 2})
		in.Steps, out.Away = make(map[string]faults.Steps, len(found)), away
		for id, one := range found {
			if steps, ok := stepsOf(one.Series); ok {
				in.Steps[id] = steps
			}
		}
	}
	out.Faults = append(out.Faults, faults.Tell(&in)...)
	for i := range out.Faults {
		out.Lost += out.Faults[i].Loss.Hours
	}
	return &out, nil
}

// stepsOf is the first and the last step that a rank wrote of any of its metrics.
func stepsOf(series []structs.MetricSeries) (steps faults.Steps, ok bool) {
	for i := range series {
		points := series[i].Points
		if len(points) == 0 || points[0].Step <= 0 && series[i].Last.Step <= 0 {
			continue
		}
		if first := points[0]; !ok || first.At < steps.FirstAt {
			steps.First, steps.FirstAt = first.Step, first.At
		}
		if last := series[i].Last; !ok || last.Step > steps.Last {
			steps.Last, steps.LastAt = last.Step, last.At
		}
		ok = true
	}
	return steps, ok
}
