package client

import (
	"context"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"nomadlike/internal/orphans"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/rankshell"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
	"nomadlike/plugins/exec/supervisor"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case supervisor.Argument:
			os.Exit(supervisor.Main(os.Args[2:]))
		case "mpi-rsh":
			os.Exit(rankshell.RunShell(os.Args[2:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
		}
	}
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(runChild(dir, os.Getenv(childServerEnv)))
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		orphans.End(supervisor.Argument)
		os.Exit(code)
	}))
}

// control is a server that assigns what a test tells it to, opens barriers,
// and remembers what nodes say.
type control struct {
	mu struct {
		sync.Mutex
		index     uint64
		assigned  map[string]*structs.Assignment
		reports   []structs.AllocReport
		notes     []structs.AllocNote
		inventory [][]structs.InventoryItem
		streams   map[serverEnd]*link
		refuse    bool
		silent    bool // answers nothing
		byes      int
	}
	servers  session.FakeServers
	onReport func(structs.AllocReport) // set before any node
}

// serverEnd is the server's end of a node's stream.
type serverEnd interface {
	Send(*structs.SessionDown) error
	Recv() (*structs.SessionUp, error)
}

// link is what control sends on one stream, in the order in which it was
// decided.
type link struct {
	node string // "" before its Hello
	out  chan *structs.SessionDown
}

// sayLocked queues a message, unless the server is silent.
func (c *control) sayLocked(l *link, down *structs.SessionDown) {
	if !c.mu.silent {
		l.out <- down
	}
}

func newControl() *control {
	c := new(control)
	c.mu.assigned = make(map[string]*structs.Assignment)
	c.mu.streams = make(map[serverEnd]*link)
	c.servers.Serve = func(_ string, stream *session.FakeStream) { c.serve(stream) }
	return c
}

func (c *control) serve(stream serverEnd) {
	l := &link{out: make(chan *structs.SessionDown, 4096)}
	var sending sync.WaitGroup
	sending.Go(func() {
		for down := range l.out {
			_ = stream.Send(down) // on a lost stream: it all comes again on the next one
		}
	})
	c.mu.Lock()
	c.mu.streams[stream] = l
	c.mu.Unlock()
	for {
		up, err := stream.Recv()
		if err != nil || !c.hear(l, up) {
			break
		}
	}
	c.mu.Lock()
	delete(c.mu.streams, stream)
	close(l.out)
	c.mu.Unlock()
	sending.Wait()
}

// hear takes what a node says, and reports whether it will say more.
func (c *control) hear(l *link, up *structs.SessionUp) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case up.Hello != nil:
		again := l.node != ""
		l.node = up.Hello.Node.ID
		c.mu.inventory = append(c.mu.inventory, up.Hello.Inventory)
		c.sayLocked(l, &structs.SessionDown{Welcome: &structs.Welcome{
			ServerID: "s", HeartbeatEvery: structs.Duration(200 * time.Millisecond), LeaseTTL: structs.Duration(3 * time.Second),
		}})
		if !again {
			c.sayLocked(l, &structs.SessionDown{Assignments: c.fullLocked(l.node)})
		}
	case up.Heartbeat != nil:
		c.sayLocked(l, &structs.SessionDown{HeartbeatAck: &structs.HeartbeatAck{Seq: up.Heartbeat.Seq, SentAt: up.Heartbeat.SentAt}})
	case up.Reports != nil:
		c.mu.notes = append(c.mu.notes, up.Reports.Notes...)
		ack := &structs.ReportAck{Seq: up.Reports.Seq}
		for _, r := range up.Reports.Reports {
			if c.mu.refuse {
				ack.Refused = append(ack.Refused, r.AllocID)
				continue
			}
			c.mu.reports = append(c.mu.reports, r)
			if c.onReport != nil {
				c.onReport(r)
			}
			if a := c.mu.assigned[r.AllocID]; a != nil && a.Alloc.Status.CanBecome(r.Status) {
				one := *a.Alloc
				one.Status = r.Status
				a.Alloc = &one
			}
		}
		c.sayLocked(l, &structs.SessionDown{ReportAck: ack})
	case up.Bye:
		c.mu.byes++
		return false
	}
	return true
}

func (c *control) fullLocked(node string) *structs.Assignments {
	c.mu.index++
	full := &structs.Assignments{Index: c.mu.index, Full: true}
	for _, id := range slices.Sorted(maps.Keys(c.mu.assigned)) {
		if a := c.mu.assigned[id]; a.Alloc.NodeID == node {
			full.Set = append(full.Set, *a)
		}
	}
	return full
}

