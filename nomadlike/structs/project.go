package structs

import (
	"reflect"
	"slices"
)

// Project groups people and their jobs, and bounds what they may hold. A
// project without a record has no bounds. Written by administrators.
type Project struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Members may submit jobs, Admins may change what others of the project have,
	// Viewers only look: names of users. A project that lists nobody is open to
	// whoever was given a token for it.
	Members []string `json:"members,omitempty"`
	Admins  []string `json:"admins,omitempty" since:"22"`
	Viewers []string `json:"viewers,omitempty" since:"22"`

	// Granted are who belongs to it by the rules of providers of sign-ins, beside those
	// lists. Set by state.Apply of SignIn alone.
	Granted []Granted `json:"granted,omitempty" since:"28"`

	Weight      float64 `json:"weight,omitempty"` // of fair share; 0 counts as 1
	Quotas      []Quota `json:"quotas,omitempty"`
	UrgentLimit *int    `json:"urgent_limit,omitempty"` // urgent jobs queued or running at a time; nil: no limit

	Defaults    TaskDefaults `json:"defaults,omitzero" since:"16"`
	JobDefaults JobDefaults  `json:"job_defaults,omitzero" since:"24"`
	Ceilings    PoolCeilings `json:"ceilings,omitzero" since:"24"`
	// NoSharing has members do nothing with each other's jobs, whatever their owners allow.
	NoSharing bool `json:"no_sharing,omitempty" since:"31"`

	// DataQuota is how many bytes all versions of named data may have; 0: any number.
	DataQuota int64 `json:"data_quota,omitempty" since:"39"`
	// CodeMax bounds the code that travels with one of its jobs, in bytes; 0: CodeMaxDefault.
	CodeMax int64 `json:"code_max,omitempty" since:"40"`

	// BoundsBy last changed what only administrators of the cluster change: quotas,
	// weight, urgent limit, defaults, ceilings, sharing and the size of code. Set by servers.
	BoundsBy string   `json:"bounds_by,omitempty" since:"24"`
	BoundsAt UnixNano `json:"bounds_at,omitempty" since:"24"`

	// Archived: it takes no new jobs, and lists leave it out unless they are asked.
	// Set by state.Apply of ProjectArchive alone.
	Archived   bool     `json:"archived,omitempty" since:"24"`
	ArchivedBy string   `json:"archived_by,omitempty" since:"24"`
	ArchivedAt UnixNano `json:"archived_at,omitempty" since:"24"`

	CreateIndex uint64 `json:"create_index,omitempty"`
	ModifyIndex uint64 `json:"modify_index,omitempty"`
}

// JobDefaults fill what a job of a project leaves out, before the defaults of its
// pool do; what tasks leave out is filled from TaskDefaults. The zero value fills
// nothing.
type JobDefaults struct {
	Pool          string   `json:"pool,omitempty"` // of jobs that name neither pool nor nodes
	Priority      Priority `json:"priority,omitempty"`
	TimeLimit     Duration `json:"time_limit,omitempty"`
	Image         string   `json:"image,omitempty"`          // of tasks whose driver is docker
	OutputStorage string   `json:"output_storage,omitempty"` // of jobs with an output

	// Notify is of all jobs; whose owner has no such channel is told at the bell.
	Notify *JobNotify `json:"notify,omitempty" since:"37"`
}

// SameBounds reports whether two records of a project differ in nothing but what its
// own administrators may change, and what servers set.
func (p Project) SameBounds(other Project) bool {
	for _, one := range []*Project{&p, &other} {
		*one = Project{Name: one.Name, Weight: one.Weight, Quotas: one.Quotas, UrgentLimit: one.UrgentLimit, Defaults: one.Defaults, JobDefaults: one.JobDefaults, Ceilings: one.Ceilings, NoSharing: one.NoSharing, DataQuota: one.DataQuota, CodeMax: one.CodeMax}
	}
	return reflect.DeepEqual(p, other)
}

// CodeMost is how many bytes of code may travel with a job of the project, also of one
// without a record.
func (p *Project) CodeMost() int64 {
	if p == nil || p.CodeMax == 0 {
		return CodeMaxDefault
	}
	return p.CodeMax
}

