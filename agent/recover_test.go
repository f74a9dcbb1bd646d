package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// longJob is a job that says once that it began, and stays.
func longJob(name string) string {
	return strings.Replace(hello(`sh -c 'echo began; exec sleep 600'`), `job "hello"`, `job "`+name+`"`, 1)
}

// adopted checks that a job's first attempt still runs, and was started once.
func adopted(t *testing.T, client *api.Client, jobID, allocID string) {
	t.Helper()
	job := awaitJob(t, client, jobID, structs.JobRunning)
	if job.Attempt != 1 || allocOf(t, client, jobID).ID != allocID {
		t.Errorf("attempt %d runs after attempt 1", job.Attempt)
	}
	var log string
	eventually.Within(t, time.Minute, "read the log", func() bool {
		reader, err := client.Logs(t.Context(), allocID, api.LogOptions{})
		if err != nil {
			return false
		}
		defer reader.Close()
		var text bytes.Buffer
		_, err = text.ReadFrom(reader)
		log = text.String()
		return err == nil
	})
	if log != "began\n" {
		t.Errorf("the task says %q", log)
	}
}

// takesWork waits until a node takes work.
func takesWork(t *testing.T, client *api.Client, id string) {
	t.Helper()
	eventually.Within(t, time.Minute, "see the node ready", func() bool {
		node, _, err := client.Node(t.Context(), id, nil)
		return err == nil && node.Schedulable()
	})
}

// Two of three servers lose their disks. The third one still gives its state out,
// is recovered, leads, and the running task is not touched.
func TestRecoverTheLastOfThreeServers(t *testing.T) {
	c := startCluster(t, 3, 1)
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	job := runJob(t, c.api, longJob("stays"), structs.JobRunning)
	alloc := allocOf(t, c.api, job.Job.ID)

	last := c.servers[2]
	eventually.Within(t, time.Minute, "have the last server catch up", func() bool {
		return last.raft.AppliedIndex() >= c.servers[0].raft.AppliedIndex()
	})
	settings := again(t, last, last.DataDir(), nil)
	var stopping sync.WaitGroup
	for _, lost := range c.servers[:2] {
		stopping.Go(func() { stopAgent(t, lost) })
	}
	stopping.Wait()
	for _, lost := range c.servers[:2] {
		if err := os.RemoveAll(lost.DataDir()); err != nil {
			t.Fatal(err)
		}
	}
	alone := c.at(t, last, made.Secret)
	var stale bytes.Buffer
	if _, err := alone.SaveStaleSnapshot(t.Context(), &stale); err != nil {
		t.Errorf("a snapshot without a leader: %v", err)
	}
	if meta, err := alone.InspectSnapshot(t.Context(), bytes.NewReader(stale.Bytes())); err != nil || meta.Index == 0 {
		t.Errorf("it is %+v, %v", meta, err)
	}
	short, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	if _, err := alone.SaveSnapshot(short, &stale); err == nil {
		t.Error("a snapshot of everything acknowledged, without a leader")
	}
	cancel()
	if _, err := Recover(RecoverOptions{DataDir: last.DataDir(), Now: time.Now()}); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("recover a server that runs: %v", err)
	}
	stopAgent(t, last)

	remains, err := Remains(last.DataDir())
	if err != nil || remains.ServerID != last.ID() || len(remains.Peers) != 3 || remains.LastIndex == 0 {
		t.Fatalf("it holds %+v, %v", remains, err)
	}
	done, err := Recover(RecoverOptions{DataDir: last.DataDir(), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(done.Kept); err != nil || done.ID != last.ID() {
		t.Errorf("recovered %+v, %v", done, err)
	}
	back := startAgent(t, settings, testOptions(t))
	client := c.at(t, back, made.Secret)
	takesWork(t, client, c.clients[0].ID())
	adopted(t, client, job.Job.ID, alloc.ID)
	if peers, err := client.RaftPeers(t.Context()); err != nil || len(peers.Peers) != 1 || peers.Peers[0].ID != last.ID() {
		t.Errorf("peers %+v, %v", peers, err)
	}

	// A wiped one joins anew.
	token, err := client.CreateJoinToken(t.Context(), api.JoinTokenRequest{Role: "server"})
	if err != nil {
		t.Fatal(err)
	}
	secret, _, _ := strings.Cut(token.Join, "@")
	startAgent(t, serverSettings(t.TempDir(), "fresh", 3, text(secret+"@"+back.Addr())), testOptions(t))
	eventually.Within(t, time.Minute, "see it vote", func() bool {
		peers, err := client.RaftPeers(t.Context())
		return err == nil && len(peers.Peers) == 2 && peers.Peers[0].Voter && peers.Peers[1].Voter
	})

	// The next attempt has a number that none may have had.
	if _, err := client.DrainNode(t.Context(), c.clients[0].ID(), 0); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "see the task end", func() bool {
		found, _, err := client.Job(t.Context(), job.Job.ID, nil)
		return err == nil && found.State == structs.JobQueued
	})
	if _, err := client.UncordonNode(t.Context(), c.clients[0].ID()); err != nil {
		t.Fatal(err)
	}
	if again := awaitJob(t, client, job.Job.ID, structs.JobRunning); again.Attempt <= 1000 {
		t.Errorf("attempt %d follows attempt 1 and a recovery", again.Attempt)
	}
}

