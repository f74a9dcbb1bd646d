package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// strictNode is a node of a strict job: an agent in a process of its own, whose
// containers outlive it.
type strictNode struct {
	told    processSettings
	process *process
}

// TestStrictJobInContainers is a strict job from its file to its kills. The agent
// of its node stands still, then the next one's is killed; each time the
// container is ended by its lease, with no agent to do it, and only then does the
// job run elsewhere.
func TestStrictJobInContainers(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for the leases of two nodes")
	}
	e, c := startEngine(t), startCluster(t, 1, 0)
	out := t.TempDir()
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	beats := filepath.Join(out, "beats")
	nodes := make(map[string]*strictNode)
	for _, name := range []string{"node-a", "node-b"} {
		n := &strictNode{told: processSettings{
			Dir: t.TempDir(), Name: name, Join: readJoin(t, c.servers[0], joinClient), HTTP: freePort(t), Gossip: freePort(t),
			Docker: e.settings(out).Docker, Program: e.program,
		}}
		n.process = startProcess(t, n.told)
		nodes[name] = n
	}
	awaitDriver(t, c.api, "docker", len(nodes))

	file := contained("strict", `sh -c 'while :; do echo $NOMADLIKE_ATTEMPT $(date +%s%N) >>/out/beats; sleep 0.02; done'`,
		"fencing = \"strict\"\n  mount \"/out\" {\n    source = \""+out+"\"\n  }")
	job := runJob(t, c.api, file, structs.JobRunning)
	awaitBeats(t, beats, 1)
	first := nodeOf(t, c.api, job.Job.ID)

	frozen := time.Now()
	nodes[first].process.signal(syscall.SIGSTOP)
	awaitAttempt(t, c.api, job.Job.ID, 2)
	awaitBeats(t, beats, 2)
	second := nodeOf(t, c.api, job.Job.ID)
	if second == first {
		t.Fatalf("attempt 2 is on %s again, which nobody can reach", first)
	}
	nodes[first].process.signal(syscall.SIGCONT)
	awaitNode(t, c.api, first, structs.NodeReady)

	killed := time.Now()
	nodes[second].process.end(syscall.SIGKILL)
	awaitAttempt(t, c.api, job.Job.ID, 3)
	awaitBeats(t, beats, 3)
	if third := nodeOf(t, c.api, job.Job.ID); third != first {
		t.Errorf("attempt 3 is on %s, which has no agent", third)
	}
	again := nodes[second].told
	again.Join, again.Servers = "", []string{c.servers[0].Addr()}
	nodes[second].process = startProcess(t, again)
	awaitNode(t, c.api, second, structs.NodeReady)

	if _, err := c.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	stopped := awaitJob(t, c.api, job.Job.ID, structs.JobStopped)
	if sub := stopped.Subjobs[0]; stopped.Attempt != 3 || sub.InfraLosses != 2 || sub.Restarts != 0 {
		t.Errorf("attempt %d, %d losses, %d restarts charged", stopped.Attempt, sub.InfraLosses, sub.Restarts)
	}
	eventually.Within(t, time.Minute, "no container is left", func() bool { return !e.has(t, "container", "nomadlike-") })
	for _, n := range nodes {
		n.process.end(syscall.SIGTERM) // in order: it takes its mounts away
	}
	spans := beatsOf(t, beats)
	for number, silenced := range map[int]time.Time{1: frozen, 2: killed} {
		end, next := spans[number].last, spans[number+1].first
		if !next.After(end) {
			t.Errorf("attempt %d beat until %s, attempt %d from %s", number, end, number+1, next)
		}
		// Nobody but the lease ended it: its agent could not, and the servers waited.
		if after := end.Sub(silenced); after < 5*time.Second || after > 14*time.Second {
			t.Errorf("attempt %d ended %s after its agent, whose lease is for 10 s", number, after)
		}
		t.Logf("attempt %d: last beat %s after its agent, next attempt %s later", number, end.Sub(silenced), next.Sub(end))
	}
}

// span is when an attempt beat.
type span struct{ first, last time.Time }

// beatsOf reads when each attempt beat, and fails when two of them did in turns.
func beatsOf(t *testing.T, path string) map[int]span {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spans, newest := make(map[int]span), 0
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		number, at, _ := strings.Cut(lines.Text(), " ")
		attempt, err := strconv.Atoi(number)
		nanos, atErr := strconv.ParseInt(at, 10, 64)
		if err != nil || atErr != nil {
			t.Fatalf("beat %q", lines.Text())
		}
		if attempt < newest {
			t.Fatalf("attempt %d beats after attempt %d began", attempt, newest)
		}
		newest = attempt
		one := spans[attempt]
		if one.first.IsZero() {
			one.first = time.Unix(0, nanos)
		}
		one.last = time.Unix(0, nanos)
		spans[attempt] = one
	}
	return spans
}

func awaitBeats(t *testing.T, path string, attempt int) {
	t.Helper()
	eventually.Within(t, time.Minute, fmt.Sprintf("attempt %d beats", attempt), func() bool {
		text, err := os.ReadFile(path)
		return err == nil && bytes.Count(text, []byte(strconv.Itoa(attempt)+" 1")) > 10
	})
}

// awaitAttempt waits until an attempt of a job runs, for as long as a lease and
// the loss of a node that has no agent take.
func awaitAttempt(t *testing.T, client *api.Client, id string, number uint64) {
	t.Helper()
	eventually.Within(t, 90*time.Second, fmt.Sprintf("attempt %d runs", number), func() bool {
		job, _, err := client.Job(t.Context(), id, nil)
		return err == nil && job.Attempt == number && job.State == structs.JobRunning
	})
}

func awaitNode(t *testing.T, client *api.Client, name string, status structs.NodeStatus) {
	t.Helper()
	eventually.Within(t, time.Minute, name+" is "+string(status), func() bool {
		list, _, err := client.Nodes(t.Context(), nil)
		if err != nil {
			return false
		}
		for _, node := range list.Nodes {
			if node.Name == name {
				return node.Status == status
			}
		}
		return false
	})
}

// nodeOf is where the newest attempt of a job of one node runs.
func nodeOf(t *testing.T, client *api.Client, id string) string {
	t.Helper()
	return allocOf(t, client, id).NodeName
}
