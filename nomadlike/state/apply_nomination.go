package state

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
)

// This file executes what structs.Nomination draws: nodes are nominated for a gang
// in the entry that ends its victims, and the gang is placed in the entry that
// frees the last of what it needs.

// nominate nominates nodes for a gang and ends its victims, or reports why not.
// Victims that are ending already, or have ended, need no asking.
func (tx *txn) nominate(gang *structs.GangPlan) *structs.Reason {
	job, _ := tx.job(gang.JobID)
	subjob, _ := tx.subjob(gang.JobID, gang.Subjob)
	if job == nil || subjob == nil {
		return structs.NewReason("scheduler.refused_gone")
	}
	if len(gang.Victims) > VictimsMax || len(gang.Victims) == 0 && job.VIP == nil {
		return structs.NewReason("state.claim_victims", "job", job.Name, "victims", len(gang.Victims))
	}
	victims, problem := tx.victimsOf(job, subjob, gang)
	if problem != nil {
		return problem
	}
	asQueued := *subjob
	if len(victims) == 1 && victims[0].own {
		asQueued.State = structs.JobQueued // as it will be once its attempt has ended
	}
	later := tx.afterLeaving()
	more := quotaUsageOf(job, gang, later)
	for _, v := range leastFirst(victims) {
		if problem := feasible.VictimProblem(job, more, v.victim, later); problem != nil {
			return problem
		}
		later.removeAttempt(v.row.Attempt)
	}
	later.removeLeaving(job, gang)
	if problem := nominationProblem(job, &asQueued, gang, later); problem != nil {
		return problem
	}
	if problem := tx.maintenanceAgainst(job, gang); problem != nil {
		return problem
	}
	if len(victims) == 0 && tx.fulfil(job, subjob, gang) {
		return nil
	}
	tx.putNomination(job, subjob, gang, victims)
	return nil
}

// victimOf is an attempt that a plan wants to end, and that still runs.
type victimOf struct {
	victim feasible.Victim
	row    *attemptRow
	own    bool // it is the gang's own: a change of size
}

// victimsOf looks up the victims of a gang that are not ending yet.
func (tx *txn) victimsOf(job *structs.Job, subjob *structs.Subjob, gang *structs.GangPlan) ([]victimOf, *structs.Reason) {
	var victims []victimOf
	seen := make(map[structs.AttemptKey]bool, len(gang.Victims))
	for _, key := range gang.Victims {
		row, known := tx.attempt(key.JobID, key.Subjob, key.Number)
		victimJob, _ := tx.job(key.JobID)
		if !known || victimJob == nil || seen[key] || !row.Attempt.State.CanBecome(structs.AttemptEnding) {
			continue
		}
		seen[key] = true
		v := victimOf{row: row, own: key.JobID == job.ID && key.Subjob == subjob.Index}
		v.victim.Consents = subjob.Consented(job, key, tx.now)
		v.victim.Job = victimJob
		for _, alloc := range tx.gang(key.JobID, key.Subjob, key.Number) {
			if node, ok := tx.node(alloc.NodeID); ok && alloc.OccupiesNode() {
				v.victim.Nodes = append(v.victim.Nodes, node)
			}
			if alloc.CountsInQuota() {
				v.victim.QuotaUsage = v.victim.QuotaUsage.Add(alloc.QuotaUsage)
			}
		}
		victims = append(victims, v)
	}
	for _, v := range victims {
		sameSize := v.own && v.row.Attempt.RanksLeft() == len(gang.Placements)
		if sameSize || v.own && len(victims) > 1 || !v.own && v.victim.Job.ID == job.ID {
			return nil, structs.NewReason("state.claim_resize", "job", job.Name)
		}
	}
	return victims, nil
}

// leastFirst orders victims by what they hold, for judging each as if those
// before it were gone: a project that lent much yields in as many steps as any
// other order allows.
func leastFirst(victims []victimOf) []victimOf {
	ordered := slices.Clone(victims)
	slices.SortStableFunc(ordered, func(a, b victimOf) int {
		devicesA, cpuA := total(a.victim.QuotaUsage)
		devicesB, cpuB := total(b.victim.QuotaUsage)
		return cmp.Or(cmp.Compare(devicesA, devicesB), cmp.Compare(cpuA, cpuB))
	})
	return ordered
}

