package server

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Bounds of the sweeps.
const (
	sweepDeletesMax  = 64  // jobs deleted by one sweep of a cluster with older servers
	forgetTogether   = 100 // a hundredth of the ended jobs that are kept is forgotten at once, so that events stay few
	endedLookEvery   = 15 * time.Second
	joinTokensKeptBy = structs.Duration(24 * time.Hour)
)

// sweeper does, on the leader, what only time brings about.
type sweeper struct {
	config    *Config
	proposals *proposals
}

// run does what only time brings about, until ctx ends.
func (s *sweeper) run(ctx context.Context) {
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
			if _, _, err := s.proposals.decide(ctx, structs.CommandLeaseOver, over); err != nil && ctx.Err() == nil {
				s.config.Logger.Warn("end of a lease was not taken", logkey.Error, err)
			}
		}
		if s.config.CleanUp != nil {
			s.config.CleanUp(ctx)
		}
	}
}

// sweep proposes everything that is due, and reports whether there were ended
// jobs to delete.
func (s *sweeper) sweep(ctx context.Context, countEnded bool) (deleted bool) {
	snapshot, now := s.config.Store.Snapshot(), s.config.now()
	due := dueSweeps(snapshot, now)
	if countEnded {
		due = append(due, dueForgetting(snapshot, now, s.config.Kept, s.config.Protocol())...)
	}
	if countEnded && s.config.Protocol() >= wire.ProtocolCode {
		due = append(due, dueCode(snapshot, now)...)
	}
	if countEnded && s.config.Protocol() >= wire.ProtocolData {
		due = append(due, dueData(snapshot, now)...)
	}
	if s.config.Protocol() >= wire.ProtocolNodeRemovals { // a server of before would stop at it
		due = append(due, dueRemovals(snapshot, now, s.config.ForgetNodes)...)
	}
	for _, due := range due {
		deleted = deleted || due.kind == structs.CommandJobDelete || due.kind == structs.CommandJobsForget
		if _, _, err := s.proposals.decide(ctx, due.kind, due.body); err != nil {
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

// dueSweeps lists what is due at now: attempts past their time limit, what waits and is
// to start no more, drains
// past their deadline, windows of maintenance that begin or are over, and join
// tokens that nobody can use any more.
func dueSweeps(snapshot *state.Snapshot, now structs.UnixNano) []dueSweep {
	var due []dueSweep
	expired, queued := snapshot.DueAttempts(now, state.LimitsMax), snapshot.DueQueued(now, state.LimitsMax)
	if len(expired) > 0 || len(queued) > 0 {
		due = append(due, dueSweep{structs.CommandJobLimits, &structs.JobLimits{Expired: expired, Queued: queued}})
	}
	for node := range snapshot.Nodes() {
		if drainIsDue(snapshot, node, now) {
			due = append(due, dueSweep{structs.CommandNodeEligibility, &structs.NodeEligibilityChange{
				NodeID: node.ID, Eligibility: structs.NodeDraining, DrainDeadline: node.DrainDeadline,
			}})
		}
	}
	for _, step := range DueMaintenance(snapshot, now) {
		due = append(due, dueSweep{structs.CommandMaintenanceStep, step})
	}
	for token := range snapshot.JoinTokens() {
		if token.ExpiresAt.Add(joinTokensKeptBy.Std()) < now {
			due = append(due, dueSweep{structs.CommandJoinTokenDelete, &structs.JoinTokenDelete{ID: token.ID}})
		}
	}
	return due
}

// drainIsDue reports whether a node's drain deadline has passed while it still
// has work that nobody asked to stop.
func drainIsDue(snapshot *state.Snapshot, node *structs.Node, now structs.UnixNano) bool {
	if node.Eligibility != structs.NodeDraining || node.DrainDeadline == 0 || node.DrainDeadline > now {
		return false
	}
	return hasWork(snapshot, node)
}

// hasWork reports whether a node has work that nobody asked to stop.
func hasWork(snapshot *state.Snapshot, node *structs.Node) bool {
	for alloc := range snapshot.Occupants(node.ID) {
		if alloc.Desired == structs.DesiredRun && !alloc.Status.Terminal() {
			return true
		}
	}
	return false
}

// DueMaintenance begins the windows whose start has passed, again while there is
// work on their nodes that should have stopped, and removes those that are over.
func DueMaintenance(snapshot *state.Snapshot, now structs.UnixNano) []*structs.MaintenanceStep {
	var due []*structs.MaintenanceStep
	for _, window := range snapshot.Maintenance() {
		step := structs.MaintenanceBegin
		switch {
		case window.End <= now:
			step = structs.MaintenanceOver
		case window.Start > now, window.Begun && (window.KeepRunning || !coversWork(snapshot, &window)):
			continue
		}
		due = append(due, &structs.MaintenanceStep{ID: window.ID, Step: step})
	}
	return due
}

// coversWork reports whether a node of a window has work that nobody asked to stop.
func coversWork(snapshot *state.Snapshot, window *structs.Maintenance) bool {
	for node := range snapshot.Nodes() {
		if window.Covers(node) && hasWork(snapshot, node) {
			return true
		}
	}
	return false
}

// dueCode forgets code that no job names and that nobody has sent for a while.
func dueCode(snapshot *state.Snapshot, now structs.UnixNano) []dueSweep {
	var forgotten structs.CodeForget
	for tree := range snapshot.AllCode() {
		if len(forgotten.Trees) == structs.CodeForgetMax {
			break
		}
		if tree.SentAt.Add(structs.CodeGrace.Std()) > now {
			continue
		}
		named := false
		for range snapshot.JobsOfCode(tree.Ref()) {
			named = true
			break
		}
		if !named {
			forgotten.Trees = append(forgotten.Trees, tree.Ref())
		}
	}
	if len(forgotten.Trees) == 0 {
		return nil
	}
	return []dueSweep{{structs.CommandCodeForget, &forgotten}}
}

// Kept says which ended jobs the state keeps. The zero value keeps all.
type Kept struct {
	Jobs int              // so many of those that ended last; 0: any number
	For  structs.Duration // and each for so long; 0: for ever
}

// dueForgetting removes the ended jobs that are kept no longer, oldest first:
// many by one command where every server knows it.
func dueForgetting(snapshot *state.Snapshot, now structs.UnixNano, kept Kept, protocol int) []dueSweep {
	ids := forgettable(snapshot, now, kept)
	if len(ids) == 0 {
		return nil
	}
	if protocol >= wire.ProtocolForget {
		return []dueSweep{{structs.CommandJobsForget, &structs.JobsForget{
			JobIDs: ids[:min(len(ids), state.ForgottenMax)], Kept: kept.Jobs, For: kept.For, ByProject: protocol >= wire.ProtocolJobBytes,
		}}}
	}
	var due []dueSweep
	for _, id := range ids[:min(len(ids), sweepDeletesMax)] {
		due = append(due, dueSweep{structs.CommandJobDelete, &structs.JobDelete{JobID: id}})
	}
	return due
}

// forgettable lists the ended jobs that are kept no longer, those first that
// ended first; none until there are enough for an event of their own, or the
// oldest of them is a hundredth of its time too old. Jobs that wait or run do
// not count, however many they are. Of too many, the project that has most loses
// its oldest first: nobody's short jobs push out those of others.
func forgettable(snapshot *state.Snapshot, now structs.UnixNano, kept Kept) []string {
	if kept.For == 0 && (kept.Jobs == 0 || snapshot.JobCount() <= kept.Jobs) {
		return nil
	}
	type ended struct {
		id, project string
		at          structs.UnixNano
	}
	var jobs []ended
	for view := range snapshot.Jobs() {
		if view.Status.State.Terminal() {
			jobs = append(jobs, ended{view.Job.ID, view.Job.Project, view.Status.FinishedAt})
		}
	}
	slices.SortStableFunc(jobs, func(a, b ended) int { return cmp.Compare(a.at, b.at) })
	over, late := map[string]int{}, 0
	if kept.Jobs > 0 && len(jobs) > kept.Jobs+kept.Jobs/forgetTogether {
		projects := make([]string, len(jobs))
		for i := range jobs {
			projects[i] = jobs[i].project
		}
		over = overflow(projects, kept.Jobs)
	}
	if kept.For > 0 && len(jobs) > 0 && now.Sub(jobs[0].at) > kept.For.Std()+kept.For.Std()/forgetTogether {
		late = sort.Search(len(jobs), func(i int) bool { return now.Sub(jobs[i].at) <= kept.For.Std() })
	}
	var ids []string
	for i, job := range jobs {
		if over[job.project] > 0 {
			over[job.project]--
		} else if i >= late {
			continue
		}
		ids = append(ids, job.id)
	}
	return ids
}

// overflow is how many jobs each project loses so that kept are left, when the
// project with most jobs loses one again and again. projects are those of the
// jobs, oldest first; of projects with as many the one with the oldest job loses
// first.
func overflow(projects []string, kept int) map[string]int {
	count, over := make(map[string]int), make(map[string]int)
	for _, project := range projects {
		count[project]++
	}
	// The level down to which projects lose: what is above it goes, and of those
	// that stand at it, as many lose one more as it takes.
	left := func(level int) (sum int) {
		for _, n := range count { // a sum: in any order
			sum += min(n, level)
		}
		return sum
	}
	level := sort.Search(len(projects)+1, func(level int) bool { return left(level) >= kept })
	rest := left(level) - kept
	for project, n := range count { // into a map: in any order
		over[project] = max(n-level, 0)
	}
	seen, more := make(map[string]int), make(map[string]bool)
	for _, project := range projects {
		if rest == 0 {
			break
		}
		if seen[project]++; !more[project] && count[project] >= level && seen[project] > over[project] {
			more[project] = true // its oldest that would be left
			rest--
		}
	}
	for project := range more {
		over[project]++
	}
	return over
}
