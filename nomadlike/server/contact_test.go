package server

import (
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// A server that is cut off from the leader answers the nodes that it still
// hears, and renews no lease, until it is back; so does a leader that lost its
// followers. The others go on.
func TestLeasesNeedTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRaftCluster(t, 3, 64)
		old := c.leader()
		follower := (old + 1) % 3
		for i, name := range []string{"a", "b", "c"} {
			c.newNode(name).connect(i)
		}
		c.eventually(old, 5*time.Second, "all nodes are known", func(s *state.Snapshot) bool { return s.NodeCount() == 3 })
		renews := func(server int) bool {
			n := &session{sessions: c.servers[server].sessions}
			ack := n.acknowledge(&structs.Heartbeat{Seq: 7, SentAt: 70})
			if ack.Seq != 7 || ack.SentAt != 0 && ack.SentAt != 70 {
				t.Errorf("server %d answers %+v", server, ack)
			}
			return ack.SentAt == 70
		}
		for _, cut := range []int{follower, old} {
			pass(time.Minute)
			for server := range c.servers {
				if !renews(server) {
					t.Errorf("server %d renews no lease though nothing is wrong", server)
				}
			}
			c.isolate(cut, true)
			pass(contactLasts - 500*time.Millisecond)
			if !renews(cut) {
				t.Error("a moment without the leader ends leases")
			}
			pass(time.Second)
			for server := range c.servers {
				if renews(server) != (server != cut) {
					t.Errorf("with %d cut off, %d renews: %v", cut, server, renews(server))
				}
			}
			c.isolate(cut, false)
			pass(5 * time.Second)
		}
	})
}
