package runtime

import (
	"context"
	"fmt"
	"maps"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/rdma"
)

// Times of a plugin's loop.
const (
	// QuitAfter is how long the library may hang or fail before the process
	// gives up: a new one may have more luck. The devices are cordoned after
	// guard.Patience.
	QuitAfter = 2 * time.Minute
	// OpenAgain is how often a library that is not there is looked for.
	OpenAgain = 15 * time.Second
	// WaitEach bounds one wait for events, so that a reset need not wait long.
	WaitEach = time.Second
	// surveyEvery is how often places, network cards and what Survey looks at
	// are read anew.
	surveyEvery = time.Minute
)

// sight is what the loop asks a vendor. It may hang in the library's part.
type sight[F any] interface {
	Library[F]
	Survey(facts *F) (keep func(), complete bool)
	Buses(facts *F) []string
}

// loop opens the library, reads the cards and glances at them, now and then.
// What it sees goes to the record. Its fields below the channels belong to the
// goroutine of run.
type loop[F any] struct {
	v       sight[F]
	glancer Glancer[F] // nil: there is none
	o       Options
	calls   *guard.Guard
	known   *record[F]

	lookNow chan struct{} // holds one token
	looked  chan struct{} // closed after the first look
	ready   chan struct{} // closed when the first facts are there

	around   Surroundings // as the record has it
	surveyed time.Time    // zero: never, or not all was there
	failing  time.Time    // since when the library answers with errors; zero: it does not
}

func newLoop[F any](v sight[F], o Options, calls *guard.Guard, known *record[F]) *loop[F] {
	l := &loop[F]{
		v: v, o: o, calls: calls, known: known,
		lookNow: make(chan struct{}, 1), looked: make(chan struct{}), ready: make(chan struct{}),
	}
	if glancer, can := v.(Glancer[F]); can && o.Glance > 0 {
		l.glancer = glancer
	}
	return l
}

// lookSoon makes the loop look at once. It may be called from any goroutine.
func (l *loop[F]) lookSoon() {
	select {
	case l.lookNow <- struct{}{}:
	default:
	}
}

// run looks, glances and publishes until ctx ends.
func (l *loop[F]) run(ctx context.Context) {
	every := l.o.Poll
	if l.glancer != nil {
		every = l.o.Glance
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	open := false
	var triedAt, lookedAt time.Time
	for {
		now := time.Now()
		if !open && (triedAt.IsZero() || now.Sub(triedAt) >= OpenAgain) {
			triedAt, open = now, l.open(ctx)
		}
		switch {
		case !open:
		case l.glancer == nil || lookedAt.IsZero() || now.Sub(lookedAt) >= l.o.Poll:
			lookedAt = now
			l.look(ctx)
		default:
			l.glance(ctx)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-l.lookNow:
			lookedAt = time.Time{}
		}
	}
}

// open loads the library. A library that is not there is no fault.
func (l *loop[F]) open(ctx context.Context) bool {
	reason, err := guard.Run(ctx, l.calls, callLibrary, l.hanging("open"), func() (*structs.Reason, error) { return l.v.Open(), nil })
	if err != nil {
		return false // the plugin ends
	}
	l.known.opened(reason)
	if reason != nil {
		l.publish()
	}
	return reason == nil
}

// publish publishes what is known, and lets followers begin.
func (l *loop[F]) publish() {
	l.known.publish()
	select {
	case <-l.looked:
	default:
		close(l.looked)
	}
}

// hanging returns what guard tells while a call has not returned.
func (l *loop[F]) hanging(call string) func(string, time.Duration) {
	return func(_ string, since time.Duration) { l.hangs(call, since) }
}

// hangs is told how long a call of the library has taken so far.
func (l *loop[F]) hangs(call string, since time.Duration) {
	if since >= QuitAfter && l.o.Quit != nil {
		l.o.Quit(fmt.Sprintf("the %s library does not return from %q for %s", l.o.Vendor, call, since.Round(time.Second)))
	}
	if l.known.blinded(structs.NewReason("device.library_hangs", "plugin", l.o.Name, "call", call)) {
		l.o.Logger.Error("the vendor's library hangs", logkey.Plugin, l.o.Name, logkey.Method, call)
	}
	l.publish()
}

// fails publishes that the library answers with an error. One that goes on
// doing so may be of another version than the driver by now: a new process
// loads the one of the day.
func (l *loop[F]) fails(err error) {
	if l.failing.IsZero() {
		l.failing = time.Now()
	}
	since := time.Since(l.failing)
	l.known.blinded(structs.NewReason("device.library_fails", "plugin", l.o.Name, "cause", err))
	l.publish()
	if since >= QuitAfter && l.o.Quit != nil {
		l.o.Quit(fmt.Sprintf("the %s library fails for %s: %v", l.o.Vendor, since.Round(time.Second), err))
	}
}

// look reads the cards and has them judged.
func (l *loop[F]) look(ctx context.Context) {
	l.survey()
	heals := l.known.heals()
	facts, err := guard.Run(ctx, l.calls, callLibrary, l.hanging("read"), l.v.Read)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		l.fails(err)
		return
	}
	l.place(&facts)
	l.failing = time.Time{}
	first, overtaken := l.known.looked(&facts, heals)
	if overtaken {
		l.lookSoon()
		return
	}
	if first {
		close(l.ready) // this happens once: facts never go again
	}
	l.publish()
}

// glance asks for health alone, and publishes at once when it differs.
func (l *loop[F]) glance(ctx context.Context) {
	before, heals := l.known.newest(), l.known.heals()
	if before == nil {
		return
	}
	newer, err := guard.Run(ctx, l.calls, callLibrary, l.hanging("glance"), func() (*F, error) {
		facts, changed, err := l.glancer.Glance(before)
		if !changed {
			facts = nil
		}
		return facts, err
	})
	if err != nil || ctx.Err() != nil {
		return // the next look reports why
	}
	if l.known.glanced(newer, heals) {
		l.known.publish()
	}
}

// survey reads network cards, and what the vendor looks at, now and then.
func (l *loop[F]) survey() {
	if !l.surveyed.IsZero() && time.Since(l.surveyed) < surveyEvery {
		return
	}
	net := rdma.Read(l.o.Root)
	keep, complete := l.v.Survey(l.known.newest())
	l.around = Surroundings{Net: net, Places: l.around.Places}
	l.settle(keep)
	l.surveyed = time.Time{}
	if complete {
		l.surveyed = time.Now()
	}
}

// place finds where cards sit. A card never moves while the machine runs.
func (l *loop[F]) place(facts *F) {
	places := maps.Clone(l.around.Places)
	if places == nil {
		places = make(map[string]pcie.Place)
	}
	for _, bus := range l.v.Buses(facts) {
		if _, known := places[bus]; known || bus == "" {
			continue
		}
		if place, err := pcie.Read(l.o.Root, bus); err == nil {
			places[bus] = place
		}
	}
	l.around = Surroundings{Net: l.around.Net, Places: places}
	l.settle(func() {})
}

// settle hands the record a copy of the surroundings: what it has is read
// beside this goroutine.
func (l *loop[F]) settle(keep func()) {
	around := l.around
	l.known.settle(&around, keep)
}
