package command

import (
	"fmt"
	"testing"
	"time"
)

// However the bytes come, lines have local times, and what was read of the log
// itself is counted.
func TestLogTimes(t *testing.T) {
	at := time.Date(2026, 11, 23, 9, 30, 5, 120e6, time.UTC)
	local := at.Local().Format(logTimeLayout)
	const log = "one\ntwo words\n\nlast"
	stamped := "2026-11-23T09:30:05.120Z one\n2026-11-23T09:30:05.120Z two words\n- \n2026-11-23T09:30:05.120Z last"
	want := fmt.Sprintf("%s one\n%s two words\n%-23s \n%s last", local, local, "-", local)
	for size := 1; size <= len(stamped); size++ {
		var l logTimes
		shown, own := "", int64(0)
		for rest := []byte(stamped); len(rest) > 0; {
			n := min(size, len(rest))
			part, read := l.read(rest[:n])
			shown, own, rest = shown+string(part), own+read, rest[n:]
		}
		if shown != want || own != int64(len(log)) {
			t.Fatalf("in parts of %d bytes: %q, %d bytes of the log", size, shown, own)
		}
	}

	// A node that knows no times.
	const plain = "one\ntwo words\n\na-word-that-is-longer-than-any-time of it\nlast"
	for size := 1; size <= len(plain); size++ {
		var l logTimes
		shown, own := "", int64(0)
		for rest := []byte(plain + "\n"); len(rest) > 0; {
			n := min(size, len(rest))
			part, read := l.read(rest[:n])
			shown, own, rest = shown+string(part), own+read, rest[n:]
		}
		if want := fmt.Sprintf("%-23s one\n%-23s two words\n%-23s \n%-23s a-word-that-is-longer-than-any-time of it\n%-23s last\n", "-", "-", "-", "-", "-"); shown != want || own != int64(len(plain)+1) {
			t.Fatalf("without times, in parts of %d bytes: %q, %d bytes of the log", size, shown, own)
		}
	}

	// A stream that breaks off within a line, and one that breaks off within a time.
	for cut, from := range map[int]string{len("2026-11-23T09:30:05.120Z one\n2026-11-23T09:30:05.120Z two"): " words\n", len("2026-11-23T09:30:05.120Z one\n2026-11"): "two words\n"} {
		var l logTimes
		first, own := l.read([]byte(stamped[:cut]))
		if log[own:own+int64(len(from))] != from {
			t.Errorf("cut at %d the log goes on at %q", cut, log[own:])
		}
		l.again()
		second, more := l.read([]byte("2026-11-23T09:30:05.120Z " + from))
		if got, want := string(first)+string(second), local+" one\n"+local+" two words\n"; got != want || own+more != int64(len("one\ntwo words\n")) {
			t.Errorf("cut at %d: %q, %d bytes", cut, got, own+more)
		}
	}
}
