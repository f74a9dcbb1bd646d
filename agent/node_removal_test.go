package agent

import (
	"crypto/rand"
	"errors"
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
	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/client"
	"nomadlike/nomadlike/gossip"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// A removed node is shut out at once by servers and by nodes, can never renew,
// kills what it ran and ends; its job goes on elsewhere.
func TestRemovedNodeIsShutOut(t *testing.T) {
	c := startCluster(t, 3, 2)
	length := strconv.Itoa(200000 + os.Getpid()) // of this test's ranks alone
	job := runJob(t, c.api, hello("sleep "+length), structs.JobRunning)
	alloc := allocOf(t, c.api, job.Job.ID)
	victim, other := c.clients[0], c.clients[1]
	if alloc.NodeID == other.ID() {
		victim, other = other, victim
	}
	stolen := victim.ident.Load() // what an attacker copied before
	begin := time.Now()
	if _, err := c.api.RemoveNode(t.Context(), victim.config.Name); err != nil {
		t.Fatal(err)
	}
	call := func(addr string) error {
		pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(stolen)})
		defer pool.Close()
		conn, err := pool.Conn(rpc.Target{Addr: addr})
		if err != nil {
			return err
		}
		_, err = rpc.Ping(t.Context(), conn)
		return err
	}
	for _, agent := range append([]*Agent{other}, c.servers...) {
		eventually.Within(t, time.Minute, "be refused by "+agent.config.Name, func() bool {
			var told *structs.Error
			return errors.As(call(agent.Addr()), &told) && told.ID == "server.node_removed"
		})
		if agent.gossip.View(victim.ID()).State != gossip.StateUnknown && agent.gossip.View(victim.ID()).State != "" {
			t.Errorf("%s hears the removed node: %s", agent.config.Name, agent.gossip.View(victim.ID()).State)
		}
	}
	t.Logf("refused everywhere after %s", time.Since(begin))
	var ended error
	select {
	case ended = <-victim.Failed():
	case <-time.After(time.Minute):
		t.Fatal("the removed agent goes on")
	}
	if !errors.Is(ended, client.ErrRemoved) {
		t.Errorf("the removed agent ended with %v", ended)
	}
	eventually.Within(t, time.Minute, "see the next attempt run elsewhere", func() bool {
		found, _, err := c.api.Job(t.Context(), job.Job.ID, nil)
		if err != nil || found.State != structs.JobRunning || found.Attempt != 2 {
			return false
		}
		return allocOf(t, c.api, job.Job.ID).NodeID == other.ID()
	})
	eventually.Within(t, time.Minute, "see one process of the rank", func() bool { return runningSleeps(t, length) == 1 })
	// No door renews it: neither RPC, nor the proof of its key, nor a join token.
	csr, _, err := auth.NewCSR(auth.RoleClient, victim.ID(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	proof, err := stolen.ProveKey(csr)
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "client"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := auth.ParseJoinToken(token.Join)
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range c.servers {
		door := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), "")
		_, err := door.RenewLapsed(t.Context(), api.RenewRequest{Certificate: string(stolen.ChainPEM()), CSR: string(csr), Proof: proof})
		var told *structs.Error
		if !errors.As(err, &told) || told.ID != "server.node_removed" {
			t.Errorf("renewal at %s: %v", agent.config.Name, err)
		}
		_, err = door.Join(t.Context(), api.JoinRequest{
			TokenID: parsed.ID, Secret: parsed.Secret, Role: "client", AgentID: victim.ID(), Name: "x",
			CSR: string(csr), Certificate: string(stolen.ChainPEM()), Proof: proof,
		})
		if !errors.As(err, &told) || told.ID != "server.node_removed" {
			t.Errorf("join at %s: %v", agent.config.Name, err)
		}
	}
	nodes, _, err := c.api.Nodes(t.Context(), nil)
	if err != nil || len(nodes.Nodes) != 1 {
		t.Errorf("nodes %+v %v", nodes, err)
	}
	if _, err := c.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, job.Job.ID, structs.JobStopped)
}

