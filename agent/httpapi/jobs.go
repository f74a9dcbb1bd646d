package httpapi

import (
	"cmp"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// jobHandlers answers about jobs, and controls them.
type jobHandlers struct {
	*core
	usage *usageHandlers // for trends
}

// jobStatus translates the state's sum of a job for the API.
func jobStatus(s state.JobStatus) api.JobStatus {
	out := api.JobStatus{
		State: s.State, Counts: map[structs.JobState]int{}, Attempt: s.Attempt, ExitCode: s.ExitCode,
		StartedAt: s.StartedAt, FinishedAt: s.FinishedAt,
	}
	for _, one := range structs.JobStates() {
		if n := s.Counts.Of(one); n > 0 {
			out.Counts[one] = n
		}
	}
	return out
}

// explained adds why a job of one subjob is as it is, or why its first
// waiting subjob waits.
func explained(snapshot *state.Snapshot, jobID string, out api.JobStatus) api.JobStatus {
	if first := snapshot.Subjob(jobID, 0); first != nil {
		out.Reason, out.Wait, out.Control = first.Reason, first.Wait, first.Control
	}
	return out
}

// ofJob is the reading of a job with its subjobs.
func ofJob(id string) reading {
	return reading{
		version: func(now *state.Snapshot) uint64 {
			view, ok := now.Job(id)
			if !ok {
				return now.Index() // deleted: tell at once
			}
			return max(view.Status.ModifyIndex, newest(now.Subjobs(id), func(s *structs.Subjob) uint64 { return s.ModifyIndex }))
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchSubjobs(id) },
		also:  func(now *state.Snapshot) <-chan struct{} { return now.WatchJob(id) },
	}
}

func (h *jobHandlers) read(r *front.Request, job *structs.Job) (*api.JobDetail, error) {
	snapshot, err := h.block(r, ofJob(job.ID))
	if err != nil {
		return nil, err
	}
	view, ok := snapshot.Job(job.ID)
	if !ok {
		return nil, auth.NotFound(auth.ObjectJob, job.ID)
	}
	subjobs, _, refusal := snapshot.ListSubjobs(job.ID, state.Page{Limit: api.PageSizeDefault})
	if refusal != nil {
		return nil, refusal
	}
	stands := explained(snapshot, job.ID, jobStatus(view.Status))
	var held []api.JobRef
	if stands.State == structs.JobQueued && stands.Wait != nil {
		held = holders(r, snapshot, waitHolders(snapshot, view.Job, stands.Wait))
	}
	stands.Wait = waitOf(r, snapshot, stands.Wait)
	wrote, counts := outputs(snapshot, view.Job, func(object *structs.DataObject) bool {
		return auth.Allowed(r.Caller.Principal, auth.VerbRead, dataObject(snapshot, object)).Allow
	})
	return &api.JobDetail{
		Outputs: wrote, OutputCounts: counts,
		Holders:   held,
		Job:       withoutHidden(r, snapshot, shown(r, view.Job)),
		JobStatus: stands,
		Subjobs:   subjobsOf(r, snapshot, subjobs),
		Yielded:   yielded(snapshot, job.ID),
		Awaits:    awaited(snapshot, job.ID),
		After:     awaitedBy(r, snapshot, view.Job),
		Followers: followers(r, snapshot, job.ID),
		Asked:     askedOf(snapshot, askings(snapshot)[job.ID], structs.At(h.now())),
		Answers:   answers(r, snapshot, job.ID),
		May:       may(r, jobObject(view.Job)),
	}, nil
}

// jobRef names a job to people; of one that was deleted only the id is left.
func jobRef(snapshot *state.Snapshot, jobID string, subjob int) api.JobRef {
	ref := api.JobRef{ID: jobID, Subjob: subjob}
	if view, ok := snapshot.Job(jobID); ok {
		job := view.Job
		ref.Name, ref.Project, ref.User, ref.VIP = job.Name, job.Project, job.User, job.VIP != nil
	}
	return ref
}

// yieldedTo names the job that an attempt ended for, nil when it did for none.
// Whoever lost their nodes is told, whoever's job it was.
func yieldedTo(snapshot *state.Snapshot, attempt *structs.Attempt) *api.JobRef {
	if attempt.By == nil || attempt.By.JobID == attempt.JobID { // a change of its own size
		return nil
	}
	ref := jobRef(snapshot, attempt.By.JobID, attempt.By.Subjob)
	return &ref
}

// yielded lists the newest attempts of a job that ended for others.
func yielded(snapshot *state.Snapshot, jobID string) []api.Yield {
	var list []api.Yield
	for attempt := range snapshot.Attempts(jobID) {
		if to := yieldedTo(snapshot, attempt); to != nil {
			list = append(list, api.Yield{Subjob: attempt.Subjob, Attempt: attempt.Number, At: attempt.EndingAt, To: *to})
		}
	}
	slices.SortStableFunc(list, func(a, b api.Yield) int { return cmp.Compare(b.At, a.At) })
	return list[:min(len(list), api.YieldsMax)]
}

// awaited lists the jobs that were asked to end for a job and have not yet.
func awaited(snapshot *state.Snapshot, jobID string) []api.JobRef {
	var list []api.JobRef
	for subjob := range snapshot.Subjobs(jobID) {
		list = append(list, awaits(snapshot, subjob)...)
		if len(list) >= api.YieldsMax {
			return list[:api.YieldsMax]
		}
	}
	return list
}

// awaits lists the jobs that were asked to end for a subjob and have not yet.
func awaits(snapshot *state.Snapshot, subjob *structs.Subjob) []api.JobRef {
	if subjob.Nomination == nil {
		return nil
	}
	var list []api.JobRef
	for _, key := range subjob.Nomination.Victims {
		if attempt := snapshot.Attempt(key.JobID, key.Subjob, key.Number); attempt != nil && attempt.State != structs.AttemptEnded {
			list = append(list, jobRef(snapshot, key.JobID, key.Subjob))
		}
	}
	return list
}

func (h *jobHandlers) subjobs(r *front.Request, job *structs.Job) (*api.SubjobList, error) {
	paging, err := page(r)
	if err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, ofJob(job.ID))
	if err != nil {
		return nil, err
	}
	subjobs, next, refusal := snapshot.ListSubjobs(job.ID, paging)
	if refusal != nil {
		return nil, refusal
	}
	return &api.SubjobList{Subjobs: subjobsOf(r, snapshot, subjobs), Next: next}, nil
}

