package archtest

// MethodsMax bounds the methods of one type in a tree. Generated types do not count.
const MethodsMax = 25

// Tree is a package with rooms of its own below it. A room may import those that
// stand before it in Rooms, and no others of the tree.
type Tree struct {
	Path  string
	Rooms []string // below Path; "" is the package itself
}

// Trees lists the packages whose rooms have an order.
func Trees() []Tree {
	return []Tree{
		{
			Path: "nomadlike/client",
			Rooms: []string{
				"alloc", "checkpoint", "data", "data/remote", "diskquota", "envcheck", "fingerprint", "firewall", "layout", "metrics",
				"progress", "rankprocs", "rankshell", "taskssh", "retry", "secrets", "session", "words", "workspace", // of the tree they know nothing
				"code", "staging", "store", "objects", "history", "account", "machine", "loop",
				"room", "hooks", "environment", "devices", "hold", "service", "usage", "prepare", "watch",
				"run", "",
			},
		},
		{Path: "nomadlike/server", Rooms: []string{""}},
		{
			Path:  "plugins/driver",
			Rooms: []string{"proto", "tasklog", "taskproc", "taskside", "", "roster", "execstream", "driverplugin", "drivertest"},
		},
		{
			Path: "plugins/device",
			Rooms: []string{
				"clib", "fakelib", "guard", "pcie", "proto", // of the tree they know nothing
				"rdma", "", "devicetest", "leftover", "deviceplugin", "runtime", "card",
			},
		},
		{Path: "plugins/exec", Rooms: []string{"supervisor", "supervisor/cmd/task-supervisor", "supervisor/supervisortest", ""}},
		{Path: "plugins/docker", Rooms: []string{"registrytest", "taskinit", "taskinit/cmd/task-init", ""}},
		{Path: "plugins/nvidia", Rooms: []string{"nvmltest", "", "nvml"}},
		{Path: "plugins/amd", Rooms: []string{"", "amdsmi"}},
		{Path: "plugins/ascend", Rooms: []string{"dcmitest", "", "dcmi"}},
		{Path: "plugins/cambricon", Rooms: []string{"", "cndev"}},
		{Path: "agent", Rooms: []string{"directory", "config", "openapi", "httpapi/front", "httpapi/taskpages", "httpapi", ""}}, // it alone knows when a part opens and stops
		{Path: "agent/httpapi", Rooms: []string{"front", "taskpages", ""}},                                                      // a handler knows the door by its requests, the door no handler
		{Path: "agent/config", Rooms: []string{""}},                                                                             // what a setting comes to is one walk, and each use of it a visitor
	}
}

// Wall forbids an import that the order of rooms would allow.
type Wall struct {
	Room   string // import path below the module; a trailing "/..." takes the tree
	Not    string // import path below the module; a trailing "/..." takes the tree
	Reason string
}

