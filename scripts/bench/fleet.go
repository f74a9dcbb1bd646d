package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/rpc"
	"nomadlike/nomadlike/structs"
)

const (
	fleetSize    = 10_000 // simulated agents, unless the command line says otherwise
	fleetDialers = 16     // handshakes at a time
	fleetDevices = 8      // of each node
	fleetBeats   = 20     // slices of a heartbeat round
	fleetCPU     = 64     // cores of each node
	fleetMemory  = 512 << 30
	fleetDevice  = "nvidia/gpu"
	connectTries = 20  // handshakes have a deadline, which a busy machine may miss
	fleetGC      = 400 // percent; ten thousand agents would each have a heap of their own
	fleetLimit   = 5 * time.Minute
	fleetRest    = 20 * time.Second
)

// fleet is many agents in this process: each has an identity of its own, its
// own connection and its own session with a real server. They have no gossip,
// and their tasks are answers: running at once, complete when told.
type fleet struct {
	w        *world
	agents   []*simulated
	every    atomic.Int64 // nanoseconds between heartbeats
	assigned atomic.Int64 // assignments that arrived
	failed   atomic.Pointer[error]
	ctx      context.Context // of the sessions and heartbeats
	stop     context.CancelFunc
	running  sync.WaitGroup
}

// simulated is one agent of a fleet.
type simulated struct {
	fleet *fleet
	id    string
	pool  *rpc.Pool
	conn  *rpc.Conn

	mu struct {
		sync.Mutex
		stream *rpc.ClientStream[structs.SessionUp, heard]
		beat   uint64 // heartbeats sent; they begin with the welcome
		live   bool   // it was welcomed
		batch  uint64
		known  map[string]uint64 // attempts of what runs, by the allocation's id
	}
}

// heard is what a simulated agent understands of structs.SessionDown. A real one
// has a machine for itself, where reading a job costs it nothing that it would
// miss; here all of them share the processor with the server.
type heard struct {
	Welcome      *structs.Welcome      `json:"welcome,omitempty"`
	Assignments  *heardAssignments     `json:"assignments,omitempty"`
	HeartbeatAck *structs.HeartbeatAck `json:"heartbeat_ack,omitempty"`
}

// heardAssignments is what it understands of structs.Assignments.
type heardAssignments struct {
	Set []struct {
		Alloc struct {
			ID      string               `json:"id"`
			Attempt uint64               `json:"attempt"`
			Desired structs.AllocDesired `json:"desired"`
			Status  structs.AllocStatus  `json:"status"`
		} `json:"alloc"`
	} `json:"set,omitempty"`
}

