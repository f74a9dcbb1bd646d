package watch

import (
	"context"
	"strings"
	"time"

	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
)

// The rhythm of the patrol over a task of a job that wants prechecks, and its
// bounds.
const (
	patrolFirst   = time.Second // after the start of the command
	patrolEvery   = time.Minute
	patrolStrikes = 2 // looks in a row that find the network of a gang unhealthy until it is left
)

// patrolState is what a patrol remembers from look to look.
type patrolState struct {
	told    *environment.Told
	image   string    // that the task runs on
	begun   time.Time // of the first look
	unfit   string    // what was told of the node, "" for nothing
	strikes int
	lossy   bool // it was told that packets to another node are lost
	losses  int  // looks in a row that found it
}

// patrol looks again and again at what the task sees and at its node, until ctx
// ends. What is new is told in the events of the job; a gang leaves a node whose
// network is unhealthy.
func (w *watcher) patrol(ctx context.Context) {
	state := patrolState{told: w.told, begun: w.Now()}
	if state.told == nil {
		state.told = new(environment.Told)
	}
	_ = w.Inbox.Ask(ctx, func(l *loop.Loop) { // of a task that was found after a restart the table alone knows it
		s, _ := l.State(w.id)
		state.image = s.Image
	})
	for wait := patrolFirst; retry.Sleep(ctx, wait); wait = w.Every {
		a := w.task.Assigned.Load()
		if a == nil || a.Job == nil || a.Alloc.Control.Pauses() {
			continue
		}
		w.checkEnvironment(ctx, a, &state)
		w.checkNode(a, &state)
		w.checkPeers(ctx, a, &state)
	}
}

// checkNode looks whether the node is still fit.
func (w *watcher) checkNode(a *structs.Assignment, state *patrolState) {
	_, found := w.Fitness.Fitness(a)
	switch {
	case found == nil:
		if state.unfit != "" {
			w.say(structs.Told{Event: structs.EventPatrolWell})
		}
		state.unfit, state.strikes = "", 0
		return
	case found.Check != state.unfit:
		w.say(structs.Told{Event: structs.EventPatrolFailed, Severity: "warn", Params: map[string]string{"check": found.Check, "cause": found.Cause}})
		state.unfit, state.strikes = found.Check, 0
	}
	state.strikes++
	if strings.HasPrefix(found.Check, "network ") && state.strikes == patrolStrikes {
		cause, stop := structs.NewReason("client.patrol", "device", found.Check, "cause", found.Cause), loop.EvictionOrder(a.Job)
		w.Inbox.Post(func(l *loop.Loop) { l.Evict(w.id, cause, stop) })
	}
}

// checkEnvironment looks at the environment of the task that runs.
func (w *watcher) checkEnvironment(ctx context.Context, a *structs.Assignment, state *patrolState) {
	w.Environment.Take(ctx, &environment.Look{
		Assignment: a, Task: alloc.TaskID(w.id), Runs: true, RunsFor: w.Now().Sub(state.begun), Image: state.image, Told: state.told, Tell: w.say,
	})
}

func (w *watcher) say(told structs.Told) {
	w.tell(w.Notes.Next(), structs.AllocNote{Told: &told})
}
