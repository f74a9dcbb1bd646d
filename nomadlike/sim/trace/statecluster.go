package trace

import (
	"fmt"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// stateCluster is the scheduler on the replicated state: all that happens is
// an encoded command, and the nodes do what the state asks of them, at once.
type stateCluster struct {
	store   *state.Store
	board   *scheduler.Board
	log     []state.Entry     // proposed, not applied yet
	index   uint64            // of the newest command
	read    uint64            // index up to which the nodes know the state
	running map[string]uint64 // newest attempt that the nodes started, by job
}

func newStateCluster(r *replay) (*stateCluster, error) {
	c := &stateCluster{store: state.New(), board: scheduler.NewBoard(r.settings()), running: make(map[string]uint64)}
	for _, node := range r.nodes() {
		if err := c.send(origin, structs.CommandNodeRegister, &structs.NodeRegister{Node: *node}); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// send proposes one command. It is applied with those around it, as a busy log
// does, when somebody reads the state.
func (c *stateCluster) send(now structs.UnixNano, kind structs.CommandKind, body any) error {
	data, err := wire.EncodeCommand(kind, now, "sim", body)
	if err != nil {
		return fmt.Errorf("encode command %d: %w", kind, err)
	}
	c.index++
	c.log = append(c.log, state.Entry{Index: c.index, Command: data})
	return nil
}

// state applies what was proposed, which nothing may refuse, and returns the
// newest state.
func (c *stateCluster) state() (*state.Snapshot, error) {
	for _, result := range c.store.ApplyBatch(c.log) {
		switch {
		case result.Err != nil:
			return nil, result.Err
		case len(result.Refused) > 0:
			return nil, structs.NewError(structs.CodeInternal, "sim.trace.refused", "what", result.Refused[0])
		case result.Plan != nil && len(result.Plan.Refused) > 0:
			return nil, structs.NewError(structs.CodeInternal, "sim.trace.refused", "what", fmt.Sprint(result.Plan.Refused))
		}
	}
	c.log = c.log[:0]
	return c.store.Snapshot(), nil
}

func (c *stateCluster) submit(now structs.UnixNano, t *task) error {
	return c.send(now, structs.CommandJobSubmit, &structs.JobSubmit{Job: t.job})
}

// finish reports the end of every rank. The job is deleted then, so that a
// long trace needs no more memory than what waits and runs at a time.
func (c *stateCluster) finish(now structs.UnixNano, t *task) error {
	for alloc := range c.store.Snapshot().Gang(t.job.ID, 0, c.running[t.job.ID]) { // nothing about it waits in the log
		if err := c.report(now, alloc, structs.AllocComplete); err != nil {
			return err
		}
	}
	delete(c.running, t.job.ID)
	return c.send(now, structs.CommandJobDelete, &structs.JobDelete{JobID: t.job.ID})
}

// report says what became of an allocation.
func (c *stateCluster) report(now structs.UnixNano, alloc *structs.Allocation, statuses ...structs.AllocStatus) error {
	body := &structs.AllocReports{NodeID: alloc.NodeID}
	for _, status := range statuses {
		report := structs.AllocReport{AllocID: alloc.ID, Attempt: alloc.Attempt, Status: status}
		if status == structs.AllocRunning {
			report.StartedAt = now
		}
		if status.Terminal() {
			report.FinishedAt = now
		}
		body.Reports = append(body.Reports, report)
	}
	return c.send(now, structs.CommandAllocReports, body)
}

func (c *stateCluster) believe(estimates scheduler.Estimates) { c.board.SetModel(estimates) }

func (c *stateCluster) decide(now structs.UnixNano) ([]move, error) {
	var done []move
	for range passesMax {
		board, err := c.sync()
		if err != nil {
			return nil, err
		}
		plan := board.Pass(now, uint64(now))
		if len(plan.Gangs) == 0 && len(plan.Waits) == 0 { // waits carry promised starts, too
			return done, nil
		}
		if err := c.send(now, structs.CommandPlan, &plan); err != nil {
			return nil, err
		}
		if err := c.obey(now, &done); err != nil {
			return nil, err
		}
	}
	return nil, restless()
}

// sync brings the board up to date.
func (c *stateCluster) sync() (*scheduler.Board, error) {
	snapshot, err := c.state()
	if err != nil {
		return nil, err
	}
	c.board.Sync(snapshot)
	return c.board, nil
}

// obey lets the nodes execute what the state asks for: what is to stop is
// gone at once, what is new is prepared at once and runs when its barrier
// opens. It ends when the state asks for nothing new.
func (c *stateCluster) obey(now structs.UnixNano, done *[]move) error {
	for c.read < c.index {
		snapshot, err := c.state()
		if err != nil {
			return err
		}
		changes := snapshot.Changes(c.read)
		c.read = c.index
		for _, change := range changes.Subjobs {
			if err := c.execute(now, change, done); err != nil {
				return err
			}
		}
	}
	return nil
}

// execute is what the nodes of one gang do about a change.
func (c *stateCluster) execute(now structs.UnixNano, change structs.SubjobChange, done *[]move) error {
	if change.Subjob == nil {
		return nil
	}
	ran, runs := c.running[change.JobID]
	if runs && change.Subjob.State == structs.JobQueued {
		delete(c.running, change.JobID)
		*done = append(*done, move{change.JobID, false})
		return nil
	}
	if change.Attempt == nil {
		return nil
	}
	if runs && ran < change.Attempt.Number { // preempted and placed again in one entry
		*done = append(*done, move{change.JobID, false})
	}
	if ran < change.Attempt.Number {
		c.running[change.JobID] = change.Attempt.Number
		*done = append(*done, move{change.JobID, true})
	}
	for _, alloc := range change.Allocs {
		var err error
		switch {
		case alloc.Status.Terminal():
		case alloc.Desired == structs.DesiredStop:
			err = c.report(now, alloc, structs.AllocKilled)
		case alloc.Status == structs.AllocPending && !alloc.Released:
			err = c.report(now, alloc, structs.AllocPrepared)
		case alloc.Released && alloc.Status != structs.AllocRunning:
			err = c.report(now, alloc, structs.AllocPrepared, structs.AllocRunning)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
