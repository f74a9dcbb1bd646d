package state

import (
	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// applyPlan places the gangs of a plan, each whole or not at all. Every gang
// is checked again against the tables as they are now, so a plan that was
// made from an older snapshot cannot overfill a node.
func applyPlan(tx *txn, body *structs.Plan) (structs.ApplyResult, *structs.Error) {
	if len(body.Gangs) > PlanGangsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "gangs", "max", PlanGangsMax)
	}
	if len(body.Waits) > WaitsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "waits", "max", WaitsMax)
	}
	result := &structs.PlanResult{}
	for i := range body.Gangs {
		if problem := tx.placeGang(&body.Gangs[i]); problem != nil {
			if result.Refused == nil {
				result.Refused = make(map[int]structs.Reason)
			}
			result.Refused[i] = *problem
			continue
		}
		result.Accepted++
	}
	tx.explainWaits(body.Waits)
	return structs.ApplyResult{Plan: result}, nil
}

// placeGang makes the next attempt of a subjob, or a nomination for it, or reports why
// neither can be.
func (tx *txn) placeGang(gang *structs.GangPlan) *structs.Reason {
	if len(gang.Victims) > 0 || gang.Nominate {
		return tx.nominate(gang)
	}
	job, _ := tx.job(gang.JobID)
	subjob, _ := tx.subjob(gang.JobID, gang.Subjob)
	if problem := feasible.GangProblem(job, subjob, gang, view{tx}); problem != nil {
		return problem
	}
	if problem := tx.maintenanceAgainst(job, gang); problem != nil {
		return problem
	}
	state, legal := subjob.State.Next(structs.StepPlaced)
	if !legal {
		return structs.NewReason("scheduler.refused_state", "state", subjob.State)
	}
	tx.startAttempt(job, subjob, state, gang)
	return nil
}

// gangAllocs makes the allocations of a gang, by rank.
func (tx *txn) gangAllocs(job *structs.Job, gang *structs.GangPlan) []*structs.Allocation {
	placed := job.Spread(gang.Placements)
	allocs := make([]*structs.Allocation, len(placed))
	for rank, placement := range placed {
		node, _ := tx.node(placement.NodeID) // feasibility has seen it
		spec := job.SpecOf(gang.Spec, rank, len(placed))
		allocs[rank] = &structs.Allocation{
			ID:    structs.AllocID(job.ID, gang.Subjob, gang.Attempt, rank),
			JobID: job.ID, JobName: job.Name, Project: job.Project,
			Subjob: gang.Subjob, Attempt: gang.Attempt, Rank: rank,
			Name:   structs.RankName(job, gang.Subjob, gang.Attempt, rank),
			NodeID: node.ID, NodeName: node.Name, Spec: spec,
			Ports: placement.Ports, Devices: placement.Devices,
			QuotaUsage: structs.QuotaUsageOf(spec, node, placement.Devices), Pool: node.Pool, PlacedAt: tx.now,
			Desired: structs.DesiredRun, Released: !job.NeedsBarrier(), Status: structs.AllocPending,
			CreateIndex: tx.index(),
		}
	}
	return allocs
}

// startAttempt stores a checked gang.
func (tx *txn) startAttempt(job *structs.Job, before *structs.Subjob, state structs.JobState, gang *structs.GangPlan) {
	if before.Nomination != nil {
		tx.releaseNodes(before.Nomination, structs.SubjobKey(job.ID, before.Index))
	}
	allocs := tx.gangAllocs(job, gang)
	for _, alloc := range allocs {
		alloc.Resume = before.Newest()
	}
	ids := make([]string, len(allocs))
	for rank, alloc := range allocs {
		ids[rank] = alloc.ID
	}
	tx.putAttempt(&attemptRow{Attempt: &structs.Attempt{
		JobID: job.ID, Subjob: gang.Subjob, Number: gang.Attempt, State: structs.AttemptPreparing,
		Spec: gang.Spec, Allocs: ids, PlacedAt: tx.now, CreateIndex: tx.index(),
	}})
	for _, alloc := range allocs {
		alloc.Control = before.Control // its throttle
		tx.putAlloc(nil, alloc)
	}
	after := *before
	after.State, after.Attempt = state, gang.Attempt
	after.Wait, after.Reason, after.NotBefore, after.NoPassingAt, after.Nomination = nil, nil, 0, 0, nil
	tx.putSubjob(job, before, &after)
	tx.endForecasts(job.ID, gang.Subjob, gang.Attempt, true)
	tx.tell(jobEvent("event.job.starting", job, &after), "job", job.Name,
		"attempt", decimal(gang.Attempt), "nodes", decimal(len(gang.Placements)))
}
