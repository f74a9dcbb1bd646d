package trace

import (
	"container/heap"
	"context"
	"time"

	"nomadlike/nomadlike/structs"
)

// Options say how a trace is replayed.
type Options struct {
	Pools    []Pool
	Policy   Policy
	Estimate Estimate
	Place    Place
	From, To time.Duration // submissions between these are replayed, both included; To 0: to the end
	Engine   Engine
	Predict  *Predict // nil: no forecasts
	// Progress is told now and then, from the caller's goroutine, how many of the
	// jobs have ended; nil: nobody is.
	Progress func(ended, jobs int)
}

// progressEvery is after how many ends Progress is told.
const progressEvery = 1000

// origin is the wall clock at a trace's zero: midnight before a Monday.
var origin = structs.At(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC))

// task is one replayed job.
type task struct {
	trace  *Job
	job    *structs.Job
	pool   int
	size   int           // devices
	remain time.Duration // of its run, as far as the job has not run yet
	began  time.Duration // when its newest run began
	first  time.Duration // when it ran first, negative before
	end    time.Duration // negative before
	runs   int           // begun so far; an ending of an earlier one does not count
	on     bool          // it runs
}

// replay is one replay in the making.
type replay struct {
	options  Options
	pools    []Pool
	tasks    []*task
	byID     map[string]*task
	dropped  []int // by pool
	homeless int
	agenda   agenda
	cluster  cluster
	now      time.Duration
	ended    int
}

// cluster is the scheduler with its state, driven through virtual time. All
// calls come from one goroutine; times never go back.
type cluster interface {
	// submit puts a task into the queue.
	submit(now structs.UnixNano, t *task) error
	// finish ends the run of a task that completed.
	finish(now structs.UnixNano, t *task) error
	// decide lets the scheduler decide, and tells what it did.
	decide(now structs.UnixNano) (moves, error)
}

// moves is what a decision did, by job id: first these lost their nodes, then
// those got some.
type moves struct{ preempted, started []string }

// Replay runs the jobs of a trace through the scheduler in virtual time. The
// same arguments give the same report. It returns the context's error when
// that ends first, a *structs.Error for options that make no sense.
func Replay(ctx context.Context, t *Trace, options Options) (Report, error) {
	if err := options.check(); err != nil {
		return Report{}, err
	}
	r := newReplay(t, options)
	if err := r.run(ctx); err != nil {
		return Report{}, err
	}
	return r.report(), nil
}

func newReplay(t *Trace, options Options) *replay {
	to := options.To
	if to == 0 {
		to = -1
	}
	r := &replay{options: options, pools: options.Pools, byID: make(map[string]*task), dropped: make([]int, len(options.Pools))}
	r.admit(t.Between(options.From, to))
	r.cluster = newCluster(r)
	return r
}

// run is the loop over instants: endings, submissions, one decision.
func (r *replay) run(ctx context.Context) error {
	next := 0
	for next < len(r.tasks) || len(r.agenda) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		r.now = r.instant(next)
		if err := r.endings(); err != nil {
			return err
		}
		for ; next < len(r.tasks) && r.tasks[next].trace.Submit == r.now; next++ {
			if err := r.cluster.submit(r.wall(), r.tasks[next]); err != nil {
				return err
			}
		}
		if err := r.decide(); err != nil {
			return err
		}
	}
	if r.ended < len(r.tasks) {
		return structs.NewError(structs.CodeInternal, "sim.trace.stuck", "jobs", len(r.tasks)-r.ended)
	}
	return nil
}

// wall is the cluster's clock.
func (r *replay) wall() structs.UnixNano { return origin.Add(r.now) }

// instant is when something happens next.
func (r *replay) instant(next int) time.Duration {
	switch {
	case next == len(r.tasks):
		return r.agenda[0].at
	case len(r.agenda) == 0:
		return r.tasks[next].trace.Submit
	}
	return min(r.agenda[0].at, r.tasks[next].trace.Submit)
}

// endings ends the runs that are over now.
func (r *replay) endings() error {
	for len(r.agenda) > 0 && r.agenda[0].at == r.now {
		over := heap.Pop(&r.agenda).(ending)
		t := over.task
		if !t.on || t.runs != over.run {
			continue // it was preempted meanwhile
		}
		t.on, t.remain, t.end = false, 0, r.now
		if err := r.cluster.finish(r.wall(), t); err != nil {
			return err
		}
		r.ended++
		if r.options.Progress != nil && (r.ended%progressEvery == 0 || r.ended == len(r.tasks)) {
			r.options.Progress(r.ended, len(r.tasks))
		}
	}
	return nil
}

// decide lets the scheduler decide and books what it did.
func (r *replay) decide() error {
	done, err := r.cluster.decide(r.wall())
	if err != nil {
		return err
	}
	for _, id := range done.preempted {
		t := r.byID[id]
		t.on, t.remain = false, t.remain-(r.now-t.began)
	}
	for _, id := range done.started {
		t := r.byID[id]
		t.on, t.began = true, r.now
		t.runs++
		if t.first < 0 {
			t.first = r.now
		}
		heap.Push(&r.agenda, ending{at: r.now + t.remain, task: t, run: t.runs})
	}
	return nil
}

// report sums up what happened.
func (r *replay) report() Report {
	records := make([]record, len(r.tasks))
	for i, t := range r.tasks {
		records[i] = record{pool: t.pool, gpus: t.size, submit: t.trace.Submit, duration: t.trace.Duration, end: t.end}
	}
	return report(r.pools, records, r.dropped, r.homeless)
}

// ending is an entry of the agenda: a run that will be over.
type ending struct {
	at   time.Duration
	task *task
	run  int
}

// agenda is a heap of endings, the earliest first; among those of one instant
// the order of the jobs' ids, which is that of their submission.
type agenda []ending

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	if a[i].at != a[j].at {
		return a[i].at < a[j].at
	}
	return a[i].task.job.ID < a[j].task.job.ID
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(ending)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
