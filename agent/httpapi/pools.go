package httpapi

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// poolOf is the pool that something counts in.
func poolOf(name string) string { return cmp.Or(name, structs.PoolDefault) }

func (s *handlers) listPools(r *front.Request) (*api.PoolList, error) {
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchPools, (*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	found := poolsOf(snapshot)
	out := api.PoolList{Pools: []api.PoolDetail{}}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		found[name].Members = nil
		out.Pools = append(out.Pools, *found[name])
	}
	return &out, nil
}

func (s *handlers) readPool(r *front.Request) (*api.PoolDetail, error) {
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchPools, (*state.Snapshot).WatchNodes))
	if err != nil {
		return nil, err
	}
	detail, ok := poolsOf(snapshot)[r.ID]
	if !ok {
		return nil, auth.NotFound(auth.ObjectPool, r.ID)
	}
	slices.Sort(detail.Members)
	return answer(*detail)
}

// poolsOf sums up every pool that has a record or a node, by name.
func poolsOf(snapshot *state.Snapshot) map[string]*api.PoolDetail {
	found := make(map[string]*api.PoolDetail)
	at := func(name string) *api.PoolDetail {
		name = poolOf(name)
		if found[name] == nil {
			found[name] = &api.PoolDetail{Pool: structs.Pool{Name: name}, Models: []api.DeviceShare{}}
		}
		return found[name]
	}
	for pool := range snapshot.Pools() {
		detail := at(pool.Name)
		detail.Pool, detail.Defined = *pool, true
	}
	for node, usage := range snapshot.Nodes() {
		detail := at(node.Pool)
		detail.Nodes++
		if node.Schedulable() {
			detail.Ready++
		}
		detail.Members = append(detail.Members, node.Name)
		detail.CPU += node.Capacity.CPU
		detail.Memory += node.Capacity.Memory
		detail.Devices += len(node.Devices)
		detail.Models = addDevices(detail.Models, node, usage)
		if usage != nil {
			detail.CPUUsed += usage.CPU
			detail.MemoryUsed += usage.Memory
			detail.DevicesUsed += len(usage.Devices)
			detail.Running += usage.Allocs
		}
	}
	reached := newReach(snapshot)
	for job := range snapshot.Queue() {
		for _, pool := range reached.of(job) {
			at(pool).Queued++
		}
	}
	return found
}

// addDevices counts the devices of a node into shares, which are kept by kind
// and model.
func addDevices(shares []api.DeviceShare, node *structs.Node, usage *structs.Usage) []api.DeviceShare {
	for i := range node.Devices {
		device := &node.Devices[i]
		at, known := slices.BinarySearchFunc(shares, device, func(share api.DeviceShare, d *structs.Device) int {
			return cmp.Or(cmp.Compare(share.Kind, d.Kind), cmp.Compare(share.Model, d.Model))
		})
		if !known {
			shares = slices.Insert(shares, at, api.DeviceShare{Kind: device.Kind, Model: device.Model})
		}
		shares[at].Total++
		if !device.Healthy {
			shares[at].Sick++
		}
		if usage != nil && usage.Devices[device.ID] != "" {
			shares[at].Used++
		}
	}
	return shares
}

func (s *handlers) putPool(r *front.Request, body *structs.Pool) (*api.Changed, error) {
	pool := *body
	if err := sameName(&pool.Name, r.ID); err != nil {
		return nil, err
	}
	if err := invalid("agent.pool_invalid", pool.Validate()); err != nil {
		return nil, err
	}
	known, raw, exec := structs.PoolCeilings{}, false, (*structs.PoolExec)(nil)
	if err := r.May(auth.VerbCeilings, r.Object); err != nil {
		if record := r.Pool(s.store.Snapshot(), pool.Name); record != nil {
			known, raw, exec = record.Ceilings, record.Raw, record.Exec
		}
		if pool.Ceilings != known || pool.Raw && !raw || !reflect.DeepEqual(pool.Exec, exec) {
			return nil, err
		}
	}
	return s.change(r, structs.CommandPoolPut, structs.PoolPut{Pool: pool})
}

func (s *handlers) deletePool(r *front.Request) (*api.Changed, error) {
	return s.change(r, structs.CommandPoolDelete, structs.PoolDelete{Name: r.ID})
}

// sameName takes the name from the path when the body leaves it out.
func sameName(name *string, path string) error {
	*name = cmp.Or(*name, path)
	if *name != path {
		return structs.NewError(structs.CodeInvalid, "agent.name_differs", "name", *name, "path", path)
	}
	return nil
}

// invalid gathers problems as one error, nil without any.
func invalid(id string, problems []structs.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	e := structs.InvalidJob(structs.CodeInvalid, problems)
	e.ID = id
	return e
}

func (s *handlers) listProjects(r *front.Request) (*api.ProjectList, error) {
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchProjects, (*state.Snapshot).WatchProjectUsages))
	if err != nil {
		return nil, err
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
		object := auth.Object{Kind: auth.ObjectProject, Project: name, ID: name}
		if auth.Allowed(r.Caller.Principal, auth.VerbRead, object).Allow {
			out.Projects = append(out.Projects, projectDetail(snapshot, name))
		}
	}
	countQueued(snapshot, out.Projects)
	if err := s.addShares(r, out.Projects); err != nil {
		return nil, err
	}
	return &out, nil
}

