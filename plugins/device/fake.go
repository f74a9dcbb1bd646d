package device

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// Fake is a plugin for tests, whose devices are what the test says. It also
// stands in for hardware in the tests of other packages; nothing outside of
// tests makes one.
type Fake struct {
	feed *Feed

	mu struct {
		sync.Mutex
		processes map[string][]Process // by device id
		reaped    []Reaping
		healed    []string
		hang      chan struct{} // calls wait for it to be closed; nil: they do not
	}
}

// NewFake makes a plugin with devices, all as they are given.
func NewFake(devices ...structs.Device) *Fake {
	f := &Fake{feed: NewFeed(Snapshot{Devices: devices, Attributes: map[string]string{NodeSource: "fake"}})}
	f.mu.processes = make(map[string][]Process)
	return f
}

// FakeDevices returns count healthy devices of a kind, four to a link group.
func FakeDevices(kind string, count int) []structs.Device {
	devices := make([]structs.Device, count)
	for i := range devices {
		devices[i] = structs.Device{
			ID: fmt.Sprintf("FAKE-%04d", i), Index: i, Kind: kind, Model: "Fake 900", Memory: 80 << 30,
			PCIBus: fmt.Sprintf("0000:%02x:00.0", i+1), NUMANode: i / 4, LinkGroup: fmt.Sprintf("ring-%d", i/4), Healthy: true, Driver: "1.0",
		}
	}
	return devices
}

// Set replaces the devices.
func (f *Fake) Set(devices ...structs.Device) {
	f.feed.Publish(Snapshot{At: time.Now(), Devices: devices, Attributes: f.feed.Newest().Attributes})
}

// Fault makes a device go wrong, with an event, as hardware does.
func (f *Fake) Fault(id, code string, action Action) {
	snapshot := f.feed.Newest()
	snapshot.At, snapshot.Devices = time.Now(), Clone(snapshot.Devices)
	reason := structs.NewReason("device.fault", "device", id, "code", code)
	for i := range snapshot.Devices {
		if d := &snapshot.Devices[i]; d.ID == id && !action.TakesWork() {
			Judge(d, action, reason)
		}
	}
	snapshot.Events = []Event{{At: snapshot.At, DeviceID: id, Code: code, Action: action, Reason: reason}}
	f.feed.Publish(snapshot)
}

// SetProcesses says which processes are on a device.
func (f *Fake) SetProcesses(id string, processes ...Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.processes[id] = processes
}

// Hang makes every further call wait until release is called or its context
// ends.
func (f *Fake) Hang() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hang := make(chan struct{})
	f.mu.hang = hang
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.mu.hang = nil
		close(hang)
	}
}

// Reaped returns the requests that Reap was called with.
func (f *Fake) Reaped() []Reaping {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.reaped)
}

// Healed returns the ids that Heal or Clear was called with.
func (f *Fake) Healed() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.mu.healed)
}

func (f *Fake) wait(ctx context.Context) error {
	f.mu.Lock()
	hang := f.mu.hang
	f.mu.Unlock()
	if hang == nil {
		return ctx.Err()
	}
	select {
	case <-hang:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Fingerprint follows the devices.
func (f *Fake) Fingerprint(ctx context.Context) (<-chan Snapshot, error) {
	return f.feed.Follow(ctx), nil
}

// find returns devices by id.
func (f *Fake) find(ids []string) ([]structs.Device, error) {
	all := f.feed.Newest().Devices
	var found []structs.Device
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d structs.Device) bool { return d.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("device %.80q: %w", id, ErrUnknownDevice)
		}
		found = append(found, all[at])
	}
	return found, nil
}

// Reserve sets each device's number and a variable that names them all.
func (f *Fake) Reserve(ctx context.Context, ids []string) (Reservation, error) {
	if err := f.wait(ctx); err != nil {
		return Reservation{}, err
	}
	devices, err := f.find(ids)
	if err != nil {
		return Reservation{}, err
	}
	visible := ""
	for _, d := range devices {
		if visible != "" {
			visible += ","
		}
		visible += d.ID
	}
	return Reservation{Env: map[string]string{"FAKE_VISIBLE_DEVICES": visible}, Nodes: []Node{{HostPath: "/dev/null", TaskPath: "/dev/fake", Access: "rw"}}}, nil
}

// Stats sends one figure for each device.
func (f *Fake) Stats(ctx context.Context, every time.Duration) (<-chan Stats, error) {
	to := make(chan Stats)
	go func() { // ends with ctx
		defer close(to)
		tick := time.NewTicker(max(every, StatsEveryMin))
		defer tick.Stop()
		for {
			if f.wait(ctx) != nil {
				return
			}
			stats := Stats{At: time.Now()}
			f.mu.Lock()
			for _, d := range f.feed.Newest().Devices {
				stats.Devices = append(stats.Devices, DeviceStats{ID: d.ID, Gauges: map[string]float64{GaugeUtilization: 0.5, GaugeMemoryTotal: float64(d.Memory)}, Processes: f.mu.processes[d.ID]})
			}
			f.mu.Unlock()
			select {
			case to <- stats:
			case <-ctx.Done():
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return to, nil
}

// Reap takes the set processes from devices; those named "stuck" stay.
func (f *Fake) Reap(ctx context.Context, request Reaping) (ReapReport, error) {
	if err := f.wait(ctx); err != nil {
		return ReapReport{}, err
	}
	if _, err := f.find(request.IDs); err != nil {
		return ReapReport{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.reaped = append(f.mu.reaped, request)
	var report ReapReport
	for _, id := range request.IDs {
		reaped := Reaped{ID: id, Clean: true}
		for _, p := range f.mu.processes[id] {
			if p.Name == "stuck" {
				reaped.Unkillable, reaped.Clean = append(reaped.Unkillable, p), false
				reaped.Reason = structs.NewReason("device.leftover_stuck", "pids", p.PID)
				reaped.MemoryUsed += p.Memory
			} else {
				reaped.Killed = append(reaped.Killed, p)
			}
		}
		f.mu.processes[id] = reaped.Unkillable
		report.Devices = append(report.Devices, reaped)
	}
	return report, nil
}

// Heal makes devices healthy.
func (f *Fake) Heal(ctx context.Context, ids []string) error {
	if err := f.wait(ctx); err != nil {
		return err
	}
	if _, err := f.find(ids); err != nil {
		return err
	}
	f.mu.Lock()
	f.mu.healed = append(f.mu.healed, ids...)
	f.mu.Unlock()
	snapshot := f.feed.Newest()
	snapshot.At, snapshot.Devices = time.Now(), Clone(snapshot.Devices)
	for i := range snapshot.Devices {
		if slices.Contains(ids, snapshot.Devices[i].ID) {
			Judge(&snapshot.Devices[i], ActNone, nil)
		}
	}
	f.feed.Publish(snapshot)
	return nil
}

// Clear does as Heal.
func (f *Fake) Clear(ctx context.Context, ids []string) error { return f.Heal(ctx, ids) }
