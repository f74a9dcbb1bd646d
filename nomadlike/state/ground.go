package state

import (
	"nomadlike/nomadlike/structs"
)

// ground lets feasibility stand on a transaction.
type ground struct{ *txn }

// Node implements feasible.View.
func (g ground) Node(id string) (*structs.Node, *structs.Usage) {
	node, ok := g.node(id)
	if !ok {
		return nil, nil
	}
	usage := g.usage(id)
	return node, &usage
}

// Pool implements feasible.View.
func (g ground) Pool(name string) *structs.Pool {
	pool, _ := get[*structs.Pool](g.txn, tablePools, idKey(name))
	return pool
}

// Project implements feasible.View.
func (g ground) Project(name string) *structs.Project { return g.project(name) }

// ProjectUsage implements feasible.View.
func (g ground) ProjectUsage(name string) *structs.ProjectUsage { return g.projectUsage(name) }

// laterGround is the state as it will be once some allocations are gone.
type laterGround struct {
	ground
	gone     map[string]bool // allocation ids
	usages   map[string]*structs.Usage
	projects map[string]*structs.ProjectUsage
}

// afterLeaving returns the ground as it stands, from which allocations can be
// taken away.
func (tx *txn) afterLeaving() *laterGround {
	return &laterGround{
		ground: ground{tx}, gone: make(map[string]bool),
		usages: make(map[string]*structs.Usage), projects: make(map[string]*structs.ProjectUsage),
	}
}

// Node implements feasible.View.
func (g *laterGround) Node(id string) (*structs.Node, *structs.Usage) {
	if usage, ok := g.usages[id]; ok {
		node, _ := g.node(id)
		return node, usage
	}
	return g.ground.Node(id)
}

// ProjectUsage implements feasible.View.
func (g *laterGround) ProjectUsage(name string) *structs.ProjectUsage {
	if usage, ok := g.projects[name]; ok {
		return usage
	}
	return g.ground.ProjectUsage(name)
}

// remove takes one allocation away.
func (g *laterGround) remove(alloc *structs.Allocation) {
	if g.gone[alloc.ID] {
		return
	}
	g.gone[alloc.ID] = true
	if node, usage := g.Node(alloc.NodeID); node != nil && alloc.HoldsResources() {
		less := subUsage(*usage, alloc)
		less.Overcommitted = overCapacity(&less, node)
		g.usages[alloc.NodeID] = &less
	}
	if usage := g.ProjectUsage(alloc.Project); usage != nil && alloc.CountsInQuota() {
		less := *usage
		less.Held = usage.Held.Sub(alloc.Held)
		g.projects[alloc.Project] = &less
	}
}

// removeAttempt takes all allocations of an attempt away.
func (g *laterGround) removeAttempt(attempt *structs.Attempt) {
	for _, alloc := range g.txn.gang(attempt.JobID, attempt.Subjob, attempt.Number) {
		if alloc.HoldsResources() {
			g.remove(alloc)
		}
	}
}

// removeLeaving takes away what leaves the nodes of a gang without being
// asked again: what is being stopped, and everything on machines for which a
// VIP job waits or that it empties when it can have them all.
func (g *laterGround) removeLeaving(job *structs.Job, gang *structs.GangPlan) {
	for _, placement := range gang.Placements {
		node, ok := g.node(placement.NodeID)
		if !ok {
			continue
		}
		waits := waitsFor(job, node)
		for _, alloc := range g.heldOn(placement.NodeID) {
			if waits || alloc.Desired == structs.DesiredStop {
				g.remove(alloc)
			}
		}
	}
}

// waitsFor reports whether the jobs on a machine leave before a VIP job starts,
// without being asked to by its promise.
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
