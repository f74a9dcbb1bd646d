package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// smallDisk mounts a file system of its own, or says that it cannot.
func smallDisk(t *testing.T, options string) (dir string, ok bool) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Log("needs root for a disk of its own: not run")
		return "", false
	}
	dir = t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "mode=0711,"+options); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir, true
}

// fillSpace takes all the space of a disk; the file that it returns holds it.
func fillSpace(t *testing.T, dir string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{1 << 20, 4096, 1} { // the last bytes of the last page as well
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = file.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// fillInodes takes all inodes of a disk; the directory that it returns holds them.
func fillInodes(t *testing.T, dir string) string {
	t.Helper()
	filler := filepath.Join(dir, "filler")
	if err := os.Mkdir(filler, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; err == nil; i++ {
		err = os.WriteFile(filepath.Join(filler, fmt.Sprint(i)), nil, 0o600)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return filler
}

// attemptsOn counts the attempts of a job that had a rank on a node.
func attemptsOn(t *testing.T, client *api.Client, jobID, node string) int {
	t.Helper()
	events, _, err := client.JobEvents(t.Context(), jobID, nil)
	if err != nil {
		t.Fatal(err)
	}
	failed := map[uint64]bool{}
	for i := range events.Events {
		if e := &events.Events[i]; strings.HasPrefix(e.ID, "event.alloc.failed") && e.Params["node"] == node {
			failed[e.Attempt] = true
		}
	}
	return len(failed)
}

// besideAnother starts a node on which a job runs, and another one. stop ends
// the job.
func besideAnother(t *testing.T, c *cluster, settings config.Settings) (nodeID, runs string, stop func()) {
	t.Helper()
	nodeID = startAgent(t, settings, testOptions(t)).ID()
	nodeReady(t, c.api, nodeID)
	runs = submitShell(t, c.api, "runs", "sleep 1000")
	awaitJob(t, c.api, runs, structs.JobRunning)
	nodeReady(t, c.api, startAgent(t, clientSettings(t.TempDir(), "other", settings.JoinToken), testOptions(t)).ID())
	return nodeID, runs, func() {
		if _, err := c.api.StopJob(t.Context(), runs, api.JobStopRequest{}); err != nil {
			t.Error(err)
		}
		awaitJob(t, c.api, runs, structs.JobStopped)
	}
}

// submitOn submits a job that takes a node first, and the other one after it.
func submitOn(t *testing.T, client *api.Client, name, node string) string {
	t.Helper()
	submitted, err := client.SubmitJob(t.Context(), jobOf(fmt.Sprintf(`
job %q {
  resources {
    cpu    = 0.1
    memory = "32MiB"
  }
  placement {
    nodes = [%q, "other"]
  }
  task {
    command = "true"
  }
}
`, name, node)), "")
	if err != nil {
		t.Fatal(err)
	}
	return submitted.JobID
}

func nodeReady(t *testing.T, client *api.Client, id string) {
	t.Helper()
	eventually.Within(t, time.Minute, "the node is ready", func() bool {
		node, _, err := client.Node(t.Context(), id, nil)
		return err == nil && node.Schedulable()
	})
}

// Two nodes, of which one has no room or no inodes: nothing is started there
// twice, every job succeeds on the other node, what runs goes on, everybody is
// told, and work comes again when there is room.
func TestNodeWithAFullDisk(t *testing.T) {
	for _, c := range []struct {
		name, options, fault string
		fill                 func(*testing.T, string) string
	}{
		{"no space", "size=64m", "disk/space", fillSpace},
		{"no inodes", "size=64m,nr_inodes=2000", "disk/inodes", fillInodes},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir, ok := smallDisk(t, c.options)
			if !ok {
				return
			}
			cluster := startCluster(t, 1, 0)
			join := readJoin(t, cluster.servers[0], joinClient)
			full, runs, stop := besideAnother(t, cluster, clientSettings(dir, "full", &join))
			defer stop()

			filler := c.fill(t, dir)
			var jobs []string
			for i := range 6 {
				jobs = append(jobs, submitOn(t, cluster.api, fmt.Sprintf("job-%d", i), "full"))
			}
			for _, id := range jobs {
				job := awaitJob(t, cluster.api, id, structs.JobSucceeded)
				if n := attemptsOn(t, cluster.api, id, "full"); n > 1 || job.Subjobs[0].Restarts != 0 {
					t.Errorf("job %s failed %d times on the full node, %d were charged to it", job.Job.Name, n, job.Subjobs[0].Restarts)
				}
			}
			node := awaitFault(t, cluster.api, full, c.fault)
			if node.Schedulable() {
				t.Errorf("the full node takes work: %+v", node.Node)
			}
			if job, _, err := cluster.api.Job(t.Context(), runs, nil); err != nil || job.State != structs.JobRunning {
				t.Errorf("what ran is %+v, %v", job, err)
			}

			if err := os.RemoveAll(filler); err != nil {
				t.Fatal(err)
			}
			eventually.Within(t, time.Minute, "the node takes work again", func() bool {
				node, _, err := cluster.api.Node(t.Context(), full, nil)
				return err == nil && node.Schedulable() && len(node.Faults) == 0
			})
			wantNodeEvents(t, cluster.api, full, "event.node.unfit", "event.node.fault_over")
		})
	}
}

// A node on which no start succeeds, though its disk has room, is left by every
// job after one attempt, and is taken out of service after three.
func TestNodeWhereStartsFail(t *testing.T) {
	cluster := startCluster(t, 1, 0)
	join := readJoin(t, cluster.servers[0], joinClient)
	dir := t.TempDir()
	broken, _, stop := besideAnother(t, cluster, clientSettings(dir, "broken", &join))
	defer stop()

	allocs := filepath.Join(dir, clientDir, "alloc")
	if err := os.Rename(allocs, allocs+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(allocs, nil, 0o600); err != nil { // nothing can be made below it
		t.Fatal(err)
	}
	failed := 0
	for i := range 8 {
		id := submitOn(t, cluster.api, fmt.Sprintf("job-%d", i), "broken")
		job := awaitJob(t, cluster.api, id, structs.JobSucceeded)
		n := attemptsOn(t, cluster.api, id, "broken")
		if n > 1 || job.Subjobs[0].Restarts != 0 {
			t.Errorf("job %s failed %d times on the broken node, %d were charged to it", job.Job.Name, n, job.Subjobs[0].Restarts)
		}
		failed += n
	}
	if failed != 3 {
		t.Errorf("%d jobs met the broken node, want 3", failed)
	}
	node := awaitFault(t, cluster.api, broken, "starts")
	if node.Schedulable() || node.Faults[0].Reason.Params["cause"] == "" {
		t.Errorf("the broken node is %+v", node.Node)
	}
	wantNodeEvents(t, cluster.api, broken, "event.node.unfit")

	if err := os.Remove(allocs); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(allocs+".away", allocs); err != nil {
		t.Fatal(err)
	}
}

// An agent starts on a disk without any room: it finds what runs, which ends as
// it would have, and everybody can ask about it.
func TestAgentStartsOnAFullDisk(t *testing.T) {
	dir, ok := smallDisk(t, "size=64m,nr_inodes=2000")
	if !ok {
		return
	}
	cluster := startCluster(t, 1, 0)
	join := readJoin(t, cluster.servers[0], joinClient)
	settings := clientSettings(dir, "full", &join)
	agent := startAgent(t, settings, testOptions(t))
	id := agent.ID()
	letRoot(t, cluster.api)
	gate := filepath.Join(t.TempDir(), "go")
	stays := submitShell(t, cluster.api, "stays", "echo begun; sleep 1000")
	runs := submitShell(t, cluster.api, "runs", fmt.Sprintf("echo begun; while [ ! -e %s ]; do sleep 0.05; done; exit 0", gate))
	awaitJob(t, cluster.api, stays, structs.JobRunning)
	awaitJob(t, cluster.api, runs, structs.JobRunning)
	before, _, err := cluster.api.Node(t.Context(), id, nil)
	if err != nil {
		t.Fatal(err)
	}

	stopAgent(t, agent)
	fillInodes(t, dir)
	os.Rename(filepath.Join(dir, "filler"), filepath.Join(dir, "inodes"))
	os.Remove(filepath.Join(dir, "inodes", "0"))
	fillSpace(t, dir)
	for range 2 { // the second start finds what the first could not write
		agent = startAgent(t, settings, testOptions(t))
		eventually.Within(t, time.Minute, "the new agent is heard", func() bool {
			seen, _, err := cluster.api.Node(t.Context(), id, nil)
			return err == nil && seen.Status == structs.NodeReady && seen.RegisterIndex > before.RegisterIndex && !seen.Schedulable()
		})
		job, _, err := cluster.api.Job(t.Context(), stays, nil)
		if err != nil || job.State != structs.JobRunning || job.Subjobs[0].Attempt != 1 {
			t.Fatalf("what ran is %+v, %v", job, err)
		}
		if text := logsOf(t, cluster.api, structs.AllocID(stays, 0, 1, 0), api.LogOptions{}); !strings.Contains(text, "begun") {
			t.Errorf("its log is %q", text)
		}
		awaitFault(t, cluster.api, id, "disk/space")
		stopAgent(t, agent)
	}
	startAgent(t, settings, testOptions(t))
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if job := awaitJob(t, cluster.api, runs, structs.JobSucceeded); job.Subjobs[0].Attempt != 1 {
		t.Errorf("what ran was started again: %+v", job)
	}
	if _, err := cluster.api.StopJob(t.Context(), stays, api.JobStopRequest{}); err != nil {
		t.Error(err)
	}
	awaitJob(t, cluster.api, stays, structs.JobStopped)
}
