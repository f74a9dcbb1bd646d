package structs

// CommandKind names an entry of the replicated log. Kinds are append-only;
// an unknown kind stops the server that meets it, it is never skipped.
type CommandKind uint16

// The entries of the replicated log. Comments name who proposes them.
const (
	CommandClusterInit      CommandKind = 1  // first leader
	CommandJobSubmit        CommandKind = 2  // admission
	CommandJobStop          CommandKind = 3  // admission
	CommandJobDelete        CommandKind = 4  // admission
	CommandPlan             CommandKind = 5  // queue loop
	CommandAllocReports     CommandKind = 6  // node sessions, batched
	CommandNodeRegister     CommandKind = 7  // node session
	CommandNodeStatus       CommandKind = 8  // liveness
	CommandNodeEligibility  CommandKind = 9  // admission
	CommandTokenPut         CommandKind = 10 // admission
	CommandTokenDelete      CommandKind = 11 // admission
	CommandTokenBootstrap   CommandKind = 12 // admission, once
	CommandJoinTokenPut     CommandKind = 13 // admission
	CommandJoinTokenConsume CommandKind = 14 // join door
	CommandJoinTokenDelete  CommandKind = 15 // admission
	CommandJobLimits        CommandKind = 16 // leader's sweep: time limits that passed
	CommandWaitReasons      CommandKind = 17 // queue loop: explanations that changed
	CommandJobPriority      CommandKind = 18 // admission
	CommandPoolPut          CommandKind = 19 // admission
	CommandPoolDelete       CommandKind = 20 // admission
	CommandProjectPut       CommandKind = 21 // admission
	CommandProjectDelete    CommandKind = 22 // admission
	CommandQueueMove        CommandKind = 23 // admission
	CommandJobTimeLimit     CommandKind = 24 // admission
	CommandForecasts        CommandKind = 25 // forecast loop
	CommandDeviceTreated    CommandKind = 26 // admission: what an operator has done to a device
	CommandJobControl       CommandKind = 27 // admission
	CommandJobFinish        CommandKind = 28 // admission
	CommandLeaseOver        CommandKind = 29 // leader's sweep: leases of lost nodes that have surely ended
	CommandGuarded          CommandKind = 30 // admission: one of the kinds above, with what the decision to ask for it rested on
	CommandJobsForget       CommandKind = 31 // leader's sweep: ended jobs that are not kept any longer
	CommandServerRemoval    CommandKind = 32 // admission: servers that must not come back, or may again
	CommandNodeRemove       CommandKind = 33 // admission, and the leader's sweep for nodes that are down for long
	CommandServerReport     CommandKind = 34 // leader's sweep: servers that are unhealthy, or healthy again
	CommandKeyRotate        CommandKind = 35 // admission begins it, the leader takes it further
	CommandCARotate         CommandKind = 36 // the same
	CommandJobAnnotate      CommandKind = 37 // admission
	CommandMaintenancePut   CommandKind = 38 // admission
	CommandMaintenanceStep  CommandKind = 39 // admission removes windows, the leader's sweep begins and ends them
	CommandJobConsent       CommandKind = 40 // admission
	CommandUserPut          CommandKind = 41 // admission
	CommandUserState        CommandKind = 42 // admission
	CommandUserDelete       CommandKind = 43 // admission
	CommandProjectMember    CommandKind = 44 // admission
	CommandProjectArchive   CommandKind = 45 // admission
	CommandPasswordSet      CommandKind = 46 // admission, and who signs in for the first time
	CommandTokenExtend      CommandKind = 47 // admission: a token by signing in that is in use
	CommandSecretSet        CommandKind = 48 // admission
	CommandSecretDelete     CommandKind = 49 // admission
	CommandSecretKeyAdd     CommandKind = 50 // admission
	CommandSecretsReseal    CommandKind = 51 // admission
	CommandSignIn           CommandKind = 52 // admission: somebody whom a provider vouches for
	CommandUserIdentity     CommandKind = 53 // admission
	CommandNotifySet        CommandKind = 54 // admission
	CommandNotifyStep       CommandKind = 55 // the leader's decisions about notifications, and what became of them
	CommandSettingsPut      CommandKind = 56 // admission

	CommandServiceAccountPut    CommandKind = 57 // admission
	CommandServiceAccountState  CommandKind = 58 // admission
	CommandServiceAccountDelete CommandKind = 59 // admission
	CommandServiceAccountRevoke CommandKind = 60 // admission
	CommandTokensUsed           CommandKind = 61 // every server's door, about tokens of service accounts
	CommandCodePut              CommandKind = 62 // admission
	CommandCodeForget           CommandKind = 63 // leader's sweep: code that no job names
	CommandDataPut              CommandKind = 64 // admission
	CommandDataBegin            CommandKind = 65 // admission: an upload, or a directory that is registered
	CommandDataCommit           CommandKind = 66 // admission
	CommandDataDrop             CommandKind = 67 // admission
	CommandDataExpire           CommandKind = 68 // leader's sweep: uploads that nobody finished
	CommandDataTag              CommandKind = 69 // admission
	CommandDataMark             CommandKind = 70 // admission
	CommandImagePut             CommandKind = 71 // admission
	CommandImageTold            CommandKind = 72 // admission: what somebody has done with an image
	CommandTemplatePut          CommandKind = 73 // admission
	CommandTemplateDelete       CommandKind = 74 // admission
	CommandJobParallel          CommandKind = 75 // admission
)

