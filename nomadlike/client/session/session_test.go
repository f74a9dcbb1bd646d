package session

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/structs"
)

// node is an Owner that writes down what it is told.
type node struct {
	sync.Mutex
	assigned  []uint64
	delivered []Delivered
	links     int
	welcomes  int
	hellos    int
}

func (n *node) Hello() *structs.NodeRegister {
	n.Lock()
	defer n.Unlock()
	n.hellos++
	return &structs.NodeRegister{Node: structs.Node{ID: "n1"}}
}

func (n *node) Assignments(a *structs.Assignments) {
	n.Lock()
	defer n.Unlock()
	n.assigned = append(n.assigned, a.Index)
}

func (n *node) Delivered(d []Delivered) {
	n.Lock()
	defer n.Unlock()
	n.delivered = append(n.delivered, d...)
}

func (n *node) Connected(w *structs.Welcome) {
	n.Lock()
	defer n.Unlock()
	if w != nil {
		n.links++
		n.welcomes++
	} else {
		n.links--
	}
}

func (n *node) connected() bool {
	n.Lock()
	defer n.Unlock()
	return n.links == 1
}

// server answers like a real one until the stream ends, and keeps what came.
type server struct {
	sync.Mutex
	mute    bool // answers nothing any more
	holdAck bool // acknowledges no reports
	refuse  []string
	every   structs.Duration // told with each acknowledgement; 0: nothing
	batches []structs.ReportBatch
	at      []time.Time
	beats   []structs.Heartbeat
	byes    int
}

func (s *server) serve(_ string, stream *FakeStream) {
	for {
		up, err := stream.Recv()
		if err != nil {
			return
		}
		s.Lock()
		var down *structs.SessionDown
		switch {
		case up.Hello != nil:
			down = &structs.SessionDown{Welcome: &structs.Welcome{
				ServerID: "s1", HeartbeatEvery: structs.Duration(200 * time.Millisecond),
				LeaseTTL: structs.Duration(5 * time.Second), Servers: []string{"a", "b", "c"},
			}}
		case up.Heartbeat != nil:
			s.beats = append(s.beats, *up.Heartbeat)
			down = &structs.SessionDown{HeartbeatAck: &structs.HeartbeatAck{Seq: up.Heartbeat.Seq, SentAt: up.Heartbeat.SentAt, Every: s.every}}
		case up.Reports != nil:
			s.batches = append(s.batches, *up.Reports)
			s.at = append(s.at, time.Now())
			if !s.holdAck {
				down = &structs.SessionDown{ReportAck: &structs.ReportAck{Seq: up.Reports.Seq, Refused: s.refuse}}
			}
		case up.Bye:
			s.byes++
			s.Unlock()
			return
		}
		mute := s.mute
		s.Unlock()
		if down != nil && !mute {
			if stream.Send(down) != nil {
				return
			}
		}
	}
}

// harness runs a session against fake servers inside a synctest bubble.
type harness struct {
	*Session
	node    *node
	server  *server
	servers *FakeServers
	stop    func()
}

func start(t *testing.T, addrs ...string) *harness {
	t.Helper()
	w := &harness{node: &node{}, server: &server{}}
	w.servers = &FakeServers{Serve: w.server.serve}
	boot := time.Now()
	w.Session = New(Config{
		NodeID:   "n1",
		Servers:  func() []string { return addrs },
		Open:     w.servers.Open,
		Owner:    w.node,
		Boottime: func() time.Duration { return time.Hour + time.Since(boot) },
		Chance:   func() float64 { return 0.5 },
		Logger:   slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.Run(ctx) })
	w.stop = func() {
		cancel()
		running.Wait()
		w.servers.Wait()
	}
	synctest.Wait()
	return w
}

// pass lets virtual time pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func report(id string, status structs.AllocStatus) structs.AllocReport {
	return structs.AllocReport{AllocID: id, Attempt: 1, Status: status}
}

func TestLeaseCountsFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		if !w.node.connected() {
			t.Fatal("not registered")
		}
		pass(1010 * time.Millisecond)
		synctest.Wait()
		if n := len(w.server.beats); n != 6 {
			t.Fatalf("%d heartbeats in a second at 200 ms, want 6", n)
		}
		last := w.server.beats[5].SentAt
		lease := w.Lease()
		if lease.From != time.Duration(last) {
			t.Fatalf("lease counts from %s, the heartbeat was sent at %s", lease.From, time.Duration(last))
		}
		// From now on the server hears and stays silent: nothing renews.
		w.server.Lock()
		w.server.mute = true
		w.server.Unlock()
		pass(5 * time.Second)
		synctest.Wait()
		if got := w.Lease(); got.From != lease.From {
			t.Fatalf("lease moved from %s to %s without an answer", lease.From, got.From)
		}
		if left := w.Lease().Remaining(time.Hour + 6010*time.Millisecond); left > 0 {
			t.Fatalf("lease still has %s", left)
		}
		w.stop()
	})
}

func TestReportsGoAtOnceThenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		pass(50 * time.Millisecond)
		asked := time.Now()
		w.Report(report("x", structs.AllocRunning))
		synctest.Wait()
		if len(w.server.batches) != 1 || !w.server.at[0].Equal(asked) {
			t.Fatalf("an idle session did not send at once: %d batches", len(w.server.batches))
		}
		pass(time.Millisecond)
		w.server.Lock()
		w.server.holdAck = true
		w.server.Unlock()
		asked = time.Now()
		w.Report(report("z", structs.AllocRunning)) // at once again, and not acknowledged
		for range 3 {
			pass(time.Millisecond)
			w.Report(report("y", structs.AllocPrepared))
			w.Report(report("y", structs.AllocRunning))
			w.Report(report("x", structs.AllocComplete))
		}
		pass(10 * time.Millisecond)
		if len(w.server.batches) != 3 {
			t.Fatalf("%d batches, want 3", len(w.server.batches))
		}
		if first, second := w.server.at[1].Sub(asked), w.server.at[2].Sub(asked); first != 0 || second != FlushEvery {
			t.Fatalf("batches after %s and %s, want 0 and %s", first, second, FlushEvery)
		}
		got := w.server.batches[2].Reports
		if len(got) != 2 || got[0].Status != structs.AllocRunning || got[1].Status != structs.AllocComplete {
			t.Fatalf("the batch is %+v", got)
		}
		if n := w.Unacknowledged(); n != 3 {
			t.Fatalf("%d reports are held, want z, y and x", n)
		}
		w.stop()
	})
}

func TestUnacknowledgedReportsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a", "b")
		w.server.Lock()
		w.server.holdAck = true
		w.server.Unlock()
		w.Report(report("x", structs.AllocRunning))
		synctest.Wait()
		first := w.Server()
		w.server.Lock()
		w.server.mute = true
		w.server.Unlock()
		pass(1100 * time.Millisecond)
		w.server.Lock()
		w.server.mute, w.server.holdAck = false, false
		w.server.Unlock()
		pass(4 * time.Second)
		synctest.Wait()
		if !w.node.connected() {
			t.Fatal("not connected again")
		}
		if second := w.Server(); second == first {
			t.Errorf("went back to %s, which was silent", first)
		}
		if n := len(w.server.batches); n != 2 {
			t.Fatalf("report was sent %d times, want 2", n)
		}
		if len(w.node.delivered) != 1 || w.node.delivered[0] != (Delivered{AllocID: "x", Status: structs.AllocRunning}) {
			t.Fatalf("delivered: %+v", w.node.delivered)
		}
		w.stop()
	})
}

func TestRefusedReportsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		w.server.refuse = []string{"x"}
		w.Report(report("x", structs.AllocRunning))
		pass(time.Second)
		synctest.Wait()
		if len(w.node.delivered) != 1 || !w.node.delivered[0].Refused || w.Unacknowledged() != 0 {
			t.Fatalf("delivered %+v, %d left", w.node.delivered, w.Unacknowledged())
		}
		w.stop()
	})
}

func TestDeadServerIsLeftForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a", "b", "c")
		first := w.Server()
		w.servers.Down(first, true)
		w.server.Lock()
		w.server.mute = true
		w.server.Unlock()
		pass(time.Second)
		w.server.Lock()
		w.server.mute = false
		w.server.Unlock()
		pass(50 * time.Millisecond)
		synctest.Wait()
		if got := w.Server(); got == "" || got == first {
			// The Hello may have met the silence too; one welcome timeout later it is over.
			pass(WelcomeTimeout + RetryMax)
			synctest.Wait()
		}
		if got := w.Server(); got == "" || got == first {
			t.Fatalf("after %s died the stream leads to %q; dialled %v", first, got, w.servers.Dialled())
		}
		w.stop()
	})
}

func TestOutageOfAllServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t) // none known
		w.stop()
	})
	synctest.Test(t, func(t *testing.T) {
		servers := &FakeServers{}
		for _, addr := range []string{"a", "b", "c"} {
			servers.Down(addr, true)
		}
		s := New(Config{
			NodeID: "n1", Servers: func() []string { return []string{"a", "b", "c"} }, Open: servers.Open, Owner: &node{},
			Boottime: func() time.Duration { return 0 }, Chance: func() float64 { return 0.5 }, Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithTimeout(t.Context(), MassLossAfter)
		defer cancel()
		s.Run(ctx)
		quick := len(servers.Dialled())
		// Three servers each 150 ms for five seconds.
		if quick < 90 || quick > 110 {
			t.Fatalf("%d dials in %s", quick, MassLossAfter)
		}
		order := servers.Dialled()[:3]
		slices.Sort(order)
		if !slices.Equal(order, []string{"a", "b", "c"}) {
			t.Fatalf("the first round dialled %v", order)
		}
	})
}

func TestByeAfterTheLastReports(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		w.Report(report("x", structs.AllocRunning))
		w.Report(report("y", structs.AllocRunning))
		w.stop()
		if w.server.byes != 1 || len(w.server.batches) == 0 {
			t.Fatalf("%d byes, %d batches", w.server.byes, len(w.server.batches))
		}
		if w.node.links != 0 {
			t.Fatalf("%d links left", w.node.links)
		}
	})
}

func TestRefreshSaysHelloAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		before := w.node.hellos
		w.Refresh()
		synctest.Wait()
		if w.node.hellos != before+1 || w.node.welcomes != 1 {
			t.Fatalf("%d hellos, %d welcomes told", w.node.hellos, w.node.welcomes)
		}
		w.stop()
	})
}

// Servers slow heartbeats down when many nodes came, and nobody takes the
// slower ones for silence.
func TestHeartbeatsFollowTheInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t, "a")
		count := func(span time.Duration) int {
			w.server.Lock()
			before := len(w.server.beats)
			w.server.Unlock()
			pass(span)
			w.server.Lock()
			defer w.server.Unlock()
			return len(w.server.beats) - before
		}
		if n := count(10 * time.Second); n < 49 || n > 51 {
			t.Errorf("%d heartbeats in ten seconds, want 50", n)
		}
		w.server.Lock()
		w.server.every = structs.Duration(2 * time.Second)
		w.server.Unlock()
		pass(time.Second)
		if n := count(20 * time.Second); n < 9 || n > 11 {
			t.Errorf("%d heartbeats in twenty seconds, want 10", n)
		}
		if !w.node.connected() || len(w.servers.Dialled()) != 1 {
			t.Errorf("dialled %q", w.servers.Dialled())
		}
		w.stop()
	})
}
