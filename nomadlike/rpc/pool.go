package rpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	grpcpeer "google.golang.org/grpc/peer"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// How connections are dialed again, and bounds of a Pool.
const (
	redialMin   = 25 * time.Millisecond
	redialMax   = 250 * time.Millisecond
	idleTimeout = 5 * time.Minute // without a call or stream, then the socket is closed
	poolMax     = 16384           // agents that one pool knows
	clientPing  = 10 * time.Second
	pingTimeout = 10 * time.Second // a server that many agents greet at once answers late; TCP and heartbeats notice silence sooner
)

// Pool keeps one connection to each agent that is called. Connections are
// made at the first call and again when they break.
type Pool struct {
	dialer Dialer

	mu struct {
		sync.Mutex
		conns  map[Target]*Conn
		uses   uint64 // counts calls of Conn, to find the least recently used
		closed bool
	}
}

// NewPool makes an empty pool.
func NewPool(dialer Dialer) *Pool {
	p := &Pool{dialer: dialer.withDefaults()}
	p.mu.conns = make(map[Target]*Conn)
	return p
}

// Conn is a connection to one agent, for Call, OpenStream and Ping. It
// belongs to its Pool.
type Conn struct {
	target  Target
	grpc    *grpc.ClientConn
	streams atomic.Int64 // open streams and calls
	refused atomic.Bool  // the newest dial was refused
	used    uint64       // guarded by Pool.mu
}

// Refused reports whether the newest attempt to connect was refused: the
// machine answers, and nothing listens at its port. An agent that was killed
// looks like that; a machine that is gone answers nothing at all.
func (c *Conn) Refused() bool { return c.refused.Load() }

// dial notes what became of an attempt to connect.
func (c *Conn) dial(raw func(context.Context, string) (net.Conn, error)) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := raw(ctx, addr)
		c.refused.Store(errors.Is(err, syscall.ECONNREFUSED))
		return conn, err
	}
}

// Target is the agent that the connection leads to.
func (c *Conn) Target() Target { return c.target }

// Conn returns the connection to target. It does not wait for the network;
// calls do. Different expectations of one address are different connections.
func (p *Pool) Conn(target Target) (*Conn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.stopped")
	}
	p.mu.uses++
	if conn := p.mu.conns[target]; conn != nil {
		conn.used = p.mu.uses
		return conn, nil
	}
	if len(p.mu.conns) >= poolMax && !p.evictLocked() {
		return nil, structs.NewError(structs.CodeUnavailable, "rpc.pool_full", "limit", poolMax)
	}
	conn := &Conn{target: target, used: p.mu.uses}
	var err error
	if conn.grpc, err = grpc.NewClient("passthrough:///"+target.Addr, p.options(target, conn)...); err != nil {
		return nil, fmt.Errorf("make connection to %s: %w", target.Addr, err)
	}
	p.mu.conns[target] = conn
	return conn, nil
}

func (p *Pool) options(target Target, conn *Conn) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithNoProxy(),
		grpc.WithDisableServiceConfig(),
		grpc.WithDisableHealthCheck(),
		grpc.WithContextDialer(conn.dial(p.dialer.raw)),
		grpc.WithTransportCredentials(dialedCreds{dialer: p.dialer, target: target}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: redialMin, Multiplier: 1.6, Jitter: 0.2, MaxDelay: redialMax},
			MinConnectTimeout: p.dialer.FailAfter + handshakeWait,
		}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPing, Timeout: pingTimeout}),
		grpc.WithIdleTimeout(idleTimeout),
		grpc.WithReadBufferSize(readBuffer),
		grpc.WithStaticStreamWindowSize(streamWindow),
		grpc.WithStaticConnWindowSize(connWindow),
		grpc.WithMaxHeaderListSize(2 * errorSizeMax),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(codec{}),
			grpc.MaxCallRecvMsgSize(wire.MessageSizeMax),
			grpc.MaxCallSendMsgSize(wire.MessageSizeMax),
		),
	}
}

