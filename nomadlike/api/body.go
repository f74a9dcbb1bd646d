package api

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// Bounds of the API that both sides know.
const (
	BodySizeMax     = 1 << 20  // bytes of a JSON request
	AnswerSizeMax   = 64 << 20 // bytes of a JSON answer that the client reads
	PageSizeMax     = 1000     // items of one page
	PageSizeDefault = 100
)

// Headers of the API.
const (
	HeaderIndex          = "X-Nomadlike-Index" // the state's index an answer was read at
	HeaderIdempotencyKey = "Idempotency-Key"   // makes a repeated submission the same submission
	HeaderRequestID      = "X-Request-Id"      // of an answer: the id that the audit record has of its request
	HeaderRequestedBy    = "X-Nomadlike-Request"
	HeaderProject        = "X-Nomadlike-Project" // that the request acts in; "": the caller's own
)

// ParamActing is HeaderProject in the address of what a browser gets without setting
// headers: a websocket, or a file that is saved from a link.
const ParamActing = "acting"

// JobRequest carries a job, either decoded or as the text of a job file; one
// of Job and HCL must be set. Functions that read files or the environment
// are not evaluated on servers: the command line sends Job.
type JobRequest struct {
	Job       *structs.Job      `json:"job,omitempty"`
	HCL       string            `json:"hcl,omitempty"`
	Variables map[string]string `json:"variables,omitempty"` // of the job file
	// Resume is the id of an ended job from whose newest checkpoint this one goes
	// on, or from the one of ResumeStep.
	Resume     string `json:"resume,omitempty"`
	ResumeStep int64  `json:"resume_step,omitempty"`
	// Set changes values of HCL before it is read; see JobChange.
	Set []JobChange `json:"set,omitempty"`
	// Rank is the one rank that a plan shows, whichever it is, with what its
	// files hold; without it the first ones are shown. For plans only.
	Rank *int `json:"rank,omitempty"`
	// Zone is that of times of the job that name none, by its name or as an offset such
	// as +08:00; "": that of the server that is asked.
	Zone string `json:"zone,omitempty"`
}

// JobChange sets one value of a job file to another; comments and what is
// not changed stay. At names blocks and an argument below the job block, as in
// "nodes" or "resources[1].device.count"; a # at the end means the label of the
// block before it, "#" alone the job's name, and task.env["LR"] an entry of an object.
// Value is text, a number, true or false, a list of texts or an object of texts, and
// {"secret": NAME} a secret; null takes away what At names.
type JobChange struct {
	At    string `json:"at"`
	Value any    `json:"value"`
}

// JobFormatted is a job file in canonical form, and the job that it describes,
// defaults filled in, with which those are.
type JobFormatted struct {
	HCL      string            `json:"hcl"`
	Job      *structs.Job      `json:"job"`
	Defaults []structs.Default `json:"defaults"`
}

// JobSubmitted answers a submission.
type JobSubmitted struct {
	JobID    string          `json:"job_id"`
	Number   uint64          `json:"number,omitempty"`
	Name     string          `json:"name"`
	Index    uint64          `json:"index"`
	Warnings []structs.Error `json:"warnings,omitempty"` // what is doubtful, rendered
}

// JobParsed is the job that a file describes, defaults filled in, and which
// those are.
type JobParsed struct {
	Job      *structs.Job      `json:"job"`
	Defaults []structs.Default `json:"defaults"`
}

// JobValidated lists everything that is wrong with a job.
type JobValidated struct {
	Valid    bool            `json:"valid"`
	Problems []structs.Error `json:"problems,omitempty"`
	Warnings []structs.Error `json:"warnings,omitempty"`
}

// JobPlan previews a job: the launch of the ranks of its first subjob, and
// whether and where it would start now. Ranks lists at most PlanRanksMax of
// them, the first ones, or the one that was asked for.
type JobPlan struct {
	Job       *structs.Job        `json:"job"`
	Defaults  []structs.Default   `json:"defaults"` // what the job leaves to nomadlike
	StartsNow bool                `json:"starts_now"`
	Starts    int                 `json:"starts"`          // subjobs of a batch that would start now
	Wait      *structs.WaitReason `json:"wait,omitempty"`  // why not now
	Lacks     []structs.DataLack  `json:"lacks,omitempty"` // data that no node has: it would be refused
	Notes     []structs.Reason    `json:"notes,omitempty"`
	Warnings  []structs.Error     `json:"warnings,omitempty"`
	Ranks     []RankPlan          `json:"ranks"`
	Ceilings  []structs.Ceiling   `json:"ceilings"`        // the most that such a job may ask for, and who set it
	Later     []structs.Reason    `json:"later,omitempty"` // what of the ranks only their nodes can tell, at the start
}

