package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// linkPatience bounds what waits for a look at the network cards, or for a link
// that is up again to count as calm.
const linkPatience = 90 * time.Second

// A node whose RDMA port is lost takes no jobs that need RDMA; one whose ranks
// cannot reach each other any more takes no jobs at all. Everybody sees why, and
// both are over some time after the links are back.
func TestLinksThatAreLost(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		path = filepath.Join(root, "sys/class", path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const port, carrier = "infiniband/mlx5_0/ports/1/state", "net/lo/carrier"
	put(port, "4: ACTIVE")
	put("infiniband/mlx5_0/ports/1/link_layer", "InfiniBand")
	put("infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)")
	put(carrier, "1")
	put("net/lo/device/vendor", "0x15b3") // the interface of this node's ranks has hardware

	c := startCluster(t, 1, 0)
	if _, err := c.api.PutPool(t.Context(), &structs.Pool{Name: structs.PoolDefault, RDMA: true}); err != nil {
		t.Fatal(err)
	}
	join, options := readJoin(t, c.servers[0], joinClient), testOptions(t)
	options.SysRoot = root
	id := startAgent(t, clientSettings(t.TempDir(), "linked", &join), options).ID()
	rdma := func(name string) string {
		submitted, err := c.api.SubmitJob(t.Context(), jobOf(strings.Replace(hello("true"), "resources {", "resources {\n rdma = true\n", 1)), "")
		if err != nil {
			t.Fatal(name, err)
		}
		return submitted.JobID
	}
	awaitJob(t, c.api, rdma("before"), structs.JobSucceeded)

	put(port, "1: DOWN")
	if node := awaitFault(t, c.api, id, "link/mlx5_0:1"); node.RDMA || !node.Schedulable() || node.Faults[0].Reason.ID != "device.link_lost" {
		t.Errorf("without its port the node is %+v", node.Node)
	}
	fast := rdma("without its port")
	awaitWait(t, c.api, fast, "scheduler.no_rdma", "")
	awaitJob(t, c.api, submitShell(t, c.api, "slow", "true"), structs.JobSucceeded)

	put(port, "4: ACTIVE")
	put(carrier, "0")
	if node := awaitFault(t, c.api, id, "link/lo"); node.Schedulable() || node.Attributes["net.fault.lo"] != "device.link_lost" || node.Attributes["net.link"] != "lo" {
		t.Errorf("without its interface the node is %+v", node.Node)
	}
	alone := submitShell(t, c.api, "alone", "true")
	awaitWait(t, c.api, alone, "scheduler.nodes_away", "linked (link/lo)")

	put(carrier, "1")
	eventually.Within(t, linkPatience, "the links are well", func() bool {
		node, _, err := c.api.Node(t.Context(), id, nil)
		return err == nil && node.RDMA && len(node.Faults) == 0
	})
	awaitJob(t, c.api, fast, structs.JobSucceeded)
	awaitJob(t, c.api, alone, structs.JobSucceeded)
	wantNodeEvents(t, c.api, id, "event.node.fault", "event.node.unfit", "event.node.fault_over", "event.node.fault_over")
}

// awaitWait waits until a job waits for a reason, with a text among its words.
func awaitWait(t testing.TB, client *api.Client, id, reason, text string) {
	t.Helper()
	var last *structs.WaitReason
	defer func() {
		if t.Failed() {
			t.Logf("the job waits for %+v", last)
		}
	}()
	eventually.Within(t, linkPatience, "the job says why it waits", func() bool {
		job, _, err := client.Job(t.Context(), id, nil)
		if err != nil {
			return false
		}
		if last = job.Wait; job.State != structs.JobQueued || last == nil || last.ID != reason {
			return false
		}
		for _, word := range last.Params {
			if strings.Contains(word, text) {
				return true
			}
		}
		return text == ""
	})
}
