package nvidia

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
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

// startFake starts a plugin on a fake library; Close comes with the test's end.
func startFake(t *testing.T, library *FakeLibrary, config string, change func(*Options)) *Plugin {
	t.Helper()
	if config == "" {
		config = `{"kernel_messages": "none", "poll": "100ms", "root": "/nonexistent"}`
	}
	s, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Library: library, Boot: "boot-1", Booted: time.Now().Add(-time.Hour), Proc: nobody{}}
	if change != nil {
		change(&o)
	}
	p := Start(s, o)
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

func TestContractWithParts(t *testing.T) {
	library := NewFakeLibrary(2)
	library.Change(func(f *Facts) {
		f.Cards[0].MIG = true
		f.Cards[0].Instances = []Instance{{UUID: "MIG-a", Profile: "1g.10gb", Memory: 10 << 30, GPU: 7}, {UUID: "MIG-b", Profile: "1g.10gb", Memory: 10 << 30, GPU: 8}}
	})
	config := `{"kernel_messages": "none", "poll": "100ms", "root": "/nonexistent", "share": [{"cards": ["GPU-0001"], "how": "time-slice", "parts": 2}]}`
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startFake(t, library, config, nil) })
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

func TestLibraryThatComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		library.SetAbsent(structs.NewReason("device.nvidia_no_driver"))
		now := follow(t, startFake(t, library, "", nil))
		if s := now(); s.Absent == nil || s.Absent.ID != "device.nvidia_no_driver" || len(s.Devices) != 0 {
			t.Errorf("without a driver: %+v", s)
		}
		library.SetAbsent(nil)
		time.Sleep(openAgain + time.Second)
		if s := now(); s.Absent != nil || len(s.Devices) != 2 || !s.Devices[0].Healthy {
			t.Errorf("with a driver: %+v", s)
		}
		library.Change(func(f *Facts) { f.Cards = nil })
		time.Sleep(time.Second)
		if s := now(); len(s.Devices) != 2 || device.ActionOf(&s.Devices[0]) != device.ActReboot {
			t.Errorf("all cards are gone: %+v", s)
		}
	})
}

func TestNoCards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := follow(t, startFake(t, NewFakeLibrary(0), "", nil))
		if s := now(); s.Absent == nil || s.Absent.ID != "device.nvidia_no_cards" {
			t.Errorf("%+v", s)
		}
		library := NewFakeLibrary(1)
		library.Change(func(f *Facts) { f.Cards[0].MIG = true })
		now = follow(t, startFake(t, library, "", nil))
		if s := now(); s.Absent == nil || s.Absent.ID != "device.nvidia_mig_empty" || s.Attributes[device.NodeMIGEmpty] != "1" {
			t.Errorf("%+v", s)
		}
	})
}

func TestHangingLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		var quits atomic.Int32
		p := startFake(t, library, "", func(o *Options) { o.Quit = func(string) { quits.Add(1) } })
		now := follow(t, p)
		release := library.Hang("read")
		time.Sleep(guard.Patience + time.Second)
		s := now()
		if s.Blind == nil || s.Blind.ID != "device.library_hangs" || len(s.Devices) != 2 {
			t.Fatalf("%+v", s)
		}
		for _, d := range s.Devices {
			if action := device.ActionOf(&d); action != device.ActCordon || d.Healthy {
				t.Errorf("device %s has action %q", d.ID, action)
			}
		}
		// Errors are heard all the same.
		library.Happen(Happening{At: time.Now(), UUID: "GPU-0001", XID: 79, GPU: -1, Compute: -1, Source: FromLibrary})
		synctest.Wait()
		if s := now(); device.ActionOf(&s.Devices[1]) != device.ActReboot || device.ActionOf(&s.Devices[0]) != device.ActCordon {
			t.Errorf("%+v", s.Devices)
		}
		if quits.Load() != 0 {
			t.Error("it gave up too early")
		}
		time.Sleep(quitAfter)
		if quits.Load() == 0 {
			t.Error("it never gives up")
		}
		release()
		time.Sleep(time.Second)
		if s := now(); s.Blind != nil || !s.Devices[0].Healthy || s.Devices[1].Healthy {
			t.Errorf("the library is back: %+v", s)
		}
	})
}

func TestHangingSample(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		p := startFake(t, library, "", nil)
		follow(t, p)()
		release := library.Hang("sample")
		ctx, cancel := context.WithCancel(context.Background())
		if _, err := p.Stats(ctx, time.Second); err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		_, err := p.Reap(context.Background(), device.Reaping{IDs: []string{"GPU-0000"}, Limit: 3 * time.Second})
		if !errors.Is(err, device.ErrUnavailable) || time.Since(started) > 4*time.Second {
			t.Errorf("reap gives %v after %s", err, time.Since(started))
		}
		if _, err := p.Reserve(context.Background(), []string{"GPU-0000"}); err != nil {
			t.Errorf("reserve gives %v", err)
		}
		cancel()
		release()
		synctest.Wait()
	})
}

