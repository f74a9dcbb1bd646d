package rpc

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
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

// raw opens the plain connection beneath TLS.
func (d Dialer) raw(ctx context.Context, addr string) (net.Conn, error) {
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
	secured := tls.Client(conn, auth.ClientTLS(d.Identity.Load, proto, target.Expect, d.Now))
	err := secured.HandshakeContext(ctx)
	state := secured.ConnectionState()
	if err == nil && state.NegotiatedProtocol != proto {
		err = fmt.Errorf("peer does not speak %s", proto)
	}
	var identity auth.Identity
	if err == nil {
		identity, err = verifyDialed(state)
	}
	if err != nil {
		_ = conn.Close()
		return nil, Peer{}, fmt.Errorf("shake hands with %s: %w", target.Addr, err)
	}
	return secured, Peer{Identity: identity, Addr: conn.RemoteAddr()}, nil
}

// RaftLayer connects Raft of this server to those of others; it is a
// raft.StreamLayer. Only servers of the cluster get through, both ways.
type RaftLayer struct {
	net.Listener
	dialer Dialer
}

var _ raft.StreamLayer = (*RaftLayer)(nil)

// RaftLayer makes the stream layer that raft.NewNetworkTransport takes. Its
// Close leaves the port open for the other protocols.
func (m *Mux) RaftLayer(dialer Dialer) *RaftLayer {
	return &RaftLayer{Listener: m.Raft(), dialer: dialer.withDefaults()}
}

// Dial opens a connection to the Raft of the server at address.
func (l *RaftLayer) Dial(address raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	target := Target{Addr: string(address), Expect: auth.Expect{Role: auth.RoleServer}}
	conn, err := l.dialer.raw(ctx, target.Addr)
	if err != nil {
		return nil, err
	}
	secured, _, err := l.dialer.secure(ctx, conn, auth.ALPNRaft, target)
	return secured, err
}
