package agent

import (
	"bytes"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

func TestSnapshots(t *testing.T) {
	agent, admin := founder(t)
	kept, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin", Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := admin.SaveSnapshot(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	meta, err := admin.InspectSnapshot(t.Context(), bytes.NewReader(archive.Bytes()))
	if err != nil || meta.Cluster != agent.identity.credentials.Self.Cluster || len(meta.SHA256) != 64 {
		t.Errorf("inspect: %+v %v", meta, err)
	}
	later, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin", Name: "later"})
	if err != nil {
		t.Fatal(err)
	}
	tampered := bytes.Clone(archive.Bytes())
	tampered[len(tampered)/2] ^= 1
	if _, err := admin.RestoreSnapshot(t.Context(), bytes.NewReader(tampered)); structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a tampered snapshot: %v", err)
	}
	_, other := founder(t)
	if _, err := other.RestoreSnapshot(t.Context(), bytes.NewReader(archive.Bytes())); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("a snapshot of another cluster: %v", err)
	}
	if _, err := admin.RestoreSnapshot(t.Context(), bytes.NewReader(archive.Bytes())); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.WithToken(kept.Secret).SelfToken(t.Context()); err != nil {
		t.Errorf("what the snapshot holds: %v", err)
	}
	if _, err := admin.WithToken(later.Secret).SelfToken(t.Context()); structs.CodeOf(err) != structs.CodeUnauthorized {
		t.Errorf("what came after it: %v", err)
	}
}

// Followers and clients pass operators' requests on to the leader.
func TestOperatorsMayAskAnyAgent(t *testing.T) {
	c := startCluster(t, 3, 1)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range append(c.servers, c.clients...) {
		client := c.at(t, agent, made.Secret)
		health, err := client.Autopilot(t.Context())
		if err != nil || !health.Healthy || health.FailureTolerance != 1 {
			t.Errorf("autopilot: %+v %v", health, err)
		}
		var archive bytes.Buffer
		if _, err := client.SaveSnapshot(t.Context(), &archive); err != nil || archive.Len() == 0 {
			t.Errorf("snapshot: %v", err)
		}
		members, err := client.Members(t.Context())
		if err != nil || len(members.Members) != 4 {
			t.Errorf("members: %+v %v", members, err)
		}
	}
	// A load balancer asks without a token which of them lead and which take requests.
	leading := 0
	for _, agent := range append(c.servers, c.clients...) {
		probe := func(what string) string {
			line := rawRequest(t, agent, "GET /v1/health/"+what+" HTTP/1.1\r\nHost: "+agent.Addr()+"\r\n\r\n")
			return strings.TrimPrefix(line, "HTTP/1.1 ")[:3]
		}
		if probe("live") != "200" || probe("ready") != "200" {
			t.Errorf("%s is not ready", agent.config.Name)
		}
		switch said := probe("leader"); {
		case said == "200" && agent.raft != nil:
			leading++
		case said != "503":
			t.Errorf("%s leads: %s", agent.config.Name, said)
		}
	}
	if leading != 1 {
		t.Errorf("%d agents say that they lead", leading)
	}
	// Every server tells of its inside through any of them.
	for _, agent := range c.servers {
		var text bytes.Buffer
		if err := c.at(t, c.servers[0], made.Secret).Debug(t.Context(), &text, agent.ID(), api.DebugAgent, 0); err != nil || !strings.Contains(text.String(), agent.ID()) {
			t.Errorf("the inside of %s: %v %.200s", agent.config.Name, err, text.String())
		}
	}
	// The same check at every agent: no token, no answer.
	for _, agent := range append(c.servers, c.clients...) {
		if _, err := c.at(t, agent, "").Members(t.Context()); structs.CodeOf(err) != structs.CodeUnauthorized {
			t.Errorf("without a token: %v", err)
		}
	}
	var follower string
	for _, agent := range c.servers {
		if !agent.raft.IsLeader() {
			follower = agent.ID()
		}
	}
	if _, err := c.api.RemoveRaftPeer(t.Context(), "nobody"); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("an unknown peer: %v", err)
	}
	if _, err := c.api.RemoveRaftPeer(t.Context(), follower); err != nil {
		t.Error(err)
	}
}

func TestNodesAreDrainedAndCordoned(t *testing.T) {
	agent, client := devAgent(t)
	if _, err := client.CordonNode(t.Context(), agent.config.Name); err != nil {
		t.Fatal(err)
	}
	submitted, err := client.SubmitJob(t.Context(), api.JobRequest{HCL: hello("sleep 600")}, "")
	if err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "see why the job waits", func() bool {
		queue, _, err := client.Queue(t.Context(), nil)
		return err == nil && len(queue.Entries) == 1 && queue.Entries[0].Wait != nil && queue.Entries[0].Position == 1
	})
	plan, err := client.PlanJob(t.Context(), api.JobRequest{HCL: hello("true")})
	if err != nil || plan.StartsNow || plan.Wait == nil {
		t.Errorf("plan on a cordoned node: %+v %v", plan, err)
	}
	if _, err := client.UncordonNode(t.Context(), agent.ID()[:8]); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, submitted.JobID, structs.JobRunning)
	if _, err := client.DrainNode(t.Context(), agent.ID(), 0); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, client, submitted.JobID, structs.JobQueued)
	node, _, err := client.Node(t.Context(), agent.ID(), nil)
	if err != nil || node.Eligibility != structs.NodeDraining {
		t.Errorf("node: %+v %v", node, err)
	}
}

