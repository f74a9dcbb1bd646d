package client

import (
	"context"
	"strings"
	"time"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
)

// The rhythm of the patrol over a task of a job that wants prechecks, and its
// bounds.
const (
	patrolFirst   = time.Second // after the start of the command
	patrolEvery   = time.Minute
	patrolStrikes = 2 // looks in a row that find the network of a gang unwell until it is left
)

// patrolState is what a patrol remembers from look to look.
type patrolState struct {
	told    *envTold
	image   string    // that the task runs on
	begun   time.Time // of the first look
	unfit   string    // what was told of the node, "" for nothing
	strikes int
	lossy   bool // it was told that packets to another node are lost
	losses  int  // looks in a row that found it
}

// patrol looks again and again at what the task sees and at its node, until ctx
// ends. What is new is told in the events of the job; a gang leaves a node whose
// network is not well.
func (w *watcher) patrol(ctx context.Context) {
	state := patrolState{told: new(envTold), begun: w.client.config.Now()}
	if p := w.runner.prepared; p != nil && p.told != nil {
		state.told = p.told
	}
	_ = w.client.ask(ctx, func() { // of a task that was found after a restart the table alone knows it
		s, _ := w.client.loop.table.State(w.id)
		state.image = s.Image
	})
	for wait := patrolFirst; sleep(ctx, wait); wait = w.client.config.PatrolEvery {
		a := w.runner.assigned.Load()
		if a == nil || a.Job == nil || a.Alloc.Control.Holds() {
			continue
		}
		w.checkEnvironment(ctx, a, &state)
		w.checkNode(a, &state)
		w.checkPeers(ctx, a, &state)
	}
}

// checkNode looks whether the node is still fit.
func (w *watcher) checkNode(a *structs.Assignment, state *patrolState) {
	_, found := w.client.fitness(a)
	switch {
	case found == nil:
		if state.unfit != "" {
			w.say(structs.Told{Event: structs.EventPatrolWell})
		}
		state.unfit, state.strikes = "", 0
		return
	case found.check != state.unfit:
		w.say(structs.Told{Event: structs.EventPatrolFailed, Severity: "warn", Params: map[string]string{"check": found.check, "cause": found.cause}})
		state.unfit, state.strikes = found.check, 0
	}
	state.strikes++
	if strings.HasPrefix(found.check, "network ") && state.strikes == patrolStrikes {
		w.client.leave(w.id, structs.NewReason("client.patrol", "device", found.check, "cause", found.cause), evictionOrder(a.Job))
	}
}

// leave takes an allocation away from this node, by the node's own fault.
func (c *Client) leave(id string, cause *structs.Reason, order *structs.StopOrder) {
	c.post(func() {
		if s, ok := c.loop.table.State(id); ok {
			c.tellEvicted(&s, cause)
			c.add(c.loop.table.Step(id, alloc.Evicted{Cause: cause, Stop: order}, c.now()))
		}
	})
}

func (w *watcher) say(told structs.Told) {
	w.tell(w.client.nextNote(), structs.AllocNote{Told: &told})
}
