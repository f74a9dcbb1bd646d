package main

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync"
	"time"

	"nomadlike/nomadlike/structs"
)

// outcome is what the caller of an operation knows of it.
type outcome int

const (
	done    outcome = iota // acknowledged
	failed                 // surely without effect
	unknown                // it may have happened, or may still
)

// operation is one request and its answer, in nanoseconds since the run began.
type operation struct {
	Key     string // register
	Write   bool
	Value   string // written, or read
	Via     string // host that was asked
	Call    int64
	Return  int64
	Outcome outcome
}

// submission is one job as its submitter sees it.
type submission struct {
	Key     string // idempotency key
	Name    string
	ID      string // "" until it was acknowledged
	Project string
	AckedAt time.Time
	Lasting bool // ends only when it is stopped
}

// seen is one event as a watcher got it.
type seen struct {
	Index uint64
	Seq   int
	At    time.Time
}

// watched is what one watcher got, in the order in which it came.
type watched struct {
	Name   string
	Events []seen
	From   uint64 // everything after this index was asked for
}

// finding is something that must not be.
type finding struct {
	Invariant string
	At        time.Duration // since the run began
	During    string        // the fault of that time
	Text      string
}

// history is what the run has recorded. Any goroutine may add to it.
type history struct {
	begin time.Time
	mu    struct {
		sync.Mutex
		operations  []operation
		submissions []*submission
		acks        []time.Time // of writes, in order
		events      map[position]structs.Event
		findings    []finding
		during      string
	}
}

// position is an event's place in the order of all events.
type position struct {
	Index uint64
	Seq   int
}

func newHistory(begin time.Time) *history {
	h := &history{begin: begin}
	h.mu.events = map[position]structs.Event{}
	return h
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

func (h *history) operation(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.operations = append(h.mu.operations, o)
}

// acked records that a write was acknowledged.
func (h *history) acked(at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.acks = append(h.mu.acks, at)
}

func (h *history) submitted(s *submission) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.submissions = append(h.mu.submissions, s)
}

func (h *history) event(e *structs.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.events[position{e.Index, e.Seq}] = *e
}

// findingsMax bounds what one invariant is told of: the first are enough.
const findingsMax = 20

func (h *history) find(invariant, text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for _, f := range h.mu.findings {
		if f.Invariant == invariant {
			count++
			if f.Text == text {
				return
			}
		}
	}
	if count < findingsMax {
		h.mu.findings = append(h.mu.findings, finding{invariant, time.Since(h.begin), h.mu.during, text})
	}
}

// during names the fault that is in force; "" none.
func (h *history) during(fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.during = fault
}

// gap is the longest time without an acknowledged write between two moments.
func (h *history) gap(from, to time.Time) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest, last := time.Duration(0), from
	for _, at := range h.mu.acks {
		if at.Before(from) || at.After(to) {
			continue
		}
		longest, last = max(longest, at.Sub(last)), at
	}
	return max(longest, to.Sub(last))
}

// judge tells what the caller of a change knows after err. An agent that says
// "unavailable" in its own words promises that nothing was done; so does a
// connection that was never made. Silence promises nothing.
func judge(err error) outcome {
	if err == nil {
		return done
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return failed
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unknown
	}
	var told *structs.Error
	if !errors.As(err, &told) || strings.HasPrefix(told.ID, "api.") {
		return unknown
	}
	switch told.Code {
	case structs.CodeInvalid, structs.CodeUnauthorized, structs.CodeForbidden, structs.CodeNotFound, structs.CodeConflict, structs.CodeUnavailable, structs.CodeTooLarge:
		return failed
	default:
		return unknown
	}
}

// forever is the Return of an operation whose answer never came.
const forever = math.MaxInt64
