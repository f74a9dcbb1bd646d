package run

import (
	"encoding/json"
	"log/slog"
	"os"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/store"
	"nomadlike/plugins/driver"
)

// Lease ends the strict allocations when the node's lease is over, and keeps it in a
// file for those who watch over them without the agent.
type Lease struct {
	file     string
	session  LeaseSource
	boottime func() time.Duration
	now      func() time.Time
	log      *slog.Logger

	// The loop owns these.
	from time.Duration // as last written
	over bool          // strict allocations were told
}

// LeaseSource has the lease that the servers renew.
type LeaseSource interface {
	Lease() session.Lease
	RestoreLease(session.Lease)
}

// NewLease makes a lease that is kept in a file.
func NewLease(file string, source LeaseSource, boottime func() time.Duration, now func() time.Time, log *slog.Logger) *Lease {
	return &Lease{file: file, session: source, boottime: boottime, now: now, log: log}
}

// File is where the lease is kept.
func (e *Lease) File() string { return e.file }

// leaseRecord is the lease as the file keeps it over a restart of the agent
// within one boot of the machine, in nanoseconds.
type leaseRecord struct {
	TTL  time.Duration `json:"ttl"`
	From time.Duration `json:"from"` // CLOCK_BOOTTIME
}

// Check kills strict allocations when the lease has ended, and keeps
// the lease for the next process of the agent while there are any.
func (e *Lease) Check(l *loop.Loop) {
	if !l.HasStrict() {
		e.over = false
		return
	}
	lease := e.Save(l)
	if lease.Remaining(e.boottime()) > 0 {
		e.over = false
		return
	}
	if !e.over {
		e.over = true
		e.log.Error("lease has ended: strict jobs are killed")
	}
	l.EndLease()
}

// Save writes the lease for the next process of the agent, and for strict
// tasks, while there are any, and returns it.
func (e *Lease) Save(l *loop.Loop) session.Lease {
	lease := e.session.Lease()
	if !l.HasStrict() || lease.From == e.from {
		return lease
	}
	e.from = lease.From
	data, err := json.Marshal(leaseRecord{TTL: lease.TTL, From: lease.From})
	if err == nil {
		err = store.WriteFile(e.file, data, 0o600, false)
	}
	if err != nil {
		e.log.Error("lease is not stored", logkey.Error, err)
	}
	return lease
}

// Restore takes over the lease of an earlier process in this boot.
func (e *Lease) Restore() {
	data, err := os.ReadFile(e.file)
	if err != nil {
		return
	}
	var record leaseRecord
	if err := json.Unmarshal(data, &record); err != nil || record.TTL < 0 || record.From < 0 {
		e.log.Warn("stored lease cannot be read", logkey.Error, err)
		return
	}
	e.session.RestoreLease(session.Lease{TTL: record.TTL, From: record.From})
}

// Fenced reports whether a task was killed while the node had no lease, as who
// watches over a strict task does when the agent is away or stands still. That is
// not the job's fault.
func (e *Lease) Fenced(result driver.ExitResult) bool {
	if result.Signal != "SIGKILL" {
		return false
	}
	ago := e.now().Sub(result.FinishedAt)
	return e.session.Lease().Lapsed(e.boottime() - max(ago, 0))
}
