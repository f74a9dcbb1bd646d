package server

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// runQueue places what waits until ctx ends. Each turn takes everything that
// waits by then into one plan and one log entry; while that entry is being
// committed, more gathers for the next turn. So a quiet queue is served at
// once and a busy one in large plans.
func (s *Server) runQueue(ctx context.Context) {
	turn := turn{due: true}
	for ctx.Err() == nil {
		snapshot := s.config.Store.Snapshot()
		if snapshot.ScheduleIndex() == turn.looked && !turn.due {
			turn.due = s.awaitQueue(ctx, snapshot, turn)
			continue
		}
		turn.looked, turn.due = snapshot.ScheduleIndex(), false
		turn.hasty = time.Since(turn.explained) < s.config.Timings.ExplainEvery
		if !turn.hasty {
			turn.explained = time.Now()
		}
		input := scheduler.Input{Snapshot: snapshot, Quiet: turn.hasty}
		plan := scheduler.Schedule(input, s.now(), snapshot.Index())
		if len(plan.Gangs) == 0 && len(plan.Waits) == 0 {
			continue
		}
		if !s.proposePlan(ctx, plan) {
			turn.due = pause(ctx, retryMax)
		}
	}
}

// turn is what the queue loop remembers of its newest turn.
type turn struct {
	looked    uint64    // schedule index that it looked at
	due       bool      // the next one is due though nothing changed
	hasty     bool      // it left explanations out
	explained time.Time // when they were last looked at
}

// awaitQueue waits until the queue may be worth another turn. It tells true
// when that is so by time alone: a restart delay is over, or explanations were
// left out.
func (s *Server) awaitQueue(ctx context.Context, snapshot *state.Snapshot, turn turn) bool {
	var fired <-chan time.Time
	if span, due := nextTurn(snapshot, s.now(), turn, s.config.Timings.ExplainEvery-time.Since(turn.explained)); due {
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

// nextTurn tells how long from now the queue is worth another turn though
// nothing changes; false: never, by time alone.
func nextTurn(snapshot *state.Snapshot, now structs.UnixNano, turn turn, explainIn time.Duration) (span time.Duration, due bool) {
	if turn.hasty {
		for range snapshot.Queue() {
			span, due = explainIn, true
			break
		}
	}
	if at, delayed := snapshot.NextDelayed(now); delayed && (!due || at.Sub(now) < span) {
		span, due = at.Sub(now), true
	}
	return span, due
}

// proposePlan puts a plan into the log, and tells whether it arrived.
func (s *Server) proposePlan(ctx context.Context, plan structs.Plan) bool {
	kind, body := structs.CommandPlan, any(&plan)
	if len(plan.Gangs) == 0 {
		kind, body = structs.CommandWaitReasons, &structs.WaitReasons{Waits: plan.Waits}
	}
	result, index, err := s.decide(ctx, kind, body)
	if err != nil {
		if ctx.Err() == nil {
			s.config.Logger.Warn("plan was not taken", logkey.Error, err)
		}
		return false
	}
	if result.Plan != nil && len(result.Plan.Refused) > 0 {
		s.config.Logger.Info("gangs of a plan were refused", logkey.Index, index, logkey.Count, len(result.Plan.Refused))
	}
	return true
}
