package alloc

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Effect is something that the node has to do for one allocation. Effects
// are executed in the order in which they were given: what a Persist
// stores must be in the store before the effects after it begin. Prepare,
// Start and Recover are answered by an event later; the others are not.
type Effect interface {
	isEffect()
	// Alloc is the id of the allocation that the effect belongs to.
	Alloc() string
}

// of carries the allocation's id in every effect.
type of struct{ AllocID string }

// Alloc is the id of the allocation that the effect belongs to.
func (o of) Alloc() string { return o.AllocID }
func (of) isEffect()       {}

// Prepare makes everything ready. Answered by Prepared or PrepareFailed,
// with any number of Progressed before.
type Prepare struct{ of }

// CancelPrepare ends a preparation early; it is still answered.
type CancelPrepare struct{ of }

// Start runs the command. Answered by Started or StartFailed, and after
// Started by Exited.
type Start struct{ of }

// Recover finds a task that an earlier process of this agent has started or
// was about to start. Handle is nil when it was not stored in time. Answered
// by Started, Absent or Unrecoverable, and after Started by Exited.
type Recover struct {
	of
	Handle *driver.Handle
}

// Stop sends Signal to the task and, after Grace, kills what is left. With
// Grace 0 the kill comes at once.
type Stop struct {
	of
	Signal string
	Grace  time.Duration
}

// Control has the running command do what people want of it: stand still, run,
// or run in turns. Of several the newest counts. Answered by Controlled.
type Control struct {
	of
	Control structs.Control
}

// Signal sends a signal to the running command, which goes on.
type Signal struct {
	of
	Signal string
}

// Report tells the servers.
type Report struct {
	of
	Report structs.AllocReport
}

// Persist stores the allocation's state as it is after this step.
type Persist struct{ of }

// Clean lets the driver forget the task, and frees what the node held for
// it. Its logs stay.
type Clean struct{ of }