// newFleet starts one server, with its log on disk, and makes the agents'
// identities; nobody is connected yet.
func (b *bench) newFleet(ctx context.Context, size int) (*fleet, error) {
	w, err := b.newWorld("s1")
	if err != nil {
		return nil, err
	}
	if w.netns { // the agents are in this process, so all is on loopback
		w.agents["s1"].addr = "127.0.0.1"
		w.unNamespace()
	}
	debug.SetGCPercent(fleetGC)
	ctx, stop := context.WithCancel(ctx)
	f := &fleet{w: w, ctx: ctx, stop: stop}
	f.every.Store(int64(time.Second))
	if err := w.form(ctx, 1, 0); err != nil {
		f.close()
		return nil, err
	}
	if err := f.identities(size); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// identities signs certificates with the server's own CA, as its join door
// would.
func (f *fleet) identities(size int) error {
	dir := filepath.Join(f.w.agents["s1"].dir, "data", "identity")
	caPEM, err := os.ReadFile(filepath.Join(dir, "ca.pem"))
	if err != nil {
		return err
	}
	keyPEM, err := os.ReadFile(filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		return err
	}
	agentPEM, err := os.ReadFile(filepath.Join(dir, "agent.pem"))
	if err != nil {
		return err
	}
	certs, err := auth.ParseCertificates(agentPEM)
	if err != nil {
		return err
	}
	self, err := auth.ParseIdentity(certs[0])
	if err != nil {
		return err
	}
	ca, err := auth.ParseCA(caPEM, keyPEM, self.Cluster)
	if err != nil {
		return err
	}
	for i := range size {
		id := fmt.Sprintf("%032x", i+1)
		issued, err := ca.IssueAgent(auth.Grant{Role: auth.RoleClient, ID: id}, rand.Reader, time.Now())
		if err != nil {
			return err
		}
		credentials, err := auth.ParseCredentials(issued.ChainPEM, issued.KeyPEM, caPEM)
		if err != nil {
			return err
		}
		agent := &simulated{fleet: f, id: id, pool: rpc.NewPool(rpc.Dialer{Identity: rpc.NewIdentity(credentials), FailAfter: time.Minute})}
		agent.mu.known = make(map[string]uint64)
		f.agents = append(f.agents, agent)
	}
	return nil
}

// each runs do for every agent, some at a time.
func (f *fleet) each(do func(int, *simulated) error) error {
	var next atomic.Int64
	errs := make([]error, fleetDialers)
	var group sync.WaitGroup
	for worker := range fleetDialers {
		group.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(f.agents) || errs[worker] != nil {
					return
				}
				errs[worker] = do(i, f.agents[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// connect opens every agent's connection: TCP, TLS with both certificates,
// HTTP/2. Agents come one after the other in real life, and keep theirs.
func (f *fleet) connect(ctx context.Context) error {
	addr := fmt.Sprintf("%s:%d", f.w.agents["s1"].addr, f.w.agents["s1"].port)
	return f.each(func(_ int, a *simulated) (err error) {
		if a.conn, err = a.pool.Conn(rpc.Target{Addr: addr}); err != nil {
			return err
		}
		for range connectTries {
			if _, err = rpc.Ping(ctx, a.conn); err == nil {
				break
			}
		}
		return err
	})
}

// register opens every agent's session, says its Hello and waits for its
// Welcome: then the node is in the log of the server.
func (f *fleet) register(ctx context.Context) error {
	f.running.Go(f.beat)
	var welcomed sync.WaitGroup
	welcomed.Add(len(f.agents))
	err := f.each(func(i int, a *simulated) error {
		stream, err := rpc.OpenStream[structs.SessionUp, heard](f.ctx, a.conn, structs.MethodNodeSession)
		if err != nil {
			return err
		}
		a.mu.stream = stream
		f.running.Go(func() { a.receive(sync.OnceFunc(welcomed.Done)) })
		return a.send(&structs.SessionUp{Hello: &structs.NodeRegister{Node: f.node(i, a.id)}})
	})
	if err != nil {
		return err
	}
	done := make(chan struct{})
	go func() { welcomed.Wait(); close(done) }()
	if err := until(ctx, fleetLimit, "every agent's welcome", func() bool {
		select {
		case <-done:
			return true
		default:
			return f.failed.Load() != nil
		}
	}); err != nil {
		return err
	}
	return f.problem()
}

func (f *fleet) node(i int, id string) structs.Node {
	devices := make([]structs.Device, fleetDevices)
	for k := range devices {
		devices[k] = structs.Device{
			ID: fmt.Sprintf("GPU-%05d-%d", i, k), Kind: fleetDevice, Model: "NVIDIA A800-SXM4-80GB",
			Memory: 80 << 30, Healthy: true, NUMANode: k / 4, LinkGroup: "0",
		}
	}
	return structs.Node{
		ID: id, Name: fmt.Sprintf("node-%05d", i), Addr: "127.0.0.1", RPCAddr: fmt.Sprintf("127.0.0.1:%d", 30000+i),
		Version: "bench", Incarnation: 1, Drivers: []string{structs.DriverExec}, Devices: devices,
		Topology: []string{fmt.Sprintf("rack-%03d", i/32)},
		Capacity: structs.Capacity{CPU: fleetCPU, Memory: fleetMemory, PortMin: 20000, PortMax: 32000},
	}
}

func (a *simulated) send(up *structs.SessionUp) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.mu.stream.Send(up)
}

// receive takes what the server says until the stream ends.
func (a *simulated) receive(welcomed func()) {
	for {
		down, err := a.mu.stream.Recv()
		if err != nil {
			err = fmt.Errorf("session of %s: %w", a.id, err)
			a.fleet.failed.CompareAndSwap(nil, &err)
			return
		}
		switch {
		case down.Welcome != nil:
			a.fleet.every.Store(int64(down.Welcome.HeartbeatEvery))
			a.mu.Lock()
			a.mu.live = true
			a.mu.Unlock()
			welcomed()
		case down.HeartbeatAck != nil && down.HeartbeatAck.Every != 0:
			a.fleet.every.Store(int64(down.HeartbeatAck.Every))
		case down.Assignments != nil:
			a.take(down.Assignments)
		}
	}
}

// take answers new allocations with running.
func (a *simulated) take(assignments *heardAssignments) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var reports []structs.AllocReport
	for _, one := range assignments.Set {
		alloc := one.Alloc
		if _, known := a.mu.known[alloc.ID]; known || alloc.Desired != structs.DesiredRun || alloc.Status.Terminal() {
			continue
		}
		a.mu.known[alloc.ID] = alloc.Attempt
		a.fleet.assigned.Add(1)
		reports = append(reports, structs.AllocReport{AllocID: alloc.ID, Attempt: alloc.Attempt, Status: structs.AllocRunning, StartedAt: structs.UnixNano(time.Now().UnixNano())})
	}
	a.reportLocked(reports)
}

func (a *simulated) reportLocked(reports []structs.AllocReport) {
	if len(reports) == 0 {
		return
	}
	a.mu.batch++
	_ = a.mu.stream.Send(&structs.SessionUp{Reports: &structs.ReportBatch{Seq: a.mu.batch, Reports: reports}})
}

// finish completes everything that runs.
func (f *fleet) finish() error {
	return f.each(func(_ int, a *simulated) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		var reports []structs.AllocReport
		for id, attempt := range a.mu.known {
			reports = append(reports, structs.AllocReport{
				AllocID: id, Attempt: attempt, Status: structs.AllocComplete,
				StartedAt: structs.UnixNano(time.Now().UnixNano()), FinishedAt: structs.UnixNano(time.Now().UnixNano()),
			})
		}
		a.reportLocked(reports)
		return nil
	})
}

// live sends a heartbeat of an agent that was welcomed.
func (a *simulated) live() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.mu.live {
		a.mu.beat++
		_ = a.mu.stream.Send(&structs.SessionUp{Heartbeat: &structs.Heartbeat{Seq: a.mu.beat, SentAt: time.Now().UnixNano()}})
	}
}

// beat keeps every agent alive, a slice of them at a time.
func (f *fleet) beat() {
	for slice := 0; ; slice = (slice + 1) % fleetBeats {
		for i := slice; i < len(f.agents); i += fleetBeats {
			a := f.agents[i]
			a.live()
		}
		select {
		case <-f.ctx.Done():
			return
		case <-time.After(time.Duration(f.every.Load()) / fleetBeats):
		}
	}
}

func (f *fleet) problem() error {
	if err := f.failed.Load(); err != nil {
		return *err
	}
	return nil
}

func (f *fleet) close() {
	f.stop()
	for _, a := range f.agents {
		a.pool.Close()
	}
	f.running.Wait()
	f.w.stop()
}

// arrive waits until n more assignments than before have reached their nodes.
func (f *fleet) arrive(ctx context.Context, n int64) error {
	return until(ctx, fleetLimit, fmt.Sprintf("%d assignments", n), func() bool {
		return f.assigned.Load() >= n || f.failed.Load() != nil
	})
}

// fleetJob wants every core of a node, so that each of its subjobs gets one of
// its own.
func fleetJob(name string, count int) *structs.Job {
	job := trivialJob(name, "true")
	job.Resources = []structs.Resources{{CPU: fleetCPU, Memory: 1 << 30, Devices: []structs.DeviceRequest{{Kind: fleetDevice, Count: fleetDevices}}}}
	job.Type, job.Batch = structs.JobTypeBatch, &structs.Batch{Count: count}
	return job
}

// manyNodes measures a real server with its log on disk against a fleet.
func manyNodes(ctx context.Context, b *bench) (err error) {
	size := b.fleet
	f, err := b.newFleet(ctx, size)
	if err != nil {
		return err
	}
	defer f.close()
	defer func() {
		if err != nil {
			f.w.showLog("s1")
		}
	}()
	rate := func(name string, do func(context.Context) error) error {
		lap := f.lap()
		if err := do(ctx); err != nil {
			return err
		}
		lap.report(name, func(wall float64) float64 { return float64(size) / wall }, "1/s")
		return nil
	}
	if err := rate("fleet_connect_per_s", f.connect); err != nil {
		return err
	}
	if err := rate("fleet_register_per_s", f.register); err != nil {
		return err
	}

	for _, shape := range []struct {
		name        string
		jobs, count int
	}{{"fleet_place_one_batch_s", 1, size}, {"fleet_place_100_jobs_s", 100, size / 100}} {
		before := f.assigned.Load()
		lap := f.lap()
		ids, err := f.submitAll(ctx, shape.name, shape.jobs, shape.count)
		if err != nil {
			return err
		}
		if err := f.arrive(ctx, before+int64(size)); err != nil {
			return fmt.Errorf("%w (%d arrived)", err, f.assigned.Load()-before)
		}
		lap.report(shape.name, func(wall float64) float64 { return wall }, "s")
		if err := f.finish(); err != nil {
			return err
		}
		for _, id := range ids {
			if err := f.w.reach(ctx, id, structs.JobSucceeded); err != nil {
				return err
			}
		}
	}
	server := f.w.agents["s1"].cmd.Process.Pid
	report("fleet_server_rss_mb", "MB", []float64{residentMB(server)})
	select { // what it keeps of 10,000 nodes that only say that they live
	case <-time.After(fleetRest):
	case <-ctx.Done():
		return ctx.Err()
	}
	report("fleet_server_rss_rest_mb", "MB", []float64{residentMB(server)})
	return f.problem()
}

// lap is a measured piece of work of both processes.
type lap struct {
	fleet          *fleet
	begin          time.Time
	server, agents float64 // processor seconds
}

func (f *fleet) lap() lap {
	return lap{fleet: f, begin: time.Now(), server: cpuSeconds(f.w.agents["s1"].cmd.Process.Pid), agents: cpuSeconds(os.Getpid())}
}

// report prints the figure, and the processor time that it took beside it: on
// a machine that does other work too, that is the steadier one.
func (l lap) report(name string, of func(wall float64) float64, unit string) {
	now := l.fleet.lap()
	report(name, unit, []float64{of(now.begin.Sub(l.begin).Seconds())})
	act := strings.TrimSuffix(strings.TrimSuffix(name, "_s"), "_per")
	report(act+"_server_cpu_s", "s", []float64{now.server - l.server})
	report(act+"_agents_cpu_s", "s", []float64{now.agents - l.agents})
}

func (f *fleet) submitAll(ctx context.Context, name string, jobs, count int) ([]string, error) {
	ids, errs := make([]string, jobs), make([]error, jobs)
	var group sync.WaitGroup
	gate := make(chan struct{}, submitters)
	for i := range jobs {
		group.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			ids[i], errs[i] = f.w.submit(ctx, fleetJob(fmt.Sprintf("%s-%d", short(name), i), count))
		})
	}
	group.Wait()
	return ids, errors.Join(errs...)
}

// short makes a job name of a figure's.
func short(name string) string {
	out := []byte(name)
	for i, c := range out {
		if c == '_' {
			out[i] = '-'
		}
	}
	return string(out)
}
