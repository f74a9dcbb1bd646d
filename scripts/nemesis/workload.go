package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// Sizes of the load.
const (
	registers      = 4
	registerActors = 3 // of each register: they write and read in turn
	registerEvery  = 80 * time.Millisecond
	registerLife   = 15 * time.Second       // then comes a new one: the search for an order grows fast with the history
	pulseEvery     = 100 * time.Millisecond // through each server
	pulsePatience  = 2 * time.Second
	submitEvery    = 250 * time.Millisecond // at least: every copy of the state that is made costs what it holds
	submitJobs     = 2000                   // at most in one run, so that a long one is no heavier than a short one
	readEvery      = 100 * time.Millisecond
	stopEvery      = 3 * time.Second
	lastingLeast   = 40 * time.Second
	askFor         = 6 * time.Second // one request
	watchers       = 3
	quotaCores     = 2                // of the project with a quota
	boundedCores   = 0.9              // of its jobs: a node with one processor has room for small ones beside one
	submitTries    = 40               // with one idempotency key
	quotaProject   = "bounded"        // may hold quotaCores cores
	stayers        = 2                // gangs over two nodes that stay
	submitPatience = 2 * time.Minute  // until a submission is acknowledged
	watchPause     = time.Second / 10 // before a watcher that was cut connects again
)

// workload is the people of the cluster.
type workload struct {
	c      *cluster
	h      *history
	seed   uint64
	length time.Duration  // of the run
	pace   float64        // how much longer people pause than said above
	wg     sync.WaitGroup // of the load
	eyes   sync.WaitGroup // of the watchers, who see the end as well

	watched []*watched // one a watcher; read after stop
}

// start begins the load; it ends with ctx, and wait waits for that.
func (w *workload) start(ctx, watch context.Context) error {
	maximum := quotaCores
	project := &structs.Project{Name: quotaProject, Quotas: []structs.Quota{{Kind: structs.QuotaCPU, Maximum: &maximum}}}
	if _, err := w.c.all.PutProject(ctx, project); err != nil {
		return fmt.Errorf("make project %s: %w", quotaProject, err)
	}
	for i := range stayers {
		if err := w.stayer(ctx, i); err != nil {
			return err
		}
	}
	actor := uint64(0)
	run := func(f func(context.Context, *rand.Rand)) {
		actor++
		chance := rand.New(rand.NewPCG(w.seed, actor))
		w.wg.Go(func() { f(ctx, chance) })
	}
	for key := range registers {
		for range registerActors {
			run(func(ctx context.Context, chance *rand.Rand) { w.register(ctx, chance, fmt.Sprintf("register-%d", key)) })
		}
	}
	for _, h := range w.c.servers() {
		run(func(ctx context.Context, _ *rand.Rand) { w.pulse(ctx, h) })
	}
	run(w.submit)
	run(w.submitBounded)
	run(w.read)
	run(w.stop)
	for i := range watchers {
		one := &watched{Name: fmt.Sprintf("watcher %d", i)}
		w.watched = append(w.watched, one)
		chance := rand.New(rand.NewPCG(w.seed, 1000+uint64(i)))
		w.eyes.Go(func() { w.watch(watch, chance, one) })
	}
	return nil
}

func (w *workload) wait() { w.wg.Wait() }

// anyone is an agent, server or client, whether it is well or not.
func (w *workload) anyone(chance *rand.Rand) *host { return w.c.hosts[chance.IntN(len(w.c.hosts))] }

// every calls f again and again, with the pause between calls.
func every(ctx context.Context, pause time.Duration, f func()) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			f()
		}
	}
}

// every calls f with the pause between calls, as slowly as the people work.
func (w *workload) every(ctx context.Context, pause time.Duration, f func()) {
	every(ctx, time.Duration(w.pace*float64(pause)), f)
}

