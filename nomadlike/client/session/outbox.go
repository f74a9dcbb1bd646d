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

// Bounds of the notes of an outbox.
const (
	NotesMax     = 128  // of one batch
	NotesKeptMax = 1024 // that no server has acknowledged; the oldest are dropped
)

// Outbox holds the reports and notes that no server has acknowledged. For each
// allocation only the newest report counts, because statuses only move
// forward; of notes each one does. Notes go before the reports that were put
// after them. It is pure and not safe for concurrent use.
type Outbox struct {
	notes   []queuedNote // oldest first
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

type queuedNote struct {
	note  structs.AllocNote
	batch uint64 // that it is on its way with; 0: it waits
}

// Delivered names a report that the servers have, or refuse for ever, or, with
// Note set, a note that they have.
type Delivered struct {
	AllocID string
	Status  structs.AllocStatus
	Refused bool
	Note    uint64 // its Seq; 0: a report
}

// PutNote adds a note.
func (o *Outbox) PutNote(n structs.AllocNote) {
	if len(o.notes) >= NotesKeptMax {
		o.notes = slices.Delete(o.notes, 0, 1)
	}
	o.notes = append(o.notes, queuedNote{note: n})
}

// noteWaits reports whether a note could be sent now.
func (o *Outbox) noteWaits() bool {
	return slices.ContainsFunc(o.notes, func(n queuedNote) bool { return n.batch == 0 })
}

// takeNotes returns the notes for a batch.
func (o *Outbox) takeNotes(batch uint64) []structs.AllocNote {
	var taken []structs.AllocNote
	for i := range o.notes {
		if n := &o.notes[i]; n.batch == 0 && len(taken) < NotesMax {
			n.batch = batch
			taken = append(taken, n.note)
		}
	}
	return taken
}

// ackNotes drops the notes of a batch and names them.
func (o *Outbox) ackNotes(batch uint64) []Delivered {
	var done []Delivered
	o.notes = slices.DeleteFunc(o.notes, func(n queuedNote) bool {
		if n.batch != batch {
			return false
		}
		done = append(done, Delivered{AllocID: n.note.AllocID, Note: n.note.Seq})
		return true
	})
	return done
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

// Waiting reports whether a report or a note could be sent now.
func (o *Outbox) Waiting() bool {
	return (len(o.order) > 0 || o.noteWaits()) && len(o.flights) < BatchesInFlightMax
}

// InFlight reports how many batches wait for their acknowledgement.
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
	batch := &structs.ReportBatch{Seq: o.seq, Reports: make([]structs.AllocReport, 0, n), Notes: o.takeNotes(o.seq)}
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

// Ack takes the acknowledgement of a batch and returns the reports that are
// done with, ordered by allocation, after its notes. An unknown batch returns none.
func (o *Outbox) Ack(ack structs.ReportAck) []Delivered {
	flight, ok := o.flights[ack.Seq]
	if !ok {
		return nil
	}
	delete(o.flights, ack.Seq)
	done := o.ackNotes(ack.Seq)
	reports := len(done)
	for id, version := range flight {
		e, ok := o.entries[id]
		if !ok || e.version != version {
			continue // a newer report is waiting or on its way
		}
		delete(o.entries, id)
		done = append(done, Delivered{AllocID: id, Status: e.report.Status, Refused: slices.Contains(ack.Refused, id)})
	}
	slices.SortFunc(done[reports:], func(a, b Delivered) int {
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
	for i := range o.notes {
		o.notes[i].batch = 0
	}
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
