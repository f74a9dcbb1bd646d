package state

import (
	"fmt"
	"maps"

	"github.com/google/go-cmp/cmp"

	"nomadlike/nomadlike/structs"
)

// chargeTwin books what projects use in the obvious way: it looks at every
// allocation before and after each command.
type chargeTwin struct {
	device, milliCPU map[string]int64 // by project, in milliseconds
}

// step books the allocations that a command ended.
func (c *chargeTwin) step(before, after *Snapshot, now structs.UnixNano) {
	if c.device == nil {
		c.device, c.milliCPU = make(map[string]int64), make(map[string]int64)
	}
	for was := range before.Allocs() {
		is := after.Alloc(was.ID)
		if was.Status.Terminal() || is != nil && !is.Status.Terminal() {
			continue
		}
		span := int64(now)/1e6 - int64(was.PlacedAt)/1e6
		c.device[was.Project] += int64(len(was.Devices)) * span
		c.milliCPU[was.Project] += structs.MilliCPU(was.Spec.CPU) * span
	}
}

// compare reports how the ledgers differ, "" when they do not.
func (c *chargeTwin) compare(s *Snapshot) string {
	device, milliCPU := make(map[string]int64), make(map[string]int64)
	for usage := range s.ProjectUsages() {
		for _, ledger := range usage.Ledgers {
			for _, bucket := range ledger.Buckets {
				device[usage.Project] += bucket.DeviceMs
				milliCPU[usage.Project] += bucket.MilliCPUMs
			}
		}
	}
	for _, sums := range []map[string]int64{c.device, c.milliCPU, device, milliCPU} {
		maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	}
	if maps.Equal(device, c.device) && maps.Equal(milliCPU, c.milliCPU) {
		return ""
	}
	return fmt.Sprintf("I17: booked are %v devices and %v cores, used were %v and %v", device, milliCPU, c.device, c.milliCPU)
}

// boardTwin keeps what it was told by Changes, and nothing else.
type boardTwin struct {
	index    uint64
	nodes    map[string]structs.NodeChange
	subjobs  map[string]structs.SubjobChange
	pools    map[string]*structs.Pool
	projects map[string]structs.ProjectChange
	fulls    int
}

// sync takes what changed since the last time.
func (b *boardTwin) sync(s *Snapshot) {
	changes := s.Changes(b.index)
	b.index = s.Index()
	if changes.Full {
		b.fulls++
		b.nodes, b.subjobs = make(map[string]structs.NodeChange), make(map[string]structs.SubjobChange)
		b.pools, b.projects = make(map[string]*structs.Pool), make(map[string]structs.ProjectChange)
	}
	for _, node := range changes.Nodes {
		b.nodes[node.ID] = node
	}
	for _, subjob := range changes.Subjobs {
		key := structs.SubjobKey(subjob.JobID, subjob.Index)
		if b.subjobs[key] = subjob; subjob.Subjob == nil || subjob.Subjob.State.Terminal() {
			delete(b.subjobs, key)
		}
	}
	for _, pool := range changes.Pools {
		if b.pools[pool.Name] = pool.Pool; pool.Pool == nil {
			delete(b.pools, pool.Name)
		}
	}
	for _, project := range changes.Projects {
		if b.projects[project.Name] = project; project.Project == nil && project.Usage == nil {
			delete(b.projects, project.Name)
		}
	}
}

// compare reports how it differs from one that was told everything, "" for not.
func (b *boardTwin) compare(s *Snapshot) string {
	whole := &boardTwin{}
	whole.sync(s)
	holders := cmp.Comparer(func(a, b *structs.Allocation) bool { return a.ID == b.ID }) // how far they are is no change
	return cmp.Diff(whole.nodes, b.nodes) + cmp.Diff(whole.subjobs, b.subjobs, holders) + cmp.Diff(whole.pools, b.pools) +
		cmp.Diff(whole.projects, b.projects)
}