// The only server loses everything but a backup and a copy of its identity. What
// ran at the time of the backup is adopted; what began later ends, and gets a
// new number when it is started again.
func TestRecoverFromABackup(t *testing.T) {
	c := startCluster(t, 1, 1)
	founder, node := c.servers[0], c.clients[0].ID()
	made, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	stays := runJob(t, c.api, longJob("stays"), structs.JobRunning)
	alloc := allocOf(t, c.api, stays.Job.ID)
	if _, err := c.api.CordonNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	waits := runJob(t, c.api, longJob("waits"), structs.JobQueued)
	backup := filepath.Join(t.TempDir(), "backup.snap")
	file, err := os.Create(backup)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.SaveSnapshot(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.UncordonNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	awaitJob(t, c.api, waits.Job.ID, structs.JobRunning)
	forgotten := allocOf(t, c.api, waits.Job.ID)
	unknown := runJob(t, c.api, longJob("unknown"), structs.JobRunning)

	settings := serverSettings(t.TempDir(), "server-0", 1, nil)
	settings.Ports = &config.PortsBlock{HTTP: portOf(t, founder.Addr()), Gossip: portOf(t, founder.gossip.Addr())}
	fresh := *settings.DataDir
	if err := os.CopyFS(filepath.Join(fresh, identityDir), os.DirFS(filepath.Join(founder.DataDir(), identityDir))); err != nil {
		t.Fatal(err)
	}
	stopAgent(t, founder)
	if err := os.RemoveAll(founder.DataDir()); err != nil {
		t.Fatal(err)
	}
	if _, err := Recover(RecoverOptions{DataDir: fresh, Now: time.Now()}); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("without log and backup: %v", err)
	}
	done, err := Recover(RecoverOptions{DataDir: fresh, Snapshot: backup, Addr: founder.Addr(), Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	back := startAgent(t, settings, testOptions(t))
	if back.ID() == founder.ID() || back.ID() != done.ID || back.Addr() != founder.Addr() {
		t.Errorf("server %s at %s came back as %s at %s", founder.ID(), founder.Addr(), back.ID(), back.Addr())
	}
	client := c.at(t, back, made.Secret)
	eventually.Within(t, time.Minute, "hear the node", func() bool {
		found, _, err := client.Node(t.Context(), node, nil)
		return err == nil && len(found.Faults) == 0 && found.Eligibility == structs.NodeCordoned // as the backup says
	})
	if _, err := client.UncordonNode(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	adopted(t, client, stays.Job.ID, alloc.ID)
	again := awaitJob(t, client, waits.Job.ID, structs.JobRunning)
	if next := allocOf(t, client, waits.Job.ID); again.Attempt <= 1000 || next.ID == forgotten.ID {
		t.Errorf("attempt %d follows one that the backup does not know", again.Attempt)
	}
	if _, _, err := client.Job(t.Context(), unknown.Job.ID, nil); structs.CodeOf(err) != structs.CodeNotFound {
		t.Errorf("a job that came after the backup: %v", err)
	}
	// Two tasks run on the node, and none of what the state does not know.
	runs := func() (found int) {
		entries, err := os.ReadDir("/proc")
		if err != nil {
			t.Fatal(err)
		}
		for _, entry := range entries {
			environ, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "environ"))
			comm, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
			if err == nil && strings.TrimSpace(string(comm)) == "sleep" && bytes.Contains(environ, []byte(c.clients[0].DataDir())) {
				found++
			}
		}
		return found
	}
	eventually.Within(t, time.Minute, "see two tasks on the node", func() bool { return runs() == 2 })
}

// A cluster that was founded anew takes the place of one of which only a snapshot
// is left.
func TestForeignRestore(t *testing.T) {
	_, lost := founder(t)
	kept, err := lost.CreateToken(t.Context(), api.TokenRequest{Role: "admin", Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := lost.SaveSnapshot(t.Context(), &archive); err != nil {
		t.Fatal(err)
	}
	agent, admin := founder(t)
	if _, err := admin.RestoreSnapshot(t.Context(), bytes.NewReader(archive.Bytes())); structs.CodeOf(err) != structs.CodeConflict {
		t.Errorf("without being told: %v", err)
	}
	if _, err := admin.RestoreForeignSnapshot(t.Context(), bytes.NewReader(archive.Bytes())); err != nil {
		t.Fatal(err)
	}
	client := admin.WithToken(kept.Secret)
	if _, err := client.SelfToken(t.Context()); err != nil {
		t.Errorf("a token of the snapshot: %v", err)
	}
	if got := agent.store.Snapshot().Cluster(); got.ID != agent.identity.credentials.Self.Cluster {
		t.Errorf("the state says it is of cluster %s", got.ID)
	}
	join := readJoin(t, agent, joinClient)
	node := startAgent(t, clientSettings(t.TempDir(), "node", &join), testOptions(t))
	takesWork(t, client, node.ID())
	runJob(t, client, hello("true"), structs.JobSucceeded)
}

// A gossip key that somebody changed is told at the start: with it the agent would
// find nobody.
func TestChangedGossipKeyIsRefused(t *testing.T) {
	agent, _ := founder(t)
	dir := agent.DataDir()
	stopAgent(t, agent)
	path := filepath.Join(dir, identityDir, gossipKeyFile)
	key, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append([]byte("AAAA"), key[4:]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(dir); err == nil || !strings.Contains(err.Error(), "agent.refuse.gossip_key") {
		t.Errorf("a changed key: %v", err)
	}
	if err := os.WriteFile(path, bytes.TrimSpace(key), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(dir); err != nil {
		t.Errorf("the same key: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, identityDir, gossipSumFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := loadIdentity(dir); err != nil {
		t.Errorf("an identity of an earlier version: %v", err)
	}
}
