package consensus

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

func TestWedged(t *testing.T) {
	now := time.Unix(1000, 0)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	cases := []struct {
		name string
		f    follower
		want bool
	}{
		{"caught up and idle", follower{match: 10, contact: ago(0), lastSend: ago(time.Hour)}, false},
		{"behind, raft waits after failures", follower{match: 9, contact: ago(0), lastSend: ago(15 * time.Second)}, false},
		{"behind, nothing sent", follower{match: 9, contact: ago(0), lastSend: ago(16 * time.Second)}, true},
		{"behind, nothing sent while a snapshot is", follower{match: 9, contact: ago(0), lastSend: ago(time.Hour), inFlight: 1}, false},
		{"behind, its disk is slow", follower{match: 9, contact: ago(0), lastSend: ago(8 * time.Second), appending: ago(8 * time.Second), inFlight: 1}, false},
		{"behind, sent and never answered", follower{match: 9, contact: ago(0), lastSend: ago(10 * time.Second), appending: ago(10 * time.Second), inFlight: 1}, true},
		{"behind and down", follower{match: 9, contact: ago(6 * time.Second), lastSend: ago(time.Minute)}, false},
		{"new term", follower{match: 0, contact: ago(0)}, false},
	}
	for _, c := range cases {
		if got := c.f.wedged(now, 10, DefaultTimings()); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// hanging is a network whose entries to one server are taken and never answered,
// while its heartbeats are.
type hanging struct {
	*raft.InmemTransport
	mu struct {
		sync.Mutex
		to raft.ServerID
	}
	released chan struct{}
}

func (h *hanging) hang(to string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.to = raft.ServerID(to)
}

func (h *hanging) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	h.mu.Lock()
	hangs := id == h.mu.to && len(req.Entries) > 0
	h.mu.Unlock()
	if hangs {
		<-h.released
		return errCut
	}
	return h.InmemTransport.AppendEntries(id, target, req, resp)
}

func TestWedgedReplicationEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := make(map[string]*hanging)
		released := make(chan struct{})
		c := newTestCluster(t, 3, func(config *Config) {
			end := &hanging{InmemTransport: config.Transport.(*raft.InmemTransport), released: released}
			ends[config.ID], config.Transport = end, end
		})
		leader := c.leader()
		c.agree()
		ends[leader.id].hang(c.others(leader)[0].id)
		c.propose(leader, "not there")
		hung := time.Now()
		select {
		case code := <-leader.exits:
			if code != exitWedged {
				t.Errorf("exit code %d", code)
			}
			if took := time.Since(hung); took < 5*time.Second || took > 12*time.Second {
				t.Errorf("found after %s", took)
			}
		case <-time.After(time.Minute):
			t.Error("not found within a minute")
		}
		close(released)
	})
}

// A follower is away, for as long as it pleases, and comes back under writes:
// nobody else ends, no write waits, and it has all of them at once.
func TestFollowerWasAway(t *testing.T) {
	for _, away := range []time.Duration{time.Second, 5 * time.Second, 15 * time.Second, time.Minute, 5 * time.Minute} {
		t.Run(away.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestCluster(t, 3, nil)
				leader := c.leader()
				c.agree()
				gone := c.others(leader)[0]
				term := leader.node.Term()
				var gap time.Duration
				write := func(during time.Duration) {
					t.Helper()
					for end := time.Now().Add(during); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
						began := time.Now()
						c.propose(leader, "x")
						gap = max(gap, time.Since(began))
					}
				}
				c.network.Isolate(gone.addr)
				write(away)
				c.network.Heal()
				healed := time.Now()
				index := c.propose(leader, "back").Index
				there := make(chan time.Duration, 1)
				go func() {
					if gone.node.WaitApplied(context.Background(), index) == nil {
						there <- time.Since(healed)
					}
				}()
				write(30 * time.Second)
				if took := <-there; took > time.Second {
					t.Errorf("the follower has the entries %s after its return", took)
				}
				if gap > 0 {
					t.Errorf("a write took %s", gap)
				}
				select {
				case code := <-leader.exits:
					t.Fatalf("the leader exits with %d", code)
				default:
				}
				if leader.node.Term() != term || !leader.node.IsLeader() {
					t.Errorf("another leads, in term %d after %d", leader.node.Term(), term)
				}
			})
		})
	}
}

func TestSlowFollowerGetsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, func(config *Config) {
			config.SnapshotThreshold, config.TrailingLogs, config.SnapshotInterval = 20, 5, 50*time.Millisecond
		})
		leader := c.leader()
		slow := c.others(leader)[0]
		c.propose(leader, "early")
		c.agree()
		c.network.Isolate(slow.addr)
		for i := range 200 {
			c.propose(leader, fmt.Sprint(i))
			if i%20 == 0 {
				time.Sleep(200 * time.Millisecond) // lets the threshold be noticed
			}
		}
		stats := leader.node.Stats()
		if stats.SnapshotIndex < 100 || stats.FirstIndex < 90 {
			t.Fatalf("the leader kept its log: %+v", stats)
		}
		missing := slow.node.AppliedIndex()
		if missing >= stats.FirstIndex {
			t.Fatalf("the slow follower at %d could be served from the log at %d", missing, stats.FirstIndex)
		}
		c.network.Heal()
		if got := c.agree(); len(got) != 201 {
			t.Errorf("cluster holds %d commands", len(got))
		}
		if slow.node.Stats().SnapshotIndex == 0 {
			t.Error("the slow follower got no snapshot")
		}
		// A restart takes the snapshot and the log after it: the same state as
		// all the commands one by one.
		want := slow.ledger.lines()
		for _, s := range c.servers {
			c.crash(s)
		}
		c.network.Heal()
		for _, s := range c.servers {
			c.start(s)
		}
		if got := c.agree(); !slices.Equal(got, want) {
			t.Errorf("after the restart the cluster holds %d commands, before %d", len(got), len(want))
		}
	})
}
