// Package devicetest checks that a device plugin keeps the contract of
// package device. The same tests run against a plugin in this process and one
// behind a program of its own.
//
// Flow: a plugin's own tests call Run with a way to open it, with at least
// two healthy devices that nobody uses. Limits: it needs no hardware by
// itself; only for tests.
package devicetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// limit bounds what a test waits for; far above what any step takes.
const limit = 20 * time.Second

// soon is how long a call may take to notice that its context was cancelled.
const soon = 5 * time.Second

// Open returns a plugin to test; it registers its own cleanup.
type Open func(t *testing.T) device.Plugin

// Run checks every part of the contract.
func Run(t *testing.T, open Open) {
	t.Run("Fingerprint", func(t *testing.T) { runFingerprint(t, open(t)) })
	t.Run("Reserve", func(t *testing.T) { runReserve(t, open(t)) })
	t.Run("Stats", func(t *testing.T) { runStats(t, open(t)) })
	t.Run("Reap", func(t *testing.T) { runReap(t, open(t)) })
	t.Run("Heal", func(t *testing.T) { runHeal(t, open(t)) })
	t.Run("Concurrency", func(t *testing.T) { runConcurrency(t, open(t)) })
}

// Follow starts a Fingerprint that ends with the test.
func Follow(t testing.TB, p device.Plugin) <-chan device.Snapshot {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	snapshots, err := p.Fingerprint(ctx)
	if err != nil {
		cancel()
		t.Fatalf("fingerprint: %v", err)
	}
	t.Cleanup(func() {
		cancel()
		for range snapshots { //revive:disable-line until it is closed
		}
	})
	return snapshots
}

// Await receives until a snapshot satisfies a condition, and returns that one
// with all events seen on the way.
func Await(t testing.TB, snapshots <-chan device.Snapshot, what string, holds func(device.Snapshot) bool) device.Snapshot {
	t.Helper()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var events []device.Event
	var last device.Snapshot
	for {
		select {
		case s, open := <-snapshots:
			if !open {
				t.Fatalf("%s: the channel was closed", what)
			}
			events = append(events, s.Events...)
			s.Events = events
			if last = s; holds(s) {
				return s
			}
		case <-timer.C:
			t.Fatalf("%s: not within %s; last: %+v", what, limit, last)
		}
	}
}

// Devices waits for at least two healthy devices.
func Devices(t testing.TB, p device.Plugin) []structs.Device {
	t.Helper()
	return Await(t, Follow(t, p), "two healthy devices", func(s device.Snapshot) bool {
		healthy := 0
		for _, d := range s.Devices {
			if d.Healthy {
				healthy++
			}
		}
		return healthy >= 2
	}).Devices
}

func ids(devices []structs.Device) []string {
	var all []string
	for _, d := range devices {
		all = append(all, d.ID)
	}
	return all
}

func runFingerprint(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	snapshot := device.Snapshot{Devices: device.Clone(devices)}
	if dropped := snapshot.Bound(); len(dropped) > 0 {
		t.Errorf("a host would drop: %q", dropped)
	}
	sorted := device.Clone(devices)
	device.Sort(sorted)
	if !slices.Equal(ids(sorted), ids(devices)) {
		t.Errorf("devices are not in order: %v", ids(devices))
	}
	for _, d := range devices {
		if d.Model == "" || d.Kind == "" {
			t.Errorf("device %s has no model or kind: %+v", d.ID, d)
		}
		if d.Healthy != (d.Health == nil) && !device.ActionOf(&d).TakesWork() {
			t.Errorf("device %s: healthy %v, reason %v", d.ID, d.Healthy, d.Health)
		}
	}
	// The channel is closed when the caller goes, also when it does not receive.
	ctx, cancel := context.WithCancel(context.Background())
	again, err := p.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	for open := true; open; {
		select {
		case _, open = <-again:
		case <-timer.C:
			t.Fatal("the channel is not closed after its context was cancelled")
		}
	}
}

