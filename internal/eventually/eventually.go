// Package eventually waits in tests for what real processes, sockets and
// disks do in their own time. Code that only needs virtual time is tested in
// testing/synctest bubbles instead.
package eventually

import (
	"testing"
	"time"
)

// pollEvery is how often a condition is asked again.
const pollEvery = 5 * time.Millisecond

// Within asks condition again and again until it holds, and fails t with
// what when it has not held before limit has passed.
func Within(t testing.TB, limit time.Duration, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if condition() {
			return
		}
		select {
		case <-deadline.C:
			t.Fatalf("%s: not within %s", what, limit)
		case <-tick.C:
		}
	}
}
