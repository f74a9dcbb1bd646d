package scheduler

import (
	"fmt"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// TestInvariantsSeeDamage breaks one thing of each part, and expects to be told.
func TestInvariantsSeeDamage(t *testing.T) {
	damages := map[string]func(b *Board){
		"queue: entry":    func(b *Board) { b.queue.freeEntry = append(b.queue.freeEntry, 0) },
		"queue: run":      func(b *Board) { b.queue.runs[0].entry++ },
		"are counted":     func(b *Board) { b.queue.partitions[0].queued++ },
		"stands behind":   func(b *Board) { g := b.queue.groups[0].queue; g[0], g[1] = g[1], g[0] },
		"in group":        func(b *Board) { b.queue.entries[b.queue.groups[0].queue[0]].group = -1 },
		"floor's node":    func(b *Board) { b.nodes.floor.Remove("id-n0") },
		"of a seat is in": func(b *Board) { b.nodes.freeOccupant = 0 },
		"at place":        func(b *Board) { b.nodes.every[0], b.nodes.every[1] = b.nodes.every[1], b.nodes.every[0] },
		"has no seat":     func(b *Board) { b.nodes.occupants[b.nodes.states[0].seats].rank++ },
		"by limits":       func(b *Board) { b.promises.reservationCount++ },
		"is reserved by": func(b *Board) {
			b.nodes.states[b.promises.reservations[0].nodes[0]].rank++
			b.promises.reservations = append(b.promises.reservations, b.promises.reservations[0])
		},
		"were made":          func(b *Board) { b.promises.nominations = append(b.promises.nominations, 0) },
		"has nominations of": func(b *Board) { b.accounts.projects[0].nominated = structs.QuotaUsage{structs.QuotaCPU: 1} },
		"is found at":        func(b *Board) { b.accounts.projectByName[b.accounts.projects[0].name]++ },
	}
	for want, damage := range damages {
		b := NewBoard(Settings{})
		for i := range 2 {
			node := testNode(fmt.Sprintf("n%d", i), 8, 64<<30)
			b.PutNode(node.ID, node, nil)
		}
		for i := range 4 {
			job := testJob(fmt.Sprintf("j%d", i), 2, 6, 1<<30)
			b.Submit(job, &structs.Subjob{JobID: job.ID, State: structs.JobQueued, CreateIndex: uint64(i + 1)})
		}
		b.Pass(1, 1)
		checkBoard(t, b)
		damage(b)
		if found := b.CheckInvariants(); !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%q is not among what was found: %v", want, found)
		}
	}
}
