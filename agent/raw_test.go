package agent

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/exec"
)

// A node that isolates nothing runs processes once an administrator has said so
// in the record of its pool.
func TestRawNodesNeedTheirPool(t *testing.T) {
	raw := exec.IsolationRaw
	needsPool(t, &config.ExecBlock{Isolation: &raw}, "switched off")
}

// So does one that would isolate but cannot: its tasks run no less freely.
func TestNodesThatCanNotIsolateNeedTheirPool(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	needsPool(t, &config.ExecBlock{Root: &missing}, missing)
}

// needsPool starts a node with these settings of exec in a pool, where a job
// waits, with cause among its reasons, until the record of the pool allows it.
func needsPool(t *testing.T, block *config.ExecBlock, cause string) {
	t.Helper()
	c := startCluster(t, 1, 0)
	pool, join := "lab", readJoin(t, c.servers[0], joinClient)
	settings := clientSettings(filepath.Join(openDir(t), "data"), "raw-0", &join)
	settings.Client.Pool, settings.Client.Exec = &pool, block
	node := startAgent(t, settings, testOptions(t))
	eventually.Within(t, time.Minute, "the node is ready", func() bool {
		seen, _, err := c.api.Node(t.Context(), node.ID(), nil)
		return err == nil && seen.Schedulable() && seen.Raw && strings.Contains(seen.Attributes[structs.AttrIsolationReason], cause)
	})
	submitted, err := c.api.SubmitJob(t.Context(), api.JobRequest{HCL: `
job "plain" {
  placement {
    pool = "lab"
  }
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  task {
    command = "true"
  }
}
`}, "")
	if err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the job says why it waits", func() bool {
		job, _, err := c.api.Job(t.Context(), submitted.JobID, nil)
		if err == nil && job.State != structs.JobQueued {
			t.Fatalf("the job is %s", job.State)
		}
		return err == nil && job.Wait != nil && job.Wait.ID == "scheduler.no_raw" && job.Wait.Params["node"] == "raw-0" &&
			strings.Contains(fmt.Sprint(job.Wait.Params["cause"]), cause)
	})
	if _, err := c.api.PutPool(t.Context(), &structs.Pool{Name: pool, Raw: true}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, submitted.JobID, structs.JobSucceeded)
}

// What the node says of its tasks stays true in a development agent; it needs no
// record of a pool.
func TestRawDevelopmentAgent(t *testing.T) {
	yes, raw, data, options := true, exec.IsolationRaw, filepath.Join(openDir(t), "data"), testOptions(t)
	agent := startAgent(t, config.Settings{Dev: &yes, DataDir: &data, Client: &config.ClientBlock{Enabled: &yes, Exec: &config.ExecBlock{Isolation: &raw}}}, options)
	client := loggedIn(t, options)
	runJob(t, client, hello("true"), structs.JobSucceeded)
	node, _, err := client.Node(t.Context(), agent.ID(), nil)
	if err != nil || node.Raw || node.Attributes["driver.exec.isolation"] != "raw" {
		t.Errorf("the node is %+v, %v", node, err)
	}
}