// PlanRanksMax bounds the ranks of a JobPlan.
const PlanRanksMax = 256

// RankPlan is what one rank would run. Node is empty when the job would not
// start now; its addresses are then placeholders. Hold says that the rank
// runs no command of its own and is reached by others, as MPI does.
type RankPlan struct {
	Rank    int               `json:"rank"`
	Name    string            `json:"name"`
	Node    string            `json:"node,omitempty"`
	Command []string          `json:"command,omitempty"`
	Hold    bool              `json:"hold,omitempty"`
	Env     map[string]string `json:"env"`
	Files   []RankFile        `json:"files,omitempty"` // written for the rank before it starts
	Ports   map[string]int    `json:"ports,omitempty"`
}

// RankFile is a file in the directory of a rank's task. Content is there when
// the plan was asked for that one rank.
type RankFile struct {
	Path    string `json:"path"` // relative to the directory
	Content string `json:"content,omitempty"`
}

// JobSummary is a job in a list: what it is and how its subjobs stand.
type JobSummary struct {
	ID          string           `json:"id"`
	Number      uint64           `json:"number,omitempty"`
	Name        string           `json:"name"`
	Project     string           `json:"project"`
	User        string           `json:"user,omitempty"`
	Type        structs.JobType  `json:"type"`
	Priority    structs.Priority `json:"priority"`
	Preemptible bool             `json:"preemptible,omitempty"`
	VIP         bool             `json:"vip,omitempty"`
	Pool        string           `json:"pool,omitempty"`   // that the job names
	Code        []string         `json:"code,omitempty"`   // its algorithms; those of the favourites as favorite/NAME
	Specs       []string         `json:"specs,omitempty"`  // labels of its specs and models of their cards
	Output      string           `json:"output,omitempty"` // where its outputs go
	Tags        []string         `json:"tags,omitempty"`
	Note        string           `json:"note,omitempty"` // its beginning, up to NoteShownMax characters
	Nodes       int              `json:"nodes"`
	Subjobs     int              `json:"subjobs"`
	SubmittedAt structs.UnixNano `json:"submitted_at"`
	JobStatus
	// Idle reports why it uses nothing of what it holds: one of the words of
	// JobRef.Idle; "": it may use it.
	Idle      string           `json:"idle,omitempty"`
	IdleSince structs.UnixNano `json:"idle_since,omitempty"` // with IdleCards
	HeldUntil structs.UnixNano `json:"held_until,omitempty"` // when the last of its debug holds ends
	LimitAt   structs.UnixNano `json:"limit_at,omitempty"`   // when the first of what runs of it reaches its time limit
	TimeLimit structs.Duration `json:"time_limit,omitempty"` // with LimitAt
	Trend     *JobTrend        `json:"trend,omitempty"`      // of one that runs, where the list was asked for trends
	// Asked is the first thing that a VIP job asks its owner and that nobody answered.
	Asked *Asked `json:"asked,omitempty"`
}

// JobTrend is how a metric of a job that runs goes in its newest attempt.
type JobTrend struct {
	Metric string    `json:"metric"` // its name
	Values []float64 `json:"values"` // observations in their order, at most TrendPointsMax; the last is the newest
}

// Bounds of the trends of one list.
const (
	TrendJobsMax   = 8 // jobs that run, the first of the page
	TrendPointsMax = 24
)

// NoteShownMax is how many characters of a job's note a list shows.
const NoteShownMax = 200

// JobAnnotateRequest changes the tags and the note of a job.
type JobAnnotateRequest struct {
	Add    []string `json:"add,omitempty"`    // tags; those that the job has already are left alone
	Remove []string `json:"remove,omitempty"` // tags; those that the job does not have are left alone
	Note   *string  `json:"note,omitempty"`   // missing: as it was; empty: none
}

