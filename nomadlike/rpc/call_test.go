package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

func TestCallsByRole(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	other := w.onLoopback(auth.RoleServer, "s2", MuxConfig{}, nil)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	cases := []struct {
		method           string
		server, client   bool
		codeWhenRefused  structs.ErrorCode
		messageIDRefused string
	}{
		{"Echo.Both", true, true, "", ""},
		{"Echo.Servers", true, false, structs.CodeForbidden, "rpc.role"},
		{"Echo.Clients", false, true, structs.CodeForbidden, "rpc.role"},
		{"Echo.Nobody", false, false, structs.CodeForbidden, "rpc.role"},
		{"Echo.Missing", false, false, structs.CodeNotAvailable, "rpc.unknown_method"},
		{"Missing.Both", false, false, structs.CodeNotAvailable, "rpc.unknown_method"},
	}
	for _, c := range cases {
		for _, from := range []*agent{other, client} {
			allowed := c.server
			if from == client {
				allowed = c.client
			}
			response, err := Call[echo, echo](t.Context(), from.conn(t, server), c.method, &echo{Text: "hi", Count: 1})
			if allowed {
				want := &echo{Text: "hi from " + from.identity.Self().ID, Count: 2}
				if diff := cmp.Diff(want, response); err != nil || diff != "" {
					t.Errorf("%s from %s: %v\n%s", c.method, from.identity.Self(), err, diff)
				}
				continue
			}
			var failure *structs.Error
			if !errors.As(err, &failure) || failure.Code != c.codeWhenRefused || failure.ID != c.messageIDRefused {
				t.Errorf("%s from %s: %v, want %s", c.method, from.identity.Self(), err, c.messageIDRefused)
			}
		}
	}
	// A stream's refusal shows at the first Recv.
	stream, err := OpenStream[echo, echo](t.Context(), client.conn(t, server), "Echo.ServersStream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if message, err := stream.Recv(); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a node's stream to servers: %v, %v", message, err)
	}
}

func TestRefusedRequestsAreNotDecoded(t *testing.T) {
	w := newCluster(t)
	var decoded atomic.Bool
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, func(s *Server) {
		Unary(s, "Echo.Servers", FromServers, func(_ context.Context, _ Peer, _ *spy) (*echo, error) {
			decoded.Store(true)
			return &echo{}, nil
		})
	})
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	_, err := Call[echo, echo](t.Context(), client.conn(t, server), "Echo.Servers", &echo{})
	if structs.CodeOf(err) != structs.CodeForbidden || decoded.Load() || spyDecoded.Load() {
		t.Errorf("error %v, handled %v, decoded %v", err, decoded.Load(), spyDecoded.Load())
	}
}

// spy notes that it was decoded.
type spy struct{}

var spyDecoded atomic.Bool

func (*spy) UnmarshalCBOR([]byte) error {
	spyDecoded.Store(true)
	return nil
}

