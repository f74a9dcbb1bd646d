package consensus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// ledger is an FSM that keeps every command it got, with its index.
type ledger struct {
	mu struct {
		sync.Mutex
		lines []ledgerLine
	}
}

type ledgerLine struct {
	Index   uint64
	Command string
}

func (l *ledger) Apply(index uint64, command []byte) any {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.lines = append(l.mu.lines, ledgerLine{index, string(command)})
	return len(l.mu.lines)
}

func (l *ledger) lines() []ledgerLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.mu.lines)
}

func (l *ledger) commands() []string {
	var commands []string
	for _, line := range l.lines() {
		commands = append(commands, line.Command)
	}
	return commands
}

func (l *ledger) Snapshot() (Snapshot, error) { return ledgerSnapshot(l.lines()), nil }

type ledgerSnapshot []ledgerLine

func (s ledgerSnapshot) Persist(w io.Writer) error { return json.NewEncoder(w).Encode([]ledgerLine(s)) }
func (ledgerSnapshot) Release()                    {}

func (l *ledger) Restore(r io.Reader) error {
	lines, err := readLedger(r)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.lines = lines
	return nil
}

func (l *ledger) CheckSnapshot(r io.Reader) error {
	_, err := readLedger(r)
	return err
}

func readLedger(r io.Reader) (lines []ledgerLine, err error) {
	if err := json.NewDecoder(r).Decode(&lines); err != nil {
		return nil, fmt.Errorf("decode ledger: %w", err)
	}
	return lines, nil
}

// testCluster is a cluster in one process, for synctest bubbles.
type testCluster struct {
	t       *testing.T
	network *Network
	servers []*testServer
	change  func(*Config) // of every server's configuration
}

type testServer struct {
	id, addr string
	disk     *Memory
	ledger   *ledger
	node     *Node // nil while down
	exits    chan int
}

func newTestCluster(t *testing.T, count int, change func(*Config)) *testCluster {
	t.Helper()
	c := &testCluster{t: t, network: NewNetwork(500 * time.Millisecond), change: change}
	var peers []Peer
	for i := range count {
		s := c.add(fmt.Sprintf("s%d", i+1))
		peers = append(peers, Peer{ID: s.id, Addr: s.addr, Voter: true})
	}
	t.Cleanup(c.stop)
	if err := c.servers[0].node.Bootstrap(peers); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *testCluster) add(id string) *testServer {
	s := &testServer{id: id, addr: id + ":4646", disk: &Memory{}, exits: make(chan int, 8)}
	c.servers = append(c.servers, s)
	c.start(s)
	return s
}

// start runs a server that is down, with an empty FSM on its old disk.
func (c *testCluster) start(s *testServer) {
	c.t.Helper()
	s.ledger = &ledger{}
	config := Config{
		ClusterID: "test",
		ID:        s.id,
		Memory:    s.disk,
		Transport: c.network.Transport(s.addr),
		FSM:       s.ledger,
		Log:       testLog(c.t, s.id),
		ExitFunc:  func(code int) { s.exits <- code },
	}
	if c.change != nil {
		c.change(&config)
	}
	node, err := Open(config)
	if err != nil {
		c.t.Fatalf("open %s: %v", s.id, err)
	}
	s.node = node
}

// crash stops a server without handing anything over.
func (c *testCluster) crash(s *testServer) {
	c.t.Helper()
	c.network.Isolate(s.addr)
	if err := s.node.Shutdown(c.t.Context(), false); err != nil {
		c.t.Fatalf("shut %s down: %v", s.id, err)
	}
	s.node = nil
}

func (c *testCluster) stop() {
	for _, s := range c.servers {
		if s.node != nil {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			s.node.Shutdown(ctx, false)
			cancel()
		}
	}
}