func runReserve(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	ctx := context.Background()
	first, err := p.Reserve(ctx, []string{devices[0].ID})
	if err != nil {
		t.Fatalf("reserve: %v", err)
	}
	if err := first.Bound(); err != nil {
		t.Errorf("a host would refuse the reservation: %v", err)
	}
	again, err := p.Reserve(ctx, []string{devices[0].ID})
	if err != nil || !sameReservation(first, again) {
		t.Errorf("a second reservation differs: %+v and %+v, %v", first, again, err)
	}
	second, err := p.Reserve(ctx, []string{devices[1].ID})
	if err != nil || sameReservation(first, second) {
		t.Errorf("another device gives the same reservation: %+v, %v", second, err)
	}
	both, err := p.Reserve(ctx, []string{devices[0].ID, devices[1].ID})
	if err != nil || sameReservation(both, first) {
		t.Errorf("two devices give the reservation of one: %+v, %v", both, err)
	}
	for _, id := range []string{"no-such-device", "../../etc/passwd", ""} {
		if _, err := p.Reserve(ctx, []string{devices[0].ID, id}); !errors.Is(err, device.ErrUnknownDevice) {
			t.Errorf("reserve %q: got %v, want ErrUnknownDevice", id, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	started := time.Now()
	_, _ = p.Reserve(cancelled, []string{devices[0].ID}) // an answer or an error: both are right, waiting is not
	if took := time.Since(started); took > soon {
		t.Errorf("a cancelled call took %s", took)
	}
}

func sameReservation(a, b device.Reservation) bool {
	if len(a.Env) != len(b.Env) || !slices.Equal(a.Nodes, b.Nodes) || !slices.Equal(a.Mounts, b.Mounts) || !slices.Equal(a.CDI, b.CDI) {
		return false
	}
	for name, value := range a.Env {
		if b.Env[name] != value {
			return false
		}
	}
	return true
}

func runStats(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	measured, err := p.Stats(ctx, 150*time.Millisecond)
	if err != nil {
		t.Fatalf("stats: %v", err)
	}
	var before time.Time
	for range 3 {
		stats, open := <-measured
		if !open {
			t.Fatal("the stream ended")
		}
		if !stats.At.After(before) {
			t.Errorf("time does not go on: %s after %s", stats.At, before)
		}
		before = stats.At
		for _, d := range stats.Devices {
			parent := slices.ContainsFunc(devices, func(part structs.Device) bool { return part.Attrs[device.AttrParent] == d.ID })
			if !parent && !slices.Contains(ids(devices), d.ID) {
				t.Errorf("figures of unknown device %q", d.ID)
			}
			if len(d.Gauges) == 0 {
				t.Errorf("device %s has no figures", d.ID)
			}
		}
		if len(stats.Devices) == 0 {
			t.Error("no device was measured")
		}
	}
	cancel()
	timer := time.NewTimer(soon)
	defer timer.Stop()
	for open := true; open; {
		select {
		case _, open = <-measured:
		case <-timer.C:
			t.Fatal("the stream is not closed after its context was cancelled")
		}
	}
}

func runReap(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	request := device.Reaping{IDs: ids(devices)[:2], Mine: []device.Mark{{Cgroup: "/no/such/cgroup"}}, Limit: time.Second}
	report, err := p.Reap(context.Background(), request)
	if err != nil {
		t.Fatalf("reap: %v", err)
	}
	if len(report.Devices) != 2 || report.Devices[0].ID != devices[0].ID || report.Devices[1].ID != devices[1].ID {
		t.Errorf("report is not in the order of the request: %+v", report)
	}
	if !report.Clean() {
		t.Errorf("unused devices are not clean: %+v", report)
	}
	if _, err := p.Reap(context.Background(), device.Reaping{IDs: []string{"no-such-device"}}); !errors.Is(err, device.ErrUnknownDevice) {
		t.Errorf("reap of an unknown device: got %v, want ErrUnknownDevice", err)
	}
}

func runHeal(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	healer, ok := p.(device.Healer)
	if !ok {
		return // an optional interface
	}
	err := healer.Clear(context.Background(), []string{devices[0].ID})
	if errors.Is(err, device.ErrUnsupported) {
		return // a client of a plugin in another process finds out only now
	}
	if err != nil {
		t.Errorf("clear a healthy device: %v", err)
	}
	if err := healer.Clear(context.Background(), []string{"no-such-device"}); !errors.Is(err, device.ErrUnknownDevice) {
		t.Errorf("clear of an unknown device: got %v, want ErrUnknownDevice", err)
	}
	if err := healer.Heal(context.Background(), []string{"no-such-device"}); !errors.Is(err, device.ErrUnknownDevice) {
		t.Errorf("heal of an unknown device: got %v, want ErrUnknownDevice", err)
	}
}

func runConcurrency(t *testing.T, p device.Plugin) {
	devices := Devices(t, p)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			id := devices[i%2].ID
			for range 5 {
				if _, err := p.Reserve(ctx, []string{id}); err != nil {
					t.Errorf("reserve: %v", err)
				}
				if _, err := p.Reap(ctx, device.Reaping{IDs: []string{id}, Limit: time.Second}); err != nil {
					t.Errorf("reap: %v", err)
				}
			}
		})
	}
	all.Wait()
}