// evictLocked drops the least recently used connection that carries nothing.
func (p *Pool) evictLocked() bool {
	var oldest *Conn
	for _, conn := range p.mu.conns {
		if conn.streams.Load() == 0 && (oldest == nil || conn.used < oldest.used) {
			oldest = conn
		}
	}
	if oldest == nil {
		return false
	}
	delete(p.mu.conns, oldest.target)
	_ = oldest.grpc.Close()
	return true
}

// Drop closes a connection that carries nothing, as when a probe over it has
// failed: gRPC would go on dialing for as long as idleTimeout.
func (p *Pool) Drop(conn *Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.conns[conn.target] == conn && conn.streams.Load() == 0 {
		delete(p.mu.conns, conn.target)
		_ = conn.grpc.Close()
	}
}

// Forget closes all connections to an address, as when its agent is gone for
// good. Calls under way on them fail.
func (p *Pool) Forget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for target, conn := range p.mu.conns {
		if target.Addr == addr {
			delete(p.mu.conns, target)
			_ = conn.grpc.Close()
		}
	}
}

// Close closes all connections; calls and streams under way fail.
func (p *Pool) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.closed = true
	for target, conn := range p.mu.conns {
		delete(p.mu.conns, target)
		_ = conn.grpc.Close()
	}
}

// Call sends one request to method ("Service.Method") of the agent at the
// other end and waits for the answer until ctx ends. Failures are
// *structs.Error; see the package comment for what their codes mean. A call
// over a broken connection waits for one attempt to dial and then fails.
func Call[Req, Resp any](ctx context.Context, conn *Conn, method string, request *Req) (*Resp, error) {
	conn.streams.Add(1)
	defer conn.streams.Add(-1)
	var trailer metadata.MD
	var reached grpcpeer.Peer
	response := new(Resp)
	err := conn.grpc.Invoke(ctx, fullMethod(method), request, response, grpc.Trailer(&trailer), grpc.Peer(&reached))
	if err != nil {
		return nil, incomingError(err, trailer, method, conn.target.Addr, reached.Addr != nil)
	}
	return response, nil
}

// OpenStream opens a stream to method ("Service.Method"). The stream lives
// until ctx ends, either side ends it, or the connection breaks; the caller
// must Close it. A refusal by the other agent shows at the first Recv.
func OpenStream[Up, Down any](ctx context.Context, conn *Conn, method string) (*ClientStream[Up, Down], error) {
	ctx, cancel := context.WithCancel(ctx)
	raw, err := conn.grpc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, fullMethod(method))
	if err != nil {
		cancel()
		return nil, incomingError(err, nil, method, conn.target.Addr, false)
	}
	conn.streams.Add(1)
	return &ClientStream[Up, Down]{raw: raw, cancel: cancel, conn: conn, method: method}, nil
}

func fullMethod(method string) string { return "/" + strings.Replace(method, ".", "/", 1) }

// dialedCreds secures outgoing connections.
type dialedCreds struct {
	dialer Dialer
	target Target
}

var _ credentials.TransportCredentials = dialedCreds{}

// ClientHandshake checks that the expected agent answers.
func (c dialedCreds) ClientHandshake(ctx context.Context, _ string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	secured, peer, err := c.dialer.secure(ctx, conn, auth.ALPNRPC, c.target)
	if err != nil {
		return nil, nil, err
	}
	return secured, newPeerInfo(peer), nil
}

// ServerHandshake is never called on a client.
func (dialedCreds) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, auth.ErrUntrusted
}

// Info describes the protocol to gRPC.
func (dialedCreds) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns c: gRPC asks for a copy, and c never changes.
func (c dialedCreds) Clone() credentials.TransportCredentials { return c }

// OverrideServerName does nothing: agents are known by identity, not name.
func (dialedCreds) OverrideServerName(string) error { return nil }
