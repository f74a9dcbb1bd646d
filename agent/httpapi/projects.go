package httpapi

import (
	"maps"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// projectHandlers answers about projects, and changes their records.
type projectHandlers struct {
	*core
	boards  Boards
	members Membership
}

func (h *projectHandlers) list(r *front.Request) (*api.ProjectList, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchProjects, (*state.Snapshot).WatchProjectUsages))
	if err != nil {
		return nil, err
	}
	q := front.Query{R: r}
	archived := q.Bool("archived")
	if q.Err != nil {
		return nil, q.Err
	}
	names := make(map[string]bool)
	for project := range snapshot.Projects() {
		names[project.Name] = true
	}
	for usage := range snapshot.ProjectUsages() {
		names[usage.Project] = true
	}
	out := api.ProjectList{Projects: []api.ProjectDetail{}}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !archived && snapshot.Project(name).Gone() {
			continue
		}
		if mayReadProject(r, name) || isMember(r, snapshot, name) {
			out.Projects = append(out.Projects, projectDetail(snapshot, name))
		}
	}
	countLive(snapshot, out.Projects)
	if err := h.addShares(r, out.Projects); err != nil {
		return nil, err
	}
	return &out, nil
}

// addShares reports how projects stand in the fair share of the pools that they
// used.
func (h *projectHandlers) addShares(r *front.Request, projects []api.ProjectDetail) error {
	at := make(map[[2]string]*api.PoolShare)
	var pools []string
	for i := range projects {
		for k := range projects[i].Shares {
			share := &projects[i].Shares[k]
			at[[2]string{projects[i].Project.Name, share.Pool}] = share
			pools = append(pools, share.Pool)
		}
	}
	slices.Sort(pools)
	now := structs.At(h.now())
	return h.boards.Consult(r.Context(), func(board *scheduler.Board) {
		for _, pool := range slices.Compact(pools) {
			for rank, stands := range board.Shares(pool, now) {
				if share := at[[2]string{stands.Project, pool}]; share != nil {
					share.Recent, share.Rank, share.Fair = stands.Weighted, rank+1, stands.Fair
				}
			}
		}
	})
}

// countLive fills in how many subjobs of each project wait, and how many hold
// something.
func countLive(snapshot *state.Snapshot, projects []api.ProjectDetail) {
	at := make(map[string]*api.ProjectDetail, len(projects))
	for i := range projects {
		at[projects[i].Project.Name] = &projects[i]
	}
	for waiting := range snapshot.Waiting() {
		if project := at[waiting.Project]; project != nil {
			project.Queued += waiting.Subjobs
		}
	}
	for attempt := range snapshot.LiveAttempts() {
		view, known := snapshot.Job(attempt.JobID)
		if !known {
			continue
		}
		if project := at[view.Job.Project]; project != nil {
			project.Running++
		}
	}
}

func (h *projectHandlers) read(r *front.Request) (*api.ProjectDetail, error) {
	if err := h.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := h.block(r, everything((*state.Snapshot).WatchProjects, (*state.Snapshot).WatchProjectUsages))
	if err != nil {
		return nil, err
	}
	own := r.Caller.Standing.Project == r.ID // it exists, or there were no token for it
	if snapshot.Project(r.ID) == nil && snapshot.ProjectUsage(r.ID) == nil && !own {
		return nil, auth.NotFound(auth.ObjectProject, r.ID)
	}
	found := []api.ProjectDetail{projectDetail(snapshot, r.ID)}
	countLive(snapshot, found)
	shared := sharedJobs(snapshot, r.ID)
	found[0].Shared = &shared
	if err := h.addShares(r, found); err != nil {
		return nil, err
	}
	return answer(found[0])
}

func projectDetail(snapshot *state.Snapshot, name string) api.ProjectDetail {
	detail := api.ProjectDetail{Project: structs.Project{Name: name}, Quotas: []api.QuotaUse{}, Held: structs.QuotaUsage{}, Shares: []api.PoolShare{}}
	if project := snapshot.Project(name); project != nil {
		detail.Project, detail.Defined = *project, true
	}
	detail.Effective = structs.EffectiveCeilings(snapshot.Settings(), nil, snapshot.Project(name))
	usage := snapshot.ProjectUsage(name)
	if usage != nil {
		detail.Urgent = usage.Urgent
		maps.Copy(detail.Held, usage.QuotaUsage)
		for _, ledger := range usage.Ledgers {
			share := api.PoolShare{Pool: poolOf(ledger.Pool)}
			for _, bucket := range ledger.Buckets {
				share.DeviceHours += float64(bucket.DeviceMs) / millisecondsOfHour
				share.CPUHours += float64(bucket.MilliCPUMs) / 1000 / millisecondsOfHour
			}
			detail.Shares = append(detail.Shares, share)
		}
	}
	for _, quota := range detail.Project.Quotas {
		use := api.QuotaUse{Quota: quota, Held: float64(detail.Held.Of(quota))}
		if quota.Kind == structs.QuotaCPU {
			use.Held /= 1000
		}
		use.Borrowed = max(0, use.Held-float64(quota.Guaranteed))
		detail.Quotas = append(detail.Quotas, use)
	}
	return detail
}

const millisecondsOfHour = 3_600_000

func (h *projectHandlers) put(r *front.Request, body *structs.Project) (*api.Changed, error) {
	project := *body
	if err := sameName(&project.Name, r.ID); err != nil {
		return nil, err
	}
	if err := invalid("agent.project_invalid", project.Validate()); err != nil {
		return nil, err
	}
	known := structs.Project{Name: project.Name}
	snapshot := h.store.Snapshot()
	record, refusal := snapshot.Project(project.Name), r.May(auth.VerbWrite, r.Object)
	if refusal != nil { // that it changes no bounds rests on what they are
		record = r.Project(snapshot, project.Name)
	}
	if record != nil {
		known = *record
	}
	same := known.SameBounds(project)
	if refusal != nil && !same {
		return nil, refusal
	}
	project.BoundsBy, project.BoundsAt = known.BoundsBy, known.BoundsAt
	if !same && h.members.Protocol() >= wire.ProtocolProjects {
		project.BoundsBy, project.BoundsAt = r.Caller.Principal.ID, structs.At(h.now())
	}
	project.Archived, project.ArchivedBy, project.ArchivedAt = false, "", 0 // the log keeps what they are
	return h.change(r, structs.CommandProjectPut, structs.ProjectPut{Project: project})
}

// archive answers projects.archive.
func (h *projectHandlers) archive(r *front.Request, body *api.ArchiveRequest) (*api.Changed, error) {
	if body.StopJobs && !body.Archived {
		return nil, structs.NewError(structs.CodeInvalid, "agent.archive_stops")
	}
	return h.change(r, structs.CommandProjectArchive, structs.ProjectArchive{Name: r.ID, Archived: body.Archived, StopJobs: body.StopJobs})
}

// delete answers projects.delete. Whoever takes the name next must not find the secrets
// of those before, so these go first, and by the hand of somebody who sees which.
func (h *projectHandlers) delete(r *front.Request) (*api.Changed, error) {
	var names []string
	for secret := range h.store.Snapshot().SecretsOfProject(r.ID) {
		names = append(names, secret.Name)
	}
	if len(names) > 0 {
		return nil, structs.NewError(structs.CodeConflict, "agent.project_has_secrets", "project", r.ID, "count", len(names), "secret", names[0])
	}
	lowest, _ := h.members.Lowest()
	return h.change(r, structs.CommandProjectDelete, structs.ProjectDelete{Name: r.ID, EndsCode: lowest >= wire.ProtocolCodeSince})
}