// register writes values that nobody else writes to one project's description,
// and reads it, through any agent.
func (w *workload) register(ctx context.Context, chance *rand.Rand, name string) {
	w.every(ctx, registerEvery, func() {
		key := fmt.Sprintf("%s-%d", name, w.h.now()/int64(registerLife))
		via := w.anyone(chance)
		o := operation{Key: key, Write: chance.IntN(2) == 0, Via: via.name, Call: w.h.now()}
		// An operation once begun is seen to its end, also when the load ends.
		asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), askFor)
		defer cancel()
		var err error
		if o.Write {
			o.Value = fmt.Sprintf("%s %d", key, chance.Uint64())
			_, err = via.client.PutProject(asked, &structs.Project{Name: key, Description: o.Value})
		} else {
			var detail *api.ProjectDetail
			if detail, _, err = via.client.Project(asked, key, nil); err == nil {
				o.Value = detail.Project.Description
			} else if structs.CodeOf(err) == structs.CodeNotFound {
				err = nil
			}
		}
		o.Return, o.Outcome = w.h.now(), judge(err)
		if o.Outcome == failed && structs.CodeOf(err) != structs.CodeUnavailable && !strings.Contains(err.Error(), "dial") {
			w.h.find("I4", fmt.Sprintf("operation on %s through %s was refused: %v", key, via.name, err))
		}
		w.h.operation(o)
	})
}

// pulse writes through one server at a steady rate, whether or not the writes
// before were answered: their acknowledgements show for how long none was
// possible anywhere.
func (w *workload) pulse(ctx context.Context, via *host) {
	n := 0
	w.every(ctx, pulseEvery, func() {
		n++
		value := strconv.Itoa(n)
		w.wg.Go(func() {
			asked, cancel := context.WithTimeout(context.WithoutCancel(ctx), pulsePatience)
			defer cancel()
			begun := time.Now()
			if _, err := via.client.PutProject(asked, &structs.Project{Name: "pulse-" + via.name, Description: value}); err == nil {
				w.h.acked(begun, time.Now())
			}
		})
	})
}

func small(name, shell string, nodes int) *structs.Job {
	return &structs.Job{
		Name: name, Nodes: nodes, Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources: []structs.Resources{{CPU: 0.01, Memory: 4 << 20}},
		Task:      structs.Task{Driver: "exec", Command: shell},
		StopGrace: structs.Duration(time.Second),
		Restart:   &structs.Restart{MaxRestarts: 100},
	}
}

// submit hands in jobs that run for a moment; each with one key until the
// answer is known, through another agent each time.
func (w *workload) submit(ctx context.Context, chance *rand.Rand) {
	n := 0
	w.every(ctx, max(submitEvery, w.length/submitJobs), func() {
		n++
		job := small(fmt.Sprintf("short-%d", n), fmt.Sprintf("sleep %.1f", 0.1+chance.Float64()), 1+chance.IntN(2))
		lasting := n%20 == 0
		if lasting {
			job.Task.Command = "sleep 100000"
		}
		turn := rand.New(rand.NewPCG(w.seed, chance.Uint64()))
		w.wg.Go(func() { w.handIn(ctx, turn, job, lasting) })
	})
}

// submitBounded keeps more jobs waiting in a project than its quota lets run.
func (w *workload) submitBounded(ctx context.Context, chance *rand.Rand) {
	n := 0
	w.every(ctx, 2*time.Second, func() {
		n++
		job := small(fmt.Sprintf("bounded-%d", n), fmt.Sprintf("sleep %.1f", 1+3*chance.Float64()), 1)
		job.Project, job.Resources[0].CPU = quotaProject, boundedCores
		turn := rand.New(rand.NewPCG(w.seed, chance.Uint64()))
		w.wg.Go(func() { w.handIn(ctx, turn, job, false) })
	})
}

