package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// rooms are the disks of servers whose free space a test decides.
type rooms struct {
	mu struct {
		sync.Mutex
		full map[string]bool // by data directory
	}
}

func (r *rooms) fill(agent *Agent, full bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.full == nil {
		r.mu.full = make(map[string]bool)
	}
	r.mu.full[agent.DataDir()] = full
}

func (r *rooms) free(dir string) (uint64, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.full[filepath.Dir(dir)] {
		return 1 << 20, nil
	}
	return 1 << 40, nil
}

// leaderOf waits for a leader among some servers.
func leaderOf(t testing.TB, among []*Agent) *Agent {
	t.Helper()
	var leader *Agent
	eventually.Within(t, time.Minute, "a leader", func() bool {
		for _, agent := range among {
			if agent.raft.IsLeader() {
				leader = agent
			}
		}
		return leader != nil
	})
	return leader
}

// A leader whose disk is full hands over, writes go on through every agent, and
// everybody is told which server it is; with all disks full, writes are refused
// at once and the refusal names the machine.
func TestServerWithAFullDisk(t *testing.T) {
	var disks rooms
	c := startClusterWith(t, 3, 0, func(t testing.TB) Options {
		options := testOptions(t)
		options.freeBytes = disks.free
		return options
	})
	admin, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	write := func(agent *Agent) error {
		_, err := c.at(t, agent, admin.Secret).CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
		return err
	}
	full := leaderOf(t, c.servers)
	disks.fill(full, true)
	eventually.Within(t, time.Minute, "another server lead", func() bool { return !full.raft.IsLeader() && full.raft.LeaderID() != "" })
	for _, agent := range c.servers {
		if err := write(agent); err != nil {
			t.Errorf("write through %s, while the disk of %s is full: %v", agent.config.Name, full.config.Name, err)
		}
	}
	if health := full.health(); health.Healthy || !strings.Contains(health.Server.Message, full.config.Name) {
		t.Errorf("the server whose disk is full says of itself: %+v", health.Server)
	}
	eventually.Within(t, time.Minute, "autopilot knows whose disk is full", func() bool {
		health, err := c.at(t, c.servers[0], admin.Secret).Autopilot(t.Context())
		if err != nil || health.Healthy {
			return false
		}
		for _, s := range health.Servers {
			if s.DiskFull != (s.ID == full.ID()) || s.Healthy == s.DiskFull {
				return false
			}
		}
		return len(health.Servers) == 3
	})
	eventually.Within(t, time.Minute, "everybody is told whose disk is full", func() bool { // while somebody can write it down
		return toldOf(t, leaderOf(t, c.servers), "event.cluster.server_full", full.config.Name) == 1
	})
	var metrics bytes.Buffer
	if err := c.at(t, full, admin.Secret).Metrics(t.Context(), &metrics); err != nil || !strings.Contains(metrics.String(), "nomadlike_raft_disk_full 1") {
		t.Errorf("metrics of the server whose disk is full: %v", err)
	}

	for _, agent := range c.servers {
		disks.fill(agent, true)
	}
	eventually.Within(t, time.Minute, "every server know that all are full", func() bool {
		for _, agent := range c.servers {
			for _, other := range c.servers {
				if !agent.raft.DiskFull() || !agent.gossip.View(other.ID()).Meta.Full {
					return false
				}
			}
		}
		return true
	})
	for _, agent := range c.servers {
		var refused *structs.Error
		var took time.Duration
		eventually.Within(t, time.Minute, "a refusal by the leader", func() bool {
			begun := time.Now()
			err := write(agent)
			took = time.Since(begun)
			return errors.As(err, &refused) && refused.ID == "server.disk_full"
		})
		leader := leaderOf(t, c.servers)
		if took > 30*time.Second || refused.Params["server"] != leader.config.Name {
			t.Errorf("%s answers after %s: %+v; %s leads", agent.config.Name, took, refused, leader.config.Name)
		}
		t.Logf("refused through %s after %s", agent.config.Name, took)
	}
	var archive bytes.Buffer
	_, err = c.at(t, leaderOf(t, c.servers), admin.Secret).SaveSnapshot(t.Context(), &archive)
	var refused *structs.Error
	if !errors.As(err, &refused) || refused.ID != "agent.disk_full" || archive.Len() > 0 {
		t.Errorf("snapshot save on a full disk: %d bytes, %v", archive.Len(), err)
	}
	for _, agent := range c.servers {
		disks.fill(agent, false)
	}
	eventually.Within(t, time.Minute, "a write with room again", func() bool { return write(c.servers[0]) == nil })
	// Each change was told once, whoever led.
	eventually.Within(t, time.Minute, "everybody is told that there is room again", func() bool {
		return toldOf(t, c.servers[0], "event.cluster.server_room", full.config.Name) == 1
	})
	for _, agent := range c.servers {
		fulls, rooms := toldOf(t, c.servers[0], "event.cluster.server_full", agent.config.Name), toldOf(t, c.servers[0], "event.cluster.server_room", agent.config.Name)
		if fulls > 1 || rooms > fulls || agent == full && fulls != 1 {
			t.Errorf("%s: %d times full, %d times with room again", agent.config.Name, fulls, rooms)
		}
	}
}

