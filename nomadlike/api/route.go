package api

import (
	"net/http"

	"nomadlike/nomadlike/structs"
)

// Verb is what a request wants to do, in the words of the authorisation
// policy (package auth), which speaks of verbs and never of paths.
type Verb string

// The verbs of the API.
const (
	VerbHealth        Verb = "health" // open to everybody
	VerbLogin         Verb = "login"  // open to everybody: the handler checks a secret of its own
	VerbSelf          Verb = "self"
	VerbList          Verb = "list"
	VerbRead          Verb = "read"
	VerbSubmit        Verb = "submit"
	VerbStop          Verb = "stop"
	VerbControl       Verb = "control"
	VerbDelete        Verb = "delete"
	VerbWrite         Verb = "write"
	VerbPriority      Verb = "priority"
	VerbTimeLimit     Verb = "time-limit"
	VerbMove          Verb = "move"
	VerbMembers       Verb = "members"
	VerbPonder        Verb = "ponder"
	VerbLogs          Verb = "logs"
	VerbShare         Verb = "share"
	VerbWall          Verb = "wall"
	VerbExec          Verb = "exec"
	VerbDrain         Verb = "drain"
	VerbOperatorRead  Verb = "operator-read"
	VerbOperatorWrite Verb = "operator-write"
	VerbSnapshot      Verb = "snapshot"
)

// ObjectKind says what sort of thing a request is about, in the words of the
// authorisation policy. Attempts, allocations and logs are judged as their
// job.
type ObjectKind string

// The kinds of objects.
const (
	ObjectCluster   ObjectKind = "cluster"
	ObjectJob       ObjectKind = "job"
	ObjectNode      ObjectKind = "node"
	ObjectQueue     ObjectKind = "queue"
	ObjectPool      ObjectKind = "pool"
	ObjectProject   ObjectKind = "project"
	ObjectEvent     ObjectKind = "event"
	ObjectToken     ObjectKind = "token"
	ObjectJoinToken ObjectKind = "join-token"
)

// Source says where the object of a request is found, and so whose project
// and owner decide.
type Source string

// The sources of objects.
const (
	FromKind       Source = "kind"       // the kind as a whole: a list, whose items are judged one by one, or the cluster
	FromJob        Source = "job"        // the job named by {id}
	FromAllocation Source = "allocation" // the job of the allocation named by {id}
	FromBody       Source = "body"       // the job in the request's body, owned by the caller
	FromNode       Source = "node"       // the node named by {id}
	FromProject    Source = "project"    // the project named by {id}, whether or not it has a record
	FromToken      Source = "token"      // the token named by {id}
	FromCaller     Source = "caller"     // the caller's own token
)

// Stream says how the body of an answer comes when it is not one JSON value.
type Stream string

// The forms of streams.
const (
	StreamNone      Stream = ""
	StreamNDJSON    Stream = "ndjson"    // one JSON value a line, until either side closes
	StreamText      Stream = "text"      // bytes of a task's log
	StreamBinary    Stream = "binary"    // a snapshot
	StreamWebsocket Stream = "websocket" // exec, see ExecConn
)

// Param is a query parameter of a route.
type Param struct {
	Name    string
	Type    string // string | integer | boolean
	Summary string
}

// Route describes one route of the HTTP API as data.
type Route struct {
	Name     string // stable operation id, "jobs.submit"
	Method   string
	Pattern  string // path as net/http.ServeMux spells it, {id} included
	Verb     Verb
	Kind     ObjectKind
	From     Source
	Query    []Param
	Request  any // zero value of the JSON body, nil without one
	Response any // zero value of the JSON answer, nil for streams
	Stream   Stream
	Upload   bool // the body is a stream of bytes, not JSON
	Blocking bool // takes index and wait
	Summary  string
}

// Mutates reports whether the route changes anything.
func (r Route) Mutates() bool { return r.Method != http.MethodGet }

// Routes is every route of the API, in the order of the documentation. The
// caller owns the slice.
func Routes() []Route {
	var routes []Route
	routes = append(routes, jobRoutes()...)
	routes = append(routes, metricRoutes()...)
	routes = append(routes, fileRoutes()...)
	routes = append(routes, queueRoutes()...)
	routes = append(routes, forecastRoutes()...)
	routes = append(routes, allocationRoutes()...)
	routes = append(routes, nodeRoutes()...)
	routes = append(routes, poolRoutes()...)
	routes = append(routes, tokenRoutes()...)
	routes = append(routes, clusterRoutes()...)
	return append(routes, agentRoutes()...)
}

