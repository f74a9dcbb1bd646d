package feasible

import (
	"nomadlike/nomadlike/structs"
)

// Victim is a running attempt that a plan wants to end for another gang.
type Victim struct {
	Job        *structs.Job
	Nodes      []*structs.Node    // that its allocations hold
	QuotaUsage structs.QuotaUsage // what it counts in its project's quota
	Consents   bool               // its owner agreed, or did not answer in time: see structs.Consent
}

// VictimProblem reports why a victim may not be ended for a gang of job that
// would hold more, or nil when it may. The scheduler asks it while it searches
// and state.Apply again. Who yields:
//
//	its own attempt          one that Resizes: a change of size
//	VIP job                  never
//	on a machine to kill     whoever it is, when job is VIP and says so
//	on a machine to ask for  when its owner agreed, or did not answer in time
//	preemptible, lower tier  always
//	preemptible, same tier   when its project borrows what is guaranteed to job's,
//	                         or has no quotas and holds some of that
//
// Each rule needs strictly lower rank, and a gang that reclaims its
// guarantee borrows nothing itself, so no two jobs can ever preempt each other
// in turn.
func VictimProblem(job *structs.Job, more structs.QuotaUsage, victim Victim, view View) *structs.Reason {
	switch {
	case victim.Job.ID == job.ID:
		if job.Resizes() {
			return nil
		}
	case victim.Job.VIP != nil:
	case victim.Consents, job.VIP.Kills(victim.Nodes):
		return nil
	case !victim.Job.Preemptible:
	case victim.Job.Priority.Rank() < job.Priority.Rank():
		return nil
	case victim.Job.Priority.Rank() == job.Priority.Rank() && victim.Job.Project != job.Project &&
		(structs.Borrows(view.Project(victim.Job.Project), view.ProjectUsage(victim.Job.Project), victim.QuotaUsage) ||
			victim.Job.OutsideYields && structs.Outside(view.Project(victim.Job.Project)) && structs.Guarantees(view.Project(job.Project), more, victim.QuotaUsage)) &&
		structs.WithinGuarantee(view.Project(job.Project), view.ProjectUsage(job.Project), more):
		return nil
	}
	return structs.NewReason("scheduler.refused_victim", "job", victim.Job.Name)
}