// A server whose disk has not a byte left starts: it votes by what it reserved,
// answers what it is asked, and says what is wrong. With room again it writes.
func TestServerStartsOnAFullDisk(t *testing.T) {
	for _, c := range []struct {
		name string
		fill func(*testing.T, string) string
	}{{"no space", fillSpace}, {"no inodes", fillInodes}} {
		t.Run(c.name, func(t *testing.T) {
			dir, ok := smallDisk(t, "size=256m,nr_inodes=2000")
			if !ok {
				return
			}
			settings := serverSettings(dir, "server-0", 1, nil)
			agent := startAgent(t, settings, testOptions(t))
			admin := signedIn(t, agent)
			created, err := admin.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
			if err != nil {
				t.Fatal(err)
			}
			reserve := filepath.Join(dir, serverDir, "reserve")
			eventually.Within(t, time.Minute, "room is reserved", func() bool {
				_, err := os.Stat(reserve)
				return err == nil
			})
			stopAgent(t, agent)

			filler := c.fill(t, dir)
			for range 3 { // each start needs a vote
				agent = startAgent(t, settings, testOptions(t))
				client := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), created.Secret)
				eventually.Within(t, time.Minute, "it answers what it is asked", func() bool {
					_, err := client.SelfToken(t.Context())
					return err == nil
				})
				if health := agent.health(); health.Healthy != (c.name == "no inodes") && !strings.Contains(health.Server.Message, "server-0") {
					t.Errorf("it says of itself: %+v", health.Server)
				}
				stopAgent(t, agent)
			}
			if err := os.RemoveAll(filler); err != nil {
				t.Fatal(err)
			}
			agent = startAgent(t, settings, testOptions(t))
			client := clientFor(t, "https://"+agent.Addr(), string(agent.CA()), created.Secret)
			eventually.Within(t, time.Minute, "it writes", func() bool {
				_, err := client.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
				return err == nil
			})
			eventually.Within(t, time.Minute, "room is reserved again", func() bool {
				_, err := os.Stat(reserve)
				return err == nil
			})
		})
	}
}

// A follower whose disk has not a byte left starts, too: it takes entries into the
// files that are there, forwards writes, and everybody is told which server it is.
func TestFollowerStartsOnAFullDisk(t *testing.T) {
	dir, ok := smallDisk(t, "size=256m,nr_inodes=2000")
	if !ok {
		return
	}
	c := startCluster(t, 3, 0)
	join := readJoin(t, c.servers[0], joinServer)
	follower := startAgent(t, serverSettings(dir, "server-small", 3, &join), testOptions(t))
	votes := func() bool {
		for _, peer := range c.servers[0].raft.Peers() {
			if peer.ID == follower.ID() {
				return peer.Voter
			}
		}
		return false
	}
	eventually.Within(t, time.Minute, "it votes", votes)
	eventually.Within(t, time.Minute, "room is reserved", func() bool {
		_, err := os.Stat(filepath.Join(dir, serverDir, "reserve"))
		return err == nil
	})
	created, err := c.api.CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	settings := again(t, follower, dir, nil)
	stopAgent(t, follower)

	filler := fillSpace(t, dir)
	for range 2 {
		follower = startAgent(t, settings, testOptions(t))
		eventually.Within(t, time.Minute, "a write through it", func() bool {
			_, err := c.at(t, follower, created.Secret).CreateToken(t.Context(), api.TokenRequest{Role: "admin"})
			return err == nil
		})
		eventually.Within(t, time.Minute, "it has what the leader has", func() bool {
			return follower.raft.AppliedIndex() >= leaderOf(t, c.servers).raft.AppliedIndex()
		})
		if health := follower.health(); health.Healthy || !strings.Contains(health.Server.Message, "server-small") {
			t.Errorf("it says of itself: %+v", health.Server)
		}
		stopAgent(t, follower)
	}
	if err := os.RemoveAll(filler); err != nil {
		t.Fatal(err)
	}
	follower = startAgent(t, settings, testOptions(t))
	eventually.Within(t, time.Minute, "it is well with room again", func() bool { return follower.health().Healthy })
}
