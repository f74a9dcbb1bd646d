package forecast

import (
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// Futures are the futures of a board as it was at one instant. One goroutine
// at a time may use them.
type Futures struct {
	in              Input
	now             structs.UnixNano
	seed            uint64
	horizon         structs.UnixNano
	times           Times
	start           *scheduler.Board // the board before anything was placed at now
	base            *scheduler.Board // after its passes at now
	members         []member         // the queue in order, then what runs
	queued          int              // of members, those that wait
	only            int              // the one of them that is asked about; -1: all
	found           map[structs.AttemptKey]int32
	strict          bool // nobody passes anybody in a pool's queue
	reservationsMax int  // blocked gangs of a pool that have nodes reserved
	coarse          bool // ends that are close to each other count as one
	steps           []windowStep
	shares          []float64 // by member and future
	futures         []future
	reservedLeft    int   // reserved nodes that may still be noted in turns
	known           *view // for those who come later; nil: not asked for yet
}

// member is a subjob that waits or runs at now.
type member struct {
	job    *structs.Job
	subjob *structs.Subjob
	// Of one that waits:
	pool     string
	position int
	place    int           // position among those that nothing at now places
	ahead    int           // devices asked for before it in its queue
	span     time.Duration // that the scheduler reckons with, 0: nothing is known
	now      bool          // placed by a pass at now
	wait     *structs.WaitReason
	stuck    bool // nothing that futures know of lets it start
	away     bool // its nodes are in maintenance: until some are open it is in nobody's way
	// Of one that runs, or was placed at now:
	gang scheduler.Running
}

// keyOf names a subjob in the table of members.
func keyOf(jobID string, subjob int) structs.AttemptKey {
	return structs.AttemptKey{JobID: jobID, Subjob: subjob}
}

// Look samples the futures of a board. It costs about as much as it costs the
// scheduler to serve the whole queue, times the number of futures; see WorkMax.
func Look(in Input, now structs.UnixNano, seed uint64) *Futures {
	f := prepare(in, now, seed)
	f.follow()
	return f
}

// prepare makes the passes at now and lists the members.
func prepare(in Input, now structs.UnixNano, seed uint64) *Futures {
	f := &Futures{
		in: in, now: now, seed: seed, horizon: now.Add(in.horizon()), times: in.times(),
		start: in.Board.Clone(), only: -1, found: make(map[structs.AttemptKey]int32),
	}
	settings := f.start.Settings()
	f.strict, f.reservationsMax = settings.Passing == scheduler.NoPassing, reservationsMax(settings)
	settings.Quiet = false
	f.start.SetSettings(settings)
	for q := range f.start.Queued() {
		m := member{job: q.Job, subjob: q.Subjob, pool: q.Pool, position: q.Position}
		if q.Expected {
			m.span = q.Span.Std()
		}
		if last := len(f.members) - 1; last >= 0 && f.members[last].pool == m.pool {
			m.ahead = f.members[last].ahead + devicesOf(f.members[last].job)
		}
		f.found[keyOf(q.Subjob.JobID, q.Subjob.Index)] = int32(len(f.members))
		f.members = append(f.members, m)
	}
	f.queued = len(f.members)
	f.base = f.start.Clone()
	settle(f.base, now, seed)
	for r := range f.base.Running() {
		key := keyOf(r.Subjob.JobID, r.Subjob.Index)
		at, known := f.found[key]
		if !known {
			at = int32(len(f.members))
			f.found[key] = at
			f.members = append(f.members, member{job: r.Job, subjob: r.Subjob})
		}
		f.members[at].gang = r
		f.members[at].now = known
	}
	for q := range f.base.Queued() {
		f.members[f.found[keyOf(q.Subjob.JobID, q.Subjob.Index)]].place = q.Position
	}
	for i := range f.members[:f.queued] {
		m := &f.members[i]
		if !m.now {
			m.wait = f.base.Explain(m.subjob.JobID, m.subjob.Index)
			m.stuck = hopeless(m.wait)
			m.away = inMaintenance(m.wait)
		}
	}
	settings.Quiet, settings.Alone = true, true
	f.base.SetSettings(settings)
	f.steps = windowSteps(f.base.Nodes(), now)
	return f
}

// settle lets a board place and explain what it can at now.
func settle(b *scheduler.Board, now structs.UnixNano, seed uint64) {
	for range settleMax {
		if plan := b.Pass(now, seed); len(plan.Gangs) == 0 && len(plan.Waits) == 0 {
			return
		}
	}
}

// hopeless reports whether a reason stands whoever ends.
func hopeless(wait *structs.WaitReason) bool {
	return wait != nil && (wait.Never || verdictOf(wait) != VerdictLater)
}

// verdictOf is what a reason says about the start by itself.
func verdictOf(wait *structs.WaitReason) Verdict {
	switch {
	case wait == nil:
		return VerdictLater
	case wait.Never:
		return VerdictNever
	}
	if wait.Waits() { // for jobs of which nobody knows how they end
		return VerdictUnknown
	}
	switch wait.ID {
	case "scheduler.ceiling_nodes", "scheduler.ceiling_nodes_by", "scheduler.ceiling_devices", "scheduler.ceiling_devices_by":
		return VerdictNever
	case "scheduler.nodes_away", "scheduler.no_nodes":
		return VerdictUnknown
	}
	return VerdictLater
}

// follow plays the futures.
func (f *Futures) follow() {
	count := f.in.futures(f.times, len(f.members)-f.queued)
	f.coarse = count > 1 && !f.in.Exact && !f.strict
	f.shares = chances(f.seed, f.members, count)
	f.futures = make([]future, count)
	f.reservedLeft = reservedMax
	work := WorkMax
	for i := range f.futures {
		work -= f.play(i, work/(count-i))
	}
	f.reconsider()
}

// reconsider finds out why members never start, as it seems: the scheduler does
// not look at those who stand far behind, so it is asked about them alone.
func (f *Futures) reconsider() {
	var lost []int
	for i := range f.members[:f.queued] {
		if f.asked(i) && !slices.ContainsFunc(f.futures, func(u future) bool { return u.starts[i] != 0 || !u.ended }) {
			lost = append(lost, i)
		}
	}
	if len(lost) == 0 {
		return
	}
	b := f.lonely(func(i int) bool { _, found := slices.BinarySearch(lost, i); return found })
	settle(b, f.now, f.seed)
	for _, i := range lost {
		m := &f.members[i]
		if wait := b.Explain(m.subjob.JobID, m.subjob.Index); hopeless(wait) {
			m.wait, m.stuck = wait, true
		}
	}
}

// lonely returns a board that places and explains, on which of all that waits
// only some does.
func (f *Futures) lonely(stays func(member int) bool) *scheduler.Board {
	b := f.base.Clone()
	settings := b.Settings()
	settings.Quiet, settings.Alone = false, false
	b.SetSettings(settings)
	for i := range f.members[:f.queued] {
		if m := &f.members[i]; !m.now && !stays(i) {
			b.Withdraw(m.subjob.JobID, m.subjob.Index)
		}
	}
	return b
}

// Now is the instant of the forecast.
func (f *Futures) Now() structs.UnixNano { return f.now }

// Queue forecasts every queued subjob, pool by pool by name, each in the order
// in which it is served.
func (f *Futures) Queue() []Start {
	starts := make([]Start, f.queued)
	for i := range starts {
		f.in.pause()
		starts[i] = f.startOf(i)
	}
	f.straighten(starts)
	return starts
}

// Queue looks into the future of a board and forecasts every queued subjob.
func Queue(in Input, now structs.UnixNano, seed uint64) []Start { return Look(in, now, seed).Queue() }

// One looks into the future of a board for a single queued subjob, and no
// further than its start; false: it does not wait. It says what Queue says of
// it, but for what Queue does to keep equal jobs in order.
func One(in Input, jobID string, subjob int, now structs.UnixNano, seed uint64) (Start, bool) {
	f := prepare(in, now, seed)
	at, ok := f.found[keyOf(jobID, subjob)]
	if !ok || int(at) >= f.queued {
		return Start{}, false
	}
	f.only = int(at)
	f.follow()
	return f.startOf(f.only), true
}

// startOf forecasts a queued member.
func (f *Futures) startOf(i int) Start {
	m := &f.members[i]
	s := Start{
		JobID: m.subjob.JobID, JobName: m.job.Name, Project: m.job.Project, User: m.job.User, Subjob: m.subjob.Index,
		Attempt: m.subjob.NextAttempt(), Pool: m.pool, Position: m.position, Priority: m.job.Priority,
		Nodes: m.job.Nodes, Devices: devicesOf(m.job), Wait: m.wait,
	}
	s.When, s.Features = f.when(i)
	return s
}

// when forecasts the start of a queued member.
func (f *Futures) when(i int) (When, []float64) {
	m := &f.members[i]
	switch {
	case m.now:
		return nowAt(f.now), nil
	case m.stuck:
		return When{Verdict: verdictOf(m.wait)}, nil
	}
	samples := make([]sample, len(f.futures))
	for k := range f.futures {
		samples[k] = f.futures[k].sampleOf(i)
	}
	about := f.about(m, samples)
	return f.answer(samples, about), about.Features
}

func nowAt(now structs.UnixNano) When {
	return When{Verdict: VerdictNow, Point: now, P50: now, P90: now}
}

// sample is the start in one future.
type sample struct {
	at   structs.UnixNano
	open bool // it is later than at
	end  bool // open, because nothing happens any more
}

// answer makes one forecast of a start in all futures.
func (f *Futures) answer(samples []sample, about About) When {
	unknown, open := 0, 0
	for _, s := range samples {
		if s.end {
			unknown++
		}
		if s.open {
			open++
		}
	}
	if len(samples) == 0 || unknown == len(samples) {
		return When{Verdict: VerdictUnknown}
	}
	sortSamples(samples)
	latest := f.now
	waits := make([]time.Duration, len(samples))
	for i, s := range samples {
		latest = max(latest, s.at)
		if s.end { // for what is known, it never comes
			latest = f.horizon
		}
		waits[i] = latest.Sub(f.now)
	}
	p50, p90 := rank(waits, 0.5), rank(waits, 0.9)
	w := When{Verdict: VerdictLater}
	switch closed := len(samples) - open; {
	case closed <= rankOf(len(waits), 0.5):
		w.Beyond = BeyondP50
	case closed <= rankOf(len(waits), 0.9):
		w.Beyond = BeyondP90
	}
	point := p50
	if f.in.Calibration != nil && !f.awaitsWindow(samples) {
		point, p50, p90 = f.in.Calibration.Correct(about, waits, f.horizon.Sub(f.now))
	}
	p50 = min(max(p50, 0), HorizonMax)
	p90 = min(max(p90, p50), HorizonMax)
	point = min(max(point, 0), HorizonMax)
	w.Point, w.P50, w.P90 = f.now.Add(point), f.now.Add(p50), f.now.Add(p90)
	return w
}

func sortSamples(samples []sample) { slices.SortFunc(samples, sample.compare) }

func (s sample) compare(other sample) int {
	switch {
	case s.open != other.open:
		if s.open {
			return 1
		}
		return -1
	case s.at < other.at:
		return -1
	case s.at > other.at:
		return 1
	}
	return 0
}

// rank is the smallest value that a share p of the sorted values does not
// exceed.
func rank[T any](sorted []T, p float64) T { return sorted[rankOf(len(sorted), p)] }

func rankOf(count int, p float64) int {
	at := int(p * float64(count))
	if float64(at) == p*float64(count) {
		at--
	}
	return min(max(at, 0), count-1)
}

// straighten lets no job be told an earlier start than one before it in its
// queue that is equal to it in all that the scheduler looks at.
func (f *Futures) straighten(starts []Start) {
	latest := make(map[likeness]*Start, len(starts))
	for i := range starts {
		s := &starts[i]
		if s.Verdict != VerdictLater {
			continue
		}
		key := f.likenessOf(&f.members[i])
		if before := latest[key]; before != nil {
			s.Point, s.P50, s.P90 = max(s.Point, before.Point), max(s.P50, before.P50), max(s.P90, before.P90)
		}
		latest[key] = s
	}
}
