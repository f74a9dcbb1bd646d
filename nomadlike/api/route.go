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
	VerbExtend        Verb = "extend"
	VerbNotify        Verb = "notify"
	VerbList          Verb = "list"
	VerbRead          Verb = "read"
	VerbCeilings      Verb = "ceilings"
	VerbSubmit        Verb = "submit"
	VerbStop          Verb = "stop"
	VerbControl       Verb = "control"
	VerbDelete        Verb = "delete"
	VerbWrite         Verb = "write"
	VerbPriority      Verb = "priority"
	VerbTimeLimit     Verb = "time-limit"
	VerbAnnotate      Verb = "annotate"
	VerbConsent       Verb = "consent"
	VerbMove          Verb = "move"
	VerbMembers       Verb = "members"
	VerbProfile       Verb = "profile"
	VerbWhatIf        Verb = "what_if"
	VerbLogs          Verb = "logs"
	VerbShare         Verb = "share"
	VerbWall          Verb = "wall"
	VerbExec          Verb = "exec"
	VerbDrain         Verb = "drain"
	VerbOperatorRead  Verb = "operator-read"
	VerbOperatorWrite Verb = "operator-write"
	VerbSnapshot      Verb = "snapshot"
	VerbAudit         Verb = "audit"
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
	ObjectUser      ObjectKind = "user"
	ObjectSecret    ObjectKind = "secret"
	ObjectTemplate  ObjectKind = "template"
	ObjectData      ObjectKind = "data"
	ObjectService   ObjectKind = "service-account"
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
	FromUser       Source = "user"       // the account named by {id}, whether or not it is there
	FromSecret     Source = "secret"     // the secret named by {id}, whether or not it is there
	FromTemplate   Source = "template"   // the template named by {id}, whether or not it is there
	FromService    Source = "service"    // the service account named by {id}, whether or not it is there
	FromData       Source = "data"       // the named data of {id}, whether or not it is there
	FromCode       Source = "code"       // a job that names the code of {id}, in the request's project; without {id} a job of the caller's own
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
	Question bool // it changes nothing, whatever its method
	Blocking bool // takes index and wait
	Summary  string
}

// Mutates reports whether the route changes anything.
func (r Route) Mutates() bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodOptions
}

