package consensus

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A process without a processor notices one step where eight have passed, and
// that one too late.
func TestStallCountsWhatWasNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var exits atomic.Int64
		timings := DefaultTimings()
		g := newGuard(Config{Timings: timings, Log: slog.New(slog.DiscardHandler), ExitFunc: func(int) { exits.Add(1) }})
		g.arm(func() {})
		starved := &stall{guard: g, started: time.Now()}
		starved.mu.timer, starved.mu.stepped = time.NewTimer(time.Hour), time.Now()
		for range stallSteps*stallLate - 1 {
			time.Sleep(timings.StallFatal) // late: a step is an eighth of it
			starved.step()
			starved.mu.timer.Stop()
		}
		if exits.Load() != 0 {
			t.Error("a starved process ended itself")
		}
		starved.end()
		starved.step()
		if exits.Load() != 0 {
			t.Error("an operation that was done ended the process")
		}

		done := g.watch("append")
		time.Sleep(timings.StallFatal - time.Millisecond)
		synctest.Wait()
		if exits.Load() != 0 {
			t.Error("the process ended early")
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if exits.Load() != 1 {
			t.Error("a disk that hangs did not end the process")
		}
		done()
	})
}