func TestFailingLibrary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		var quits atomic.Int32
		now := follow(t, startFake(t, library, "", func(o *Options) { o.Quit = func(string) { quits.Add(1) } }))
		now()
		library.Fail(errors.New("driver was unloaded"))
		time.Sleep(time.Second)
		if s := now(); s.Blind == nil || !strings.Contains(s.Blind.Params["cause"], "unloaded") || len(s.Devices) != 2 || s.Devices[0].Healthy {
			t.Errorf("%+v", s)
		}
		time.Sleep(quitAfter)
		if quits.Load() == 0 {
			t.Error("it never asks for a new process")
		}
		library.Fail(nil)
		time.Sleep(time.Second)
		if s := now(); s.Blind != nil || !s.Devices[0].Healthy {
			t.Errorf("%+v", s)
		}
	})
}

func TestEventsComeAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(8)
		now := follow(t, startFake(t, library, `{"kernel_messages": "none", "poll": "1h", "root": "/nonexistent"}`, nil))
		now()
		started := time.Now()
		library.Happen(Happening{At: started, UUID: "GPU-0003", XID: 48, GPU: -1, Compute: -1, Source: FromLibrary, PID: 99})
		s := now()
		if took := time.Since(started); took > 0 || device.ActionOf(&s.Devices[3]) != device.ActReset || len(s.Events) != 1 || s.Events[0].PID != 99 {
			t.Errorf("after %s: %+v, events %+v", took, s.Devices[3], s.Events)
		}
		// A happening without a number makes it look at once.
		library.Change(func(f *Facts) { f.Cards = f.Cards[:7] })
		library.Happen(Happening{At: started, GPU: -1, Compute: -1, Source: FromLibrary})
		if s := now(); time.Since(started) > 0 || device.ActionOf(&s.Devices[7]) != device.ActReboot {
			t.Errorf("%+v", s.Devices[7])
		}
	})
}

// hospital is a machine whose one process cannot be ended until it may.
type hospital struct{ immortal atomic.Bool }

func (h *hospital) Look(pid int) leftover.Facts {
	if !h.immortal.Load() {
		return leftover.Facts{}
	}
	return leftover.Facts{Exists: true, StartTicks: 1, Cgroups: []string{"/nomadlike/dead"}, Name: "python3", Uninterruptible: true}
}

func (h *hospital) Kill(int, leftover.Facts) error { return nil }

func TestReapUnkillableProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library, proc := NewFakeLibrary(2), &hospital{}
		proc.immortal.Store(true)
		p := startFake(t, library, "", func(o *Options) { o.Proc = proc })
		now := follow(t, p)
		now()
		library.SetStats(device.DeviceStats{ID: "GPU-0001", Processes: []device.Process{{PID: 77, Memory: 5 << 30}}})
		request := device.Reaping{IDs: []string{"GPU-0001"}, Mine: []device.Mark{{Cgroup: "/nomadlike"}}, Limit: time.Second}
		report, err := p.Reap(context.Background(), request)
		if err != nil || report.Clean() || len(report.Devices[0].Unkillable) != 1 || report.Devices[0].Reason.ID != "device.leftover_stuck" {
			t.Fatalf("%+v, %v", report, err)
		}
		if s := now(); s.Devices[1].Healthy || s.Devices[1].Attrs[device.AttrFault] != "leftover" || !s.Devices[0].Healthy {
			t.Errorf("%+v", s.Devices)
		}
		proc.immortal.Store(false)
		library.SetStats(device.DeviceStats{ID: "GPU-0001"})
		time.Sleep(calm + time.Second)
		if s := now(); !s.Devices[1].Healthy {
			t.Errorf("%+v", s.Devices[1])
		}
		if report, err = p.Reap(context.Background(), request); err != nil || !report.Clean() {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

func TestReapMemoryOfNobodyAndHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		fill := func(bytes uint64) {
			library.Change(func(f *Facts) { f.Cards[0].State.MemoryUsed = bytes })
		}
		var resets []string
		fails := errors.New("in use by another client")
		p := startFake(t, library, "", func(o *Options) {
			o.Reset = func(_ context.Context, uuid string) error {
				opens, closed := library.Opened()
				if opens != closed {
					t.Errorf("reset while the library is open: %d opens, %d closes", opens, closed)
				}
				resets = append(resets, uuid)
				if fails == nil {
					fill(4 << 20)
				}
				return fails
			}
		})
		now := follow(t, p)
		now()
		ctx := context.Background()
		request := device.Reaping{IDs: []string{"GPU-0000"}, Mine: []device.Mark{{Cgroup: "/nomadlike"}}}
		// The driver frees memory a moment after the process is gone.
		fill(5 << 30)
		go func() {
			time.Sleep(time.Second)
			fill(4 << 20)
		}()
		if report, err := p.Reap(ctx, request); err != nil || !report.Clean() {
			t.Fatalf("%+v, %v", report, err)
		}
		fill(5 << 30)
		report, err := p.Reap(ctx, request)
		if err != nil || report.Clean() || report.Devices[0].Reason.ID != "device.leftover_memory" || report.Devices[0].MemoryUsed != 5<<30 {
			t.Fatalf("%+v, %v", report, err)
		}
		if s := now(); device.ActionOf(&s.Devices[0]) != device.ActReset {
			t.Errorf("%+v", s.Devices[0])
		}
		// Somebody is on it: no reset.
		library.SetStats(device.DeviceStats{ID: "GPU-0000", Processes: []device.Process{{PID: 5, Name: "x"}}})
		if err := p.Heal(ctx, []string{"GPU-0000"}); !errors.Is(err, device.ErrBusy) || len(resets) != 0 {
			t.Errorf("heal a busy device: %v, %v", err, resets)
		}
		library.SetStats(device.DeviceStats{ID: "GPU-0000"})
		var told *structs.Error
		if err := p.Heal(ctx, []string{"GPU-0000"}); !errors.As(err, &told) || told.ID != "device.reset_failed" {
			t.Errorf("a reset that fails gives %v", err)
		}
		if s := now(); device.ActionOf(&s.Devices[0]) != device.ActReset {
			t.Errorf("%+v", s.Devices[0])
		}
		fails = nil
		if err := p.Heal(ctx, []string{"GPU-0000", "GPU-0001"}); err != nil {
			t.Errorf("heal: %v", err)
		}
		if s := now(); !s.Devices[0].Healthy || !slices.Equal(resets, []string{"GPU-0000", "GPU-0000"}) {
			t.Errorf("%+v, resets %v", s.Devices[0], resets)
		}
		// A fault that a reset does not help.
		library.Happen(Happening{At: time.Now(), UUID: "GPU-0001", XID: 79, GPU: -1, Compute: -1, Source: FromLibrary})
		synctest.Wait()
		if err := p.Heal(ctx, []string{"GPU-0001"}); !errors.As(err, &told) || told.ID != "device.heal_needs" {
			t.Errorf("heal of a card that wants a reboot gives %v", err)
		}
		if err := p.Clear(ctx, []string{"GPU-0001"}); err != nil {
			t.Error(err)
		}
		if s := now(); !s.Devices[1].Healthy {
			t.Errorf("%+v", s.Devices[1])
		}
		// A reset after which the card is still unhealthy.
		verdict := 1
		library.Change(func(f *Facts) { f.Cards[0].State.Recovery = &verdict })
		time.Sleep(time.Second)
		if err := p.Heal(ctx, []string{"GPU-0000"}); !errors.As(err, &told) || told.ID != "device.test_failed" {
			t.Errorf("heal of a card that stays broken gives %v", err)
		}
	})
}

// lateLibrary is a library whose answers are on their way for as long as a test
// wants.
type lateLibrary struct {
	*FakeLibrary
	way atomic.Pointer[chan struct{}] // closed when answers may arrive; nil: at once
}

// late lets answers arrive only once arrive was called.
func (l *lateLibrary) late() (arrive func()) {
	way := make(chan struct{})
	l.way.Store(&way)
	return func() { l.way.CompareAndSwap(&way, nil); close(way) }
}

func (l *lateLibrary) travel() {
	if way := l.way.Load(); way != nil {
		<-*way
	}
}

func (l *lateLibrary) Read() (Facts, error) {
	facts, err := l.FakeLibrary.Read()
	l.travel()
	return facts, err
}

func (l *lateLibrary) Sample() ([]device.DeviceStats, error) {
	stats, err := l.FakeLibrary.Sample()
	l.travel()
	return stats, err
}

