package structs

import "slices"

// Victim is a running attempt that a plan wants to end for another gang.
type Victim struct {
	Job   *Job
	Nodes []*Node // that its allocations hold
	Held  Holding // what it counts in its project's quota
}

// VictimProblem tells why a victim may not be ended for a gang of job that
// would hold more, or nil when it may. The scheduler asks it while it searches
// and state.Apply again. Who yields:
//
//	its own attempt          one that Resizes: a change of size
//	VIP job                  never
//	on a machine to kill     whoever it is, when job is VIP and says so
//	preemptible, lower tier  always
//	preemptible, same tier   when its project borrows what is guaranteed to job's,
//	                         or has no quotas and holds some of that
//
// Each rule needs strictly lower standing, and a gang that reclaims its
// guarantee borrows nothing itself, so no two jobs can ever preempt each other
// in turn.
func VictimProblem(job *Job, more Holding, victim Victim, ground Ground) *Reason {
	switch {
	case victim.Job.ID == job.ID:
		if job.Resizes() {
			return nil
		}
	case victim.Job.VIP != nil:
	case job.VIP.kills(victim.Nodes):
		return nil
	case !victim.Job.Preemptible:
	case victim.Job.Priority.Rank() < job.Priority.Rank():
		return nil
	case victim.Job.Priority.Rank() == job.Priority.Rank() && victim.Job.Project != job.Project &&
		(Borrows(ground.Project(victim.Job.Project), ground.ProjectUsage(victim.Job.Project), victim.Held) ||
			victim.Job.OutsideYields && Outside(ground.Project(victim.Job.Project)) && Guarantees(ground.Project(job.Project), more, victim.Held)) &&
		WithinGuarantee(ground.Project(job.Project), ground.ProjectUsage(job.Project), more):
		return nil
	}
	return NewReason("scheduler.refused_victim", "job", victim.Job.Name)
}

// Chooses reports whether the node is one of the chosen machines.
func (v *VIP) Chooses(node *Node) bool {
	return slices.ContainsFunc(v.Machines, func(m VIPMachine) bool { return m.Node == node.Name || m.Node == node.ID })
}

// kills reports whether one of nodes is a machine whose jobs are to be ended.
func (v *VIP) kills(nodes []*Node) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.Machines, func(m VIPMachine) bool {
		return m.Busy == BusyKill && slices.ContainsFunc(nodes, func(n *Node) bool { return m.Node == n.Name || m.Node == n.ID })
	})
}
