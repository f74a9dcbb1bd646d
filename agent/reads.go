package agent

import (
	"maps"
	"strconv"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// standing translates the state's sum of a job for the API.
func standing(s state.Standing) api.JobStanding {
	out := api.JobStanding{
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
func explained(snapshot *state.Snapshot, jobID string, out api.JobStanding) api.JobStanding {
	if first := snapshot.Subjob(jobID, 0); first != nil {
		out.Reason, out.Wait = first.Reason, first.Wait
	}
	return out
}

// shown is a job as the caller may see it: without its environment and its
// source when those are not the caller's to read.
func shown(r *request, job *structs.Job) *structs.Job {
	if auth.Allowed(r.caller.principal, auth.VerbEnv, jobObject(job)).Allow {
		return job
	}
	hidden := job.Copy()
	hidden.Source = ""
	hidden.Task.Env = redacted(job.Task.Env)
	if hidden.Batch != nil {
		for i := range hidden.Batch.Subtasks {
			hidden.Batch.Subtasks[i].Env = redacted(hidden.Batch.Subtasks[i].Env)
		}
	}
	return hidden
}

func redacted(env map[string]string) map[string]string {
	if env == nil {
		return nil
	}
	hidden := maps.Clone(env)
	for name := range hidden {
		hidden[name] = "***"
	}
	return hidden
}

func (s *site) listJobs(r *request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	q := query{r: r}
	name, project, user, jobState := q.text("name"), q.text("project"), q.text("user"), structs.JobState(q.text("state"))
	paging, err := page(r)
	if err != nil {
		return err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchJobs))
	if err != nil {
		return err
	}
	views, next, refusal := snapshot.ListJobs(paging, func(view state.JobView) bool {
		job := view.Job
		return (name == "" || job.Name == name) && (project == "" || job.Project == project) &&
			(user == "" || job.User == user) && (jobState == "" || view.Standing.State == jobState) &&
			auth.Allowed(r.caller.principal, auth.VerbRead, jobObject(job)).Allow
	})
	if refusal != nil {
		return refusal
	}
	out := api.JobList{Jobs: make([]api.JobSummary, len(views)), Next: next}
	for i, view := range views {
		job := view.Job
		out.Jobs[i] = api.JobSummary{
			ID: job.ID, Name: job.Name, Project: job.Project, User: job.User, Type: job.Type, Priority: job.Priority,
			Nodes: job.Nodes, Subjobs: job.SubjobCount(), SubmittedAt: job.SubmittedAt,
			JobStanding: explained(snapshot, job.ID, standing(view.Standing)),
		}
	}
	return r.reply(out)
}

// newest is the highest modify index of what is iterated.
func newest[T any](items func(func(T) bool), index func(T) uint64) uint64 {
	highest := uint64(0)
	items(func(item T) bool {
		highest = max(highest, index(item))
		return true
	})
	return highest
}

// ofJob is the reading of a job with its subjobs.
func ofJob(id string) reading {
	return reading{
		version: func(now *state.Snapshot) uint64 {
			view, ok := now.Job(id)
			if !ok {
				return now.Index() // deleted: tell at once
			}
			return max(view.Standing.ModifyIndex, newest(now.Subjobs(id), func(s *structs.Subjob) uint64 { return s.ModifyIndex }))
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchSubjobs(id) },
		also:  func(now *state.Snapshot) <-chan struct{} { return now.WatchJob(id) },
	}
}

func (s *site) readJob(r *request) error {
	snapshot, err := s.block(r, ofJob(r.id))
	if err != nil {
		return err
	}
	view, ok := snapshot.Job(r.id)
	if !ok {
		return auth.NotFound(auth.ObjectJob, r.id)
	}
	subjobs, _, refusal := snapshot.ListSubjobs(r.id, state.Page{Limit: api.PageSizeDefault})
	if refusal != nil {
		return refusal
	}
	return r.reply(api.JobDetail{
		Job:         shown(r, view.Job),
		JobStanding: explained(snapshot, r.id, standing(view.Standing)),
		Subjobs:     values(subjobs),
	})
}

// values copies rows out, so that an empty list is [] and not null.
func values[T any](rows []*T) []T {
	out := make([]T, len(rows))
	for i, row := range rows {
		out[i] = *row
	}
	return out
}

func (s *site) listSubjobs(r *request) error {
	paging, err := page(r)
	if err != nil {
		return err
	}
	snapshot, err := s.block(r, ofJob(r.id))
	if err != nil {
		return err
	}
	subjobs, next, refusal := snapshot.ListSubjobs(r.id, paging)
	if refusal != nil {
		return refusal
	}
	return r.reply(api.SubjobList{Subjobs: values(subjobs), Next: next})
}

func (s *site) listAttempts(r *request) error {
	snapshot, err := s.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			return newest(now.Attempts(r.id), func(a *structs.Attempt) uint64 { return a.ModifyIndex })
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAttempts(r.id) },
	})
	if err != nil {
		return err
	}
	out := api.AttemptList{Attempts: []structs.Attempt{}}
	for attempt := range snapshot.Attempts(r.id) {
		out.Attempts = append(out.Attempts, *attempt)
	}
	return r.reply(out)
}

