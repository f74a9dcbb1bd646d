package state

import (
	"github.com/hashicorp/go-memdb"

	"nomadlike/nomadlike/structs"
)

// upgradeFrom1 fills in, in the rows of a stored state of version 1, what version 2
// adds to them: places in the queue, pools of nodes, ends of time limits, and
// what projects hold. What was used before is not known, so ledgers begin with
// what runs now.
func upgradeFrom1(tx *memdb.Txn) {
	for _, row := range withPrefix[*subjobRow](tx, tableSubjobs, indexID, nil) {
		subjob := *row.Subjob
		subjob.Place = placeOf(subjob.CreateIndex)
		mustInsert(tx, tableSubjobs, &subjobRow{Subjob: &subjob, Tier: row.Tier, job: row.job})
	}
	for _, known := range withPrefix[*jobStatusRow](tx, tableJobStatuses, indexID, nil) {
		if len(known.History) > 0 && known.History[0].ID == eventSubmitted {
			status := *known
			status.SubmittedAt, status.History = known.History[0].Time, known.History[1:]
			mustInsert(tx, tableJobStatuses, &status)
		}
	}
	for _, known := range withPrefix[*structs.Node](tx, tableNodes, indexID, nil) {
		node := *known
		node.OwnPool = node.Pool
		node.Pool = structs.PoolOf(&node, nil)
		mustInsert(tx, tableNodes, &node)
	}
	placed := make(map[structs.AttemptKey]structs.UnixNano)
	for _, row := range withPrefix[*attemptRow](tx, tableAttempts, indexID, nil) {
		attempt := row.Attempt
		placed[structs.AttemptKey{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number}] = attempt.PlacedAt
		subjob, ok := first[*subjobRow](tx, tableSubjobs, indexID, subjobKey(attempt.JobID, 0))
		if ok && attempt.RunningAt != 0 {
			after := *row
			after.Due = dueAt(subjob.job.Job, attempt)
			mustInsert(tx, tableAttempts, &after)
		}
	}
	usages := make(map[string]*structs.ProjectUsage)
	usage := func(project string) *structs.ProjectUsage {
		if usages[project] == nil {
			usages[project] = &structs.ProjectUsage{Project: project}
		}
		return usages[project]
	}
	for _, known := range withPrefix[*structs.Allocation](tx, tableAllocs, indexID, nil) {
		alloc := *known
		alloc.PlacedAt = placed[structs.AttemptKey{JobID: alloc.JobID, Subjob: alloc.Subjob, Number: alloc.Attempt}]
		if node, ok := first[*structs.Node](tx, tableNodes, indexID, idKey(alloc.NodeID)); ok {
			alloc.Pool, alloc.QuotaUsage = node.Pool, structs.QuotaUsageOf(alloc.Spec, node, alloc.Devices)
		}
		mustInsert(tx, tableAllocs, &alloc)
		if !alloc.Status.Terminal() {
			usage(alloc.Project).QuotaUsage = usage(alloc.Project).QuotaUsage.Add(alloc.QuotaUsage)
		}
	}
	for row := range each[*jobRow](tx, tableJobs, indexID, nil) {
		status, ok := first[*jobStatusRow](tx, tableJobStatuses, indexID, indexKey(row.CreateIndex))
		if ok && row.Job.Priority == structs.PriorityUrgent && !status.Status.State.Terminal() {
			usage(row.Job.Project).Urgent++
		}
	}
	for _, sum := range usages { // in any order: rows do not depend on each other
		sum.ModifyIndex = mustFirst[*metaRow](tx, tableMeta, indexID, metaKey()).Index
		mustInsert(tx, tableHoldings, sum)
	}
}
