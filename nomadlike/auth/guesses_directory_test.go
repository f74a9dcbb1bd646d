package auth

import (
	"testing"
	"time"
)

// A directory hears of few wrong passwords of a person, and strangers use up no others
// than their own.
func TestTriesOfADirectory(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	var tries Tries
	for i := range directoryTries {
		if wait := tries.Wait("ann", "", now); wait != 0 {
			t.Fatalf("try %d waits %s", i, wait)
		}
	}
	if wait := tries.Wait("ann", "", now); wait != directoryRefill {
		t.Errorf("the next one waits %s, want %s", wait, directoryRefill)
	}
	if tries.Wait("bob", "", now) != 0 || tries.Wait("ann", "192.0.2.1", now) != 0 {
		t.Error("another person waits, or one who is signed in there")
	}
	heard := 0
	for i := range 3600 {
		if tries.Wait("ann", "", now.Add(time.Duration(i)*time.Second)) == 0 {
			heard++
		}
	}
	if heard != 5 {
		t.Errorf("in an hour a directory hears of %d more, want 5", heard)
	}
	tries.Passed("ann", "")
	if tries.Wait("ann", "", now.Add(time.Hour)) != 0 {
		t.Error("after the right one the next waits")
	}
}
