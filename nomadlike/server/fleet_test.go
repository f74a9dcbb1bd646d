package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// fleet is a server with its log on disk and many nodes in this process, each
// with a TLS connection of its own.
type fleet struct {
	b      testing.TB
	server *Server
	addr   string
	nodes  []*fleetNode
	ctx    context.Context
	told   atomic.Int64 // assignments that arrived
	quiet  atomic.Bool  // the nodes send no heartbeats by themselves
	acked  atomic.Int64 // answers to heartbeats that arrived
	tasks  sync.WaitGroup
}

type fleetNode struct {
	fleet  *fleet
	id     string
	conn   *rpc.Conn
	stream *rpc.ClientStream[structs.SessionUp, structs.SessionDown]
	send   sync.Mutex
	batch  uint64
	known  map[string]bool
	live   atomic.Bool // it was welcomed
}

// fleetSize is how many nodes the benchmarks have: FLEET, or 1000.
func fleetSize(b testing.TB) int {
	text, set := os.LookupEnv("FLEET")
	if !set {
		return 1000
	}
	size, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return size
}

func newFleet(b testing.TB, size int) *fleet {
	b.Helper()
	ca, err := auth.NewCA("c0ffee", rand.Reader, time.Now())
	must(b, err)
	credentials := func(role auth.Role, id string) *auth.Credentials {
		issued, err := ca.IssueAgent(auth.Grant{Role: role, ID: id}, rand.Reader, time.Now())
		must(b, err)
		own, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, ca.CertificatePEM())
		must(b, err)
		return own
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(b, err)
	ctx, cancel := context.WithCancel(b.Context())
	f := &fleet{b: b, addr: listener.Addr().String(), ctx: ctx}
	identity := rpc.NewIdentity(credentials(auth.RoleServer, "s1"))
	quiet := slog.New(slog.DiscardHandler)
	mux := rpc.NewMux(listener, rpc.MuxConfig{Identity: identity, Logger: quiet, FailAfter: time.Minute})
	answers := rpc.NewServer(identity, quiet)
	store := state.New()
	node, err := consensus.Open(consensus.Config{
		ClusterID: "c0ffee", Dir: b.TempDir(), FSM: NewMachine(store),
		Transport: consensus.NewNetwork(time.Second).Transport("s1"),
	})
	must(b, err)
	f.server, err = Open(Config{
		ID: node.ID(), Store: store, Log: node, Peers: NewFakePeers().For("s1"), Now: time.Now, Rand: rand.Reader, Logger: quiet,
		ClusterInit: &structs.ClusterInit{Cluster: structs.Cluster{ID: "c0ffee"}},
		Timings:     Timings{Liveness: LivenessTimings{SilentAfter: time.Hour}},
	}) // nobody is judged while a busy machine is measured
	must(b, err)
	f.server.Register(answers)
	lane := mux.RPC()
	f.tasks.Go(func() { _ = mux.Serve() })
	f.tasks.Go(func() { _ = answers.Serve(lane) })
	must(b, node.Bootstrap([]consensus.Peer{{ID: node.ID(), Addr: "s1", Voter: true}}))
	for i := range size {
		id := fmt.Sprintf("%032x", i+1)
		pool := rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(credentials(auth.RoleClient, id)), FailAfter: time.Minute})
		b.Cleanup(pool.Close)
		conn, err := pool.Conn(rpc.Target{Addr: f.addr})
		must(b, err)
		f.nodes = append(f.nodes, &fleetNode{fleet: f, id: id, conn: conn, known: make(map[string]bool)})
	}
	b.Cleanup(func() {
		cancel()
		f.server.Close()
		ended, stop := context.WithCancel(context.Background())
		stop()
		answers.Stop(ended)
		must(b, mux.Close())
		must(b, node.Shutdown(context.Background(), false))
		f.tasks.Wait()
	})
	return f
}

func must(b testing.TB, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// each does something for every node, some at a time.
func (f *fleet) each(do func(int, *fleetNode) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(f.nodes); i = int(next.Add(1)) - 1 {
				if err := do(i, f.nodes[i]); err != nil {
					f.b.Error(err)
				}
			}
		})
	}
	group.Wait()
}

func (f *fleet) connect() {
	f.each(func(_ int, n *fleetNode) (err error) {
		for range 20 { // handshakes have a deadline, which a busy machine may miss
			if _, err = rpc.Ping(f.ctx, n.conn); err == nil {
				return nil
			}
		}
		return err
	})
}

func (f *fleet) register() {
	f.tasks.Go(f.beat)
	var welcomed sync.WaitGroup
	welcomed.Add(len(f.nodes))
	f.each(func(i int, n *fleetNode) (err error) {
		if n.stream, err = rpc.OpenStream[structs.SessionUp, structs.SessionDown](f.ctx, n.conn, structs.MethodNodeSession); err != nil {
			return err
		}
		f.tasks.Go(func() { n.receive(sync.OnceFunc(welcomed.Done)) })
		return n.say(&structs.SessionUp{Hello: &structs.NodeRegister{Node: fleetRecord(i, n.id)}})
	})
	welcomed.Wait()
	if f.b.Failed() {
		f.b.FailNow()
	}
}

