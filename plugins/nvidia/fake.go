package nvidia

import (
	"fmt"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// FakeLibrary is a Library for tests that holds what the test says. Nothing
// outside of tests makes one.
type FakeLibrary struct {
	mu struct {
		sync.Mutex
		absent *structs.Reason
		facts  Facts
		stats  map[string]device.DeviceStats
		err    error
		opens  int
		closed int
		hangs  map[string]chan struct{} // by call: closed when it may go on
	}
	events chan Happening
}

var _ Library = (*FakeLibrary)(nil)

// NewFakeLibrary makes a library with count healthy cards.
func NewFakeLibrary(count int) *FakeLibrary {
	f := &FakeLibrary{events: make(chan Happening, happenedQueue)}
	f.mu.stats = make(map[string]device.DeviceStats)
	f.mu.hangs = make(map[string]chan struct{})
	f.mu.facts = Facts{Driver: "550.54.15", Library: "12.550.54.15", CUDA: "12.4"}
	for i := range count {
		verdict, errors := 0, uint64(0)
		f.mu.facts.Cards = append(f.mu.facts.Cards, Card{
			UUID: fmt.Sprintf("GPU-%04d", i), Index: i, Minor: i, Name: "NVIDIA H100 80GB HBM3", Arch: "hopper", Memory: 80 << 30,
			Bus: fmt.Sprintf("0000:%02x:00.0", i+1), State: State{Recovery: &verdict, ECCUncorrected: &errors, PCIeWidth: 16, Temperature: 40, MemoryUsed: 4 << 20},
		})
	}
	return f
}

// Change lets the test change the facts.
func (f *FakeLibrary) Change(how func(*Facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.facts.Cards = append([]Card(nil), f.mu.facts.Cards...)
	how(&f.mu.facts)
}

// SetStats says what is measured on a device, besides its memory.
func (f *FakeLibrary) SetStats(stats device.DeviceStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.stats[stats.ID] = stats
}

// SetAbsent says why there is no library; nil: there is.
func (f *FakeLibrary) SetAbsent(reason *structs.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.absent = reason
}

// Fail lets Read and Sample answer with an error; nil: no more.
func (f *FakeLibrary) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.err = err
}

// Hang keeps a call ("open", "read", "sample") from returning until release.
func (f *FakeLibrary) Hang(call string) (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hang := make(chan struct{})
	f.mu.hangs[call] = hang
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.mu.hangs, call)
		close(hang)
	}
}

// Happen lets the driver report an event.
func (f *FakeLibrary) Happen(e Happening) { f.events <- e }

// Opened tells how often the library was opened and closed.
func (f *FakeLibrary) Opened() (opens, closed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.opens, f.mu.closed
}

func (f *FakeLibrary) wait(call string) {
	f.mu.Lock()
	hang := f.mu.hangs[call]
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

// Open opens it.
func (f *FakeLibrary) Open() *structs.Reason {
	f.wait("open")
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.opens++
	return f.mu.absent
}

// Read gives the facts.
func (f *FakeLibrary) Read() (Facts, error) {
	f.wait("read")
	f.mu.Lock()
	defer f.mu.Unlock()
	facts := f.mu.facts
	facts.Cards = append([]Card(nil), facts.Cards...)
	return facts, f.mu.err
}

// Sample gives what was set, and the memory in use.
func (f *FakeLibrary) Sample() ([]device.DeviceStats, error) {
	f.wait("sample")
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []device.DeviceStats
	for _, card := range f.mu.facts.Cards {
		ids := []string{card.UUID}
		for _, instance := range card.Instances {
			ids = append(ids, instance.UUID)
		}
		for _, id := range ids {
			stats := f.mu.stats[id]
			gauges := map[string]float64{device.GaugeMemoryUsed: float64(card.State.MemoryUsed), device.GaugeMemoryTotal: float64(card.Memory)}
			for key, value := range stats.Gauges {
				gauges[key] = value
			}
			all = append(all, device.DeviceStats{ID: id, Gauges: gauges, Processes: append([]device.Process(nil), stats.Processes...)})
		}
	}
	return all, f.mu.err
}

// Wait gives events.
func (f *FakeLibrary) Wait(limit time.Duration) ([]Happening, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case e := <-f.events:
		return []Happening{e}, nil
	case <-timer.C:
		return nil, nil
	}
}

// Close closes it.
func (f *FakeLibrary) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed++
}