// Gone reports whether the project is archived; a record that is not there is not.
func (p *Project) Gone() bool { return p != nil && p.Archived }

// Closed reports whether only those that the record lists act in the project.
func (p *Project) Closed() bool {
	return p != nil && len(p.Members)+len(p.Admins)+len(p.Viewers)+len(p.Granted) > 0
}

// RoleOf is the role of a user in the project, "" for none: the highest of those
// that the record gives them, by administrators or by the rules of a provider.
func (p *Project) RoleOf(user string) string {
	given, granted := p.GivenRole(user), p.GrantedRole(user, "")
	if roleRank(granted) > roleRank(given) {
		return granted
	}
	return given
}

// WithRole is the record with a user in this role only of what administrators give,
// "" for in none. The lists are new where they change.
func (p Project) WithRole(user, role string) Project {
	for _, list := range []struct {
		of    string
		names *[]string
	}{{RoleUser, &p.Members}, {RoleProjectAdmin, &p.Admins}, {RoleViewer, &p.Viewers}} {
		listed := slices.Contains(*list.names, user)
		switch {
		case list.of == role && !listed:
			*list.names = append(slices.Clone(*list.names), user)
		case list.of != role && listed:
			*list.names = slices.DeleteFunc(slices.Clone(*list.names), func(name string) bool { return name == user })
		}
	}
	return p
}

// QuotaCPU is the kind of a quota that counts cores instead of devices.
const QuotaCPU = "cpu"

// Quota bounds what a project holds of one kind. Up to Guaranteed is its own:
// others may use it while it is idle, but preemptible jobs that do so yield.
// Maximum is never passed; what is lent from others fills the room between.
type Quota struct {
	Kind       string `json:"kind"`            // vendor/type of devices, or "cpu"
	Model      string `json:"model,omitempty"` // as in a device request; "": every model
	Guaranteed int    `json:"guaranteed,omitempty"`
	Maximum    *int   `json:"maximum,omitempty"` // nil: no bound
}

// QuotaUsage is how much of each kind counts in quotas: devices under
// DeviceKey(kind, model), thousandths of cores under QuotaCPU.
type QuotaUsage map[string]int64

// DeviceKey is a kind of device with its full model in a QuotaUsage.
func DeviceKey(kind, model string) string { return kind + "/" + model }

// ProjectUsage is what the gangs of a project use and how many of its urgent
// jobs wait or run, kept by state.Apply. Ledger is what they used over time.
type ProjectUsage struct {
	Project    string     `json:"project"`
	QuotaUsage QuotaUsage `json:"held,omitempty"`
	Urgent     int        `json:"urgent,omitempty"`  // live jobs of tier urgent
	Ledgers    []Ledger   `json:"ledgers,omitempty"` // by pool
	// CodeSince is the place in the log at which a project of the name was last deleted: of
	// the code that was sent before it has nothing; 0: never.
	CodeSince   uint64 `json:"code_since,omitempty" since:"40"`
	ModifyIndex uint64 `json:"modify_index"`
}

// Nothing reports whether the project holds nothing and never used anything, as far as
// one of its name is known from before.
func (u *ProjectUsage) Nothing() bool {
	return u == nil || u.CodeSince > 0 && len(u.QuotaUsage)+len(u.Ledgers)+u.Urgent == 0
}

// Ledger books what a project used of one pool, for fair share: whole
// milliseconds in buckets of one hour of the proposer's clock, so that every
// server computes the same sums and decay needs no writes. Time of running
// allocations is booked when they end; until then it is counted from their
// start.
type Ledger struct {
	Pool    string         `json:"pool"`
	Buckets []LedgerBucket `json:"buckets,omitempty"` // by hour, oldest first, bounded
}

// LedgerBucket is the use of one hour.
type LedgerBucket struct {
	Hour       int64 `json:"hour"`      // hours since 1970
	DeviceMs   int64 `json:"device_ms"` // device-milliseconds
	MilliCPUMs int64 `json:"cpu_ms"`    // thousandths of cores times milliseconds
}
