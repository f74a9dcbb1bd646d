package server

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// admitAndSubmit is what a handler does with a job of ann's.
func admitAndSubmit(ctx context.Context, server *Server, key string, job *structs.Job) (id string, err error) {
	admitted, refusal := Admit(server.Store().Snapshot(), job)
	if refusal != nil {
		return "", refusal
	}
	id, _, err = server.SubmitJob(ctx, structs.Guard{}, "ann", key, admitted)
	return id, err
}

// submit admits a job at a server and returns its id.
func (c *cluster) submit(server int, job *structs.Job) string {
	c.t.Helper()
	id, err := admitAndSubmit(c.t.Context(), c.servers[server], "", job)
	if err != nil {
		c.t.Fatalf("submit %s: %v", job.Name, err)
	}
	return id
}

func TestJobRunsAndCompletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		for i, name := range []string{"a", "b", "c"} {
			c.newNode(name).connect(i) // streams spread over all servers
		}
		single := c.submit(0, testJob("one", 1))
		gang := c.submit(1, gangJob("three", 3)) // a follower forwards
		c.eventually(0, time.Second, "single job succeeds", jobIs(single, structs.JobSucceeded))
		snapshot := c.eventually(2, time.Second, "gang succeeds", jobIs(gang, structs.JobSucceeded))
		if attempt := snapshot.Attempt(gang, 0, 1); attempt.ReleasedAt == 0 || len(attempt.Allocs) != 3 {
			t.Errorf("the gang's attempt is %+v", attempt)
		}
	})
}

func TestSubmissionIsChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		bad := testJob("one", 1)
		bad.Task.Command = ""
		if _, err := admitAndSubmit(t.Context(), c.servers[0], "", bad); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("a job without command gives %v", err)
		}
		later := testJob("one", 1)
		later.SSH = true
		if _, err := admitAndSubmit(t.Context(), c.servers[0], "", later); structs.CodeOf(err) != structs.CodeNotAvailable {
			t.Errorf("a job with ssh gives %v", err)
		}
		first, err := admitAndSubmit(t.Context(), c.servers[0], "key", testJob("one", 1))
		if err != nil {
			t.Fatal(err)
		}
		again, err := admitAndSubmit(t.Context(), c.servers[0], "key", testJob("one", 1))
		if err != nil || again != first {
			t.Errorf("the same key gives job %s and %v, the first was %s", again, err, first)
		}
		if _, err := admitAndSubmit(t.Context(), c.servers[0], "", testJob("one", 1)); structs.CodeOf(err) != structs.CodeConflict {
			t.Errorf("a name that is taken gives %v", err)
		}
	})
}

// TestUnknownOutcomes loses acknowledgements, drops and doubles proposals:
// every job is there once, and every submission is answered.
func TestUnknownOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		c.newNode("a").connect(0)
		fates := []consensus.Fate{consensus.FateLoseAck, consensus.FateDrop, consensus.FateDuplicate, consensus.FateRefuse, consensus.FateCommit}
		turn := 0
		c.sequencer.SetFate(func(consensus.Proposal) consensus.Fate {
			turn++
			return fates[turn%len(fates)]
		})
		var ids []string
		for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
			ids = append(ids, c.submit(len(ids)%3, testJob(name, 1)))
		}
		for _, id := range ids {
			c.eventually(0, 10*time.Second, "job succeeds", jobIs(id, structs.JobSucceeded))
		}
		if n := c.servers[0].Store().Snapshot().JobCount(); n != len(ids) {
			t.Errorf("%d jobs instead of %d", n, len(ids))
		}
	})
}

