package agent

import (
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// TestAGangIsControlledTogether pauses, continues, throttles and finishes a gang of
// processes on three nodes: every rank follows, in the same process.
func TestAGangIsControlledTogether(t *testing.T) {
	const patience = 30 * time.Second
	c := startCluster(t, 1, 3)
	job := runJob(t, c.api, `
job "controlled" {
  nodes = 3
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  distributed "none" {}
  placement { spread_or_pack = "spread" }
  stop_grace = "2s"
  task { command = "sh -c 'while :; do echo $$; sleep 0.02; done'" }
}
`, structs.JobRunning)
	id := job.Job.ID
	list, _, err := c.api.Allocations(t.Context(), id, api.AllocationFilter{}, nil)
	if err != nil || len(list.Allocations) != 3 {
		t.Fatalf("allocations %+v %v", list, err)
	}
	lines := func(alloc structs.Allocation) []string {
		return strings.Fields(logsOf(t, c.api, alloc.ID, api.LogOptions{}))
	}
	runs := func(what string) {
		t.Helper()
		for _, alloc := range list.Allocations {
			since := len(lines(alloc))
			eventually.Within(t, patience, what, func() bool { return len(lines(alloc)) > since+5 })
		}
	}
	stands := func() {
		t.Helper()
		for _, alloc := range list.Allocations {
			before := -1
			eventually.Within(t, patience, "every rank stands still", func() bool {
				window := time.NewTimer(300 * time.Millisecond)
				<-window.C
				now := len(lines(alloc))
				still := now == before
				before = now
				return still
			})
		}
	}
	state := func(want structs.JobState) {
		t.Helper()
		eventually.Within(t, patience, "the job is "+string(want), func() bool {
			detail, _, err := c.api.Job(t.Context(), id, nil)
			return err == nil && detail.State == want
		})
	}
	order := func(_ *api.Changed, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	runs("every rank runs")
	order(c.api.PauseJob(t.Context(), id, api.JobControlRequest{}))
	state(structs.JobPaused)
	stands()
	order(c.api.ContinueJob(t.Context(), id, api.JobControlRequest{}))
	state(structs.JobRunning)
	runs("every rank goes on")
	order(c.api.ThrottleJob(t.Context(), id, api.ThrottleRequest{Busy: structs.Duration(50 * time.Millisecond), Idle: structs.Duration(50 * time.Millisecond)}))
	runs("every rank runs under a throttle")
	order(c.api.PauseJob(t.Context(), id, api.JobControlRequest{}))
	state(structs.JobPaused)
	stands()
	order(c.api.FinishJob(t.Context(), id, api.JobControlRequest{}))
	awaitJob(t, c.api, id, structs.JobSucceeded)
	for _, alloc := range list.Allocations {
		all := lines(alloc)
		for _, pid := range all {
			if pid != all[0] {
				t.Fatalf("rank %d was process %s and is %s", alloc.Rank, all[0], pid)
			}
		}
	}
}