// Parameters that several routes share.
func blockingParams(more ...Param) []Param {
	return append(more,
		Param{"index", "integer", "answer only when something newer than this index is known, or after wait"},
		Param{"wait", "string", "longest time to hold a blocking query, such as 30s; at most 10m"},
		Param{"stale", "boolean", "answer from this server's own state without asking the leader"},
	)
}

func listParams(more ...Param) []Param {
	return blockingParams(append(more,
		Param{"limit", "integer", "at most so many items, 1 to 1000; 100 unless told"},
		Param{"after", "string", "the cursor `next` of the page before"},
	)...)
}

func jobRoutes() []Route {
	return []Route{
		{
			Name: "jobs.list", Method: http.MethodGet, Pattern: "/v1/jobs", Verb: VerbList, Kind: ObjectJob, From: FromKind, Blocking: true,
			Query: listParams(
				Param{"name", "string", "only jobs of this name"},
				Param{"state", "string", "only jobs in this state"},
				Param{"project", "string", "only jobs of this project"},
				Param{"user", "string", "only jobs of this user"},
				Param{"code", "string", "only jobs with this algorithm; favorite/NAME for one of the favourites"},
				Param{"spec", "string", "only jobs with a spec of this label, or for cards of this model"},
				Param{"output", "string", "only jobs whose output location holds this text"},
				Param{"cause", "string", "only jobs that wait or ended for a reason of this id"},
				Param{"text", "string", "only jobs whose name holds this text, in capitals or not, or whose id begins with it"}),
			Response: JobList{}, Summary: "List jobs, newest first",
		},
		{
			Name: "jobs.submit", Method: http.MethodPost, Pattern: "/v1/jobs", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: JobSubmitted{}, Summary: "Submit a job, as JSON or as a job file",
		},
		{
			Name: "jobs.parse", Method: http.MethodPost, Pattern: "/v1/jobs/parse", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: JobParsed{}, Summary: "Turn a job file into a job",
		},
		{
			Name: "jobs.format", Method: http.MethodPost, Pattern: "/v1/jobs/format", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: JobFormatted{}, Summary: "Write a job as a job file, or a job file in canonical form with the changes of `set` made",
		},
		{
			Name: "jobs.validate", Method: http.MethodPost, Pattern: "/v1/jobs/validate", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: JobValidated{}, Summary: "Check a job without submitting it; lists every problem",
		},
		{
			Name: "jobs.plan", Method: http.MethodPost, Pattern: "/v1/jobs/plan", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: JobPlan{}, Summary: "Preview what every rank would run, and whether the job would start now",
		},
		{
			Name: "jobs.read", Method: http.MethodGet, Pattern: "/v1/jobs/{id}", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
			Query: blockingParams(), Response: JobDetail{}, Summary: "Read one job; id, unique id prefix or name",
		},
		{
			Name: "jobs.subjobs", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/subjobs", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
			Query: listParams(), Response: SubjobList{}, Summary: "List the subjobs of a job",
		},
		{
			Name: "jobs.attempts", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/attempts", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
			Query: blockingParams(), Response: AttemptList{}, Summary: "List the attempts of a job",
		},
		{
			Name: "jobs.allocations", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/allocations", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
			Query: blockingParams(
				Param{"attempt", "integer", "only this attempt"},
				Param{"subjob", "integer", "only this subjob"}),
			Response: AllocationList{}, Summary: "List the allocations of a job",
		},
		{
			Name: "jobs.events", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/events", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
			Query: blockingParams(), Response: EventList{}, Summary: "The history of a job",
		},
		{
			Name: "jobs.figures", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/figures", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
			Query:    []Param{{"subjob", "integer", "of this subjob; 0 unless told"}},
			Response: JobUsage{}, Summary: "What each rank of the newest attempt uses now: cores, memory, and its cards",
		},
		{
			Name: "jobs.past", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/figures/past", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
			Query: []Param{
				{"subjob", "integer", "of this subjob; 0 unless told"},
				{"attempt", "integer", "of this attempt; the newest unless told"},
				{"rank", "integer", "only this rank"},
				{"since", "string", "how far back from its end, or from now, such as 6h; all of it unless told"},
				{"points", "integer", "at most so many values of each figure, 1 to 1440; 240 unless told"},
			},
			Response: JobHistory{}, Summary: "What each rank of an attempt used while it ran: cores, memory, and its cards; nodes keep it as long as the rank's files",
		},
		{
			Name: "jobs.stop", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/stop", Verb: VerbStop, Kind: ObjectJob, From: FromJob,
			Request: JobStopRequest{}, Response: Changed{}, Summary: "Stop a job, or one subjob of a batch",
		},
		{
			Name: "jobs.pause", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/pause", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
			Request: JobControlRequest{}, Response: Changed{}, Summary: "Let every rank of a running job stand still; it keeps its devices and their memory",
		},
		{
			Name: "jobs.continue", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/continue", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
			Request: JobControlRequest{}, Response: Changed{}, Summary: "Let a paused job go on",
		},
		{
			Name: "jobs.throttle", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/throttle", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
			Request: ThrottleRequest{}, Response: Changed{}, Summary: "Let a job run and stand still in turns, or lift that again",
		},
		{
			Name: "jobs.finish", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/finish", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
			Request: JobControlRequest{}, Response: Changed{}, Summary: "End a running job now, with success",
		},
		{
			Name: "jobs.share", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/shares", Verb: VerbShare, Kind: ObjectJob, From: FromJob,
			Request: ShareRequest{}, Response: NewShare{}, Summary: "Make a link that shows this one job, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it",
		},
		{
			Name: "jobs.shares", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/shares", Verb: VerbShare, Kind: ObjectJob, From: FromJob,
			Response: ShareList{}, Summary: "List the links that show this job and are not over",
		},
		{
			Name: "jobs.delete", Method: http.MethodDelete, Pattern: "/v1/jobs/{id}", Verb: VerbDelete, Kind: ObjectJob, From: FromJob,
			Response: Changed{}, Summary: "Forget an ended job and its history",
		},
		{
			Name: "jobs.priority", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/priority", Verb: VerbPriority, Kind: ObjectJob, From: FromJob,
			Request: JobPriorityRequest{}, Response: Changed{}, Summary: "Change the tier of a queued job",
		},
		{
			Name: "jobs.time_limit", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/time-limit", Verb: VerbTimeLimit, Kind: ObjectJob, From: FromJob,
			Request: TimeLimitRequest{}, Response: Changed{}, Summary: "Change how long a job may run, also while it runs",
		},
		{
			Name: "jobs.move", Method: http.MethodPost, Pattern: "/v1/jobs/{id}/move", Verb: VerbMove, Kind: ObjectJob, From: FromJob,
			Request: QueueMoveRequest{}, Response: Changed{}, Summary: "Give a queued job another place within its tier",
		},
		{
			Name: "events.stream", Method: http.MethodGet, Pattern: "/v1/events", Verb: VerbList, Kind: ObjectEvent, From: FromKind, Stream: StreamNDJSON,
			Query: []Param{
				{"cursor", "string", "begin after the line that told this cursor: nothing is left out, nothing comes twice"},
				{"index", "integer", "begin with the events of this index, for callers without a cursor; without both, only what is new"},
				{"topic", "string", "only these topics, comma-separated: job, attempt, alloc, node, pool, project, token, cluster"},
				{"job", "string", "only events of this job id"},
				{"project", "string", "only events of this project"},
			},
			Response: EventLine{}, Summary: "Follow events as they happen",
		},
	}
}