// JobAnnotations is what people wrote on a job.
type JobAnnotations struct {
	JobID string   `json:"job_id"`
	Index uint64   `json:"index"` // of the change
	Tags  []string `json:"tags"`
	Note  string   `json:"note"`
}

// JobStatus sums up the subjobs of a job.
type JobStatus struct {
	State      structs.JobState         `json:"state"`
	Counts     map[structs.JobState]int `json:"counts"` // subjobs by state
	Attempt    uint64                   `json:"attempt"`
	ExitCode   int                      `json:"exit_code"` // of the first subjob that did not succeed, else 0
	StartedAt  structs.UnixNano         `json:"started_at,omitempty"`
	FinishedAt structs.UnixNano         `json:"finished_at,omitempty"`
	Reason     *structs.Reason          `json:"reason,omitempty"`
	Wait       *structs.WaitReason      `json:"wait,omitempty"`
	// Control is what people want of the job's first subjob while it runs: it
	// may be paused by wish and still "running" until the last rank stands still.
	Control *structs.Control `json:"control,omitempty"`
}

// JobList is a page of jobs; Next is the cursor of the following page, or
// empty on the last.
type JobList struct {
	Jobs []JobSummary `json:"jobs"`
	Next string       `json:"next,omitempty"`
}

// JobDetail is one job with how it stands. Subjobs lists at most
// PageSizeDefault of them; jobs.subjobs returns all. Yielded tells to whom its
// newest attempts lost their nodes, newest first, at most YieldsMax of them;
// Awaits whose work must end before the job gets the nodes nominated for it.
type JobDetail struct {
	Job *structs.Job `json:"job"`
	JobStatus
	Subjobs []structs.Subjob `json:"subjobs"`
	Yielded []Yield          `json:"yielded,omitempty"`
	Awaits  []JobRef         `json:"awaits,omitempty"`
	// After is what the job was submitted to wait for, in the order of its file, and
	// Followers are the first jobs that wait for it now.
	After     []AwaitedJob `json:"after,omitempty"`
	Followers []JobRef     `json:"followers,omitempty"`
	// Asked is what VIP jobs ask its owner, and Answers what owners said to it.
	Asked   []Asked    `json:"asked,omitempty"`
	Answers []Answered `json:"answers,omitempty"`
	Holders []JobRef   `json:"holders,omitempty"` // of what it waits for, those that the caller may read, and one without a name for others
	May     []string   `json:"may"`               // what the caller may do to it
	// Outputs is what became of what it wrote, at most OutputsMax of OutputCounts by state.
	Outputs      []JobOutput    `json:"outputs,omitempty"`
	OutputCounts map[string]int `json:"output_counts,omitempty"`
}

// AwaitedJob is a job that another comes after. Of one that the caller may not read, or
// that was deleted, there is no more than what the job file calls it.
type AwaitedJob struct {
	JobRef
	Called string           `json:"called"`
	When   string           `json:"when"`            // succeeded, failed, ended or started
	State  structs.JobState `json:"state,omitempty"` // of it, now
	Waits  bool             `json:"waits,omitempty"` // it is waited for still
}

// FollowersMax bounds JobDetail.Followers.
const FollowersMax = 16

// YieldsMax bounds the lists of JobDetail.
const YieldsMax = 16

// Yield is one attempt that had to end for another job: whoever lost their
// nodes learns to whom, also when that is another project's job.
type Yield struct {
	Subjob  int              `json:"subjob"`
	Attempt uint64           `json:"attempt"`
	At      structs.UnixNano `json:"at"` // when it was asked to end
	To      JobRef           `json:"to"`
}

// SubjobList is a page of subjobs.
type SubjobList struct {
	Subjobs []structs.Subjob `json:"subjobs"`
	Next    string           `json:"next,omitempty"`
}

// AttemptList lists attempts by subjob and number.
type AttemptList struct {
	Attempts []structs.Attempt `json:"attempts"`
}

