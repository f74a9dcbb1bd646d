package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// stuckPatience bounds what waits for SIGKILL to have failed, which takes ten
// seconds.
const stuckPatience = 60 * time.Second

// A process that hangs in the kernel outlives its task. What it holds is given to
// nobody: its node takes no new work, says so to everybody, also after a restart
// of its agent, and leaves alone what runs there. It is over with the process.
func TestProcessesThatCanNotBeKilled(t *testing.T) {
	hanging, answer, ok := hangingDir(t)
	if !ok {
		return
	}
	c := startCluster(t, 1, 0)
	letRoot(t, c.api) // what else may open the file that hangs
	join := readJoin(t, c.servers[0], joinClient)
	settings := clientSettings(t.TempDir(), "holder", &join)
	agent := startAgent(t, settings, testOptions(t))
	id := agent.ID()
	neighbour := submitShell(t, c.api, "neighbour", "sleep 1000")
	awaitJob(t, c.api, neighbour, structs.JobRunning)
	victim := submitShell(t, c.api, "victim", fmt.Sprintf("cat %s/file & sleep 0.3", hanging))

	node := awaitFault(t, c.api, id, "processes")
	if node.Schedulable() || !node.Faults[0].Unfit || node.Faults[0].Reason.ID != "client.processes_stuck" || node.Faults[0].Reason.Params["count"] != "1" {
		t.Errorf("the node is %+v", node.Faults)
	}
	eventually.Within(t, stuckPatience, "the victim waits for the node, and says why", func() bool {
		job, _, err := c.api.Job(t.Context(), victim, nil)
		return err == nil && job.State == structs.JobQueued && job.Wait != nil && strings.Contains(fmt.Sprint(job.Wait.Params), "holder (processes)")
	})
	if job, _, err := c.api.Job(t.Context(), neighbour, nil); err != nil || job.State != structs.JobRunning {
		t.Errorf("the neighbour is %+v, %v", job, err)
	}

	stopAgent(t, agent)
	agent = startAgent(t, settings, testOptions(t))
	eventually.Within(t, stuckPatience, "the new agent is heard", func() bool {
		seen, _, err := c.api.Node(t.Context(), id, nil)
		return err == nil && seen.Status == structs.NodeReady && seen.Incarnation > node.Incarnation
	})
	if seen := awaitFault(t, c.api, id, "processes"); seen.Schedulable() {
		t.Errorf("after a restart the node is %+v", seen)
	}
	next := submitShell(t, c.api, "next", "true")

	answer()
	awaitJob(t, c.api, next, structs.JobSucceeded)
	wantNodeEvents(t, c.api, id, "event.node.unfit", "event.node.fault_over")
	if seen, _, err := c.api.Node(t.Context(), agent.ID(), nil); err != nil || len(seen.Faults) != 0 {
		t.Errorf("the node is %+v, %v", seen, err)
	}
	if job, _, err := c.api.Job(t.Context(), neighbour, nil); err != nil || job.State != structs.JobRunning {
		t.Errorf("the neighbour is %+v, %v", job, err)
	}
	awaitJob(t, c.api, victim, structs.JobSucceeded)
	if _, err := c.api.StopJob(t.Context(), neighbour, api.JobStopRequest{}); err != nil {
		t.Error(err)
	}
}

// submitShell submits a job of one small task.
func submitShell(t testing.TB, client *api.Client, name, script string) string {
	t.Helper()
	submitted, err := client.SubmitJob(t.Context(), jobOf(fmt.Sprintf(`
job %q {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = "sh -c %s"
  }
}
`, name, strings.ReplaceAll("'"+script+"'", `"`, `\"`))), "")
	if err != nil {
		t.Fatal(err)
	}
	return submitted.JobID
}

// awaitFault waits until a node has a fault of a name.
func awaitFault(t testing.TB, client *api.Client, id, name string) *api.NodeDetail {
	t.Helper()
	var seen *api.NodeDetail
	eventually.Within(t, stuckPatience, "the node has the fault "+name, func() bool {
		var err error
		seen, _, err = client.Node(t.Context(), id, nil)
		return err == nil && slices.ContainsFunc(seen.Faults, func(f structs.NodeFault) bool { return f.Name == name })
	})
	return seen
}

// wantNodeEvents checks that a node's events have these in this order.
func wantNodeEvents(t testing.TB, client *api.Client, id string, want ...string) {
	t.Helper()
	events, err := client.NodeEvents(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range events.Events {
		if ids = append(ids, events.Events[i].ID); len(want) > 0 && want[0] == events.Events[i].ID {
			want = want[1:]
		}
	}
	if len(want) > 0 {
		t.Errorf("the node's events are %q: %q is missing", ids, want)
	}
}
