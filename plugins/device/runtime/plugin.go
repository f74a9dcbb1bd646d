package runtime

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
)

// Kinds of calls of the library; of each one at a time is under way.
const (
	callLibrary = "library" // what the loop asks
	callSample  = "sample"
	// CallWait is the kind of a call that waits for events.
	CallWait = "wait"
)

// firstPatience bounds the wait of a new follower for the first look.
const firstPatience = 2 * time.Second

// Plugin is a device plugin for one vendor's cards. It implements
// device.Plugin and device.Healer by its parts: the loop looks, the record
// knows and publishes, the meter measures, the healer ends what tasks left and
// resets cards, and the store saves health.
type Plugin[F any] struct {
	*healer[F] // Reap, Heal, Clear
	*meter[F]  // Stats

	calls *guard.Guard
	known *record[F]
	loop  *loop[F]

	life   context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup
}

// Start makes a plugin and begins to look; Close ends it.
func Start[F any](v Vendor[F], o Options) *Plugin[F] {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Proc == nil {
		o.Proc = leftover.Proc{Root: filepath.Join(o.Root, "proc")}
	}
	calls := guard.New()
	known := newRecord(v, o.Name, o.Proc)
	meter := &meter[F]{v: v, calls: calls, known: known}
	loop := newLoop(v, o, calls, known)
	p := &Plugin[F]{
		healer: &healer[F]{v: v, o: o, calls: calls, known: known, meter: meter, lookSoon: loop.lookSoon},
		meter:  meter, calls: calls, known: known, loop: loop,
	}
	p.life, p.cancel = context.WithCancel(context.Background())
	if o.StateDir != "" {
		saved := newStore(o.StateDir, o.Logger, known.unsaved)
		if err := load(saved.path, v.Restore); err != nil {
			o.Logger.Warn("stored health of devices is lost", logkey.Error, err)
		}
		known.saveSoon = saved.soon
		p.ending.Go(func() { saved.run(p.life) })
	}
	v.Resume(o.Boot)
	p.ending.Go(func() { loop.run(p.life) })
	return p
}

// Close ends the plugin's goroutines, except one that hangs in the library.
func (p *Plugin[F]) Close() {
	p.cancel()
	p.ending.Wait()
	p.calls.Wait(2 * WaitEach)
}

// Beside runs a task of the vendor's own as long as the plugin lives; its
// context ends with the plugin, and Close waits for it.
func (p *Plugin[F]) Beside(task func(ctx context.Context)) {
	p.ending.Go(func() { task(p.life) })
}

// Ready is closed when the first facts are there.
func (p *Plugin[F]) Ready() <-chan struct{} { return p.loop.ready }

// Facts returns the newest facts, which nobody changes; nil: there are none yet.
func (p *Plugin[F]) Facts() *F { return p.known.newest() }

// Update changes what the vendor keeps, with the lock held, and publishes when
// the change says so.
func (p *Plugin[F]) Update(change func() (publish bool)) {
	if p.known.update(change) {
		p.known.publish()
	}
}

// Tell takes events that the driver has reported, publishes at once, and looks
// what else has changed. take is called with the lock held.
func (p *Plugin[F]) Tell(take func(now time.Time) []device.Event) []device.Event {
	events := p.known.tell(take)
	p.known.publish()
	p.LookSoon()
	return events
}

// LookSoon makes the loop look at once.
func (p *Plugin[F]) LookSoon() { p.loop.lookSoon() }

// Call makes one call of the library that only this plugin's end cuts short.
func Call[F, T any](p *Plugin[F], kind string, call func() (T, error)) (T, error) {
	return guard.Run(p.life, p.calls, kind, nil, call)
}

// Fingerprint reports the cards of this node.
func (p *Plugin[F]) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	timer := time.NewTimer(firstPatience)
	defer timer.Stop()
	select {
	case <-p.loop.looked:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.known.feed.Follow(ctx), nil
}

// Reserve says what a task needs to see devices.
func (p *Plugin[F]) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	return p.known.reserve(ids)
}
