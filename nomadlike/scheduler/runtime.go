package scheduler

import (
	"math"
	"time"

	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/structs"
)

// spanUnknown is the run time of a job of which nothing is known, not even a
// limit.
const spanUnknown = time.Duration(math.MaxInt64)

// How long a gang is expected to stay beyond what was expected of it.
const (
	overdue     = 30 * time.Second // past its time limit, or while it is being stopped
	outliveMin  = time.Minute      // first of the ages at which an estimate is made anew
	outliveStep = 1.3              // each further age is so many times the one before
)

// The shares of runs that are shorter than what a board reckons with. A median
// is passed half of the time, and then a reserved start slips; website/design/0009
// has what others do to slowdowns.
const (
	endQuantile  = 0.8 // when a running gang ends
	spanQuantile = 0.8 // how long a queued one will run
)

// Estimates reports how long jobs run. A predict.Model, an Outlook and a Draw of
// it do. Boards ask from their own goroutine, clones from theirs.
type Estimates interface {
	Estimate(job *structs.Job) predict.Estimate
}

// SetModel changes what the board knows of run times; nil: their limits alone.
// It is due after the model learned, too. Queued jobs are estimated anew when
// they are looked at next, running ones when they reach the next of the ages at
// which that is due, so a model that learns often costs little.
func (b *Board) SetModel(model Estimates) {
	b.settings.Model = model
	b.modelled++
	b.reorder()
	b.queue.soilAll()
}

// remodel makes every estimate anew.
func (b *Board) remodel() {
	b.SetModel(b.settings.Model)
	for i := range b.queue.runs {
		b.queue.runs[i].again = 0
	}
}

// modelEntry estimates how long an entry runs, once for each version of the
// estimates.
func (b *Board) modelEntry(e *entry) {
	if e.modelled == b.modelled {
		return
	}
	e.modelled = b.modelled
	switch {
	case b.settings.Runtime != nil:
		if e.stand != running { // a simulation tells it once, at the start
			e.span = b.settings.Runtime(e.job, e.index)
		}
	case b.settings.Model != nil:
		e.likely = b.settings.Model.Estimate(e.job)
		e.span = e.likely.Quantile(spanQuantile)
	default:
		e.span = spanUnknown
	}
	if limit := e.job.TimeLimit.Std(); limit > 0 {
		e.span = min(e.span, limit)
	}
	e.span = max(e.span, time.Second)
}

// later adds a span to a time, and stays at never.
func later(at structs.UnixNano, span time.Duration) structs.UnixNano {
	if at == never || span == spanUnknown || int64(at) > math.MaxInt64-int64(span) {
		return never
	}
	return at.Add(span)
}

// endOf estimates when a gang ends, as known at now, and when that is due to be
// estimated anew. It is a function of the gang and now alone, so that a board
// that was kept for a day says the same as one that was just made.
func (b *Board) endOf(e *entry, now structs.UnixNano) (end, again structs.UnixNano) {
	g := e.gang
	start := g.runningAt
	if start == 0 {
		start = g.placedAt
	}
	if g.endingAt != 0 {
		end = afterNow(g.endingAt.Add(stopSpan(e.job)), now)
		return end, end
	}
	b.modelEntry(e)
	end, again = later(g.placedAt, e.span), never
	if b.settings.Model != nil && b.settings.Runtime == nil {
		end, again = outlive(e.likely, g.placedAt, now)
	}
	if limit := e.job.TimeLimit.Std(); limit > 0 {
		end = min(end, later(start, limit))
	}
	end = afterNow(end, now)
	return end, min(again, end)
}

// outlive estimates the end of a gang that has run for some time, and when the
// next age is reached at which that is due anew. Between these ages the estimate
// stands still, so that little has to be reckoned anew as time goes by.
func outlive(likely predict.Estimate, start, now structs.UnixNano) (end, again structs.UnixNano) {
	age, next := time.Duration(0), outliveMin
	if ran := now.Sub(start); ran >= outliveMin {
		steps := math.Floor(math.Log(ran.Seconds()/outliveMin.Seconds()) / math.Log(outliveStep))
		for age, next = outliveAge(steps), outliveAge(steps+1); next <= ran; steps++ { // logarithms round
			age, next = next, outliveAge(steps+2)
		}
	}
	again = later(start, next)
	if end = later(start, age+likely.Remaining(age, endQuantile)); end <= now {
		end = again // it outlived what was expected at that age
	}
	return end, again
}

// outliveAge is the age after so many steps.
func outliveAge(steps float64) time.Duration {
	return time.Duration(outliveMin.Seconds() * math.Pow(outliveStep, steps) * float64(time.Second))
}

// afterNow moves an end that has passed on, by whole steps.
func afterNow(end, now structs.UnixNano) structs.UnixNano {
	if end > now {
		return end
	}
	return end.Add(now.Sub(end).Truncate(overdue) + overdue)
}

// boundOf is when a gang has ended at the latest, because its time limit is over
// then and its ranks were given time to stop; never: it has no limit.
func (b *Board) boundOf(e *entry, now structs.UnixNano) structs.UnixNano {
	g := e.gang
	if g.endingAt != 0 {
		return afterNow(g.endingAt.Add(stopSpan(e.job)), now)
	}
	start := g.runningAt
	if start == 0 {
		start = g.placedAt
	}
	return afterNow(later(start, limitOf(e.job)), now)
}

// limitOf is how long a job may run; spanUnknown: for ever.
func limitOf(job *structs.Job) time.Duration {
	if limit := job.TimeLimit.Std(); limit > 0 {
		return limit
	}
	return spanUnknown
}

// foresee estimates the end of a running gang anew.
func (b *Board) foresee(e *entry, now structs.UnixNano) {
	r := &b.queue.runs[e.run]
	r.end, r.again = b.endOf(e, now)
	r.bound = b.boundOf(e, now)
}

// stopSpan is how long the ranks of a job may take to stop.
func stopSpan(job *structs.Job) time.Duration {
	span := job.StopGrace.Std()
	if job.Checkpoint != nil {
		span = max(span, job.Checkpoint.Grace.Std())
	}
	return max(span, overdue)
}

// refresh makes the estimates of ends that are due.
func (b *Board) refresh(now structs.UnixNano) {
	for i := range b.queue.runs {
		r := &b.queue.runs[i]
		if now < r.again {
			continue
		}
		e := &b.queue.entries[r.entry]
		before := *r
		b.foresee(e, now)
		if r.end == before.end && r.bound == before.bound {
			continue
		}
		for k := range e.gang.seats {
			b.touch(int32(e.gang.seats[k].Index()))
		}
	}
}