func fleetRecord(i int, id string) structs.Node {
	devices := make([]structs.Device, 8)
	for k := range devices {
		devices[k] = structs.Device{
			ID: fmt.Sprintf("GPU-%05d-%d", i, k), Index: k, Kind: "nvidia/gpu", Model: "NVIDIA A800-SXM4-80GB",
			Memory: 80 << 30, Healthy: true, NUMANode: k / 4, LinkGroup: "0",
		}
	}
	return structs.Node{
		ID: id, Name: fmt.Sprintf("node-%05d", i), Addr: "127.0.0.1", RPCAddr: fmt.Sprintf("127.0.0.1:%d", 30000+i),
		Version: "bench", Incarnation: 1, Drivers: []string{"exec"}, Devices: devices, Topology: []string{fmt.Sprintf("rack-%03d", i/32)},
		Capacity: structs.Capacity{CPU: 64, Memory: 512 << 30, PortMin: 20000, PortMax: 32000},
	}
}

func (n *fleetNode) say(up *structs.SessionUp) error {
	n.send.Lock()
	defer n.send.Unlock()
	return n.stream.Send(up)
}

// receive answers assignments: running at once, complete when told to stop.
func (n *fleetNode) receive(welcomed func()) {
	for {
		down, err := n.stream.Recv()
		if err != nil {
			if n.fleet.ctx.Err() == nil {
				n.fleet.b.Errorf("session of %s: %v", n.id, err)
			}
			welcomed()
			return
		}
		switch {
		case down.Welcome != nil:
			n.live.Store(true)
			welcomed()
		case down.HeartbeatAck != nil:
			n.fleet.acked.Add(1)
		case down.Assignments != nil:
			var reports []structs.AllocReport
			for _, a := range down.Assignments.Set {
				if n.known[a.Alloc.ID] || a.Alloc.Status.Terminal() {
					continue
				}
				n.known[a.Alloc.ID] = true
				n.fleet.told.Add(1)
				reports = append(reports, structs.AllocReport{AllocID: a.Alloc.ID, Attempt: a.Alloc.Attempt, Status: structs.AllocRunning, StartedAt: 1})
			}
			if len(reports) > 0 {
				n.batch++
				_ = n.say(&structs.SessionUp{Reports: &structs.ReportBatch{Seq: n.batch, Reports: reports}})
			}
		}
	}
}

// beat keeps the nodes alive, a twentieth of them at a time.
func (f *fleet) beat() {
	for slice := 0; ; slice = (slice + 1) % 20 {
		for i := slice; i < len(f.nodes) && !f.quiet.Load(); i += 20 {
			if f.nodes[i].live.Load() {
				_ = f.nodes[i].say(&structs.SessionUp{Heartbeat: &structs.Heartbeat{Seq: 1, SentAt: 1}})
			}
		}
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// fleetJob is a batch whose subjobs need a whole node each.
func fleetJob(name string, count int) *structs.Job {
	job := testJob(name, 1)
	job.Type, job.Batch = structs.JobTypeBatch, &structs.Batch{Count: count}
	job.Resources = []structs.Resources{{CPU: 64, Memory: 1 << 30, Devices: []structs.DeviceRequest{{Kind: "nvidia/gpu", Count: 8}}}}
	return job
}

// arrive waits until so many assignments have reached their nodes.
func (f *fleet) arrive(n int64) {
	for f.told.Load() < n {
		if f.b.Failed() || f.ctx.Err() != nil {
			f.b.FailNow()
		}
		pass(time.Millisecond)
	}
}

// BenchmarkHeartbeat lets FLEET nodes send heartbeats, all of them at once; one
// op is a heartbeat and its answer, on both sides.
func BenchmarkHeartbeat(b *testing.B) {
	f := newFleet(b, fleetSize(b))
	f.connect()
	f.register()
	f.quiet.Store(true)
	before := processor(b)
	b.ResetTimer()
	for sent := 0; sent < b.N; {
		acked, round := f.acked.Load(), min(len(f.nodes), b.N-sent)
		for _, node := range f.nodes[:round] {
			must(b, node.say(&structs.SessionUp{Heartbeat: &structs.Heartbeat{Seq: 1, SentAt: 1}}))
		}
		for f.acked.Load() < acked+int64(round) {
			pass(time.Millisecond)
		}
		sent += round
	}
	b.StopTimer()
	b.ReportMetric(float64((processor(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// processor is the processor time that this process has used.
func processor(b *testing.B) time.Duration {
	var used syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkFleet registers FLEET nodes and starts on each a subjob of one batch.
// Connections are there before; a node is registered when it is welcomed, and
// placed when it has heard of its work.
func BenchmarkFleet(b *testing.B) {
	size := fleetSize(b)
	for range b.N {
		f := newFleet(b, size)
		f.connect()
		began, used := time.Now(), processor(b)
		f.register()
		registered, registering := time.Since(began), processor(b)-used
		began, used = time.Now(), processor(b)
		if _, err := admitAndSubmit(b.Context(), f.server, "", fleetJob("one", size)); err != nil {
			b.Fatal(err)
		}
		f.arrive(int64(size))
		placed, placing := time.Since(began), processor(b)-used
		b.ReportMetric(float64(size)/registered.Seconds(), "registered/s")
		b.ReportMetric(float64(size)/placed.Seconds(), "placed/s")
		b.ReportMetric(placed.Seconds(), "placed-s")
		b.ReportMetric(registering.Seconds(), "register-cpu-s")
		b.ReportMetric(placing.Seconds(), "place-cpu-s")
	}
}
