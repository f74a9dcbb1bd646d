package rpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/nomadlike/auth"
)

// DialFunc opens a plain connection to an agent's host:port. Tests pass
// FakeNetwork's, with cuts.
type DialFunc func(ctx context.Context, addr string) (net.Conn, error)

// Dialer opens secured connections to other agents. Identity is required;
// zero values of the rest mean TCP, time.Now and DefaultFailAfter.
type Dialer struct {
	Identity  *Identity
	Dial      DialFunc
	Now       func() time.Time
	FailAfter time.Duration // silence that breaks a connection
}

func (d Dialer) withDefaults() Dialer {
	if d.Dial == nil {
		d.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
			var tcp net.Dialer
			return tcp.DialContext(ctx, "tcp", addr)
		}
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	setDefault(&d.FailAfter, DefaultFailAfter)
	return d
}

// Target is an agent to call: its address and, where known, who must answer
// there. Zero fields of Expect mean any agent of the cluster.
type Target struct {
	Addr string // host:port
	auth.Expect
}

// handshakeWait bounds a dialed TLS handshake. It is longer than FailAfter,
// which bounds what comes before it: kernels answer a SYN at once, while a
// busy agent may take its time to prove who it is.
const handshakeWait = 2 * time.Second

// raw opens the plain connection beneath TLS, within FailAfter.
func (d Dialer) raw(ctx context.Context, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.FailAfter)
	defer cancel()
	conn, err := d.Dial(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	if err := tuneSocket(conn, d.FailAfter); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

// secure runs the client's handshake on conn. On error conn is closed.
func (d Dialer) secure(ctx context.Context, conn net.Conn, proto string, target Target) (net.Conn, Peer, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	secured := tls.Client(conn, auth.ClientTLS(d.Identity.Load, proto, target.Expect, d.Now))
	err := secured.HandshakeContext(ctx)
	state := secured.ConnectionState()
	if err == nil && state.NegotiatedProtocol != proto {
		err = fmt.Errorf("peer does not speak %s", proto)
	}
	var identity auth.Identity
	if err == nil {
		identity, err = dialedIdentity(state)
	}
	if err != nil {
		_ = conn.Close()
		return nil, Peer{}, fmt.Errorf("shake hands with %s: %w", target.Addr, err)
	}
	return secured, Peer{Identity: identity, Addr: conn.RemoteAddr()}, nil
}

// dialedIdentity reads who answered a dial. The handshake has verified it.
func dialedIdentity(state tls.ConnectionState) (auth.Identity, error) {
	if len(state.PeerCertificates) == 0 {
		return auth.Identity{}, auth.ErrUntrusted
	}
	return auth.ParseIdentity(state.PeerCertificates[0])
}

// RaftLayer connects Raft of this server to those of others; it is a
// raft.StreamLayer. Only servers of the cluster get through, both ways.
type RaftLayer struct {
	lane   net.Listener
	dialer Dialer
	idAt   func(addr string) (string, error)

	mu struct {
		sync.Mutex
		conns  map[*raftConn]struct{}
		closed bool
	}
}

var _ raft.StreamLayer = (*RaftLayer)(nil)

// RaftLayer makes the stream layer that raft.NewNetworkTransport takes. IDAt
// returns the id of the server that Raft's configuration has at an address, ""
// where it has none: only that server may answer there. Nil means any server
// of the cluster.
func (m *Mux) RaftLayer(dialer Dialer, idAt func(addr string) (string, error)) *RaftLayer {
	l := &RaftLayer{lane: m.Raft(), dialer: dialer.withDefaults(), idAt: idAt}
	l.mu.conns = make(map[*raftConn]struct{})
	return l
}

// Accept waits for the next connection of another server.
func (l *RaftLayer) Accept() (net.Conn, error) {
	conn, err := l.lane.Accept()
	if err != nil {
		return nil, err
	}
	return l.track(conn)
}

// Addr is the address of the port.
func (l *RaftLayer) Addr() net.Addr { return l.lane.Addr() }

// Close ends Raft on this port and breaks its connections in both
// directions, since Raft's own transport leaves those it accepted open. The
// port stays open for the other protocols.
func (l *RaftLayer) Close() error {
	err := l.lane.Close()
	l.mu.Lock()
	l.mu.closed = true
	conns := slices.Collect(maps.Keys(l.mu.conns))
	l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	return err
}

// track remembers a connection until it is closed.
func (l *RaftLayer) track(conn net.Conn) (net.Conn, error) {
	kept := &raftConn{Conn: conn, layer: l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.closed {
		_ = conn.Close()
		return nil, net.ErrClosed
	}
	l.mu.conns[kept] = struct{}{}
	return kept, nil
}

// raftConn is a connection that its layer knows.
type raftConn struct {
	net.Conn
	layer *RaftLayer
}

// Close closes the connection.
func (c *raftConn) Close() error {
	c.layer.mu.Lock()
	delete(c.layer.mu.conns, c)
	c.layer.mu.Unlock()
	return c.Conn.Close()
}

// Dial opens a connection to the Raft of the server at address.
func (l *RaftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	target := Target{Addr: string(address), Expect: auth.Expect{Role: auth.RoleServer}}
	if l.idAt != nil {
		id, err := l.idAt(target.Addr)
		if err != nil {
			return nil, fmt.Errorf("dial %s: %w", target.Addr, err)
		}
		target.ID = id
	}
	conn, err := l.dialer.raw(ctx, target.Addr)
	if err != nil {
		return nil, err
	}
	secured, _, err := l.dialer.secure(ctx, conn, auth.ALPNRaft, target)
	if err != nil {
		return nil, err
	}
	return l.track(secured)
}
