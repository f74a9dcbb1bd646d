package runtime

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
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
	// firstPatience bounds the wait of a new follower for the first look.
	firstPatience = 2 * time.Second
)

// Kinds of calls of the library; of each one at a time is under way.
const (
	callLibrary = "library" // what the loop asks
	callSample  = "sample"
	// CallWait is the kind of a call that waits for events.
	CallWait = "wait"
)

// Plugin is a device plugin for one vendor's cards. It implements
// device.Plugin and device.Healer.
type Plugin[F any] struct {
	v     Vendor[F]
	o     Options
	guard *guard.Guard
	feed  *device.Feed

	life   context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup

	lookNow  chan struct{} // holds one token
	storeNow chan struct{} // holds one token
	looked   chan struct{} // closed after the first look
	ready    chan struct{} // closed when the first facts are there
	stored   string        // the mark of what was saved last; storeAll's alone

	mu struct {
		sync.Mutex
		facts    *F // newest, completed by Judge; nil: none yet
		around   *Surroundings
		surveyed time.Time // zero: never, or not all was there
		absent   *structs.Reason
		blind    *structs.Reason
		failing  time.Time // since when the library answers with errors; zero: it does not
		events   []device.Event
		// heals counts how often faults were forgotten, healed has that count by
		// card: what was read of a card before says nothing after it, or a fault
		// that is over would come back. read is the count at which facts were read.
		heals  uint64
		healed map[string]uint64
		read   uint64
	}
}

// Start makes a plugin and begins to look; Close ends it.
func Start[F any](v Vendor[F], o Options) *Plugin[F] {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Proc == nil {
		o.Proc = leftover.Proc{Root: filepath.Join(o.Root, "proc")}
	}
	p := &Plugin[F]{
		v: v, o: o, guard: guard.New(),
		feed:    device.NewFeed(device.Snapshot{At: time.Now(), Blind: structs.NewReason("device.starting", "plugin", o.Name)}),
		lookNow: make(chan struct{}, 1), storeNow: make(chan struct{}, 1), looked: make(chan struct{}), ready: make(chan struct{}),
	}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.mu.healed, p.mu.around = make(map[string]uint64), &Surroundings{}
	if o.StateDir != "" {
		if err := load(p.storePath(), v.Restore); err != nil {
			o.Logger.Warn("stored health of devices is lost", logkey.Error, err)
		}
	}
	v.Resume(o.Boot)
	p.ending.Go(p.run)
	p.ending.Go(p.storeAll)
	return p
}

func (p *Plugin[F]) storePath() string { return filepath.Join(p.o.StateDir, "health.json") }

// Close ends the plugin's goroutines, except one that hangs in the library.
func (p *Plugin[F]) Close() {
	p.cancel()
	p.ending.Wait()
	p.guard.Wait(2 * WaitEach)
}

// Beside runs a task of the vendor's own as long as the plugin lives; its
// context ends with the plugin, and Close waits for it.
func (p *Plugin[F]) Beside(task func(ctx context.Context)) {
	p.ending.Go(func() { task(p.life) })
}

// Ready is closed when the first facts are there.
func (p *Plugin[F]) Ready() <-chan struct{} { return p.ready }

// Facts returns the newest facts, which nobody changes; nil: there are none yet.
func (p *Plugin[F]) Facts() *F {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.facts
}

// Update changes what the vendor keeps, with the lock held, and publishes when
// the change says so.
func (p *Plugin[F]) Update(change func() (publish bool)) {
	p.mu.Lock()
	publish := change()
	p.mu.Unlock()
	if publish {
		p.publish()
	}
}

// Tell takes events that the driver has reported, publishes at once, and looks
// what else has changed. take is called with the lock held.
func (p *Plugin[F]) Tell(take func(now time.Time) []device.Event) []device.Event {
	p.mu.Lock()
	events := take(time.Now())
	p.mu.events = append(p.mu.events, events...)
	p.mu.Unlock()
	p.publish()
	p.LookSoon()
	return events
}

// LookSoon makes the loop look at once.
func (p *Plugin[F]) LookSoon() {
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
}

// Call makes one call of the library that only this plugin's end cuts short.
func Call[F, T any](p *Plugin[F], kind string, call func() (T, error)) (T, error) {
	return guard.Run(p.life, p.guard, kind, nil, call)
}

