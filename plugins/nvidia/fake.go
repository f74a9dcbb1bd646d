package nvidia

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// FakeLibrary is a Library for tests that holds what the test says. Nothing
// outside of tests makes one.
type FakeLibrary struct {
	*runtime.FakeLibrary[Facts]

	mu struct {
		sync.Mutex
		stats map[string]device.DeviceStats
	}
	events chan Happening
}

var _ Library = (*FakeLibrary)(nil)

// NewFakeLibrary makes a library with count healthy cards.
func NewFakeLibrary(count int) *FakeLibrary {
	facts := Facts{Driver: "550.54.15", Library: "12.550.54.15", CUDA: "12.4"}
	for i := range count {
		verdict, errors := 0, uint64(0)
		facts.Cards = append(facts.Cards, Card{
			UUID: fmt.Sprintf("GPU-%04d", i), Index: i, Minor: i, Name: "NVIDIA H100 80GB HBM3", Arch: "hopper", Memory: 80 << 30,
			Bus: fmt.Sprintf("0000:%02x:00.0", i+1), State: State{Recovery: &verdict, ECCUncorrected: &errors, PCIeWidth: 16, Temperature: 40, MemoryUsed: 4 << 20},
		})
	}
	f := &FakeLibrary{events: make(chan Happening, happenedQueue)}
	f.FakeLibrary = runtime.NewFakeLibrary(facts, func(facts Facts) Facts {
		facts.Cards = slices.Clone(facts.Cards)
		return facts
	})
	f.mu.stats = make(map[string]device.DeviceStats)
	return f
}

// SetStats says what is measured on a device, besides its memory.
func (f *FakeLibrary) SetStats(stats device.DeviceStats) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.stats[stats.ID] = stats
}

// Happen lets the driver report an event.
func (f *FakeLibrary) Happen(e Happening) { f.events <- e }

// Sample returns what was set, and the memory in use.
func (f *FakeLibrary) Sample() ([]device.DeviceStats, error) {
	facts, err := f.Ask("sample")
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []device.DeviceStats
	for _, card := range facts.Cards {
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
	return all, err
}

// Wait returns events.
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
