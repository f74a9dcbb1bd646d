package agent

import (
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// portOf is the port in a host:port.
func portOf(t testing.TB, addr string) *int {
	t.Helper()
	_, text, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return &port
}

// again are the settings with which a stopped server starts again where it
// was.
func again(t testing.TB, agent *Agent, dir string, join *string) config.Settings {
	t.Helper()
	settings := serverSettings(dir, agent.config.Name, 3, join)
	settings.Ports = &config.PortsBlock{HTTP: portOf(t, agent.Addr()), Gossip: portOf(t, agent.gossip.Addr())}
	return settings
}

// All servers stop and start again: they find each other without a token, and
// nothing is lost.
func TestClusterComesBackAfterARestartOfAll(t *testing.T) {
	c := startCluster(t, 3, 1)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	job := runJob(t, c.api, hello("sleep 600"), structs.JobRunning)
	var settings []config.Settings
	for _, agent := range c.servers {
		settings = append(settings, again(t, agent, agent.DataDir(), nil))
	}
	var stopping sync.WaitGroup
	for _, agent := range c.servers {
		stopping.Go(func() { stopAgent(t, agent) })
	}
	stopping.Wait()
	begin := time.Now()
	var back []*Agent
	for _, one := range settings {
		back = append(back, startAgent(t, one, testOptions(t)))
	}
	client := c.at(t, back[0], made.Secret)
	found, _, err := client.Job(t.Context(), job.Job.ID, nil) // retried until there is a leader
	if err != nil || found.State != structs.JobRunning || found.Attempt != 1 {
		t.Fatalf("job after the restart: %+v %v", found, err)
	}
	t.Logf("readable again after %s", time.Since(begin))
	eventually.Within(t, time.Minute, "see the node ready again", func() bool {
		node, _, err := client.Node(t.Context(), c.clients[0].ID(), nil)
		return err == nil && node.Status == structs.NodeReady
	})
	if _, err := client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, job.Job.ID, structs.JobStopped)
}

// Of three servers that stop, one stays away: the other two let the node in and
// take jobs, though neither hears which protocol the third speaks.
func TestTwoOfThreeServersComeBack(t *testing.T) {
	c := startCluster(t, 3, 1)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	var settings []config.Settings
	for _, agent := range c.servers {
		settings = append(settings, again(t, agent, agent.DataDir(), nil))
	}
	for _, agent := range c.servers { // one after another: the last sees the others leave
		stopAgent(t, agent)
	}
	first := startAgent(t, settings[1], testOptions(t))
	startAgent(t, settings[2], testOptions(t))
	client := c.at(t, first, made.Secret)
	if _, _, err := client.Nodes(t.Context(), nil); err != nil { // retried until there is a leader
		t.Fatal(err)
	}
	job := runJob(t, client, hello("true"), structs.JobSucceeded)
	if job.Attempt != 1 {
		t.Errorf("the job ended at attempt %d", job.Attempt)
	}
}

// A server whose disk was lost joins anew at its old address: the cluster
// exchanges the old id for the new one and has three voters again.
func TestWipedServerIsReplaced(t *testing.T) {
	c := startCluster(t, 3, 0)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	token, err := c.api.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "server"})
	if err != nil {
		t.Fatal(err)
	}
	kept := leaderOf(t, c.servers)
	lost := other(c.servers, kept)
	settings := again(t, lost, t.TempDir(), nil)
	stopAgent(t, lost)
	if err := os.RemoveAll(lost.DataDir()); err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(token.Join, "@")
	settings.JoinToken = text(secret + "@" + kept.Addr())
	fresh := startAgent(t, settings, testOptions(t))
	if fresh.ID() == lost.ID() || fresh.Addr() != lost.Addr() {
		t.Fatalf("%s at %s came back as %s at %s", lost.ID(), lost.Addr(), fresh.ID(), fresh.Addr())
	}
	client := c.at(t, kept, made.Secret)
	begin := time.Now()
	eventually.Within(t, time.Minute, "see the new server vote and the old one gone", func() bool {
		peers, err := client.RaftPeers(t.Context())
		if err != nil || len(peers.Peers) != 3 {
			return false
		}
		for _, peer := range peers.Peers {
			if peer.ID == lost.ID() || !peer.Voter {
				return false
			}
		}
		return true
	})
	t.Logf("replaced after %s", time.Since(begin))
}