// stepProblems reports what one command may not have done, whatever the states
// before and after it are each.
//
//	I8   no project came to hold more of a kind than its maximum allows
//	I18  whoever was made to yield has a beneficiary, that may have it so
func stepProblems(before, after *Snapshot) (found []string) {
	for project := range after.Projects() {
		for _, quota := range project.Quotas {
			was, is := int64(0), int64(0)
			if usage := before.ProjectUsage(project.Name); usage != nil {
				was = usage.QuotaUsage.Of(quota)
			}
			if usage := after.ProjectUsage(project.Name); usage != nil {
				is = usage.QuotaUsage.Of(quota)
			}
			if most, bounded := quota.Most(); bounded && is > was && is > most {
				found = append(found, fmt.Sprintf("I8: project %s went from %d to %d of %s, and may hold %d", project.Name, was, is, quota.Kind, most))
			}
		}
	}
	for row := range each[*attemptRow](after.db, tableAttempts, indexID, nil) {
		attempt := row.Attempt
		if was := before.Attempt(attempt.JobID, attempt.Subjob, attempt.Number); attempt.By == nil || was == nil || was.By != nil {
			continue
		}
		if problem := yieldProblem(after, attempt); problem != "" {
			found = append(found, fmt.Sprintf("I18: attempt %s/%d/%d yielded to %v: %s", attempt.JobID, attempt.Subjob, attempt.Number, *attempt.By, problem))
		}
	}
	return found
}

// yieldProblem reports why an attempt should not have been made to yield.
func yieldProblem(after *Snapshot, attempt *structs.Attempt) string {
	by := *attempt.By
	subjob := after.Subjob(by.JobID, by.Subjob)
	if subjob == nil {
		return "nobody"
	}
	nominated := subjob.Nomination != nil && subjob.Nomination.Gang.Attempt == by.Number
	if !nominated && after.Attempt(by.JobID, by.Subjob, by.Number) == nil {
		return "it got nothing"
	}
	victim, _ := after.Job(attempt.JobID)
	winner, _ := after.Job(by.JobID)
	switch {
	case by.JobID == attempt.JobID && by.Subjob == attempt.Subjob:
		if c := victim.Job.Checkpoint; c == nil || c.Elastic == nil || !c.Elastic.AllowResize {
			return "its size may not change"
		}
	case victim.Job.VIP != nil:
		return "it is VIP"
	case winner.Job.VIP != nil: // by the right of its machines
	case !victim.Job.Preemptible:
		return "it is not preemptible"
	case victim.Job.Priority.Rank() > winner.Job.Priority.Rank():
		return "its tier is higher"
	case victim.Job.Priority.Rank() == winner.Job.Priority.Rank() && victim.Job.Project == winner.Job.Project:
		return "they are equals"
	}
	return ""
}

// rowTwin is a history in memory.
type rowTwin struct {
	rows    []structs.HistoryRow
	through uint64
}

func (r *rowTwin) Add(index uint64, rows []structs.HistoryRow) {
	r.rows, r.through = append(r.rows, rows...), index
}

func (r *rowTwin) Restored(uint64) {}

// compare reports how what the rows charge differs from what was used, and which attempts
// that have ended have not one row; "" for nothing.
func (r *rowTwin) compare(used *chargeTwin, s *Snapshot) string {
	device, milliCPU := make(map[string]int64), make(map[string]int64)
	ended := make(map[string]int)
	for i, row := range r.rows {
		if i > 0 && !r.rows[i-1].Less(&row) {
			return fmt.Sprintf("row %d of entry %d comes after row %d of entry %d", row.Ordinal, row.Index, r.rows[i-1].Ordinal, r.rows[i-1].Index)
		}
		if row.Kind == structs.HistoryAttempt {
			ended[fmt.Sprint(row.JobID, row.Subjob, row.Attempt)]++
			continue
		}
		span := int64(row.End)/1e6 - int64(row.Start)/1e6
		device[row.Project] += row.CardCount() * span
		milliCPU[row.Project] += row.MilliCPU * span
	}
	for attempt := range s.attempts(indexID, nil) {
		key := fmt.Sprint(attempt.JobID, attempt.Subjob, attempt.Number)
		if n := ended[key]; attempt.State == structs.AttemptEnded && n != 1 || attempt.State != structs.AttemptEnded && n != 0 {
			return fmt.Sprintf("%s attempt %s has %d rows", attempt.State, key, n)
		}
	}
	for _, sums := range []map[string]int64{device, milliCPU} {
		maps.DeleteFunc(sums, func(_ string, n int64) bool { return n == 0 })
	}
	if maps.Equal(device, used.device) && maps.Equal(milliCPU, used.milliCPU) {
		return ""
	}
	return fmt.Sprintf("rows charge %v devices and %v cores, used were %v and %v", device, milliCPU, used.device, used.milliCPU)
}
