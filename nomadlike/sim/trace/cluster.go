package trace

import (
	"math"
	"time"

	"nomadlike/nomadlike/placement"
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
	// It knows no srtf: the state refuses to end jobs that the product would not.
	EngineState Engine = "state"
)

// cluster is the scheduler with its state, driven through virtual time. All
// calls come from one goroutine; times never go back.
type cluster interface {
	// submit puts a task into the queue.
	submit(now structs.UnixNano, t *task) error
	// finish ends the run of a task that completed.
	finish(now structs.UnixNano, t *task) error
	// believe hands the scheduler new estimates of run times.
	believe(estimates scheduler.Estimates)
	// decide lets the scheduler decide, and reports what it did, in order.
	decide(now structs.UnixNano) ([]move, error)
	// sync returns the board as it stands now. It is not changed: clones are.
	sync() (*scheduler.Board, error)
}

// move is a job that got its nodes, or lost them to another.
type move struct {
	job     string
	started bool
}

// newCluster returns an empty cluster with the nodes of the replay's pools.
func newCluster(r *replay) (cluster, error) {
	if r.options.Engine == EngineState {
		return newStateCluster(r)
	}
	if r.options.Policy == PolicySRTF {
		return newRemainingCluster(r), nil
	}
	return newBoardCluster(r), nil
}

// settings are the rules of the scheduler under the options.
func (r *replay) settings() scheduler.Settings {
	s := scheduler.Settings{Quiet: true, Fit: placement.Consolidate}
	if r.learner != nil {
		s.Model = r.believed
	}
	switch r.options.Policy {
	case PolicyFIFO:
		s.Passing = scheduler.NoPassing
	case PolicySJF:
		s.Passing, s.Order = scheduler.NoPassing, scheduler.OrderShortest
	case PolicySRTF:
		s.Reservations, s.Order, s.Runtime = -1, scheduler.OrderRemaining, r.remaining // see remainingCluster
	case PolicyEASY:
		s.Passing = scheduler.Easy
	case PolicyDefault:
	}
	return s
}

// remaining is how long a job is expected to run from its next start on, what
// it ran before taken off.
func (r *replay) remaining(job *structs.Job, _ int) time.Duration {
	t := r.byID[job.ID]
	left := t.remain
	if t.on { // it is being preempted in this instant
		left -= r.now - t.began
	}
	ran := t.trace.Duration - left
	switch {
	case r.options.Estimate == EstimateTrue:
		return left
	case r.learner != nil:
		return r.believed.Estimate(job).Remaining(ran, 0.5)
	case t.trace.Limit > 0:
		return max(t.trace.Limit-ran, 0)
	}
	return math.MaxInt64
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
	settings := r.settings()
	settings.Alone = true
	c := &boardCluster{board: scheduler.NewBoard(settings)}
	for _, node := range r.nodes() {
		c.board.PutNode(node.ID, node, nil)
	}
	return c
}

func (c *boardCluster) submit(now structs.UnixNano, t *task) error {
	c.places++
	c.board.Submit(t.job, queued(now, t, c.places))
	return nil
}

// queued is a task that waits since an instant, at a place in the queue.
func queued(now structs.UnixNano, t *task, place uint64) *structs.Subjob {
	return &structs.Subjob{JobID: t.job.ID, State: structs.JobQueued, QueuedAt: now, Place: place, CreateIndex: place}
}

func (c *boardCluster) finish(_ structs.UnixNano, t *task) error {
	if !c.board.End(t.job.ID, 0) {
		return defect("end", t)
	}
	return nil
}

func (c *boardCluster) believe(estimates scheduler.Estimates) { c.board.SetModel(estimates) }

func (c *boardCluster) decide(now structs.UnixNano) ([]move, error) {
	var done []move
	for range passesMax {
		plan := c.board.Pass(now, uint64(now))
		if len(plan.Gangs) == 0 {
			return done, nil
		}
		for i := range plan.Gangs {
			for _, victim := range plan.Gangs[i].Victims {
				done = append(done, move{victim.JobID, false})
			}
			done = append(done, move{plan.Gangs[i].JobID, true})
		}
	}
	return nil, restless()
}

func (c *boardCluster) sync() (*scheduler.Board, error) { return c.board, nil }

func restless() error {
	return structs.NewError(structs.CodeInternal, "sim.trace.restless", "passes", passesMax)
}

// defect is what the cluster and the replay disagree on.
func defect(act string, t *task) error {
	return structs.NewError(structs.CodeInternal, "sim.trace.defect", "act", act, "job", t.trace.ID)
}
