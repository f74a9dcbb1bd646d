package consensus

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// disks has the free space of each server of a cluster.
type disks struct {
	mu struct {
		sync.Mutex
		full map[string]bool
	}
}

func (d *disks) fill(id string, full bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.full == nil {
		d.mu.full = make(map[string]bool)
	}
	d.mu.full[id] = full
}

func (d *disks) full(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.mu.full[id]
}

func (d *disks) of(config *Config) {
	id := config.ID
	config.MinFreeBytes = 1 << 20
	config.Full = d.full
	config.FreeBytes = func(string) (uint64, error) {
		if d.full(id) {
			return 0, nil
		}
		return 1 << 30, nil
	}
}

func TestLeaderWithoutRoomHandsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rooms disks
		c := newTestCluster(t, 3, rooms.of)
		for round := range 6 { // each server gets its turn, and leads again: raft's own transfer would refuse writes then
			old := c.leader()
			c.propose(old, fmt.Sprint("before ", round))
			rooms.fill(old.id, true)
			filled := time.Now()
			for old.node.IsLeader() && time.Since(filled) < time.Minute {
				time.Sleep(5 * time.Millisecond)
			}
			if took := time.Since(filled); took > 1100*time.Millisecond {
				t.Fatalf("round %d: %s still leads after %s", round, old.id, took)
			}
			lost := time.Now()
			fresh := c.leader(c.others(old)...)
			c.propose(fresh, fmt.Sprint("after ", round))
			if took := time.Since(lost); took > 50*time.Millisecond {
				t.Errorf("round %d: next write %s after the hand-over", round, took)
			}
			// A follower without room is no leader, and says who is.
			var notLeader *NotLeaderError
			if _, err := old.node.Propose(t.Context(), []byte("x")); !errors.As(err, &notLeader) || notLeader.LeaderID != fresh.id {
				t.Errorf("round %d: a follower without room answers %v", round, err)
			}
			if !old.node.Stats().DiskFull || fresh.node.Stats().DiskFull {
				t.Errorf("round %d: stats do not tell who has no room", round)
			}
			rooms.fill(old.id, false)
			time.Sleep(2 * time.Second)
		}
		c.agree()
	})
}

// Two of three servers have no room: the third one leads, and when it is gone
// too, one of the others still answers reads.
func TestServersWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var rooms disks
		c := newTestCluster(t, 3, rooms.of)
		first := c.leader()
		rooms.fill(first.id, true)
		time.Sleep(2 * time.Second)
		second := c.leader(c.others(first)...)
		rooms.fill(second.id, true)
		time.Sleep(2 * time.Second)
		third := c.others(first, second)[0]
		if got := c.leader(); got != third {
			t.Fatalf("%s leads, and %s has room", got.id, third.id)
		}
		c.propose(third, "with room")
		c.crash(third)
		gone := time.Now()
		last := c.leader(first, second)
		t.Logf("a leader without room after %s", time.Since(gone))
		if _, err := last.node.ReadIndex(t.Context()); err != nil {
			t.Errorf("it answers no reads: %v", err)
		}
		asked := time.Now()
		if _, err := last.node.Propose(t.Context(), []byte("x")); !errors.Is(err, ErrDiskFull) {
			t.Errorf("it answers a write with %v", err)
		}
		if took := time.Since(asked); took > 0 {
			t.Errorf("refused after %s", took)
		}
		c.network.Heal()
		c.start(third)
		time.Sleep(3 * time.Second)
		if got := c.leader(); got != third {
			t.Errorf("%s leads, and %s has room again", got.id, third.id)
		}
		c.propose(third, "again")
		c.agree()
	})
}
