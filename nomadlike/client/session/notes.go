package session

import (
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// Notes hands what a node has to tell of its allocations to a session, with a
// number and a time. Any goroutine may use it.
type Notes struct {
	session  *Session
	boottime func() time.Duration
	now      func() time.Time

	mu struct {
		sync.Mutex
		last uint64
	}
}

// NewNotes makes notes for a session. boottime is the time since the boot, now the
// time of day.
func NewNotes(s *Session, boottime func() time.Duration, now func() time.Time) *Notes {
	return &Notes{session: s, boottime: boottime, now: now}
}

// Next returns the number of a note. Numbers rise also over a restart of the
// agent: they begin with the time since the boot, in nanoseconds, and no task
// outlives that.
func (n *Notes) Next() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.last = max(n.mu.last+1, uint64(n.boottime()))
	return n.mu.last
}

// Send sends a note. One that has no number gets the next.
func (n *Notes) Send(note structs.AllocNote) {
	if note.Seq == 0 {
		note.Seq = n.Next()
	}
	note.At = structs.At(n.now())
	n.session.Note(note)
}

// Tell makes an event of an allocation known.
func (n *Notes) Tell(id string, attempt uint64, told structs.Told) {
	n.Send(structs.AllocNote{AllocID: id, Attempt: attempt, Told: &told})
}

// Teller makes events of allocations known.
type Teller interface {
	Tell(id string, attempt uint64, told structs.Told)
}