func (w *workload) handIn(ctx context.Context, chance *rand.Rand, job *structs.Job, lasting bool) {
	s := &submission{Key: fmt.Sprintf("nemesis-%d-%s", w.seed, job.Name), Name: job.Name, Project: job.Project, Nodes: job.Nodes, Lasting: lasting}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), submitPatience)
	defer cancel()
	for range submitTries {
		asked, stop := context.WithTimeout(ctx, askFor)
		s.Asked = w.h.now()
		answer, err := w.anyone(chance).client.SubmitJob(asked, api.JobRequest{Job: job}, s.Key)
		stop()
		if err == nil {
			s.ID, s.Acked = answer.JobID, w.h.now()
			w.h.submitted(s)
			return
		}
		if judge(err) == failed && structs.CodeOf(err) != structs.CodeUnavailable && !strings.Contains(err.Error(), "dial") {
			w.h.find("I5", fmt.Sprintf("submission of %s was refused: %v", job.Name, err))
			return
		}
		pass(ctx, time.Duration(100+chance.IntN(900))*time.Millisecond)
	}
	w.h.submitted(s) // it may be there, or not
}

// acked is an acknowledged job, nil while there is none.
func (w *workload) acked(chance *rand.Rand) *submission {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	if len(w.h.mu.submissions) == 0 {
		return nil
	}
	if s := w.h.mu.submissions[chance.IntN(len(w.h.mu.submissions))]; s.ID != "" {
		return s
	}
	return nil
}

// read looks for acknowledged jobs through any agent: each must be there.
func (w *workload) read(ctx context.Context, chance *rand.Rand) {
	w.every(ctx, readEvery, func() {
		s := w.acked(chance)
		if s == nil {
			return
		}
		asked, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		via := w.anyone(chance)
		detail, _, err := via.client.Job(asked, s.ID, nil)
		switch {
		case structs.CodeOf(err) == structs.CodeNotFound && !w.h.mayBeGone(s):
			w.h.find("I4", fmt.Sprintf("job %s (%s) was acknowledged and %s does not know it", s.Name, s.ID, via.name))
		case err == nil && detail.Job.Name != s.Name:
			w.h.find("I5", fmt.Sprintf("job %s is called %s", s.Name, detail.Job.Name))
		}
	})
}

// stop stops jobs that would stay, as fast as they come and a while after: what
// stays is there for the faults to meet, and must not grow with the length of the
// run.
func (w *workload) stop(ctx context.Context, chance *rand.Rand) {
	w.every(ctx, stopEvery, func() {
		s := w.lasting(chance)
		if s == nil {
			return
		}
		asked, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		if _, err := w.anyone(chance).client.StopJob(asked, s.ID, api.JobStopRequest{Reason: "nemesis"}); err == nil { // else later, or at the end of the run
			w.h.mu.Lock()
			s.Stopped = true
			w.h.mu.Unlock()
		}
	})
}

// lasting is a job that would stay and has stayed for a while, nil while there is
// none.
func (w *workload) lasting(chance *rand.Rand) *submission {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	stay := slices.DeleteFunc(slices.Clone(w.h.mu.submissions), func(s *submission) bool {
		return !s.Lasting || s.Stopped || s.ID == "" || strings.HasPrefix(s.Name, "stayer") || w.h.now()-s.Acked < int64(lastingLeast)
	})
	if len(stay) == 0 {
		return nil
	}
	return stay[chance.IntN(len(stay))]
}

// stayer submits a gang over two nodes that runs until the end, whose attempts
// tell how fast the cluster recovers. Every other is fenced strictly.
func (w *workload) stayer(ctx context.Context, i int) error {
	job := small(fmt.Sprintf("stayer-%d", i), "sleep 100000", 2)
	job.Placement.SpreadOrPack = structs.Spread
	if i%2 == 1 {
		job.Fencing = "strict"
	}
	s := &submission{Key: "nemesis-" + job.Name, Name: job.Name, Nodes: job.Nodes, Lasting: true, Asked: w.h.now()}
	answer, err := w.c.all.SubmitJob(ctx, api.JobRequest{Job: job}, s.Key)
	if err != nil {
		return fmt.Errorf("submit %s: %w", job.Name, err)
	}
	s.ID, s.Acked = answer.JobID, w.h.now()
	w.h.submitted(s)
	return wait(ctx, patient(recoveryMax), job.Name+" to run", func(ctx context.Context) bool {
		detail, _, err := w.c.all.Job(ctx, s.ID, nil)
		return err == nil && detail.State == structs.JobRunning
	})
}

