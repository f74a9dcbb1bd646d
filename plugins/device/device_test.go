package device_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
)

func TestFakeKeepsTheContract(t *testing.T) {
	devicetest.Run(t, func(*testing.T) device.Plugin { return device.NewFake(device.FakeDevices("test/card", 4)...) })
}

func TestActions(t *testing.T) {
	order := []device.Action{device.ActNone, device.ActNotice, device.ActTask, device.ActCordon, "from-the-future", device.ActReset, device.ActReboot, device.ActService}
	for i, a := range order {
		for k, b := range order {
			if got := a.Worse(b); got != order[max(i, k)] {
				t.Errorf("%q worse %q is %q", a, b, got)
			}
		}
		if a.TakesWork() != (i < 3) || a.Drains() != (i > 3) || a.Known() != (i != 4) {
			t.Errorf("%q: takes work %v, drains %v, known %v", a, a.TakesWork(), a.Drains(), a.Known())
		}
	}
}

func TestJudgeAndActionOf(t *testing.T) {
	d := structs.Device{ID: "a", Healthy: true}
	device.Judge(&d, device.ActReset, structs.NewReason("x"))
	if d.Healthy || d.Health == nil || device.ActionOf(&d) != device.ActReset {
		t.Errorf("judged: %+v", d)
	}
	cordoned := device.Cordoned([]structs.Device{d, {ID: "b", Healthy: true}}, structs.NewReason("y"))
	if cordoned[0].Health.ID != "x" || cordoned[1].Health.ID != "y" || cordoned[1].Healthy {
		t.Errorf("cordoned: %+v", cordoned)
	}
	device.Judge(&d, device.ActNone, structs.NewReason("x"))
	if !d.Healthy || d.Health != nil || device.ActionOf(&d) != device.ActNone {
		t.Errorf("healed: %+v", d)
	}
	if got := device.ActionOf(&structs.Device{}); got != device.ActCordon {
		t.Errorf("an unhealthy device that asks for nothing has action %q", got)
	}
}

func TestValidID(t *testing.T) {
	for id, want := range map[string]bool{
		"GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77": true, "MIG-GPU-5d5b/7/0": true, "0": true, "GPU-a::2": true,
		"": false, "../x": false, "a/../b": false, "/dev/sda": false, "-rf": false, "a b": false, "a\x00": false, "a\n": false, "é": false,
		strings.Repeat("a", 129): false,
	} {
		if got := device.ValidID(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

// TestFollowersMissNothing lets a slow follower compare what it gets with all
// that was published.
func TestFollowersMissNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			feed := device.NewFeed(device.Snapshot{})
			ctx, cancel := context.WithCancel(context.Background())
			snapshots := feed.Follow(ctx)
			var sent, got int
			healthy, seen := false, false
			receive := func() {
				synctest.Wait()
				for {
					select {
					case s := <-snapshots:
						for _, e := range s.Events {
							if e.Code != fmt.Sprint(got) {
								t.Errorf("event %s, want %d", e.Code, got)
							}
							got++
						}
						if len(s.Devices) > 0 {
							seen = s.Devices[0].Healthy
						}
						synctest.Wait()
						continue
					default:
					}
					return
				}
			}
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				switch rapid.IntRange(0, 2).Draw(rt, "step") {
				case 0:
					healthy = !healthy
					feed.Publish(device.Snapshot{Devices: []structs.Device{{ID: "a", Healthy: healthy}}})
				case 1:
					events := make([]device.Event, rapid.IntRange(0, 3).Draw(rt, "events"))
					for i := range events {
						events[i].Code = fmt.Sprint(sent)
						sent++
					}
					feed.Publish(device.Snapshot{Devices: []structs.Device{{ID: "a", Healthy: healthy}}, Events: events})
				case 2:
					receive()
				}
			}
			receive()
			if got != sent || seen != healthy {
				t.Errorf("%d of %d events, device healthy %v of %v", got, sent, seen, healthy)
			}
			cancel()
			for range snapshots {
			}
		})
	})
}

func TestFeedBoundsEvents(t *testing.T) {
	feed := device.NewFeed(device.Snapshot{})
	snapshots := devicetest.Follow(t, follower{feed})
	<-snapshots
	events := make([]device.Event, device.EventsMax+10)
	for i := range events {
		events[i].Code = fmt.Sprint(i)
	}
	feed.Publish(device.Snapshot{Events: events})
	if got := (<-snapshots).Events; len(got) != device.EventsMax || got[0].Code != "10" {
		t.Errorf("%d events from %s on", len(got), got[0].Code)
	}
}

// follower is a plugin that only reports.
type follower struct{ feed *device.Feed }

func (f follower) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	return f.feed.Follow(ctx), nil
}

func (follower) Reserve(context.Context, []string) (device.Reservation, error) {
	return device.Reservation{}, device.ErrUnsupported
}

func (follower) Stats(context.Context, time.Duration) (<-chan device.Stats, error) {
	return nil, device.ErrUnsupported
}

func (follower) Reap(context.Context, device.Reaping) (device.ReapReport, error) {
	return device.ReapReport{}, device.ErrUnsupported
}

// FuzzBound: whatever a plugin says, what passes is within the limits.
func FuzzBound(f *testing.F) {
	f.Add("GPU-1", "nvidia/gpu", "H100", "reason", 1)
	f.Add("../x", "a/b/c", "\x1b[31m\xff", strings.Repeat("x", 2000), -1)
	f.Fuzz(func(t *testing.T, id, kind, model, text string, index int) {
		s := device.Snapshot{
			Devices: []structs.Device{{ID: id, Kind: kind, Model: model, Index: index, Attrs: map[string]string{text: text}, Health: structs.NewReason(text, text, text)}, {ID: id, Kind: kind}},
			Blind:   structs.NewReason(text), Events: []device.Event{{DeviceID: id, Code: text}},
		}
		s.Bound()
		if len(s.Devices) > 1 {
			t.Error("one id passes twice")
		}
		for _, d := range s.Devices {
			if !device.ValidID(d.ID) || d.Index < 0 {
				t.Errorf("device passes: %+v", d)
			}
			for key, value := range d.Attrs {
				if len(key) > device.TextMax || len(value) > device.TextMax || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' }) {
					t.Errorf("attribute passes: %q = %q", key, value)
				}
			}
		}
		again := device.Snapshot{Devices: device.Clone(s.Devices)}
		if dropped := again.Bound(); len(dropped) > 0 {
			t.Errorf("what has passed is dropped the second time: %v", dropped)
		}
	})
}
