package server

import (
	"context"
	"iter"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/forecast"
	"nomadlike/nomadlike/load"
	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
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
	// foresightRest is for how many times of its cost nobody looks again after a
	// look, whoever wants to know something newer.
	foresightRest = 2
	// A look waits for writes as long as it works itself, at most, and foresightStep
	// at a time: under constant writes it takes twice as long, and not for ever.
	foresightStep = time.Millisecond
)

// foresight looks into the future for whoever asks, beside the queue loop and
// with a board and a model of its own. Every server can do it: it reads its
// own copy of the state. What it holds is made at the first question.
//
//	asks ──► forecast of a moment ago ──good──► answer, without a lock
//	              │ not good
//	              ▼
//	         the one look that goes on ──► the next forecast, for all who asked
//	              ▲
//	fairQueue: one computes at a time, looks first, then previews, user by user
type foresight struct {
	now       func() time.Time
	store     *state.Store
	computing *fairQueue                       // of those who look and preview
	trying    *fairQueue                       // of those who try
	writing   atomic.Int32                     // submissions under way: they go first
	newest    atomic.Pointer[ForecastSnapshot] // nil: nobody has looked

	// Of whose turn it is.
	board   *scheduler.Board
	times   runTimes
	past    calibration
	shown   *forecast.Futures // that the newest forecast shows
	futures int               // that the next look samples
	work    work              // of whoever computes now

	reading struct { // for what is read off a board and not computed
		sync.Mutex
		board *scheduler.Board
	}

	mu struct {
		sync.Mutex
		going  chan struct{} // closed when the look that goes on has ended; nil: none does
		ended  time.Time     // when the newest look did
		looks  int           // ever begun
		closed bool
		tasks  sync.WaitGroup
	}
}

func newForesight(config *Config) *foresight {
	return &foresight{now: config.Now, store: config.Store, computing: newFairQueue(), trying: newFairQueue(), futures: forecast.FuturesDefault}
}

// close lets nobody look any more, and waits for those who do.
func (f *foresight) close() {
	f.mu.Lock()
	f.mu.closed = true
	f.mu.Unlock()
	f.mu.tasks.Wait()
}

// ForecastSnapshot is what one look into the future showed. Everybody who asks gets the
// same one until the next; it never changes.
type ForecastSnapshot struct {
	At     structs.UnixNano
	Starts []forecast.Start // of everything that waits

	drawing  *forecast.Drawing
	ofJob    map[string][]int32 // places in Starts
	schedule uint64             // schedule index of the state that it shows
	knows    uint64             // index of that state
	cost     time.Duration      // that it took
}

// OfJob yields the starts of a job.
func (p *ForecastSnapshot) OfJob(id string) iter.Seq[*forecast.Start] {
	return func(yield func(*forecast.Start) bool) {
		for _, at := range p.ofJob[id] {
			if !yield(&p.Starts[at]) {
				return
			}
		}
	}
}

// Timeline cuts a timeline out of the forecast, which is the caller's to change.
func (p *ForecastSnapshot) Timeline(horizon structs.Duration, wanted func(*structs.Node) bool) outlook.Timeline {
	return p.drawing.Timeline(horizon, wanted)
}

// Spans is what is held of the nodes after the instant of the forecast, for
// forecast.LoadAhead. It is shared, and must not be changed.
func (p *ForecastSnapshot) Spans() []load.Span { return p.drawing.Spans() }

// runTimes is a model of run times that follows the state's past runs.
type runTimes struct {
	model *predict.Model
	seen  uint64 // the newest past run that it has learned
	of    uint64 // lineage of the state that it learned from
}

