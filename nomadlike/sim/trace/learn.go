package trace

import (
	"iter"
	"time"

	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/structs"
)

// learnEvery is how often the scheduler is given new estimates, at most: each
// time everything that waits and runs is estimated anew.
const learnEvery = 5 * time.Minute

// learner keeps the model of run times, when the scheduler has one.
type learner struct {
	model *predict.Model
	runs  []predict.Run // that ended and are not learned yet
	at    time.Duration // when it learned last
}

// newLearner returns a model that knows the runs which had ended before the
// replay begins. Where the trace does not say when a job started it is taken
// for started at once.
func newLearner(r *replay, before []Job) *learner {
	l := &learner{model: predict.NewModel()}
	byName := r.poolsByName()
	var past agenda
	for i := range before {
		job := &before[i]
		start := max(job.Start, job.Submit)
		pool, ok := byName[job.Group]
		if !ok {
			pool, ok = byName[""]
		}
		if !ok || job.Duration < 0 || r.sizeOf(job) < 1 || start+job.Duration > r.options.From {
			continue
		}
		t := &task{trace: job, pool: pool, size: r.sizeOf(job)}
		t.job = r.named(r.shape(pool, t.size), job, i)
		past = append(past, ending{at: start + job.Duration, task: t})
	}
	past.sort()
	for _, over := range past {
		l.model.Learn(runOf(over.task, over.at))
	}
	return l
}

// ended takes a run that is over.
func (l *learner) ended(t *task, now time.Duration) {
	l.runs = append(l.runs, runOf(t, now))
}

// flush learns what has not been learned yet.
func (l *learner) flush() {
	for _, run := range l.runs {
		l.model.Learn(run)
	}
	l.runs = l.runs[:0]
}

// runOf is what the state would keep of a job that ended.
func runOf(t *task, end time.Duration) predict.Run {
	run := predict.Run{
		Project: t.job.Project, User: t.job.User, Name: t.job.Name, Pool: t.job.Placement.Pool,
		Nodes: t.job.Nodes, Waited: end - t.trace.Submit - t.trace.Duration, Runtime: t.trace.Duration,
		TimeLimit: t.trace.Limit, Outcome: structs.OutcomeSucceeded, EndedAt: origin.Add(end),
	}
	if len(t.job.Resources[0].Devices) > 0 {
		run.Devices = t.size
	} else {
		run.CPU = float64(t.size)
	}
	return run
}

// learn hands the scheduler new estimates when they are due.
func (r *replay) learn() bool {
	l := r.learner
	if l == nil || len(l.runs) == 0 || r.now-l.at < learnEvery {
		return false
	}
	l.flush()
	l.at = r.now
	r.believed = l.model.Outlook(r.wall(), r.ongoing())
	r.cluster.believe(r.believed)
	return true
}

// ongoing lists what runs.
func (r *replay) ongoing() iter.Seq[predict.Ongoing] {
	return func(yield func(predict.Ongoing) bool) {
		for _, over := range r.agenda {
			if t := over.task; t.on && t.runs == over.run && !yield(predict.Ongoing{Job: t.job, Since: origin.Add(t.began)}) {
				return
			}
		}
	}
}