func TestErrorsCross(t *testing.T) {
	w := newCluster(t)
	details := make([]structs.Error, 300)
	for i := range details {
		details[i] = structs.Error{Code: structs.CodeInvalid, ID: "job.bad", Params: map[string]string{"field": strings.Repeat("x", 400)}}
	}
	failures := map[string]error{
		"plain":    structs.NewError(structs.CodeConflict, "job.exists", "name", "训练"),
		"wrapped":  errors.Join(errors.New("while admitting"), structs.NewError(structs.CodeNotFound, "job.missing")),
		"foreign":  io.ErrUnexpectedEOF,
		"timeout":  context.DeadlineExceeded,
		"huge":     &structs.Error{Code: structs.CodeInvalid, ID: "job.invalid", Details: details},
		"enormous": structs.NewError(structs.CodeInvalid, "job.invalid", "text", strings.Repeat("y", 1<<20)),
	}
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, func(s *Server) {
		Unary(s, "Fail.Call", FromAgents, func(_ context.Context, _ Peer, request *echo) (*echo, error) {
			return nil, failures[request.Text]
		})
		Stream(s, "Fail.Stream", FromAgents, func(_ context.Context, _ Peer, stream *ServerStream[echo, echo]) error {
			request, err := stream.Recv()
			if err != nil {
				return err
			}
			return failures[request.Text]
		})
	})
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	conn := client.conn(t, server)
	want := map[string]*structs.Error{
		"plain":    {Code: structs.CodeConflict, ID: "job.exists", Params: map[string]string{"name": "训练"}},
		"wrapped":  {Code: structs.CodeNotFound, ID: "job.missing"},
		"foreign":  {Code: structs.CodeInternal, ID: "rpc.internal", Params: map[string]string{"cause": "unexpected EOF"}},
		"timeout":  {Code: structs.CodeTimeout, ID: "rpc.timeout"},
		"huge":     {Code: structs.CodeInvalid, ID: "job.invalid", Details: details[:100]},
		"enormous": {Code: structs.CodeInvalid, ID: "rpc.internal", Params: map[string]string{"cause": "the error is too large to send"}},
	}
	for name := range failures {
		t.Run(name, func(t *testing.T) {
			_, callErr := Call[echo, echo](t.Context(), conn, "Fail.Call", &echo{Text: name})
			stream, err := OpenStream[echo, echo](t.Context(), conn, "Fail.Stream")
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			if err := stream.Send(&echo{Text: name}); err != nil {
				t.Fatal(err)
			}
			_, streamErr := stream.Recv()
			for _, err := range []error{callErr, streamErr} {
				var got *structs.Error
				if !errors.As(err, &got) {
					t.Fatalf("not a structs.Error: %v", err)
				}
				if diff := cmp.Diff(want[name], got, cmpopts.IgnoreUnexported(structs.Error{})); diff != "" {
					t.Error(diff)
				}
			}
		})
	}
}

func TestStreamBothWays(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	stream, err := OpenStream[echo, echo](t.Context(), client.conn(t, server), "Echo.Stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	const messages = 1000
	sent := make(chan error, 1)
	go func() {
		for i := range messages {
			if err := stream.Send(&echo{Count: i, Data: make([]byte, i)}); err != nil {
				sent <- err
				return
			}
		}
		sent <- stream.CloseSend()
	}()
	for i := range messages {
		message, err := stream.Recv()
		if err != nil || message.Count != i+1 || len(message.Data) != i {
			t.Fatalf("message %d: %+v, %v", i, message, err)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last message: %v", err)
	}
	if err := <-sent; err != nil {
		t.Errorf("send: %v", err)
	}
	if err := stream.Send(&echo{}); err == nil {
		t.Error("sent on an ended stream")
	}
	stream.Close()
	stream.Close()
	if n := client.conn(t, server).streams.Load(); n != 0 {
		t.Errorf("%d streams are counted after the end", n)
	}
}

func TestClosingAStreamEndsItsHandler(t *testing.T) {
	w := newCluster(t)
	entered, ended := make(chan struct{}), make(chan error, 1)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, func(s *Server) {
		Stream(s, "Wait.Stream", FromAgents, func(ctx context.Context, _ Peer, _ *ServerStream[echo, echo]) error {
			close(entered)
			<-ctx.Done()
			ended <- ctx.Err()
			return ctx.Err()
		})
	})
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	stream, err := OpenStream[echo, echo](t.Context(), client.conn(t, server), "Wait.Stream")
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	stream.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("handler's context: %v", err)
	}
	if _, err := stream.Recv(); !errors.Is(err, context.Canceled) {
		t.Errorf("receive after close: %v", err)
	}
}

