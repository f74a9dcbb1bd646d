package journal

import (
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"nomadlike/nomadlike/audit"
)

// Records that the disk has no room for are counted; the next one that fits comes
// after a record of the count, and the chain is whole.
func TestLostRecordsAreCounted(t *testing.T) {
	j, err := Open(Config{
		Dir: t.TempDir(), Server: "a", Bounds: audit.Bounds{Keep: time.Hour, SizeMax: 1 << 30}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	good := j.own.mu.out
	full, err := os.Open(good.Name()) // takes nothing
	if err != nil {
		t.Fatal(err)
	}
	j.own.mu.out = full
	for range 3 {
		if j.Append(audit.Record{Action: "jobs.stop", Outcome: audit.Allowed}) == nil {
			t.Fatal("a record was written")
		}
	}
	j.own.mu.out = good
	if _, err := good.WriteAt([]byte(`{"seq":`), j.own.mu.files[0].Size); err != nil { // what had room of the last one
		t.Fatal(err)
	}
	if _, err := good.Seek(0, io.SeekEnd); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(audit.Record{Action: "jobs.move", Outcome: audit.Allowed}); err != nil {
		t.Fatal(err)
	}
	page, err := j.Query(t.Context(), audit.Filter{}, "", 10)
	if err != nil || len(page.Records) != 3 || page.Records[0].Action != "jobs.move" || page.Records[1].Action != audit.ActionLost || page.Records[1].Count != 3 {
		t.Errorf("%+v, %v", page, err)
	}
	if states, err := j.Check(t.Context()); err != nil || states[0].Broken != nil {
		t.Errorf("%+v, %v", states, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
