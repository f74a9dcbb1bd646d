package structs

// Changes is the difference between two states, as far as planning cares. The
// order within a list means nothing; a key may be listed though nothing about
// it changed. What it holds is shared and not to be changed.
type Changes struct {
	Full     bool // the lists are everything there is; what they leave out is gone
	Nodes    []NodeChange
	Subjobs  []SubjobChange
	Pools    []PoolChange
	Projects []ProjectChange
}

// NodeChange is a node whose record or usage changed.
type NodeChange struct {
	ID    string
	Node  *Node  // nil: gone
	Usage *Usage // nil: holds nothing
}

// SubjobChange is a subjob that changed in anything: its own row, its job's
// priority or time limit, its newest attempt (also RunningAt, CheckpointAt), or
// one of that attempt's allocations ceased to hold resources. Full lists those
// that have not ended; an ended or deleted one is listed when it was not before.
type SubjobChange struct {
	JobID   string
	Index   int
	Job     *Job          // nil: gone
	Subjob  *Subjob       // nil: gone
	Attempt *Attempt      // the newest, when it has not ended; nil while queued
	Allocs  []*Allocation // of Attempt, those that hold resources, by rank
}

// PoolChange is a pool whose record changed.
type PoolChange struct {
	Name string
	Pool *Pool // nil: gone
}

// ProjectChange is a project whose record or usage changed.
type ProjectChange struct {
	Name    string
	Project *Project      // nil: no record
	Usage   *ProjectUsage // nil: holds nothing and used nothing of late
}