// JobRef names a job to people. The id alone is left of one that was deleted.
type JobRef struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Project string `json:"project,omitempty"`
	User    string `json:"user,omitempty"`
	Subjob  int    `json:"subjob,omitempty"`
	VIP     bool   `json:"vip,omitempty"`
	Idle    string `json:"idle,omitempty"` // of one that holds what others wait for: why it uses none of it, one of the Idle constants
}

// Why a job that holds something does not use it.
const (
	IdlePaused = "paused" // it is paused
	IdleHeld   = "held"   // it has ended and is kept for people to look at
	IdleCards  = "cards"  // none of its cards has had anything to do for ten minutes or longer
)

// AllocationList lists allocations by subjob, attempt and rank.
type AllocationList struct {
	Allocations []structs.Allocation `json:"allocations"`
}

// EventList is a history, oldest first.
type EventList struct {
	Events []structs.Event `json:"events"`
}

// EventLine is one line of the event stream: an event, or, when nothing
// happened for a while, only up to where the caller now knows all.
type EventLine struct {
	Event  *structs.Event `json:"event,omitempty"`
	Index  uint64         `json:"index"`            // of the event, which others share; without one, up to here all is known
	Cursor string         `json:"cursor,omitempty"` // go on with `cursor=` to get exactly what comes after this line
	Error  *structs.Error `json:"error,omitempty"`  // the stream ends after it
}

// JobControlRequest pauses, continues or finishes what runs of a job, or one
// subjob.
type JobControlRequest struct {
	Subjob *int   `json:"subjob,omitempty"` // nil: all
	Reason string `json:"reason,omitempty"` // words for the history
}

// ThrottleRequest lets a job run for Busy and stand still for Idle, in turns;
// an Idle of 0 lifts that. Both are between 10 ms and a minute.
type ThrottleRequest struct {
	Subjob *int             `json:"subjob,omitempty"` // nil: all
	Busy   structs.Duration `json:"busy,omitempty"`   // 0: 500 ms
	Idle   structs.Duration `json:"idle"`
	Reason string           `json:"reason,omitempty"` // words for the history
}

// JobStopRequest stops a whole job, or one subjob. With Release it ends the
// debug holds of a failed job ("hold"), or has them give back their devices
// ("devices"), and touches nothing else.
type JobStopRequest struct {
	Subjob  *int   `json:"subjob,omitempty"`
	Reason  string `json:"reason,omitempty"` // for the history, in the person's words
	Release string `json:"release,omitempty"`
}

// JobPriorityRequest names the new tier.
type JobPriorityRequest struct {
	Priority structs.Priority `json:"priority"`
}

// Changed answers a change: from Index on, every read shows it.
type Changed struct {
	Index uint64 `json:"index"`
}

// NodeSummary is a node in a list with what its allocations hold.
type NodeSummary struct {
	structs.Node
	Used structs.Usage `json:"used"`
	Root bool          `json:"root,omitempty"` // the record of its pool lets tasks run as root
}

// NodeList is a page of nodes by name.
type NodeList struct {
	Nodes []NodeSummary `json:"nodes"`
	Next  string        `json:"next,omitempty"`
}

// NodeDetail is one node with the allocations that the caller may see.
type NodeDetail struct {
	NodeSummary
	Allocations []structs.Allocation `json:"allocations"`
	May         []string             `json:"may"` // what the caller may do to it
}

// DrainRequest says how long work may take to move away; 0 means at once
// with the job's own grace.
type DrainRequest struct {
	Deadline structs.Duration `json:"deadline,omitempty"`
}

// BootstrapRequest carries the one-time setup secret.
type BootstrapRequest struct {
	Secret string `json:"secret"`
}

// TokenRequest describes a new token.
type TokenRequest struct {
	Name    string           `json:"name,omitempty"`
	Role    string           `json:"role"`              // viewer | user | project-admin | operator | admin
	Project string           `json:"project,omitempty"` // for roles bound to one
	User    string           `json:"user,omitempty"`
	TTL     structs.Duration `json:"ttl,omitempty"` // 0: without end

	Verbs     []string `json:"verbs,omitempty"`     // that it is good for; none: all that the role gives
	Addresses []string `json:"addresses,omitempty"` // that it is good from; none: all
}

// NewToken is a token with its secret, which is shown this once.
type NewToken struct {
	Token  structs.Token `json:"token"`
	Secret string        `json:"secret"`
}

