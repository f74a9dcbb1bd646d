package scheduler

import "nomadlike/nomadlike/structs"

// Snapshot is the newest state as a Board reads it; package state's snapshot
// satisfies it. What it hands out is shared: the board keeps it and never
// changes it. It is called from the goroutine of the board's owner only.
type Snapshot interface {
	// Index is the state's index; it becomes the plan's SnapshotIndex.
	Index() uint64
	// Changes lists what changed after the index since, so that a board that
	// stood at since stands at Index afterwards. When that is not known any more,
	// or since is 0, it lists everything and says so with Full.
	Changes(since uint64) structs.Changes
}