// follow learns what ended since. After a restore it begins anew: numbers of
// what was given up are given once more.
func (t *runTimes) follow(snapshot *state.Snapshot) {
	if t.model == nil || snapshot.Lineage() != t.of {
		*t = runTimes{model: predict.NewModel(), of: snapshot.Lineage()}
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
	of         uint64 // lineage of the state that it learned from
}

// follow learns what was said and what came since. After a restore it begins
// anew: numbers of what was given up are given once more.
func (c *calibration) follow(snapshot *state.Snapshot) {
	if c.calibrator == nil || snapshot.Lineage() != c.of {
		*c = calibration{calibrator: forecast.NewCalibrator(), of: snapshot.Lineage()}
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

// Newest as the index for ForecastSnapshot asks for the newest state, as long as looks
// are not dear: whoever asks about one job has often just changed something.
const Newest = math.MaxUint64

// ForecastSnapshot shows the future of this server's state: as it was a moment ago when
// that is good enough and knows the state at index knows (0: any), else as it is
// now. However many ask, one look at a time goes on, and all who wait share it.
// While one goes on that takes longer than foresightDear, the forecast before it
// is the answer, also about a job that it names. The error is CodeTimeout when ctx ends before there is one, or
// CodeUnavailable when this server stops.
func (f *foresight) ForecastSnapshot(ctx context.Context, knows uint64, jobID string) (*ForecastSnapshot, error) {
	return f.current(ctx, knows, jobID)
}

// Preview lets ask compute with the futures of the newest forecast, when it is
// the turn of the caller; see fairQueue. ask must not keep what it is given. The error
// is ask's, or of those of fairQueue.enter.
func (f *foresight) Preview(ctx context.Context, who Asker, ask func(*forecast.Futures) error) error {
	if err := f.computing.reserve(who); err != nil {
		return err
	}
	defer f.computing.release(who)
	if _, err := f.current(ctx, Newest, ""); err != nil {
		return err
	}
	leave, err := f.computing.enter(ctx, who)
	if err != nil {
		return err
	}
	defer leave()
	f.work.begin(f.now())
	return ask(f.shown)
}

// Try calls ask with a scheduler's board of its own with this server's newest state,
// when it is the turn of the caller. It takes a moment, so it waits for others who
// try, and for no look. Places are those of previews.
func (f *foresight) Try(ctx context.Context, who Asker, ask func(*scheduler.Board)) error {
	if err := f.computing.reserve(who); err != nil {
		return err
	}
	defer f.computing.release(who)
	leave, err := f.trying.enter(ctx, who)
	if err != nil {
		return err
	}
	defer leave()
	return f.Consult(ctx, func(board *scheduler.Board) { ask(board.Clone()) })
}

// Consult lets ask read a scheduler's board with this server's newest state. It
// must not change the board, nor keep it, nor take long: it waits for nobody who
// computes, and others who read wait for it.
func (f *foresight) Consult(ctx context.Context, ask func(*scheduler.Board)) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	if err := ctx.Err(); err != nil {
		return structs.NewError(structs.CodeTimeout, "server.foresight_busy").Because(err)
	}
	ask(synced(&f.reading.board, f.store.Snapshot()))
	return nil
}

// synced brings a board to a state, and makes it when there is none yet.
func synced(board **scheduler.Board, snapshot *state.Snapshot) *scheduler.Board {
	if *board == nil {
		*board = scheduler.NewBoard(rules())
	}
	(*board).Sync(snapshot)
	return *board
}

// over is the end of a look that has ended.
var over = func() <-chan struct{} { ended := make(chan struct{}); close(ended); return ended }()

// current returns the newest forecast that answers, and waits for one otherwise.
func (f *foresight) current(ctx context.Context, knows uint64, jobID string) (*ForecastSnapshot, error) {
	for {
		snapshot, now := f.store.Snapshot(), structs.At(f.now())
		p := f.newest.Load()
		answers := p != nil && p.answers(snapshot, knows)
		if answers && p.good(snapshot, now) {
			return p, nil
		}
		ended, err := f.lookOnce(p)
		if err != nil {
			return nil, err
		}
		var enough <-chan time.Time // then the old one is better than to wait; nil: never
		if p != nil && now.Sub(p.At) < foresightOld+2*p.cost && (answers || knows == Newest || len(p.ofJob[jobID]) > 0) {
			if p.cost > foresightDear {
				return p, nil // the next one is on its way, and takes long
			}
			patience := foresightDear
			if knows == Newest { // it has just changed something, and the machine may be busy for a moment
				patience = foresightCost
			}
			enough = time.After(patience)
		}
		select {
		case <-ended:
		case <-enough:
			return p, nil
		case <-ctx.Done():
			return nil, structs.NewError(structs.CodeTimeout, "server.foresight_busy").Because(ctx.Err())
		}
	}
}

// answers reports whether a forecast knows enough of a state.
func (p *ForecastSnapshot) answers(snapshot *state.Snapshot, knows uint64) bool {
	if knows == Newest {
		return p.cost > foresightDear || p.schedule == snapshot.ScheduleIndex()
	}
	return p.knows >= knows
}

// good reports whether a forecast is young enough for a state.
func (p *ForecastSnapshot) good(snapshot *state.Snapshot, now structs.UnixNano) bool {
	lasts := min(4*p.cost, foresightFresh)
	if p.cost > foresightDear {
		lasts = min(10*p.cost, foresightOld)
	}
	age := now.Sub(p.At)
	return age < lasts || age < foresightStale && snapshot.ScheduleIndex() == p.schedule
}

// lookOnce begins a look unless one goes on, or has ended since the caller had
// seen a forecast; the channel is closed when it has ended.
func (f *foresight) lookOnce(seen *ForecastSnapshot) (<-chan struct{}, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.going != nil {
		return f.mu.going, nil
	}
	if f.newest.Load() != seen {
		return over, nil
	}
	if f.mu.closed {
		return nil, structs.NewError(structs.CodeUnavailable, "server.stopping")
	}
	rest := time.Duration(0)
	if p := f.newest.Load(); p != nil {
		rest = max(0, foresightRest*p.cost-f.now().Sub(f.mu.ended))
		if p.cost <= foresightDear {
			rest = min(rest, p.cost)
		}
	}
	ended := make(chan struct{})
	f.mu.going = ended
	f.mu.looks++
	f.mu.tasks.Go(func() {
		if rest > 0 {
			time.Sleep(rest) // seconds at most
		}
		f.computing.enterFirst()
		f.look()
		f.computing.leave()
		f.mu.Lock()
		f.mu.going, f.mu.ended = nil, f.now()
		f.mu.Unlock()
		close(ended)
	})
	return ended, nil
}

// look makes a new forecast. It belongs to whose turn it is.
func (f *foresight) look() {
	snapshot, begin := f.store.Snapshot(), f.now()
	now := structs.At(begin)
	f.work.begin(begin)
	board := synced(&f.board, snapshot)
	f.times.follow(snapshot)
	f.past.follow(snapshot)
	view := f.times.model.Outlook(now, ongoing(board))
	board.SetModel(view)
	p := &ForecastSnapshot{At: now, schedule: snapshot.ScheduleIndex(), knows: snapshot.Index()}
	f.shown = forecast.Look(forecast.Input{
		Board: board, Times: forecast.Learned(view), Calibration: f.past.calibrator, Futures: f.futures, Pause: f.giveWay,
	}, now, p.schedule)
	p.Starts, p.drawing = f.shown.Queue(), f.shown.Draw()
	p.ofJob = make(map[string][]int32, len(p.Starts))
	for i := range p.Starts {
		id := p.Starts[i].JobID
		p.ofJob[id] = append(p.ofJob[id], int32(i))
	}
	took := f.now().Sub(begin) - f.work.waited
	f.futures = forecast.FuturesDefault
	if took > foresightCost { // fewer futures are coarser, and better than an answer that comes too late
		f.futures = max(futuresMin, int(float64(forecast.FuturesDefault)*foresightCost.Seconds()/took.Seconds()))
	}
	p.cost = costAfter(f.newest.Load(), took)
	f.newest.Store(p)
}

// costAfter is what a look counts as, that took so long after another. A queue does
// not become long at once: that a look is dear is believed when it happens twice, for
// what is dear is answered from before a change.
func costAfter(before *ForecastSnapshot, took time.Duration) time.Duration {
	if before == nil || before.cost < foresightDear {
		return min(took, foresightDear)
	}
	return took
}

// work is a piece of computing.
type work struct {
	began  time.Time
	waited time.Duration // for writes
}

func (w *work) begin(now time.Time) { *w = work{began: now} }

// giveWay lets whatever else is ready on this processor run, and waits a moment
// when somebody writes.
func (f *foresight) giveWay() {
	runtime.Gosched()
	if f.writing.Load() == 0 {
		return
	}
	now := f.now()
	if w := &f.work; 2*w.waited <= now.Sub(w.began) {
		time.Sleep(foresightStep)
		w.waited += f.now().Sub(now)
	}
}
