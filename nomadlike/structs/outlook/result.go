// Package outlook holds the answers of package forecast as the API shows them:
// when something starts, what would help, the next day, and what a change does.
//
// Flow: forecast fills them, agent writes them as JSON, api reads them back,
// command prints them.
//
// Limits: data only; it knows nouns and nothing above them.
package outlook

import (
	"nomadlike/nomadlike/structs"
)

// Verdict is the short answer to "when does it start?".
type Verdict string

// The verdicts.
const (
	VerdictNow     Verdict = "now"     // the next pass of the scheduler places it
	VerdictLater   Verdict = "later"   // about when is said
	VerdictNever   Verdict = "never"   // not in this cluster under these rules, whoever ends; the reason says which rule
	VerdictUnknown Verdict = "unknown" // it waits for something of which nobody knows when it comes
)

// When is a start as it is forecast. With VerdictNever and VerdictUnknown all
// times are 0, which JSON writes as null. With others they are finite, not
// before the instant of the forecast, and P50 <= P90.
type When struct {
	Verdict Verdict          `json:"verdict"`
	Point   structs.UnixNano `json:"point"`            // the one best answer
	P50     structs.UnixNano `json:"p50"`              // as likely before as after
	P90     structs.UnixNano `json:"p90"`              // 90 % likely by then
	Beyond  Beyond           `json:"beyond,omitempty"` // which of the times are only known to be later than they say
}

// Beyond reports which times of a When are lower bounds, because the future was
// not followed further.
type Beyond string

// What may be beyond.
const (
	BeyondNone Beyond = ""    // nothing: both times are estimates
	BeyondP90  Beyond = "p90" // P90 is later than it says
	BeyondP50  Beyond = "p50" // P50, Point and P90 are later than they say
)

// Start is the forecast for one queued subjob.
type Start struct {
	JobID    string           `json:"job_id"`
	JobName  string           `json:"job_name"`
	Project  string           `json:"project"`
	User     string           `json:"user,omitempty"`
	Subjob   int              `json:"subjob"`
	Attempt  uint64           `json:"attempt"`  // the one whose start is forecast
	Pool     string           `json:"pool"`     // in whose queue it stands
	Position int              `json:"position"` // there, from 1, in the order in which it is served
	Priority structs.Priority `json:"priority"`
	Nodes    int              `json:"nodes"`
	Devices  int              `json:"devices,omitempty"` // of the first alternative, on all nodes
	When
	// Wait is the one reason that blocks it, with the jobs that hold what it waits
	// for; nil when it starts now.
	Wait *structs.WaitReason `json:"wait,omitempty"`
	// Features is what a calibration learns from, to be kept with the forecast.
	Features []float64 `json:"-"`
}

// Forecast is the record of the answer that the state keeps.
func (s *Start) Forecast(now structs.UnixNano) structs.Forecast {
	return structs.Forecast{
		JobID: s.JobID, Subjob: s.Subjob, Attempt: s.Attempt, JobName: s.JobName, Project: s.Project, Pool: s.Pool,
		GivenAt: now, Position: s.Position, Point: s.Point, P50: s.P50, P90: s.P90, Features: s.Features,
	}
}

// Answer is the forecast for a job that is not submitted yet; of a batch, for
// its first subjob.
type Answer struct {
	When
	Pool     string `json:"pool"`           // in whose queue it would stand
	Position int    `json:"position"`       // there, from 1
	Spec     int    `json:"spec"`           // the alternative under which it starts, an index of the job's resources; -1: none
	Subjobs  int    `json:"subjobs"`        // of a batch; 1 otherwise
	Room     int    `json:"room,omitempty"` // of these, would start now
	// Wait is why it does not start now: with VerdictNever the rule that keeps it
	// out for ever, otherwise the one reason, with the jobs that hold what it
	// waits for.
	Wait *structs.WaitReason `json:"wait,omitempty"`
	// Specs is one row for each alternative of the job, as if it were the only
	// one. The verdict is now when that of any row is.
	Specs []SpecAnswer `json:"specs"`
	// Victims are the gangs that would be ended at once for the job. There may be
	// more later if it has to wait.
	Victims []Victim `json:"victims,omitempty"`
	// Runtime is how long it will run, as far as that is known.
	Runtime *Span `json:"runtime,omitempty"`
	// Helps are changes of the job that would start it sooner, the most useful
	// first, at most HelpsMax.
	Helps []Help `json:"helps,omitempty"`
	// Features is what a calibration learns from.
	Features []float64 `json:"-"`
}

// Span is a length of time as it is forecast.
type Span struct {
	P50 structs.Duration `json:"p50"`
	P90 structs.Duration `json:"p90"`
}

// SpecAnswer is the forecast for one alternative of a job.
type SpecAnswer struct {
	Spec  int    `json:"spec"`
	Label string `json:"label,omitempty"`
	When
	Nodes int                 `json:"nodes,omitempty"` // that it would get now, fewer than it asks for when elastic; 0: it does not start now
	Wait  *structs.WaitReason `json:"wait,omitempty"`
}

