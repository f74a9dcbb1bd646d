package state

import (
	"fmt"
	"maps"

	"nomadlike/nomadlike/structs"
)

// projects checks the sums and the ledgers of projects, and which pool nodes
// are in.
func (c *checker) projects() {
	held := make(map[string]structs.QuotaUsage)
	for alloc := range c.snapshot.Allocs() {
		if alloc.CountsInQuota() {
			held[alloc.Project] = held[alloc.Project].Add(alloc.QuotaUsage)
		}
	}
	urgent := make(map[string]int)
	for view := range c.snapshot.Jobs() {
		if view.Job.Priority == structs.PriorityUrgent && !view.Status.State.Terminal() {
			urgent[view.Job.Project]++
		}
	}
	known := make(map[string]bool)
	for usage := range c.snapshot.ProjectUsages() {
		known[usage.Project] = true
		if !maps.Equal(usage.QuotaUsage, held[usage.Project]) {
			c.fail("I8: project %s is said to hold %v, its allocations hold %v", usage.Project, usage.QuotaUsage, held[usage.Project])
		}
		if usage.Urgent != urgent[usage.Project] {
			c.fail("I8: project %s is said to have %d urgent jobs, it has %d", usage.Project, usage.Urgent, urgent[usage.Project])
		}
		c.ledgers(usage)
	}
	for project, sum := range held {
		if len(sum) > 0 && !known[project] {
			c.fail("I8: project %s holds %v and has no sums", project, sum)
		}
	}
	var pools []*structs.Pool
	for pool := range c.snapshot.Pools() {
		pools = append(pools, pool)
	}
	for node := range c.snapshot.Nodes() {
		if pool := structs.PoolOf(node, pools); node.Pool != pool {
			c.fail("pools: node %s is in %s, and belongs to %s", node.ID, node.Pool, pool)
		}
	}
}

// waiting checks what is counted of the queue against the queue.
func (c *checker) waiting() {
	counted := make(map[waiter]int)
	for row := range c.snapshot.Waiting() {
		counted[waiter{row.Project, row.User, row.Access}] = row.Subjobs
	}
	if waits := waitingOf(c.snapshot.db); !maps.Equal(counted, waits) {
		c.fail("I8: %v are said to wait, %v do", counted, waits)
	}
}

// ledgers checks what a project is said to have used.
func (c *checker) ledgers(usage *structs.ProjectUsage) {
	for i, ledger := range usage.Ledgers {
		where := fmt.Sprintf("I17: project %s, pool %s", usage.Project, ledger.Pool)
		if i > 0 && usage.Ledgers[i-1].Pool >= ledger.Pool {
			c.fail("%s: its ledger is out of order", where)
		}
		if len(ledger.Buckets) == 0 || len(ledger.Buckets) > LedgerHoursMax {
			c.fail("%s: its ledger has %d buckets", where, len(ledger.Buckets))
		}
		for k, bucket := range ledger.Buckets {
			if k > 0 && ledger.Buckets[k-1].Hour >= bucket.Hour {
				c.fail("%s: hour %d is out of order", where, bucket.Hour)
			}
			if bucket.DeviceMs < 0 || bucket.MilliCPUMs < 0 {
				c.fail("%s: hour %d is below zero: %+v", where, bucket.Hour, bucket)
			}
		}
	}
}

// nominations checks that subjobs and nodes agree on what is nominated.
func (c *checker) nominations() {
	nominated := make(map[string]string) // node -> subjob
	for view := range c.snapshot.Jobs() {
		for subjob := range c.snapshot.Subjobs(view.Job.ID) {
			if subjob.Nomination != nil {
				c.nomination(view.Job, subjob, nominated)
			}
		}
	}
	for node, usage := range c.snapshot.Nodes() {
		if usage != nil && usage.NominatedFor != nominated[node.ID] {
			c.fail("I18: node %s is nominated for %q, and the nomination is of %q", node.ID, usage.NominatedFor, nominated[node.ID])
		}
	}
}

