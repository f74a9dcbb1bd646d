package consensus

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func TestMinorityNeitherWritesNorReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		old := c.leader()
		c.propose(old, "before")
		c.network.Isolate(old.addr)
		if !old.node.IsLeader() {
			t.Fatal("the old leader should not know yet")
		}
		var notLeader *NotLeaderError
		if index, err := old.node.ReadIndex(t.Context()); !errors.As(err, &notLeader) {
			t.Errorf("cut-off leader gives read index %d, %v", index, err)
		}
		if _, err := old.node.Propose(t.Context(), []byte("minority")); !errors.As(err, &notLeader) {
			t.Errorf("cut-off leader, after its lease: %v", err)
		}
		fresh := c.leader(c.others(old)...)
		c.propose(fresh, "majority")
		c.network.Heal()
		c.agree()
		if diff := cmp.Diff([]string{"before", "majority"}, old.ledger.commands()); diff != "" {
			t.Errorf("old leader holds (-want +got):\n%s", diff)
		}
	})
}

func TestLostLeadershipLeavesOutcomeUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		old := c.leader()
		c.network.Isolate(old.addr)
		if _, err := old.node.Propose(t.Context(), []byte("x")); !errors.Is(err, ErrOutcomeUnknown) {
			t.Errorf("proposal cut off while being committed: %v", err)
		}
		c.network.Heal()
		fresh := c.leader()
		c.network.Isolate(fresh.addr)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err := fresh.node.Propose(ctx, []byte("y"))
		if !errors.Is(err, ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("proposal given up while being committed: %v", err)
		}
		c.network.Heal()
		c.agree()
	})
}

func TestProposeRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 1, nil)
		node := c.leader().node
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := node.Propose(t.Context(), make([]byte, MaxCommandBytes+1)); !errors.Is(err, ErrTooLarge) {
			t.Errorf("too large: %v", err)
		}
		if err := node.WaitApplied(ended, 1<<40); !errors.Is(err, context.Canceled) {
			t.Errorf("wait with an ended context: %v", err)
		}
		if err := node.WaitApplied(ended, 1); err != nil {
			t.Errorf("wait for what is applied: %v", err)
		}
		waiting := make(chan error)
		go func() { waiting <- node.WaitApplied(context.Background(), 1<<40) }()
		synctest.Wait()
		if err := node.Shutdown(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if err := <-waiting; !errors.Is(err, ErrShutdown) {
			t.Errorf("wait across shutdown: %v", err)
		}
		if err := node.Bootstrap(nil); !errors.Is(err, ErrShutdown) {
			t.Errorf("bootstrap after shutdown: %v", err)
		}
		if _, err := node.ReadIndex(t.Context()); !errors.Is(err, ErrShutdown) {
			t.Errorf("read after shutdown: %v", err)
		}
		var notLeader *NotLeaderError
		if _, err := node.Propose(t.Context(), nil); !errors.Is(err, ErrShutdown) && !errors.As(err, &notLeader) {
			t.Errorf("propose after shutdown: %v", err)
		}
	})
}

// A leader whose disk hangs goes on sending heartbeats, in raft alone for ever.
func TestLeaderWithHangingDiskIsReplaced(t *testing.T) {
	play := func(t *testing.T, guarded bool) {
		synctest.Test(t, func(t *testing.T) {
			c := newTestCluster(t, 3, func(config *Config) {
				if !guarded {
					config.Timings = DefaultTimings()
					config.Timings.StallFatal = 24 * time.Hour
				}
			})
			old := c.leader()
			c.propose(old, "before")
			released := make(chan struct{})
			old.disk.Before(func(string) error { <-released; return nil })
			hung := time.Now()
			outcome := make(chan error, 1)
			go func() {
				_, err := old.node.Propose(context.Background(), []byte("hanging"))
				outcome <- err
			}()
			if guarded {
				if code := <-old.exits; code != exitStorage {
					t.Errorf("exit code %d", code)
				}
				if took := time.Since(hung); took < 2*time.Second || took > 2100*time.Millisecond {
					t.Errorf("the process ends after %s", took)
				}
				fresh := c.leader(c.others(old)...)
				c.propose(fresh, "after")
				t.Logf("next write accepted after %s", time.Since(hung))
				if took := time.Since(hung); took > 4*time.Second {
					t.Errorf("next write accepted after %s", took)
				}
			} else {
				time.Sleep(time.Minute)
				if !old.node.IsLeader() {
					t.Error("unguarded leader was replaced: this test shows nothing")
				}
			}
			old.disk.Before(nil)
			close(released)
			err := <-outcome
			if guarded && !errors.Is(err, ErrOutcomeUnknown) {
				t.Errorf("hanging proposal: %v", err)
			}
			if guarded {
				c.crash(old)
				c.network.Heal()
				c.start(old)
			}
			c.agree()
		})
	}
	t.Run("guarded", func(t *testing.T) { play(t, true) })
	t.Run("raft alone", func(t *testing.T) { play(t, false) })
}