// run is the plugin's one loop: it looks, glances and publishes.
func (p *Plugin[F]) run() {
	glancer, every := p.glancer()
	tick := time.NewTicker(every)
	defer tick.Stop()
	open := false
	var triedAt, lookedAt time.Time
	for {
		now := time.Now()
		if !open && (triedAt.IsZero() || now.Sub(triedAt) >= OpenAgain) {
			triedAt, open = now, p.open()
		}
		switch {
		case !open:
		case glancer == nil || lookedAt.IsZero() || now.Sub(lookedAt) >= p.o.Poll:
			lookedAt = now
			p.look()
		default:
			p.glance(glancer)
		}
		select {
		case <-p.life.Done():
			return
		case <-tick.C:
		case <-p.lookNow:
			lookedAt = time.Time{}
		}
	}
}

// glancer returns the vendor as one that can glance, or nil, and how often the
// loop turns.
func (p *Plugin[F]) glancer() (Glancer[F], time.Duration) {
	if glancer, can := p.v.(Glancer[F]); can && p.o.Glance > 0 {
		return glancer, p.o.Glance
	}
	return nil, p.o.Poll
}

// hanging returns what guard tells while a call has not returned.
func (p *Plugin[F]) hanging(call string) func(string, time.Duration) {
	return func(_ string, since time.Duration) { p.hangs(call, since) }
}

// open loads the library. A library that is not there is no fault.
func (p *Plugin[F]) open() bool {
	reason, err := guard.Run(p.life, p.guard, callLibrary, p.hanging("open"), func() (*structs.Reason, error) { return p.v.Open(), nil })
	if err != nil {
		return false // the plugin ends
	}
	p.mu.Lock()
	p.mu.absent, p.mu.blind = reason, nil
	p.mu.Unlock()
	if reason != nil {
		p.publish()
		p.first()
	}
	return reason == nil
}

// first lets followers begin.
func (p *Plugin[F]) first() {
	select {
	case <-p.looked:
	default:
		close(p.looked)
	}
}

// hangs is told how long a call of the library has taken so far.
func (p *Plugin[F]) hangs(call string, since time.Duration) {
	if since >= QuitAfter && p.o.Quit != nil {
		p.o.Quit(fmt.Sprintf("the %s library does not return from %q for %s", p.o.Vendor, call, since.Round(time.Second)))
	}
	p.mu.Lock()
	told := p.mu.blind != nil
	p.mu.blind = structs.NewReason("device.library_hangs", "plugin", p.o.Name, "call", call)
	p.mu.Unlock()
	if !told {
		p.o.Logger.Error("the vendor's library hangs", logkey.Plugin, p.o.Name, logkey.Method, call)
	}
	p.publish()
	p.first()
}

// fails publishes that the library answers with an error. One that goes on
// doing so may be of another version than the driver by now: a new process
// loads the one of the day.
func (p *Plugin[F]) fails(err error) {
	p.mu.Lock()
	if p.mu.failing.IsZero() {
		p.mu.failing = time.Now()
	}
	since := time.Since(p.mu.failing)
	p.mu.blind = structs.NewReason("device.library_fails", "plugin", p.o.Name, "cause", err)
	p.mu.Unlock()
	p.publish()
	p.first()
	if since >= QuitAfter && p.o.Quit != nil {
		p.o.Quit(fmt.Sprintf("the %s library fails for %s: %v", p.o.Vendor, since.Round(time.Second), err))
	}
}

// look reads the cards and judges them.
func (p *Plugin[F]) look() {
	p.survey()
	heals := p.heals()
	facts, err := guard.Run(p.life, p.guard, callLibrary, p.hanging("read"), p.v.Read)
	if p.life.Err() != nil {
		return
	}
	if err != nil {
		p.fails(err)
		return
	}
	p.place(&facts)
	p.mu.Lock()
	p.mu.blind, p.mu.failing = nil, time.Time{}
	if p.mu.heals != heals {
		p.mu.Unlock()
		p.LookSoon()
		return
	}
	first := p.mu.facts == nil
	p.mu.read = heals
	p.judgeLocked(&facts, p.stillUnkillableLocked())
	p.mu.Unlock()
	if first {
		close(p.ready) // this happens once: facts never go again
	}
	p.publish()
	p.first()
}

