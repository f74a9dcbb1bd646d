package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// PoolDetail is a pool and what is in it now.
type PoolDetail struct {
	Pool        structs.Pool  `json:"pool"`
	Defined     bool          `json:"defined"`           // it has a record; else only nodes name it
	Nodes       int           `json:"nodes"`             // in it, whatever their status
	Ready       int           `json:"ready"`             // of them take work
	Members     []string      `json:"members,omitempty"` // their names; only when one pool is read
	CPU         float64       `json:"cpu"`               // cores of all
	CPUUsed     float64       `json:"cpu_used"`
	Memory      int64         `json:"memory"` // bytes
	MemoryUsed  int64         `json:"memory_used"`
	Devices     int           `json:"devices"`
	DevicesUsed int           `json:"devices_used"`
	Models      []DeviceShare `json:"models"`  // the devices by kind and model
	Queued      int           `json:"queued"`  // subjobs that wait for it: that name it, or name none and could run there
	Running     int           `json:"running"` // allocations on its nodes
	// Effective is the most that jobs of the project that the caller acts in may ask for
	// in it; only when one pool is read.
	Effective []structs.Ceiling `json:"effective,omitempty"`
}

// DeviceShare is how many devices of one model there are and are held.
type DeviceShare struct {
	Kind  string `json:"kind"`
	Model string `json:"model"`
	Total int    `json:"total"`
	Used  int    `json:"used"`
	Sick  int    `json:"sick,omitempty"`
	Free  int    `json:"free"` // of nodes that take work, well, and held by nobody
}

// PoolList answers pools.list: those with a record and those that nodes name,
// by name.
type PoolList struct {
	Pools []PoolDetail `json:"pools"`
}

// QuotaUse is a quota with what is held of it, in its own unit.
type QuotaUse struct {
	structs.Quota
	Held     float64 `json:"held"`               // devices, or cores
	Borrowed float64 `json:"borrowed,omitempty"` // over what is guaranteed
}

// ProjectDetail is a project with its use.
type ProjectDetail struct {
	Project structs.Project    `json:"project"`
	Defined bool               `json:"defined"` // it has a record; else only jobs name it
	Quotas  []QuotaUse         `json:"quotas"`
	Held    structs.QuotaUsage `json:"held"`    // everything it holds, by device key; cores in thousandths
	Urgent  int                `json:"urgent"`  // urgent jobs that wait or run
	Queued  int                `json:"queued"`  // subjobs that wait
	Running int                `json:"running"` // subjobs that hold something
	Shares  []PoolShare        `json:"shares"`  // what it used of each pool
	// Effective is the most that its jobs may ask for in any pool, by its own ceilings
	// and those of the cluster.
	Effective []structs.Ceiling `json:"effective"`
	Shared    *Shared           `json:"shared,omitempty"` // only when one project is read
}

// PoolShare is what a project used of a pool. Hours gone by count in full; Recent
// and Rank are as fair share sees them: older use counts less, divided by the
// project's weight, and the one that used least of late stands first.
type PoolShare struct {
	Pool        string  `json:"pool"`
	DeviceHours float64 `json:"device_hours"`
	CPUHours    float64 `json:"cpu_hours"`
	Recent      float64 `json:"recent"` // device-hours
	Rank        int     `json:"rank"`   // among the projects that used the pool, from 1
	Fair        bool    `json:"fair"`   // the pool orders its queue by it
}

// ProjectList answers projects.list, by name.
type ProjectList struct {
	Projects []ProjectDetail `json:"projects"`
}

// ArchiveRequest archives a project, or brings it back. One with jobs that have not
// ended is archived only where these are to be stopped.
type ArchiveRequest struct {
	Archived bool `json:"archived,omitempty"`
	StopJobs bool `json:"stop_jobs,omitempty"`
}

// QueueMoveRequest moves a queued job to another place in its tier: before the
// job named by id or name, last, or with neither first.
type QueueMoveRequest struct {
	Before string `json:"before,omitempty"`
	Last   bool   `json:"last,omitempty"`
}

// TimeLimitRequest changes a job's time limit; 0 lifts it.
type TimeLimitRequest struct {
	TimeLimit structs.Duration `json:"time_limit"`
}

