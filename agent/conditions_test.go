package agent

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/agent/config"
	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

// toldOf counts the events of the cluster that tell of a server.
func toldOf(t *testing.T, agent *Agent, id, server string) int {
	t.Helper()
	events, _, err := agent.store.Snapshot().EventsAfter(structs.Cursor{})
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, event := range events {
		if event.ID == id && event.Params["server"] == server {
			told++
		}
	}
	return told
}

func TestReported(t *testing.T) {
	for _, c := range []struct {
		name    string
		known   structs.ServerCondition
		said    rpc.Condition
		want    structs.ServerCondition
		changed bool
	}{
		{"nothing", structs.ServerCondition{}, rpc.Condition{Backup: rpc.BackupFine}, structs.ServerCondition{}, false},
		{"full", structs.ServerCondition{}, rpc.Condition{Full: true}, structs.ServerCondition{Full: true}, true},
		{"still full", structs.ServerCondition{Full: true}, rpc.Condition{Full: true}, structs.ServerCondition{Full: true}, false},
		{"room", structs.ServerCondition{Full: true}, rpc.Condition{}, structs.ServerCondition{}, true},
		{"a backup failed", structs.ServerCondition{}, rpc.Condition{Backup: rpc.BackupFailed, Reason: "no"}, structs.ServerCondition{Backup: "no"}, true},
		{"and again, in other words", structs.ServerCondition{Backup: "no"}, rpc.Condition{Backup: rpc.BackupFailed, Reason: "never"}, structs.ServerCondition{Backup: "no"}, false},
		{"started anew, before its first look", structs.ServerCondition{Backup: "no"}, rpc.Condition{}, structs.ServerCondition{Backup: "no"}, false},
		{"made", structs.ServerCondition{Backup: "no"}, rpc.Condition{Backup: rpc.BackupFine}, structs.ServerCondition{}, true},
	} {
		got, changed := reported(c.known, c.said, "")
		if got.ServerCondition != c.want || changed != c.changed {
			t.Errorf("%s: %+v, %t", c.name, got, changed)
		}
	}
	long, _ := reported(structs.ServerCondition{}, rpc.Condition{Backup: rpc.BackupFailed, Reason: strings.Repeat("磁", structs.ServerConditionText)}, "")
	if len(long.Backup) > structs.ServerConditionText {
		t.Errorf("a reason of %d bytes", len(long.Backup))
	}
}

// A backup that fails is told once, by whomever it failed at, and health shows it
// until one is made.
func TestFailedBackupIsTold(t *testing.T) {
	place := filepath.Join(t.TempDir(), "backups")
	if err := os.WriteFile(place, nil, 0o600); err != nil { // no directory
		t.Fatal(err)
	}
	agent := startAgent(t, backedUp(t, place), testOptions(t))
	eventually.Within(t, time.Minute, "the failure is told", func() bool { return toldOf(t, agent, "event.cluster.backup_failed", "server-0") > 0 })
	for range 3 { // attempts that fail as well
		if _, _, err := agent.backups.look(t.Context(), time.Now()); err == nil {
			t.Fatal("a file took backups")
		}
		agent.conditions.tell(t.Context())
	}
	if n := toldOf(t, agent, "event.cluster.backup_failed", "server-0"); n != 1 {
		t.Errorf("told %d times", n)
	}
	client := signedIn(t, agent)
	health, err := client.Autopilot(t.Context())
	if err != nil || len(health.Servers) != 1 || !strings.Contains(health.Servers[0].BackupFailed, place) {
		t.Errorf("health is %+v, %v", health, err)
	}

	if err := os.Remove(place); err != nil {
		t.Fatal(err)
	}
	if _, made, err := agent.backups.look(t.Context(), time.Now()); err != nil || made == "" {
		t.Fatal(made, err)
	}
	eventually.Within(t, time.Minute, "the end of it is told", func() bool { return toldOf(t, agent, "event.cluster.backup_made", "server-0") == 1 })
	if health, err := client.Autopilot(t.Context()); err != nil || health.Servers[0].BackupFailed != "" {
		t.Errorf("health is %+v, %v", health, err)
	}
}

// signedIn is the administrator's client of a server that is alone.
func signedIn(t *testing.T, agent *Agent) *api.Client {
	t.Helper()
	anonymous := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), "")
	token, err := anonymous.BootstrapToken(t.Context(), readJoin(t, agent, setupFile))
	if err != nil {
		t.Fatal(err)
	}
	return anonymous.WithToken(token.Secret)
}

func backedUp(t *testing.T, place string) config.Settings {
	settings := serverSettings(t.TempDir(), "server-0", 1, nil)
	settings.Server.Backup = &config.BackupBlock{Path: &place}
	return settings
}

// A backup that another server made into the shared directory ends the failure.
func TestBackupsOfOthersCount(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	disk := &saver{leader: "x", leads: true, err: errors.New("no")}
	b := &backups{config: config.Backup{Path: dir, Interval: time.Hour, Keep: 3}, cluster: "0123456789", server: "abcdefghij", raft: disk}
	if state, _ := b.state(); state != "" {
		t.Errorf("before the first look: %s", state)
	}
	if _, _, err := b.look(t.Context(), now); err == nil {
		t.Fatal("it was made")
	}
	if state, reason := b.state(); state != rpc.BackupFailed || reason == "" {
		t.Errorf("after a failure: %s %s", state, reason)
	}
	now = now.Add(time.Minute)
	if err := os.WriteFile(filepath.Join(dir, b.prefix()+now.Format(backupStamp)+"-other"+backupEnd), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.look(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	if state, _ := b.state(); state != rpc.BackupFine {
		t.Errorf("beside a new one: %s", state)
	}
}

// A server that says to everybody through gossip that another one is full is not
// believed: that server says itself how it does.
func TestFullIsNotHearsay(t *testing.T) {
	c := startCluster(t, 2, 1)
	leader := leaderOf(t, c.servers)
	other := c.servers[slices.IndexFunc(c.servers, func(a *Agent) bool { return a != leader })]
	eventually.Within(t, time.Minute, "it has said so", func() bool {
		_, ok := leader.conditions.heard(other.ID())
		return ok
	})
	meta := other.gossipMeta()
	meta.Full = true
	if err := other.gossip.UpdateMeta(t.Context(), meta); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "gossip says it is full", func() bool { return leader.gossip.View(other.ID()).Meta.Full })
	if leader.conditions.of(other.ID()).Full {
		t.Error("gossip is believed")
	}
	// A node is told nothing of it.
	conn, err := c.clients[0].pool.Conn(rpc.Target{Addr: other.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := rpc.Ping(t.Context(), conn); err != nil || reply.Condition != (rpc.Condition{}) {
		t.Errorf("a node hears %+v, %v", reply, err)
	}
}
