//go:build linux && !cli

package command

import (
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func TestNextGC(t *testing.T) {
	settle := func(live uint64, share float64) int {
		allowed := serverGC
		for range 100 {
			allowed = nextGC(live, share, allowed)
		}
		return allowed
	}
	for _, test := range []struct {
		name  string
		live  uint64
		share float64
		want  int
	}{
		{"nothing known yet", 0, 0, serverGC},
		{"a small heap", 30 << 20, 0, serverGC},
		{"20,000 jobs and little to do", 100 << 20, 0.01, 64},
		{"a large heap and little to do", 1 << 30, 0.01, serverGCLeast},
		{"thousands of nodes", 1 << 30, 0.2, serverGC},
	} {
		if got := settle(test.live, test.share); got != test.want {
			t.Errorf("%s: %d per cent, not %d", test.name, got, test.want)
		}
	}
	if got := nextGC(1<<30, (serverGCBusy+serverGCQuiet)/2, 77); got != 77 {
		t.Errorf("neither busy nor quiet: 77 becomes %d", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		live, share := rapid.Uint64().Draw(t, "live"), rapid.Float64Range(0, 1).Draw(t, "share")
		allowed := nextGC(live, share, rapid.IntRange(serverGCLeast, serverGC).Draw(t, "allowed"))
		if allowed < serverGCLeast || allowed > serverGC {
			t.Errorf("%d per cent", allowed)
		}
	})
}

// TestLeftoverGoesBack: after a burst and ten quiet seconds, once, and again only
// when as much has come together anew.
func TestLeftoverGoesBack(t *testing.T) {
	const mega = 1 << 20
	var l leftover
	back := func(seconds int, busy float64, live, held uint64) (times int) {
		for range seconds {
			if l.giveBack(busy, live, held) {
				times++
				l.kept = live + live/10
			}
		}
		return times
	}
	for _, step := range []struct {
		name       string
		seconds    int
		busy       float64
		live, held uint64
		want       int
	}{
		{"a burst", 60, 1.8, 144 * mega, 400 * mega, 0},
		{"nearly quiet for long enough", serverFreeAfter - 1, 0.1, 144 * mega, 400 * mega, 0},
		{"busy again", 1, 0.6, 144 * mega, 400 * mega, 0},
		{"quiet", serverFreeAfter, 0.1, 144 * mega, 400 * mega, 1},
		{"there is nothing more", 600, 0.1, 144 * mega, 160 * mega, 0},
		{"little came together", 600, 0.1, 144 * mega, 220 * mega, 0},
		{"another burst", serverFreeAfter, 0.1, 144 * mega, 300 * mega, 1},
		{"a small process", 600, 0, 20 * mega, 80 * mega, 0},
	} {
		if got := back(step.seconds, step.busy, step.live, step.held); got != step.want {
			t.Errorf("%s: %d times, want %d", step.name, got, step.want)
		}
	}
}

// The runtime knows by these names what the pace is measured by.
func TestReadCollection(t *testing.T) {
	before := readCollection()
	for range 3 {
		runtime.GC()
	}
	now := readCollection()
	if share := now.since(before); now.live == 0 || now.collecting <= before.collecting || share <= 0 || share > 1 {
		t.Errorf("%+v after %+v: share %v", now, before, share)
	}
	if share := now.since(now); share != 0 {
		t.Errorf("nothing happened, and collecting took %v of it", share)
	}
}

func TestPaceStops(t *testing.T) {
	t.Cleanup(restorePace())
	synctest.Test(t, func(t *testing.T) {
		env, _, _ := paper()
		env.Getenv = func(string) string { return "" }
		stop := env.paceCollection()
		pause(t.Context(), 3*time.Second) // virtual
		stop()
		env.Getenv = func(string) string { return "100" }
		env.paceCollection()()
	})
}

// restorePace returns a function that restores the process's pace of now.
func restorePace() func() {
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	debug.SetGCPercent(percent)
	return func() {
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