func queueRoutes() []Route {
	return []Route{
		{
			Name: "queue.read", Method: http.MethodGet, Pattern: "/v1/queue", Verb: VerbList, Kind: ObjectQueue, From: FromKind, Blocking: true,
			Query: listParams(
				Param{"pool", "string", "only jobs that wait for this pool: that name it, or name none and could run there"},
				Param{"project", "string", "only jobs of this project"},
				Param{"forecast", "boolean", "tell for each when it starts"}),
			Response: Queue{}, Summary: "What waits, in order, and why",
		},
	}
}

func allocationRoutes() []Route {
	return []Route{
		{
			Name: "allocations.read", Method: http.MethodGet, Pattern: "/v1/allocations/{id}", Verb: VerbRead, Kind: ObjectJob, From: FromAllocation, Blocking: true,
			Query: blockingParams(), Response: structs.Allocation{}, Summary: "Read one allocation",
		},
		{
			Name: "allocations.logs", Method: http.MethodGet, Pattern: "/v1/allocations/{id}/logs", Verb: VerbLogs, Kind: ObjectJob, From: FromAllocation, Stream: StreamText,
			Query: []Param{
				{"stream", "string", "stdout (default), stderr or hooks"},
				{"offset", "integer", "first byte; negative counts from the end"},
				{"tail", "integer", "only so many last lines"},
				{"follow", "boolean", "stay for what is still to come"},
				{"times", "boolean", "when each line was printed, before it; - where that is not known"},
			},
			Summary: "Read what a task printed",
		},
		{
			Name: "allocations.commit", Method: http.MethodPost, Pattern: "/v1/allocations/{id}/commit", Verb: VerbExec, Kind: ObjectJob, From: FromAllocation,
			Request: CommitRequest{}, Response: structs.Committed{}, Summary: "Keep the container of a running task as an image on its node",
		},
		{
			Name: "allocations.exec", Method: http.MethodGet, Pattern: "/v1/allocations/{id}/exec", Verb: VerbExec, Kind: ObjectJob, From: FromAllocation, Stream: StreamWebsocket,
			Summary: "Run a command inside a task, over a websocket",
		},
	}
}