// Command is one entry of the replicated log. Time, ids and every random
// choice are fixed by the proposer; Apply reads no clock. Body is the CBOR of
// the kind's struct below.
type Command struct {
	Kind CommandKind `json:"k"`
	Now  UnixNano    `json:"t"`            // the proposer's clock, for display and durations only
	By   string      `json:"by,omitempty"` // who asked: user name or agent id
	Body []byte      `json:"b"`
	// Protocol is wire.ProtocolVersion of the server that proposes it; 0 before version 9.
	Protocol int `json:"v,omitempty"`
}

// ClusterInit makes the cluster's one record; repeated, it is refused.
type ClusterInit struct {
	Cluster    Cluster     `json:"cluster"`
	JoinTokens []JoinToken `json:"join_tokens,omitempty"` // made before the log existed
}

// JobSubmit queues an admitted job.
type JobSubmit struct {
	Job *Job `json:"job"`
	// BytesMax is the proposer's setting: how large all jobs that have not ended
	// may be together; see JobBytesOf. 0: there is none.
	BytesMax int64 `json:"bytes_max,omitempty" since:"15"`
	// Numbered: the job gets the next number of the cluster. Every server that may
	// become leader knows how to count.
	Numbered bool `json:"numbered,omitempty" since:"52"`
}

// JobBytesOf is how much of the bytes that all live jobs may have the jobs of one
// user, and of one project, may have.
func JobBytesOf(all int64) (user, project int64) { return all / 4, all / 2 }

// JobStop ends a job, or one subjob of a batch, by a person's wish. With
// Release it touches nothing that runs, only the debug holds of what failed.
type JobStop struct {
	JobID   string `json:"job_id"`
	Subjob  *int   `json:"subjob,omitempty"`  // nil: all
	Reason  string `json:"reason,omitempty"`  // the person's words
	Release string `json:"release,omitempty"` // "" | ReleaseHold | ReleaseDevices
}

// What JobStop.Release may say.
const (
	ReleaseHold    = "hold"    // debug holds end
	ReleaseDevices = "devices" // debug holds go on without their devices
)

// JobControl pauses, continues or throttles what runs of a job, every rank of
// a gang together. Continue and Paused exclude each other; without either the
// throttle becomes what Busy and Idle say.
type JobControl struct {
	JobID    string   `json:"job_id"`
	Subjob   *int     `json:"subjob,omitempty"` // nil: all
	Paused   bool     `json:"paused,omitempty"`
	Continue bool     `json:"continue,omitempty"`
	Busy     Duration `json:"busy,omitempty"`
	Idle     Duration `json:"idle,omitempty"`   // 0: no throttle
	Reason   string   `json:"reason,omitempty"` // the person's words
}

