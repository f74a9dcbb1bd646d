package store

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"nomadlike/nomadlike/history"
	"nomadlike/nomadlike/structs"
)

// count is the number of rows that a look finds.
func count(t *testing.T, s *Store) int {
	t.Helper()
	rows := 0
	err := s.View().Each(context.Background(), 0, 0, func(part history.Columns) error {
		rows += part.Len()
		_, err := part.Texts("user")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// Months that are not kept any more are removed, and so are the oldest where there is no
// room; what was removed is no gap that anybody would fetch, also after a start.
func TestOldRowsAreRemoved(t *testing.T) {
	now := time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)
	config := Config{Dir: t.TempDir(), Keep: 70 * 24 * time.Hour, SizeMax: 1 << 30, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	index := uint64(0)
	for month := time.January; month <= time.July; month++ {
		for range 10 {
			index++
			end := structs.At(time.Date(2026, month, 1, int(index), 0, 0, 0, time.UTC))
			s.Add(index, []structs.HistoryRow{{Index: index, Kind: structs.HistoryAttempt, User: "ann", Start: end - 1, End: end}})
		}
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
	}
	if got := count(t, s); got != 70 {
		t.Fatalf("%d rows", got)
	}
	again := func(want int) {
		t.Helper()
		if err := s.Expire(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, gaps := count(t, s), s.Gaps(); got != want || len(gaps) > 0 {
				t.Errorf("%d rows, gaps %v, want %d", got, gaps, want)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if s, err = Open(config); err != nil {
				t.Fatal(err)
			}
		}
	}
	again(30) // of May, June, July
	config.SizeMax = 1
	if s, err = Open(config); err != nil {
		t.Fatal(err)
	}
	if before := count(t, s); before != 30 {
		t.Fatalf("%d rows", before)
	}
	segments, err := filepath.Glob(filepath.Join(config.Dir, "*"+segmentSuffix))
	if err != nil || len(segments) == 0 {
		t.Fatalf("segments %v, %v", segments, err)
	}
	tail := 30
	for range segments {
		tail -= 10
	}
	again(tail)
	s.Add(index+1, []structs.HistoryRow{{Index: index + 1, Kind: structs.HistoryAttempt, User: "ben", Start: 1, End: 2}})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(config); err != nil {
		t.Fatal(err)
	}
	if got := count(t, s); got != tail+1 {
		t.Errorf("%d rows", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// What comes after the end is written beside what there is.
func TestAddAfterClose(t *testing.T) {
	config := Config{Dir: t.TempDir(), Keep: time.Hour, SizeMax: 1 << 30, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	s, err := Open(config)
	if err != nil {
		t.Fatal(err)
	}
	row := func(index uint64) []structs.HistoryRow {
		return []structs.HistoryRow{{Index: index, Kind: structs.HistoryAttempt, Start: 1, End: 2}}
	}
	s.Add(1, row(1))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.Add(2, row(2))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(config); err != nil {
		t.Fatal(err)
	}
	if got := count(t, s); got != 2 {
		t.Errorf("%d rows", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(config.Dir); len(left) != 1 {
		t.Errorf("files %v", left)
	}
}