func nodeRoutes() []Route {
	return []Route{
		{
			Name: "nodes.list", Method: http.MethodGet, Pattern: "/v1/nodes", Verb: VerbWall, Kind: ObjectNode, From: FromKind, Blocking: true,
			Query:    listParams(Param{"text", "string", "only nodes whose name holds this text, in capitals or not, or whose id begins with it"}),
			Response: NodeList{}, Summary: "List nodes",
		},
		{
			Name: "nodes.read", Method: http.MethodGet, Pattern: "/v1/nodes/{id}", Verb: VerbRead, Kind: ObjectNode, From: FromNode, Blocking: true,
			Query: blockingParams(), Response: NodeDetail{}, Summary: "Read one node; id, unique id prefix or name",
		},
		{
			Name: "nodes.available", Method: http.MethodPost, Pattern: "/v1/nodes/available", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody,
			Request: JobRequest{}, Response: Available{}, Summary: "Which nodes could a job use, what is used of them and by whom, and how much is waited for",
		},
		{
			Name: "machines.list", Method: http.MethodGet, Pattern: "/v1/machines", Verb: VerbList, Kind: ObjectNode, From: FromKind, Blocking: true,
			Query:    blockingParams(Param{"pool", "string", "only machines of this pool"}),
			Response: MachineList{}, Summary: "List the machines that a VIP job may choose: free ones first, and what runs on the others",
		},
		{
			Name: "devices.list", Method: http.MethodGet, Pattern: "/v1/devices", Verb: VerbList, Kind: ObjectNode, From: FromKind,
			Query: []Param{
				{"node", "string", "only the node of this id or name"},
				{"pool", "string", "only nodes of this pool"},
				{"limit", "integer", "at most so many nodes, 1 to 1000; 100 unless told"},
				{"after", "string", "the cursor `next` of the page before"},
			},
			Response: DeviceList{}, Summary: "List the nodes with their cards: owner, health and what they measure now",
		},
		{
			Name: "nodes.devices", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/devices", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
			Response: NodeDevices{}, Summary: "Read the cards of one node: owner, health and what they measure now",
		},
		{
			Name: "nodes.past", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/figures", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
			Query: []Param{
				{"device", "string", "only this card: its id, a unique beginning of it, or its number"},
				{"since", "string", "how far back, such as 6h; 24h unless told, and at most"},
				{"points", "integer", "at most so many values of each figure, 1 to 1440; 240 unless told"},
			},
			Response: NodeHistory{}, Summary: "What a node and its cards measured during the last day; the node keeps it",
		},
		{
			Name: "nodes.events", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/events", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
			Query:    []Param{{"device", "string", "only what happened to this card: its id, a unique beginning of it, or its number"}},
			Response: EventList{}, Summary: "What happened to a node and its cards lately, as far back as servers keep events",
		},
		{
			Name: "nodes.treat_device", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/devices", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
			Request: DeviceTreatRequest{}, Response: DeviceTreated{}, Summary: "Clear the faults of a card by an operator's word, reset it, or keep new work from it",
		},
		{
			Name: "wall.share", Method: http.MethodPost, Pattern: "/v1/wall/shares", Verb: VerbShare, Kind: ObjectNode, From: FromKind,
			Request: ShareRequest{}, Response: NewShare{}, Summary: "Make a link that shows the wall of cards, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it",
		},
		{
			Name: "wall.shares", Method: http.MethodGet, Pattern: "/v1/wall/shares", Verb: VerbShare, Kind: ObjectNode, From: FromKind,
			Response: ShareList{}, Summary: "List the links that show the wall of cards and are not over",
		},
		{
			Name: "nodes.drain", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/drain", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
			Request: DrainRequest{}, Response: Changed{}, Summary: "Move work away from a node and give it no more",
		},
		{
			Name: "nodes.remove", Method: http.MethodDelete, Pattern: "/v1/nodes/{id}", Verb: VerbDelete, Kind: ObjectNode, From: FromNode,
			Response: Changed{}, Summary: "Shut a node out of the cluster at once and forget it: its certificate is refused everywhere and never renewed",
		},
		{
			Name: "nodes.cordon", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/cordon", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
			Response: Changed{}, Summary: "Give a node no new work; what runs goes on",
		},
		{
			Name: "nodes.uncordon", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/uncordon", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
			Response: Changed{}, Summary: "Let a node take work again",
		},
	}
}