// JobFinish ends what runs of a job with success, by a person's wish.
type JobFinish struct {
	JobID  string `json:"job_id"`
	Subjob *int   `json:"subjob,omitempty"` // nil: all
	Reason string `json:"reason,omitempty"` // the person's words
}

// LeaseOver says that the lease of a lost node has surely ended: what was strict
// there has been killed by the node itself. RegisterIndex is that of the
// registration after which it was lost; another is left alone.
type LeaseOver struct {
	NodeID        string `json:"node_id"`
	RegisterIndex uint64 `json:"register_index"`
}

// JobDelete removes an ended job and its history.
type JobDelete struct {
	JobID string `json:"job_id"`
}

// JobsForget removes ended jobs that the settings keep no longer, and tells of
// all of them in one event.
type JobsForget struct {
	JobIDs []string `json:"job_ids"` // those that ended first before the others
	Kept   int      `json:"kept"`    // the setting: ended jobs that are kept; 0: any number
	For    Duration `json:"for"`     // the setting: how long they are kept; 0: for ever
	// ByProject: the event names the projects whose jobs were removed.
	ByProject bool `json:"by_project,omitempty" since:"15"`
}

// JobPriority changes the tier of a queued job.
type JobPriority struct {
	JobID    string   `json:"job_id"`
	Priority Priority `json:"priority"`
}

// Plan is what the scheduler decided at SnapshotIndex. Apply re-checks each
// gang against the latest state: a gang is accepted whole or not at all.
type Plan struct {
	SnapshotIndex uint64       `json:"snapshot_index"`
	Gangs         []GangPlan   `json:"gangs"`
	Waits         []WaitUpdate `json:"waits,omitempty"`
}

// GangPlan places every node of one new attempt.
type GangPlan struct {
	JobID      string          `json:"job_id"`
	Subjob     int             `json:"subjob"`
	Attempt    uint64          `json:"attempt"`    // the number the attempt must get
	Spec       int             `json:"spec"`       // index into Job.Resources
	Placements []RankPlacement `json:"placements"` // by rank
	// Victims are attempts that must end first, or, for a VIP job that waits,
	// job's	// Nominate is set with none: the gang then becomes a Nomination, not an attempt.
	// The job's	// job's own running attempt as the only victim is a change of size.
	Victims  []AttemptKey `json:"victims,omitempty"`
	Nominate bool         `json:"claim,omitempty"`
}

// RankPlacement assigns one rank its node and what it uses there.
type RankPlacement struct {
	NodeID  string         `json:"node_id"`
	Ports   map[string]int `json:"ports,omitempty"`
	Devices []string       `json:"devices,omitempty"`
}

// WaitUpdate replaces the explanation of one queued subjob.
type WaitUpdate struct {
	JobID  string      `json:"job_id"`
	Subjob int         `json:"subjob"`
	Wait   *WaitReason `json:"wait"` // nil: as it was
	// NoPassingAt becomes the subjob's, unless it has one already; 0: none.
	NoPassingAt UnixNano `json:"no_passing_at,omitempty"`
}

// PlanResult reports which gangs of a plan were accepted; Refused is keyed by
// the gang's position in the plan.
type PlanResult struct {
	Accepted int            `json:"accepted"`
	Refused  map[int]Reason `json:"refused,omitempty"`
}

// AllocReports is a batch of what clients say.
// Notes are taken before the reports: what a task told of itself counts though
// it has ended since.
type AllocReports struct {
	NodeID  string        `json:"node_id"`
	Reports []AllocReport `json:"reports"`
	Notes   []AllocNote   `json:"notes,omitempty"`
}

