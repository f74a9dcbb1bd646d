package server

import (
	"context"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// How the leader keeps what it foresees.
const (
	forecastEvery = 2 * time.Second // between looks, at least; one that takes long must not take all of a core
	forecastsMax  = 512             // answers of one log entry
	// A look waits, so long at most, until nothing has started for a while: what
	// is about to start needs no forecast, and the processor for other things.
	forecastDefer = 10 * time.Second
	forecastRest  = time.Second
	deferEvery    = 100 * time.Millisecond
	// An answer is kept again when its point moved by more than both.
	forecastMoved      = 2 * time.Minute
	forecastMovedShare = 5 // one fifth of what was left to wait
	forecastAgain      = time.Minute
)

// forecaster keeps, on the leader, what is foreseen of everything that waits.
type forecaster struct {
	config    *Config
	proposals *proposals
	foresight *foresight
	placing   *placing
}

// run keeps, while this server leads, what is foreseen of everything
// that waits: the first answer for each attempt, and others when they moved.
func (f *forecaster) run(ctx context.Context) {
	looked := uint64(0)
	for ctx.Err() == nil {
		for begin := time.Now(); f.placing.recently() && time.Since(begin) < forecastDefer && pause(ctx, deferEvery); {
		}
		begin := time.Now()
		snapshot := f.config.Store.Snapshot()
		if index := snapshot.ScheduleIndex(); index != looked && waits(snapshot) {
			looked = index
			f.record(ctx, snapshot)
		}
		pause(ctx, max(forecastEvery, 10*time.Since(begin)))
	}
}

// waits reports whether anything waits.
func waits(snapshot *state.Snapshot) bool {
	for range snapshot.Queue() {
		return true
	}
	return false
}

// record puts the answers that are new into the log.
func (f *forecaster) record(ctx context.Context, snapshot *state.Snapshot) {
	shown, err := f.foresight.ForecastSnapshot(ctx, snapshot.Index(), "")
	if err != nil {
		return
	}
	var kept []structs.Forecast
	for _, start := range shown.Starts {
		if len(kept) == forecastsMax {
			break
		}
		if start.Verdict != forecast.VerdictLater && start.Verdict != forecast.VerdictNow {
			continue
		}
		told := start.Forecast(shown.At)
		if worthRecording(snapshot.Forecast(start.JobID, start.Subjob, start.Attempt), told) {
			kept = append(kept, told)
		}
	}
	if len(kept) == 0 {
		return
	}
	if _, _, err := f.proposals.decide(ctx, structs.CommandForecasts, &structs.Forecasts{Forecasts: kept}); err != nil && ctx.Err() == nil {
		f.config.Logger.Warn("forecasts were not kept", logkey.Error, err)
	}
}

// worthRecording reports whether an answer says something else than the newest one
// before it.
func worthRecording(before []structs.Forecast, now structs.Forecast) bool {
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	moved := now.Point.Sub(last.Point).Abs()
	left := now.Point.Sub(now.GivenAt).Abs()
	return moved > forecastMoved && moved > left/forecastMovedShare && now.GivenAt.Sub(last.GivenAt) >= forecastAgain
}
