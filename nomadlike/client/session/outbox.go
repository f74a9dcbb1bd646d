package session

import (
	"slices"

	"nomadlike/nomadlike/structs"
)

// ReportsMax bounds one batch of reports.
const ReportsMax = 512

// BatchesInFlightMax bounds how many batches wait for their
// acknowledgement; further reports wait and replace each other meanwhile.
const BatchesInFlightMax = 8

// Outbox holds the reports that no server has acknowledged. For each
// allocation only the newest report counts, because statuses only move
// forward. It is pure and not safe for concurrent use.
type Outbox struct {
	seq     uint64
	version uint64
	entries map[string]*queued
	order   []string // allocations with something to send, oldest first
	flights map[uint64]map[string]uint64
}

type queued struct {
	report  structs.AllocReport
	version uint64 // grows with every Put
	sent    bool   // this version is on its way
}

// Delivered names a report that the servers have, or refuse for ever.
type Delivered struct {
	AllocID string
	Status  structs.AllocStatus
	Refused bool
}

// Put adds a report, in place of an older one of the same allocation.
func (o *Outbox) Put(r structs.AllocReport) {
	if o.entries == nil {
		o.entries = make(map[string]*queued)
	}
	o.version++
	old, ok := o.entries[r.AllocID]
	if !ok || old.sent {
		o.order = append(o.order, r.AllocID)
	}
	o.entries[r.AllocID] = &queued{report: r, version: o.version}
}

// Waiting tells whether a report could be sent now.
func (o *Outbox) Waiting() bool { return len(o.order) > 0 && len(o.flights) < BatchesInFlightMax }

// InFlight tells how many batches wait for their acknowledgement.
func (o *Outbox) InFlight() int { return len(o.flights) }

// Len is the number of reports that no server has acknowledged.
func (o *Outbox) Len() int { return len(o.entries) }

// Next takes the next batch, nil when there is nothing to send or too many
// batches are on their way.
func (o *Outbox) Next() *structs.ReportBatch {
	if !o.Waiting() {
		return nil
	}
	n := min(len(o.order), ReportsMax)
	o.seq++
	batch := &structs.ReportBatch{Seq: o.seq, Reports: make([]structs.AllocReport, 0, n)}
	flight := make(map[string]uint64, n)
	for _, id := range o.order[:n] {
		e := o.entries[id]
		e.sent = true
		flight[id] = e.version
		batch.Reports = append(batch.Reports, e.report)
	}
	o.order = slices.Clone(o.order[n:])
	if o.flights == nil {
		o.flights = make(map[uint64]map[string]uint64)
	}
	o.flights[o.seq] = flight
	return batch
}

// Ack takes the acknowledgement of a batch and gives the reports that are
// done with, ordered by allocation. An unknown batch gives none.
func (o *Outbox) Ack(ack structs.ReportAck) []Delivered {
	flight, ok := o.flights[ack.Seq]
	if !ok {
		return nil
	}
	delete(o.flights, ack.Seq)
	var done []Delivered
	for id, version := range flight {
		e, ok := o.entries[id]
		if !ok || e.version != version {
			continue // a newer report is waiting or on its way
		}
		delete(o.entries, id)
		done = append(done, Delivered{AllocID: id, Status: e.report.Status, Refused: slices.Contains(ack.Refused, id)})
	}
	slices.SortFunc(done, func(a, b Delivered) int {
		if a.AllocID < b.AllocID {
			return -1
		}
		return 1
	})
	return done
}

// Reset forgets what is on its way, because its stream is gone: every report
// that was not acknowledged will be sent again, in the order of the first
// time.
func (o *Outbox) Reset() {
	o.flights = nil
	o.order = o.order[:0]
	for id, e := range o.entries {
		e.sent = false
		o.order = append(o.order, id)
	}
	slices.SortFunc(o.order, func(a, b string) int {
		if o.entries[a].version < o.entries[b].version {
			return -1
		}
		return 1
	})
}