// NodeRegister makes a node known, or known again. Inventory lists the
// allocations whose processes exist on the node now: a lost node's
// quarantine ends with it.
type NodeRegister struct {
	Node      Node            `json:"node"`
	Inventory []InventoryItem `json:"inventory"`
	Unique    bool            `json:"unique,omitempty" since:"12"` // its name is its own: set by servers that check it
}

// InventoryItem is one allocation that still has processes on a node.
type InventoryItem struct {
	AllocID string `json:"alloc_id"`
	Attempt uint64 `json:"attempt"`
}

// NodeStatusChange records what the leader decided about nodes' lives.
type NodeStatusChange struct {
	NodeID      string     `json:"node_id"`
	Incarnation uint64     `json:"incarnation"` // of the node when it was judged; another is left alone
	Status      NodeStatus `json:"status"`
	Reason      *Reason    `json:"reason,omitempty"`
}

// NodeEligibilityChange records an operator's word on a node.
type NodeEligibilityChange struct {
	NodeID        string      `json:"node_id"`
	Eligibility   Eligibility `json:"eligibility"`
	DrainDeadline UnixNano    `json:"drain_deadline,omitempty"`
}

// TokenPut stores a token.
type TokenPut struct {
	Token Token `json:"token"`
}

// TokenDelete revokes a token.
type TokenDelete struct {
	ID string `json:"id"`
}

// TokenBootstrap makes the first management token, once, against the setup
// secret whose hash the cluster record holds.
type TokenBootstrap struct {
	SetupHash []byte `json:"setup_hash"`
	Token     Token  `json:"token"`
}

// JoinTokenPut stores a join token.
type JoinTokenPut struct {
	Token JoinToken `json:"token"`
}

// JoinTokenConsume takes one use of a join token for the agent AgentID.
type JoinTokenConsume struct {
	ID      string `json:"id"`
	Hash    []byte `json:"hash"`
	Role    string `json:"role"`
	AgentID string `json:"agent_id"`
}

// JoinTokenDelete revokes a join token.
type JoinTokenDelete struct {
	ID string `json:"id"`
}

// JobLimits expires the listed attempts, whose time limit has passed, and withdraws
// the queued subjobs whose time to start has; of these Number is not looked at.
type JobLimits struct {
	Expired []AttemptKey `json:"expired"`
	Queued  []AttemptKey `json:"queued,omitempty" since:"52"`
}

// AttemptKey names one attempt.
type AttemptKey struct {
	JobID  string `json:"job_id"`
	Subjob int    `json:"subjob"`
	Number uint64 `json:"number"`
}

// WaitReasons replaces explanations without placing anything.
type WaitReasons struct {
	Waits []WaitUpdate `json:"waits"`
}

// PoolPut makes or replaces a pool.
type PoolPut struct {
	Pool Pool `json:"pool"`
}

// PoolDelete removes a pool; its nodes fall back to their own configuration.
type PoolDelete struct {
	Name string `json:"name"`
}

// ProjectPut makes or replaces a project's record.
type ProjectPut struct {
	Project Project `json:"project"`
}

// ProjectDelete removes a project's record, and so its bounds.
type ProjectDelete struct {
	Name string `json:"name"`
	// EndsCode has whoever takes the name next begin without the code that was sent
	// before, also where its bytes are still on disks.
	EndsCode bool `json:"ends_code,omitempty" since:"40"`
}

// ProjectMember sets the role of a user in a project; "" takes it away. Nothing else
// of the record changes, so that two who do so at once both have their way.
type ProjectMember struct {
	Project string `json:"project"`
	User    string `json:"user"`
	Role    string `json:"role,omitempty"` // viewer | user | project-admin
}

// ProjectArchive archives a project, or brings it back. One with jobs that have not
// ended is archived only where these are to be stopped.
type ProjectArchive struct {
	Name     string `json:"name"`
	Archived bool   `json:"archived,omitempty"`
	StopJobs bool   `json:"stop_jobs,omitempty"`
}

