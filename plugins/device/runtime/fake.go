package runtime

import (
	"sync"

	"nomadlike/nomadlike/structs"
)

// FakeLibrary is a Library for tests that holds what the test says. A vendor's
// own embeds it and measures; nothing outside of tests makes one.
type FakeLibrary[F any] struct {
	clone func(F) F

	mu struct {
		sync.Mutex
		absent *structs.Reason
		facts  F
		err    error
		opens  int
		closed int
		hangs  map[string]chan struct{} // by call: closed when it may go on
	}
}

// NewFakeLibrary makes a library with facts; clone copies them as far as a test
// changes them.
func NewFakeLibrary[F any](facts F, clone func(F) F) *FakeLibrary[F] {
	f := &FakeLibrary[F]{clone: clone}
	f.mu.facts, f.mu.hangs = facts, make(map[string]chan struct{})
	return f
}

// Change lets the test change the facts.
func (f *FakeLibrary[F]) Change(how func(*F)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.facts = f.clone(f.mu.facts)
	how(&f.mu.facts)
}

// SetAbsent says why there is no library; nil: there is.
func (f *FakeLibrary[F]) SetAbsent(reason *structs.Reason) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.absent = reason
}

// Fail lets calls answer with an error; nil: no more.
func (f *FakeLibrary[F]) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.err = err
}

// Hang keeps a call, for instance "open", "read" or "sample", from returning
// until release.
func (f *FakeLibrary[F]) Hang(call string) (release func()) {
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

// Opened reports how often the library was opened and closed.
func (f *FakeLibrary[F]) Opened() (opens, closed int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.opens, f.mu.closed
}

// Ask makes a call of that name: it waits while the call hangs, and returns the
// facts and the error that is set.
func (f *FakeLibrary[F]) Ask(call string) (F, error) {
	f.mu.Lock()
	hang := f.mu.hangs[call]
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.clone(f.mu.facts), f.mu.err
}

// Open opens it.
func (f *FakeLibrary[F]) Open() *structs.Reason {
	_, _ = f.Ask("open") // it may hang, and fails by being absent only
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.opens++
	return f.mu.absent
}

// Read returns the facts.
func (f *FakeLibrary[F]) Read() (F, error) { return f.Ask("read") }

// Close closes it.
func (f *FakeLibrary[F]) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed++
}
