package structs

// Ground is the newest state as feasibility reads it: state.Apply stands on its
// transaction, the scheduler on its board. What it hands out is not changed.
type Ground interface {
	// Node gives a node and what it holds, nil for an unknown node; a nil usage
	// holds nothing.
	Node(id string) (*Node, *Usage)
	// Pool gives a pool's record, nil when it has none.
	Pool(name string) *Pool
	// Project gives a project's record, nil when it has none.
	Project(name string) *Project
	// ProjectUsage gives what a project holds, nil for nothing.
	ProjectUsage(name string) *ProjectUsage
}