func tokenRoutes() []Route {
	return []Route{
		{
			Name: "session.create", Method: http.MethodPost, Pattern: "/v1/session", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
			Request: SessionRequest{}, Response: Session{}, Summary: "Sign a browser in: exchange a token for a cookie that no script can read",
		},
		{
			Name: "session.delete", Method: http.MethodDelete, Pattern: "/v1/session", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
			Response: SessionEnded{}, Summary: "Sign a browser out",
		},
		{
			Name: "tokens.bootstrap", Method: http.MethodPost, Pattern: "/v1/tokens/bootstrap", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
			Request: BootstrapRequest{}, Response: NewToken{}, Summary: "Make the first management token, once, with the setup secret",
		},
		{
			Name: "tokens.list", Method: http.MethodGet, Pattern: "/v1/tokens", Verb: VerbList, Kind: ObjectToken, From: FromKind,
			Query: listParams(), Response: TokenList{}, Summary: "List tokens; secrets are never shown",
		},
		{
			Name: "tokens.create", Method: http.MethodPost, Pattern: "/v1/tokens", Verb: VerbWrite, Kind: ObjectToken, From: FromKind,
			Request: TokenRequest{}, Response: NewToken{}, Summary: "Make a token; its secret is shown this once",
		},
		{
			Name: "tokens.self", Method: http.MethodGet, Pattern: "/v1/tokens/self", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
			Response: structs.Token{}, Summary: "Read the token that the request carries",
		},
		{
			Name: "tokens.read", Method: http.MethodGet, Pattern: "/v1/tokens/{id}", Verb: VerbRead, Kind: ObjectToken, From: FromToken,
			Response: structs.Token{}, Summary: "Read one token",
		},
		{
			Name: "tokens.delete", Method: http.MethodDelete, Pattern: "/v1/tokens/{id}", Verb: VerbDelete, Kind: ObjectToken, From: FromToken,
			Response: Changed{}, Summary: "Revoke a token",
		},
		{
			Name: "join_tokens.list", Method: http.MethodGet, Pattern: "/v1/join-tokens", Verb: VerbList, Kind: ObjectJoinToken, From: FromKind,
			Response: JoinTokenList{}, Summary: "List join tokens; secrets are never shown",
		},
		{
			Name: "join_tokens.create", Method: http.MethodPost, Pattern: "/v1/join-tokens", Verb: VerbWrite, Kind: ObjectJoinToken, From: FromKind,
			Request: JoinTokenRequest{}, Response: NewJoinToken{}, Summary: "Make a join token for new agents",
		},
		{
			Name: "join_tokens.delete", Method: http.MethodDelete, Pattern: "/v1/join-tokens/{id}", Verb: VerbDelete, Kind: ObjectJoinToken, From: FromKind,
			Response: Changed{}, Summary: "Revoke a join token",
		},
	}
}

