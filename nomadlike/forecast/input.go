package forecast

import (
	"time"

	"nomadlike/nomadlike/predict"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// Bounds and defaults of a look into the future.
const (
	// FuturesDefault is how many futures are sampled.
	FuturesDefault = 30
	// FuturesMax bounds them.
	FuturesMax = 256
	// HorizonDefault is how far a future is followed.
	HorizonDefault = 30 * 24 * time.Hour
	// HorizonMax bounds it.
	HorizonMax = 366 * 24 * time.Hour
	// WorkMax bounds the work of one look, over all its futures. A pass counts as
	// one, with one more for each start and for each nodesPerWork nodes of the
	// cluster; so do runningPerWork gangs that run at now, in each future, and
	// steppedPerWork nodes that a window of maintenance closes or opens. With
	// 1,000 that wait and 1,000 that run it is far from being reached; with 100,000
	// a look takes some seconds, and those far behind are told that they start
	// later than what was reached.
	WorkMax        = 250_000
	nodesPerWork   = 400
	runningPerWork = 5
	steppedPerWork = 8
	// futuresLeast is to how few futures a look with very many gangs is cut down.
	futuresLeast = 8
	// reservedMax bounds the nodes reserved for blocked gangs that are remembered, over all
	// turns of all futures. Beyond it a new job is forecast as if none were reserved.
	reservedMax = 2 << 20
	// windowShare is how close ends are that count as one, as a share of the time
	// from now on.
	windowShare = 0.02
	windowLeast = 20 // seconds
	// settleMax bounds the passes at now that place and explain what they can.
	settleMax = 64
)

// Input is what a forecast is made from.
type Input struct {
	// Board is synced with the newest state. It is cloned, never changed. Its
	// settings say how the scheduler decides, and with which estimates.
	Board *scheduler.Board
	// Times draws run times; nil: Settings.Runtime or Settings.Model of the board,
	// and time limits.
	Times Times
	// Calibration corrects what the futures say by how earlier forecasts came
	// out; nil: their quantiles are the answer.
	Calibration Calibration
	Futures     int           // how many; 0: FuturesDefault
	Horizon     time.Duration // 0: HorizonDefault
	// Exact lets the scheduler make a pass after every single end, for about three
	// times the work. It is so anyway where run times are known or nothing passes.
	Exact bool
	// Pause is called every millisecond or so of the work, so that whoever looks can
	// let others go first; nil: nobody waits.
	Pause func()
}

// pause lets others go first.
func (in *Input) pause() {
	if in.Pause != nil {
		in.Pause()
	}
}

// Times is what is known of run times.
type Times interface {
	// Draw returns one possible future; equal seeds give equal ones. It is called
	// once for each future, and not after another Look has begun.
	Draw(seed uint64) Draw
}

// Draw is one possible future of run times.
type Draw interface {
	// Runtime reports how long a gang of the subjob uses its nodes in this future,
	// when it has used them for elapsed already; elapsed is included. share is an
	// even chance between 0 and 1 that is the gang's own in this future. False: it
	// ends at a time that nobody knows.
	Runtime(job *structs.Job, subjob int, share float64, elapsed time.Duration) (time.Duration, bool)
}

// Calibration turns the waits that the futures show for one subjob into an
// answer. It is pure: equal arguments give equal answers.
type Calibration interface {
	// Correct gets what is forecast, and the waits from its time on in rising order,
	// one for each future; a wait that is not less than horizon only says that the
	// future was followed so far. The answer is bent to 0 <= p50 <= p90 by the caller.
	Correct(about About, waits []time.Duration, horizon time.Duration) (point, p50, p90 time.Duration)
}

// About is what a calibration knows of a forecast but its futures.
type About struct {
	Pool     string
	At       structs.UnixNano
	Features []float64 // as Features describes
}

// Learned draws run times from what a model knows at the instant of its outlook.
func Learned(outlook *predict.Outlook) Times { return learned{outlook} }

type learned struct{ outlook *predict.Outlook }

// Draw implements Times.
func (l learned) Draw(seed uint64) Draw { return drawn{l.outlook.Draw(seed)} }

// drawn samples the estimates of a future.
type drawn struct{ estimates scheduler.Estimates }

// Runtime implements Draw.
func (d drawn) Runtime(job *structs.Job, _ int, share float64, elapsed time.Duration) (time.Duration, bool) {
	return d.estimates.Estimate(job).Sample(share, elapsed), true
}

// estimated draws every future from the same estimates.
type estimated struct{ estimates scheduler.Estimates }

// Draw implements Times.
func (e estimated) Draw(uint64) Draw { return drawn(e) }

// limits knows time limits alone: a job runs as long as it may.
type limits struct{}

// Draw implements Times.
func (limits) Draw(uint64) Draw { return limits{} }

// Runtime implements Draw.
func (limits) Runtime(job *structs.Job, _ int, _ float64, _ time.Duration) (time.Duration, bool) {
	limit := job.TimeLimit.Std()
	return limit, limit > 0
}

// Known are run times that somebody knows exactly: what a simulation replays.
// All its futures are equal, so one is enough.
type Known func(job *structs.Job, subjob int) time.Duration

// Draw implements Times.
func (k Known) Draw(uint64) Draw { return k }

// Runtime implements Draw.
func (k Known) Runtime(job *structs.Job, subjob int, _ float64, _ time.Duration) (time.Duration, bool) {
	return k(job, subjob), true
}

// times returns the run times to draw from.
func (in *Input) times() Times {
	settings := in.Board.Settings()
	switch {
	case in.Times != nil:
		return in.Times
	case settings.Runtime != nil:
		return Known(settings.Runtime)
	case settings.Model == nil:
		return limits{}
	}
	if outlook, ok := settings.Model.(*predict.Outlook); ok {
		return learned{outlook}
	}
	return estimated{settings.Model}
}

// futures is how many futures are worth sampling when so many gangs run.
func (in *Input) futures(times Times, running int) int {
	switch times.(type) {
	case Known, limits:
		return 1
	}
	count := in.Futures
	if count <= 0 {
		count = FuturesDefault
	}
	affordable := WorkMax / 2 / (running/runningPerWork + 1)
	return min(count, FuturesMax, max(affordable, futuresLeast))
}

func (in *Input) horizon() time.Duration {
	if in.Horizon <= 0 {
		return HorizonDefault
	}
	return min(in.Horizon, HorizonMax)
}