// TokenList is a page of tokens.
type TokenList struct {
	Tokens []structs.Token `json:"tokens"`
	Next   string          `json:"next,omitempty"`
}

// JoinTokenRequest describes a new join token.
type JoinTokenRequest struct {
	Role string           `json:"role"`           // server | client
	Uses int              `json:"uses,omitempty"` // 0: one; -1: without limit
	TTL  structs.Duration `json:"ttl,omitempty"`  // 0: one hour
}

// NewJoinToken is a join token with the text that joiners are given.
type NewJoinToken struct {
	Token structs.JoinToken `json:"token"`
	Join  string            `json:"join"` // nl1.<sha256(CA)>.<id>.<secret>
}

// JoinTokenList lists join tokens.
type JoinTokenList struct {
	Tokens []structs.JoinToken `json:"tokens"`
}

// Member is an agent as gossip knows it.
type Member struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	Role       string `json:"role"`        // server | client | both
	GossipAddr string `json:"gossip_addr"` // host:port
	RPCAddr    string `json:"rpc_addr"`    // host:port
	Status     string `json:"status"`      // alive | suspect | dead | left
	Leader     bool   `json:"leader,omitempty"`
	Version    string `json:"version,omitempty"`
	Protocol   int    `json:"protocol,omitempty"`

	// CertificateEndsAt is when the first of its certificates ends, as it says itself.
	// Agents renew them when half of their life is over.
	CertificateEndsAt structs.UnixNano `json:"certificate_ends_at,omitempty"`
}

// MemberList lists members by name.
type MemberList struct {
	Members []Member `json:"members"`
}

// ServersJoinRequest names gossip addresses, host:port.
type ServersJoinRequest struct {
	Addresses []string `json:"addresses"`
}

// ServersJoined reports how many of them answered.
type ServersJoined struct {
	Joined int `json:"joined"`
}

// RaftPeer is a server in Raft's configuration.
type RaftPeer struct {
	ID     string `json:"id"`
	Name   string `json:"name,omitempty"`
	Addr   string `json:"addr"`
	Voter  bool   `json:"voter"`
	Leader bool   `json:"leader"`
}

// RaftPeerList lists the peers at an index of the log.
type RaftPeerList struct {
	Peers   []RaftPeer              `json:"peers"`
	Removed []structs.RemovedServer `json:"removed,omitempty"` // taken out by an administrator, not let back in
	Index   uint64                  `json:"index"`
}

// AutopilotHealth reports how the servers are. FailureTolerance is how many
// voters may still fail without losing the quorum.
type AutopilotHealth struct {
	Healthy          bool           `json:"healthy"`
	FailureTolerance int            `json:"failure_tolerance"`
	LeaderID         string         `json:"leader_id,omitempty"`
	Servers          []ServerHealth `json:"servers"`

	// Certificates are those that end within CertificateSoon: their agents should have
	// renewed them long before. The first to end stand first, at most AgentsNamedMax.
	Certificates []CertificateEnd `json:"certificates,omitempty"`
	// Versions are those that the living agents run, the one of most agents first.
	Versions []AgentVersion `json:"versions"`
}

// CertificateSoon is how long before its end a certificate is told of. Agents renew
// theirs half of its life before, which is 36 hours.
const CertificateSoon = 24 * time.Hour

// AgentsNamedMax bounds the agents that AutopilotHealth names in one place.
const AgentsNamedMax = 16

// CertificateEnd is a certificate of an agent that ends soon.
type CertificateEnd struct {
	ID     string           `json:"id"`      // of the agent
	Name   string           `json:"name"`    // of its machine
	Role   string           `json:"role"`    // server | client
	EndsAt structs.UnixNano `json:"ends_at"` // the agent is not ready from then on, until it has another
}

// AgentVersion is a version of the program and who runs it.
type AgentVersion struct {
	Version string   `json:"version"`
	Agents  int      `json:"agents"` // how many run it
	Names   []string `json:"names"`  // of them, servers first; at most AgentsNamedMax
}

// ServerHealth is one server's part in AutopilotHealth.
type ServerHealth struct {
	RaftPeer
	Status   string `json:"status"` // gossip status, "" when gossip does not know it
	Healthy  bool   `json:"healthy"`
	DiskFull bool   `json:"disk_full,omitempty"` // no room for log entries: it should not lead

	BackupFailed string `json:"backup_failed,omitempty"` // why its last backup failed
}