func (h *jobHandlers) attempts(r *front.Request, job *structs.Job) (*api.AttemptList, error) {
	snapshot, err := h.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			return newest(now.Attempts(job.ID), func(a *structs.Attempt) uint64 { return a.ModifyIndex })
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAttempts(job.ID) },
	})
	if err != nil {
		return nil, err
	}
	out := api.AttemptList{Attempts: []structs.Attempt{}}
	for attempt := range snapshot.Attempts(job.ID) {
		out.Attempts = append(out.Attempts, *attempt)
	}
	return &out, nil
}

func (h *jobHandlers) allocations(r *front.Request, job *structs.Job) (*api.AllocationList, error) {
	q := front.Query{R: r}
	attempt, subjob := q.Uint("attempt"), q.Int("subjob", 0, structs.BatchCountMax)
	oneSubjob := q.Text("subjob") != ""
	if q.Err != nil {
		return nil, q.Err
	}
	snapshot, err := h.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			return newest(now.AllocsOfJob(job.ID), func(a *structs.Allocation) uint64 { return a.ModifyIndex })
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAllocsOfJob(job.ID) },
	})
	if err != nil {
		return nil, err
	}
	out := api.AllocationList{Allocations: []structs.Allocation{}}
	for alloc := range snapshot.AllocsOfJob(job.ID) {
		if (attempt == 0 || alloc.Attempt == attempt) && (!oneSubjob || alloc.Subjob == int(subjob)) {
			out.Allocations = append(out.Allocations, *shownAlloc(r, job, alloc))
		}
	}
	return &out, nil
}

func (h *jobHandlers) events(r *front.Request, job *structs.Job) (*api.EventList, error) {
	snapshot, err := h.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			events, _ := now.JobEvents(job.ID)
			if len(events) == 0 {
				return 0
			}
			return events[len(events)-1].Index
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchJob(job.ID) },
	})
	if err != nil {
		return nil, err
	}
	events, _ := snapshot.JobEvents(job.ID)
	list := values(events)
	for i := range list {
		list[i] = *shownEvent(r, snapshot, job, &list[i])
	}
	return &api.EventList{Events: list}, nil
}
