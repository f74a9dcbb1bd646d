package state

import (
	"cmp"

	"nomadlike/nomadlike/structs"
)

// History takes the rows of the cluster's history as the log makes them. It is called
// by the log alone, one call at a time, and must not block.
type History interface {
	// Add takes the rows of the entries up to index, in their order; there may be none.
	Add(index uint64, rows []structs.HistoryRow)
	// Restored says that the state was replaced by one as of index: rows up to there
	// that were not added are not going to be.
	Restored(index uint64)
}

// Keep has the store give rows to history, from the next entry on. It is called before
// the log begins.
func (s *Store) Keep(history History) { s.history = history }

// addRow keeps a row for the history, if anybody wants it.
func (tx *txn) addRow(row structs.HistoryRow) {
	row.Index = tx.index()
	if n := len(tx.rows); n > 0 && tx.rows[n-1].Index == row.Index {
		row.Ordinal = tx.rows[n-1].Ordinal + 1
	}
	tx.rows = append(tx.rows, row)
}

// rowOf begins a row with what is known of a job; nil when it was deleted meanwhile.
func rowOf(kind structs.HistoryKind, job *structs.Job) structs.HistoryRow {
	row := structs.HistoryRow{Kind: kind}
	if job == nil {
		return row
	}
	row.JobID, row.JobName, row.JobNumber = job.ID, job.Name, job.Number
	row.User, row.Project, row.Category, row.Tags, row.Priority = job.User, job.Project, job.Category, job.Tags, job.Priority
	return row
}

// recordHolding makes a row of what an allocation held until now.
func (tx *txn) recordHolding(alloc *structs.Allocation) {
	if !tx.historic || alloc.PlacedAt == 0 {
		return
	}
	job, _ := tx.job(alloc.JobID)
	row := holdingRow(job, alloc, tx.now)
	row.Outcome = outcomeOf(alloc)
	if attempt, ok := tx.attempt(alloc.JobID, alloc.Subjob, alloc.Attempt); ok && attempt.Attempt.Outcome != "" {
		row.Outcome = attempt.Attempt.Outcome
	}
	tx.addRow(row)
}

// outcomeOf is how a rank ended whose attempt goes on, or is about to end for it.
func outcomeOf(alloc *structs.Allocation) structs.Outcome {
	switch {
	case alloc.Status == structs.AllocComplete:
		return structs.OutcomeSucceeded
	case alloc.Status == structs.AllocFailed && !alloc.Infra:
		return structs.OutcomeFailed
	}
	return structs.OutcomeLost
}

// holdingRow is the row of what an allocation holds from its beginning to end; job is nil
// when it was deleted meanwhile.
func holdingRow(job *structs.Job, alloc *structs.Allocation, end structs.UnixNano) structs.HistoryRow {
	row := rowOf(structs.HistoryHolding, job)
	row.JobID, row.JobName, row.Project, row.Pool = alloc.JobID, alloc.JobName, alloc.Project, alloc.Pool
	row.Subjob, row.Attempt, row.Rank, row.Node = alloc.Subjob, alloc.Attempt, alloc.Rank, alloc.NodeName
	row.Cards, row.MilliCPU = cardsOf(alloc.QuotaUsage)
	row.Memory = alloc.Spec.Memory
	row.Start, row.End = alloc.PlacedAt, max(end, alloc.PlacedAt) // a clock that went backward charges nothing
	row.Status, row.Exit, row.Infra = alloc.Status, alloc.ExitCode, alloc.Infra
	if alloc.Cause != nil {
		row.Cause, row.Device = alloc.Cause.ID, alloc.Cause.Params["device"]
	}
	return row
}

// Holdings are the rows of what is held at a time and has not ended, as the history will
// have them if it ends then.
func (s *Snapshot) Holdings(now structs.UnixNano) []structs.HistoryRow {
	var rows []structs.HistoryRow
	for node := range s.Nodes() {
		for alloc := range s.Occupants(node.ID) {
			if !alloc.CountsInQuota() || alloc.PlacedAt == 0 {
				continue
			}
			var job *structs.Job
			if view, ok := s.Job(alloc.JobID); ok {
				job = view.Job
			}
			rows = append(rows, holdingRow(job, alloc, now))
		}
	}
	return rows
}

// recordAttempt makes a row of an attempt that has ended; subjob is as it was before.
func (tx *txn) recordAttempt(job *structs.Job, subjob *structs.Subjob, attempt *structs.Attempt) {
	if !tx.historic {
		return
	}
	row := rowOf(structs.HistoryAttempt, job)
	row.Subjob, row.Attempt, row.Outcome, row.Exit = attempt.Subjob, attempt.Number, attempt.Outcome, attempt.ExitCode
	row.Start, row.End, row.Ending, row.Running = attempt.PlacedAt, max(tx.now, attempt.PlacedAt), attempt.EndingAt, attempt.RunningAt
	row.Submitted, row.Queued = job.SubmittedAt, subjob.QueuedAt
	row.Eligible = min(max(subjob.QueuedAt, subjob.NotBefore, job.BeginAt), attempt.PlacedAt)
	row.CheckpointAt, row.Paused, row.TimeLimit = attempt.CheckpointAt, attempt.PausedFor, job.TimeLimit
	row.Nodes, row.NodesAsked, row.LostNodes = job.NodesOf(len(attempt.Allocs)), job.Nodes, attempt.Lost
	row.Last = subjob.StopIntended != structs.JobQueued
	row.Image, row.Code = job.Task.Image, job.Tree()
	if attempt.By != nil {
		row.YieldedTo = attempt.By.JobID
	}
	if attempt.Cause != nil {
		row.Cause, row.Node, row.Device = attempt.Cause.ID, attempt.Cause.Params["node"], attempt.Cause.Params["device"]
	}
	row.Infra = attempt.Outcome == structs.OutcomeLost && !attempt.MovedForSpeed()
	for rank, id := range attempt.Allocs {
		alloc, ok := tx.alloc(id)
		if !ok {
			continue
		}
		if rank == 0 {
			row.Pool = alloc.Pool
		}
		cards, milliCPU := cardsOf(alloc.QuotaUsage)
		for key, n := range cards {
			if row.Cards == nil {
				row.Cards = make(structs.QuotaUsage, len(cards))
			}
			row.Cards[key] += n
		}
		row.MilliCPU += milliCPU
		row.Memory += alloc.Spec.Memory
		if id == attempt.FirstFailed {
			row.Node = cmp.Or(alloc.NodeName, row.Node)
		}
	}
	if told, ok := tx.forecast(attempt.JobID, attempt.Subjob, attempt.Number); ok && len(told.Given) > 0 {
		row.ForecastP50, row.ForecastP90 = told.Given[0].P50, told.Given[0].P90
	}
	tx.addRow(row)
}

// cardsOf takes a holding apart into devices by kind and model, nil for none, and
// thousandths of cores.
func cardsOf(usage structs.QuotaUsage) (cards structs.QuotaUsage, milliCPU int64) {
	for key, n := range usage {
		switch {
		case key == structs.QuotaCPU:
			milliCPU = n
		case n != 0:
			if cards == nil {
				cards = make(structs.QuotaUsage, len(usage))
			}
			cards[key] = n
		}
	}
	return cards, milliCPU
}
