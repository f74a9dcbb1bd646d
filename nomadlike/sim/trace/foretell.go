package trace

import (
	"math/rand/v2"
	"slices"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// foreteller forecasts sampled submissions at their submission. What it learns
// is its own, so that the same jobs start at the same times whether somebody
// asks or not. Of its own forecasts it learns as a server does: each one when
// its job has started.
type foreteller struct {
	r           *replay
	chosen      map[*task]bool
	learner     *learner // nil: run times are not learned, and forecasts not corrected
	calibrator  *forecast.Calibrator
	given       []forecastSample
	asked       []*task                     // by given
	uncorrected map[*task]*structs.Forecast // whose start is not learned
	seed        uint64
}

// sampled draws the submissions to forecast from what a replay without
// forecasts showed.
func (p *Predict) sampled(r *replay) map[string]bool {
	var candidates []string
	for _, t := range r.tasks {
		if !p.OnlyQueued || t.first > t.trace.Submit {
			candidates = append(candidates, t.job.ID)
		}
	}
	if p.Sample > 0 && p.Sample < len(candidates) {
		rng := rand.New(rand.NewPCG(p.Seed, 0x73616d706c65))
		rng.Shuffle(len(candidates), func(i, k int) { candidates[i], candidates[k] = candidates[k], candidates[i] })
		candidates = candidates[:p.Sample]
	}
	chosen := make(map[string]bool, len(candidates))
	for _, id := range candidates {
		chosen[id] = true
	}
	return chosen
}

func newForeteller(r *replay, chosen map[string]bool, before []Job) *foreteller {
	f := &foreteller{r: r, chosen: make(map[*task]bool, len(chosen)), seed: r.options.Predict.Seed}
	for id := range chosen {
		f.chosen[r.byID[id]] = true
	}
	if r.options.Estimate == EstimateLearned {
		f.learner = newLearner(r, before)
		f.calibrator, f.uncorrected = forecast.NewCalibrator(), make(map[*task]*structs.Forecast)
	}
	return f
}

// started learns how a forecast came out.
func (f *foreteller) started(t *task) {
	if said := f.uncorrected[t]; said != nil {
		delete(f.uncorrected, t)
		said.StartedAt = f.r.wall()
		f.calibrator.Learn(said)
	}
}

// submitted forecasts a task that stands in the queue since this instant.
func (f *foreteller) submitted(t *task) error {
	if !f.chosen[t] {
		return nil
	}
	live, err := f.r.cluster.sync()
	if err != nil {
		return err
	}
	board := live.Clone()
	input := forecast.Input{Board: board}
	switch {
	case f.learner != nil:
		view := f.outlook()
		board.SetModel(view)
		input.Times, input.Calibration = forecast.Learned(view), f.calibrator
	case f.r.options.Policy == PolicySRTF:
		input.Times = forecast.Known(f.r.newest)
	}
	leavePool(board, t.job.Placement.Pool) // by its own model: questions leave traces in that of the replay
	now := f.r.wall()
	starts := forecast.Queue(input, now, f.seed)
	at := slices.IndexFunc(starts, func(s forecast.Start) bool { return s.JobID == t.job.ID })
	if at < 0 {
		return defect("forecast", t)
	}
	f.asked = append(f.asked, t)
	f.given = append(f.given, sampleOf(starts[at].When, now))
	if f.calibrator != nil {
		said := starts[at].Forecast(now)
		f.calibrator.Learn(&said)
		f.uncorrected[t] = &said
	}
	return nil
}

// sampleOf takes what was said. No answer counts as one of "now".
func sampleOf(when forecast.When, now structs.UnixNano) forecastSample {
	if when.Verdict == forecast.VerdictNever || when.Verdict == forecast.VerdictUnknown {
		return forecastSample{}
	}
	return forecastSample{point: when.Point.Sub(now), p50: when.P50.Sub(now), p90: when.P90.Sub(now)}
}

// leavePool takes from a board what belongs to other pools: no job of these
// trace can reach into another pool, so it bears on nothing that is asked.
func leavePool(board *scheduler.Board, pool string) {
	for _, q := range slices.Collect(board.Queued()) {
		if q.Pool != pool {
			board.Withdraw(q.Subjob.JobID, q.Subjob.Index)
		}
	}
	for _, run := range slices.Collect(board.Running()) {
		if run.Job.Placement.Pool != pool {
			board.End(run.Subjob.JobID, run.Subjob.Index)
		}
	}
}

// outlook is all that is known of run times now.
func (f *foreteller) outlook() *predict.Outlook {
	f.learner.flush()
	return f.learner.model.Outlook(f.r.wall(), f.r.ongoing())
}

// score compares what was said with what came.
func (f *foreteller) score() *Score {
	for i, t := range f.asked {
		f.given[i].wait = max(t.first-t.trace.Submit, time.Duration(0))
	}
	return score(f.given)
}
