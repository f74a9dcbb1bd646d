package agent

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/structs"
)

// damageLog stops a server and damages its log where nothing mends it: in the
// middle of entries that it has acknowledged. A snapshot tells who the others are.
func damageLog(t *testing.T, c *cluster, n int) config.Config {
	t.Helper()
	server := c.servers[n]
	admin := c.api
	for _, text := range []string{"one", "two", "three"} {
		if _, err := admin.PutProject(t.Context(), &structs.Project{Name: "kept", Description: text}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := server.raft.SnapshotSave(t.Context(), io.Discard); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.PutProject(t.Context(), &structs.Project{Name: "kept", Description: "acknowledged"}); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "have the write at the server", func() bool {
		project := server.store.Snapshot().Project("kept")
		return project != nil && project.Description == "acknowledged"
	})
	config := server.configured
	stopAgent(t, server)
	logs, err := filepath.Glob(filepath.Join(config.DataDir, serverDir, "log", "*.wal"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs: %v, %v", logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	at := bytes.Index(data, []byte("acknowledged"))
	if at < 0 {
		t.Fatal("the entry is not in the log")
	}
	data[at] ^= 0x40
	if err := os.WriteFile(logs[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	return config
}

// throughServer lets the administrator ask one server, and returns the token.
func (c *cluster) throughServer(t *testing.T, n int) (secret string) {
	t.Helper()
	token, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	c.api = c.at(t, c.servers[n], token.Secret)
	return token.Secret
}

// voters are the ids of the servers that vote, as an agent knows them.
func voters(agent *Agent) []string {
	var ids []string
	for _, peer := range agent.raft.Peers() {
		if peer.Voter {
			ids = append(ids, peer.ID)
		}
	}
	return ids
}

// A server whose log is damaged comes back by itself while the others have a
// leader: under a new id, with everything that was acknowledged.
func TestDamagedServerComesBackAsAnother(t *testing.T) {
	const n = 0 // the founder, which must not found again
	c := startCluster(t, 3, 0)
	eventually.Within(t, time.Minute, "have three voters", func() bool { return len(voters(c.servers[1])) == 3 })
	secret := c.throughServer(t, 1)
	old, cluster := c.servers[n].ID(), c.servers[n].identity.credentials.Self.Cluster
	config := damageLog(t, c, n)

	again, err := Start(t.Context(), config, testOptions(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAgent(t, again) })
	if again.ID() == old || again.identity.credentials.Self.Cluster != cluster || again.identity.founder {
		t.Errorf("it is %+v, and was %s", again.identity.credentials.Self, old)
	}
	eventually.Within(t, 2*time.Minute, "be a voter in place of the old one", func() bool {
		ids := voters(c.servers[1])
		return slices.Contains(ids, again.ID()) && !slices.Contains(ids, old) && len(ids) == 3
	})
	if project, _, err := c.at(t, again, secret).Project(t.Context(), "kept", nil); err != nil || project.Project.Description != "acknowledged" {
		t.Errorf("what was acknowledged: %+v, %v", project, err)
	}
	kept, err := filepath.Glob(filepath.Join(config.DataDir, damagedDir+"*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("the damaged log is kept: %v, %v", kept, err)
	}
	if stored, found, err := consensus.ReadIdentity(kept[0]); err != nil || !found || stored.ServerID != old {
		t.Errorf("what is kept is of %+v, %t, %v", stored, found, err)
	}
}

// Without a leader among the others a damaged server changes nothing: what is left
// of its log may be all that there is.
func TestDamagedServerWaitsForALeader(t *testing.T) {
	c := startCluster(t, 3, 0)
	eventually.Within(t, time.Minute, "have three voters", func() bool { return len(voters(c.servers[2])) == 3 })
	config := damageLog(t, c, 0)
	stopAgent(t, c.servers[1])
	eventually.Within(t, time.Minute, "have no leader", func() bool { return c.servers[2].raft.LeaderID() == "" })
	before := allFiles(t, filepath.Join(config.DataDir, identityDir))
	agent, err := Start(t.Context(), config, testOptions(t)) // asks for othersPatience
	if err == nil {
		stopAgent(t, agent)
	}
	if told := (*structs.Error)(nil); !errors.As(err, &told) || told.ID != "agent.refuse.corrupt" {
		t.Fatalf("got %v", err)
	}
	if after := allFiles(t, filepath.Join(config.DataDir, identityDir)); !slices.Equal(before, after) {
		t.Errorf("its identity was changed: %s", strings.Join(after, "\n"))
	}
	if stored, found, err := consensus.ReadIdentity(filepath.Join(config.DataDir, serverDir)); err != nil || !found || stored.ServerID != c.servers[0].ID() {
		t.Errorf("its log is of %+v, %t, %v", stored, found, err)
	}
}

// A crash between the steps is finished by the next start, and an attempt that
// was not begun in earnest changes nothing.
func TestReplacementSurvivesACrash(t *testing.T) {
	c := startCluster(t, 3, 0)
	eventually.Within(t, time.Minute, "have three voters", func() bool { return len(voters(c.servers[1])) == 3 })
	c.throughServer(t, 1)
	config := damageLog(t, c, 2)
	old := c.servers[2].ID()

	if _, err := consensus.EnsureIdentity(filepath.Join(config.DataDir, nextServerDir), c.servers[2].identity.credentials.Self.Cluster); err != nil {
		t.Fatal(err)
	}
	if kept, err := finishReplacement(config.DataDir, time.Now()); kept != "" || err != nil {
		t.Fatalf("an attempt without an identity was finished: %q, %v", kept, err)
	}

	id, err := loadIdentity(config.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := id.becomeAnother(config, time.Now()); err != nil {
		t.Fatal(err)
	}
	again, err := Start(t.Context(), config, testOptions(t)) // after the crash
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopAgent(t, again) })
	if again.ID() == old {
		t.Error("it is still the old one")
	}
	eventually.Within(t, 2*time.Minute, "be a voter in place of the old one", func() bool {
		ids := voters(c.servers[1])
		return slices.Contains(ids, again.ID()) && !slices.Contains(ids, old)
	})
}
