package structs

// AllocDesired is what the server wants of an allocation.
type AllocDesired string

// What the server may want.
const (
	DesiredRun  AllocDesired = "run"
	DesiredStop AllocDesired = "stop"
)

// AllocStatus is what the client last reported of an allocation, or what the
// server concluded when the client could not report any more.
//
//	pending ──► preparing ──► prepared ──► running ──► complete
//	   │            │             │           │
//	   │            └─────────────┴─────┬─────┴──────► failed
//	   │                                └────────────► killed   (asked to stop)
//	   └─────────────────────────────────────────────► lost     (the server's word)
//
// States only move forward; complete, failed, killed and lost are terminal.
type AllocStatus string

// The statuses of an allocation.
const (
	AllocPending   AllocStatus = "pending"
	AllocPreparing AllocStatus = "preparing"
	AllocPrepared  AllocStatus = "prepared"
	AllocRunning   AllocStatus = "running"
	AllocComplete  AllocStatus = "complete"
	AllocFailed    AllocStatus = "failed"
	AllocKilled    AllocStatus = "killed"
	AllocLost      AllocStatus = "lost"
)

// Terminal reports whether no process of the allocation runs any more as far
// as its reporter knows.
func (s AllocStatus) Terminal() bool {
	switch s {
	case AllocComplete, AllocFailed, AllocKilled, AllocLost:
		return true
	}
	return false
}

// order returns the position of a status on its way.
func (s AllocStatus) order() int {
	switch s {
	case AllocPending:
		return 0
	case AllocPreparing:
		return 1
	case AllocPrepared:
		return 2
	case AllocRunning:
		return 3
	case AllocComplete, AllocFailed, AllocKilled, AllocLost:
		return 4
	}
	return -1
}

// CanBecome reports whether an allocation may go from s to next: forward only,
// and a terminal status is absorbing.
func (s AllocStatus) CanBecome(next AllocStatus) bool {
	return !s.Terminal() && s.order() >= 0 && next.order() > s.order()
}

// Allocation is one node's share of one attempt: rank Rank of the gang.
//
// Writers: placement fields and Desired by the server (state.Apply of a plan
// or of an ending attempt); Status to FinishedAt by the node's client through
// status reports, or "lost" by the server when the node is lost.
type Allocation struct {
	ID         string           `json:"id"`
	JobID      string           `json:"job_id"`
	JobName    string           `json:"job_name"`
	Project    string           `json:"project"`
	Subjob     int              `json:"subjob"`
	Attempt    uint64           `json:"attempt"`
	Rank       int              `json:"rank"`
	Name       string           `json:"name"` // rank name, its task's host name
	NodeID     string           `json:"node_id"`
	NodeName   string           `json:"node_name"`
	Spec       Resources        `json:"spec"`
	Ports      map[string]int   `json:"ports,omitempty"`
	Devices    []string         `json:"devices,omitempty"` // device ids
	Resume     *SavedCheckpoint `json:"resume,omitempty"`  // the newest checkpoint when it was placed
	QuotaUsage QuotaUsage       `json:"held,omitempty"`    // what it counts in its project's quota, fixed when placed
	Pool       string           `json:"pool,omitempty"`    // of its node when placed
	PlacedAt   UnixNano         `json:"placed_at,omitempty"`

	Desired       AllocDesired `json:"desired"`
	DesiredReason *Reason      `json:"desired_reason,omitempty"`
	Stop          *StopOrder   `json:"stop,omitempty"` // how to stop it; nil: as its job says
	Released      bool         `json:"released"`       // the barrier of its attempt is open
	Control       *Control     `json:"control,omitempty"`
	Warning       *Warning     `json:"warning,omitempty" since:"16"` // of its time limit

	Status      AllocStatus `json:"status"`
	Step        string      `json:"step,omitempty"`     // precheck | image | data | files | hooks | barrier while preparing
	Progress    int         `json:"progress,omitempty"` // of the step, in percent; 0 when that is not known
	ExitCode    int         `json:"exit_code"`
	Signal      int         `json:"signal,omitempty"`
	OOMKilled   bool        `json:"oom_killed,omitempty"`
	Cause       *Reason     `json:"cause,omitempty"`  // why it failed or was killed
	Infra       bool        `json:"infra,omitempty"`  // the cause lies with the node, not with the user
	Obeyed      uint64      `json:"obeyed,omitempty"` // Seq of the last Control that its node answered
	StartedAt   UnixNano    `json:"started_at,omitempty"`
	FinishedAt  UnixNano    `json:"finished_at,omitempty"`
	LeaseOver   bool        `json:"lease_over,omitempty"`  // lost: its node has surely ended what was strict
	NoteSeq     uint64      `json:"note_seq,omitempty"`    // of its last AllocNote
	Quarantined bool        `json:"quarantined,omitempty"` // lost: holds its devices until the node returns with an inventory

	Hold *Hold             `json:"hold,omitempty"` // failed: still enterable, and holding what it has
	Seen map[string]string `json:"seen,omitempty"` // facts of its environment that its gang should have in common; never changed in place

	TrainingProgress *Progress `json:"pace,omitempty"` // running: it has gone silent; nil: it is heard, or nobody watches
	// IdleSince, of one that runs: none of its devices has had anything to do since,
	// for long enough to be told; 0: one has, or they are not measured.
	IdleSince UnixNano `json:"idle_since,omitempty" since:"16"`

	CreateIndex uint64 `json:"create_index"`
	ModifyIndex uint64 `json:"modify_index"`
}