// Every kind of failed write ends the process at once, and a restart finds all
// that was acknowledged.
func TestFailedWriteEndsTheProcess(t *testing.T) {
	for _, failing := range []string{"log", "vote"} {
		t.Run(failing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newTestCluster(t, 3, nil)
				leader := c.leader()
				c.propose(leader, "a")
				victim := leader
				if failing == "vote" {
					victim = c.others(leader)[0]
				}
				victim.disk.Before(func(operation string) error {
					if operation == failing {
						return errors.New("input/output error")
					}
					return nil
				})
				if failing == "vote" {
					c.crash(leader) // the survivors vote
				} else if _, err := leader.node.Propose(t.Context(), []byte("b")); !errors.Is(err, ErrOutcomeUnknown) {
					t.Errorf("proposal on a failing disk: %v", err)
				}
				if code := <-victim.exits; code != exitStorage {
					t.Errorf("exit code %d", code)
				}
				victim.disk.Before(nil)
				c.crash(victim)
				c.network.Heal()
				c.start(victim)
				if leader.node == nil {
					c.start(leader)
				}
				c.propose(c.leader(), "c")
				got := c.agree()
				if got[0].Command != "a" || got[len(got)-1].Command != "c" {
					t.Errorf("cluster holds %v", got)
				}
			})
		})
	}
}

func TestTransferThatNeverEndsEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 1, nil)
		leader := c.leader()
		now := time.Now()
		limit := 2 * DefaultTimings().Election
		leader.node.noteTransferRefusal(now)
		leader.node.noteTransferRefusal(now.Add(limit))
		c.propose(leader, "accepted") // the transfer was over
		leader.node.noteTransferRefusal(now.Add(limit + 1))
		leader.node.noteTransferRefusal(now.Add(2 * limit))
		select {
		case code := <-leader.exits:
			t.Fatalf("exits with %d though writes were accepted", code)
		default:
		}
		leader.node.noteTransferRefusal(now.Add(2*limit + 2))
		if code := <-leader.exits; code != exitWedged {
			t.Errorf("exit code %d", code)
		}
	})
}

func TestMembership(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 1, nil)
		leader := c.leader()
		c.propose(leader, "alone")
		two, three := c.add("s2"), c.add("s3")
		ctx := t.Context()
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(leader.node.AddNonvoter(ctx, two.id, two.addr))
		must(leader.node.AddVoter(ctx, three.id, three.addr))
		c.agree()
		want := []Peer{{"s1", "s1:4646", true}, {"s2", "s2:4646", false}, {"s3", "s3:4646", true}}
		if diff := cmp.Diff(want, three.node.Peers()); diff != "" {
			t.Errorf("peers (-want +got):\n%s", diff)
		}
		time.Sleep(time.Second) // a nonvoter may get its entries later
		for _, health := range leader.node.Health() {
			if health.Behind != 0 || health.LastContact < 0 || health.LastError != "" {
				t.Errorf("health %+v", health)
			}
		}
		if err := leader.node.AddVoter(ctx, "s9", three.addr); !errors.Is(err, ErrAddressInUse) {
			t.Errorf("address of another server: %v", err)
		}
		if err := leader.node.Promote(ctx, "s9"); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("promote a stranger: %v", err)
		}
		if err := leader.node.RemovePeer(ctx, "s9"); !errors.Is(err, ErrUnknownPeer) {
			t.Errorf("remove a stranger: %v", err)
		}
		var notLeader *NotLeaderError
		if err := two.node.Promote(ctx, "s2"); !errors.As(err, &notLeader) {
			t.Errorf("promote on a follower: %v", err)
		}
		must(leader.node.Promote(ctx, two.id))

		// Many changes at once are made one after another.
		var wait sync.WaitGroup
		for i := range 5 {
			wait.Go(func() {
				id := fmt.Sprint("n", i)
				if err := leader.node.AddNonvoter(ctx, id, id+":4646"); err != nil {
					t.Errorf("add %s: %v", id, err)
				}
			})
		}
		wait.Wait()
		if got := len(leader.node.Peers()); got != 8 {
			t.Errorf("%d peers", got)
		}
		for i := range 5 {
			must(leader.node.RemovePeer(ctx, fmt.Sprint("n", i)))
		}
		must(leader.node.RemovePeer(ctx, leader.id))
		fresh := c.leader(two, three)
		c.propose(fresh, "without s1")
		must(fresh.node.RemovePeer(ctx, c.others(leader, fresh)[0].id))
		if err := fresh.node.RemovePeer(ctx, fresh.id); !errors.Is(err, ErrLastVoter) {
			t.Errorf("remove the last voter: %v", err)
		}
		c.propose(fresh, "alone again")
	})
}

func TestShutdownHandsLeadershipOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		old := c.leader()
		c.propose(old, "a")
		began := time.Now()
		if err := old.node.Shutdown(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		old.node = nil
		fresh := c.leader()
		c.propose(fresh, "b")
		took := time.Since(began)
		t.Logf("next write accepted after %s", took)
		if took > 100*time.Millisecond {
			t.Errorf("graceful change took %s", took)
		}
	})
}

func TestLeadershipNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		old := c.leader()
		news := <-old.node.LeadershipCh()
		if !news.Leader || news.Term != old.node.Term() {
			t.Errorf("leader was told %+v", news)
		}
		c.propose(old, "a")
		c.network.Isolate(old.addr)
		if lost := <-old.node.LeadershipCh(); lost.Leader {
			t.Errorf("cut-off leader was told %+v", lost)
		}
		fresh := c.leader(c.others(old)...)
		won := <-fresh.node.LeadershipCh()
		if !won.Leader || won.Term <= news.Term {
			t.Errorf("new leader was told %+v, the old one %+v", won, news)
		}
		// Whoever is told to lead has applied what was acknowledged before.
		if got := fresh.ledger.commands(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("new leader begins with %v", got)
		}
	})
}

// A server that can hear but not be heard, or the reverse, must not depose a
// working leader again and again.
func TestOneWayCutDoesNotFlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		leader := c.leader()
		deaf := c.others(leader)[0]
		term := leader.node.Term()
		c.network.CutOneWay(leader.addr, deaf.addr) // gets no heartbeats, and may call all
		for i := range 60 {
			time.Sleep(time.Second)
			c.propose(leader, fmt.Sprint(i))
		}
		if leader.node.Term() != term {
			t.Errorf("term went from %d to %d", term, leader.node.Term())
		}
		c.network.Heal()
		c.agree()
	})
}

// Servers crash, links break, leaders change, for a virtual minute. What was
// acknowledged stays, where it was; replicas hold the same; a read index covers
// what was acknowledged before it was asked for.
func TestStorm(t *testing.T) {
	seeds := 8
	if testing.Short() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { storm(t, uint64(seed)) })
		})
	}
}

func storm(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	c := newTestCluster(t, 3, func(config *Config) {
		config.SnapshotThreshold, config.TrailingLogs, config.SnapshotInterval = 30, 10, 100*time.Millisecond
	})
	c.leader()
	var mu sync.Mutex // guards all below, and the servers' up and down
	acknowledged := make(map[string]uint64)
	newest := uint64(0)

	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for client := range 4 {
		clients.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				mu.Lock()
				node := c.servers[(client+i)%3].node
				mu.Unlock()
				if node == nil {
					time.Sleep(5 * time.Millisecond)
					continue
				}
				mu.Lock()
				before := newest
				mu.Unlock()
				limited, done := context.WithTimeout(ctx, time.Second)
				if index, err := node.ReadIndex(limited); err == nil && index < before {
					t.Errorf("read index %d, although %d was acknowledged", index, before)
				}
				command := fmt.Sprintf("%d.%d", client, i)
				if result, err := node.Propose(limited, []byte(command)); err == nil {
					mu.Lock()
					acknowledged[command] = result.Index
					newest = max(newest, result.Index)
					mu.Unlock()
				}
				done()
				time.Sleep(5 * time.Millisecond)
			}
		})
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		s, other := c.servers[random.IntN(3)], c.servers[random.IntN(3)]
		switch random.IntN(6) {
		case 0:
			c.network.Isolate(s.addr)
		case 1:
			c.network.CutOneWay(s.addr, other.addr)
		case 2, 3:
			c.network.Heal()
		case 4:
			mu.Lock()
			node := s.node
			s.node = nil
			mu.Unlock()
			if node != nil {
				if err := node.Shutdown(t.Context(), random.IntN(2) == 0); err != nil {
					t.Fatal(err)
				}
			}
		case 5:
			mu.Lock()
			if s.node == nil {
				c.start(s)
			}
			mu.Unlock()
		}
	}
	cancel()
	clients.Wait()
	c.network.Heal()
	for _, s := range c.servers {
		if s.node == nil {
			c.start(s)
		}
		select {
		case code := <-s.exits:
			t.Errorf("%s would have exited with %d", s.id, code)
		default:
		}
	}
	held := make(map[string]uint64)
	for _, line := range c.agree() {
		if _, twice := held[line.Command]; twice {
			t.Errorf("%s is applied twice", line.Command)
		}
		held[line.Command] = line.Index
	}
	for command, index := range acknowledged {
		if held[command] != index {
			t.Errorf("%s was acknowledged at %d and is at %d", command, index, held[command])
		}
	}
	if len(acknowledged) < 100 {
		t.Errorf("only %d commands were acknowledged", len(acknowledged))
	}
	t.Logf("%d acknowledged, %d held, term %d", len(acknowledged), len(held), c.leader().node.Term())
}

