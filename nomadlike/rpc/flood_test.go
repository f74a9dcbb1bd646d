package rpc

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/auth"
)

// from is a dialer that connects from an address of this machine.
func from(ip string) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}, Timeout: patience}
}

// silent opens connections that say nothing until the test ends.
func silent(t *testing.T, ip, addr string, count int) {
	t.Helper()
	for range count {
		conn, err := from(ip).Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
	}
}

// shake makes a whole HTTP handshake from an address.
func shake(t *testing.T, server *agent, ip string) *tls.Conn {
	t.Helper()
	conn, err := tls.DialWithDialer(from(ip), "tcp", server.addr, auth.CLITLS(server.identity.Load().Trust, time.Now))
	if err != nil {
		t.Fatalf("handshake from %s: %v", ip, err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// TestSilentFlood: connections that say nothing, many times more than there is
// room for, keep nobody out: not their own address, not another one, and no agent.
func TestSilentFlood(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{HandshakesMax: 32, HandshakesPerIPMax: 8, HandshakeTimeout: time.Hour}, nil)
	lane := server.mux.HTTP()
	node := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	ping := func() {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := Ping(ctx, node.conn(t, server)); err != nil {
			t.Errorf("the node is kept out: %v", err)
		}
	}
	silent(t, "127.0.0.2", server.addr, 100)
	eventually.Within(t, patience, "the oldest are ended", func() bool { return server.mux.Counts().Ended >= 92 })
	for _, ip := range []string{"127.0.0.2", "127.0.0.3"} {
		shake(t, server, ip)
		if _, err := lane.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	ping()
	for _, ip := range []string{"127.0.0.4", "127.0.0.5", "127.0.0.6", "127.0.0.7", "127.0.0.8"} { // more than all there is room for
		silent(t, ip, server.addr, 20)
	}
	shake(t, server, "127.0.0.9")
	if _, err := lane.Accept(); err != nil {
		t.Fatal(err)
	}
	ping()
	c := server.mux.conns
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.handshakes.count > 32 {
		t.Errorf("%d handshakes are under way", c.mu.handshakes.count)
	}
	for ip, conns := range c.mu.handshakes.byIP {
		if len(conns) > 8 {
			t.Errorf("%d handshakes of %s are under way", len(conns), ip)
		}
	}
}

// TestQuietConnections: a task that holds all HTTP connections of its node's
// address keeps neither the node's agent out, nor for long the people there.
func TestQuietConnections(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{ConnsMax: 6, ConnsPerIPMax: 4, QuietAfter: 50 * time.Millisecond}, nil)
	lane := server.mux.HTTP()
	go func() { // until the agent stops
		for {
			conn, err := lane.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(conn, conn) }()
		}
	}()
	speaks := func(conn *tls.Conn, patience time.Duration) bool {
		_ = conn.SetDeadline(time.Now().Add(patience))
		if _, err := conn.Write([]byte("x")); err != nil {
			return false
		}
		_, err := conn.Read(make([]byte, 1))
		return err == nil
	}
	for range 4 {
		if !speaks(shake(t, server, "127.0.0.1"), patience) {
			t.Fatal("one of the first four is turned away")
		}
	}
	node := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil) // from 127.0.0.1, too
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := Ping(ctx, node.conn(t, server)); err != nil {
		t.Errorf("the node's agent is kept out: %v", err)
	}
	// Once the others have been quiet for a while one of them makes room, also when all places are taken.
	for _, ip := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"} {
		eventually.Within(t, patience, "somebody at "+ip+" is let in", func() bool {
			conn, err := tls.DialWithDialer(from(ip), "tcp", server.addr, auth.CLITLS(server.identity.Load().Trust, time.Now))
			if err != nil {
				return false
			}
			t.Cleanup(func() { conn.Close() })
			return speaks(conn, patience) // or it is turned away
		})
	}
	if counts := server.mux.Counts(); counts.Ended == 0 {
		t.Errorf("%+v", counts)
	}
}

func TestAddressOf(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3:5": "10.1.2.3/32", "[::ffff:10.1.2.3]:5": "10.1.2.3/32", "[2001:db8:1:2:3:4:5:6]:5": "2001:db8:1:2::/64", "[fe80::1%eth0]:5": "fe80::/64",
	} {
		got := addressOf(addrConn{addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr))})
		if got.String() != want {
			t.Errorf("%s counts for %s, want %s", addr, got, want)
		}
	}
}

type addrConn struct {
	net.Conn
	addr net.Addr
}

func (c addrConn) RemoteAddr() net.Addr { return c.addr }

// TestFullAddressIsRefusedAtItsHello: a peer that has all the connections that its address
// may have, and uses them, costs no handshake more, and one line of the log; an
// agent at that address is let in all the same.
func TestFullAddressIsRefusedAtItsHello(t *testing.T) {
	w := newCluster(t)
	server := w.onLoopback(auth.RoleServer, "s1", MuxConfig{ConnsPerIPMax: 4, QuietAfter: time.Hour}, nil)
	lane := server.mux.HTTP()
	for range 4 {
		shake(t, server, "127.0.0.1")
		if _, err := lane.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	for range 20 {
		// A handshake of TLS 1.3 is over for a client before the server has judged it.
		if conn, err := tls.DialWithDialer(from("127.0.0.1"), "tcp", server.addr, auth.CLITLS(server.identity.Load().Trust, time.Now)); err == nil {
			conn.Close()
			t.Fatal("a handshake was made with an address that is full")
		}
	}
	eventually.Within(t, patience, "all are counted", func() bool { return server.mux.Counts().Limited == 20 })
	node := w.onLoopback(auth.RoleClient, "n1", MuxConfig{}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := Ping(ctx, node.conn(t, server)); err != nil {
		t.Errorf("the node is kept out: %v", err)
	}
	shake(t, server, "127.0.0.2")
}