// The endpoints of pool routes.
var (
	PoolsList = endpoint[None, PoolList](Route{
		Name: "pools.list", Method: http.MethodGet, Pattern: "/v1/pools", Verb: VerbList, Kind: ObjectPool, From: FromKind, Blocking: true,
		Query: blockingParams(), Summary: "List pools with their use",
	})
	PoolsRead = endpoint[None, PoolDetail](Route{
		Name: "pools.read", Method: http.MethodGet, Pattern: "/v1/pools/{id}", Verb: VerbRead, Kind: ObjectPool, From: FromKind, Blocking: true,
		Query: blockingParams(), Summary: "Read one pool by name",
	})
	PoolsPut = endpoint[structs.Pool, Changed](Route{
		Name: "pools.put", Method: http.MethodPut, Pattern: "/v1/pools/{id}", Verb: VerbWrite, Kind: ObjectPool, From: FromKind,
		Summary: "Make or replace a pool; its ceilings are for administrators alone",
	})
	PoolsDelete = endpoint[None, Changed](Route{
		Name: "pools.delete", Method: http.MethodDelete, Pattern: "/v1/pools/{id}", Verb: VerbDelete, Kind: ObjectPool, From: FromKind,
		Summary: "Remove a pool; its nodes fall back to their own configuration",
	})
	ProjectsList = endpoint[None, ProjectList](Route{
		Name: "projects.list", Method: http.MethodGet, Pattern: "/v1/projects", Verb: VerbList, Kind: ObjectProject, From: FromKind, Blocking: true,
		Query:   append(blockingParams(), Param{"archived", "boolean", "the archived ones too"}),
		Summary: "List projects with quotas and use; archived ones where they are asked for",
	})
	ProjectsRead = endpoint[None, ProjectDetail](Route{
		Name: "projects.read", Method: http.MethodGet, Pattern: "/v1/projects/{id}", Verb: VerbRead, Kind: ObjectProject, From: FromProject, Blocking: true,
		Query: blockingParams(), Summary: "Read one project by name",
	})
	ProjectsPut = endpoint[structs.Project, Changed](Route{
		Name: "projects.put", Method: http.MethodPut, Pattern: "/v1/projects/{id}", Verb: VerbMembers, Kind: ObjectProject, From: FromProject,
		Summary: "Make or replace a project's record; its own administrators may change members and description",
	})
	ProjectsArchive = endpoint[ArchiveRequest, Changed](Route{
		Name: "projects.archive", Method: http.MethodPut, Pattern: "/v1/projects/{id}/archive", Verb: VerbWrite, Kind: ObjectProject, From: FromProject,
		Summary: "Archive a project, which takes no new jobs then and is left out of lists, or bring it back",
	})
	ProjectsDelete = endpoint[None, Changed](Route{
		Name: "projects.delete", Method: http.MethodDelete, Pattern: "/v1/projects/{id}", Verb: VerbWrite, Kind: ObjectProject, From: FromProject,
		Summary: "Remove a project's record, and so its bounds",
	})
)

func poolRoutes() []Route {
	return []Route{
		PoolsList.route,
		PoolsRead.route,
		PoolsPut.route,
		PoolsDelete.route,
		ProjectsList.route,
		ProjectsRead.route,
		ProjectsPut.route,
		ProjectsArchive.route,
		ProjectsUsage.route,
		ProjectsDelete.route,
	}
}

// Pools lists the pools with their use.
func (c *Client) Pools(ctx context.Context, query *Query) (*PoolList, *Meta, error) {
	return read(ctx, c, PoolsList, "", query.values())
}

// Pool reads one pool.
func (c *Client) Pool(ctx context.Context, name string, query *Query) (*PoolDetail, *Meta, error) {
	return read(ctx, c, PoolsRead, name, query.values())
}

// PutPool makes or replaces a pool.
func (c *Client) PutPool(ctx context.Context, pool *structs.Pool) (*Changed, error) {
	return change(ctx, c, PoolsPut, pool.Name, *pool)
}

// DeletePool removes a pool.
func (c *Client) DeletePool(ctx context.Context, name string) (*Changed, error) {
	return change(ctx, c, PoolsDelete, name, None{})
}

// Projects lists the projects with quotas and use.
func (c *Client) Projects(ctx context.Context, query *Query) (*ProjectList, *Meta, error) {
	return read(ctx, c, ProjectsList, "", query.values())
}

// Project reads one project.
func (c *Client) Project(ctx context.Context, name string, query *Query) (*ProjectDetail, *Meta, error) {
	return read(ctx, c, ProjectsRead, name, query.values())
}

// PutProject makes or replaces a project's record. Administrators of the
// project may change its members and its description.
func (c *Client) PutProject(ctx context.Context, project *structs.Project) (*Changed, error) {
	return change(ctx, c, ProjectsPut, project.Name, *project)
}

// ArchivedProjects lists the projects with those that are archived.
func (c *Client) ArchivedProjects(ctx context.Context) (*ProjectList, error) {
	list, _, err := read(ctx, c, ProjectsList, "", url.Values{"archived": {"true"}})
	return list, err
}

// ArchiveProject archives a project, or brings it back.
func (c *Client) ArchiveProject(ctx context.Context, name string, to ArchiveRequest) (*Changed, error) {
	return change(ctx, c, ProjectsArchive, name, to)
}

// DeleteProject removes a project's record.
func (c *Client) DeleteProject(ctx context.Context, name string) (*Changed, error) {
	return change(ctx, c, ProjectsDelete, name, None{})
}

// MoveJob moves a queued job to another place in its tier.
func (c *Client) MoveJob(ctx context.Context, id string, to QueueMoveRequest) (*Changed, error) {
	return change(ctx, c, JobsMove, id, to)
}

// SetTimeLimit changes a job's time limit, also while it runs.
func (c *Client) SetTimeLimit(ctx context.Context, id string, limit structs.Duration) (*Changed, error) {
	return change(ctx, c, JobsTimeLimit, id, TimeLimitRequest{TimeLimit: limit})
}
