package forecast

import (
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// newcomerID names a job that has no id yet. No admitted job can have it.
const newcomerID = "·forecast·"

// Job looks into the future of a board and forecasts a job that is not
// submitted yet. See Futures.Job.
func Job(in Input, job *structs.Job, now structs.UnixNano, seed uint64) Answer {
	return Look(in, now, seed).Job(job)
}

// admitted gives a job as it would be in the queue. The job is not changed.
func (f *Futures) admitted(job *structs.Job) (*structs.Job, *structs.Subjob) {
	own := *job
	if own.ID == "" {
		own.ID = newcomerID
	}
	if own.SubmittedAt == 0 {
		own.SubmittedAt = f.now
	}
	return &own, &structs.Subjob{JobID: own.ID, State: structs.JobQueued, QueuedAt: f.now, CreateIndex: math.MaxUint64}
}

// probe is what the scheduler would do with a job at now.
type probe struct {
	gang     *structs.GangPlan // nil: it does not start now
	wait     *structs.WaitReason
	pool     string
	position int
	span     time.Duration
}

// try lets a board, settled at now, serve one more subjob.
func (f *Futures) try(job *structs.Job, subjob *structs.Subjob) (probe, *scheduler.Board) {
	b := f.base.Clone()
	settings := b.Settings()
	settings.Quiet, settings.Alone = false, false
	b.SetSettings(settings)
	b.Submit(job, subjob)
	var got probe
	for q := range b.Queued() {
		if q.Subjob == subjob {
			got.pool, got.position = q.Pool, q.Position
			if q.Expected {
				got.span = q.Span.Std()
			}
			break
		}
	}
	for range settleMax {
		plan := b.Pass(f.now, f.seed)
		for i := range plan.Gangs {
			if g := &plan.Gangs[i]; g.JobID == subjob.JobID && g.Subjob == subjob.Index {
				got.gang = g
				return got, b
			}
		}
		if len(plan.Gangs) == 0 && len(plan.Waits) == 0 {
			break
		}
	}
	got.wait = b.Explain(subjob.JobID, subjob.Index)
	return got, b
}

// startsNow tells whether the job starts without anybody leaving first.
func (p *probe) startsNow() bool { return p.gang != nil && len(p.gang.Victims) == 0 && !p.gang.Claim }

// Job forecasts a job that is not submitted yet: complete and valid, with its
// defaults filled in. Whoever it names as ID must not be on the board.
func (f *Futures) Job(job *structs.Job) Answer {
	job, subjob := f.admitted(job)
	got, _ := f.try(job, subjob)
	a := Answer{Pool: got.pool, Position: got.position, Spec: -1, Subjobs: max(1, job.SubjobCount()), Wait: got.wait}
	if got.gang != nil {
		a.Spec = got.gang.Spec
		a.Victims = f.victims(got.gang.Victims)
	}
	a.When, a.Features = f.whenOf(job, subjob, &got)
	a.Specs = f.specs(job, subjob, a.When, &got)
	if a.Verdict == VerdictNow {
		a.Wait, a.Room = nil, 1
	}
	a.Runtime = f.runtime(job, subjob)
	return a
}

// whenOf forecasts the start of a job that was probed.
func (f *Futures) whenOf(job *structs.Job, subjob *structs.Subjob, got *probe) (When, []float64) {
	switch {
	case got.startsNow():
		return nowAt(f.now), nil
	case got.gang == nil && hopeless(got.wait):
		return When{Verdict: verdictOf(got.wait)}, nil
	}
	samples := f.replay(job, subjob)
	m := member{job: job, subjob: subjob, pool: got.pool, position: got.position, span: got.span}
	features := f.features(&m, samples)
	return f.answer(samples, features), features
}

// replay runs the scheduler through every future with the job in the queue.
func (f *Futures) replay(job *structs.Job, subjob *structs.Subjob) []sample {
	in := f.in
	in.Board = f.start.Clone()
	in.Board.Submit(job, subjob)
	again := prepare(in, f.now, f.seed)
	again.only = int(again.found[keyOf(subjob.JobID, subjob.Index)])
	again.follow()
	samples := make([]sample, len(again.futures))
	for i := range samples {
		samples[i] = again.futures[i].sampleOf(again.only)
	}
	return samples
}

// specs forecasts each alternative as if it were the only one.
func (f *Futures) specs(job *structs.Job, subjob *structs.Subjob, whole When, got *probe) []SpecAnswer {
	rows := make([]SpecAnswer, len(job.Resources))
	for i := range rows {
		rows[i] = SpecAnswer{Spec: i, Label: job.Resources[i].Label}
		one := got
		if len(job.Resources) > 1 {
			single := *job
			single.Resources = job.Resources[i : i+1]
			alone, _ := f.try(&single, subjob)
			one = &alone
			rows[i].When, _ = f.whenOf(&single, subjob, one)
		} else {
			rows[i].When = whole
		}
		if rows[i].Verdict != VerdictNow {
			rows[i].Wait = one.wait
		} else {
			rows[i].Nodes = len(one.gang.Placements)
		}
	}
	return rows
}

// victims describes gangs that would be ended.
func (f *Futures) victims(keys []structs.AttemptKey) []Victim {
	victims := make([]Victim, 0, len(keys))
	for _, key := range keys {
		at, known := f.found[keyOf(key.JobID, key.Subjob)]
		if !known {
			continue
		}
		m := &f.members[at]
		v := Victim{
			JobID: key.JobID, JobName: m.job.Name, Project: m.job.Project, User: m.job.User, Subjob: key.Subjob, Attempt: key.Number,
			Priority: m.job.Priority, Preemptible: m.job.Preemptible, Nodes: slices.Clone(m.gang.Nodes), Since: m.gang.RunningAt,
			CheckpointAt: m.gang.CheckpointAt, Grace: structs.Duration(grace(m.job)),
		}
		if since := max(m.gang.RunningAt, m.gang.CheckpointAt); since > 0 && since < f.now {
			v.Lost = structs.Duration(f.now.Sub(since))
		}
		victims = append(victims, v)
	}
	return victims
}

// runtime is how long a job will run over all futures; nil: nobody knows.
func (f *Futures) runtime(job *structs.Job, subjob *structs.Subjob) *Span {
	count := len(f.futures)
	own := chances(f.seed, []member{{job: job, subjob: subjob}}, count)
	spans := make([]time.Duration, 0, count)
	for i := range count {
		span, known := f.times.Draw(mix(f.seed, uint64(i))).Runtime(job, 0, own[i], 0)
		if !known {
			return nil
		}
		spans = append(spans, min(max(span, 0), HorizonMax))
	}
	slices.Sort(spans)
	return &Span{P50: structs.Duration(rank(spans, 0.5)), P90: structs.Duration(rank(spans, 0.9))}
}
