package firewall

import (
	"slices"
	"sync"
)

// Fake is a Filter for tests: it remembers the rules.
type Fake struct {
	mu    sync.Mutex
	rules []Rule
	steps int
	err   error
	there bool
}

// Replace implements Filter.
func (f *Fake) Replace(rules []Rule) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.steps++
	if f.err == nil {
		f.rules, f.there = slices.Clone(rules), true
	}
	return f.err
}

// There implements Filter.
func (f *Fake) There() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.there, f.err
}

// Remove implements Filter.
func (f *Fake) Remove() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.there = nil, false
	return f.err
}

// Rules are the newest rules, a line each, and the number of calls of Replace.
func (f *Fake) Rules() (text string, steps int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return String(f.rules), f.steps
}

// Fail has every call fail from now on, or succeed when err is nil.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

// Lose removes the rules, as another program would.
func (f *Fake) Lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.there = nil, false
}
