package server

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// electionRounds is how many rounds an election of the two that are left may
// take, each at most twice as long as the timings say. In two of three elections
// the first elects no leader, since whoever does not miss the old one yet refuses;
// in one of fifty the second one does not either. Four in a row fail once in 100,000
// elections.
const electionRounds = 4

// TestLeaderIsCutOff isolates the leader while jobs are submitted at every
// server: nothing acknowledged is lost, no job is there twice, and the others
// go on within the bound.
func TestLeaderIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRaftCluster(t, 3, 64)
		old := c.leader()
		for i, name := range []string{"a", "b", "c"} {
			c.newNode(name).connect((old + 1 + i%2) % 3)
		}
		c.submit(old, testJob("before", 1))

		var acked sync.Map // job id -> name
		stop := make(chan struct{})
		var clients sync.WaitGroup
		for at := range 3 {
			clients.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					name := fmt.Sprintf("j%d-%d", at, n)
					if id, err := admitAndSubmit(ctx, c.servers[at], name, testJob(name, 1)); err == nil {
						acked.Store(id, name)
					} else if code := structs.CodeOf(err); code != structs.CodeUnavailable && code != structs.CodeTimeout {
						t.Errorf("submission gives %v", err)
					}
					cancel()
				}
			})
		}
		pass(time.Second)
		c.isolate(old, true)
		cutAt := time.Now()
		next := c.leader(old)
		c.submit(next, testJob("after", 1))
		if took := time.Since(cutAt); took > electionRounds*2*consensus.DefaultTimings().Election {
			t.Errorf("the next job was accepted after %s", took)
		}
		pass(3 * time.Second)
		c.isolate(old, false)
		pass(2 * time.Second)
		close(stop)
		clients.Wait()

		snapshot, err := c.servers[old].Consistent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := make(map[string]bool)
		for view := range snapshot.Jobs() {
			if names[view.Job.Name] {
				t.Errorf("job %s is there twice", view.Job.Name)
			}
			names[view.Job.Name] = true
		}
		count := 0
		acked.Range(func(id, name any) bool {
			count++
			if _, ok := snapshot.Job(id.(string)); !ok {
				t.Errorf("job %s was acknowledged and is lost", name)
			}
			return true
		})
		if count < 100 {
			t.Errorf("only %d submissions were acknowledged", count)
		}
		c.eventually(next, 10*time.Second, "all jobs end", func(s *state.Snapshot) bool {
			for view := range s.Jobs() {
				if view.Status.State != structs.JobSucceeded {
					return false
				}
			}
			return true
		})
		for at := range 3 { // so that the replicas can be compared
			if _, err := c.servers[at].Consistent(t.Context()); err != nil {
				t.Error(err)
			}
		}
		checkHistories(t, c, old, names)
	})
}

// checkHistories compares what the servers have of the past when every job has ended: each
// has the same rows, and one of each attempt; the one that was away fetched what it lacked.
func checkHistories(t *testing.T, c *cluster, away int, jobs map[string]bool) {
	for _, past := range c.histories {
		if err := past.Sync(); err != nil {
			t.Error(err)
		}
	}
	var first []structs.HistoryRow
	for at := range c.histories {
		rows, fetched := c.rows(at)
		if at == away && fetched == 0 {
			t.Error("the server that was away came back without a snapshot: nothing was tested")
		}
		if at == 0 {
			first = rows
		} else if !slices.EqualFunc(rows, first, func(x, y structs.HistoryRow) bool { return reflect.DeepEqual(x, y) }) {
			t.Errorf("server %d has %d rows, server 0 has %d, or they differ", at, len(rows), len(first))
		}
	}
	attempts, holdings := make(map[string]int), make(map[string]int)
	for _, row := range first {
		switch key := fmt.Sprint(row.JobName, row.Subjob, row.Attempt); row.Kind {
		case structs.HistoryAttempt:
			if attempts[key]++; row.Last {
				delete(jobs, row.JobName)
			}
		case structs.HistoryHolding:
			holdings[key]++
		}
	}
	if len(jobs) > 0 {
		t.Errorf("%d jobs have no last row", len(jobs))
	}
	for key, n := range attempts {
		if n != 1 || holdings[key] != 1 {
			t.Errorf("attempt %s has %d rows, and %d of what it held", key, n, holdings[key])
		}
	}
}

