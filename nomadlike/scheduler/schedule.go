package scheduler

import (
	"maps"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// Schedule walks the queue once. It returns the gangs that start now, in queue
// order, and the explanations that differ from what the waiting subjobs carry.
// An empty plan means that nothing is to be proposed. After a plan with gangs,
// or with WaitsMax explanations, the state that has it may have more to do;
// after any other, the next call has nothing to do until the state changes or a
// restart delay passes.
//
// seed spreads dynamic ports; every other choice depends on the input alone.
// WaitReason.Position is left 0: the place in the queue shifts with every
// start, so whoever shows a queue counts it there instead of logging it.
//
// Schedule keeps nothing between calls and changes nothing that it is given;
// any goroutine may call it, concurrently for different snapshots.
func Schedule(input Input, now structs.UnixNano, seed uint64) structs.Plan {
	w := &walk{
		plan:   structs.Plan{SnapshotIndex: input.Snapshot.Index()},
		holder: input.Snapshot.Holders,
		shapes: shapes{byKey: make(map[string]*shape)},
		seed:   seed,
		quiet:  input.Quiet,
	}
	switch {
	case input.Reservations == 0:
		w.keepMax = ReservationsDefault
	case input.Reservations > 0:
		w.keepMax = input.Reservations
	}
	queue := queueOf(input.Snapshot)
	if len(queue) == 0 {
		return w.plan
	}
	w.hall = newHall(seatsOf(input.Snapshot))
	for _, e := range queue {
		if !w.visit(e, now) {
			break
		}
	}
	w.plan.Waits = w.changedWaits()
	return w.plan
}

// walk is one pass over the queue.
type walk struct {
	*hall
	shapes
	plan      structs.Plan
	ranks     int // placements in plan
	seed      uint64
	quiet     bool
	keepMax   int            // reservations allowed
	kept      []*reservation // reservations made, in queue order
	seatsKept int
	futile    int // shapes for which no reservation could be made
	waiting   int // gangs that found no room so far
	first     []structs.WaitUpdate
	changed   []structs.WaitUpdate
	holder    holdersFunc
}

// visit decides about one subjob; false ends the walk because the plan is full.
func (w *walk) visit(e entry, now structs.UnixNano) bool {
	if e.subjob.NotBefore > now {
		w.wait(e, func() *structs.WaitReason {
			until := e.subjob.NotBefore.Time().Truncate(time.Second).Format(time.RFC3339)
			return waiting("scheduler.restart_delay", "until", until)
		})
		return true
	}
	sh := w.of(e.job)
	if !sh.failed && e.job.Nodes > 0 && e.job.Nodes <= structs.RanksMax {
		if len(w.plan.Gangs) == GangsMax || w.ranks > 0 && w.ranks+e.job.Nodes > RanksMax {
			return false
		}
		if gang, ok := w.place(e, sh); ok {
			w.plan.Gangs = append(w.plan.Gangs, gang)
			w.ranks += len(gang.Placements)
			return true
		}
	}
	sh.failed = true
	outlook := w.judge(sh)
	if outlook.reason == nil {
		w.waiting++
	}
	w.wait(e, func() *structs.WaitReason { return w.explain(sh) })
	if outlook.reason == nil {
		w.reserve(e, sh)
	}
	return true
}

// wait notes why e waits, when that differs from what e already says.
func (w *walk) wait(e entry, reason func() *structs.WaitReason) {
	if w.quiet {
		return
	}
	now := reason()
	update := structs.WaitUpdate{JobID: e.job.ID, Subjob: e.subjob.Index, Wait: now}
	switch old := e.subjob.Wait; {
	case old == nil:
		if len(w.first) < WaitsMax {
			w.first = append(w.first, update)
		}
	case !equalWait(old, now):
		if len(w.changed) < WaitsMax {
			w.changed = append(w.changed, update)
		}
	}
}

// changedWaits puts first what has no explanation at all; the rest of a very
// long list waits for the next call.
func (w *walk) changedWaits() []structs.WaitUpdate {
	waits := append(w.first, w.changed...)
	return waits[:min(len(waits), WaitsMax)]
}

func equalWait(a, b *structs.WaitReason) bool {
	return a.ID == b.ID && a.Never == b.Never && maps.Equal(a.Params, b.Params) && slices.Equal(a.Holders, b.Holders)
}

func waiting(id string, params ...any) *structs.WaitReason {
	return &structs.WaitReason{Reason: *structs.NewReason(id, params...)}
}