// addShares tells how projects stand in the fair share of the pools that they
// used.
func (s *handlers) addShares(r *front.Request, projects []api.ProjectDetail) error {
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
	now := structs.At(s.now())
	return s.replica.Consult(r.Context(), func(board *scheduler.Board) {
		for _, pool := range slices.Compact(pools) {
			for rank, stands := range board.Shares(pool, now) {
				if share := at[[2]string{stands.Project, pool}]; share != nil {
					share.Recent, share.Rank, share.Fair = stands.Weighted, rank+1, stands.Fair
				}
			}
		}
	})
}

// countQueued fills in how many subjobs of each project wait.
func countQueued(snapshot *state.Snapshot, projects []api.ProjectDetail) {
	at := make(map[string]*api.ProjectDetail, len(projects))
	for i := range projects {
		at[projects[i].Project.Name] = &projects[i]
	}
	for job := range snapshot.Queue() {
		if project := at[job.Project]; project != nil {
			project.Queued++
		}
	}
}

func (s *handlers) readProject(r *front.Request) (*api.ProjectDetail, error) {
	if err := s.refresh(r); err != nil {
		return nil, err
	}
	snapshot, err := s.block(r, everything((*state.Snapshot).WatchProjects, (*state.Snapshot).WatchProjectUsages))
	if err != nil {
		return nil, err
	}
	own := r.Caller.Principal.Project == r.ID // it exists, or there were no token for it
	if snapshot.Project(r.ID) == nil && snapshot.ProjectUsage(r.ID) == nil && !own {
		return nil, auth.NotFound(auth.ObjectProject, r.ID)
	}
	found := []api.ProjectDetail{projectDetail(snapshot, r.ID)}
	countQueued(snapshot, found)
	if err := s.addShares(r, found); err != nil {
		return nil, err
	}
	return answer(found[0])
}

func projectDetail(snapshot *state.Snapshot, name string) api.ProjectDetail {
	detail := api.ProjectDetail{Project: structs.Project{Name: name}, Quotas: []api.QuotaUse{}, Held: structs.Holding{}, Shares: []api.PoolShare{}}
	if project := snapshot.Project(name); project != nil {
		detail.Project, detail.Defined = *project, true
	}
	usage := snapshot.ProjectUsage(name)
	if usage != nil {
		detail.Urgent = usage.Urgent
		maps.Copy(detail.Held, usage.Held)
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

func (s *handlers) putProject(r *front.Request, body *structs.Project) (*api.Changed, error) {
	project := *body
	if err := sameName(&project.Name, r.ID); err != nil {
		return nil, err
	}
	if err := invalid("agent.project_invalid", project.Validate()); err != nil {
		return nil, err
	}
	known := structs.Project{Name: project.Name}
	if err := r.May(auth.VerbWrite, r.Object); err != nil {
		if record := r.Project(s.store.Snapshot(), project.Name); record != nil {
			known = *record
		}
		if !sameBounds(known, project) {
			return nil, err
		}
	}
	return s.change(r, structs.CommandProjectPut, structs.ProjectPut{Project: project})
}

// sameBounds reports whether two records differ in nothing but what a project's
// own administrators may change.
func sameBounds(a, b structs.Project) bool {
	a.Description, a.Members, a.CreateIndex, a.ModifyIndex = b.Description, b.Members, b.CreateIndex, b.ModifyIndex
	return reflect.DeepEqual(a, b)
}

func (s *handlers) deleteProject(r *front.Request) (*api.Changed, error) {
	return s.change(r, structs.CommandProjectDelete, structs.ProjectDelete{Name: r.ID})
}

// moveJob gives a queued job another place; the log keeps who did it.
func (s *handlers) moveJob(r *front.Request, job *structs.Job, body *api.QueueMoveRequest) (*api.Changed, error) {
	move := structs.QueueMove{JobID: job.ID, Last: body.Last}
	if body.Before != "" {
		if body.Last {
			return nil, structs.NewError(structs.CodeInvalid, "agent.move_both")
		}
		// Whoever may move jobs may read them all.
		before, err := findJob(r, body.Before, s.store.Snapshot())
		if err != nil {
			return nil, err
		}
		move.Before = before.ID
	}
	return s.change(r, structs.CommandQueueMove, move)
}

func (s *handlers) setTimeLimit(r *front.Request, job *structs.Job, body *api.TimeLimitRequest) (*api.Changed, error) {
	limit := body.TimeLimit
	if limit < 0 || limit > structs.SpanMax {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit",
			"value", structs.FormatDuration(limit), "max", structs.FormatDuration(structs.SpanMax))
	}
	if pool := r.Pool(s.store.Snapshot(), poolOf(job.Placement.Pool)); pool != nil && pool.Ceilings.TimeLimit > 0 && (limit == 0 || limit > pool.Ceilings.TimeLimit) {
		return nil, structs.NewError(structs.CodeInvalid, "agent.time_limit_ceiling", "value", structs.FormatDuration(limit),
			"pool", pool.Name, "max", structs.FormatDuration(pool.Ceilings.TimeLimit))
	}
	return s.change(r, structs.CommandJobTimeLimit, structs.JobTimeLimit{JobID: job.ID, TimeLimit: limit})
}
