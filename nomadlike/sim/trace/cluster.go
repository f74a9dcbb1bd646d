package trace

import (
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// Engine says how much of the product stands behind a replay.
type Engine string

// The engines. Both give the same report; tests hold them together.
const (
	// EngineBoard drives the scheduler's board by hand, as forecasts do.
	EngineBoard Engine = "board"
	// EngineState also sends every submission, plan and report as an encoded
	// command through state.Apply, and the scheduler reads what the state says.
	EngineState Engine = "state"
)

// newCluster gives an empty cluster with the nodes of the replay's pools.
func newCluster(r *replay) cluster { return newBoardCluster(r) }

// settings are the rules of the scheduler under the options.
func (o *Options) settings() scheduler.Settings {
	s := scheduler.Settings{Quiet: true}
	switch o.Policy {
	case PolicyFIFO:
		s.Passing = scheduler.NoPassing
	case PolicySJF:
		s.Passing, s.Order = scheduler.NoPassing, scheduler.OrderShortest
	case PolicySRTF:
		s.Passing, s.Order, s.PreemptLonger = scheduler.NoPassing, scheduler.OrderRemaining, true
	case PolicyEASY:
		s.Passing = scheduler.Easy
	case PolicyDefault:
	}
	return s
}

// passesMax bounds the passes of one instant: a scheduler that never comes to
// rest is a defect.
const passesMax = 10_000

// boardCluster is the scheduler's board alone.
type boardCluster struct {
	board  *scheduler.Board
	places uint64 // given to queued subjobs so far
}

func newBoardCluster(r *replay) *boardCluster {
	settings := r.options.settings()
	settings.Alone = true
	c := &boardCluster{board: scheduler.NewBoard(settings)}
	for _, node := range r.nodes() {
		c.board.PutNode(node.ID, node, nil)
	}
	return c
}

func (c *boardCluster) submit(now structs.UnixNano, t *task) error {
	c.places++
	c.board.Submit(t.job, &structs.Subjob{JobID: t.job.ID, State: structs.JobQueued, QueuedAt: now, Place: c.places, CreateIndex: c.places})
	return nil
}

func (c *boardCluster) finish(_ structs.UnixNano, t *task) error {
	if !c.board.End(t.job.ID, 0) {
		return defect("end", t)
	}
	return nil
}

func (c *boardCluster) decide(now structs.UnixNano) (moves, error) {
	var done moves
	for range passesMax {
		plan := c.board.Pass(now, uint64(now))
		if len(plan.Gangs) == 0 {
			return done, nil
		}
		for i := range plan.Gangs {
			for _, victim := range plan.Gangs[i].Victims {
				done.preempted = append(done.preempted, victim.JobID)
			}
			done.started = append(done.started, plan.Gangs[i].JobID)
		}
	}
	return moves{}, structs.NewError(structs.CodeInternal, "sim.trace.restless", "passes", passesMax)
}

// defect is what the cluster and the replay disagree on.
func defect(act string, t *task) error {
	return structs.NewError(structs.CodeInternal, "sim.trace.defect", "act", act, "job", t.trace.ID)
}