// Victim is a gang that would be ended for another job.
type Victim struct {
	JobID        string           `json:"job_id"`
	JobName      string           `json:"job_name"`
	Project      string           `json:"project"`
	User         string           `json:"user,omitempty"`
	Subjob       int              `json:"subjob"`
	Attempt      uint64           `json:"attempt"`
	Priority     structs.Priority `json:"priority"`
	Preemptible  bool             `json:"preemptible,omitempty"`
	Nodes        []string         `json:"nodes"` // ids
	Since        structs.UnixNano `json:"since"` // when every rank ran, 0: not yet
	CheckpointAt structs.UnixNano `json:"checkpoint_at,omitempty"`
	Lost         structs.Duration `json:"lost"`  // work since its newest checkpoint, or its start
	Grace        structs.Duration `json:"grace"` // how long it may take to stop
}

// HelpsMax bounds the changes that are proposed for one job.
const HelpsMax = 6

// HelpKind is what a Help changes.
type HelpKind string

// The kinds of help.
const (
	HelpNodes         HelpKind = "nodes"          // fewer nodes: Nodes
	HelpElastic       HelpKind = "elastic"        // may begin on fewer nodes: MinNodes
	HelpSpec          HelpKind = "spec"           // another model of device: Model
	HelpPool          HelpKind = "pool"           // another pool: Pool
	HelpTimeLimit     HelpKind = "time_limit"     // a shorter limit, so that it fits before a reserved start: TimeLimit
	HelpPriority      HelpKind = "priority"       // another tier: Priority
	HelpPreemptible   HelpKind = "preemptible"    // holders that are preemptible would yield to a higher tier: Priority and Victims
	HelpSpread        HelpKind = "spread"         // more nodes with fewer devices on each: Nodes and Devices
	HelpDevices       HelpKind = "devices"        // fewer devices on a node, as many as the largest has: Devices
	HelpDriverVersion HelpKind = "driver_version" // any version of the driver
	HelpAnyNode       HelpKind = "any_node"       // other nodes than those that it names
	HelpNoRDMA        HelpKind = "no_rdma"        // nodes without RDMA
	HelpResources     HelpKind = "resources"      // fewer cores or less memory on a node: CPU and Memory
	HelpTwo           HelpKind = "two"            // two at once of driver_version, any_node, no_rdma and any model
)

// Help is a change of a job that would start it sooner. Its reason's id is one
// of the catalogue, its parameters fill it.
type Help struct {
	structs.Reason
	Kind      HelpKind         `json:"kind"`
	Nodes     int              `json:"nodes,omitempty"`
	Devices   int              `json:"devices,omitempty"` // on each node
	MinNodes  int              `json:"min_nodes,omitempty"`
	CPU       float64          `json:"cpu,omitempty"`    // cores on each node
	Memory    int64            `json:"memory,omitempty"` // bytes on each node
	Pool      string           `json:"pool,omitempty"`
	Model     string           `json:"model,omitempty"`
	TimeLimit structs.Duration `json:"time_limit,omitempty"`
	Priority  structs.Priority `json:"priority,omitempty"`
	Victims   []Victim         `json:"victims,omitempty"`
	When
	Sooner structs.Duration `json:"sooner"` // by how much its P50 is earlier; 0 when there was none before
}

// Bars of a timeline.
const (
	BarRunning  = "running"  // holds the node
	BarReserved = "reserved" // a blocked gang keeps the node from From on
	BarForecast = "forecast" // is expected to hold it
)

// Timeline is what happens on the nodes until a horizon. Forecast bars are
// those of the one future that is nearest to what all futures say, so that
// bars of a node do not contradict each other.
type Timeline struct {
	From structs.UnixNano `json:"from"`
	To   structs.UnixNano `json:"to"`
	Rows []Row            `json:"rows"`           // by node name
	More int              `json:"more,omitempty"` // nodes that were left out
}

// Row is one node of a timeline.
type Row struct {
	NodeID  string `json:"node_id"`
	Node    string `json:"node"`
	Pool    string `json:"pool"`
	Devices int    `json:"devices,omitempty"`
	Away    bool   `json:"away,omitempty"` // takes no new work now
	Bars    []Bar  `json:"bars"`           // by From
	More    int    `json:"more,omitempty"` // bars that were left out, the latest
}

// Bar is one job on one node. From and To lie in the timeline's future, and To
// may be later than the timeline's end. P50 and P90 are when the job leaves
// the node over all futures; for a reserved start, when it begins. Times that
// nobody knows are 0.
type Bar struct {
	Kind    string           `json:"kind"`
	JobID   string           `json:"job_id"`
	JobName string           `json:"job_name"`
	Project string           `json:"project"`
	Subjob  int              `json:"subjob"`
	Devices int              `json:"devices,omitempty"`
	From    structs.UnixNano `json:"from"`
	To      structs.UnixNano `json:"to"`
	P50     structs.UnixNano `json:"p50"`
	P90     structs.UnixNano `json:"p90"`
}