// judgeLocked makes facts the newest.
func (p *Plugin[F]) judgeLocked(facts *F, unkillable map[string][]int) {
	full, events := p.v.Judge(facts, unkillable, time.Now())
	p.mu.facts = full
	p.mu.events = append(p.mu.events, events...)
}

// glance asks for health alone, and publishes at once when it differs.
func (p *Plugin[F]) glance(glancer Glancer[F]) {
	type glanced struct {
		facts   *F
		changed bool
	}
	before, heals := p.Facts(), p.heals()
	if before == nil {
		return
	}
	seen, err := guard.Run(p.life, p.guard, callLibrary, p.hanging("glance"), func() (glanced, error) {
		facts, changed, err := glancer.Glance(before)
		return glanced{facts, changed}, err
	})
	if err != nil || p.life.Err() != nil {
		return // the next look tells why
	}
	p.mu.Lock()
	if p.mu.heals != heals {
		p.mu.Unlock()
		return
	}
	hung := p.mu.blind != nil
	p.mu.blind = nil
	if seen.changed {
		p.judgeLocked(seen.facts, p.stillUnkillableLocked())
	}
	p.mu.Unlock()
	if seen.changed || hung {
		p.publish()
	}
}

// heals is how often faults were forgotten so far.
func (p *Plugin[F]) heals() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.heals
}

// forgetLocked forgets the faults of a card, see Judge.Forget.
func (p *Plugin[F]) forgetLocked(id string, all bool) {
	p.mu.heals++
	p.mu.healed[id] = p.mu.heals
	p.mu.events = append(p.mu.events, p.v.Forget(id, all, time.Now())...)
}

// stillUnkillableLocked looks which unkillable processes are still there.
func (p *Plugin[F]) stillUnkillableLocked() map[string][]int {
	unkillable := p.v.Unkillable()
	for id, pids := range unkillable {
		unkillable[id] = slices.DeleteFunc(slices.Clone(pids), func(pid int) bool { return !p.o.Proc.Look(pid).Exists })
	}
	return unkillable
}

// survey reads network cards, and what the vendor looks at, now and then.
func (p *Plugin[F]) survey() {
	p.mu.Lock()
	fresh := !p.mu.surveyed.IsZero() && time.Since(p.mu.surveyed) < surveyEvery
	facts := p.mu.facts
	p.mu.Unlock()
	if fresh {
		return
	}
	net := rdma.Read(p.o.Root)
	keep, complete := p.v.Survey(facts)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.around = &Surroundings{Net: net, Places: p.mu.around.Places}
	keep()
	p.mu.surveyed = time.Time{}
	if complete {
		p.mu.surveyed = time.Now()
	}
}

// place finds where cards sit. A card never moves while the machine runs.
func (p *Plugin[F]) place(facts *F) {
	p.mu.Lock()
	around := p.mu.around
	p.mu.Unlock()
	places := maps.Clone(around.Places)
	if places == nil {
		places = make(map[string]pcie.Place)
	}
	for _, bus := range p.v.Buses(facts) {
		if _, known := places[bus]; known || bus == "" {
			continue
		}
		if place, err := pcie.Read(p.o.Root, bus); err == nil {
			places[bus] = place
		}
	}
	p.mu.Lock()
	p.mu.around = &Surroundings{Net: around.Net, Places: places}
	p.mu.Unlock()
}

// publish makes a snapshot of all that is known, and has health stored that
// has changed.
func (p *Plugin[F]) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	snapshot := device.Snapshot{}
	if p.mu.facts != nil {
		snapshot = p.v.Show(p.mu.facts, p.mu.around)
	}
	snapshot.At, snapshot.Blind, snapshot.Events = time.Now(), p.mu.blind, p.mu.events
	if p.mu.absent != nil {
		snapshot.Absent = p.mu.absent
	}
	p.mu.events = nil
	if p.mu.blind != nil {
		snapshot.Devices = device.Cordoned(snapshot.Devices, p.mu.blind)
	}
	p.feed.Publish(snapshot)
	select {
	case p.storeNow <- struct{}{}:
	default:
	}
}