// putNomination makes the nomination and asks the victims to end.
func (tx *txn) putNomination(job *structs.Job, before *structs.Subjob, gang *structs.GangPlan, victims []victimOf) {
	if before.Nomination != nil {
		tx.releaseNodes(before.Nomination, structs.SubjobKey(job.ID, before.Index)) // a newer plan replaces it
	}
	kept := *gang
	kept.Victims, kept.Nominate = nil, false
	nomination := &structs.Nomination{Gang: kept, Since: tx.now}
	names := make([]string, 0, victimNamesMax)
	for _, v := range victims {
		attempt := v.row.Attempt
		nomination.Victims = append(nomination.Victims, structs.AttemptKey{JobID: attempt.JobID, Subjob: attempt.Subjob, Number: attempt.Number})
		if len(names) < victimNamesMax {
			names = append(names, v.victim.Job.Name)
		}
	}
	after := *before
	after.Nomination = nomination
	after.Consents = tx.asked(job, before, nomination)
	tx.putSubjob(job, before, &after)
	key := structs.SubjobKey(job.ID, before.Index)
	for _, placement := range kept.Placements {
		usage := tx.usage(placement.NodeID)
		usage.NominatedFor = key
		tx.putUsage(usage)
	}
	tx.tellNomination(job, &after, victims, names)
	by := &structs.AttemptKey{JobID: job.ID, Subjob: before.Index, Number: gang.Attempt}
	for _, v := range victims {
		attempt := v.row.Attempt
		cause := structs.NewReason("reason.preempted", "job", job.Name, "user", job.User)
		switch {
		case v.own:
			cause = structs.NewReason("reason.resized", "from", attempt.RanksLeft(), "to", len(gang.Placements))
		case job.VIP != nil:
			cause = structs.NewReason("reason.preempted_vip", "job", job.Name, "user", job.User)
		}
		tx.endAttempt(v.victim.Job, attempt.Subjob, attempt.Number, ending{outcome: structs.OutcomePreempted, cause: cause, by: by})
	}
	tx.review(key, true)
}

// tellNomination records the nomination as an event of the gang's job.
func (tx *txn) tellNomination(job *structs.Job, subjob *structs.Subjob, victims []victimOf, names []string) {
	nodes := decimal(len(subjob.Nomination.Gang.Placements))
	switch {
	case len(victims) == 0:
		tx.tell(jobEvent("event.job.claims", job, subjob), "job", job.Name, "nodes", nodes)
	case victims[0].own:
		tx.tell(jobEvent("event.job.resizes", job, subjob), "job", job.Name, "nodes", nodes,
			"from", decimal(victims[0].row.Attempt.RanksLeft()))
	default:
		tx.tell(jobEvent("event.job.preempts", job, subjob), "job", job.Name, "nodes", nodes,
			"victims", decimal(len(victims)), "names", strings.Join(names, ", "))
	}
}

// releaseNodes frees the nodes of a nomination for others.
func (tx *txn) releaseNodes(nomination *structs.Nomination, key string) {
	for _, placement := range nomination.Gang.Placements {
		if usage := tx.usage(placement.NodeID); usage.NominatedFor == key {
			usage.NominatedFor = ""
			tx.putUsage(usage)
		}
	}
	tx.wakeSchedule()
}

// dropNomination drops a nomination that can no longer be fulfilled; the subjob stays queued.
func (tx *txn) dropNomination(job *structs.Job, before *structs.Subjob, why *structs.Reason) {
	tx.releaseNodes(before.Nomination, structs.SubjobKey(job.ID, before.Index))
	after := *before
	after.Nomination = nil
	tx.putSubjob(job, before, &after)
	event := jobEvent("event.job.claim_dropped", job, &after)
	event.Severity = severityWarn
	params := []string{"job", job.Name}
	if node := why.Params["node"]; node != "" {
		event.ID, params = "event.job.claim_dropped_node", append(params, "node", node)
	}
	tx.tell(event, params...)
}

// review asks for a look at a nomination when the command is done: something that
// it waits for was freed or, when whole, something changed that it rests on.
func (tx *txn) review(key string, whole bool) {
	at := slices.IndexFunc(tx.reviews, func(r nominationReview) bool { return r.key == key })
	if at < 0 {
		tx.reviews = append(tx.reviews, nominationReview{key: key})
		at = len(tx.reviews) - 1
	}
	tx.reviews[at].whole = tx.reviews[at].whole || whole
}

// reviewAll asks for a look at every nomination.
func (tx *txn) reviewAll() {
	for _, row := range listRows[*subjobRow](tx, tableSubjobs, indexNomination, nil) {
		tx.review(structs.SubjobKey(row.Subjob.JobID, row.Subjob.Index), true)
	}
}

// nominationReview is a nomination, named as in Usage.NominatedFor, that is to be looked at.
type nominationReview struct {
	key   string
	whole bool
}

// reviewNominations looks at the nominations that the command touched. Placing a gang
// frees nothing, and dropping a nomination frees nothing for another, so one round
// is enough.
func (tx *txn) reviewNominations() {
	for i := 0; i < len(tx.reviews); i++ {
		at := strings.LastIndexByte(tx.reviews[i].key, '/')
		index, err := strconv.Atoi(tx.reviews[i].key[at+1:])
		if at < 0 || err != nil {
			continue // Usage.NominatedFor holds what SubjobKey made
		}
		tx.reviewNomination(tx.reviews[i], tx.reviews[i].key[:at], index)
	}
	tx.reviews = tx.reviews[:0]
}

