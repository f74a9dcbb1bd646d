package structs

// The bodies of RPCs between agents. Method names are "<room>.<verb>"; the
// roles that may call each are checked by package rpc at every call.
//
//	Node.Session     stream, client -> any server: SessionUp / SessionDown
//	Leader.Propose   server -> leader: ProposeRequest / ProposeReply
//	Leader.ReadIndex server -> leader: ReadIndexRequest / ReadIndexReply
//	Leader.Liveness  server -> leader: LivenessReport / LivenessAck
//	Server.Renew     client -> any server: RenewRequest / RenewReply
//	Agent.Trust      leader -> any agent: TrustNews / TrustAck
//	Agent.Witness    leader -> any agent: WitnessRequest / WitnessReply
//	Alloc.Logs       stream, server -> client: LogRequest / LogChunk
//	Alloc.Files      stream, server -> client: FileRequest / FileChunk
//	Alloc.Exec       stream, server or member's client -> client: ExecUp / ExecDown
//	Node.Figures     server -> client: FiguresRequest / NodeFigures
//	Node.Metrics     server -> client: MetricsRequest / NodeMetrics
//	Node.Past        server -> client: PastRequest / NodePast
//	Node.RankPast    server -> client: RankPastRequest / NodeRankPast
//	Node.Treat       server -> client: DeviceTreat / DeviceTreated
//	Alloc.Commit     server -> client: CommitOrder / Committed
//	Node.Look        server -> client: DataLook / DataSeen
//	Node.Data        server -> client: DataAsk / DataReply
//	Node.Staged      client -> client: StagingAsk / StagingReply
//	Server.StagingPeers client -> any server: StagingPeersAsk / StagingPeers
//	Server.StagingMay client -> any server: StagingMayAsk / StagingMay
//	Node.Images      server -> client: ImagesAsk / NodeImages
//	Node.Image       server -> client: ImageOrder / ImageWork
//	Server.Audit     server -> server: AuditAsk / AuditTail
//	Server.AuditCheck server -> server: AuditCheckAsk / AuditChecked
//	Server.History   server -> server: HistoryAsk / HistoryPart
//	Server.Refusals  client -> any server: NodeRefusals / NodeRefusalsKept
//	Server.Secrets   client -> any server: SecretsRequest / SecretsReply
//	Server.OfferServerKey server -> server: ServerKeyOffer / ServerKeyKept
const (
	MethodNodeSession     = "Node.Session"
	MethodLeaderPropose   = "Leader.Propose"
	MethodLeaderReadIndex = "Leader.ReadIndex"
	MethodLeaderLiveness  = "Leader.Liveness"
	MethodServerRenew     = "Server.Renew"
	MethodAgentWitness    = "Agent.Witness"
	MethodAgentTrust      = "Agent.Trust"
	MethodServerKey       = "Server.Key"      // a key of gossip, for a server that was away
	MethodServerOfferKey  = "Server.OfferKey" // a new key of gossip, before the log names it
	MethodServerOfferCA   = "Server.OfferCA"  // the next CA with its key, likewise
	MethodAllocLogs       = "Alloc.Logs"
	MethodAllocFiles      = "Alloc.Files"
	MethodAllocExec       = "Alloc.Exec"
	MethodNodeUsage       = "Node.Figures"
	MethodNodeMetrics     = "Node.Metrics"
	MethodNodeHistory     = "Node.Past"
	MethodNodeRankHistory = "Node.RankPast"
	MethodNodeTreat       = "Node.Treat"
	MethodNodeLook        = "Node.Look"
	MethodNodeImages      = "Node.Images"
	MethodNodeImage       = "Node.Image"
	MethodNodeData        = "Node.Data"   // bytes of named data on a storage of the node
	MethodNodeStaged      = "Node.Staged" // pieces of copies of named data, for other nodes
	MethodStagingPeers    = "Server.StagingPeers"
	MethodStagingMay      = "Server.StagingMay"
	MethodAllocCommit     = "Alloc.Commit"
	MethodServerAudit     = "Server.Audit"      // audit records that the other one lacks
	MethodServerAuditLook = "Server.AuditCheck" // are the records on its disk whole
	MethodServerHistory   = "Server.History"    // rows of the history that the other one lacks
	MethodServerRefusals  = "Server.Refusals"   // what a node refused at its own door
	MethodServerSecrets   = "Server.Secrets"
	MethodServerOfferSeal = "Server.OfferServerKey" // a key that data keys are sealed with
	MethodServerCode      = "Server.Code"           // a stream of the code that travels with a job
	MethodServerTakeCode  = "Server.TakeCode"       // have another server fetch code from the one that asks
)

