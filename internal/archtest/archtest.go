// Package archtest keeps the floor plan: imports point downward only, pure
// rooms touch neither clock nor chance, and every package says what it is.
//
// Flow: the rules are data, each with the reason that a failing test prints;
// the test reads the source files of the module.
//
// Limits: it sees imports and package clauses, not what code does with them.
package archtest

// Room is a package, or a tree of packages, on a storey of the house.
type Room struct {
	Path   string // import path below the module; a trailing "/..." takes the tree
	Storey int
}

// House is the floor plan of DESIGN: a package may import packages of lower
// storeys, and of its own tree, and no others.
func House() []Room {
	return []Room{
		{"nomadlike/structs/...", 0},
		{"internal/...", 0},
		{"ui", 0},
		{"website", 0},
		{"website/examples/monitoring", 0},
		{"nomadlike/wire", 1},
		{"nomadlike/predict", 1},
		{"nomadlike/faults", 1},
		{"nomadlike/load", 1},
		{"nomadlike/placement/...", 1},
		{"nomadlike/audit/...", 1},
		{"nomadlike/preview", 1},
		{"nomadlike/tree", 1}, // the same bytes for laptop, server and node: none of them owns what a tree is
		{"nomadlike/codestore", 2},
		{"nomadlike/repository", 2},
		{"nomadlike/parcel", 2}, // what travels between clusters: laptops write it, and anything may read it
		{"nomadlike/taskport", 2},
		{"nomadlike/state", 2},
		{"nomadlike/history/...", 2},
		{"nomadlike/scheduler", 2},
		{"nomadlike/auth", 2},
		{"nomadlike/auth/oidc", 3},
		{"jobspec", 2},
		{"jobspec/importer", 3},
		{"nomadlike/launch", 2},
		{"plugins/driver/...", 2},
		{"plugins/device/...", 2},
		{"nomadlike/forecast", 3},
		{"nomadlike/consensus", 3},
		{"plugins/host", 3},
		{"plugins/exec/...", 3},
		{"plugins/docker/...", 3},
		{"plugins/nvidia/...", 3},
		{"plugins/amd/...", 3},
		{"plugins/ascend/...", 3},
		{"plugins/cambricon/...", 3},
		{"nomadlike/gossip", 3},
		{"nomadlike/notify/...", 3},
		{"nomadlike/rpc", 3},
		{"nomadlike/api", 3},
		{"nomadlike/server", 4},
		{"nomadlike/client/...", 4},
		{"nomadlike/sim/...", 5},
		{"agent/...", 6},
		{"command", 7},
		{"", 8}, // main.go
	}
}

// Ban forbids an import, or the use of a function, to some rooms.
type Ban struct {
	Rooms  []string // import paths below the module
	Import string   // import path, or "" when Calls is set
	Calls  []string // package.Function
	Reason string
}

// Bans lists what storeys alone do not say.
func Bans() []Ban {
	pure := []string{
		"nomadlike/structs", "nomadlike/structs/capacity", "nomadlike/scheduler", "nomadlike/launch", "nomadlike/predict", "nomadlike/load", "nomadlike/placement", "nomadlike/placement/feasible",
		"jobspec/importer", "nomadlike/forecast", "nomadlike/faults", "nomadlike/state", "nomadlike/auth", "nomadlike/audit", "nomadlike/history", "nomadlike/notify",
	}
	return []Ban{
		{
			Rooms: pure, Calls: []string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker"},
			Reason: "what decides is a function of (state, input, now, seed); the clock enters at a door",
		},
		{Rooms: pure, Import: "math/rand", Reason: "chance enters as a seed or a reader, never from a global source"},
		{Rooms: withoutAuth(pure), Import: "log/slog", Reason: "pure rooms return explanations; they do not log"},
		{Rooms: pure, Import: "net/http", Reason: "pure rooms touch no network"},
		{Rooms: pure, Import: "os/exec", Reason: "pure rooms start no processes"},
		{
			Rooms: []string{"plugins/exec/supervisor"}, Import: "google.golang.org/grpc",
			Reason: "the supervisor runs once for each task: it must start in a millisecond and stay small",
		},
		{
			Rooms: []string{"nomadlike/structs"}, Import: "nomadlike/nomadlike/wire",
			Reason: "nouns do not know their bytes",
		},
	}
}

// withoutAuth leaves out auth, whose secrets implement slog.LogValuer so that
// they cannot be logged.
func withoutAuth(rooms []string) []string {
	var rest []string
	for _, room := range rooms {
		if room != "nomadlike/auth" {
			rest = append(rest, room)
		}
	}
	return rest
}