// reviewNomination places the gang of a nomination when it can, and drops the nomination when
// it never will as things stand.
func (tx *txn) reviewNomination(r nominationReview, jobID string, index int) {
	job, ok := tx.job(jobID)
	subjob, known := tx.subjob(jobID, index)
	if !ok || !known || subjob.Nomination == nil {
		return
	}
	gang := &subjob.Nomination.Gang
	if !r.whole && tx.stillBlocked(r.key, job, gang) {
		return
	}
	if subjob.State == structs.JobQueued && tx.fulfil(job, subjob, gang) {
		return
	}
	asQueued := *subjob
	asQueued.State = structs.JobQueued // also while its own attempt ends
	later := tx.afterLeaving()
	for _, key := range subjob.Nomination.Victims {
		if row, ok := tx.attempt(key.JobID, key.Subjob, key.Number); ok {
			later.removeAttempt(row.Attempt)
		}
	}
	later.removeLeaving(job, gang)
	problem := nominationProblem(job, &asQueued, gang, later)
	if problem == nil {
		problem = tx.maintenanceAgainst(job, gang)
	}
	if problem != nil {
		tx.dropNomination(job, subjob, problem)
	}
}

// fulfil places a nominated gang with ports of its own choice, and reports whether
// it could.
func (tx *txn) fulfil(job *structs.Job, subjob *structs.Subjob, gang *structs.GangPlan) bool {
	fitted := withPorts(job, gang, view{tx})
	state, legal := subjob.State.Next(structs.StepPlaced)
	if !legal || feasible.GangProblem(job, subjob, fitted, view{tx}) != nil || tx.maintenanceAgainst(job, fitted) != nil {
		return false
	}
	tx.startAttempt(job, subjob, state, fitted)
	return true
}

// nominationProblem reports why a gang could not be placed on what a view shows, whatever
// ports it gets, nil when it could.
func nominationProblem(job *structs.Job, subjob *structs.Subjob, gang *structs.GangPlan, on feasible.View) *structs.Reason {
	return feasible.GangProblem(job, subjob, withPorts(job, gang, on), on)
}

// withPorts assigns a gang the ports that are free now. Where there are none it
// gets none, and feasibility says so.
func withPorts(job *structs.Job, gang *structs.GangPlan, on feasible.View) *structs.GangPlan {
	fitted := *gang
	fitted.Victims, fitted.Nominate = nil, false
	fitted.Placements = slices.Clone(gang.Placements)
	start := portStart(gang)
	for rank := range fitted.Placements {
		placement := &fitted.Placements[rank]
		placement.Ports = nil
		requests := job.PortRequests(job.SpecOf(gang.Spec, rank, len(gang.Placements)), rank)
		if len(requests) == 0 {
			continue
		}
		if node, usage := on.Node(placement.NodeID); node != nil {
			placement.Ports, _ = feasible.ChoosePorts(node, usage, requests, start)
		}
	}
	return &fitted
}

// portStart spreads the ports of attempts: FNV-1a of what names the attempt.
func portStart(gang *structs.GangPlan) uint64 {
	hash := uint64(14695981039346656037)
	for _, c := range []byte(structs.SubjobKey(gang.JobID, gang.Subjob)) {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	return (hash ^ gang.Attempt) * 1099511628211
}

// quotaUsageOf is what a gang would count in its project's quota.
func quotaUsageOf(job *structs.Job, gang *structs.GangPlan, on feasible.View) structs.QuotaUsage {
	held := structs.QuotaUsage{}
	for rank := range gang.Placements {
		if node, _ := on.Node(gang.Placements[rank].NodeID); node != nil {
			held = held.Add(structs.QuotaUsageOf(job.SpecOf(gang.Spec, rank, len(gang.Placements)), node, gang.Placements[rank].Devices))
		}
	}
	return held
}

// stillBlocked tells, without looking at the whole gang, that some rank of a
// nomination still lacks room. Where it last found one is where it looks first, so
// that clearing a thousand nodes one by one costs a thousand looks.
func (tx *txn) stillBlocked(key string, job *structs.Job, gang *structs.GangPlan) bool {
	size := len(gang.Placements)
	from := tx.blocked[key]
	for i := range size {
		rank := (from + i) % size
		if tx.rankBlocked(job, gang, rank) {
			tx.blocked[key] = rank
			return true
		}
	}
	delete(tx.blocked, key)
	return false
}

func (tx *txn) rankBlocked(job *structs.Job, gang *structs.GangPlan, rank int) bool {
	placement := &gang.Placements[rank]
	node, ok := tx.node(placement.NodeID)
	if !ok {
		return false
	}
	usage := tx.usage(placement.NodeID)
	if job.VIP != nil && usage.Allocs > 0 ||
		feasible.RoomProblem(node, &usage, job.SpecOf(gang.Spec, rank, len(gang.Placements))) != nil {
		return true
	}
	return slices.ContainsFunc(placement.Devices, func(id string) bool { _, held := usage.Devices[id]; return held })
}
