package watch

import (
	"context"
	"time"

	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/progress"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// How long devices have nothing to do before it is told, and how often it is
// looked; measurements that are older count as none.
const (
	idleAfter = 10 * time.Minute
	idleEvery = 30 * time.Second
	idleFresh = time.Minute
)

// idleWatch finds out that none of a rank's devices has anything to do, so that
// whoever waits for them hears of it.
type idleWatch struct {
	resting time.Duration // when it was first seen, by the machine's own clock; 0: they are at work
	told    bool          // the servers believe that they are idle
}

// idleUse is what a look at the devices has shown.
type idleUse int

const (
	useUnknown idleUse = iota // not all of them are measured
	useNone
	useSome
)

// useOf reports what the measured shares of devices mean. Pure.
func useOf(devices []string, figures map[string]devices.Measurement, now time.Time) idleUse {
	use := useNone
	for _, id := range devices {
		one, ok := figures[id]
		share, measured := one.Gauges[device.GaugeUtilization]
		switch {
		case !ok || !measured || now.Sub(one.At) > idleFresh:
			return useUnknown
		case share >= progress.UseIdle:
			use = useSome
		}
	}
	return use
}

// step takes a look, at a time by the machine's own clock and by the node's, and
// returns what is to be reported; nil: nothing is. Pure but for the watch itself.
func (w *idleWatch) step(use idleUse, at time.Duration, now structs.UnixNano) *structs.IdleNote {
	switch {
	case use == useUnknown:
		return nil
	case use == useSome:
		w.resting = 0
		if w.told {
			w.told = false
			return &structs.IdleNote{}
		}
		return nil
	case w.resting == 0:
		w.resting = at
	}
	if w.told || at-w.resting < idleAfter {
		return nil
	}
	w.told = true
	return &structs.IdleNote{Since: now - structs.UnixNano(at-w.resting)}
}

// watchIdle looks until ctx ends. A task that is paused is not idle.
func (w *watcher) watchIdle(ctx context.Context) {
	watch := idleWatch{}
	if a := w.task.Assigned.Load(); a != nil {
		watch.told = a.Alloc.IdleSince != 0 // by an earlier process of this agent
	}
	for retry.Sleep(ctx, idleEvery) {
		a := w.task.Assigned.Load()
		if a == nil {
			continue
		}
		use := useOf(a.Alloc.Devices, w.Devices.Measured(), w.Now())
		if a.Alloc.Control.Pauses() {
			watch.resting, use = 0, useUnknown
		}
		if note := watch.step(use, w.Boottime(), structs.At(w.Now())); note != nil {
			w.tell(w.Notes.Next(), structs.AllocNote{Idle: note})
		}
	}
}