// UserPut makes an account, or replaces what it says. Whether it is disabled, and
// who made it when, stays.
type UserPut struct {
	User User `json:"user"`
}

// UserState disables an account, or enables it. To disable one revokes its tokens,
// and says what becomes of the jobs that it has queued or running.
type UserState struct {
	Name     string `json:"name"`
	Disabled bool   `json:"disabled,omitempty"`
	Jobs     string `json:"jobs,omitempty"` // JobsRunOn | JobsStop | JobsHandOver
	To       string `json:"to,omitempty"`   // the user that they are handed over to
}

// UserDelete forgets an account that is disabled and has no live jobs.
type UserDelete struct {
	Name string `json:"name"`
}

// PasswordSet makes an account's password another, or takes it away. Tokens by signing
// in with the one before end, but for Keep.
type PasswordSet struct {
	Password Password `json:"password"`
	Forget   bool     `json:"forget,omitempty"` // only the user of Password counts
	Keep     string   `json:"keep,omitempty"`   // id of the token that asks
}

// SignIn is a sign-in through a provider: it finds the account by who that says that
// somebody is, or makes one, has it as the provider's rules say, and stores a token for
// it. Of the token the servers set whose it is. Where the account is left with no right
// at all the token is not stored, and what the rules gave before goes all the same.
type SignIn struct {
	Provider string `json:"provider"`
	Subject  string `json:"subject"`

	Name        string       `json:"name"` // of the account, if one is made
	DisplayName string       `json:"display_name,omitempty"`
	Email       string       `json:"email,omitempty"`
	Role        string       `json:"role,omitempty"`     // operator | admin, that the rules give in the whole cluster
	Projects    []Membership `json:"projects,omitempty"` // that they give, each project once
	Token       Token        `json:"token"`
}

// UserIdentity links an account to who somebody is to a provider, or takes that away,
// and with it what the provider's rules gave and the tokens that sign-ins through it made.
type UserIdentity struct {
	User     string `json:"user"`
	Provider string `json:"provider"`
	Subject  string `json:"subject,omitempty"` // "": it is nobody there from now on
}

// TokenExtend puts off the end of a token that a sign-in made, up to its EndsAt.
type TokenExtend struct {
	ID        string   `json:"id"`
	ExpiresAt UnixNano `json:"expires_at"`
}

// QueueMove moves a queued job to another place within its tier: before another
// queued job, first, or last.
type QueueMove struct {
	JobID  string `json:"job_id"`
	Before string `json:"before,omitempty"` // job id
	Last   bool   `json:"last,omitempty"`   // neither: first
}

// JobTimeLimit changes a job's time limit, also while it runs; 0 lifts it.
// Tasks are not touched.
type JobTimeLimit struct {
	JobID     string   `json:"job_id"`
	TimeLimit Duration `json:"time_limit"`
}

// JobParallel changes how many subjobs of a batch or a sweep may be placed at a time; 0:
// all. What runs goes on.
type JobParallel struct {
	JobID    string `json:"job_id"`
	Parallel int    `json:"parallel"`
}

// Forecasts keeps answers that were given.
type Forecasts struct {
	Forecasts []Forecast `json:"forecasts"`
}

// DeviceTreatment records that an operator has a node do something to one of
// its devices. It changes nothing but the events: the node does it, and tells
// by its registration what came of it.
type DeviceTreatment struct {
	NodeID string    `json:"node_id"`
	Device string    `json:"device"` // id
	Number int       `json:"number"` // as people know it
	Act    DeviceAct `json:"act"`
}

// ServerRemoval keeps a server out of Raft's configuration, or lets it back in.
type ServerRemoval struct {
	ID   string `json:"id"`
	Back bool   `json:"back,omitempty"` // it may come back
}

// ServerReport reports how a server does, when that has changed.
type ServerReport struct {
	ServerCondition
	Gone bool `json:"gone,omitempty"` // it is no server any more: nothing is told
}
