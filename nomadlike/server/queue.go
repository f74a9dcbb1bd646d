package server

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of the queue loop.
const (
	planRanksMax  = 16_384 // placements of one log entry, a single larger gang excepted
	plansInFlight = 3      // log entries that are being committed while the next is thought out
	// learnEvery is how often, at most, run times are learned anew; as seldom as
	// learning and estimating all that waits takes not more than a part of one in
	// learnShare of the loop's time.
	learnEvery = 2 * time.Second
	learnShare = 50
)

// queue is what the leader's queue loop works with. It belongs to one
// goroutine.
type queue struct {
	config    *Config
	proposals *proposals
	placing   *placing
	board     *scheduler.Board

	times   runTimes
	learnAt time.Time // when it may learn next; zero: at once

	last    lastPass
	revival revival
}

// lastPass is what the queue loop remembers of its newest pass.
type lastPass struct {
	looked    uint64    // schedule index that it looked at
	due       bool      // the next one is due though nothing changed
	hasty     bool      // it left explanations out
	explained time.Time // when they were last looked at
}

func newQueue(config *Config, proposals *proposals, placing *placing) *queue {
	return &queue{config: config, proposals: proposals, placing: placing, board: scheduler.NewBoard(rules()), last: lastPass{due: true}}
}

// placing is whether, and when, the queue loop starts things: others that have
// much to compute wait for it.
type placing struct {
	now  atomic.Bool               // the loop is starting what can start
	last atomic.Pointer[time.Time] // when it last started something; nil: never
}

// recently reports whether the queue loop starts things now, or did a moment ago.
func (p *placing) recently() bool {
	last := p.last.Load()
	return p.now.Load() || last != nil && time.Since(*last) < forecastRest
}

// run places what waits until ctx ends. Each pass takes everything that
// waits by then; while its plans are being committed, more gathers for the
// next pass. So a quiet queue is served at once and a busy one in large plans.
func (q *queue) run(ctx context.Context) {
	for ctx.Err() == nil {
		snapshot := q.config.Store.Snapshot()
		if snapshot.ScheduleIndex() == q.last.looked && !q.last.due {
			q.last.due = q.await(ctx, snapshot)
			continue
		}
		if q.revival.unheard(snapshot, time.Now()) {
			q.last.due = pause(ctx, unheardLook)
			continue
		}
		q.last.looked, q.last.due = snapshot.ScheduleIndex(), false
		q.last.hasty = time.Since(q.last.explained) < q.config.Timings.ExplainEvery
		if !q.last.hasty {
			q.last.explained = time.Now()
		}
		begin := time.Now()
		if !q.serve(ctx, snapshot) {
			q.last.due = pause(ctx, retryMax)
			continue
		}
		if q.config.Observer != nil {
			q.config.Observer.Passed(time.Since(begin))
		}
	}
}

// serve runs one pass, and reports whether everything that it decided arrived.
// Placing comes first: explanations are thought out when nothing more can
// start.
func (q *queue) serve(ctx context.Context, snapshot *state.Snapshot) bool {
	q.board.Sync(snapshot)
	q.learn(snapshot)
	q.board.SetSettings(q.settings(true))
	if !q.place(ctx, snapshot.Index()) {
		return false
	}
	if q.last.hasty {
		return true
	}
	q.board.SetSettings(q.settings(false))
	plan := q.board.Pass(q.config.now(), snapshot.Index())
	if len(plan.Gangs) == 0 && len(plan.Waits) == 0 {
		return true
	}
	q.last.due = q.last.due || len(plan.Gangs) > 0 || len(plan.Waits) >= scheduler.WaitsMax
	return q.propose(ctx, plan)
}

func (q *queue) settings(quiet bool) scheduler.Settings {
	settings := q.board.Settings()
	settings.Quiet = quiet
	return settings
}

// place starts what can start. Plans go to the log while the next is thought
// out; they do not wait for each other, since the board holds what they place.
func (q *queue) place(ctx context.Context, seed uint64) bool {
	q.placing.now.Store(true)
	defer q.placing.now.Store(false)
	var (
		arrived  = true
		mu       sync.Mutex
		flying   sync.WaitGroup
		inFlight = make(chan struct{}, plansInFlight)
	)
	for {
		plan := q.plan(seed)
		if len(plan.Gangs) == 0 {
			break
		}
		placedAt := time.Now()
		q.placing.last.Store(&placedAt)
		inFlight <- struct{}{}
		flying.Go(func() {
			ok := q.propose(ctx, plan)
			<-inFlight
			mu.Lock()
			arrived = arrived && ok
			mu.Unlock()
		})
	}
	flying.Wait()
	return arrived
}