// SessionUp is what a node says on its stream; exactly one field is set.
type SessionUp struct {
	Hello     *NodeRegister `json:"hello,omitempty"` // first message; again when the fingerprint changes
	Heartbeat *Heartbeat    `json:"heartbeat,omitempty"`
	Reports   *ReportBatch  `json:"reports,omitempty"`
	Bye       bool          `json:"bye,omitempty"` // orderly stop of the agent; its tasks may go on
}

// Heartbeat keeps a node alive in the servers' eyes. SentAt is the node's
// own CLOCK_BOOTTIME in nanoseconds: a lease counts from it on the node.
type Heartbeat struct {
	Seq    uint64 `json:"seq"`
	SentAt int64  `json:"sent_at"`
}

// ReportBatch carries status reports; Seq is acknowledged once they are in
// the log, and only then may the node forget them.
type ReportBatch struct {
	Seq     uint64        `json:"seq"`
	Reports []AllocReport `json:"reports"`
	Notes   []AllocNote   `json:"notes,omitempty"`
}

// SessionDown is what a server says to a node; exactly one field is set.
type SessionDown struct {
	Welcome      *Welcome      `json:"welcome,omitempty"` // first message, after the registration is in the log
	Assignments  *Assignments  `json:"assignments,omitempty"`
	HeartbeatAck *HeartbeatAck `json:"heartbeat_ack,omitempty"`
	ReportAck    *ReportAck    `json:"report_ack,omitempty"`
}

// Welcome answers a node's first Hello.
type Welcome struct {
	ServerID       string   `json:"server_id"`
	HeartbeatEvery Duration `json:"heartbeat_every"`
	LeaseTTL       Duration `json:"lease_ttl"` // strict jobs stop themselves after this long without an ack
	Servers        []string `json:"servers"`   // host:port of every server, for reconnecting
}

// Assignments replaces what the node knows. Full is set on the first one of a
// stream: allocations that it does not list are not the node's any more and
// their processes are killed. Later ones carry only what changed; Gone lists
// allocations that the state has forgotten.
type Assignments struct {
	Index uint64       `json:"index"`
	Full  bool         `json:"full,omitempty"`
	Set   []Assignment `json:"set,omitempty"`
	Gone  []string     `json:"gone,omitempty"`
}

// HeartbeatAck answers a heartbeat with its own Seq and SentAt; SentAt is 0 when
// the server has lost the leader: then the lease is not renewed. Every, when it
// is set, is how often the node sends heartbeats from now on: more nodes came,
// or went.
type HeartbeatAck struct {
	Seq    uint64   `json:"seq"`
	SentAt int64    `json:"sent_at"`
	Every  Duration `json:"every,omitempty"`
}

// ReportAck reports that a batch is in the log. Refused lists allocation ids
// whose reports were refused (an old attempt, or not this node's).
type ReportAck struct {
	Seq     uint64   `json:"seq"`
	Refused []string `json:"refused,omitempty"`
}

// ProposeRequest carries an encoded Command to the leader. It is forwarded
// at most once: a server that is not the leader answers unavailable.
type ProposeRequest struct {
	Command []byte `json:"command"`
}

// ProposeReply reports where the command stands in the log and what Apply said.
type ProposeReply struct {
	Index  uint64      `json:"index"`
	Result ApplyResult `json:"result"`
}

// ApplyResult is what state.Apply returns for a command: Err when the state
// refused it, and whatever the kind returns.
type ApplyResult struct {
	Err     *Error      `json:"err,omitempty"`
	Plan    *PlanResult `json:"plan,omitempty"`
	JobID   string      `json:"job_id,omitempty"`  // CommandJobSubmit: the id, the old one when the key was seen before
	Refused []string    `json:"refused,omitempty"` // CommandAllocReports: allocation ids
}

// ReadIndexRequest asks for an index that is not older than the request.
type ReadIndexRequest struct{}

// ReadIndexReply carries it.
type ReadIndexReply struct {
	Index uint64 `json:"index"`
}