// TestOldReadingAfterClear shows that what was read of a card before its faults
// were forgotten does not bring them back.
func TestOldReadingAfterClear(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := &lateLibrary{FakeLibrary: NewFakeLibrary(2)}
		p := startFake(t, library.FakeLibrary, "", func(o *Options) { o.Library = library })
		now, ctx := follow(t, p), context.Background()
		now()
		state := func(change func(*State)) {
			library.Change(func(f *Facts) { change(&f.Cards[0].State) })
		}
		check := func(what string) {
			t.Helper()
			if s := now(); !s.Devices[0].Healthy || device.ActionOf(&s.Devices[0]) != device.ActNone {
				t.Errorf("%s: the card is well and has fault %q", what, s.Devices[0].Attrs[device.AttrFault])
			}
		}

		state(func(s *State) { s.RemapPending = true })
		time.Sleep(time.Second)
		if s := now(); s.Devices[0].Attrs[device.AttrFault] != "remap-pending" {
			t.Fatalf("%+v", s.Devices[0])
		}
		arrive := library.late()
		time.Sleep(time.Second) // a reading is on its way
		state(func(s *State) { s.RemapPending = false })
		if err := p.Clear(ctx, []string{"GPU-0000"}); err != nil {
			t.Fatal(err)
		}
		check("cleared")
		arrive()
		check("an old reading arrives")
		time.Sleep(time.Second)
		check("a new one does")

		state(func(s *State) { s.MemoryUsed = 5 << 30 })
		arrive = library.late()
		reaped := make(chan struct{})
		go func() {
			defer close(reaped)
			if _, err := p.Reap(ctx, device.Reaping{IDs: []string{"GPU-0000"}, Mine: []device.Mark{{Cgroup: "/nomadlike"}}}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		state(func(s *State) { s.MemoryUsed = 4 << 20 })
		time.Sleep(memorySettle + time.Second)
		if err := p.Clear(ctx, []string{"GPU-0000"}); err != nil {
			t.Fatal(err)
		}
		next := library.late() // the next ones do not come in time
		arrive()
		<-reaped
		check("an old measurement of memory arrives")
		next()
	})
}

func TestResetForbidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(1)
		p := startFake(t, library, `{"reset": "never", "kernel_messages": "none", "root": "/nonexistent"}`, nil)
		follow(t, p)()
		library.Happen(Happening{At: time.Now(), UUID: "GPU-0000", XID: 48, GPU: -1, Compute: -1, Source: FromLibrary})
		synctest.Wait()
		var told *structs.Error
		if err := p.Heal(context.Background(), []string{"GPU-0000"}); !errors.As(err, &told) || told.ID != "device.reset_forbidden" {
			t.Errorf("%v", err)
		}
	})
}

func TestHealthOutlivesThePlugin(t *testing.T) {
	dir := t.TempDir()
	stateful := func(o *Options) { o.StateDir = dir }
	synctest.Test(t, func(t *testing.T) {
		library := NewFakeLibrary(2)
		p := startFake(t, library, "", stateful)
		follow(t, p)()
		library.Happen(Happening{At: time.Now(), UUID: "GPU-0001", XID: 48, GPU: -1, Compute: -1, Source: FromLibrary})
		synctest.Wait()
		p.Close()
		s := follow(t, startFake(t, library, "", stateful))()
		if len(s.Devices) != 2 || device.ActionOf(&s.Devices[1]) != device.ActReset {
			t.Errorf("%+v", s.Devices)
		}
	})
	if err := os.WriteFile(filepath.Join(dir, "health.json"), []byte("{broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if s := follow(t, startFake(t, NewFakeLibrary(2), "", stateful))(); len(s.Devices) != 2 {
			t.Errorf("with a broken file: %+v", s)
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "health.json.bad")); err != nil {
		t.Errorf("the broken file was not put aside: %v", err)
	}
}

func TestKernelMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kmsg")
	if err := os.WriteFile(path, []byte("4,1,3590000000,-;NVRM: Xid (PCI:0000:01:00): 79, pid=7, name=x, GPU has fallen off the bus.\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startFake(t, NewFakeLibrary(2), `{"kernel_messages": "`+path+`", "poll": "100ms", "root": "/nonexistent"}`, nil)
	s := devicetest.Await(t, devicetest.Follow(t, p), "the fault", func(s device.Snapshot) bool { return len(s.Devices) == 2 && !s.Devices[0].Healthy })
	if s.Devices[0].Attrs[device.AttrFault] != "xid-79" || !s.Devices[1].Healthy {
		t.Errorf("%+v", s.Devices)
	}
}

func TestSMIReset(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "nvidia-smi")
	write := func(script string) {
		if err := os.WriteFile(tool, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(`echo "$@" > ` + dir + `/arguments`)
	if err := smiReset(tool)(context.Background(), "GPU-1"); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(dir + "/arguments"); err != nil || string(text) != "--gpu-reset --id=GPU-1\n" {
		t.Errorf("arguments %q, %v", text, err)
	}
	write("echo 'GPU is in use'; exit 15")
	if err := smiReset(tool)(context.Background(), "GPU-1"); err == nil || !strings.Contains(err.Error(), "GPU is in use") {
		t.Errorf("got %v", err)
	}
	if err := smiReset(filepath.Join(dir, "missing"))(context.Background(), "GPU-1"); err == nil {
		t.Error("a missing tool resets")
	}
	write("sleep 1000")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	started := time.Now()
	if err := smiReset(tool)(ctx, "GPU-1"); err == nil || time.Since(started) > 5*time.Second {
		t.Errorf("a hanging tool gives %v after %s", err, time.Since(started))
	}
}