func TestMessageBounds(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	conn := client.conn(t, server)
	big := &echo{Data: make([]byte, wire.MessageSizeMax-1024)}
	response, err := Call[echo, echo](t.Context(), conn, "Echo.Both", big)
	if err != nil || len(response.Data) != len(big.Data) {
		t.Fatalf("a message just within the bound: %v", err)
	}
	big.Data = make([]byte, wire.MessageSizeMax+1)
	if _, err := Call[echo, echo](t.Context(), conn, "Echo.Both", big); err == nil {
		t.Fatal("a message over the bound was sent")
	}
	// The wrong shape is the caller's fault, and does not break the connection.
	_, err = Call[wrongEcho, echo](t.Context(), conn, "Echo.Both", &wrongEcho{Count: "many"})
	if structs.CodeOf(err) != structs.CodeInvalid {
		t.Errorf("a message of the wrong shape: %v", err)
	}
	if _, err := Ping(t.Context(), conn); err != nil {
		t.Errorf("ping afterwards: %v", err)
	}
}

type wrongEcho struct {
	Count string `json:"count"`
}

func TestPanicsStayInTheirCall(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, func(s *Server) {
		Unary(s, "Panic.Call", FromAgents, func(context.Context, Peer, *echo) (*echo, error) { panic("boom") })
		Stream(s, "Panic.Stream", FromAgents, func(context.Context, Peer, *ServerStream[echo, echo]) error { panic("boom") })
	})
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	conn := client.conn(t, server)
	if _, err := Call[echo, echo](t.Context(), conn, "Panic.Call", &echo{}); structs.CodeOf(err) != structs.CodeInternal {
		t.Errorf("call: %v", err)
	}
	stream, err := OpenStream[echo, echo](t.Context(), conn, "Panic.Stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if _, err := stream.Recv(); structs.CodeOf(err) != structs.CodeInternal {
		t.Errorf("stream: %v", err)
	}
	if _, err := Ping(t.Context(), conn); err != nil {
		t.Errorf("ping afterwards: %v", err)
	}
}

func TestPingSaysWhoAnswers(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	want := &PingReply{Cluster: "c0ffee", Role: "client", ID: "n1", Protocol: wire.ProtocolVersion}
	got, err := Ping(t.Context(), server.conn(t, client))
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := Alive(t.Context(), server.conn(t, client)); err != nil {
		t.Errorf("alive: %v", err)
	}
}