// Routes is every route of the API, in the order of the documentation. The
// caller owns the slice.
func Routes() []Route {
	var routes []Route
	routes = append(routes, jobRoutes()...)
	routes = append(routes, jobStoryRoutes()...)
	routes = append(routes, metricRoutes()...)
	routes = append(routes, trialRoutes()...)
	routes = append(routes, templateRoutes()...)
	routes = append(routes, fileRoutes()...)
	routes = append(routes, codeRoutes()...)
	routes = append(routes, dataRoutes()...)
	routes = append(routes, dataBytesRoutes()...)
	routes = append(routes, dataTreeRoutes()...)
	routes = append(routes, dataFilesRoutes()...)
	routes = append(routes, queueRoutes()...)
	routes = append(routes, forecastRoutes()...)
	routes = append(routes, allocationRoutes()...)
	routes = append(routes, nodeRoutes()...)
	routes = append(routes, imageRoutes()...)
	routes = append(routes, maintenanceRoutes()...)
	routes = append(routes, poolRoutes()...)
	routes = append(routes, userRoutes()...)
	routes = append(routes, loginRoutes()...)
	routes = append(routes, secretRoutes()...)
	routes = append(routes, serviceAccountRoutes()...)
	routes = append(routes, notifyRoutes()...)
	routes = append(routes, settingsRoutes()...)
	routes = append(routes, tokenRoutes()...)
	routes = append(routes, clusterRoutes()...)
	routes = append(routes, auditRoutes()...)
	routes = append(routes, reportRoutes()...)
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

// The endpoints of queue routes.
var (
	QueueRead = endpoint[None, Queue](Route{
		Name: "queue.read", Method: http.MethodGet, Pattern: "/v1/queue", Verb: VerbList, Kind: ObjectQueue, From: FromKind, Blocking: true,
		Query: listParams(
			Param{"pool", "string", "only jobs that wait for this pool: that name it, or name none and could run there"},
			Param{"project", "string", "only jobs of this project"},
			Param{"forecast", "boolean", "tell for each when it starts"}),
		Summary: "What waits, in order, and why",
	})
)

func queueRoutes() []Route {
	return []Route{
		QueueRead.route,
	}
}

// The endpoints of allocation routes.
var (
	AllocationsRead = endpoint[None, structs.Allocation](Route{
		Name: "allocations.read", Method: http.MethodGet, Pattern: "/v1/allocations/{id}", Verb: VerbRead, Kind: ObjectJob, From: FromAllocation, Blocking: true,
		Query: blockingParams(), Summary: "Read one allocation",
	})
	AllocationsLogs = endpoint[None, None](Route{
		Name: "allocations.logs", Method: http.MethodGet, Pattern: "/v1/allocations/{id}/logs", Verb: VerbLogs, Kind: ObjectJob, From: FromAllocation, Stream: StreamText,
		Query: []Param{
			{"stream", "string", "stdout (default), stderr or hooks"},
			{"offset", "integer", "first byte; negative counts from the end"},
			{"tail", "integer", "only so many last lines"},
			{"follow", "boolean", "stay for what is still to come"},
			{"times", "boolean", "when each line was printed, before it; - where that is not known"},
		},
		Summary: "Read what a task printed",
	})
	AllocationsCommit = endpoint[CommitRequest, Committed](Route{
		Name: "allocations.commit", Method: http.MethodPost, Pattern: "/v1/allocations/{id}/commit", Verb: VerbExec, Kind: ObjectJob, From: FromAllocation,
		Summary: "Keep the container of a running task as an image on its node, and send it to a registry where one is named",
	})
	AllocationsPage = endpoint[TaskPageRequest, TaskPage](Route{
		Name: "allocations.page", Method: http.MethodPost, Pattern: "/v1/allocations/{id}/page", Verb: VerbExec, Kind: ObjectJob, From: FromAllocation,
		Summary: "Where a browser sees what a task serves on one of its ports",
	})
	AllocationsExec = endpoint[None, None](Route{
		Name: "allocations.exec", Method: http.MethodGet, Pattern: "/v1/allocations/{id}/exec", Verb: VerbExec, Kind: ObjectJob, From: FromAllocation, Stream: StreamWebsocket,
		Summary: "Run a command inside a task, over a websocket",
	})
)

func allocationRoutes() []Route {
	return []Route{
		AllocationsRead.route,
		AllocationsLogs.route,
		AllocationsCommit.route,
		AllocationsPage.route,
		AllocationsExec.route,
	}
}

// The endpoints of node routes.
var (
	NodesList = endpoint[None, NodeList](Route{
		Name: "nodes.list", Method: http.MethodGet, Pattern: "/v1/nodes", Verb: VerbWall, Kind: ObjectNode, From: FromKind, Blocking: true,
		Query:   listParams(Param{"text", "string", "only nodes whose name holds this text, in capitals or not, or whose id begins with it"}),
		Summary: "List nodes",
	})
	NodesRead = endpoint[None, NodeDetail](Route{
		Name: "nodes.read", Method: http.MethodGet, Pattern: "/v1/nodes/{id}", Verb: VerbRead, Kind: ObjectNode, From: FromNode, Blocking: true,
		Query: blockingParams(), Summary: "Read one node; id, unique id prefix or name",
	})
	NodesAvailable = endpoint[JobRequest, Available](Route{
		Name: "nodes.available", Method: http.MethodPost, Pattern: "/v1/nodes/available", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "Which nodes could a job use, what is used of them and by whom, and how much is waited for",
	})
	MachinesList = endpoint[None, MachineList](Route{
		Name: "machines.list", Method: http.MethodGet, Pattern: "/v1/machines", Verb: VerbList, Kind: ObjectNode, From: FromKind, Blocking: true,
		Query:   blockingParams(Param{"pool", "string", "only machines of this pool"}),
		Summary: "List the machines that a VIP job may choose: free ones first, and what runs on the others",
	})
	DevicesList = endpoint[None, DeviceList](Route{
		Name: "devices.list", Method: http.MethodGet, Pattern: "/v1/devices", Verb: VerbList, Kind: ObjectNode, From: FromKind,
		Query: []Param{
			{"node", "string", "only the node of this id or name"},
			{"pool", "string", "only nodes of this pool"},
			{"limit", "integer", "at most so many nodes, 1 to 1000; 100 unless told"},
			{"after", "string", "the cursor `next` of the page before"},
		},
		Summary: "List the nodes with their cards: owner, health and what they measure now",
	})
	NodesDevices = endpoint[None, NodeDevices](Route{
		Name: "nodes.devices", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/devices", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
		Summary: "Read the cards of one node: owner, health and what they measure now",
	})
	NodesPast = endpoint[None, NodeHistory](Route{
		Name: "nodes.past", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/figures", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
		Query: []Param{
			{"device", "string", "only this card: its id, a unique beginning of it, or its number"},
			{"since", "string", "how far back, such as 6h; 24h unless told, and at most"},
			{"points", "integer", "at most so many values of each figure, 1 to 1440; 240 unless told"},
		},
		Summary: "What a node and its cards measured during the last day; the node keeps it",
	})
	NodesEvents = endpoint[None, EventList](Route{
		Name: "nodes.events", Method: http.MethodGet, Pattern: "/v1/nodes/{id}/events", Verb: VerbRead, Kind: ObjectNode, From: FromNode,
		Query:   []Param{{"device", "string", "only what happened to this card: its id, a unique beginning of it, or its number"}},
		Summary: "What happened to a node and its cards lately, as far back as servers keep events",
	})
	NodesTreatDevice = endpoint[DeviceTreatRequest, DeviceTreated](Route{
		Name: "nodes.treat_device", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/devices", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
		Summary: "Clear the faults of a card by an operator's word, reset it, or keep new work from it",
	})
	WallShare = endpoint[ShareRequest, NewShare](Route{
		Name: "wall.share", Method: http.MethodPost, Pattern: "/v1/wall/shares", Verb: VerbShare, Kind: ObjectNode, From: FromKind,
		Summary: "Make a link that shows the wall of cards, read-only and for a time, to whoever has it; DELETE /v1/tokens/{id} ends it",
	})
	WallShares = endpoint[None, ShareList](Route{
		Name: "wall.shares", Method: http.MethodGet, Pattern: "/v1/wall/shares", Verb: VerbShare, Kind: ObjectNode, From: FromKind,
		Summary: "List the links that show the wall of cards and are not over",
	})
	NodesDrain = endpoint[DrainRequest, Changed](Route{
		Name: "nodes.drain", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/drain", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
		Summary: "Move work away from a node and give it no more",
	})
	NodesRemove = endpoint[None, Changed](Route{
		Name: "nodes.remove", Method: http.MethodDelete, Pattern: "/v1/nodes/{id}", Verb: VerbDelete, Kind: ObjectNode, From: FromNode,
		Summary: "Shut a node out of the cluster at once and forget it: its certificate is refused everywhere and never renewed",
	})
	NodesCordon = endpoint[None, Changed](Route{
		Name: "nodes.cordon", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/cordon", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
		Summary: "Give a node no new work; what runs goes on",
	})
	NodesUncordon = endpoint[None, Changed](Route{
		Name: "nodes.uncordon", Method: http.MethodPost, Pattern: "/v1/nodes/{id}/uncordon", Verb: VerbDrain, Kind: ObjectNode, From: FromNode,
		Summary: "Let a node take work again",
	})
)

func nodeRoutes() []Route {
	return []Route{
		NodesList.route,
		NodesRead.route,
		NodesAvailable.route,
		MachinesList.route,
		DevicesList.route,
		NodesDevices.route,
		NodesPast.route,
		NodesEvents.route,
		NodesTreatDevice.route,
		WallShare.route,
		WallShares.route,
		NodesDrain.route,
		NodesRemove.route,
		NodesCordon.route,
		NodesUncordon.route,
	}
}

// The endpoints of token routes.
var (
	SessionCreate = endpoint[SessionRequest, Session](Route{
		Name: "session.create", Method: http.MethodPost, Pattern: "/v1/session", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Sign a browser in: exchange a token for a cookie that no script can read",
	})
	SessionDelete = endpoint[None, SessionEnded](Route{
		Name: "session.delete", Method: http.MethodDelete, Pattern: "/v1/session", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Sign a browser out",
	})
	TokensBootstrap = endpoint[BootstrapRequest, NewToken](Route{
		Name: "tokens.bootstrap", Method: http.MethodPost, Pattern: "/v1/tokens/bootstrap", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Make the first management token, once, with the setup secret",
	})
	TokensList = endpoint[None, TokenList](Route{
		Name: "tokens.list", Method: http.MethodGet, Pattern: "/v1/tokens", Verb: VerbList, Kind: ObjectToken, From: FromKind,
		Query: listParams(), Summary: "List tokens; secrets are never shown",
	})
	TokensCreate = endpoint[TokenRequest, NewToken](Route{
		Name: "tokens.create", Method: http.MethodPost, Pattern: "/v1/tokens", Verb: VerbWrite, Kind: ObjectToken, From: FromKind,
		Summary: "Make a token; its secret is shown this once",
	})
	TokensSelf = endpoint[None, structs.Token](Route{
		Name: "tokens.self", Method: http.MethodGet, Pattern: "/v1/tokens/self", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
		Summary: "Read the token that the request carries",
	})
	TokensRead = endpoint[None, structs.Token](Route{
		Name: "tokens.read", Method: http.MethodGet, Pattern: "/v1/tokens/{id}", Verb: VerbRead, Kind: ObjectToken, From: FromToken,
		Summary: "Read one token",
	})
	TokensDelete = endpoint[None, TokenDeleted](Route{
		Name: "tokens.delete", Method: http.MethodDelete, Pattern: "/v1/tokens/{id}", Verb: VerbDelete, Kind: ObjectToken, From: FromToken,
		Summary: "Revoke a token",
	})
	JoinTokensList = endpoint[None, JoinTokenList](Route{
		Name: "join_tokens.list", Method: http.MethodGet, Pattern: "/v1/join-tokens", Verb: VerbList, Kind: ObjectJoinToken, From: FromKind,
		Summary: "List join tokens; secrets are never shown",
	})
	JoinTokensCreate = endpoint[JoinTokenRequest, NewJoinToken](Route{
		Name: "join_tokens.create", Method: http.MethodPost, Pattern: "/v1/join-tokens", Verb: VerbWrite, Kind: ObjectJoinToken, From: FromKind,
		Summary: "Make a join token for new agents",
	})
	JoinTokensDelete = endpoint[None, Changed](Route{
		Name: "join_tokens.delete", Method: http.MethodDelete, Pattern: "/v1/join-tokens/{id}", Verb: VerbDelete, Kind: ObjectJoinToken, From: FromKind,
		Summary: "Revoke a join token",
	})
)

func tokenRoutes() []Route {
	return []Route{
		SessionCreate.route,
		SessionDelete.route,
		TokensBootstrap.route,
		TokensList.route,
		TokensCreate.route,
		TokensSelf.route,
		TokensRead.route,
		TokensDelete.route,
		JoinTokensList.route,
		JoinTokensCreate.route,
		JoinTokensDelete.route,
	}
}

// The endpoints of cluster routes.
var (
	ServersList = endpoint[None, MemberList](Route{
		Name: "servers.list", Method: http.MethodGet, Pattern: "/v1/servers", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "List the agents that gossip knows",
	})
	ServersJoin = endpoint[ServersJoinRequest, ServersJoined](Route{
		Name: "servers.join", Method: http.MethodPost, Pattern: "/v1/servers/join", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
		Summary: "Tell this agent's gossip of further addresses",
	})
	OperatorRaftPeers = endpoint[None, RaftPeerList](Route{
		Name: "operator.raft_peers", Method: http.MethodGet, Pattern: "/v1/operator/raft/peers", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "List the Raft peers",
	})
	OperatorRaftRemovePeer = endpoint[None, Changed](Route{
		Name: "operator.raft_remove_peer", Method: http.MethodDelete, Pattern: "/v1/operator/raft/peers/{id}", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
		Summary: "Remove a Raft peer; it stays out until it is let back in",
	})
	OperatorRaftAddPeer = endpoint[None, Changed](Route{
		Name: "operator.raft_add_peer", Method: http.MethodPut, Pattern: "/v1/operator/raft/peers/{id}", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
		Summary: "Let a removed server back in",
	})
	OperatorKeys = endpoint[None, Keys](Route{
		Name: "operator.keys", Method: http.MethodGet, Pattern: "/v1/operator/keys/{id}", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "Fingerprints of a key that all agents share (gossip), or of the certificates of the CA (ca), how far its rotation is, and which agent holds which",
	})
	OperatorKeysRotate = endpoint[None, Keys](Route{
		Name: "operator.keys_rotate", Method: http.MethodPost, Pattern: "/v1/operator/keys/{id}/rotate", Verb: VerbOperatorWrite, Kind: ObjectCluster, From: FromKind,
		Query:   []Param{{"revoke", "boolean", "of the CA: its key may be in other hands, so nobody follows from it to the new one"}},
		Summary: "Begin to replace a key that all agents share; while that is under way, tell how far it is",
	})
	OperatorAutopilot = endpoint[None, AutopilotHealth](Route{
		Name: "operator.autopilot", Method: http.MethodGet, Pattern: "/v1/operator/autopilot", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "Health of the servers, and how many may fail",
	})
	OperatorSnapshotSave = endpoint[None, None](Route{
		Name: "operator.snapshot_save", Method: http.MethodGet, Pattern: "/v1/operator/snapshot", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Stream: StreamBinary,
		Query:   []Param{{"stale", "boolean", "what this server has applied, without asking the leader"}},
		Summary: "Download a snapshot of the whole state",
	})
	OperatorSnapshotRestore = endpoint[None, Changed](Route{
		Name: "operator.snapshot_restore", Method: http.MethodPut, Pattern: "/v1/operator/snapshot", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Upload: true,
		Query:   []Param{{"foreign", "boolean", "also one of another cluster, whose place this one takes"}},
		Summary: "Replace the whole state by a snapshot",
	})
	OperatorSnapshotInspect = endpoint[None, SnapshotMeta](Route{
		Name: "operator.snapshot_inspect", Method: http.MethodPost, Pattern: "/v1/operator/snapshot/inspect", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Upload: true, Question: true,
		Summary: "Check a snapshot and tell what is in it",
	})
)

// OperatorDebug is the endpoint of one part of a debug archive.
var OperatorDebug = endpoint[None, None](Route{
	Name: "operator.debug", Method: http.MethodGet, Pattern: "/v1/operator/debug", Verb: VerbSnapshot, Kind: ObjectCluster, From: FromKind, Stream: StreamBinary,
	Query: []Param{
		{"part", "string", "agent.json, metrics.txt, goroutines.txt, heap.pprof, cpu.pprof or agent.log"},
		{"server", "string", "id of the server that is asked; the one that answers unless told"},
		{"span", "string", "how long cpu.pprof looks, 5s unless told, at most 1m"},
	},
	Summary: "How a server is from inside, without secrets: its configuration, metrics, profiles and newest log lines",
})

func clusterRoutes() []Route {
	return []Route{
		ServersList.route,
		ServersJoin.route,
		OperatorRaftPeers.route,
		OperatorRaftRemovePeer.route,
		OperatorRaftAddPeer.route,
		OperatorKeys.route,
		OperatorKeysRotate.route,
		OperatorAutopilot.route,
		OperatorSnapshotSave.route,
		OperatorSnapshotRestore.route,
		OperatorSnapshotInspect.route,
		OperatorDebug.route,
	}
}

// The endpoints of agent routes.
var (
	AgentHealth = endpoint[None, Health](Route{
		Name: "agent.health", Method: http.MethodGet, Pattern: "/v1/agent/health", Verb: VerbHealth, Kind: ObjectCluster, From: FromKind,
		Summary: "Whether this agent can do its work",
	})
	HealthLive = endpoint[None, Probe](Route{
		Name: "health.live", Method: http.MethodGet, Pattern: "/v1/health/live", Verb: VerbHealth, Kind: ObjectCluster, From: FromKind,
		Summary: "Whether this agent answers at all: one that does not is to be started anew",
	})
	HealthReady = endpoint[None, Probe](Route{
		Name: "health.ready", Method: http.MethodGet, Pattern: "/v1/health/ready", Verb: VerbHealth, Kind: ObjectCluster, From: FromKind,
		Summary: "Whether requests should be sent to this agent",
	})
	HealthLeader = endpoint[None, Probe](Route{
		Name: "health.leader", Method: http.MethodGet, Pattern: "/v1/health/leader", Verb: VerbHealth, Kind: ObjectCluster, From: FromKind,
		Summary: "Whether this agent is the server that leads",
	})
	AgentSelfRead = endpoint[None, AgentSelf](Route{
		Name: "agent.self", Method: http.MethodGet, Pattern: "/v1/agent/self", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind,
		Summary: "This agent's configuration, secrets left out",
	})
	AgentJoin = endpoint[JoinRequest, Joined](Route{
		Name: "agent.join", Method: http.MethodPost, Pattern: "/v1/agent/join", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Let a new agent in, with a join token's secret and a certificate request",
	})
	AgentRenew = endpoint[RenewRequest, Renewed](Route{
		Name: "agent.renew", Method: http.MethodPost, Pattern: "/v1/agent/renew", Verb: VerbLogin, Kind: ObjectCluster, From: FromKind,
		Summary: "Renew the certificate of a node that has expired, against the proof that the node holds its key",
	})
	MetricsText = endpoint[None, None](Route{
		Name: "metrics", Method: http.MethodGet, Pattern: "/metrics", Verb: VerbOperatorRead, Kind: ObjectCluster, From: FromKind, Stream: StreamText,
		Summary: "Metrics for Prometheus",
	})
	OpenAPI = endpoint[None, map[string]any](Route{
		Name: "openapi", Method: http.MethodGet, Pattern: "/v1/openapi.json", Verb: VerbSelf, Kind: ObjectToken, From: FromCaller,
		Summary: "This document",
	})
)

func agentRoutes() []Route {
	return []Route{
		AgentHealth.route,
		HealthLive.route,
		HealthReady.route,
		HealthLeader.route,
		AgentSelfRead.route,
		AgentJoin.route,
		AgentRenew.route,
		MetricsText.route,
		OpenAPI.route,
	}
}