// OccupiesNode reports whether the allocation counts against its node.
func (a *Allocation) OccupiesNode() bool {
	return !a.Status.Terminal() || a.Quarantined || a.Hold != nil
}

// CountsInQuota reports whether the allocation counts against its project: what
// is lost with its node does not, though its devices stay in quarantine.
func (a *Allocation) CountsInQuota() bool {
	return !a.Status.Terminal() || a.Hold != nil
}

// Enterable reports whether commands may be run in the allocation's task.
func (a *Allocation) Enterable() bool {
	return a.Status == AllocRunning || a.Hold != nil && !a.Hold.Over
}

// Hold keeps a failed allocation enterable, for people to look what went wrong.
// It is made by state.Apply when a rank of a job with a debug block fails and is
// not restarted; the node ends it, after For or when the servers say so.
type Hold struct {
	Since UnixNano `json:"since"`
	For   Duration `json:"for"`             // counted by the node, from the end of the command
	Until UnixNano `json:"until"`           // Since plus For, for people
	Over  bool     `json:"over,omitempty"`  // somebody has ended it: the node cleans up
	Freed bool     `json:"freed,omitempty"` // somebody has released its devices: the node lets go of them
}

// Warning has a running command sent one signal; a warning with another Seq is
// another one.
type Warning struct {
	Seq    uint64 `json:"seq"`
	Signal string `json:"signal"`
}

// AllocReport is what a client says of one of its allocations. A report with
// an attempt that is not current, or from a node that does not own the
// allocation, is refused.
type AllocReport struct {
	AllocID    string      `json:"alloc_id"`
	Attempt    uint64      `json:"attempt"`
	Status     AllocStatus `json:"status"`
	Step       string      `json:"step,omitempty"`
	Progress   int         `json:"progress,omitempty"` // of the step, in percent
	ExitCode   int         `json:"exit_code,omitempty"`
	Signal     int         `json:"signal,omitempty"`
	OOMKilled  bool        `json:"oom_killed,omitempty"`
	Cause      *Reason     `json:"cause,omitempty"`
	Infra      bool        `json:"infra,omitempty"`
	StartedAt  UnixNano    `json:"started_at,omitempty"`
	FinishedAt UnixNano    `json:"finished_at,omitempty"`
	// Control answers the newest Control that the node has tried to execute.
	Control *ControlAnswer `json:"control,omitempty"`
}

// Member is one rank of an attempt as its peers need to know it.
type Member struct {
	Rank     int    `json:"rank"`
	Name     string `json:"name"` // rank name
	AllocID  string `json:"alloc_id"`
	NodeID   string `json:"node_id"`
	NodeName string `json:"node_name"`
	Addr     string `json:"addr"`     // IP of the node, for data between ranks
	RPCAddr  string `json:"rpc_addr"` // host:port of the node's agent
	// Addrs are all addresses of the node, Addr among them. Empty: they are not known.
	Addrs   []string       `json:"addrs,omitempty" since:"16"`
	Ports   map[string]int `json:"ports,omitempty"`
	Devices []string       `json:"devices,omitempty"`
	Cards   []Card         `json:"cards,omitempty"` // of Devices, for modes that need a table of them
}

// Card is an NPU as rank tables name it.
type Card struct {
	ID       string `json:"id"`
	Index    int    `json:"index"`               // the vendor's number on its node
	IP       string `json:"ip,omitempty"`        // of its own network port
	SuperID  string `json:"super_id,omitempty"`  // within a super pod
	SuperPod string `json:"super_pod,omitempty"` // id of the super pod
}

// Assignment is everything a client needs to run one allocation: pushed down
// the node's stream whenever any part of it changes.
type Assignment struct {
	Alloc   *Allocation `json:"alloc"`
	Job     *Job        `json:"job"`
	Members []Member    `json:"members"` // by rank
	// RunAs is what the record of the node's pool says of whom the task runs as;
	// nil when it says nothing.
	RunAs *RunAs `json:"run_as,omitempty"`
}

// RanksReachEachOther reports whether ranks of the assignment run commands in each
// other's tasks, through their agents.
func (a *Assignment) RanksReachEachOther() bool {
	return a.Job.FirstRankLeads() && len(a.Members) > 1
}
