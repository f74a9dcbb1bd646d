package agent

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// cluster is three servers and some clients in this process.
type cluster struct {
	servers []*Agent
	clients []*Agent
	api     *api.Client // of an administrator
	token   string      // the administrator's
}

func text(s string) *string { return &s }

// readJoin reads a join token that the founder left in its data directory.
func readJoin(t testing.TB, founder *Agent, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(founder.DataDir(), file))
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(data))
}

func serverSettings(dir, name string, expect int, join *string) config.Settings {
	yes := true
	return config.Settings{Name: &name, DataDir: &dir, JoinToken: join, Server: &config.ServerBlock{Enabled: &yes, BootstrapExpect: &expect}}
}

func clientSettings(dir, name string, join *string) config.Settings {
	yes := true
	return config.Settings{Name: &name, DataDir: &dir, JoinToken: join, Client: &config.ClientBlock{Enabled: &yes}}
}

// startCluster starts everything at once and waits until it is ready.
func startCluster(t testing.TB, servers, clients int) *cluster {
	t.Helper()
	return startClusterWith(t, servers, clients, testOptions)
}

// other is the first of some agents that is not this one.
func other(among []*Agent, than *Agent) *Agent {
	return among[slices.IndexFunc(among, func(agent *Agent) bool { return agent != than })]
}

// startClusterWith does it with options of a test's own.
func startClusterWith(t testing.TB, servers, clients int, testOptions func(testing.TB) Options) *cluster {
	t.Helper()
	c := &cluster{}
	founder := startAgent(t, serverSettings(t.TempDir(), "server-0", servers, nil), testOptions(t))
	c.servers = append(c.servers, founder)
	joinAsServer, joinAsClient := readJoin(t, founder, joinServer), readJoin(t, founder, joinClient)
	for i := 1; i < servers; i++ {
		name := "server-" + string(rune('0'+i))
		c.servers = append(c.servers, startAgent(t, serverSettings(t.TempDir(), name, servers, &joinAsServer), testOptions(t)))
	}
	for i := range clients {
		name := "client-" + string(rune('0'+i))
		c.clients = append(c.clients, startAgent(t, clientSettings(t.TempDir(), name, &joinAsClient), testOptions(t)))
	}
	anonymous := clientFor(t, "https://"+founder.Addr(), string(founder.CA()), "")
	var token *api.NewToken
	eventually.Within(t, time.Minute, "make the first token", func() bool {
		var err error
		token, err = anonymous.BootstrapToken(t.Context(), readJoin(t, founder, setupFile))
		return err == nil
	})
	c.token = token.Secret
	c.api = anonymous.WithToken(c.token)
	eventually.Within(t, time.Minute, "see every node ready", func() bool {
		nodes, _, err := c.api.Nodes(t.Context(), nil)
		ready := 0
		if err == nil {
			for _, node := range nodes.Nodes {
				if node.Schedulable() {
					ready++
				}
			}
		}
		return ready == clients
	})
	return c
}

// at is the administrator's client at one agent.
func (c *cluster) at(t testing.TB, agent *Agent, token string) *api.Client {
	return clientFor(t, "https://"+agent.Addr(), string(agent.CA()), token)
}

func TestClusterOfThreeServersRunsAGang(t *testing.T) {
	begin := time.Now()
	c := startCluster(t, 3, 3)
	t.Logf("cluster ready after %s", time.Since(begin))
	admin, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	peers, err := c.api.RaftPeers(t.Context())
	if err != nil || len(peers.Peers) != 3 {
		t.Fatalf("peers %+v %v", peers, err)
	}
	spread := `
job "gang" {
  nodes = 3
  resources {
    cpu    = 0.1
    memory = "16MiB"
  }
  placement { spread_or_pack = "spread" }
  task {
    driver  = "exec"
    command = "echo rank $NOMADLIKE_RANK of $NOMADLIKE_NODES"
  }
}
`
	// Any agent takes any request: a follower, and a client that passes it on.
	for _, agent := range []*Agent{c.servers[0], c.servers[1], c.servers[2], c.clients[1]} {
		client := c.at(t, agent, admin.Secret)
		begin = time.Now()
		job := runJob(t, client, spread, structs.JobSucceeded)
		t.Logf("gang done after %s", time.Since(begin))
		list, _, err := client.Allocations(t.Context(), job.Job.ID, api.AllocationFilter{}, nil)
		if err != nil || len(list.Allocations) != 3 {
			t.Fatalf("allocations %+v %v", list, err)
		}
		for rank, alloc := range list.Allocations {
			want := "rank " + string(rune('0'+rank)) + " of 3\n"
			if got := logsOf(t, client, alloc.ID, api.LogOptions{}); got != want {
				t.Errorf("rank %d: log %q", rank, got)
			}
		}
	}
}

// A leader that stops in order is replaced, and nothing is lost.
func TestClusterLosesItsLeader(t *testing.T) {
	c := startCluster(t, 3, 1)
	admin, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	before := runJob(t, c.api, hello("true"), structs.JobSucceeded)
	leader := leaderOf(t, c.servers)
	follower := other(c.servers, leader)
	client := c.at(t, follower, admin.Secret)
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), stopTimeout)
	defer cancel()
	if err := leader.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	stopped := time.Since(begin)
	begin = time.Now()
	after, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hello("true")}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("leader stopped in %s, next job accepted after %s more", stopped, time.Since(begin))
	awaitJob(t, client, after.JobID, structs.JobSucceeded)
	if _, _, err := client.Job(t.Context(), before.Job.ID, nil); err != nil {
		t.Errorf("job of before: %v", err)
	}
}

func TestServersJoinLaterAndGetTheirVote(t *testing.T) {
	c := startCluster(t, 1, 0)
	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "server", Uses: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"server-1", "server-2"} {
		startAgent(t, serverSettings(t.TempDir(), name, 1, &token.Join), testOptions(t))
	}
	begin := time.Now()
	eventually.Within(t, time.Minute, "see three voters", func() bool {
		health, err := c.api.Autopilot(t.Context())
		if err != nil || !health.Healthy || len(health.Servers) != 3 || health.FailureTolerance != 1 {
			return false
		}
		for _, one := range health.Servers {
			if !one.Voter {
				return false
			}
		}
		return true
	})
	t.Logf("three voters after %s", time.Since(begin))
	// The token had two uses.
	_, err = joinOnce(t, serverSettings(t.TempDir(), "server-3", 1, &token.Join))
	if structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("third use: %v", err)
	}
}

// joinOnce starts an agent that is expected to fail.
func joinOnce(t testing.TB, settings config.Settings) (*Agent, error) {
	t.Helper()
	zero, loopback := 0, "127.0.0.1"
	config, err := config.Load(nil, config.Settings{Bind: &loopback, Ports: &config.PortsBlock{HTTP: &zero, Gossip: &zero}}.Over(settings), "en")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	agent, err := Start(ctx, config, testOptions(t))
	if err == nil {
		stopAgent(t, agent)
	}
	return agent, err
}