// ChangeKind is what a Change does.
type ChangeKind string

// The kinds of changes.
const (
	ChangeDrain    ChangeKind = "drain"    // Node: what runs there is queued again
	ChangeAddNodes ChangeKind = "add"      // Count nodes like Node
	ChangeQuota    ChangeKind = "quota"    // Project gets Quotas instead of those that it has
	ChangePriority ChangeKind = "priority" // JobID gets Priority
	ChangeMove     ChangeKind = "move"     // JobID stands before the job Before; last with Last, first with neither
	ChangeSubmit   ChangeKind = "submit"   // Job, or one like JobID, is queued Count times; once with 0
	ChangeStop     ChangeKind = "stop"     // JobID, or of a batch Subjob when it is not nil, is stopped at once
)

// Change is one change of a what-if.
type Change struct {
	Kind     ChangeKind       `json:"kind"`
	Node     string           `json:"node,omitempty"` // name or id
	Count    int              `json:"count,omitempty"`
	Project  string           `json:"project,omitempty"`
	Quotas   []structs.Quota  `json:"quotas,omitempty"`
	JobID    string           `json:"job_id,omitempty"`
	Subjob   *int             `json:"subjob,omitempty"`
	Priority structs.Priority `json:"priority,omitempty"`
	Before   string           `json:"before,omitempty"`
	Last     bool             `json:"last,omitempty"`
	Job      *structs.Job     `json:"job,omitempty"`
}

// Bounds of what-if.
const (
	ChangesMax  = 16  // changes at a time
	AddNodesMax = 256 // nodes of one change
	ShiftsMax   = 200 // jobs that are told about
	SubjobsMax  = 512 // subjobs of a batch in a what-if, and jobs of one change
)

// Effect is what a change does to the queue.
type Effect struct {
	Shifts  []Shift `json:"shifts"`         // the largest differences first
	More    int     `json:"more,omitempty"` // that were left out
	Earlier int     `json:"earlier"`        // subjobs whose P50 gets earlier
	Later   int     `json:"later"`          // and later
	Same    int     `json:"same"`
}

// Shift is what a change does to one queued subjob.
type Shift struct {
	JobID   string           `json:"job_id"`
	JobName string           `json:"job_name"`
	Project string           `json:"project"`
	Subjob  int              `json:"subjob"`
	Before  *When            `json:"before,omitempty"` // nil: it does not wait without the change
	After   *When            `json:"after,omitempty"`  // nil: it does not wait after it
	By      structs.Duration `json:"by"`               // P50 after less P50 before; 0 when either is not known
}

// Load is how full pools have been for some hours, and how full they are expected
// to be for some more. Loads are those of the one future that is nearest to what
// all futures say, as in a Timeline: jobs end and begin there at about their P50.
type Load struct {
	At    structs.UnixNano   `json:"at"`    // when somebody looked
	Times []structs.UnixNano `json:"times"` // the instants that are counted
	Now   int                `json:"now"`   // place of At among them: what stands behind it is foreseen
	All   PoolLoad           `json:"all"`   // of all pools with cards; of all pools, when none has any
	Pools []PoolLoad         `json:"pools"` // by name
}

// PoolLoad is how many cards of a pool there are, and for what, at each of the
// times of a Load. A card counts once; those that are left of Total are free.
type PoolLoad struct {
	Pool        string `json:"pool"`                   // "": all
	CountsNodes bool   `json:"counts_nodes,omitempty"` // it has no cards: nodes are counted
	Total       []int  `json:"total"`
	Used        []int  `json:"used"`     // by jobs; behind now, by those that run now
	Held        []int  `json:"held"`     // by ranks that have failed and are held for people to look at
	Foreseen    []int  `json:"foreseen"` // by jobs that wait now, from the start that is forecast
	Away        []int  `json:"away"`     // not to be had: of nodes that are away or take no work, or not well
	Reserved    []int  `json:"reserved"` // kept free for jobs that wait
}

// Startable is how many jobs would start at once, of those that ask for cards of
// one model on one node and for nothing else beyond its defaults: how many with
// whole nodes, or with half nodes, or with single cards.
type Startable struct {
	Kind   string `json:"kind"`
	Model  string `json:"model"`
	Node   int    `json:"node"`   // cards of a whole node: what most nodes of the model have
	Free   int    `json:"free"`   // cards that are well and held by nobody, also of nodes that take no work
	Most   int    `json:"most"`   // cards on one node that one job would get
	Whole  int    `json:"whole"`  // jobs with Node cards
	Half   int    `json:"half"`   // jobs with half as many, where that is more than one
	Single int    `json:"single"` // jobs with one card
	// More says that more than SubjobsMax of a kind would start.
	More bool `json:"more,omitempty"`
}