// SnapshotMeta reports what a snapshot holds.
type SnapshotMeta struct {
	Cluster string           `json:"cluster"`
	Index   uint64           `json:"index"`
	Term    uint64           `json:"term"`
	Size    int64            `json:"size"`
	SHA256  string           `json:"sha256"`
	TakenAt structs.UnixNano `json:"taken_at,omitempty"`
	// SecretKeys are the fingerprints of the servers' keys that its secrets need.
	SecretKeys []string `json:"secret_keys,omitempty"`
}

// Health is the answer of agent.health. An agent that is not healthy answers
// with status 503 and the same body.
type Health struct {
	Healthy bool   `json:"healthy"`
	Server  *Check `json:"server,omitempty"`
	Client  *Check `json:"client,omitempty"`
}

// Probe is the answer of health.live, health.ready and health.leader, for load balancers.
// The answer no comes with status 503 and the same body.
type Probe struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // one of the words of ProbeReason
}

// Reasons why a probe says no.
const (
	ProbeStopping    = "stopping"
	ProbeNoLeader    = "no_leader"
	ProbeDiskFull    = "disk_full"
	ProbeRemoved     = "removed" // from the servers
	ProbeNoServer    = "no_server"
	ProbeRefused     = "refused" // by the servers
	ProbeCertificate = "certificate_expired"
	ProbeNotLeader   = "not_leader"
)

// Check is one part of Health.
type Check struct {
	OK      bool   `json:"ok"`
	Message string `json:"message,omitempty"`
}

// AgentSelf describes the agent that answers.
type AgentSelf struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Cluster  string            `json:"cluster"`
	Roles    []string          `json:"roles"` // server, client
	Version  string            `json:"version"`
	Protocol int               `json:"protocol"`
	Leader   bool              `json:"leader"`
	Config   map[string]any    `json:"config"` // secrets redacted
	Stats    map[string]string `json:"stats,omitempty"`
}

// JoinRequest is what a new agent says, after it has checked that the peer
// holds the CA that its join token pins.
type JoinRequest struct {
	TokenID string `json:"token_id"`
	Secret  string `json:"secret"`
	Role    string `json:"role"` // server | client
	AgentID string `json:"agent_id"`
	Name    string `json:"name"`
	CSR     string `json:"csr"` // PEM

	// Certificate and Proof are of an agent that joins again as who it was:
	// its old certificate, PEM, and the signature of the CSR by its key.
	Certificate string `json:"certificate,omitempty"`
	Proof       []byte `json:"proof,omitempty"`
}

// RenewRequest asks for a new certificate in place of one that is over.
type RenewRequest struct {
	Certificate string `json:"certificate"` // PEM, the one that is over
	CSR         string `json:"csr"`         // PEM
	Proof       []byte `json:"proof"`       // signature of the CSR by the old certificate's key
}

// Renewed is the new certificate.
type Renewed struct {
	Certificate string `json:"certificate"`  // PEM, the agent's own and the CA's
	CA          string `json:"ca,omitempty"` // PEM, what to trust from now on, that which signs first
	// PastCA are the CAs of before that lead there.
	PastCA []structs.PastCA `json:"past_ca,omitempty"`
}

// Joined lets the agent in. CAKey and Init are given to servers only.
type Joined struct {
	Certificate string               `json:"certificate"`       // PEM, the agent's own and the CA's
	GossipKey   string               `json:"gossip_key"`        // base64
	Servers     []string             `json:"servers"`           // host:port of gossip
	CA          string               `json:"ca,omitempty"`      // PEM, what to trust, that which signs first
	PastCA      []structs.PastCA     `json:"past_ca,omitempty"` // CAs of before that lead there
	CAKey       string               `json:"ca_key,omitempty"`
	NextCA      string               `json:"next_ca,omitempty"`     // PEM, the one that is to sign, in a rotation; for servers
	NextCAKey   string               `json:"next_ca_key,omitempty"` // PEM
	Init        *structs.ClusterInit `json:"init,omitempty"`
}
