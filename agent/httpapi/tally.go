package httpapi

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// tallyHandlers answers about what jobs used over time. No history is kept for it:
// it is counted anew from allocations and past runs.
type tallyHandlers struct{ *core }

// tallyView is a snapshot as a tally reads it.
type tallyView struct{ *state.Snapshot }

// JobOf implements load.TallyView.
func (v tallyView) JobOf(id string) *structs.Job {
	view, _ := v.Job(id)
	return view.Job
}

// project answers projects.usage.
func (h *tallyHandlers) project(r *front.Request) (*api.ProjectUse, error) {
	starts, err := h.days(r)
	if err != nil {
		return nil, err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	own := r.Caller.Standing.Project == r.ID
	if snapshot.Project(r.ID) == nil && snapshot.ProjectUsage(r.ID) == nil && !own {
		return nil, auth.NotFound(auth.ObjectProject, r.ID)
	}
	tally := load.Tallied(tallyView{snapshot}, starts, structs.At(h.now()), func(project, _ string) bool { return project == r.ID })
	users := make(map[string]api.UserUse)
	for _, job := range tally.Jobs {
		use := users[job.User]
		use.User, use.DeviceHours, use.CPUHours = job.User, use.DeviceHours+job.Cards, use.CPUHours+job.Cores
		users[job.User] = use
	}
	return &api.ProjectUse{Project: r.ID, Use: h.overTime(snapshot, tally, starts), Users: slices.SortedFunc(maps.Values(users), func(a, b api.UserUse) int {
		return cmp.Or(cmp.Compare(b.DeviceHours, a.DeviceHours), cmp.Compare(b.CPUHours, a.CPUHours), cmp.Compare(a.User, b.User))
	})}, nil
}

// self answers self.usage, from the projects that the caller belongs to.
func (h *tallyHandlers) self(r *front.Request, token *structs.Token) (*api.SelfUse, error) {
	principal := r.Caller.Principal
	if principal.Kind != auth.KindUser || token == nil {
		return nil, structs.NewError(structs.CodeForbidden, "agent.usage_nobody")
	}
	starts, err := h.days(r)
	if err != nil {
		return nil, err
	}
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot := h.store.Snapshot()
	mine := func(project, user string) bool {
		return user == principal.ID && (project == r.Caller.Standing.Project || isMember(r, snapshot, project) || mayReadProject(r, project))
	}
	tally := load.Tallied(tallyView{snapshot}, starts, structs.At(h.now()), mine)
	out := api.SelfUse{
		User: principal.ID, Project: r.Caller.Standing.Project, Quotas: projectDetail(snapshot, r.Caller.Standing.Project).Quotas,
		Use: h.overTime(snapshot, tally, starts), Jobs: []api.JobUse{}, Idle: []api.IdleUse{},
	}
	project := snapshot.Project(out.Project)
	if project != nil {
		out.Pool = project.JobDefaults.Pool
	}
	out.Pool = poolOf(out.Pool)
	out.Effective = structs.EffectiveCeilings(snapshot.Settings(), snapshot.Pool(out.Pool), project)
	for i, job := range tally.Jobs {
		if i == api.UseJobsMax {
			out.More = len(tally.Jobs) - i
			break
		}
		out.Jobs = append(out.Jobs, api.JobUse{JobID: job.JobID, Name: job.Name, Project: job.Project, DeviceHours: job.Cards, CPUHours: job.Cores, Forgotten: job.Forgotten})
	}
	for waiting := range snapshot.Waiting() {
		if mine(waiting.Project, waiting.User) {
			out.Queued += waiting.Subjobs
		}
	}
	for attempt := range snapshot.LiveAttempts() {
		view, known := snapshot.Job(attempt.JobID)
		if !known || !mine(view.Job.Project, view.Job.User) {
			continue
		}
		out.Running++
		for alloc := range snapshot.Gang(attempt.JobID, attempt.Subjob, attempt.Number) {
			if alloc.IdleSince != 0 && !alloc.Status.Terminal() && len(out.Idle) < api.UseIdleMax {
				out.Idle = append(out.Idle, api.IdleUse{
					JobID: alloc.JobID, Job: view.Job.Name, Project: view.Job.Project, Rank: alloc.Name, Node: alloc.NodeName,
					Devices: len(alloc.Devices), Since: alloc.IdleSince,
				})
			}
		}
	}
	slices.SortFunc(out.Idle, func(a, b api.IdleUse) int {
		return cmp.Or(cmp.Compare(a.Since, b.Since), structs.CompareNames(a.Rank, b.Rank), cmp.Compare(a.JobID, b.JobID))
	})
	return &out, nil
}

// days are the beginnings of the days that a request asks about.
func (h *tallyHandlers) days(r *front.Request) ([]structs.UnixNano, error) {
	q := front.Query{R: r}
	count := cmp.Or(int(q.Int("days", 1, api.UseDaysMax)), api.UseDaysDefault)
	zone := time.FixedZone("", 60*int(q.Int("zone", -api.UseZoneMax, api.UseZoneMax)))
	if q.Err != nil {
		return nil, q.Err
	}
	now := h.now().In(zone)
	starts := make([]structs.UnixNano, count)
	for i := range starts {
		starts[i] = structs.At(time.Date(now.Year(), now.Month(), now.Day()-count+1+i, 0, 0, 0, 0, zone))
	}
	return starts, nil
}

// overTime is a tally as it is told.
func (h *tallyHandlers) overTime(snapshot *state.Snapshot, tally *load.Tally, starts []structs.UnixNano) api.UseOverTime {
	out := api.UseOverTime{From: starts[0], To: structs.At(h.now())}
	if runs := snapshot.PastRuns(0); len(runs) >= state.PastRunsMax && runs[0].EndedAt > starts[0] {
		out.KnownSince = runs[0].EndedAt
	}
	for _, day := range tally.Days {
		told := api.DayUse{Start: day.Start, CPUHours: day.Cores, Kinds: []api.KindUse{}}
		for _, key := range slices.Sorted(maps.Keys(day.Cards)) {
			kind, model := load.CardKind(key)
			told.Kinds = append(told.Kinds, api.KindUse{Kind: kind, Model: model, DeviceHours: day.Cards[key]})
			told.DeviceHours += day.Cards[key]
		}
		slices.SortStableFunc(told.Kinds, func(a, b api.KindUse) int { return cmp.Compare(b.DeviceHours, a.DeviceHours) })
		out.Days = append(out.Days, told)
		out.DeviceHours += told.DeviceHours
		out.CPUHours += told.CPUHours
	}
	return out
}