func (c *checker) nomination(job *structs.Job, subjob *structs.Subjob, nominated map[string]string) {
	key := structs.SubjobKey(subjob.JobID, subjob.Index)
	waits := subjob.State == structs.JobQueued || subjob.State == structs.JobStopping && subjob.StopIntended == structs.JobQueued
	if !waits || subjob.Nomination.Gang.Attempt != subjob.NextAttempt() {
		c.fail("I18: %s is nominated for attempt %d, and is %s after attempt %d", key, subjob.Nomination.Gang.Attempt, subjob.State, subjob.Attempt)
	}
	if n := len(subjob.Nomination.Gang.Placements); n < job.NodesMin() || n > job.Nodes {
		c.fail("I9: %s is nominated for %d nodes", key, n)
	}
	for _, placement := range subjob.Nomination.Gang.Placements {
		if other, taken := nominated[placement.NodeID]; taken {
			c.fail("I18: node %s is nominated for %s and %s", placement.NodeID, other, key)
		}
		nominated[placement.NodeID] = key
		if node := c.snapshot.Node(placement.NodeID); node == nil || !node.Schedulable() {
			c.fail("I18: %s is nominated for node %s, which takes no work", key, placement.NodeID)
		}
	}
	if n := len(subjob.Consents); n > structs.ConsentsMax || n > 0 && (job.VIP == nil || job.VIP.Ask == nil) {
		c.fail("I18: %s asked the owners of %d gangs", key, n)
	}
	for _, victim := range subjob.Nomination.Victims {
		attempt := c.snapshot.Attempt(victim.JobID, victim.Subjob, victim.Number)
		if attempt == nil {
			continue // its job was deleted meanwhile
		}
		if attempt.By == nil || structs.SubjobKey(attempt.By.JobID, attempt.By.Subjob) != key || attempt.By.Number != subjob.Nomination.Gang.Attempt {
			c.fail("I18: %v does not name %s, for which it ended", victim, key)
		}
	}
}

// history checks forecasts and past runs.
func (c *checker) history() {
	meta, kept := c.snapshot.meta(), 0
	for row := range each[*forecastRow](c.snapshot.db, tableForecasts, indexID, nil) {
		where := fmt.Sprintf("forecasts: %s/%d/%d", row.JobID, row.Subjob, row.Attempt)
		kept += len(row.Given)
		if len(row.Given) == 0 || len(row.Given) > ForecastRevisionsMax {
			c.fail("%s has %d answers", where, len(row.Given))
		}
		attempt := c.snapshot.Attempt(row.JobID, row.Subjob, row.Attempt)
		for i, given := range row.Given {
			if i > 0 && given.Revision <= row.Given[i-1].Revision {
				c.fail("%s: revision %d is out of order", where, given.Revision)
			}
			if ended := given.StartedAt != 0 || given.Withdrawn; ended != (row.Ended != 0) || given.StartedAt != 0 && given.Withdrawn {
				c.fail("%s: it ended at %d, and its revision %d says otherwise", where, row.Ended, given.Revision)
			}
			if attempt != nil && given.StartedAt != attempt.PlacedAt {
				c.fail("%s is said to begin at %d, and began at %d", where, given.StartedAt, attempt.PlacedAt)
			}
		}
		if subjob := c.snapshot.Subjob(row.JobID, row.Subjob); subjob != nil && row.Ended == 0 && subjob.NextAttempt() != row.Attempt {
			c.fail("%s still waits, and its subjob is at attempt %d", where, subjob.Attempt)
		}
	}
	if kept != meta.Forecasts || kept > ForecastsKeptMax {
		c.fail("bounds: %d forecasts are kept, counted were %d", kept, meta.Forecasts)
	}
	for i, run := range meta.runs {
		if run.Seq != meta.RunSeq-uint64(len(meta.runs)-1-i) || run.Waited < 0 || run.Runtime < 0 || run.Devices < 0 || run.Outcome == "" {
			c.fail("past runs: number %d is %+v", i, *run)
		}
	}
	if len(meta.runs) > PastRunsMax {
		c.fail("bounds: %d past runs are kept", len(meta.runs))
	}
}
