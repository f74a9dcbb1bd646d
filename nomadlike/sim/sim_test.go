package sim

import (
	"flag"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 200, "the last seed to run")
	from  = flag.Uint64("from", 1, "the first seed to run")
	seed  = flag.Uint64("seed", 0, "run this seed alone")
)

// TestMain collects garbage more rarely: two worlds are small, and a quarter of the
// time went to it.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// TestSeeds runs the cluster under faults, a history for each seed.
func TestSeeds(t *testing.T) {
	first, last := *from, *seeds
	if *seed != 0 {
		first, last = *seed, *seed
	}
	if testing.Short() && last > first+19 && *seed == 0 {
		last = first + 19
	}
	// Each history runs in one goroutine; several run beside each other.
	numbers, outcomes := make(chan uint64), make(chan Outcome)
	for range runtime.GOMAXPROCS(0) {
		go func() {
			for n := range numbers {
				config := Config{Seed: n}
				if *seed != 0 {
					config.Log = os.Stdout
				}
				outcomes <- Run(config)
			}
		}()
	}
	go func() {
		defer close(numbers)
		for n := first; n <= last; n++ {
			numbers <- n
		}
	}()
	ended := make(map[string]int)
	var commits uint64
	grown := 0
	for range last - first + 1 {
		outcome := <-outcomes
		for _, problem := range outcome.Problems {
			t.Errorf("seed %d: %s (show it again with: make sim SEED=%d)", outcome.Seed, problem, outcome.Seed)
		}
		commits += outcome.Commits
		grown += outcome.Grown
		for state, count := range outcome.Ended {
			ended[string(state)] += count
		}
	}
	t.Logf("%d seeds, %d log entries, %d gangs grown, jobs by state: %v", last-first+1, commits, grown, ended)
	if *seed == 0 && ended["succeeded"] == 0 {
		t.Error("no job succeeded: the simulation does not do its work")
	}
	if *seed == 0 && last >= first+19 && grown == 0 {
		t.Error("no gang grew within its range: the simulation does not do its work")
	}
}

// TestSeedsRepeat shows that a seed is one history.
func TestSeedsRepeat(t *testing.T) {
	t.Parallel()
	for n := uint64(1); n <= 5; n++ {
		a, b := Run(Config{Seed: n}), Run(Config{Seed: n})
		if a.Trace != b.Trace || a.Commits != b.Commits {
			t.Errorf("seed %d gave two histories: %x with %d entries, %x with %d", n, a.Trace, a.Commits, b.Trace, b.Commits)
		}
	}
}

// TestCalm runs without faults: then nothing but the user's own failures may
// end badly.
func TestCalm(t *testing.T) {
	t.Parallel()
	for n := uint64(1); n <= 5; n++ {
		outcome := Run(Config{Seed: n, Calm: true})
		for _, problem := range outcome.Problems {
			t.Errorf("seed %d: %s", n, problem)
		}
	}
}

// TestCheckersSee plants defects: a checker that cannot fail is none.
func TestCheckersSee(t *testing.T) {
	cases := []struct {
		planted   Planted
		invariant string
	}{
		{PlantEarlyStart, "I9"},
		{PlantOldSnapshot, "I2:"},
		{PlantOldSnapshot, "I10"},
		{PlantForgottenJob, "I11"},
		{PlantShiftedLog, "I23"},
		{PlantGreedyRotation, "I23"},
		{PlantRewrittenLog, "I23"},
		{PlantOldAttempts, "I12"},
		{PlantLostCommit, "I13"},
		{PlantWallClock, "I13"},
		{PlantForgottenAck, "I4"},
		{PlantUnstableChoice, "I14"},
		{PlantHastyFence, "I3"},
		{PlantHastyRelease, "I7"},
		{PlantForgottenEpoch, "I1:"},
		{PlantChargedInfra, "I19"},
		{PlantEagerStop, "I26"},
		{PlantForgottenRange, "I9"},
		{PlantTimidGrowth, "I11"},
		{PlantLateWindow, "I33"},
		{PlantIdleSweep, "I33"},
	}
	for _, c := range cases {
		t.Run(strings.TrimSuffix(c.invariant, ":")+" "+string(c.planted), func(t *testing.T) {
			t.Parallel()
			for n := uint64(1); n <= 100; n++ {
				for _, problem := range Run(Config{Seed: n, Break: c.planted}).Problems {
					if strings.Contains(problem, c.invariant) {
						t.Logf("seed %d: %s", n, problem)
						return
					}
				}
			}
			t.Error("100 seeds did not find it")
		})
	}
}
