package trace

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/predict"
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
	// processors: nobody in the trace asks for devices, so processors are counted.
	processors bool
	learner    *learner         // nil: nobody learns
	believed   *predict.Outlook // newest estimates of the learner's model
	foreteller *foreteller      // nil: nobody asks
	agenda     agenda
	cluster    cluster
	now        time.Duration
	ended      int
	waiting    int // tasks in the queue
}

// Replay runs the jobs of a trace through the scheduler in virtual time. The
// same arguments give the same report. It returns the context's error when
// that ends first, a *structs.Error for options that make no sense.
//
// Forecasts need a second replay: the first one shows who can be asked about.
func Replay(ctx context.Context, t *Trace, options Options) (Report, error) {
	r, err := replayOnce(ctx, t, options, nil)
	if err != nil {
		return Report{}, err
	}
	if options.Predict == nil {
		return r.report(), nil
	}
	r, err = replayOnce(ctx, t, options, options.Predict.sampled(r))
	if err != nil {
		return Report{}, err
	}
	made := r.report()
	made.Score = r.foreteller.score()
	return made, nil
}

// replayOnce replays a trace to its end, and forecasts the chosen jobs.
func replayOnce(ctx context.Context, t *Trace, options Options, chosen map[string]bool) (*replay, error) {
	r, err := start(t, options)
	if err != nil {
		return nil, err
	}
	if chosen != nil {
		r.foreteller = newForeteller(r, chosen, t.before(options.From))
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// start makes a replay in which nothing has happened yet.
func start(t *Trace, options Options) (*replay, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	r := newReplay(t, options)
	var err error
	if r.cluster, err = newCluster(r); err != nil {
		return nil, err
	}
	return r, nil
}

// newReplay makes the tasks of a replay, without its cluster.
func newReplay(t *Trace, options Options) *replay {
	to := options.To
	if to == 0 {
		to = -1
	}
	r := &replay{options: options, pools: options.Pools, byID: make(map[string]*task), dropped: make([]int, len(options.Pools))}
	r.processors = !slices.ContainsFunc(t.Jobs, func(job Job) bool { return job.GPUs > 0 })
	r.admit(t.Between(options.From, to))
	if options.Estimate == EstimateLearned && options.Policy != PolicyFIFO { // which asks for no run times
		r.learner = newLearner(r, t.before(options.From))
		r.believed = r.learner.model.Outlook(origin.Add(options.From), nil)
	}
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
			if err := r.submit(r.tasks[next]); err != nil {
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

// submit queues a task, and asks when it starts if somebody wants to know.
func (r *replay) submit(t *task) error {
	r.waiting++
	if err := r.cluster.submit(r.wall(), t); err != nil || r.foreteller == nil {
		return err
	}
	return r.foreteller.submitted(t)
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
		if r.learner != nil {
			r.learner.ended(t, r.now)
		}
		if r.foreteller != nil && r.foreteller.learner != nil {
			r.foreteller.learner.ended(t, r.now)
		}
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

// decide lets the scheduler decide, and once more with new estimates when these
// are due and somebody waits.
func (r *replay) decide() error {
	if err := r.pass(); err != nil {
		return err
	}
	if r.waiting > 0 && r.learn() {
		return r.pass()
	}
	return nil
}

// pass lets the scheduler decide once and books what it did.
func (r *replay) pass() error {
	done, err := r.cluster.decide(r.wall())
	if err != nil {
		return err
	}
	for _, m := range done {
		t := r.byID[m.job]
		if !m.started {
			t.on, t.remain = false, t.remain-(r.now-t.began)
			r.waiting++
			continue
		}
		t.on, t.began = true, r.now
		t.runs++
		r.waiting--
		if t.first < 0 {
			t.first = r.now
			if r.foreteller != nil {
				r.foreteller.started(t)
			}
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

func compareEndings(a, b *ending) int {
	return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.task.job.ID, b.task.job.ID))
}

// agenda is a heap of endings, the earliest first; among those of one instant
// the order of the jobs' ids, which is that of their submission.
type agenda []ending

func (a agenda) sort()              { slices.SortFunc(a, func(x, y ending) int { return compareEndings(&x, &y) }) }
func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return compareEndings(&a[i], &a[j]) < 0 }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)        { *a = append(*a, x.(ending)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