func (s *site) listAllocations(r *request) error {
	q := query{r: r}
	attempt, subjob := q.uint("attempt"), q.int("subjob", 0, structs.BatchCountMax)
	oneSubjob := q.text("subjob") != ""
	if q.err != nil {
		return q.err
	}
	snapshot, err := s.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			return newest(now.AllocsOfJob(r.id), func(a *structs.Allocation) uint64 { return a.ModifyIndex })
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAllocsOfJob(r.id) },
	})
	if err != nil {
		return err
	}
	out := api.AllocationList{Allocations: []structs.Allocation{}}
	for alloc := range snapshot.AllocsOfJob(r.id) {
		if (attempt == 0 || alloc.Attempt == attempt) && (!oneSubjob || alloc.Subjob == int(subjob)) {
			out.Allocations = append(out.Allocations, *alloc)
		}
	}
	return r.reply(out)
}

func (s *site) listJobEvents(r *request) error {
	snapshot, err := s.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			events, _ := now.JobEvents(r.id)
			if len(events) == 0 {
				return 0
			}
			return events[len(events)-1].Index
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchJob(r.id) },
	})
	if err != nil {
		return err
	}
	events, _ := snapshot.JobEvents(r.id)
	return r.reply(api.EventList{Events: values(events)})
}

func (s *site) readAllocation(r *request) error {
	snapshot, err := s.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			if alloc := now.Alloc(r.id); alloc != nil {
				return alloc.ModifyIndex
			}
			return now.Index()
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchAlloc(r.id) },
	})
	if err != nil {
		return err
	}
	alloc := snapshot.Alloc(r.id)
	if alloc == nil {
		return auth.NotFound(auth.ObjectJob, r.id)
	}
	return r.reply(alloc)
}

func summarize(node *structs.Node, usage *structs.Usage) api.NodeSummary {
	out := api.NodeSummary{Node: *node, Used: structs.Usage{NodeID: node.ID}}
	if usage != nil {
		out.Used = *usage
	}
	return out
}

func (s *site) listNodes(r *request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	paging, err := page(r)
	if err != nil {
		return err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchNodes))
	if err != nil {
		return err
	}
	nodes, next, refusal := snapshot.ListNodes(paging, nil)
	if refusal != nil {
		return refusal
	}
	out := api.NodeList{Nodes: make([]api.NodeSummary, len(nodes)), Next: next}
	for i, node := range nodes {
		out.Nodes[i] = summarize(node, snapshot.Usage(node.ID))
	}
	return r.reply(out)
}

func (s *site) readNode(r *request) error {
	snapshot, err := s.block(r, reading{
		version: func(now *state.Snapshot) uint64 {
			node := now.Node(r.id)
			if node == nil {
				return now.Index()
			}
			held := newest(now.Holders(r.id), func(a *structs.Allocation) uint64 { return a.ModifyIndex })
			version := max(node.ModifyIndex, held)
			if usage := now.Usage(r.id); usage != nil { // rises as well when the last allocation leaves
				version = max(version, usage.ModifyIndex)
			}
			return version
		},
		watch: func(now *state.Snapshot) <-chan struct{} { return now.WatchNode(r.id) },
		also:  func(now *state.Snapshot) <-chan struct{} { return now.WatchHolders(r.id) },
	})
	if err != nil {
		return err
	}
	node := snapshot.Node(r.id)
	if node == nil {
		return auth.NotFound(auth.ObjectNode, r.id)
	}
	out := api.NodeDetail{NodeSummary: summarize(node, snapshot.Usage(r.id)), Allocations: []structs.Allocation{}}
	for alloc := range snapshot.Holders(r.id) {
		view, ok := snapshot.Job(alloc.JobID)
		if ok && auth.Allowed(r.caller.principal, auth.VerbRead, jobObject(view.Job)).Allow {
			out.Allocations = append(out.Allocations, *alloc)
		}
	}
	return r.reply(out)
}

// readQueue lists what waits. Places count all that waits; what the caller
// may not see is left out and only leaves gaps.
func (s *site) readQueue(r *request) error {
	if err := s.refresh(r); err != nil {
		return err
	}
	q := query{r: r}
	limit, after := q.limit(), q.text("after")
	begin, err := strconv.Atoi(after)
	if after != "" && (err != nil || begin < 0) {
		q.refuse("after", after)
	}
	if q.err != nil {
		return q.err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchQueue))
	if err != nil {
		return err
	}
	out := api.Queue{Entries: []api.QueueEntry{}}
	position := 0
	for job, subjob := range snapshot.Queue() {
		position++
		if position <= begin || !auth.Allowed(r.caller.principal, auth.VerbRead, jobObject(job)).Allow {
			continue
		}
		if len(out.Entries) == limit {
			out.Next = strconv.Itoa(out.Entries[limit-1].Position)
			break
		}
		out.Entries = append(out.Entries, api.QueueEntry{
			JobID: job.ID, JobName: job.Name, Project: job.Project, User: job.User, Subjob: subjob.Index,
			Priority: job.Priority, Nodes: job.Nodes, QueuedAt: subjob.QueuedAt, Position: position, Wait: subjob.Wait,
		})
	}
	return r.reply(out)
}
