package ascend

import (
	"fmt"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// FakeLibrary is a Library for tests that holds what the test says. Nothing
// outside of tests makes one.
type FakeLibrary struct {
	mu struct {
		sync.Mutex
		absent  *structs.Reason
		facts   Facts
		samples map[Key]Sample
		err     error
		hangs   map[string]chan struct{}
	}
}

var _ Library = (*FakeLibrary)(nil)

// NewFakeLibrary makes a library with count healthy chips, one to a card, in
// rings of four.
func NewFakeLibrary(count int) *FakeLibrary {
	f := &FakeLibrary{}
	f.mu.samples, f.mu.hangs = make(map[Key]Sample), make(map[string]chan struct{})
	f.mu.facts = Facts{Driver: "24.1.rc2", Library: "1.0"}
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
		f.mu.facts.Chips = append(f.mu.facts.Chips, chip)
	}
	return f
}

// Change lets the test change the facts.
func (f *FakeLibrary) Change(how func(*Facts)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.facts.Chips = slices.Clone(f.mu.facts.Chips)
	how(&f.mu.facts)
}

// SetSample says what is measured on a chip.
func (f *FakeLibrary) SetSample(key Key, s Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.samples[key] = s
}

// SetAbsent says why there is no library; nil: there is.
func (f *FakeLibrary) SetAbsent(reason *structs.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.absent = reason
}

// Fail lets calls answer with an error; nil: no more.
func (f *FakeLibrary) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.err = err
}

// Hang keeps a call ("read", "sample", "glance") from returning until release.
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

func (f *FakeLibrary) wait(call string) {
	f.mu.Lock()
	hang := f.mu.hangs[call]
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
}

// Source names it.
func (*FakeLibrary) Source() string { return "fake" }

// Open opens it.
func (f *FakeLibrary) Open() *structs.Reason {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.absent
}

// Read gives the facts.
func (f *FakeLibrary) Read() (Facts, error) {
	f.wait("read")
	f.mu.Lock()
	defer f.mu.Unlock()
	facts := f.mu.facts
	facts.Chips = slices.Clone(facts.Chips)
	return facts, f.mu.err
}

// Glance gives the health in the facts.
func (f *FakeLibrary) Glance() ([]Glance, error) {
	f.wait("glance")
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []Glance
	for _, chip := range f.mu.facts.Chips {
		all = append(all, Glance{Key: chip.Key, Level: chip.State.Level, Codes: chip.State.Codes, Err: chip.Unreadable})
	}
	return all, f.mu.err
}

// Sample gives what was set, or a quiet chip.
func (f *FakeLibrary) Sample() (map[Key]Sample, error) {
	f.wait("sample")
	f.mu.Lock()
	defer f.mu.Unlock()
	samples := make(map[Key]Sample)
	for _, chip := range f.mu.facts.Chips {
		s, set := f.mu.samples[chip.Key]
		if !set {
			s = Sample{Gauges: map[string]float64{device.GaugeMemoryUsed: 3 << 30, device.GaugeMemoryTotal: float64(chip.Memory)}}
		}
		samples[chip.Key] = s
	}
	return samples, f.mu.err
}

// Close does nothing.
func (*FakeLibrary) Close() {}