// Walls lists the neighbours that may not know each other.
func Walls() []Wall {
	return []Wall{
		{"nomadlike/client/loop", "nomadlike/client/session", "the loop decides by what it was told, not by who is connected"},
		{"nomadlike/client/loop", "nomadlike/client/machine", "the loop knows allocations; the machine is a fact that rooms put before it"},
		{"nomadlike/client/watch", "nomadlike/client/prepare", "who watches a task does not make one"},
		{"nomadlike/client/watch", "nomadlike/client/usage", "a watch is told what a task uses by a method that it names"},
		{"nomadlike/client/watch", "nomadlike/client/hooks", "a watch runs nothing of the job's"},
		{"nomadlike/client/prepare", "nomadlike/client/devices", "a preparation asks for its devices by a method that it names"},
		{"nomadlike/client/prepare", "nomadlike/client/hold", "a preparation does not know what becomes of a failure"},
		{"nomadlike/client/prepare", "nomadlike/client/service", "what other agents ask is not the business of a start"},
		{"nomadlike/client/prepare", "nomadlike/client/usage", "nothing is measured before it runs"},
		{"nomadlike/client/hold", "nomadlike/client/hooks", "a debug hold has a record of its own: hooks may change without it"},
		{"nomadlike/client/hold", "nomadlike/client/devices", "a hold has its devices reaped by a method that it names"},
		{"nomadlike/client/service", "nomadlike/client/hold", "who enters a hold is let in by a method that service names"},
		{"nomadlike/client/service", "nomadlike/client/machine", "other agents are answered about allocations, not about the machine"},
		{"nomadlike/client/usage", "nomadlike/client/hold", "measuring changes nothing"},
		{"nomadlike/client/usage", "nomadlike/client/hooks", "measuring changes nothing"},
		{"agent/httpapi/...", "agent", "handlers answer requests: when an agent starts, joins and stops is not theirs to know"},
		{"agent/httpapi/...", "agent/config", "handlers are given what they need; where it was written down is the agent's business"},
		{"agent/httpapi/...", "nomadlike/consensus", "handlers put commands into the log by the server, and ask of the servers through membership"},
		{"agent/httpapi/...", "nomadlike/gossip", "whom gossip knows is a question to membership"},
		{"agent/httpapi/...", "nomadlike/client", "what a node knows is asked of it by a call, from whichever process"},
		{"agent/httpapi/front", "nomadlike/server", "the door judges requests, and knows no noun of the cluster but tokens"},
		{"nomadlike/client/...", "plugins/exec/...", "a node knows drivers by their contract alone"},
		{"nomadlike/client/...", "plugins/docker/...", "a node knows drivers by their contract alone"},
		{"nomadlike/client/...", "plugins/host", "a node does not know in which process a plugin runs"},
		{"nomadlike/server", "plugins/driver/...", "servers start nothing: they meet drivers in what nodes register"},
		{"nomadlike/server", "plugins/exec/...", "servers start nothing"},
		{"nomadlike/server", "plugins/device/...", "servers meet devices in what nodes register; the words for it are nouns"},
		{"nomadlike/server", "nomadlike/gossip", "who else is there is told to a server by a function"},
		{"nomadlike/server", "nomadlike/api", "a server takes commands and questions as values; HTTP is its handlers' business"},
		{"nomadlike/server", "jobspec", "a server takes jobs, not files"},
		{"nomadlike/server", "nomadlike/launch", "how a rank is started is for the node that starts it"},
		{"nomadlike/server", "nomadlike/placement/...", "what goes where is asked of the scheduler"},
		{"command", "nomadlike/launch", "the command line asks what the API answers, with a server or without"},
		{"nomadlike/server", "plugins/docker/...", "servers start nothing"},
		{"nomadlike/placement/feasible", "nomadlike/placement", "what may stand where does not depend on how it is searched"},
		{"nomadlike/tree", "nomadlike/wire", "a tree has a spelling of its own, which stays when the wire's changes: its digest is its name"},
		{"nomadlike/structs/capacity", "nomadlike/structs", "an amount knows no nouns: nouns say what their amounts are"},
		{"nomadlike/scheduler", "plugins/device/...", "the scheduler sees devices as nodes register them"},
		{"agent/config", "agent", "a configuration is read and checked before there is an agent"},
		{"agent/config", "agent/httpapi", "what an agent is told does not depend on how it is asked"},
		{"plugins/device/...", "plugins/host/...", "what a vendor's plugin is does not depend on which process it runs in"},
		{"plugins/device/card", "plugins/device/rdma", "what cards reach over the fabric is read by the runtime"},
		{"plugins/device/devicetest", "plugins/device/runtime", "the contract is met by plugins that are written without the runtime, too"},
		{"plugins/driver/drivertest", "plugins/driver/driverplugin", "the contract is the same inside of the agent and in a process of its own"},
		{"plugins/driver/execstream", "plugins/driver/proto", "a session of a terminal knows no transport"},
		{"plugins/exec/supervisor", "plugins/driver/execstream", "what lives with a task starts in a millisecond and stays small"},
		{"plugins/nvidia", "plugins/nvidia/nvml", "decisions about cards are tested without C"},
		{"plugins/exec/supervisor", "plugins/driver/roster", "a supervisor has one task and needs no list"},
		{"plugins/driver/roster", "plugins/driver/taskproc", "who keeps tasks by their ids does not know how they run"},
		{"plugins/exec/...", "plugins/docker/...", "drivers know nothing of each other"},
		{"plugins/docker/...", "plugins/exec/...", "drivers know nothing of each other"},
	}
}
