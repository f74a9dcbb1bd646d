package ascend

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func startFake(t *testing.T, library Library, config string, change func(*Options)) *Plugin {
	t.Helper()
	if config == "" {
		config = `{"root": "/nonexistent", "poll": "1s"}`
	}
	o := Options{Library: library, Boot: "boot-1", Proc: nobody{}}
	if change != nil {
		change(&o)
	}
	p := Start(settings(t, config), o)
	t.Cleanup(p.Close)
	return p
}

// nobody is a machine on which every process has just ended.
type nobody struct{}

func (nobody) Look(int) leftover.Facts        { return leftover.Facts{} }
func (nobody) Kill(int, leftover.Facts) error { return nil }

func TestContract(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startFake(t, NewFakeLibrary(4), "", nil) })
}

// follow returns a function that returns the newest snapshot, in a bubble.
func follow(t *testing.T, p *Plugin) func() device.Snapshot {
	snapshots := devicetest.Follow(t, p)
	var last device.Snapshot
	return func() device.Snapshot {
		last.Events = nil
		for {
			synctest.Wait()
			select {
			case s := <-snapshots:
				s.Events = append(last.Events, s.Events...)
				last = s
			default:
				return last
			}
		}
	}
}

func TestFaultIsSeenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(8)
		now := follow(t, startFake(t, library, `{"root": "/nonexistent", "poll": "1h"}`, nil))
		now()
		library.Change(func(f *Facts) { f.Chips[3].State = State{Level: 3, Codes: []uint32{0x80E18000}} })
		time.Sleep(glanceDefault)
		s := now()
		if device.ActionOf(&s.Devices[3]) != device.ActReset || len(s.Events) != 1 || s.Devices[3].Attrs[device.AttrFault] != "fault-80E18000" {
			t.Errorf("%+v, events %+v", s.Devices[3], s.Events)
		}
	})
}

func TestAbsentHangingFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		library.SetAbsent(structs.NewReason("device.ascend_no_library"))
		var quits atomic.Int32
		now := follow(t, startFake(t, library, "", func(o *Options) { o.Quit = func(string) { quits.Add(1) } }))
		if s := now(); s.Absent == nil || len(s.Devices) != 0 {
			t.Errorf("absent: %+v", s)
		}
		library.SetAbsent(nil)
		time.Sleep(openAgain + time.Second)
		if s := now(); s.Absent != nil || len(s.Devices) != 2 || s.Attributes[device.NodeSource] != "fake" {
			t.Errorf("present: %+v", s)
		}
		release := library.Hang("glance")
		time.Sleep(guard.Patience + time.Second)
		if s := now(); s.Blind == nil || s.Blind.ID != "device.library_hangs" || device.ActionOf(&s.Devices[0]) != device.ActCordon {
			t.Errorf("hanging: %+v", s)
		}
		time.Sleep(quitAfter)
		if quits.Load() == 0 {
			t.Error("it never gives up")
		}
		release()
		time.Sleep(time.Second)
		if s := now(); s.Blind != nil || !s.Devices[0].Healthy {
			t.Errorf("back: %+v", s)
		}
		library.Fail(errTest)
		time.Sleep(2 * time.Second)
		if s := now(); s.Blind == nil || s.Blind.ID != "device.library_fails" || len(s.Devices) != 2 {
			t.Errorf("failing: %+v", s)
		}
		library.Fail(nil)
		library.Change(func(f *Facts) { f.Chips = nil })
		time.Sleep(2 * time.Second)
		if s := now(); len(s.Devices) != 2 || device.ActionOf(&s.Devices[0]) != device.ActReboot {
			t.Errorf("gone: %+v", s)
		}
	})
}

func TestReapAndHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		resets := 0
		p := startFake(t, library, `{"root": "/nonexistent", "poll": "1s", "reset": "auto"}`, func(o *Options) {
			o.Reset = func(_ context.Context, key Key) error {
				if key != (Key{Card: 1}) {
					t.Errorf("reset of %+v", key)
				}
				resets++
				library.Change(func(f *Facts) { f.Chips[1].State = State{} })
				return nil
			}
		})
		now := follow(t, p)
		now()
		ctx := context.Background()
		key := Key{Card: 1}
		full := Sample{Gauges: map[string]float64{device.GaugeMemoryUsed: 20 << 30}}
		library.SetSample(key, full)
		request := device.Reaping{IDs: []string{"NPU-0001"}, Mine: []device.Mark{{Cgroup: "/nomadlike"}}}
		report, err := p.Reap(ctx, request)
		if err != nil || report.Clean() || report.Devices[0].Reason.ID != "device.leftover_memory" {
			t.Fatalf("%+v, %v", report, err)
		}
		if s := now(); s.Devices[1].Healthy || !s.Devices[0].Healthy {
			t.Errorf("%+v", s.Devices)
		}
		library.SetSample(key, Sample{Gauges: map[string]float64{device.GaugeMemoryUsed: 3 << 30}})
		if report, err = p.Reap(ctx, request); err != nil || !report.Clean() {
			t.Errorf("%+v, %v", report, err)
		}
		time.Sleep(calm + 2*time.Second)
		if s := now(); !s.Devices[1].Healthy {
			t.Errorf("%+v", s.Devices[1])
		}
		library.Change(func(f *Facts) { f.Chips[1].State = State{Level: 3, Codes: []uint32{0x80E18000}} })
		time.Sleep(time.Second)
		library.SetSample(key, Sample{Processes: []device.Process{{PID: 5, Name: "x"}}})
		if err := p.Heal(ctx, []string{"NPU-0001"}); !errors.Is(err, device.ErrBusy) || resets != 0 {
			t.Errorf("heal a busy chip: %v", err)
		}
		library.SetSample(key, Sample{Gauges: map[string]float64{}})
		if err := p.Heal(ctx, []string{"NPU-0001", "NPU-0000"}); err != nil || resets != 1 {
			t.Errorf("heal: %v, %d resets", err, resets)
		}
		if s := now(); !s.Devices[1].Healthy {
			t.Errorf("%+v", s.Devices[1])
		}
		library.Change(func(f *Facts) { f.Chips[0].State = State{Level: 3, Codes: []uint32{0x80E18402}} })
		time.Sleep(time.Second)
		var told *structs.Error
		if err := p.Heal(ctx, []string{"NPU-0000"}); !errors.As(err, &told) || told.ID != "device.heal_needs" {
			t.Errorf("heal of a chip that wants service: %v", err)
		}
	})
}

func TestHealthOutlivesThePlugin(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		stateful := func(o *Options) { o.StateDir = dir }
		p := startFake(t, library, "", stateful)
		follow(t, p)()
		library.Change(func(f *Facts) { f.Chips = f.Chips[:1] })
		time.Sleep(2 * time.Second)
		p.Close()
		s := follow(t, startFake(t, library, "", stateful))()
		if len(s.Devices) != 2 || device.ActionOf(&s.Devices[1]) != device.ActReboot {
			t.Errorf("%+v", s.Devices)
		}
	})
}
