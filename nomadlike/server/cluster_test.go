package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"nomadlike/nomadlike/consensus"
	columns "nomadlike/nomadlike/history"
	history "nomadlike/nomadlike/history/store"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// cluster is servers of one process, over an oracle log or a real one.
type cluster struct {
	t         testing.TB
	sequencer *consensus.Sequencer // of the oracle log
	raft      []*consensus.Node    // of the real one
	network   *consensus.Network
	peers     *FakePeers
	servers   []*Server
	histories []*history.Store // of the real log
}

// newCluster makes servers over an oracle log; the first one leads.
func newCluster(t testing.TB, size int) *cluster {
	t.Helper()
	c := &cluster{t: t, sequencer: consensus.NewSequencer(), peers: NewFakePeers()}
	t.Cleanup(c.close)
	for i := range size {
		c.add(fmt.Sprintf("s%d", i+1), func(id string, machine Machine) Log {
			log, err := c.sequencer.Add(id, machine)
			if err != nil {
				t.Fatal(err)
			}
			return log
		})
	}
	return c
}

// newRaftCluster makes servers over real raft, with memory for disks and a
// snapshot each so many entries.
func newRaftCluster(t testing.TB, size int, threshold uint64) *cluster {
	t.Helper()
	c := &cluster{t: t, network: consensus.NewNetwork(500 * time.Millisecond), peers: NewFakePeers()}
	t.Cleanup(c.close)
	var peers []consensus.Peer
	for i := range size {
		id := fmt.Sprintf("s%d", i+1)
		peers = append(peers, consensus.Peer{ID: id, Addr: id, Voter: true})
		c.add(id, func(id string, machine Machine) Log {
			node, err := consensus.Open(consensus.Config{
				ClusterID: "test", ID: id, Memory: new(consensus.Memory),
				Transport: c.network.Transport(id), FSM: machine, SnapshotThreshold: threshold, SnapshotInterval: time.Second, TrailingLogs: 2 * threshold,
			})
			if err != nil {
				t.Fatal(err)
			}
			c.raft = append(c.raft, node)
			return node
		})
	}
	if err := c.raft[0].Bootstrap(peers); err != nil {
		t.Fatal(err)
	}
	return c
}