// plan gathers passes into one log entry.
func (q *queue) plan(seed uint64) structs.Plan {
	var plan structs.Plan
	ranks := 0
	for {
		more := q.board.Pass(q.config.now(), seed)
		plan.SnapshotIndex = more.SnapshotIndex
		plan.Gangs, plan.Waits = append(plan.Gangs, more.Gangs...), append(plan.Waits, more.Waits...)
		for i := range more.Gangs {
			ranks += len(more.Gangs[i].Placements)
		}
		full := len(plan.Gangs)+scheduler.GangsMax > state.PlanGangsMax || ranks+scheduler.RanksMax > planRanksMax
		if len(more.Gangs) == 0 || full {
			return plan
		}
	}
}

// learn lets the board expect run times by what has ended, when that is due.
func (q *queue) learn(snapshot *state.Snapshot) {
	if q.times.of == snapshot.Lineage() && q.times.model != nil && (snapshot.PastRunSeq() == q.times.seen || time.Now().Before(q.learnAt)) {
		return
	}
	begin := time.Now()
	q.times.follow(snapshot)
	q.board.SetModel(q.times.model.Outlook(q.config.now(), ongoing(q.board)))
	took := time.Since(begin)
	q.learnAt = time.Now().Add(max(learnEvery, learnShare*took))
}

// await waits until the queue may be worth another pass. It returns true when
// that is so by time alone: a restart delay is over, explanations were left
// out, or run times are to be learned.
func (q *queue) await(ctx context.Context, snapshot *state.Snapshot) bool {
	var fired <-chan time.Time
	if span, due := q.next(snapshot); due {
		timer := time.NewTimer(max(span, 0))
		defer timer.Stop()
		fired = timer.C
	}
	select {
	case <-fired:
		return true
	case <-snapshot.WatchSchedule():
	case <-ctx.Done():
	}
	return false
}

// next reports how long from now the queue is worth another pass though nothing
// changes; false: never, by time alone.
func (q *queue) next(snapshot *state.Snapshot) (span time.Duration, due bool) {
	at := func(in time.Duration) {
		if !due || in < span {
			span, due = in, true
		}
	}
	now := q.config.now()
	if grow, known := q.board.GrowDue(now); known {
		at(grow.Sub(now))
	}
	if !waits(snapshot) {
		return span, due
	}
	if q.last.hasty {
		at(q.config.Timings.ExplainEvery - time.Since(q.last.explained))
	}
	if delayed, known := q.board.Due(now); known {
		at(delayed.Sub(now))
	}
	if snapshot.PastRunSeq() != q.times.seen {
		at(time.Until(q.learnAt))
	}
	return span, due
}

// propose puts a plan into the log, and reports whether it arrived and was
// taken whole.
func (q *queue) propose(ctx context.Context, plan structs.Plan) bool {
	kind, body := structs.CommandPlan, any(&plan)
	if len(plan.Gangs) == 0 {
		kind, body = structs.CommandWaitReasons, &structs.WaitReasons{Waits: plan.Waits}
	}
	result, index, err := q.proposals.decide(ctx, kind, body)
	if err != nil {
		if ctx.Err() == nil {
			q.config.Logger.Warn("plan was not taken", logkey.Error, err)
		}
		return false
	}
	if result.Plan != nil && len(result.Plan.Refused) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(result.Plan.Refused)))
		why := result.Plan.Refused[first]
		q.config.Logger.Info("gangs of a plan were refused", logkey.Index, index, logkey.Count, len(result.Plan.Refused),
			logkey.JobID, plan.Gangs[first].JobID, logkey.Reason, messages.Text(messages.English, why.ID, why.Params))
	}
	if q.config.Observer != nil && result.Plan != nil {
		q.tellPlaced(&plan, result.Plan)
	}
	return true
}

// tellPlaced tells the observer of the gangs of a plan that waited and have got their
// nodes: neither of nominations nor of attempts that change their size.
func (q *queue) tellPlaced(plan *structs.Plan, result *structs.PlanResult) {
	snapshot, now := q.config.Store.Snapshot(), q.config.now()
	for i := range plan.Gangs {
		gang := &plan.Gangs[i]
		job, known := snapshot.Job(gang.JobID)
		subjob := snapshot.Subjob(gang.JobID, gang.Subjob)
		own := func(victim structs.AttemptKey) bool {
			return victim.JobID == gang.JobID && victim.Subjob == gang.Subjob
		}
		if _, refused := result.Refused[i]; refused || gang.Nominate || !known || subjob == nil || slices.ContainsFunc(gang.Victims, own) {
			continue
		}
		var first *structs.Forecast
		if given := snapshot.Forecast(gang.JobID, gang.Subjob, gang.Attempt); len(given) > 0 {
			first = &given[0]
		}
		q.config.Observer.Placed(job.Job, now, now.Sub(subjob.QueuedAt), first)
	}
}
