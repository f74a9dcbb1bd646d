package main

import (
	"context"
	"errors"
	"maps"
	"math"
	"net"
	"slices"
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
	Key     string // register; "" with Act
	Act     act    // "" of one register; else of all
	Write   bool
	Value   string // written, or read
	Via     string // host that was asked
	Call    int64
	Return  int64
	Outcome outcome
}

// act is what is done to all registers at once.
type act string

const (
	save  act = "save"    // remember the values of this moment
	bring act = "restore" // bring them back
)

// submission is one job as its submitter sees it.
type submission struct {
	Key     string // idempotency key
	Name    string
	ID      string // "" until it was acknowledged
	Project string
	Asked   int64 // nanoseconds since the run began: when the request that was acknowledged began
	Acked   int64 // and when it ended
	Nodes   int
	Lasting bool // ends only when it is stopped
	Stopped bool // somebody stopped it, and was told that it will end
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
	begin  time.Time
	sought []string // invariants of which one finding is enough
	enough func()   // called then
	mu     struct {
		sync.Mutex
		operations  []operation
		submissions []*submission
		acks        []ack // in order
		restores    []restored
		gone        map[string]string // servers that an administrator removed: id to name
		events      map[position]structs.Event
		findings    []finding
		during      string
	}
}

// ack is one write that was acknowledged.
type ack struct{ begun, at time.Time }

// position is an event's place in the order of all events.
type position struct {
	Index uint64
	Seq   int
}

func newHistory(begin time.Time) *history {
	h := &history{begin: begin}
	h.mu.events, h.mu.gone = map[position]structs.Event{}, map[string]string{}
	return h
}

func (h *history) now() int64 { return int64(time.Since(h.begin)) }

func (h *history) operation(o operation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.operations = append(h.mu.operations, o)
}

// acked records that a write was acknowledged.
func (h *history) acked(begun, at time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.acks = append(h.mu.acks, ack{begun, at})
}

// ackedWithin counts the writes that began and were acknowledged in a time.
func (h *history) ackedWithin(from, to time.Time) (count int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, a := range h.mu.acks {
		if a.begun.After(from) && a.at.Before(to) {
			count++
		}
	}
	return count
}

// removed records that an administrator removed a server for good.
func (h *history) removed(id, name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.gone[id] = name
}

// gone are the servers that were removed: id to name.
func (h *history) gone() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.mu.gone)
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
		say("BROKEN %s: %s", invariant, text)
		if slices.Contains(h.sought, invariant) {
			h.enough()
		}
		h.mu.findings = append(h.mu.findings, finding{invariant, time.Since(h.begin), h.mu.during, text})
	}
}

// isFound reports whether one of the findings is sought.
func (h *history) isFound() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.ContainsFunc(h.mu.findings, func(f finding) bool { return slices.Contains(h.sought, f.Invariant) })
}

// isBroken reports whether anything was found.
func (h *history) isBroken() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.mu.findings) > 0
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
	for _, a := range h.mu.acks {
		if a.at.Before(from) || a.at.After(to) {
			continue
		}
		longest, last = max(longest, a.at.Sub(last)), a.at
	}
	return max(longest, to.Sub(last))
}

// judge reports what the caller of a change knows after err. An agent that says
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