// add opens one server over the log that open makes.
func (c *cluster) add(id string, open func(string, Machine) Log) {
	c.t.Helper()
	store := state.New()
	machine := NewMachine(store)
	if c.network != nil {
		past, err := history.Open(history.Config{Dir: c.t.TempDir(), Keep: 100_000 * time.Hour, SizeMax: 1 << 30, Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			c.t.Fatal(err)
		}
		c.histories = append(c.histories, past)
		machine = NewKeepingMachine(store, past)
	}
	log := open(id, machine)
	server, err := Open(Config{
		ID: id, Store: store, Log: log, Peers: c.peers.For(id), Now: time.Now, Rand: rand.Reader,
		Logger:      slog.New(slog.DiscardHandler),
		ClusterInit: &structs.ClusterInit{Cluster: structs.Cluster{ID: "test"}},
		Servers:     func() []Agent { return c.others(id) },
		Addresses:   func() []string { return []string{"s1", "s2", "s3"} },
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.peers.Add(id, server)
	c.servers = append(c.servers, server)
}

// close ends everything and compares what is left.
func (c *cluster) close() {
	for _, server := range c.servers {
		server.Close()
	}
	for _, node := range c.raft {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		if err := node.Shutdown(ctx, false); err != nil {
			c.t.Errorf("shut down %s: %v", node.ID(), err)
		}
		cancel()
	}
	c.checkReplicas()
}

// isolate cuts a server off from all other servers, and the agents that only
// it reaches from nobody.
func (c *cluster) isolate(at int, cut bool) {
	id := c.servers[at].config.ID
	if cut {
		c.network.Isolate(id)
	} else {
		c.network.Heal()
	}
	for _, other := range c.others(id) {
		c.peers.Cut(id, other.Addr, cut)
		c.peers.Cut(other.Addr, id, cut)
	}
}

// leader waits for a server that leads, other than the excepted ones.
func (c *cluster) leader(except ...int) int {
	c.t.Helper()
	for range 400 {
		for i, server := range c.servers {
			if !slices.Contains(except, i) && server.leader.watch() != nil {
				return i
			}
		}
		pass(25 * time.Millisecond)
	}
	c.t.Fatal("no server leads")
	return 0
}

func (c *cluster) others(id string) []Agent {
	var agents []Agent
	for i := range 3 {
		if other := fmt.Sprintf("s%d", i+1); other != id {
			agents = append(agents, Agent{ID: other, Addr: other})
		}
	}
	return agents
}

// checkReplicas makes sure that all servers hold the same sound state.
func (c *cluster) checkReplicas() {
	first := c.servers[0].Store().Snapshot()
	if found := state.CheckInvariants(first); len(found) > 0 {
		c.t.Errorf("unsound state: %q", found)
	}
	for i, server := range c.servers[1:] {
		snapshot := server.Store().Snapshot()
		if snapshot.Index() == first.Index() && snapshot.Hash() != first.Hash() {
			c.t.Errorf("server %d has another state than the first", i+2)
		}
	}
}

// eventually waits, on the bubble's clock or the real one, until the newest
// state of a server satisfies condition.
func (c *cluster) eventually(server int, within time.Duration, what string, condition func(*state.Snapshot) bool) *state.Snapshot {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	snapshot, err := c.servers[server].Store().Block(ctx, func(s *state.Snapshot) (bool, <-chan struct{}) {
		return condition(s), s.WatchIndex()
	})
	if err != nil {
		c.t.Fatalf("%s: not within %s", what, within)
	}
	return snapshot
}

func testJob(name string, nodes int) *structs.Job {
	return &structs.Job{
		Name: name, Project: "default", Type: structs.JobTypeTraining, Nodes: nodes,
		Distributed: structs.Distributed{Mode: structs.ModeSingle},
		Resources:   []structs.Resources{{CPU: 1, Memory: 1 << 20}},
		Task:        structs.Task{Driver: "exec", Command: "true"},
	}
}

// gangJob is a job whose ranks find each other.
func gangJob(name string, nodes int) *structs.Job {
	job := testJob(name, nodes)
	job.Distributed.Mode = structs.ModePyTorch
	return job
}

// pipe is both ends of a node's stream.
type pipe struct {
	ctx  context.Context
	up   chan *structs.SessionUp
	down chan *structs.SessionDown
}

func (p *pipe) Recv() (*structs.SessionUp, error) {
	select {
	case up, ok := <-p.up:
		if !ok {
			return nil, io.EOF
		}
		return up, nil
	case <-p.ctx.Done():
		return nil, p.ctx.Err()
	}
}

func (p *pipe) Send(down *structs.SessionDown) error {
	select {
	case p.down <- down:
		return nil
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// fakeNode is a node whose tasks answer at once.
type fakeNode struct {
	c    *cluster
	node structs.Node
	// complete reports whether a running rank completes at once.
	complete bool

	mu struct {
		sync.Mutex
		mute     bool
		assigned map[string]structs.Assignment
		ended    []error
		refused  []string
		acks     int
	}
	hang  context.CancelFunc
	tasks sync.WaitGroup
	seq   uint64
}

func (c *cluster) newNode(name string) *fakeNode {
	n := &fakeNode{c: c, complete: true, node: structs.Node{
		ID: "id-" + name, Name: name, Addr: name, RPCAddr: name, Version: "1", Incarnation: 1, Drivers: []string{"exec"},
		Capacity: structs.Capacity{CPU: 4096, Memory: 1 << 44, PortMin: 20000, PortMax: 30000},
	}}
	n.mu.assigned = make(map[string]structs.Assignment)
	c.t.Cleanup(n.hangUp)
	return n
}

// connect opens a stream to a server; the one before is hung up.
func (n *fakeNode) connect(server int) {
	n.hangUp()
	ctx, cancel := context.WithCancel(context.Background())
	n.hang = cancel
	p := &pipe{ctx: ctx, up: make(chan *structs.SessionUp), down: make(chan *structs.SessionDown)}
	n.tasks.Go(func() {
		defer cancel()
		err := n.c.servers[server].ServeNode(ctx, n.node.ID, p)
		n.mu.Lock()
		n.mu.ended = append(n.mu.ended, err)
		n.mu.Unlock()
	})
	outbox := make(chan *structs.SessionUp, 4096)
	outbox <- &structs.SessionUp{Hello: &structs.NodeRegister{Node: n.node, Inventory: n.inventory()}}
	n.tasks.Go(func() { n.write(p, outbox) })
	n.tasks.Go(func() { n.read(p, outbox) })
}

func (n *fakeNode) inventory() (items []structs.InventoryItem) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, a := range n.mu.assigned {
		items = append(items, structs.InventoryItem{AllocID: a.Alloc.ID, Attempt: a.Alloc.Attempt})
	}
	return items
}

func (n *fakeNode) hangUp() {
	if n.hang != nil {
		n.hang()
	}
	n.tasks.Wait()
}

func (n *fakeNode) setMute(mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.mute = mute
}

func (n *fakeNode) write(p *pipe, outbox <-chan *structs.SessionUp) {
	beat := time.NewTicker(200 * time.Millisecond)
	defer beat.Stop()
	for {
		var up *structs.SessionUp
		select {
		case up = <-outbox:
		case <-beat.C:
			up = &structs.SessionUp{Heartbeat: &structs.Heartbeat{Seq: 1, SentAt: 1}}
		case <-p.ctx.Done():
			return
		}
		n.mu.Lock()
		mute := n.mu.mute
		n.mu.Unlock()
		if mute {
			continue
		}
		select {
		case p.up <- up:
		case <-p.ctx.Done():
			return
		}
	}
}

func (n *fakeNode) read(p *pipe, outbox chan<- *structs.SessionUp) {
	for {
		select {
		case down := <-p.down:
			for _, up := range n.answer(down) {
				outbox <- up
			}
		case <-p.ctx.Done():
			return
		}
	}
}

// answer does what a client does, without the work.
func (n *fakeNode) answer(down *structs.SessionDown) (ups []*structs.SessionUp) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if down.ReportAck != nil {
		n.mu.acks++
		n.mu.refused = append(n.mu.refused, down.ReportAck.Refused...)
	}
	if down.Assignments == nil {
		return nil
	}
	var reports []structs.AllocReport
	for _, a := range down.Assignments.Set {
		n.mu.assigned[a.Alloc.ID] = a
		report := structs.AllocReport{AllocID: a.Alloc.ID, Attempt: a.Alloc.Attempt}
		switch {
		case a.Alloc.Desired == structs.DesiredStop:
			report.Status = structs.AllocKilled
		case !a.Alloc.Released:
			report.Status = structs.AllocPrepared
		case n.complete:
			running := report
			running.Status = structs.AllocRunning
			reports = append(reports, running)
			report.Status = structs.AllocComplete
		default:
			report.Status = structs.AllocRunning
		}
		reports = append(reports, report)
	}
	for _, id := range down.Assignments.Gone {
		delete(n.mu.assigned, id)
	}
	if len(reports) > 0 {
		n.seq++
		ups = append(ups, &structs.SessionUp{Reports: &structs.ReportBatch{Seq: n.seq, Reports: reports}})
	}
	return ups
}

// lastError is why the newest stream ended.
func (n *fakeNode) lastError() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.ended) == 0 {
		return nil
	}
	return n.mu.ended[len(n.mu.ended)-1]
}

func (n *fakeNode) streamsEnded() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.mu.ended)
}