// runningSleeps counts the processes "sleep N" of this machine.
func runningSleeps(t testing.TB, n string) int {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, path := range lines {
		if line, err := os.ReadFile(path); err == nil && string(line) == "sleep\x00"+n+"\x00" {
			count++
		}
	}
	return count
}

// A second node with the name of one that is alive is refused, and told why.
func TestNodeNamesAreUnique(t *testing.T) {
	c := startCluster(t, 1, 1)
	join := readJoin(t, c.servers[0], joinClient)
	twin := startAgent(t, clientSettings(t.TempDir(), c.clients[0].config.Name, &join), testOptions(t))
	eventually.Within(t, time.Minute, "be refused for the name", func() bool {
		return strings.Contains(twin.health().Client.Message, "another node already has the name client-0")
	})
	if twin.health().Healthy {
		t.Error("the twin calls itself healthy")
	}
	nodes, _, err := c.api.Nodes(t.Context(), nil)
	if err != nil || len(nodes.Nodes) != 1 || nodes.Nodes[0].ID != c.clients[0].ID() {
		t.Errorf("nodes %+v %v", nodes, err)
	}
}

// An agent is killed, its data directory is wiped, and the machine joins again
// while its rank runs on: the rank that nobody knows is found and killed, and
// one attempt of it runs.
func TestWipedNodeThatRejoinsRunsNothingTwice(t *testing.T) {
	c := startCluster(t, 1, 0)
	join := readJoin(t, c.servers[0], joinClient)
	dir, length := filepath.Join(t.TempDir(), "node"), strconv.Itoa(100000+os.Getpid())
	told := processSettings{Dir: dir, HTTP: freePort(t), Gossip: freePort(t), Name: "gpu-1", Join: join, Servers: []string{c.servers[0].Addr()}}
	first := startProcess(t, told)
	job := runJob(t, c.api, hello("sleep "+length), structs.JobRunning)
	before := allocOf(t, c.api, job.Job.ID)
	eventually.Within(t, time.Minute, "see the rank's process", func() bool { return runningSleeps(t, length) == 1 })
	first.end(syscall.SIGKILL)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if n := runningSleeps(t, length); n != 1 {
		t.Fatalf("%d ranks run after the wipe", n)
	}
	second := startProcess(t, told)
	var after structs.Allocation
	eventually.Within(t, time.Minute, "see the next attempt run on the same machine", func() bool {
		after = allocOf(t, c.api, job.Job.ID)
		return after.ID != before.ID && after.NodeID != before.NodeID && after.Status == structs.AllocRunning
	})
	eventually.Within(t, time.Minute, "see one process of the rank", func() bool { return runningSleeps(t, length) == 1 })
	eventually.Within(t, time.Minute, "see nothing of the old one in cgroups", func() bool { return len(cgroupsOf(t, before.ID)) == 0 })
	nodes, _, err := c.api.Nodes(t.Context(), nil)
	if err != nil || len(nodes.Nodes) != 1 || nodes.Nodes[0].ID != after.NodeID {
		t.Errorf("nodes %+v %v", nodes, err)
	}
	if _, err := c.api.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, job.Job.ID, structs.JobStopped)
	eventually.Within(t, time.Minute, "see no process and no cgroup left", func() bool {
		return runningSleeps(t, length) == 0 && len(cgroupsOf(t, after.ID)) == 0
	})
	second.end(syscall.SIGTERM)
	eventually.Within(t, time.Minute, "see no supervisor left", func() bool { return len(supervisorsIn(t, dir)) == 0 })
}

// cgroupsOf lists the cgroups of an allocation's tasks.
func cgroupsOf(t testing.TB, allocID string) []string {
	t.Helper()
	var all []string
	for _, pattern := range []string{"/sys/fs/cgroup/*/nomadlike/%s*", "/sys/fs/cgroup/nomadlike/%s*"} {
		found, err := filepath.Glob(fmt.Sprintf(pattern, allocID))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}

// supervisorsIn lists processes that work below a directory, there or wiped.
func supervisorsIn(t testing.TB, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir+"/") {
			all = append(all, link)
		}
	}
	return all
}
