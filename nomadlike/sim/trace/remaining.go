package trace

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// remainingCluster serves by shortest remaining time. At each instant the jobs
// of a pool, running and waiting, are walked by what they have left, and those
// that its devices suffice for are chosen; one that runs and is not chosen stops,
// and the scheduler places what is chosen and does not run. Whoever runs and is
// chosen stays where it is, so a chosen job may find its devices in pieces that
// are too small: then it waits on.
type remainingCluster struct {
	*boardCluster
	r     *replay
	pools []remainingPool
}

// remainingPool is the jobs of a pool.
type remainingPool struct {
	running, waiting []*task
	changed          bool // since the last decision
}

func newRemainingCluster(r *replay) *remainingCluster {
	return &remainingCluster{boardCluster: newBoardCluster(r), r: r, pools: make([]remainingPool, len(r.pools))}
}

func (c *remainingCluster) submit(_ structs.UnixNano, t *task) error {
	pool := &c.pools[t.pool]
	pool.waiting, pool.changed = append(pool.waiting, t), true
	return nil
}

func (c *remainingCluster) finish(now structs.UnixNano, t *task) error {
	pool := &c.pools[t.pool]
	pool.running, pool.changed = without(pool.running, t), true
	return c.boardCluster.finish(now, t)
}

func without(tasks []*task, t *task) []*task {
	return slices.DeleteFunc(tasks, func(x *task) bool { return x == t })
}

func (c *remainingCluster) believe(estimates scheduler.Estimates) {
	c.boardCluster.believe(estimates)
	for i := range c.pools {
		c.pools[i].changed = true
	}
}

// decide implements cluster.
func (c *remainingCluster) decide(now structs.UnixNano) ([]move, error) {
	var done []move
	var chosen []*task
	for i := range c.pools {
		pool := &c.pools[i]
		if pool.changed && len(pool.waiting) > 0 {
			stopped, start := c.choose(pool, c.r.pools[i].Nodes*c.r.pools[i].GPUs)
			for _, t := range stopped {
				if err := c.boardCluster.finish(now, t); err != nil {
					return nil, err
				}
				done = append(done, move{t.job.ID, false})
			}
			chosen = append(chosen, start...)
		}
		pool.changed = false
	}
	for _, t := range chosen {
		if err := c.boardCluster.submit(now, t); err != nil {
			return nil, err
		}
	}
	placed, err := c.boardCluster.decide(now)
	if err != nil {
		return nil, err
	}
	for _, m := range placed {
		t := c.r.byID[m.job]
		pool := &c.pools[t.pool]
		pool.waiting, pool.running = without(pool.waiting, t), append(pool.running, t)
	}
	for _, t := range chosen {
		c.board.Withdraw(t.job.ID, 0) // if it still waits
	}
	return append(done, placed...), nil
}

// choose reports which jobs must stop running and which are to start.
func (c *remainingCluster) choose(pool *remainingPool, devices int) (stopped, start []*task) {
	all := append(slices.Clone(pool.running), pool.waiting...)
	left := make(map[*task]time.Duration, len(all))
	for _, t := range all {
		left[t] = c.r.remaining(t.job, 0)
	}
	slices.SortStableFunc(all, func(a, b *task) int {
		return cmp.Or(cmp.Compare(left[a], left[b]), cmp.Compare(a.job.ID, b.job.ID))
	})
	for _, t := range all {
		fits := t.size <= devices
		if fits {
			devices -= t.size
		}
		switch {
		case t.on && !fits:
			stopped = append(stopped, t)
			pool.running, pool.waiting = without(pool.running, t), append(pool.waiting, t)
		case !t.on && fits:
			start = append(start, t)
		}
	}
	return stopped, start
}

// sync implements cluster. What waits is on the board that it returns, which
// decides by itself who yields: a forecast under this policy is close, not
// exact.
func (c *remainingCluster) sync() (*scheduler.Board, error) {
	board := c.board.Clone()
	settings := board.Settings()
	settings.Passing, settings.Reservations, settings.PreemptLonger = scheduler.NoPassing, 0, true
	board.SetSettings(settings)
	for i := range c.pools {
		for _, t := range c.pools[i].waiting {
			board.Submit(t.job, queued(origin.Add(t.trace.Submit), t, 1))
		}
	}
	return board, nil
}

// newest is how long the newest run of a job is believed to last from its begin
// to its end, or the next one of a job that waits.
func (r *replay) newest(job *structs.Job, _ int) time.Duration {
	t := r.byID[job.ID]
	switch {
	case r.options.Estimate == EstimateTrue:
		return t.remain
	case t.trace.Limit > 0:
		return max(t.trace.Limit-(t.trace.Duration-t.remain), 0)
	}
	return math.MaxInt64
}
