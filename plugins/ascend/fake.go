package ascend

import (
	"fmt"
	"slices"
	"sync"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// FakeLibrary is a Library for tests that holds what the test says. Nothing
// outside of tests makes one.
type FakeLibrary struct {
	*runtime.FakeLibrary[Facts]

	mu struct {
		sync.Mutex
		samples map[Key]Sample
	}
}

var _ Library = (*FakeLibrary)(nil)

// NewFakeLibrary makes a library with count healthy chips, one to a card, in
// rings of four.
func NewFakeLibrary(count int) *FakeLibrary {
	facts := Facts{Driver: "24.1.rc2", Library: "1.0"}
	for i := range count {
		chip := Chip{
			Key: Key{Card: i}, ID: fmt.Sprintf("NPU-%04d", i), Logic: i, Physical: i, Name: "Ascend910B3", Bus: fmt.Sprintf("0000:%02x:00.0", i+1), Memory: 64 << 30,
			IP: fmt.Sprintf("192.168.%d.%d", 10+i%4, 10+i), Mask: "255.255.255.0", State: State{Level: 0, Network: 0},
		}
		for k := i / 4 * 4; k < min(i/4*4+4, count); k++ {
			if k != i {
				chip.Linked = append(chip.Linked, Key{Card: k})
			}
		}
		facts.Chips = append(facts.Chips, chip)
	}
	f := &FakeLibrary{FakeLibrary: runtime.NewFakeLibrary(facts, func(facts Facts) Facts {
		facts.Chips = slices.Clone(facts.Chips)
		return facts
	})}
	f.mu.samples = make(map[Key]Sample)
	return f
}

// SetSample says what is measured on a chip.
func (f *FakeLibrary) SetSample(key Key, s Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.samples[key] = s
}

// Source names it.
func (*FakeLibrary) Source() string { return "fake" }

// Glance returns the health in the facts.
func (f *FakeLibrary) Glance() ([]Glance, error) {
	facts, err := f.Ask("glance")
	var all []Glance
	for _, chip := range facts.Chips {
		all = append(all, Glance{Key: chip.Key, Level: chip.State.Level, Codes: chip.State.Codes, Err: chip.Unreadable})
	}
	return all, err
}

// Sample returns what was set, or a quiet chip.
func (f *FakeLibrary) Sample() (map[Key]Sample, error) {
	facts, err := f.Ask("sample")
	f.mu.Lock()
	defer f.mu.Unlock()
	samples := make(map[Key]Sample)
	for _, chip := range facts.Chips {
		s, set := f.mu.samples[chip.Key]
		if !set {
			s = Sample{Gauges: map[string]float64{device.GaugeMemoryUsed: 3 << 30, device.GaugeMemoryTotal: float64(chip.Memory)}}
		}
		samples[chip.Key] = s
	}
	return samples, err
}