// assign changes or adds assignments and pushes them.
func (c *control) assign(all ...*structs.Assignment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.index++
	for _, a := range all {
		own := *a // its Alloc is replaced when reports come
		c.mu.assigned[a.Alloc.ID] = &own
	}
	for _, l := range c.mu.streams {
		push := &structs.Assignments{Index: c.mu.index}
		for _, a := range all {
			if a.Alloc.NodeID == l.node {
				push.Set = append(push.Set, *a)
			}
		}
		if len(push.Set) > 0 {
			c.sayLocked(l, &structs.SessionDown{Assignments: push})
		}
	}
}

// Change edits an assignment and pushes it.
func (c *control) change(id string, edit func(*structs.Allocation)) {
	c.mu.Lock()
	a := *c.mu.assigned[id]
	c.mu.Unlock()
	one := *a.Alloc
	edit(&one)
	a.Alloc = &one
	c.assign(&a)
}

// forget drops an allocation without a word.
func (c *control) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.assigned, id)
}

func (c *control) silence(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.silent = silent
}

// last is the last report of an allocation.
func (c *control) last(id string) structs.AllocReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range slices.Backward(c.mu.reports) {
		if r.AllocID == id {
			return r
		}
	}
	return structs.AllocReport{}
}

// Told lists the statuses reported of an allocation.
func (c *control) told(id string) []structs.AllocStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []structs.AllocStatus
	for _, r := range c.mu.reports {
		if r.AllocID == id {
			all = append(all, r.Status)
		}
	}
	return all
}

func (c *control) inventories() [][]structs.InventoryItem {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.mu.inventory)
}

// gang makes an attempt of a job with one rank on each of the nodes.
func gang(jobID string, attempt uint64, command string, nodes ...string) []*structs.Assignment {
	job := &structs.Job{
		ID: jobID, Name: jobID, Project: "p", Type: structs.JobTypeTraining, Nodes: len(nodes),
		Distributed: structs.Distributed{Mode: structs.ModeNone},
		Resources:   []structs.Resources{{CPU: 1, Memory: 1 << 20}},
		Task:        structs.Task{Driver: "exec", Command: command},
		StopGrace:   structs.Duration(2 * time.Second),
		Source:      "job \"" + jobID + "\" {}",
	}
	var members []structs.Member
	for rank, node := range nodes {
		members = append(members, structs.Member{
			Rank: rank, Name: structs.RankName(job, 0, attempt, rank), AllocID: structs.AllocID(jobID, 0, attempt, rank),
			NodeID: node, NodeName: node, Addr: "127.0.0.1", RPCAddr: node + ":4646",
		})
	}
	var all []*structs.Assignment
	for rank, m := range members {
		all = append(all, &structs.Assignment{Job: job, Members: members, RunAs: &structs.RunAs{Root: true}, Alloc: &structs.Allocation{
			ID: m.AllocID, JobID: jobID, JobName: jobID, Project: "p", Attempt: attempt, Rank: rank, Name: m.Name, NodeID: m.NodeID,
			Spec: job.Resources[0], Desired: structs.DesiredRun, Released: len(nodes) == 1, Status: structs.AllocPending,
		}})
	}
	return all
}

// testMachine is a machine that needs no look at the real one.
func testMachine() *fingerprint.Machine {
	return &fingerprint.Machine{
		Hostname: "test", Cores: 4, MemInfo: "MemTotal: 8388608 kB\n", Arch: "amd64", Kernel: "6",
		Interfaces: []fingerprint.Interface{{Name: "lo", Up: true, Loopback: true, Addrs: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/8")}}},
	}
}

// node starts a client; the returned function stops its agent, not its tasks.
func (c *control) node(t *testing.T, dir, id string, drivers map[string]driver.Driver, change ...func(*Config)) (*Client, func()) {
	t.Helper()
	config := Config{
		DataDir: dir, NodeID: id, RPCAddr: id + ":4646", Version: "1", Drivers: drivers,
		Servers:     func() []string { return []string{"s1", "s2"} },
		OpenSession: c.servers.Open,
		Logger:      testLogger(t), Machine: testMachine(), BootID: "boot",
	}
	for _, f := range change {
		f(&config)
	}
	n, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := n.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			cancel()
			running.Wait()
		}
	}
	t.Cleanup(stop)
	return n, stop
}

func testLogger(t *testing.T) *slog.Logger {
	if !testing.Verbose() {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(testWriter(func(data []byte) (int, error) {
		t.Log(string(data))
		return len(data), nil
	}), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// tempDir is a short-named temporary directory: sockets have short paths.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "client")
}

// pushGone tells every node that an allocation is nobody's any more.
func (c *control) pushGone(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.index++
	for _, l := range c.mu.streams {
		c.sayLocked(l, &structs.SessionDown{Assignments: &structs.Assignments{Index: c.mu.index, Gone: []string{id}}})
	}
}

// testWriter writes to a test.
type testWriter func([]byte) (int, error)

func (w testWriter) Write(data []byte) (int, error) { return w(data) }
