package device

import (
	"context"
	"maps"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
)

// Feed is what a plugin needs to implement Fingerprint: it keeps the newest
// snapshot and hands it to whoever follows. A follower that is slow gets the
// newest state and no event twice or never, up to EventsMax of them. The zero
// value is not ready: see NewFeed. Its methods may be called from any
// goroutine and do not block.
type Feed struct {
	mu struct {
		sync.Mutex
		newest    Snapshot // without events
		followers map[*follower]struct{}
	}
}

// follower is one receiver of a feed.
type follower struct {
	wake   chan struct{} // holds one token when there is something to send
	events []Event       // not sent yet
	stale  bool          // the newest snapshot was not sent yet
}

// NewFeed makes a feed whose followers first get the given snapshot.
func NewFeed(first Snapshot) *Feed {
	f := &Feed{}
	first.Events = nil
	f.mu.newest = first
	f.mu.followers = make(map[*follower]struct{})
	return f
}

// Publish makes s the newest snapshot. The feed owns it from now on: the
// caller changes nothing in it any more. Nobody is woken by a snapshot that
// says nothing new.
func (f *Feed) Publish(s Snapshot) {
	events := s.Events
	s.Events = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := !Same(&f.mu.newest, &s)
	f.mu.newest = s
	if !changed && len(events) == 0 {
		return
	}
	for each := range f.mu.followers {
		each.stale = each.stale || changed
		each.events = append(each.events, events...)
		if over := len(each.events) - EventsMax; over > 0 {
			each.events = slices.Delete(each.events, 0, over)
		}
		select {
		case each.wake <- struct{}{}:
		default:
		}
	}
}

// Newest returns the newest snapshot, without events. The caller must not change
// what it refers to.
func (f *Feed) Newest() Snapshot {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.newest
}

// Follow sends the newest snapshot at once and then every change, until ctx is
// cancelled; then the channel is closed.
func (f *Feed) Follow(ctx context.Context) <-chan Snapshot {
	to := make(chan Snapshot)
	me := &follower{wake: make(chan struct{}, 1), stale: true}
	me.wake <- struct{}{}
	f.mu.Lock()
	f.mu.followers[me] = struct{}{}
	f.mu.Unlock()
	go func() { // ends with ctx
		defer close(to)
		defer f.leave(me)
		for {
			select {
			case <-me.wake:
			case <-ctx.Done():
				return
			}
			snapshot, any := f.take(me)
			if !any {
				continue
			}
			select {
			case to <- snapshot:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to
}

// take returns what a follower has not had yet.
func (f *Feed) take(me *follower) (Snapshot, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !me.stale && len(me.events) == 0 {
		return Snapshot{}, false
	}
	snapshot := f.mu.newest
	snapshot.Devices = Clone(snapshot.Devices)
	snapshot.Events, me.events, me.stale = me.events, nil, false
	return snapshot, true
}

func (f *Feed) leave(me *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.mu.followers, me)
}

// Same reports whether two snapshots say the same, their time and events aside.
func Same(a, b *Snapshot) bool {
	return sameReason(a.Absent, b.Absent) && sameReason(a.Blind, b.Blind) && maps.Equal(a.Attributes, b.Attributes) &&
		slices.EqualFunc(a.Devices, b.Devices, func(x, y structs.Device) bool { return SameDevice(&x, &y) })
}

// SameDevice reports whether two reports of a device are equal.
func SameDevice(x, y *structs.Device) bool {
	return x.ID == y.ID && x.Index == y.Index && x.Kind == y.Kind && x.Model == y.Model && x.Memory == y.Memory &&
		x.PCIBus == y.PCIBus && x.NUMANode == y.NUMANode && x.LinkGroup == y.LinkGroup && x.Healthy == y.Healthy &&
		x.Driver == y.Driver && sameReason(x.Health, y.Health) && maps.Equal(x.Attrs, y.Attrs)
}

func sameReason(a, b *structs.Reason) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.ID == b.ID && maps.Equal(a.Params, b.Params)
}
