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
	endedLookEvery   = 15 * time.Second
	joinTokensKeptBy = structs.Duration(24 * time.Hour)
)

// runSweeps does what only time brings about, until ctx ends.
func (s *Server) runSweeps(ctx context.Context) {
	tick := time.NewTicker(s.config.Timings.SweepEvery)
	defer tick.Stop()
	looked := time.Now() // at the number of ended jobs: it walks all of them
	fences, began := NewFences(s.config.Timings.LeaseTTL), time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		count := time.Since(looked) >= endedLookEvery
		if more := s.sweep(ctx, count); count && !more {
			looked = time.Now()
		}
		for _, over := range fences.Step(s.config.Store.Snapshot(), time.Since(began)) {
			if _, _, err := s.decide(ctx, structs.CommandLeaseOver, over); err != nil && ctx.Err() == nil {
				s.config.Logger.Warn("end of a lease was not taken", logkey.Error, err)
			}
		}
		if s.config.CleanUp != nil {
			s.config.CleanUp(ctx)
		}
	}
}

// sweep proposes everything that is due, and tells whether there were ended
// jobs to delete.
func (s *Server) sweep(ctx context.Context, countEnded bool) (deleted bool) {
	for _, due := range dueSweeps(s.config.Store.Snapshot(), s.now(), countEnded) {
		deleted = deleted || due.kind == structs.CommandJobDelete
		if _, _, err := s.decide(ctx, due.kind, due.body); err != nil {
			if ctx.Err() == nil {
				s.config.Logger.Warn("sweep was not taken", logkey.Error, err)
			}
			return deleted
		}
	}
	return deleted
}

// dueSweep is a command that time has made due.
type dueSweep struct {
	kind structs.CommandKind
	body any
}

// dueSweeps lists what is due at now: attempts past their time limit, drains
// past their deadline, join tokens that nobody can use any more and, when they
// are to be counted, ended jobs beyond the bound.
func dueSweeps(snapshot *state.Snapshot, now structs.UnixNano, countEnded bool) []dueSweep {
	var due []dueSweep
	if expired := snapshot.DueAttempts(now, state.LimitsMax); len(expired) > 0 {
		due = append(due, dueSweep{structs.CommandJobLimits, &structs.JobLimits{Expired: expired}})
	}
	for node := range snapshot.Nodes() {
		if drainIsDue(snapshot, node, now) {
			due = append(due, dueSweep{structs.CommandNodeEligibility, &structs.NodeEligibilityChange{
				NodeID: node.ID, Eligibility: structs.NodeDraining, DrainDeadline: node.DrainDeadline}})
		}
	}
	if countEnded {
		for _, id := range endedBeyond(snapshot, EndedJobsMax) {
			due = append(due, dueSweep{structs.CommandJobDelete, &structs.JobDelete{JobID: id}})
		}
	}
	for token := range snapshot.JoinTokens() {
		if token.ExpiresAt.Add(joinTokensKeptBy.Std()) < now {
			due = append(due, dueSweep{structs.CommandJoinTokenDelete, &structs.JoinTokenDelete{ID: token.ID}})
		}
	}
	return due
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

// endedBeyond lists the oldest ended jobs beyond the number that is kept. Jobs
// that wait or run do not count, however many they are.
func endedBeyond(snapshot *state.Snapshot, kept int) []string {
	if snapshot.JobCount() <= kept {
		return nil
	}
	ended := 0
	var oldest []string
	for view := range snapshot.Jobs() {
		if !view.Standing.State.Terminal() {
			continue
		}
		if ended++; len(oldest) < sweepDeletesMax {
			oldest = append(oldest, view.Job.ID)
		}
	}
	return oldest[:min(max(ended-kept, 0), len(oldest))]
}
