package agent

import (
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// What a running rank uses is told to whoever may read its job, and cordoning
// a node is in its history.
func TestFiguresOfAJob(t *testing.T) {
	agent, client := devAgent(t)
	job := runJob(t, client, sleeper("measured", "default", "none"), structs.JobRunning)
	eventually.Within(t, time.Minute, "figures of the rank", func() bool {
		figures, err := client.JobFigures(t.Context(), job.Job.ID, 0)
		return err == nil && len(figures.Ranks) == 1 && figures.Ranks[0].Measured && figures.Ranks[0].MemoryUsed > 0 && figures.Ranks[0].Processes > 0
	})
	if _, err := client.JobFigures(t.Context(), job.Job.ID, 1); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a subjob that it has not: %v", err)
	}
	if _, err := client.CordonNode(t.Context(), agent.ID()); err != nil {
		t.Fatal(err)
	}
	events, err := client.NodeEvents(t.Context(), agent.ID())
	if err != nil || len(events.Events) == 0 {
		t.Fatalf("history of the node: %+v %v", events, err)
	}
	for _, event := range events.Events {
		if event.NodeID != agent.ID() || event.JobID != "" {
			t.Errorf("not of the node: %+v", event)
		}
	}
}

// A job file is changed where it is asked, and a job is written as a file that
// is the same job.
func TestFormatOfJobs(t *testing.T) {
	_, client := devAgent(t)
	hcl := "# mine\n" + sleeper("form", "default", "none")
	changed, err := client.FormatJob(t.Context(), api.JobRequest{HCL: hcl, Set: []api.JobChange{{At: "nodes", Value: 3}, {At: "distributed#", Value: "pytorch"}}})
	if err != nil || changed.Job.Nodes != 3 || changed.Job.Distributed.Mode != "pytorch" || !strings.HasPrefix(changed.HCL, "# mine\n") {
		t.Fatalf("%+v %v", changed, err)
	}
	written, err := client.FormatJob(t.Context(), api.JobRequest{Job: changed.Job})
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.ParseJob(t.Context(), api.JobRequest{HCL: written.HCL})
	if err != nil || again.Job.Nodes != 3 || again.Job.Task.Command != changed.Job.Task.Command {
		t.Errorf("%+v %v", again, err)
	}
	for name, request := range map[string]api.JobRequest{
		"change of a job":  {Job: changed.Job, Set: []api.JobChange{{At: "nodes", Value: 1}}},
		"no place":         {HCL: hcl, Set: []api.JobChange{{At: "a..b", Value: 1}}},
		"a file, half":     {HCL: hcl[:40], Set: []api.JobChange{{At: "nodes", Value: 1}}},
		"too many changes": {HCL: hcl, Set: make([]api.JobChange, 1000)},
	} {
		if _, err := client.FormatJob(t.Context(), request); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