// The guard must not count what a disk takes long for while the process ends.
func TestGuardFailsOnce(t *testing.T) {
	var story []string
	g := newGuard(Config{
		Log:      testLog(t, "guard"),
		Timings:  DefaultTimings(),
		ExitFunc: func(code int) { story = append(story, fmt.Sprint("exit ", code)) },
	})
	g.fail(1, "before raft runs")
	g.arm(func() { story = append(story, "cut") })
	g.fail(2, "first")
	g.fail(3, "second")
	if diff := cmp.Diff([]string{"cut", "exit 2"}, story); diff != "" {
		t.Errorf("order of the end (-want +got):\n%s", diff)
	}
}

// A cut gate answers no heartbeat: their path leads past a disk that hangs.
func TestCutGateIsSilent(t *testing.T) {
	network := NewNetwork(time.Second)
	g, err := newGate(network.Transport("a"), func() {})
	if err != nil {
		t.Fatal(err)
	}
	network.Transport("b")
	g.cut()
	g.cut()
	errs := []error{
		g.AppendEntries("b", "b", &raft.AppendEntriesRequest{}, &raft.AppendEntriesResponse{}),
		g.RequestVote("b", "b", &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{}),
		g.RequestPreVote("b", "b", &raft.RequestPreVoteRequest{}, &raft.RequestPreVoteResponse{}),
		g.InstallSnapshot("b", "b", &raft.InstallSnapshotRequest{}, &raft.InstallSnapshotResponse{}, nil),
		g.TimeoutNow("b", "b", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{}),
	}
	for i, err := range errs {
		if !errors.Is(err, errCut) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if _, err := g.AppendEntriesPipeline("b", "b"); !errors.Is(err, raft.ErrPipelineReplicationNotSupported) {
		t.Errorf("pipeline: %v", err)
	}
}

// lateTransport delivers the answers to heartbeats only when let.
type lateTransport struct {
	raft.Transport
	raft.WithPreVote
	mu struct {
		sync.Mutex
		hold chan struct{} // answers wait for its close; nil: they do not wait
	}
}

func (l *lateTransport) AppendEntries(id raft.ServerID, target raft.ServerAddress, req *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	err := l.Transport.AppendEntries(id, target, req, resp)
	l.mu.Lock()
	hold := l.mu.hold
	l.mu.Unlock()
	if hold != nil && err == nil {
		<-hold
	}
	return err
}

// A leader stopped for long finds, when it goes on, answers to heartbeats that
// were sent before another leader was elected. Raft counts them when it verifies
// leadership; a read index that rests on them would be stale.
func TestOldHeartbeatsConfirmNoRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(map[string]*lateTransport)
		c := newTestCluster(t, 3, func(config *Config) {
			l := &lateTransport{Transport: config.Transport, WithPreVote: config.Transport.(raft.WithPreVote)}
			late[config.ID] = l
			config.Transport = l
			config.Timings = DefaultTimings()
			config.Timings.Heartbeat, config.Timings.Election = 1200*time.Millisecond, 1200*time.Millisecond
			if config.ID == "s1" { // stays leader in its own eyes, as a stopped process does
				config.Timings.Heartbeat, config.Timings.Election, config.Timings.Lease = 6*time.Second, 6*time.Second, 6*time.Second
			}
		})
		old := c.leader()
		if old.id != "s1" {
			t.Fatalf("%s leads", old.id)
		}
		c.propose(old, "before")
		hold := make(chan struct{})
		late[old.id].mu.Lock()
		late[old.id].mu.hold = hold
		late[old.id].mu.Unlock()
		time.Sleep(1200 * time.Millisecond) // each follower answers a heartbeat, and the answer waits
		c.network.Isolate(old.addr)
		fresh := c.leader(c.others(old)...)
		newer := c.propose(fresh, "after")
		if !old.node.IsLeader() {
			t.Fatal("the old leader knows already: this test shows nothing")
		}
		answered := make(chan struct{})
		var index uint64
		var err error
		go func() {
			index, err = old.node.ReadIndex(t.Context())
			close(answered)
		}()
		synctest.Wait()
		close(hold)
		<-answered
		if err == nil {
			t.Errorf("old leader gives read index %d, after %d was acknowledged elsewhere", index, newer.Index)
		}
		c.network.Heal()
	})
}
