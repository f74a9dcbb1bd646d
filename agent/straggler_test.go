package agent

import (
	"strings"
	"testing"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// TestAStragglerIsNamed runs a gang on two nodes of which one rank stops making
// steps: it tries something again and again, and says so in its log, while the
// other one waits for it. The gang is found to hang, the rank that is behind is
// named with its node, and the gang starts again.
func TestAStragglerIsNamed(t *testing.T) {
	c := startCluster(t, 1, 2)
	job := runJob(t, c.api, `
job "late" {
  nodes = 2
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  distributed "none" {}
  placement { spread_or_pack = "spread" }
  stop_grace = "1s"
  restart { max_restarts = 1 }
  hang {
    action = "reschedule"
    factor = 3
    least  = "2s"
    most   = "2m"
  }
  task {
    command = <<-EOT
      sh -c '
        for step in 1 2 3 4 5 6 7 8; do
          echo "step $step"
          if [ $NOMADLIKE_ATTEMPT = 1 ] && [ $NOMADLIKE_RANK = 1 ] && [ $step = 6 ]; then
            while :; do echo "no answer, trying again"; sleep 1; done
          fi
          sleep 0.2
        done
        [ $NOMADLIKE_ATTEMPT = 2 ] || sleep 600
      '
    EOT
  }
}
`, structs.JobRunning)
	awaitJob(t, c.api, job.Job.ID, structs.JobSucceeded)
	list, _, err := c.api.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	node := ""
	for _, alloc := range list.Allocations {
		if alloc.Attempt == 1 && alloc.Rank == 1 {
			node = alloc.NodeName
		}
	}
	events, _, err := c.api.JobEvents(t.Context(), job.Job.ID, nil)
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, event := range events.Events {
		if strings.HasPrefix(event.ID, "event.attempt.hangs") {
			told = append(told, event.ID+" "+event.Params["rank"]+" "+event.Params["node"]+" "+event.Params["own"]+" "+event.Params["step"])
		}
	}
	if want := "event.attempt.hangs_steps late-1-1 " + node + " 6 8"; node == "" || len(told) != 1 || told[0] != want {
		t.Errorf("told %q, want %q", told, want)
	}
}