func jobIs(id string, want structs.JobState) func(*state.Snapshot) bool {
	return func(s *state.Snapshot) bool {
		view, ok := s.Job(id)
		return ok && view.Status.State == want
	}
}

func nodeIs(name string, want structs.NodeStatus) func(*state.Snapshot) bool {
	return func(s *state.Snapshot) bool {
		node := s.Node("id-" + name)
		return node != nil && node.Status == want
	}
}

// pass lets time go by; in a bubble that costs none.
func pass(span time.Duration) { <-time.After(span) }

// rows are those of a server's history, after it has fetched what it lacks from the others.
func (c *cluster) rows(at int) (rows []structs.HistoryRow, fetched int) {
	c.t.Helper()
	for _, gap := range c.histories[at].Gaps() {
		for _, other := range c.histories {
			part, err := other.Part(c.t.Context(), gap.After, gap.Until)
			if err != nil {
				c.t.Fatal(err)
			}
			if part.Until <= part.After {
				continue
			}
			if err := c.histories[at].Fill(part.After, part.Until, part.Rows); err != nil {
				c.t.Fatal(err)
			}
			fetched += len(part.Rows)
			break
		}
	}
	err := c.histories[at].View().Each(c.t.Context(), 0, 0, func(part columns.Columns) error {
		if loose, is := part.(columns.Loose); is {
			rows = append(rows, loose...)
			return nil
		}
		all, err := part.(*columns.Segment).All()
		rows = append(rows, all...)
		return err
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if gaps := c.histories[at].Gaps(); len(gaps) > 0 {
		c.t.Errorf("server %d lacks rows of %v", at, gaps)
	}
	return rows, fetched
}
