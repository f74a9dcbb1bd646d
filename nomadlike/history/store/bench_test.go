package store

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"testing"
	"time"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// BenchmarkAdd is what a row costs the log, and what it takes of the disk: both rows of an
// attempt, from the call to the segment.
func BenchmarkAdd(b *testing.B) {
	s, err := Open(Config{Dir: b.TempDir(), Keep: 100_000 * time.Hour, SizeMax: 1 << 40, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	begin := structs.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	index, apply := uint64(0), time.Duration(0)
	for b.Loop() {
		index++
		at := begin.Add(time.Duration(index) * 20 * time.Second)
		row := structs.HistoryRow{
			Index: index, Kind: structs.HistoryHolding, JobID: fmt.Sprintf("%032x", index*0x9e3779b97f4a7c15), JobName: fmt.Sprint("train-", index%9000), User: fmt.Sprint("user-", index%400),
			Project: fmt.Sprint("group-", index%50), Pool: "default", Cards: structs.QuotaUsage{"nvidia/gpu/NVIDIA H100 80GB HBM3": 8}, Start: at.Add(-time.Hour), End: at, Node: fmt.Sprint("gpu-", index%200),
		}
		attempt := row
		attempt.Kind, attempt.Ordinal, attempt.Eligible = structs.HistoryAttempt, 1, row.Start.Add(-time.Minute)
		rows := []structs.HistoryRow{row, attempt}
		began := time.Now()
		s.Add(index, rows)
		apply += time.Since(began)
		if index%500 == 0 { // a busy tenth of a second
			if err := s.Sync(); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := s.Sync(); err != nil {
		b.Fatal(err)
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	view := s.View()
	rows, size := view.Rows()
	sealed := 0
	for _, g := range view.segments {
		sealed += g.rows
	}
	b.ReportMetric(float64(apply.Nanoseconds())/float64(b.N), "ns-of-apply/op")
	b.ReportMetric(float64(memory.HeapAlloc)/(1<<20), "MiB-of-heap")
	if sealed > 0 {
		b.ReportMetric(float64(size)/float64(sealed), "B/row")
	}
	began := time.Now()
	uses, err := history.NewUses(history.Question{By: history.ByProject, Per: history.PerMonth, From: begin, To: begin.Add(100_000 * time.Hour)})
	if err != nil {
		b.Fatal(err)
	}
	if err := view.Each(context.Background(), 0, 0, uses.Take); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(time.Since(began).Nanoseconds())/float64(rows), "ns-of-report/row")
}