func TestUnexpectedAgentsAreNotCalled(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	node := w.onLoopback(auth.RoleClient, "n2", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	cases := map[string]Target{
		"a node where a server is expected":    {Addr: node.addr, Expect: auth.Expect{Role: auth.RoleServer}},
		"another server than the expected one": {Addr: server.addr, Expect: auth.Expect{ID: "s2"}},
	}
	for name, target := range cases {
		conn, err := client.pool.Conn(target)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Call[echo, echo](t.Context(), conn, "Echo.Both", &echo{}); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRenewedIdentityIsUsed(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	// Agents never change their id; here it makes the new certificate visible.
	client.identity.Store(w.credentials(auth.RoleClient, "n1-renewed"))
	server.identity.Store(w.credentials(auth.RoleServer, "s1-renewed"))
	conn, err := client.pool.Conn(Target{Addr: server.addr, Expect: auth.Expect{ID: "s1-renewed"}})
	if err != nil {
		t.Fatal(err)
	}
	response, err := Call[echo, echo](t.Context(), conn, "Echo.Both", &echo{Text: "hi"})
	if err != nil || response.Text != "hi from n1-renewed" {
		t.Errorf("%+v, %v", response, err)
	}
}

func TestPoolKeepsOneConnectionPerTarget(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	first := client.conn(t, server)
	if client.conn(t, server) != first {
		t.Error("the pool made a second connection to one target")
	}
	for range 20 {
		if _, err := Ping(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	if counts := server.mux.Counts(); counts.Accepted != 1 {
		t.Errorf("the server saw %+v", counts)
	}
	client.pool.Forget(server.addr)
	if client.conn(t, server) == first {
		t.Error("the pool did not forget")
	}
	client.pool.Close()
	if _, err := client.pool.Conn(Target{Addr: server.addr}); structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("a closed pool: %v", err)
	}
}

func TestDeclarationsArePickedOver(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	idle := NewServer(server.identity, nil)
	answer := func(context.Context, Peer, *echo) (*echo, error) { return nil, nil }
	for name, declare := range map[string]func(){
		"no service": func() { Unary(idle, "Register", FromAgents, answer) },
		"slash":      func() { Unary(idle, "Node/Register", FromAgents, answer) },
		"too deep":   func() { Unary(idle, "Node.Sub.Register", FromAgents, answer) },
		"twice":      func() { Unary(idle, "Agent.Ping", FromAgents, answer) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: declared", name)
				}
			}()
			declare()
		}()
	}
	if diff := cmp.Diff(map[string]Callers{"Agent.Ping": FromAgents}, idle.Methods()); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkUnary(b *testing.B) {
	w := newCluster(b)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	conn := client.conn(b, server)
	request := &echo{Text: "hello", Data: make([]byte, 256)}
	if _, err := Call[echo, echo](b.Context(), conn, "Echo.Both", request); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Call[echo, echo](b.Context(), conn, "Echo.Both", request); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnaryParallel(b *testing.B) {
	w := newCluster(b)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	conn := client.conn(b, server)
	request := &echo{Text: "hello", Data: make([]byte, 256)}
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := Call[echo, echo](b.Context(), conn, "Echo.Both", request); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func BenchmarkStreamRoundTrip(b *testing.B) {
	w := newCluster(b)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, declareEchoes)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	stream, err := OpenStream[echo, echo](b.Context(), client.conn(b, server), "Echo.Stream")
	if err != nil {
		b.Fatal(err)
	}
	defer stream.Close()
	message := &echo{Text: "hello", Data: make([]byte, 256)}
	b.ReportAllocs()
	for b.Loop() {
		if err := stream.Send(message); err != nil {
			b.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDial(b *testing.B) {
	w := newCluster(b)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{}, nil)
	client := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	for b.Loop() {
		ctx, cancel := context.WithTimeout(b.Context(), 5*time.Second)
		if _, err := Ping(ctx, client.conn(b, server)); err != nil {
			b.Fatal(err)
		}
		cancel()
		client.pool.Forget(server.addr)
	}
}

func FuzzDecodeFrame(f *testing.F) {
	good, err := wire.Marshal(&PingReply{Cluster: "c", ID: "x"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte{0xa1, 0x64, 't', 'e', 'x', 't', 0x01})
	f.Fuzz(func(t *testing.T, data []byte) {
		message := new(echo)
		if err := codecUnmarshal(data, message); err != nil {
			return
		}
		again, err := wire.Marshal(message)
		if err != nil {
			t.Fatalf("encode what was decoded: %v", err)
		}
		second := new(echo)
		if err := codecUnmarshal(again, second); err != nil {
			t.Fatalf("decode what was encoded: %v", err)
		}
		if diff := cmp.Diff(message, second, cmpopts.EquateEmpty()); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A connection whose probe failed is dialed no more once it was dropped, and
// one that carries something stays.
func TestDroppedConnectionsAreNotDialed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int64
		pool := NewPool(Dialer{Dial: func(context.Context, string) (net.Conn, error) {
			dials.Add(1)
			return nil, syscall.ECONNREFUSED
		}})
		defer pool.Close()
		conn, err := pool.Conn(Target{Addr: "10.0.0.1:1"})
		if err != nil {
			t.Fatal(err)
		}
		if err := Alive(t.Context(), conn); err == nil || !conn.Refused() {
			t.Fatalf("a refused probe: %v", err)
		}
		conn.streams.Add(1)
		pool.Drop(conn)
		if same, _ := pool.Conn(conn.Target()); same != conn {
			t.Error("a connection in use was dropped")
		}
		conn.streams.Add(-1)
		pool.Drop(conn)
		synctest.Wait()
		before := dials.Load()
		time.Sleep(time.Minute)
		if more := dials.Load() - before; more != 0 {
			t.Errorf("%d dials after the connection was dropped", more)
		}
		if next, err := pool.Conn(conn.Target()); err != nil || next == conn {
			t.Errorf("the agent cannot be called again: %v", err)
		}
	})
}