func clusterRoutes() []Route {
	return []Route{
		{
			Name: "servers.list", Method: http.MethodGet, Pattern: "/v1/servers", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
			Response: MemberList{}, Summary: "List the agents that gossip knows",
		},
		{
			Name: "servers.join", Method: http.MethodPost, Pattern: "/v1/servers/join", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
			Request: ServersJoinRequest{}, Response: ServersJoined{}, Summary: "Tell this agent's gossip of further addresses",
		},
		{
			Name: "operator.raft_peers", Method: http.MethodGet, Pattern: "/v1/operator/raft/peers", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
			Response: RaftPeerList{}, Summary: "List the Raft peers",
		},
		{
			Name: "operator.raft_remove_peer", Method: http.MethodDelete, Pattern: "/v1/operator/raft/peers/{id}", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
			Response: Changed{}, Summary: "Remove a Raft peer; it stays out until it is let back in",
		},
		{
			Name: "operator.raft_add_peer", Method: http.MethodPut, Pattern: "/v1/operator/raft/peers/{id}", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
			Response: Changed{}, Summary: "Let a removed server back in",
		},
		{
			Name: "operator.keys", Method: http.MethodGet, Pattern: "/v1/operator/keys/{id}", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
			Response: Keys{}, Summary: "Fingerprints of a key that all agents share (gossip), or of the certificates of the CA (ca), how far its rotation is, and which agent holds which",
		},
		{
			Name: "operator.keys_rotate", Method: http.MethodPost, Pattern: "/v1/operator/keys/{id}/rotate", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
			Query:    []Param{{"revoke", "boolean", "of the CA: its key may be in other hands, so nobody follows from it to the new one"}},
			Response: Keys{}, Summary: "Begin to replace a key that all agents share; while that is under way, tell how far it is",
		},
		{
			Name: "operator.autopilot", Method: http.MethodGet, Pattern: "/v1/operator/autopilot", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
			Response: AutopilotHealth{}, Summary: "Health of the servers, and how many may fail",
		},
		{
			Name: "operator.snapshot_save", Method: http.MethodGet, Pattern: "/v1/operator/snapshot", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Stream: StreamBinary,
			Query:   []Param{{"stale", "boolean", "what this server has applied, without asking the leader"}},
			Summary: "Download a snapshot of the whole state",
		},
		{
			Name: "operator.snapshot_restore", Method: http.MethodPut, Pattern: "/v1/operator/snapshot", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Upload: true,
			Query:    []Param{{"foreign", "boolean", "also one of another cluster, whose place this one takes"}},
			Response: Changed{}, Summary: "Replace the whole state by a snapshot",
		},
		{
			Name: "operator.snapshot_inspect", Method: http.MethodPost, Pattern: "/v1/operator/snapshot/inspect", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Upload: true,
			Response: SnapshotMeta{}, Summary: "Check a snapshot and tell what is in it",
		},
	}
}

func agentRoutes() []Route {
	return []Route{
		{
			Name: "agent.health", Method: http.MethodGet, Pattern: "/v1/agent/health", Verb: VerbHealth, Kind: ObjectCluster, From: FromKind,
			Response: Health{}, Summary: "Whether this agent can do its work",
		},
		{
			Name: "agent.self", Method: http.MethodGet, Pattern: "/v1/agent/self", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
			Response: AgentSelf{}, Summary: "This agent's configuration, secrets left out",
		},
		{
			Name: "agent.join", Method: http.MethodPost, Pattern: "/v1/agent/join", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
			Request: JoinRequest{}, Response: Joined{}, Summary: "Let a new agent in, with a join token's secret and a certificate request",
		},
		{
			Name: "agent.renew", Method: http.MethodPost, Pattern: "/v1/agent/renew", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
			Request: RenewRequest{}, Response: Renewed{}, Summary: "Renew the certificate of a node that has expired, against the proof that the node holds its key",
		},
		{
			Name: "metrics", Method: http.MethodGet, Pattern: "/metrics", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind, Stream: StreamText,
			Summary: "Metrics for Prometheus",
		},
		{
			Name: "openapi", Method: http.MethodGet, Pattern: "/v1/openapi.json", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
			Response: map[string]any{}, Summary: "This document",
		},
	}
}
