package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/nomadlike/structs"
)

// TestOutboxAgainstTwin drives an outbox with reports, lost streams, late and
// missing acknowledgements, and checks it against what was put in: the newest
// report of each allocation is delivered or still held, never forgotten.
func TestOutboxAgainstTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var box Outbox
		newest := map[string]int{} // allocation -> exit code of its newest report
		arrived := map[string]int{}
		var flying []*structs.ReportBatch
		code := 0
		steps := rapid.IntRange(1, 80).Draw(t, "steps")
		for range steps {
			switch rapid.SampledFrom([]string{"put", "send", "ack", "lose"}).Draw(t, "act") {
			case "put":
				id := fmt.Sprint(rapid.IntRange(0, 4).Draw(t, "alloc"))
				code++
				newest[id] = code
				box.Put(structs.AllocReport{AllocID: id, ExitCode: code})
			case "send":
				if batch := box.Next(); batch != nil {
					flying = append(flying, batch)
				}
			case "ack":
				if len(flying) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "batch")
				for _, r := range flying[i].Reports {
					arrived[r.AllocID] = max(arrived[r.AllocID], r.ExitCode)
				}
				for _, d := range box.Ack(structs.ReportAck{Seq: flying[i].Seq}) {
					if arrived[d.AllocID] != newest[d.AllocID] {
						t.Fatalf("%s counts as delivered, the newest report is not", d.AllocID)
					}
				}
				flying = append(flying[:i], flying[i+1:]...)
			case "lose":
				box.Reset()
				flying = nil
			}
		}
		// A good connection at last delivers everything.
		box.Reset()
		for range steps + 1 {
			batch := box.Next()
			if batch == nil {
				break
			}
			for _, r := range batch.Reports {
				arrived[r.AllocID] = max(arrived[r.AllocID], r.ExitCode)
			}
			box.Ack(structs.ReportAck{Seq: batch.Seq})
		}
		if box.Len() != 0 {
			t.Fatalf("%d reports are left", box.Len())
		}
		for id, want := range newest {
			if arrived[id] != want {
				t.Fatalf("%s: report %d never arrived, the last was %d", id, want, arrived[id])
			}
		}
	})
}

func TestOutboxBounds(t *testing.T) {
	var box Outbox
	for i := range 3 * ReportsMax {
		box.Put(structs.AllocReport{AllocID: fmt.Sprint(i)})
	}
	for i := range 3 {
		if batch := box.Next(); len(batch.Reports) != ReportsMax {
			t.Fatalf("batch %d has %d reports", i, len(batch.Reports))
		}
	}
	for i := range 2 * BatchesInFlightMax {
		box.Put(structs.AllocReport{AllocID: fmt.Sprint("late", i)})
		box.Next()
	}
	if box.InFlight() != BatchesInFlightMax {
		t.Fatalf("%d batches in flight", box.InFlight())
	}
}

func TestOrderSpreadsAndStays(t *testing.T) {
	servers := []string{"10.0.0.1:4646", "10.0.0.2:4646", "10.0.0.3:4646"}
	first := map[string]int{}
	for i := range 3000 {
		id := fmt.Sprintf("%032x", i)
		order := Order(id, servers)
		first[order[0]]++
		without := Order(id, servers[:2])
		var kept []string
		for _, addr := range order {
			if addr != servers[2] {
				kept = append(kept, addr)
			}
		}
		if fmt.Sprint(kept) != fmt.Sprint(without) {
			t.Fatalf("node %s: order %v became %v when one server left", id, order, without)
		}
	}
	for addr, n := range first {
		if n < 900 || n > 1100 {
			t.Errorf("%s is the first choice of %d of 3000 nodes", addr, n)
		}
	}
	if got := Order("n", []string{"a", "a", "b", "a"}); len(got) != 2 {
		t.Errorf("repeated servers stay repeated: %v", got)
	}
}

func TestBackoffBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tried := rapid.IntRange(1, 1000).Draw(t, "tried")
		known := rapid.IntRange(0, 9).Draw(t, "known")
		outage := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "outage"))
		wait := Backoff(tried, known, outage, rapid.Float64Range(0, 0.999).Draw(t, "chance"))
		switch {
		case wait < 0 || wait >= MassLossRetryMax:
			t.Fatalf("wait %s", wait)
		case outage < MassLossAfter && wait >= RetryMax:
			t.Fatalf("wait %s before the outage counts as one", wait)
		case known > 0 && tried%known != 0 && wait != 0:
			t.Fatalf("wait %s with servers left to try", wait)
		}
	})
}

func TestLease(t *testing.T) {
	var none Lease
	if none.Remaining(1<<40) <= 0 {
		t.Error("no lease counts as ended")
	}
	l := Lease{TTL: 5 * time.Second}.Renew(100 * time.Second).Renew(99 * time.Second)
	if got := l.Remaining(104 * time.Second); got != time.Second {
		t.Errorf("remaining %s, want 1s", got)
	}
	if got := l.Remaining(106 * time.Second); got > 0 {
		t.Errorf("remaining %s after the end", got)
	}
}

func TestNotesGoOnceAndBeforeWhatIsReportedAfterThem(t *testing.T) {
	var o Outbox
	note := func(seq uint64) structs.AllocNote { return structs.AllocNote{AllocID: "a", Seq: seq} }
	o.PutNote(note(1))
	o.PutNote(note(2))
	o.Put(structs.AllocReport{AllocID: "a", Status: structs.AllocComplete})
	first := o.Next()
	if len(first.Notes) != 2 || len(first.Reports) != 1 || o.Next() != nil {
		t.Fatalf("first batch %+v", first)
	}
	o.PutNote(note(3))
	o.Reset() // the stream broke: all of it goes again, in its order
	again := o.Next()
	if len(again.Notes) != 3 || again.Notes[0].Seq != 1 || again.Notes[2].Seq != 3 {
		t.Fatalf("again %+v", again)
	}
	want := []Delivered{{AllocID: "a", Note: 1}, {AllocID: "a", Note: 2}, {AllocID: "a", Note: 3}, {AllocID: "a", Status: structs.AllocComplete}}
	if done := o.Ack(structs.ReportAck{Seq: again.Seq}); !slices.Equal(done, want) {
		t.Errorf("done %+v", done)
	}
	for seq := range uint64(NotesKeptMax + 5) {
		o.PutNote(note(seq + 10))
	}
	if batch := o.Next(); len(batch.Notes) != NotesMax || batch.Notes[0].Seq != 15 {
		t.Errorf("of too many: %d from %d", len(batch.Notes), batch.Notes[0].Seq)
	}
}