// TestRetriedChangeDoesNotUndoAnothers loses the acknowledgement of a change;
// before it is tried again somebody else changes the same thing. The retry must
// not bring the older value back.
func TestRetriedChangeDoesNotUndoAnothers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		put := func(at int, description string) error {
			_, _, err := c.servers[at].Submit(t.Context(), structs.CommandProjectPut, "ann",
				&structs.ProjectPut{Project: structs.Project{Name: "p", Description: description}})
			return err
		}
		said := func() string { return c.servers[0].Store().Snapshot().Project("p").Description }
		puts := 0
		c.sequencer.SetFate(func(p consensus.Proposal) consensus.Fate {
			if !bytes.Contains(p.Command, []byte("older")) && !bytes.Contains(p.Command, []byte("newer")) {
				return consensus.FateCommit // a duty of the leader's
			}
			if puts++; puts == 1 {
				return consensus.FateLoseAck
			}
			return consensus.FateCommit
		})
		first := make(chan error, 1)
		go func() { first <- put(0, "older") }()
		synctest.Wait() // it is applied, and its server waits to try again
		if got := said(); got != "older" {
			t.Fatalf("the first change says %q", got)
		}
		if err := put(1, "newer"); err != nil {
			t.Fatal(err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first change: %v", err)
		}
		if got := said(); puts != 3 || got != "newer" {
			t.Errorf("after %d changes the project says %q", puts, got)
		}
	})
}

func TestWithoutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		if err := c.sequencer.SetLeader(""); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := admitAndSubmit(ctx, c.servers[1], "", testJob("one", 1)); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("submission without leader gives %v", err)
		}
		if _, err := c.servers[1].Consistent(ctx); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("read without leader gives %v", err)
		}
		// A leader that comes in time is waited for.
		time.AfterFunc(time.Second, func() { _ = c.sequencer.SetLeader("s3") })
		c.submit(1, testJob("one", 1))
	})
}

func TestReadsAreConsistent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		if err := c.sequencer.Lag("s2", true); err != nil {
			t.Fatal(err)
		}
		id := c.submit(0, testJob("one", 1))
		if _, ok := c.servers[1].Store().Snapshot().Job(id); ok {
			t.Fatal("the held server has applied")
		}
		snapshot, err := c.servers[1].Consistent(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := snapshot.Job(id); !ok {
			t.Error("an acknowledged job is missing in a consistent read")
		}
	})
}

// TestLostNode kills a node under a running gang: it is declared lost within
// the bound, and the gang runs elsewhere as attempt 2. When the node returns,
// its old rank is to be killed.
func TestLostNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		nodes := make(map[string]*fakeNode)
		for i, name := range []string{"a", "b", "c"} {
			nodes[name] = c.newNode(name)
			nodes[name].complete = false
			nodes[name].connect(i)
		}
		id := c.submit(0, gangJob("two", 2))
		snapshot := c.eventually(0, time.Second, "gang runs", jobIs(id, structs.JobRunning))
		var victim *fakeNode
		for alloc := range snapshot.Gang(id, 0, 1) {
			victim = nodes[alloc.NodeName]
		}
		began := time.Now()
		victim.setMute(true)
		c.peers.Kill(victim.node.RPCAddr, true)
		c.eventually(0, 3*time.Second, "node is lost", nodeIs(victim.node.Name, structs.NodeLost))
		snapshot = c.eventually(0, time.Second, "gang runs again", func(s *state.Snapshot) bool {
			return s.Subjob(id, 0).Attempt == 2 && jobIs(id, structs.JobRunning)(s)
		})
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the gang ran again after %s", took)
		}
		if subjob := snapshot.Subjob(id, 0); subjob.Restarts != 0 || subjob.InfraLosses != 1 {
			t.Errorf("the loss was charged: %+v", subjob)
		}

		// It comes back with the process of attempt 1.
		victim.setMute(false)
		c.peers.Kill(victim.node.RPCAddr, false)
		victim.connect(1)
		c.eventually(1, time.Second, "node is ready", nodeIs(victim.node.Name, structs.NodeReady))
		c.eventually(1, time.Second, "its devices are free", func(s *state.Snapshot) bool {
			for range s.Occupants(victim.node.ID) {
				return false
			}
			return true
		})
	})
}

// TestCutNode cuts a node off from the servers only: its training goes on.
func TestCutNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		var nodes []*fakeNode
		for _, name := range []string{"a", "b"} {
			node := c.newNode(name)
			node.complete = false
			node.connect(0)
			nodes = append(nodes, node)
		}
		id := c.submit(0, gangJob("two", 2))
		c.eventually(0, time.Second, "gang runs", jobIs(id, structs.JobRunning))
		nodes[0].setMute(true)
		c.peers.Cut("s1", "a", true)
		c.eventually(0, 3*time.Second, "node is disconnected", nodeIs("a", structs.NodeDisconnected))
		pass(30 * time.Second)
		if !jobIs(id, structs.JobRunning)(c.servers[0].Store().Snapshot()) {
			t.Error("the gang does not run any more")
		}
		nodes[0].setMute(false)
		c.peers.Cut("s1", "a", false)
		c.eventually(0, time.Second, "node is ready", nodeIs("a", structs.NodeReady))
	})
}

