package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// Bounds of what is told of use over time.
const (
	UseDaysMax     = 31
	UseDaysDefault = 7
	UseZoneMax     = 14 * 60 // minutes between UTC and the zone that days begin in
	UseJobsMax     = 100
	UseIdleMax     = 200
)

// UseOverTime is what jobs used, by day. A day begins at midnight where the asker is;
// the last one is not over. Cards that are held for people to look at count, too.
type UseOverTime struct {
	From        structs.UnixNano `json:"from"`
	To          structs.UnixNano `json:"to"`
	KnownSince  structs.UnixNano `json:"known_since,omitempty"` // ended jobs of before may be missing; absent when none are
	Days        []DayUse         `json:"days"`
	DeviceHours float64          `json:"device_hours"`
	CPUHours    float64          `json:"cpu_hours"`
}

// DayUse is what was used on one day.
type DayUse struct {
	Start       structs.UnixNano `json:"start"`
	DeviceHours float64          `json:"device_hours"`
	CPUHours    float64          `json:"cpu_hours"`
	Kinds       []KindUse        `json:"kinds"` // most first
}

// KindUse is what was used of one kind of device. Both names are empty for jobs that
// are forgotten but for how many devices they had.
type KindUse struct {
	Kind        string  `json:"kind,omitempty"`
	Model       string  `json:"model,omitempty"`
	DeviceHours float64 `json:"device_hours"`
}

// JobUse is what one job used.
type JobUse struct {
	JobID       string  `json:"job_id"`
	Name        string  `json:"name"`
	Project     string  `json:"project"`
	DeviceHours float64 `json:"device_hours"`
	CPUHours    float64 `json:"cpu_hours"`
	Forgotten   bool    `json:"forgotten,omitempty"` // the job itself is not kept any more
}

// UserUse is what the jobs of one user used.
type UserUse struct {
	User        string  `json:"user"`
	DeviceHours float64 `json:"device_hours"`
	CPUHours    float64 `json:"cpu_hours"`
}

// ProjectUse answers projects.usage.
type ProjectUse struct {
	Project string      `json:"project"`
	Use     UseOverTime `json:"use"`
	Users   []UserUse   `json:"users"` // most cards first
}

// SelfUse answers self.usage: what the caller's own jobs have and used.
type SelfUse struct {
	User    string      `json:"user"`
	Project string      `json:"project"`        // that the request acts in
	Quotas  []QuotaUse  `json:"quotas"`         // of that project
	Running int         `json:"running"`        // subjobs that hold something
	Queued  int         `json:"queued"`         // subjobs that wait
	Idle    []IdleUse   `json:"idle"`           // devices that have nothing to do now, longest first
	Use     UseOverTime `json:"use"`            // in all projects that the caller belongs to
	Jobs    []JobUse    `json:"jobs"`           // most cards first
	More    int         `json:"more,omitempty"` // jobs that are left out
	// Pool is where jobs of the project stand that name none, and Effective the most that
	// they may ask for there.
	Pool      string            `json:"pool"`
	Effective []structs.Ceiling `json:"effective"`
}

// IdleUse is devices of one rank that have nothing to do.
type IdleUse struct {
	JobID   string           `json:"job_id"`
	Job     string           `json:"job"`
	Project string           `json:"project"`
	Rank    string           `json:"rank"`
	Node    string           `json:"node"`
	Devices int              `json:"devices"`
	Since   structs.UnixNano `json:"since"`
}

func useParams() []Param {
	return []Param{
		{"days", "integer", "how many days back, today included, 1 to 31; 7 unless told"},
		{"zone", "integer", "minutes east of UTC at which days begin"},
	}
}

// The endpoints of use over time.
var (
	ProjectsUsage = endpoint[None, ProjectUse](Route{
		Name: "projects.usage", Method: http.MethodGet, Pattern: "/v1/projects/{id}/usage", Verb: VerbRead, Kind: ObjectProject, From: FromProject,
		Query: useParams(), Summary: "What the jobs of a project used, by day and kind of device, and by user",
	})
	SelfUsage = endpoint[None, SelfUse](Route{
		Name: "self.usage", Method: http.MethodGet, Pattern: "/v1/self/usage", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
		Query: useParams(), Summary: "What the caller's own jobs have now and used, by day and by job",
	})
)

// UseQuery says of which days use is asked for.
type UseQuery struct {
	Days int // 0: as many as the server says
	Zone int // minutes east of UTC
}

func (q UseQuery) values() url.Values {
	values := url.Values{}
	if q.Days != 0 {
		values.Set("days", strconv.Itoa(q.Days))
	}
	if q.Zone != 0 {
		values.Set("zone", strconv.Itoa(q.Zone))
	}
	return values
}

// ProjectUse is what the jobs of a project used.
func (c *Client) ProjectUse(ctx context.Context, project string, query UseQuery) (*ProjectUse, error) {
	out, _, err := read(ctx, c, ProjectsUsage, project, query.values())
	return out, err
}

// SelfUse is what the caller's own jobs have and used.
func (c *Client) SelfUse(ctx context.Context, query UseQuery) (*SelfUse, error) {
	out, _, err := read(ctx, c, SelfUsage, "", query.values())
	return out, err
}
