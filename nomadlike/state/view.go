package state

import (
	"nomadlike/nomadlike/structs"
)

// view lets feasibility stand on a transaction.
type view struct{ *txn }

// Node implements feasible.View.
func (g view) Node(id string) (*structs.Node, *structs.Usage) {
	node, ok := g.node(id)
	if !ok {
		return nil, nil
	}
	usage := g.usage(id)
	return node, &usage
}

// Pool implements feasible.View.
func (g view) Pool(name string) *structs.Pool {
	pool, _ := get[*structs.Pool](g.txn, tablePools, idKey(name))
	return pool
}

// Project implements feasible.View.
func (g view) Project(name string) *structs.Project { return g.project(name) }

// ProjectUsage implements feasible.View.
func (g view) ProjectUsage(name string) *structs.ProjectUsage { return g.projectUsage(name) }

// laterView is the state as it will be once some allocations are gone.
type laterView struct {
	view
	gone     map[string]bool // allocation ids
	usages   map[string]*structs.Usage
	projects map[string]*structs.ProjectUsage
}

// afterLeaving returns the view as it stands, from which allocations can be
// taken away.
func (tx *txn) afterLeaving() *laterView {
	return &laterView{
		view: view{tx}, gone: make(map[string]bool),
		usages: make(map[string]*structs.Usage), projects: make(map[string]*structs.ProjectUsage),
	}
}

// Node implements feasible.View.
func (g *laterView) Node(id string) (*structs.Node, *structs.Usage) {
	if usage, ok := g.usages[id]; ok {
		node, _ := g.node(id)
		return node, usage
	}
	return g.view.Node(id)
}

// ProjectUsage implements feasible.View.
func (g *laterView) ProjectUsage(name string) *structs.ProjectUsage {
	if usage, ok := g.projects[name]; ok {
		return usage
	}
	return g.view.ProjectUsage(name)
}

// remove takes one allocation away.
func (g *laterView) remove(alloc *structs.Allocation) {
	if g.gone[alloc.ID] {
		return
	}
	g.gone[alloc.ID] = true
	if node, usage := g.Node(alloc.NodeID); node != nil && alloc.OccupiesNode() {
		less := subUsage(*usage, alloc)
		less.Overcommitted = overCapacity(&less, node)
		g.usages[alloc.NodeID] = &less
	}
	if usage := g.ProjectUsage(alloc.Project); usage != nil && alloc.CountsInQuota() {
		less := *usage
		less.QuotaUsage = usage.QuotaUsage.Sub(alloc.QuotaUsage)
		g.projects[alloc.Project] = &less
	}
}

// removeAttempt takes all allocations of an attempt away.
func (g *laterView) removeAttempt(attempt *structs.Attempt) {
	for _, alloc := range g.txn.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.OccupiesNode() {
			g.remove(alloc)
		}
	}
}

// removeLeaving takes away what leaves the nodes of a gang without being
// asked again: what is being stopped, and everything on machines for which a
// VIP job waits or that it empties when it can have them all.
func (g *laterView) removeLeaving(job *structs.Job, gang *structs.GangPlan) {
	for _, placement := range gang.Placements {
		node, ok := g.node(placement.NodeID)
		if !ok {
			continue
		}
		waits := waitsFor(job, node)
		for _, alloc := range g.occupantsOf(placement.NodeID) {
			if waits || alloc.Desired == structs.DesiredStop {
				g.remove(alloc)
			}
		}
	}
}

// waitsFor reports whether the jobs on a machine leave before a VIP job starts,
// without being asked to by its nomination.
func waitsFor(job *structs.Job, node *structs.Node) bool {
	if job.VIP == nil {
		return false
	}
	for _, machine := range job.VIP.Machines {
		if machine.Node == node.Name || machine.Node == node.ID {
			return machine.Busy != structs.BusyKill || job.KillsLast
		}
	}
	return false
}