// watch follows all events and, cut off, goes on where it was through another
// agent.
func (w *workload) watch(ctx context.Context, chance *rand.Rand, to *watched) {
	next := api.EventFilter{Index: 1} // from the beginning on
	for ctx.Err() == nil {
		stream, err := w.anyone(chance).client.Events(ctx, next)
		if err != nil {
			pass(ctx, watchPause)
			continue
		}
		cut, cancel := context.WithCancel(ctx) // also streams that nobody cuts are left now and then
		timer := time.AfterFunc(time.Duration(2000+chance.IntN(8000))*time.Millisecond, func() { _ = stream.Close(); cancel() })
		for left := 20 + chance.IntN(400); left > 0 && cut.Err() == nil; left-- { // also between two events of one index
			event, err := stream.Next()
			if err != nil {
				break
			}
			w.h.event(event)
			to.Events = append(to.Events, seen{event.Index, event.Seq, time.Now()})
		}
		timer.Stop()
		cancel()
		_ = stream.Close()
		resume(&next, stream)
		pass(ctx, watchPause)
	}
}

// resume puts the place up to which a stream was read into the filter that
// opens the next one.
func resume(next *api.EventFilter, stream *api.EventStream) { next.After = stream.Cursor() }

// settle stops what would stay and waits until every job has ended.
func (w *workload) settle(ctx context.Context) {
	w.h.mu.Lock()
	submissions := append([]*submission(nil), w.h.mu.submissions...)
	w.h.mu.Unlock()
	for _, s := range submissions {
		if !s.Lasting {
			continue
		}
		id, failure := s.ID, error(nil)
		if err := wait(ctx, patient(stopMax), "the stop of "+s.Name, func(ctx context.Context) bool {
			if id == "" { // nobody heard whether it was taken
				var jobs []api.JobSummary
				if jobs, failure = w.jobs(ctx); failure != nil {
					return false
				}
				at := slices.IndexFunc(jobs, func(job api.JobSummary) bool { return job.Name == s.Name })
				if at < 0 {
					return true
				}
				id = jobs[at].ID
			}
			_, failure = w.c.all.StopJob(ctx, id, api.JobStopRequest{Reason: "the end"})
			isGone := structs.CodeOf(failure) == structs.CodeNotFound && w.h.mayBeGone(s)
			return failure == nil || structs.CodeOf(failure) == structs.CodeConflict || isGone
		}); err != nil {
			w.h.find("I11", fmt.Sprintf("after everything was healed: %v: %v", err, failure))
		}
	}
	var live []string
	err := wait(ctx, patient(settleMax), "the end of all jobs", func(ctx context.Context) bool {
		jobs, err := w.jobs(ctx)
		if err != nil {
			return false
		}
		live = live[:0]
		for _, job := range jobs {
			if !job.State.Terminal() {
				why := ""
				if job.Wait != nil {
					why = fmt.Sprintf(" (%s %v)", job.Wait.ID, job.Wait.Params)
				}
				live = append(live, fmt.Sprintf("%s is %s%s", job.Name, job.State, why))
			}
		}
		return len(live) == 0
	})
	if err != nil {
		w.h.find("I11", fmt.Sprintf("%v: %s", err, strings.Join(live[:min(len(live), 10)], ", ")))
	}
}

// jobs lists every job that the cluster has.
func (w *workload) jobs(ctx context.Context) ([]api.JobSummary, error) {
	var all []api.JobSummary
	query := &api.Query{Limit: api.PageSizeMax}
	for {
		page, _, err := w.c.all.Jobs(ctx, api.JobFilter{}, query)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Jobs...)
		if page.Next == "" {
			return all, nil
		}
		query.After = page.Next
	}
}

// stopMax bounds how long the stop of one job is tried after the last fault.
const stopMax = 10 * time.Second

// settleMax bounds the wait for the end of all jobs after the last fault.
const settleMax = 90 * time.Second
