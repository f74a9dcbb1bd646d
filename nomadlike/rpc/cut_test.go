package rpc

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
)

// These tests run in virtual time, on a network in memory.

func TestCutsAreNoticedAndHealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		network := NewFakeNetwork(0)
		var calls atomic.Int64
		server := w.onFake(network, "10.0.0.1", auth.RoleServer, "s1", func(s *Server) {
			Unary(s, "Count.Call", FromAgents, func(context.Context, Peer, *echo) (*echo, error) {
				calls.Add(1)
				return &echo{}, nil
			})
		})
		client := w.onFake(network, "10.0.0.2", auth.RoleClient, "n1", nil)
		conn := client.conn(t, server)
		call := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := Call[echo, echo](ctx, conn, "Count.Call", &echo{})
			return err
		}
		if err := call(); err != nil {
			t.Fatal(err)
		}

		// Over an open connection: bytes stay unacknowledged, the connection
		// breaks after FailAfter, and nobody knows whether the call arrived.
		network.Cut("10.0.0.1", "10.0.0.2")
		started := time.Now()
		if err := call(); structs.CodeOf(err) != structs.CodeTimeout {
			t.Errorf("cut during a call: %v", err)
		}
		if took := time.Since(started); took != DefaultFailAfter {
			t.Errorf("the cut was noticed after %s", took)
		}
		// Without a connection: nothing was sent, which the code says.
		started = time.Now()
		if err := call(); structs.CodeOf(err) != structs.CodeUnavailable {
			t.Errorf("call without connection: %v", err)
		}
		if took := time.Since(started); took > DefaultFailAfter+redialMax {
			t.Errorf("the failed dial took %s", took)
		}
		if got := calls.Load(); got != 1 {
			t.Errorf("%d calls came through", got)
		}

		network.Heal()
		started = time.Now()
		for {
			if err := call(); err == nil {
				break
			} else if structs.CodeOf(err) != structs.CodeUnavailable {
				t.Fatalf("after the cut: %v", err)
			}
			time.Sleep(10 * time.Millisecond) // virtual
		}
		if took := time.Since(started); took > 2*redialMax {
			t.Errorf("connected again after %s", took)
		}
	})
}

func TestStreamsBreakByACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		network := NewFakeNetwork(0)
		var ended atomic.Pointer[time.Time]
		server := w.onFake(network, "10.0.0.1", auth.RoleServer, "s1", func(s *Server) {
			Stream(s, "Beat.Stream", FromAgents, func(ctx context.Context, _ Peer, stream *ServerStream[echo, echo]) error {
				for {
					if _, err := stream.Recv(); err != nil {
						now := time.Now()
						ended.Store(&now)
						return err
					}
				}
			})
		})
		client := w.onFake(network, "10.0.0.2", auth.RoleClient, "n1", nil)
		stream, err := OpenStream[echo, echo](t.Context(), client.conn(t, server), "Beat.Stream")
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		if err := stream.Send(&echo{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		network.Cut("10.0.0.1", "10.0.0.2")
		cut := time.Now()
		if err := stream.Send(&echo{}); err != nil {
			t.Fatal(err)
		}
		_, err = stream.Recv()
		if took := time.Since(cut); structs.CodeOf(err) != structs.CodeTimeout || took != DefaultFailAfter {
			t.Errorf("the sending side noticed after %s: %v", took, err)
		}
		time.Sleep(time.Minute)
		if at := ended.Load(); at == nil || at.Sub(cut) > fakeKeepalive {
			t.Errorf("the listening side noticed at %v, cut at %v", at, cut)
		}
	})
}

func TestProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		network := NewFakeNetwork(0)
		server := w.onFake(network, "10.0.0.1", auth.RoleServer, "s1", nil)
		node := w.onFake(network, "10.0.0.2", auth.RoleClient, "n1", nil)
		conn := server.conn(t, node)
		if err := Alive(t.Context(), conn); err != nil {
			t.Fatalf("a living node: %v", err)
		}
		expectDead := func(what string) {
			t.Helper()
			started := time.Now()
			if err := Alive(t.Context(), conn); err == nil {
				t.Errorf("%s: alive", what)
			}
			if took := time.Since(started); took != ProbeAttempts*ProbeTimeout {
				t.Errorf("%s: told after %s", what, took)
			}
		}
		network.Cut("10.0.0.1", "10.0.0.2")
		expectDead("behind a cut")
		network.Heal()
		time.Sleep(DefaultFailAfter + redialMax)
		if err := Alive(t.Context(), conn); err != nil {
			t.Errorf("after the cut: %v", err)
		}
		// One-way loss looks the same from here.
		network.CutOneWay("10.0.0.2", "10.0.0.1")
		expectDead("behind a one-way cut")
		network.Heal()
		time.Sleep(DefaultFailAfter + redialMax)
		node.stop()
		expectDead("stopped")
	})
}

func TestStopWaitsForCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newCluster(t)
		network := NewFakeNetwork(0)
		server := w.onFake(network, "10.0.0.1", auth.RoleServer, "s1", func(s *Server) {
			Unary(s, "Slow.Call", FromAgents, func(ctx context.Context, _ Peer, request *echo) (*echo, error) {
				select {
				case <-time.After(time.Duration(request.Count) * time.Second):
					return &echo{}, nil
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			})
		})
		client := w.onFake(network, "10.0.0.2", auth.RoleClient, "n1", nil)
		conn := client.conn(t, server)
		ended := make(chan error, 2)
		for _, seconds := range []int{1, 60} {
			go func() {
				_, err := Call[echo, echo](t.Context(), conn, "Slow.Call", &echo{Count: seconds})
				ended <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		started := time.Now()
		server.server.Stop(ctx)
		if took := time.Since(started); took != 5*time.Second {
			t.Errorf("stopped after %s", took)
		}
		if err := <-ended; err != nil {
			t.Errorf("the short call: %v", err)
		}
		if err := <-ended; structs.CodeOf(err) != structs.CodeTimeout {
			t.Errorf("the long call: %v", err)
		}
	})
}

func TestFakeNetworkIsANetwork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := NewFakeNetwork(0)
		listener, err := network.Listen("10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		if _, err := network.Listen("10.0.0.1:1"); err == nil {
			t.Error("two listeners on one address")
		}
		dial := network.Dial("10.0.0.2")
		if _, err := dial(t.Context(), "10.0.0.1:2"); !errors.Is(err, errFakeRefused) {
			t.Errorf("nobody listens: %v", err)
		}
		near, err := dial(t.Context(), "10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		far, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		buffer := make([]byte, 16)
		say := func(conn net.Conn, text string) {
			t.Helper()
			if _, err := conn.Write([]byte(text)); err != nil {
				t.Errorf("write: %v", err)
			}
		}
		hear := func(conn net.Conn, want string) {
			t.Helper()
			count, err := conn.Read(buffer)
			if string(buffer[:count]) != want || (want != "" && err != nil) {
				t.Errorf("read %q, %v; want %q", buffer[:count], err, want)
			}
		}
		say(near, "one")
		hear(far, "one")
		_ = far.SetReadDeadline(time.Now().Add(time.Second))
		if _, err := far.Read(buffer); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after the deadline: %v", err)
		}
		_ = far.SetReadDeadline(time.Time{})

		// A short cut delays; nothing is lost.
		network.Cut("10.0.0.1", "10.0.0.2")
		say(near, "two")
		time.AfterFunc(DefaultFailAfter/2, network.Heal)
		hear(far, "two")
		time.Sleep(time.Hour)
		say(near, "three")
		hear(far, "three")

		// A dial across a cut waits.
		network.Cut("10.0.0.1", "10.0.0.2")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := dial(ctx, "10.0.0.1:1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("dial across a cut: %v", err)
		}
		// A long cut breaks the side that waits, and resets the other later.
		say(near, "lost")
		time.Sleep(DefaultFailAfter)
		if _, err := near.Read(buffer); !errors.Is(err, errFakeTimeout) {
			t.Errorf("the waiting side: %v", err)
		}
		network.Heal()
		if _, err := far.Read(buffer); !errors.Is(err, errFakeReset) {
			t.Errorf("the other side: %v", err)
		}
		near.Close()
		far.Close()

		near, err = dial(t.Context(), "10.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		far, err = listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		say(near, "bye")
		near.Close()
		hear(far, "bye")
		if _, err := far.Read(buffer); !errors.Is(err, io.EOF) {
			t.Errorf("after the end: %v", err)
		}
		if _, err := far.Write(buffer); !errors.Is(err, errFakeReset) {
			t.Errorf("write after the end: %v", err)
		}
		far.Close()
		if n := len(network.mu.conns); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}
