package machine

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
)

// This file takes the node out of service by itself when starts of several jobs
// fail there, one after the other, for its own sake: it is quicker to fail than
// others are to succeed, and would swallow everything that waits.

// Bounds of starts that fail.
const (
	startsMost     = 3 // different jobs in a row whose starts fail, until the node takes no more
	startsAwayMin  = 30 * time.Second
	startsAwayMost = 30 * time.Minute
	faultStarts    = "starts"
)

// startWatch counts them. After a while out of service the node is tried: one
// more start that fails keeps it out for twice as long, one that succeeds clears
// it.
type startWatch struct {
	mu struct {
		sync.Mutex
		failed []string        // jobs whose starts failed in a row, each once
		reason *structs.Reason // of the last one
		away   time.Duration   // how long it is out of service this time; 0: it never was
		until  time.Time       // when it comes back
	}
}

// failed takes a start that failed for the node's sake, and reports whether the
// node is out of service now and was not before.
func (w *startWatch) failed(jobID string, cause *structs.Reason, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Before(w.mu.until) {
		return false // it was under way already
	}
	if !slices.Contains(w.mu.failed, jobID) {
		w.mu.failed = append(w.mu.failed, jobID)
	}
	if len(w.mu.failed) < startsMost && w.mu.away == 0 {
		return false
	}
	w.mu.away = min(max(2*w.mu.away, startsAwayMin), startsAwayMost)
	w.mu.until, w.mu.reason, w.mu.failed = now.Add(w.mu.away), cause, nil
	return true
}

// worked takes a start that succeeded.
func (w *startWatch) worked() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.failed, w.mu.reason, w.mu.away, w.mu.until = nil, nil, 0, time.Time{}
}

// faults says what the starts that failed mean for the node.
func (w *startWatch) faults(now time.Time) []structs.NodeFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !now.Before(w.mu.until) {
		return nil
	}
	return []structs.NodeFault{{Name: faultStarts, Unfit: true, Reason: structs.NewReason("client.starts_failed",
		"most", startsMost, "cause", &structs.Error{ID: w.mu.reason.ID, Params: w.mu.reason.Params}, "away", structs.FormatDuration(structs.Duration(w.mu.away)))}}
}

// nodesOwn reports whether a start failed for something of this node that another
// job would meet as well. A storage or a registry that is away, a port that is
// taken, data that does not fit: those say nothing of the node. Pure.
func nodesOwn(cause *structs.Reason) bool {
	switch cause.ID {
	case "client.dir_failed", "client.driver_failed", "client.driver_missing":
		return true
	}
	return strings.HasPrefix(cause.ID, "driver.") || strings.HasPrefix(cause.ID, "docker.")
}

// Starts takes the node out of service when starts of several jobs fail for its
// sake. Any goroutine may use it.
type Starts struct {
	disks *Disks
	node  *Registration
	now   func() time.Time
	log   *slog.Logger
	watch startWatch
}

// NewStarts makes a watch that has seen no start yet.
func NewStarts(disks *Disks, node *Registration, now func() time.Time, log *slog.Logger) *Starts {
	return &Starts{disks: disks, node: node, now: now, log: log}
}

// Failed holds a start that failed against the node, if it was the node's fault: a
// is what was to be started, nil when that is not known.
func (s *Starts) Failed(a *structs.Assignment, cause *structs.Reason, infra bool) {
	if !infra || cause == nil || a == nil || a.Job == nil || !nodesOwn(cause) {
		return
	}
	s.disks.Suspect()
	if s.watch.failed(a.Job.ID, cause, s.now()) {
		s.log.Error("no new work comes here for a while: starts of several jobs failed", logkey.Count, startsMost, logkey.Reason, cause)
	}
	s.Look()
}

// Worked holds a start that succeeded in the node's favour.
func (s *Starts) Worked() {
	s.watch.worked()
	s.Look()
}

// Look registers whether the node is out of service.
func (s *Starts) Look() {
	s.node.SetFaults(faultsOfStarts, s.watch.faults(s.now()))
}