// TestMinorityServesNobody leaves one server alone: it neither reads nor
// writes, and says so in time.
func TestMinorityServesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRaftCluster(t, 3, 64)
		old := c.leader()
		c.isolate(old, true)
		c.leader(old)
		pass(2 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.servers[old].Consistent(ctx); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("a read in the minority gives %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := admitAndSubmit(ctx, c.servers[old], "", testJob("one", 1)); err == nil {
			t.Error("a write in the minority is acknowledged")
		}
		if c.servers[old].leader.watch() != nil {
			t.Error("the server in the minority still does the leader's duties")
		}
		c.isolate(old, false)
		pass(2 * time.Second)
	})
}

// TestNodeAndLeaderLostForReal is TestLeaderAndNodeLost with a real election.
func TestNodeAndLeaderLostForReal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRaftCluster(t, 3, 64)
		old := c.leader()
		nodes := make(map[string]*fakeNode)
		for i, name := range []string{"a", "b", "c"} {
			nodes[name] = c.newNode(name)
			nodes[name].complete = false
			nodes[name].connect((old + 1 + i%2) % 3)
		}
		id := c.submit(old, gangJob("two", 2))
		snapshot := c.eventually(old, 2*time.Second, "gang runs", jobIs(id, structs.JobRunning))
		victim := ""
		for alloc := range snapshot.Gang(id, 0, 1) {
			victim = alloc.NodeName
		}
		pass(time.Second)
		began := time.Now()
		c.isolate(old, true)
		c.peers.Kill(fmt.Sprintf("s%d", old+1), true)
		c.peers.Kill(victim, true)
		nodes[victim].hangUp()
		next := c.leader(old)
		c.eventually(next, 5*time.Second, "gang runs as attempt 2", func(s *state.Snapshot) bool {
			return s.Subjob(id, 0).Attempt == 2 && jobIs(id, structs.JobRunning)(s)
		})
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		} else {
			t.Logf("leader and node lost, running elsewhere after %s", took)
		}
		c.peers.Kill(fmt.Sprintf("s%d", old+1), false)
		c.isolate(old, false)
		pass(3 * time.Second)
		for at := range 3 {
			if _, err := c.servers[at].Consistent(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLeaderVanishes has a node register at a follower in the moment in which the
// leader's machine vanishes: what was handed to it hangs, and goes to the next
// leader as soon as there is one.
func TestLeaderVanishes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newRaftCluster(t, 3, 64)
		c.peers.Silence(true)
		var slowest time.Duration
		for round := range 5 {
			old := c.leader()
			name, follower := fmt.Sprintf("n%d", round), (old+1)%3
			c.isolate(old, true)
			c.peers.Kill(fmt.Sprintf("s%d", old+1), true)
			began := time.Now()
			var asking sync.WaitGroup
			asking.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				if _, err := c.servers[follower].Consistent(ctx); err != nil {
					t.Errorf("a read in that moment: %v", err)
				}
				if took := time.Since(began); took > electionRounds*2*consensus.DefaultTimings().Election {
					t.Errorf("a read in that moment took %s", took)
				}
			})
			node := c.newNode(name)
			node.connect(follower)
			next := c.leader(old)
			elected := time.Since(began)
			c.eventually(next, 20*time.Second, "the node is registered", nodeIs(name, structs.NodeReady))
			if after := time.Since(began) - elected; after > time.Second {
				t.Errorf("round %d: registered %s after the election of the next leader", round, after)
			}
			slowest = max(slowest, time.Since(began))
			asking.Wait()
			c.peers.Kill(fmt.Sprintf("s%d", old+1), false)
			c.isolate(old, false)
			pass(3 * time.Second)
		}
		t.Logf("a node is registered at most %s after its leader vanished", slowest)
	})
}
