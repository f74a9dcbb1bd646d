package server

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// Bounds of the sweeps.
const (
	EndedJobsMax     = 10_000 // ended jobs that the state keeps, oldest deleted first
	sweepDeletesMax  = 64     // jobs deleted by one sweep
	joinTokensKeptBy = structs.Duration(24 * time.Hour)
)

// runSweeps does what only time brings about, until ctx ends.
func (s *Server) runSweeps(ctx context.Context) {
	tick := time.NewTicker(s.config.Timings.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		s.sweep(ctx)
		if s.config.CleanUp != nil {
			s.config.CleanUp(ctx)
		}
	}
}

// sweep proposes everything that is due.
func (s *Server) sweep(ctx context.Context) {
	for _, due := range dueSweeps(s.config.Store.Snapshot(), s.now()) {
		if _, _, err := s.decide(ctx, due.kind, due.body); err != nil {
			if ctx.Err() == nil {
				s.config.Logger.Warn("sweep was not taken", logkey.Error, err)
			}
			return
		}
	}
}

// dueSweep is a command that time has made due.
type dueSweep struct {
	kind structs.CommandKind
	body any
}

// dueSweeps lists what is due at now: attempts past their time limit, drains
// past their deadline, ended jobs beyond the bound, and join tokens that
// nobody can use any more.
func dueSweeps(snapshot *state.Snapshot, now structs.UnixNano) []dueSweep {
	var due []dueSweep
	if expired := expiredAttempts(snapshot, now); len(expired) > 0 {
		due = append(due, dueSweep{structs.CommandJobLimits, &structs.JobLimits{Expired: expired}})
	}
	for node := range snapshot.Nodes() {
		if drainIsDue(snapshot, node, now) {
			due = append(due, dueSweep{structs.CommandNodeEligibility, &structs.NodeEligibilityChange{
				NodeID: node.ID, Eligibility: structs.NodeDraining, DrainDeadline: node.DrainDeadline}})
		}
	}
	for _, id := range endedBeyond(snapshot, EndedJobsMax) {
		due = append(due, dueSweep{structs.CommandJobDelete, &structs.JobDelete{JobID: id}})
	}
	for token := range snapshot.JoinTokens() {
		if token.ExpiresAt.Add(joinTokensKeptBy.Std()) < now {
			due = append(due, dueSweep{structs.CommandJoinTokenDelete, &structs.JoinTokenDelete{ID: token.ID}})
		}
	}
	return due
}

// expiredAttempts lists attempts that have run for longer than their job may.
func expiredAttempts(snapshot *state.Snapshot, now structs.UnixNano) []structs.AttemptKey {
	var expired []structs.AttemptKey
	for attempt := range snapshot.LiveAttempts() {
		if attempt.RunningAt == 0 || attempt.State == structs.AttemptEnding || len(expired) == state.LimitsMax {
			continue
		}
		view, ok := snapshot.Job(attempt.JobID)
		if ok && view.Job.TimeLimit > 0 && now.Sub(attempt.RunningAt) >= view.Job.TimeLimit.Std() {
			expired = append(expired, structs.AttemptKey{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number})
		}
	}
	return expired
}

// drainIsDue tells whether a node's drain deadline has passed while it still
// has work that nobody asked to stop.
func drainIsDue(snapshot *state.Snapshot, node *structs.Node, now structs.UnixNano) bool {
	if node.Eligibility != structs.NodeDraining || node.DrainDeadline == 0 || node.DrainDeadline > now {
		return false
	}
	for alloc := range snapshot.Holders(node.ID) {
		if alloc.Desired == structs.DesiredRun && !alloc.Status.Terminal() {
			return true
		}
	}
	return false
}

// endedBeyond lists the oldest ended jobs beyond the number that is kept.
func endedBeyond(snapshot *state.Snapshot, kept int) []string {
	excess := snapshot.JobCount() - kept
	if excess <= 0 {
		return nil
	}
	var ended []string
	for view := range snapshot.Jobs() {
		if len(ended) == min(excess, sweepDeletesMax) {
			break
		}
		if view.Standing.State.Terminal() {
			ended = append(ended, view.Job.ID)
		}
	}
	return ended
}
