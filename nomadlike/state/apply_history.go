package state

import (
	"math"
	"slices"

	"nomadlike/nomadlike/structs"
)

// forecastRow keeps the answers about one attempt that has not begun, or had
// not: the first, and the newest, oldest first.
type forecastRow struct {
	JobID   string             `json:"job_id"`
	Subjob  int                `json:"subjob"`
	Attempt uint64             `json:"attempt"`
	Seq     uint64             `json:"seq"`             // rises by one with each row
	Ended   uint64             `json:"ended,omitempty"` // log index at which it began or was withdrawn; 0: it still waits
	Given   []structs.Forecast `json:"given"`
}

// applyForecasts keeps answers about subjobs that wait. Those that come too
// late, or say what cannot be, are listed in the result.
func applyForecasts(tx *txn, body *structs.Forecasts) (structs.ApplyResult, *structs.Error) {
	if len(body.Forecasts) > ForecastsMax {
		return refuse(structs.CodeTooLarge, "state.too_many", "what", "forecasts", "max", ForecastsMax)
	}
	var result structs.ApplyResult
	for i := range body.Forecasts {
		if !tx.recordForecast(&body.Forecasts[i]) {
			result.Refused = append(result.Refused, structs.SubjobKey(body.Forecasts[i].JobID, body.Forecasts[i].Subjob))
		}
	}
	for tx.meta.Forecasts > ForecastsKeptMax {
		oldest, ok := lookup[*forecastRow](tx, tableForecasts, indexCreated+"_prefix", nil)
		if !ok {
			break
		}
		tx.remove(tableForecasts, attemptKey(oldest.JobID, oldest.Subjob, oldest.Attempt), oldest)
		tx.meta.Forecasts -= len(oldest.Given)
	}
	return result, nil
}

// recordForecast keeps one answer, and reports whether it could.
func (tx *txn) recordForecast(given *structs.Forecast) bool {
	job, _ := tx.job(given.JobID)
	subjob, ok := tx.subjob(given.JobID, given.Subjob)
	if job == nil || !ok || subjob.State != structs.JobQueued || given.Attempt != subjob.NextAttempt() || badForecast(given) {
		return false
	}
	kept := *given
	kept.JobName, kept.Project, kept.Revision = job.Name, job.Project, 0
	kept.StartedAt, kept.Withdrawn = 0, false
	if kept.GivenAt == 0 {
		kept.GivenAt = tx.now
	}
	row := forecastRow{JobID: given.JobID, Subjob: given.Subjob, Attempt: given.Attempt}
	if known, ok := tx.forecast(given.JobID, given.Subjob, given.Attempt); ok {
		row = *known
		row.Given = slices.Clone(known.Given)
		kept.Revision = row.Given[len(row.Given)-1].Revision + 1
		if len(row.Given) == ForecastRevisionsMax {
			row.Given = slices.Delete(row.Given, 1, 2) // the first stays: calibration asks for it
			tx.meta.Forecasts--
		}
	} else {
		tx.meta.ForecastSeq++
		row.Seq = tx.meta.ForecastSeq
	}
	row.Given = append(row.Given, kept)
	tx.meta.Forecasts++
	tx.put(tableForecasts, attemptKey(row.JobID, row.Subjob, row.Attempt), &row)
	return true
}

// badForecast reports whether an answer says what cannot be.
func badForecast(given *structs.Forecast) bool {
	return given.Point <= 0 || given.P50 <= 0 || given.P90 < given.P50 || len(given.Features) > FeaturesMax ||
		!validText(given.Pool) ||
		slices.ContainsFunc(given.Features, func(f float64) bool { return math.IsNaN(f) || math.IsInf(f, 0) })
}

func (tx *txn) forecast(jobID string, subjob int, attempt uint64) (*forecastRow, bool) {
	return get[*forecastRow](tx, tableForecasts, attemptKey(jobID, subjob, attempt))
}

// endForecasts notes in the answers about an attempt how it came: it began now,
// or it never will.
func (tx *txn) endForecasts(jobID string, subjob int, attempt uint64, began bool) {
	known, ok := tx.forecast(jobID, subjob, attempt)
	if !ok {
		return
	}
	row := *known
	row.Ended, row.Given = tx.index(), slices.Clone(known.Given)
	for i := range row.Given {
		if began {
			row.Given[i].StartedAt = tx.now
		} else {
			row.Given[i].Withdrawn = true
		}
	}
	tx.put(tableForecasts, attemptKey(jobID, subjob, attempt), &row)
}

// recordRun remembers an ended attempt for estimates of later ones.
func (tx *txn) recordRun(job *structs.Job, subjob *structs.Subjob, attempt *structs.Attempt) {
	run := &structs.PastRun{
		JobID: job.ID, Project: job.Project, User: job.User, Name: job.Name,
		Image: job.Task.Image, Category: job.Category, Nodes: job.NodesOf(len(attempt.Allocs)),
		Waited:    structs.Duration(max(attempt.PlacedAt.Sub(subjob.QueuedAt), 0)),
		Runtime:   structs.Duration(max(tx.now.Sub(attempt.PlacedAt)-attempt.PausedFor.Std(), 0)),
		TimeLimit: job.TimeLimit, Expected: job.ExpectedRuntime, Outcome: attempt.Outcome, EndedAt: tx.now,
	}
	for rank, id := range attempt.Allocs {
		alloc, ok := tx.alloc(id)
		if !ok {
			continue
		}
		if rank == 0 {
			run.Pool = alloc.Pool
		}
		devices, _ := total(alloc.QuotaUsage)
		run.Devices += int(devices)
	}
	tx.meta.RunSeq++
	run.Seq = tx.meta.RunSeq
	tx.meta.runs = append(tx.meta.runs, run)
	if over := len(tx.meta.runs) - PastRunsMax; over > 0 {
		tx.meta.runs = tx.meta.runs[over:]
	}
}