// LivenessReport tells the leader which nodes a server hears.
type LivenessReport struct {
	ServerID string          `json:"server_id"`
	Nodes    []NodeHeartbeat `json:"nodes"`
}

// NodeHeartbeat says how long ago a server last heard a node on its stream.
type NodeHeartbeat struct {
	NodeID      string   `json:"node_id"`
	Incarnation uint64   `json:"incarnation"`
	SilentFor   Duration `json:"silent_for"`
	Closed      bool     `json:"closed,omitempty"` // the stream ended
}

// LivenessAck answers a LivenessReport.
type LivenessAck struct{}

// RenewRequest asks for a new certificate for the caller's own identity.
type RenewRequest struct {
	CSR []byte `json:"csr"` // PEM
}

// RenewReply carries the new certificate.
type RenewReply struct {
	Certificate []byte `json:"certificate"` // PEM
}

// WitnessRequest asks an agent whether it can reach another one.
type WitnessRequest struct {
	NodeID  string `json:"node_id"`
	RPCAddr string `json:"rpc_addr"`
}

// WitnessReply is the answer: Reached by a fresh ping, Gossip the member's
// state in the witness's own gossip view (alive, suspect, dead, "").
type WitnessReply struct {
	Reached bool   `json:"reached"`
	Gossip  string `json:"gossip,omitempty"`
}

// LogRequest opens the log of one task. A negative Offset counts from the
// end (tail); Follow keeps the stream open for what is still to come.
type LogRequest struct {
	AllocID   string `json:"alloc_id"`
	Stream    string `json:"stream"` // stdout | stderr | StreamHooks
	Offset    int64  `json:"offset"`
	TailLines int    `json:"tail_lines,omitempty"` // 0: by Offset
	Follow    bool   `json:"follow,omitempty"`
	Times     bool   `json:"times,omitempty" since:"16"` // the data has when it was printed before each line
}

// StreamHooks is what the lifecycle scripts of a task wrote, stdout and stderr
// together.
const StreamHooks = "hooks"

// LogChunk is a piece of a log. Offset is the position of its first byte in
// the whole log since the task's start; a gap means that rotation took the
// bytes between.
type LogChunk struct {
	Offset int64  `json:"offset"`
	Data   []byte `json:"data,omitempty"`
	EOF    bool   `json:"eof,omitempty"` // the task ended and nothing more will come
}

// ExecUp is what the caller of Alloc.Exec says; exactly one field is set,
// Start first.
type ExecUp struct {
	Start      *ExecStart `json:"start,omitempty"`
	Stdin      []byte     `json:"stdin,omitempty"`
	CloseStdin bool       `json:"close_stdin,omitempty"`
	Resize     *TTYSize   `json:"resize,omitempty"`
	Signal     string     `json:"signal,omitempty"`
}

// ExecStart names what to run inside the task of an allocation. Attempt must
// be the current one. From is set by a member's client when a rank reaches a
// peer (the MPI remote shell): the caller's own allocation.
type ExecStart struct {
	AllocID string            `json:"alloc_id"`
	Attempt uint64            `json:"attempt"`
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	TTY     bool              `json:"tty,omitempty"`
	Size    *TTYSize          `json:"size,omitempty"`
	User    string            `json:"user,omitempty"` // who asked, for the audit
	From    string            `json:"from,omitempty"`
	// SSH makes the stream a connection of ssh to the task, of which Stdin and Stdout
	// are the bytes; Command is empty then.
	SSH *SSHHost `json:"ssh,omitempty" since:"49"`
}

// SSHHost is the key with which a node answers one connection of ssh. The server
// that has judged the connection makes it: callers send an empty one.
type SSHHost struct {
	Key         []byte `json:"key,omitempty"`         // seed of an ed25519 key
	Certificate []byte `json:"certificate,omitempty"` // of the key, by the cluster, as ssh marshals it
}

// TTYSize is a terminal's size in characters.
type TTYSize struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// ExecDown is what the task's side says; exactly one field is set, Exit last.
type ExecDown struct {
	Stdout []byte    `json:"stdout,omitempty"`
	Stderr []byte    `json:"stderr,omitempty"`
	Exit   *ExecExit `json:"exit,omitempty"`
}

// ExecExit is how the command ended.
type ExecExit struct {
	Code   int    `json:"code"`
	Signal int    `json:"signal,omitempty"`
	Err    *Error `json:"err,omitempty"`
}