// TestLeaderAndNodeLost takes both away at once.
func TestLeaderAndNodeLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		nodes := make(map[string]*fakeNode)
		for i, name := range []string{"a", "b", "c"} {
			nodes[name] = c.newNode(name)
			nodes[name].complete = false
			nodes[name].connect(i)
		}
		id := c.submit(0, gangJob("two", 2))
		c.eventually(1, time.Second, "gang runs", jobIs(id, structs.JobRunning))
		pass(time.Second)
		began := time.Now()
		c.peers.Kill("s1", true)
		c.peers.Kill("a", true)
		nodes["a"].hangUp()
		if err := c.sequencer.Crash("s1"); err != nil {
			t.Fatal(err)
		}
		pass(900 * time.Millisecond) // an election
		if err := c.sequencer.SetLeader("s2"); err != nil {
			t.Fatal(err)
		}
		// Its gang had a rank on a, or not: in any case a is lost in time.
		c.eventually(1, 4*time.Second, "node is lost", nodeIs("a", structs.NodeLost))
		c.eventually(1, time.Second, "gang runs", jobIs(id, structs.JobRunning))
		if took := time.Since(began); took > 4*time.Second {
			t.Errorf("it took %s", took)
		}
		for _, name := range []string{"b", "c"} {
			if !nodeIs(name, structs.NodeReady)(c.servers[1].Store().Snapshot()) {
				t.Errorf("node %s is not ready", name)
			}
		}
	})
}

// TestNewerStreamReplaces lets a node dial a second server while its first
// stream still stands.
func TestNewerStreamReplaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3)
		first := c.newNode("a")
		first.connect(0)
		c.eventually(0, time.Second, "node is ready", nodeIs("a", structs.NodeReady))
		second := c.newNode("a")
		second.connect(1)
		synctest.Wait()
		if first.streamsEnded() != 1 || structs.CodeOf(first.lastError()) != structs.CodeConflict {
			t.Errorf("the older stream ended with %v", first.lastError())
		}
		if second.streamsEnded() != 0 {
			t.Errorf("the newer stream ended with %v", second.lastError())
		}
		// A clone of an older incarnation gets nowhere.
		third := c.newNode("a")
		third.node.Incarnation = 0
		third.connect(2)
		synctest.Wait()
		if structs.CodeOf(third.lastError()) != structs.CodeConflict || second.streamsEnded() != 0 {
			t.Errorf("an older incarnation gets %v", third.lastError())
		}
	})
}

func TestForeignNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		node := c.newNode("a")
		node.node.ID = "id-a"
		p := &pipe{ctx: t.Context(), up: make(chan *structs.SessionUp, 1), down: make(chan *structs.SessionDown)}
		p.up <- &structs.SessionUp{Hello: &structs.NodeRegister{Node: node.node}}
		if err := c.servers[0].ServeNode(t.Context(), "id-b", p); structs.CodeOf(err) != structs.CodeForbidden {
			t.Errorf("a node under another name gets %v", err)
		}
		silent := &pipe{ctx: t.Context(), up: make(chan *structs.SessionUp), down: make(chan *structs.SessionDown)}
		if err := c.servers[0].ServeNode(t.Context(), "id-b", silent); structs.CodeOf(err) != structs.CodeTimeout {
			t.Errorf("a node that says nothing gets %v", err)
		}
	})
}

func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		node := c.newNode("a")
		node.complete = false
		node.connect(0)
		job := testJob("one", 1)
		job.TimeLimit = structs.Duration(time.Minute)
		id := c.submit(0, job)
		c.eventually(0, time.Second, "job runs", jobIs(id, structs.JobRunning))
		pass(58 * time.Second)
		if !jobIs(id, structs.JobRunning)(c.servers[0].Store().Snapshot()) {
			t.Error("the job ended before its limit")
		}
		c.eventually(0, 5*time.Second, "job expires", jobIs(id, structs.JobExpired))
	})
}

func TestDrainDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		node := c.newNode("a")
		node.complete = false
		node.connect(0)
		id := c.submit(0, testJob("one", 1))
		c.eventually(0, time.Second, "job runs", jobIs(id, structs.JobRunning))
		deadline := structs.At(time.Now().Add(10 * time.Second))
		_, _, err := c.servers[0].Submit(t.Context(), structs.CommandNodeEligibility, "op", &structs.NodeEligibilityChange{
			NodeID: "id-a", Eligibility: structs.NodeDraining, DrainDeadline: deadline,
		})
		if err != nil {
			t.Fatal(err)
		}
		pass(9 * time.Second)
		if !jobIs(id, structs.JobRunning)(c.servers[0].Store().Snapshot()) {
			t.Error("the job ended before the deadline")
		}
		snapshot := c.eventually(0, 5*time.Second, "job is queued", jobIs(id, structs.JobQueued))
		if subjob := snapshot.Subjob(id, 0); subjob.Restarts != 0 {
			t.Errorf("the drain was charged: %+v", subjob)
		}
		snapshot = c.eventually(0, time.Second, "job is told why it waits", func(s *state.Snapshot) bool { return s.Subjob(id, 0).Wait != nil })
		if n := snapshot.Index(); n > 40 {
			t.Errorf("%d log entries for one drained job", n)
		}
	})
}

func TestLeftNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		p := &pipe{ctx: t.Context(), up: make(chan *structs.SessionUp, 2), down: make(chan *structs.SessionDown, 16)}
		p.up <- &structs.SessionUp{Hello: &structs.NodeRegister{Node: c.newNode("a").node}}
		p.up <- &structs.SessionUp{Bye: true}
		if err := c.servers[0].ServeNode(t.Context(), "id-a", p); err != nil {
			t.Errorf("a farewell gives %v", err)
		}
		if !nodeIs("a", structs.NodeLeft)(c.servers[0].Store().Snapshot()) {
			t.Error("the node has not left")
		}
	})
}

// TestRestartDelay lets a failed job wait for its delay, and no longer.
func TestRestartDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		node := c.newNode("a")
		node.complete = false
		node.connect(0)
		job := testJob("one", 1)
		job.Restart = &structs.Restart{MaxRestarts: 1, Delay: structs.Duration(10 * time.Second)}
		id := c.submit(0, job)
		snapshot := c.eventually(0, time.Second, "job runs", jobIs(id, structs.JobRunning))
		alloc := snapshot.Attempt(id, 0, 1).Allocs[0]
		_, _, err := c.servers[0].Submit(t.Context(), structs.CommandAllocReports, "a", &structs.AllocReports{
			NodeID:  "id-a",
			Reports: []structs.AllocReport{{AllocID: alloc, Attempt: 1, Status: structs.AllocFailed, ExitCode: 3}},
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		c.eventually(0, 11*time.Second, "job runs again", func(s *state.Snapshot) bool {
			return jobIs(id, structs.JobRunning)(s) && s.Subjob(id, 0).Attempt == 2
		})
		if waited := time.Since(began); waited < 9900*time.Millisecond {
			t.Errorf("it waited only %s", waited)
		}
	})
}

// Nodes that were there when the cluster was small are told to send fewer
// heartbeats when it has grown, once.
func TestHeartbeatsSlowDownWithTheCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		n := &session{sessions: c.servers[0].sessions}
		n.every.Store(int64(200 * time.Millisecond))
		if ack := n.acknowledge(&structs.Heartbeat{Seq: 1}); ack.Every != 0 {
			t.Errorf("in a small cluster: %+v", ack)
		}
		for i := range manyNodes + 1 {
			c.put(structs.CommandNodeRegister, &structs.NodeRegister{Node: structs.Node{ID: fmt.Sprintf("n%d", i), Name: "n", Capacity: structs.Capacity{CPU: 1, Memory: 1}}})
		}
		for _, want := range []time.Duration{500 * time.Millisecond, 0} {
			if ack := n.acknowledge(&structs.Heartbeat{Seq: 2}); ack.Every.Std() != want {
				t.Errorf("in a larger one: %+v, want %s", ack, want)
			}
		}
	})
}
