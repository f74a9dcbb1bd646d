package server

import (
	"context"
	"math"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// How looks into the future are made.
const (
	// foresightFresh is how long, at most, a look is good though the state has
	// moved on: a busy queue moves all the time. One that cost more than
	// foresightDear is good for ten times that, at most foresightOld: of a long
	// queue people rather know how it stood a moment ago than wait.
	foresightFresh = time.Second
	foresightDear  = 250 * time.Millisecond
	foresightOld   = 30 * time.Second
	// foresightStale is how long a look is good when nothing has changed but
	// time.
	foresightStale = 10 * time.Second
	// foresightCost is what a look may cost before it samples fewer futures, and
	// futuresMin how few those may be.
	foresightCost = 2 * time.Second
	futuresMin    = 8
)

// foresight looks into the future for whoever asks, beside the queue loop and
// with a board and a model of its own. Every server can do it: it reads its
// own copy of the state. What it holds is made at the first question.
type foresight struct {
	place   chan struct{} // holds the one token of whoever looks; guards the rest
	board   *scheduler.Board
	times   runTimes
	past    calibration
	newest  *forecast.Futures
	index   uint64        // schedule index of newest
	knows   uint64        // index of the state that newest knows
	cost    time.Duration // that newest took
	futures int           // that the next look samples
}

func newForesight() *foresight {
	return &foresight{place: make(chan struct{}, 1), futures: forecast.FuturesDefault}
}

// runTimes is a model of run times that follows the state's past runs.
type runTimes struct {
	model *predict.Model
	seen  uint64 // the newest past run that it has learned
}

// follow learns what ended since. A snapshot that is older than what was
// learned, after a restore, begins anew.
func (t *runTimes) follow(snapshot *state.Snapshot) {
	if newest := snapshot.PastRunSeq(); t.model == nil || newest < t.seen {
		t.model, t.seen = predict.NewModel(), 0
	}
	for _, past := range snapshot.PastRuns(t.seen) {
		t.model.Learn(predict.RunOf(past))
		t.seen = past.Seq
	}
}

// calibration is a calibrator that follows how the kept forecasts come out. Of
// each attempt it learns the first answer: those after it are of the same wait.
type calibration struct {
	calibrator *forecast.Calibrator
	given      uint64 // number of the newest attempt whose first answer it has
	ended      uint64 // log index up to which it knows what came
	index      uint64 // of the state that it saw last
}

// follow learns what was said and what came since. A snapshot that is older than
// what was learned, after a restore, begins anew.
func (c *calibration) follow(snapshot *state.Snapshot) {
	if c.calibrator == nil || snapshot.Index() < c.index {
		*c = calibration{calibrator: forecast.NewCalibrator()}
	}
	for number, said := range snapshot.FirstForecasts(c.given) {
		said.StartedAt, said.Withdrawn = 0, false // what came is learned below, in its order
		c.calibrator.Learn(&said)
		c.given = number
	}
	for index, given := range snapshot.EndedForecasts(c.ended) {
		c.calibrator.Learn(&given[0])
		c.ended = index
	}
	c.index = snapshot.Index()
}

// ongoing is what runs on a board, for the model.
func ongoing(board *scheduler.Board) func(func(predict.Ongoing) bool) {
	return func(yield func(predict.Ongoing) bool) {
		for r := range board.Running() {
			if !yield(predict.Ongoing{Job: r.Job, Since: r.PlacedAt}) {
				return
			}
		}
	}
}

// Newest as the index for Foresee asks for the futures of the newest state, as
// long as looks are not dear: who asks about one job has often just changed
// something.
const Newest = math.MaxUint64

// Foresee lets ask look at the futures of this server's state: those of a moment
// ago when they are good enough and know the state at index fresh (0: any), else
// new ones, which may take some seconds with a very long queue. ask is called by
// one goroutine at a time and must not keep what it is given. The error is ask's,
// or CodeTimeout when ctx ends before it is its turn.
func (s *Server) Foresee(ctx context.Context, fresh uint64, ask func(*forecast.Futures) error) error {
	f := s.foresight
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.leave()
	snapshot, now := s.config.Store.Snapshot(), s.now()
	stale := f.knows < fresh
	if fresh == Newest {
		stale = f.cost <= foresightDear && snapshot.ScheduleIndex() != f.index
	}
	if stale || !f.good(snapshot, now) {
		f.look(snapshot, now, s.config.Now)
	}
	return ask(f.newest)
}

// Consult lets ask read a scheduler's board with this server's newest state. It
// must not change the board, nor keep it. The error is CodeTimeout when ctx ends
// before it is its turn.
func (s *Server) Consult(ctx context.Context, ask func(*scheduler.Board)) error {
	f := s.foresight
	if err := f.enter(ctx); err != nil {
		return err
	}
	defer f.leave()
	ask(f.synced(s.config.Store.Snapshot()))
	return nil
}

// enter waits for the token of who looks.
func (f *foresight) enter(ctx context.Context) error {
	select {
	case f.place <- struct{}{}:
		return nil
	case <-ctx.Done():
		return structs.NewError(structs.CodeTimeout, "server.foresight_busy").Because(ctx.Err())
	}
}

func (f *foresight) leave() { <-f.place }

// synced is the board, brought to a state.
func (f *foresight) synced(snapshot *state.Snapshot) *scheduler.Board {
	if f.board == nil {
		f.board = scheduler.NewBoard(rules())
	}
	f.board.Sync(snapshot)
	return f.board
}

// good tells whether the newest look answers for a state.
func (f *foresight) good(snapshot *state.Snapshot, now structs.UnixNano) bool {
	if f.newest == nil {
		return false
	}
	lasts := min(4*f.cost, foresightFresh)
	if f.cost > foresightDear {
		lasts = min(10*f.cost, foresightOld)
	}
	age := now.Sub(f.newest.Now())
	return age < lasts || age < foresightStale && snapshot.ScheduleIndex() == f.index
}

// look makes new futures.
func (f *foresight) look(snapshot *state.Snapshot, now structs.UnixNano, clock func() time.Time) {
	begin := clock()
	f.synced(snapshot)
	f.times.follow(snapshot)
	f.past.follow(snapshot)
	view := f.times.model.Outlook(now, ongoing(f.board))
	f.board.SetModel(view)
	f.index, f.knows = snapshot.ScheduleIndex(), snapshot.Index()
	f.newest = forecast.Look(forecast.Input{Board: f.board, Times: forecast.Learned(view), Calibration: f.past.calibrator, Futures: f.futures}, now, f.index)
	f.cost = clock().Sub(begin)
	f.futures = forecast.FuturesDefault
	if f.cost > foresightCost { // fewer futures are coarser, and better than an answer that comes too late
		f.futures = max(futuresMin, int(float64(forecast.FuturesDefault)*foresightCost.Seconds()/f.cost.Seconds()))
	}
}

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

// runForecasts keeps, while this server leads, what is foreseen of everything
// that waits: the first answer for each attempt, and others when they moved.
func (s *Server) runForecasts(ctx context.Context) {
	looked := uint64(0)
	for ctx.Err() == nil {
		for begin := time.Now(); s.starting() && time.Since(begin) < forecastDefer && pause(ctx, deferEvery); {
		}
		begin := time.Now()
		snapshot := s.config.Store.Snapshot()
		if index := snapshot.ScheduleIndex(); index != looked && waits(snapshot) {
			looked = index
			s.keepForecasts(ctx, snapshot)
		}
		pause(ctx, max(forecastEvery, 10*time.Since(begin)))
	}
}

// starting tells whether the queue loop starts things now, or did a moment ago.
func (s *Server) starting() bool {
	placedAt := s.placedAt.Load()
	return s.placing.Load() || placedAt != nil && time.Since(*placedAt) < forecastRest
}

// waits tells whether anything waits.
func waits(snapshot *state.Snapshot) bool {
	for range snapshot.Queue() {
		return true
	}
	return false
}

// keepForecasts puts the answers that are new into the log.
func (s *Server) keepForecasts(ctx context.Context, snapshot *state.Snapshot) {
	var kept []structs.Forecast
	err := s.Foresee(ctx, snapshot.Index(), func(futures *forecast.Futures) error {
		for _, start := range futures.Queue() {
			if len(kept) == forecastsMax {
				break
			}
			if start.Verdict != forecast.VerdictLater && start.Verdict != forecast.VerdictNow {
				continue
			}
			said := start.Forecast(futures.Now())
			if worthKeeping(snapshot.Forecast(start.JobID, start.Subjob, start.Attempt), said) {
				kept = append(kept, said)
			}
		}
		return nil
	})
	if err != nil || len(kept) == 0 {
		return
	}
	if _, _, err := s.decide(ctx, structs.CommandForecasts, &structs.Forecasts{Forecasts: kept}); err != nil && ctx.Err() == nil {
		s.config.Logger.Warn("forecasts were not kept", logkey.Error, err)
	}
}

// worthKeeping tells whether an answer says something else than the newest one
// before it.
func worthKeeping(before []structs.Forecast, now structs.Forecast) bool {
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	moved := now.Point.Sub(last.Point).Abs()
	left := now.Point.Sub(now.GivenAt).Abs()
	return moved > forecastMoved && moved > left/forecastMovedShare && now.GivenAt.Sub(last.GivenAt) >= forecastAgain
}