// A plan shows the launch of every rank and touches nothing.
func TestPlanPreviewsAJob(t *testing.T) {
	_, client := devAgent(t)
	plan, err := client.PlanJob(t.Context(), api.JobRequest{HCL: hello("echo hi")})
	if err != nil {
		t.Fatal(err)
	}
	if !plan.StartsNow || plan.Starts != 1 || len(plan.Ranks) != 1 || plan.Ranks[0].Node == "" || plan.Ranks[0].Env["NOMADLIKE_JOB_NAME"] != "hello" {
		t.Errorf("plan %+v", plan)
	}
	node, _, err := client.Node(t.Context(), plan.Ranks[0].Node, nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := node.Node.Attributes["net.interface"]; want == "" || plan.Ranks[0].Env["NCCL_SOCKET_IFNAME"] != want {
		t.Errorf("interface %q, the node's is %q", plan.Ranks[0].Env["NCCL_SOCKET_IFNAME"], want)
	}
	if len(plan.Later) != 1 || plan.Later[0].ID != "launch.later_task" {
		t.Errorf("known later: %+v", plan.Later)
	}
	if got := strings.Join(plan.Ranks[0].Command, " "); got != "echo hi" {
		t.Errorf("command %q", got)
	}
	gang := strings.Replace(hello("true"), `job "hello" {`, "job \"hello\" {\n nodes = 5", 1)
	if plan, err = client.PlanJob(t.Context(), api.JobRequest{HCL: gang}); err != nil || plan.StartsNow || plan.Wait == nil || len(plan.Ranks) != 5 || len(plan.Later) != 2 {
		t.Errorf("a gang of five: %+v %v", plan, err)
	}
	jobs, _, err := client.Jobs(t.Context(), api.JobFilter{}, nil)
	if err != nil || len(jobs.Jobs) != 0 {
		t.Errorf("planning left %+v %v", jobs, err)
	}
}

func TestReloadChangesTheLogLevel(t *testing.T) {
	level := new(slog.LevelVar)
	var out lockedBuffer
	options := testOptions(t)
	options.Log, options.Level = slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level})), level
	agent := startAgent(t, serverSettings(t.TempDir(), "server-0", 1, nil), options)
	next := agent.configured
	next.LogLevel, next.PluginDir = "debug", "/elsewhere"
	agent.reload(next)
	if level.Level() != slog.LevelDebug {
		t.Errorf("level %s", level.Level())
	}
	eventuallyHas(t, &out, "plugin_dir")
	if strings.Contains(out.String(), "log.level") {
		t.Error("the log level was told to need a new start")
	}
}

func TestServiceManagerIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	getenv := func(name string) string { return map[string]string{"NOTIFY_SOCKET": path}[name] }
	if err := tellManager(t.Context(), getenv, readyState()); err != nil {
		t.Fatal(err)
	}
	buffer := make([]byte, 100)
	n, _, err := conn.ReadFrom(buffer)
	if err != nil || !strings.HasPrefix(string(buffer[:n]), "READY=1\nMAINPID=") {
		t.Errorf("%q %v", buffer[:n], err)
	}
	if err := tellManager(t.Context(), func(string) string { return "" }, "READY=1"); err != nil {
		t.Errorf("without a manager: %v", err)
	}
}

func TestHealthAndSelf(t *testing.T) {
	agent, client := devAgent(t)
	health, err := client.WithToken("").Health(t.Context())
	if err != nil || !health.Healthy || !health.Server.OK || !health.Client.OK {
		t.Errorf("health %+v %v", health, err)
	}
	self, err := client.AgentSelf(t.Context())
	if err != nil || self.ID != agent.ID() || len(self.Roles) != 2 || !self.Leader {
		t.Errorf("self %+v %v", self, err)
	}
	var metrics bytes.Buffer
	if err := client.Metrics(t.Context(), &metrics); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nomadlike_raft_leader 1", `nomadlike_nodes{status="ready"} 1`, "nomadlike_http_requests_total", "go_goroutines"} {
		if !strings.Contains(metrics.String(), name) {
			t.Errorf("metrics lack %s", name)
		}
	}
	if _, err := io.Copy(io.Discard, &metrics); err != nil {
		t.Fatal(err)
	}
}
