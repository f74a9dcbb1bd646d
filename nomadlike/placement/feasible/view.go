package feasible

import (
	"nomadlike/nomadlike/structs"
)

// View is the newest state as feasibility reads it: state.Apply stands on its
// transaction, the scheduler on its board. What it hands out is not changed.
type View interface {
	// Node returns a node and what it holds, nil for an unknown node; a nil usage
	// holds nothing.
	Node(id string) (*structs.Node, *structs.Usage)
	// Pool returns a pool's record, nil when it has none.
	Pool(name string) *structs.Pool
	// Project returns a project's record, nil when it has none.
	Project(name string) *structs.Project
	// ProjectUsage returns what a project holds, nil for nothing.
	ProjectUsage(name string) *structs.ProjectUsage
}