// leader waits for one leader that is established, among the given servers.
func (c *testCluster) leader(among ...*testServer) *testServer {
	c.t.Helper()
	if len(among) == 0 {
		among = c.servers
	}
	for range 3000 {
		for _, s := range among {
			if s.node == nil || !s.node.IsLeader() {
				continue
			}
			if term, _ := s.node.leading.establishedTerm(); term == s.node.Term() {
				return s
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	c.t.Fatal("no leader within 30 s of virtual time")
	return nil
}

func (c *testCluster) others(than ...*testServer) []*testServer {
	return slices.DeleteFunc(slices.Clone(c.servers), func(s *testServer) bool { return slices.Contains(than, s) })
}

func (c *testCluster) propose(s *testServer, command string) Result {
	c.t.Helper()
	result, err := s.node.Propose(c.t.Context(), []byte(command))
	if err != nil {
		c.t.Fatalf("propose %q on %s: %v", command, s.id, err)
	}
	return result
}

// agree waits until all running servers have applied what the leader has, and
// fails unless they hold the same.
func (c *testCluster) agree() []ledgerLine {
	c.t.Helper()
	// Who leads may be deposed before its answer, by a server that was cut off
	// and has come back with a higher term.
	var leader *testServer
	var index uint64
	for end := time.Now().Add(30 * time.Second); ; {
		var err error
		leader = c.leader()
		if index, err = leader.node.ReadIndex(c.t.Context()); err == nil {
			break
		}
		if time.Now().After(end) {
			c.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	var want []ledgerLine
	for i, s := range append([]*testServer{leader}, c.others(leader)...) {
		if s.node == nil {
			continue
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), 30*time.Second)
		if err := s.node.WaitApplied(ctx, index); err != nil {
			c.t.Fatalf("%s: %v", s.id, err)
		}
		cancel()
		// A proposal of unknown outcome may be committed any time later.
		got := slices.DeleteFunc(s.ledger.lines(), func(line ledgerLine) bool { return line.Index > index })
		if i == 0 {
			want = got
		} else if !slices.Equal(got, want) {
			c.t.Fatalf("%s holds %v, the leader %v", s.id, got, want)
		}
	}
	return want
}

func testLog(t *testing.T, id string) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil)).With("server", id, "test", t.Name())
}

func TestElectionAndReplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		c := newTestCluster(t, 3, nil)
		leader := c.leader()
		if took := time.Since(started); took > 200*time.Millisecond {
			t.Errorf("first leader after %s", took)
		}
		result := c.propose(leader, "a")
		if result.Value != 1 {
			t.Errorf("Apply answered %v through Propose", result.Value)
		}
		c.propose(leader, "b")
		if got := c.agree(); len(got) != 2 || got[0] != (ledgerLine{result.Index, "a"}) {
			t.Errorf("cluster holds %v", got)
		}
		follower := c.others(leader)[0]
		_, err := follower.node.Propose(t.Context(), []byte("x"))
		var notLeader *NotLeaderError
		if !errors.As(err, &notLeader) || notLeader.LeaderID != leader.id || notLeader.LeaderAddr != leader.addr {
			t.Errorf("follower answers %v", err)
		}
		if _, err := follower.node.ReadIndex(t.Context()); !errors.As(err, &notLeader) {
			t.Errorf("follower gives a read index: %v", err)
		}
		if err := c.servers[1].node.Bootstrap([]Peer{{ID: "s2", Addr: "s2:4646", Voter: true}}); !errors.Is(err, ErrAlreadyBootstrapped) {
			t.Errorf("second bootstrap: %v", err)
		}
	})
}

func TestFailover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		old := c.leader()
		c.propose(old, "before")
		killed := time.Now()
		c.crash(old)
		fresh := c.leader()
		c.propose(fresh, "after")
		took := time.Since(killed)
		t.Logf("next write accepted %s after the leader's end", took)
		if took > 2*time.Second {
			t.Errorf("failover took %s", took)
		}
		c.network.Heal()
		c.start(old)
		if got := c.agree(); len(got) != 2 || len(old.ledger.lines()) != 2 {
			t.Errorf("cluster holds %v", got)
		}
		// Its own leadership of before is in the log that it reads again, and counts no more.
		if here, there := old.node.Stats().Leaders, fresh.node.Stats().Leaders; here < 1 || here != there-1 {
			t.Errorf("the server that came back has seen %d leaders, another %d", here, there)
		}
	})
}

func TestFollowersLearnACommitAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newTestCluster(t, 3, nil)
		leader := c.leader()
		c.agree()
		for i := range 20 {
			result := c.propose(leader, fmt.Sprint(i))
			proposed := time.Now()
			for _, s := range c.others(leader) {
				if err := s.node.WaitApplied(t.Context(), result.Index); err != nil {
					t.Fatal(err)
				}
			}
			// Virtual time stands still while anything can run: only a timer,
			// such as raft's idle repetition, would let it pass.
			if took := time.Since(proposed); took > 0 {
				t.Fatalf("followers applied proposal %d after %s", i, took)
			}
		}
	})
}
