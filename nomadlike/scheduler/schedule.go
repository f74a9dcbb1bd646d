package scheduler

import (
	"nomadlike/nomadlike/structs"
)

// Limits of one plan, so that its log entry stays small. What is left over is
// taken by the next pass.
const (
	GangsMax = 512  // gangs of one plan
	RanksMax = 4096 // placements of one plan, a single larger gang excepted
	WaitsMax = 1024 // explanations of one plan
)

// ReservationsDefault is how many blocked gangs of a pool have a reserved start.
const ReservationsDefault = 4

// Input is what Schedule decides on.
type Input struct {
	Snapshot Snapshot
	Settings Settings
	Quiet    bool                   // as in Settings
	Jobs     []structs.SubjobChange // to be queued behind the snapshot's, to see what would become of them
}

// Schedule decides once: a new board, synced with the snapshot, makes one pass.
// A board that was kept and synced decides the same. Any goroutine may call it.
func Schedule(input Input, now structs.UnixNano, seed uint64) structs.Plan {
	settings := input.Settings
	settings.Quiet = settings.Quiet || input.Quiet
	b := NewBoard(settings)
	b.Sync(input.Snapshot)
	for _, c := range input.Jobs {
		b.Submit(c.Job, c.Subjob)
	}
	return b.Pass(now, seed)
}
