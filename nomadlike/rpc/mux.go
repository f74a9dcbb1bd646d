package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/auth"
)

// Defaults of MuxConfig, and fixed bounds of a Mux.
const (
	DefaultFailAfter        = 800 * time.Millisecond
	DefaultHandshakeTimeout = 5 * time.Second
	DefaultHandshakesMax    = 1024 // TLS handshakes at once
	DefaultHandshakesPerIP  = 512  // of them, from one address: fifty people behind it whose pages all connect at once are 300
	DefaultConnsMax         = 8192 // HTTP connections
	DefaultConnsPerIPMax    = 512  // of them, from one address
	DefaultConnsPerPeerMax  = 64   // RPC and Raft connections of one agent
	DefaultQuietAfter       = 10 * time.Second

	deliverQueueMax  = 128 // finished handshakes that nobody accepted yet, per protocol
	acceptBackoffMin = 5 * time.Millisecond
	acceptBackoffMax = time.Second

	limitedToldEvery = 10 * time.Second // in the log
)

// MuxConfig configures a Mux. Identity and Logger are required; zero values
// of the rest mean the defaults above.
type MuxConfig struct {
	Identity *Identity
	Logger   *slog.Logger
	Now      func() time.Time // the clock that certificates are checked by

	// Admit, if set, is asked about every agent whose certificate is good,
	// before its RPC or Raft connection is handed over; an error turns it
	// away. A certificate lives on when its agent is removed from the
	// cluster: this, with Disconnect, is how removed agents stay out. It is
	// called from many goroutines and must not block.
	Admit func(auth.Identity) error

	// Relay, on agents that are no servers, opens a plain connection to a
	// server. What people's programs send for a server (auth.ServerName) is
	// passed on to it unopened. Nil where a server answers itself.
	Relay func(context.Context) (net.Conn, error)

	// Pages, if set, returns the certificate with which people's connections for a
	// name are answered, nil for the agent's own. It is called in each handshake.
	Pages func(name string) *tls.Certificate

	FailAfter        time.Duration // silence that breaks a machine connection
	HandshakeTimeout time.Duration
	HandshakesMax    int
	ConnsMax         int
	ConnsPerIPMax    int
	ConnsPerPeerMax  int

	HandshakesPerIPMax int           // at most HandshakesMax
	QuietAfter         time.Duration // HTTP connections that moved nothing for so long make room for others
}

func (c *MuxConfig) setDefaults() {
	setDefault(&c.FailAfter, DefaultFailAfter)
	setDefault(&c.HandshakeTimeout, DefaultHandshakeTimeout)
	setDefault(&c.HandshakesMax, DefaultHandshakesMax)
	setDefault(&c.HandshakesPerIPMax, DefaultHandshakesPerIP)
	c.HandshakesPerIPMax = min(c.HandshakesPerIPMax, c.HandshakesMax)
	setDefault(&c.ConnsMax, DefaultConnsMax)
	setDefault(&c.ConnsPerIPMax, DefaultConnsPerIPMax)
	setDefault(&c.QuietAfter, DefaultQuietAfter)
	setDefault(&c.ConnsPerPeerMax, DefaultConnsPerPeerMax)
	if c.Now == nil {
		c.Now = time.Now
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Mux splits the connections of one listener by their TLS application
// protocol. Ask for the listeners (HTTP, RPC, Raft) that the agent serves,
// then call Serve; protocols that nobody asked for are refused.
type Mux struct {
	config   MuxConfig
	listener net.Listener
	tls      *tls.Config
	conns    *connLimits

	closing   chan struct{} // closed by Close
	served    chan struct{} // closed when Serve has returned
	started   atomic.Bool   // Serve was called
	closeOnce sync.Once

	counts struct {
		accepted, limited, failed, ended atomic.Uint64
	}
	limitedTold atomic.Int64 // when the log heard of it last, Unix nanoseconds

	mu struct {
		sync.Mutex
		lanes map[string]*lane // by ALPN
	}
}

// MuxCounts tell how a Mux has been doing since it was made.
type MuxCounts struct {
	Accepted uint64 // connections taken from the network
	Limited  uint64 // of them, closed because of a bound
	Failed   uint64 // of them, closed because the handshake failed or was refused
	Ended    uint64 // of them, closed to make room for others
}

// NewMux makes a Mux on a listener, which it owns from now on.
func NewMux(listener net.Listener, config MuxConfig) *Mux {
	config.setDefaults()
	m := &Mux{
		config:   config,
		listener: listener,
		tls:      auth.ServerTLS(config.Identity.Load, config.Now),
		conns:    newConnLimits(&config),
		closing:  make(chan struct{}),
		served:   make(chan struct{}),
	}
	m.mu.lanes = make(map[string]*lane)
	if config.Pages != nil {
		m.tls = paged(m.tls, config.Pages)
	}
	m.tls = m.crowded(m.tls)
	if config.Relay != nil {
		m.tls = peeking(m.tls)
	}
	return m
}

// Addr is the address that the Mux listens on.
func (m *Mux) Addr() net.Addr { return m.listener.Addr() }

// Counts reports how the Mux has been doing.
func (m *Mux) Counts() MuxCounts {
	return MuxCounts{m.counts.accepted.Load(), m.counts.limited.Load(), m.counts.failed.Load(), m.counts.ended.Load()}
}

// HTTP is the listener of the HTTP API. Its connections are *tls.Conn with
// the handshake done, so http.Server.Serve (not ServeTLS) takes them as they
// are and Request.TLS is filled. A client certificate is optional there.
func (m *Mux) HTTP() net.Listener { return m.lane(auth.ALPNHTTP) }

// RPC is the listener that Server.Serve takes.
func (m *Mux) RPC() net.Listener { return m.lane(auth.ALPNRPC) }

// Raft is the listener of Raft traffic; only servers get through. See
// RaftLayer.
func (m *Mux) Raft() net.Listener { return m.lane(auth.ALPNRaft) }

func (m *Mux) lane(proto string) *lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.mu.lanes[proto]
	if l == nil {
		l = newLane(m.Addr())
		m.mu.lanes[proto] = l
	}
	return l
}

func (m *Mux) openLane(proto string) *lane {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.lanes[proto]
}

// Serve accepts connections until Close, and returns nil then, or the error
// that broke the listener. Call it once. Handshakes under way end with it.
func (m *Mux) Serve() error {
	m.started.Store(true)
	defer close(m.served)
	ctx, cancel := context.WithCancel(context.Background())
	var handshakes sync.WaitGroup
	defer handshakes.Wait()
	defer cancel()
	backoff := acceptBackoffMin
	for {
		raw, err := m.listener.Accept()
		if err == nil {
			backoff = acceptBackoffMin
			m.admit(ctx, &handshakes, raw)
			continue
		}
		select {
		case <-m.closing:
			return nil
		default:
		}
		if errors.Is(err, net.ErrClosed) {
			return fmt.Errorf("accept connection at %s: %w", m.Addr(), err)
		}
		// Out of descriptors, or a client that hung up early: go on.
		m.config.Logger.Warn("accept connection", logkey.Addr, m.Addr().String(), logkey.Error, err)
		select {
		case <-m.closing:
			return nil
		case <-time.After(backoff):
			backoff = min(2*backoff, acceptBackoffMax)
		}
	}
}

// admit starts the handshake of raw. At a bound the oldest handshake is ended
// for it, of the same address or of the one that has most: refusing or queueing
// would let silent strangers keep agents out.
func (m *Mux) admit(ctx context.Context, handshakes *sync.WaitGroup, raw net.Conn) {
	m.counts.accepted.Add(1)
	conn, victim := m.conns.admit(raw)
	if conn == nil {
		m.refuse(raw, "too many handshakes")
		return
	}
	m.end(victim, "it makes room for another handshake")
	handshakes.Go(func() { m.handle(ctx, conn) })
}

func (m *Mux) refuse(conn net.Conn, reason string) {
	m.limited(conn, reason)
	_ = conn.Close()
}

// limited counts a connection that a bound keeps out. The log hears of one in a
// while: whoever shares an address with many looks there for the reason.
func (m *Mux) limited(conn net.Conn, reason string) {
	count, now, level := m.counts.limited.Add(1), m.config.Now().UnixNano(), slog.LevelDebug
	if told := m.limitedTold.Load(); (told == 0 || now-told >= int64(limitedToldEvery)) && m.limitedTold.CompareAndSwap(told, now) {
		level = slog.LevelWarn
	}
	m.config.Logger.Log(context.Background(), level, "refuse connection", logkey.Addr, conn.RemoteAddr().String(), logkey.Reason, reason, logkey.Count, count)
}

const tooManyConns = "too many connections of this address, or of all"

var errCrowded = errors.New(tooManyConns)

// crowded refuses at its hello a person's connection that would find no place
// after the handshake: whoever is full and knocks thousands of times a second
// must not cost a signature and a session each time.
func (m *Mux) crowded(config *tls.Config) *tls.Config {
	refusing, choose := config.Clone(), config.GetConfigForClient
	refusing.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		plain := hello.Conn
		if peeked, ok := plain.(*peekedConn); ok {
			plain = peeked.Conn
		}
		conn, ok := plain.(*countedConn)
		if ok && !isMachine(hello) && !m.conns.hopeful(conn) {
			m.limited(conn, tooManyConns)
			return nil, errCrowded
		}
		return choose(hello)
	}
	return refusing
}

// paged answers people who ask for some names with certificates of their own.
func paged(config *tls.Config, pages func(name string) *tls.Certificate) *tls.Config {
	made, choose := config.Clone(), config.GetConfigForClient
	made.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		chosen, err := choose(hello)
		if err != nil || isMachine(hello) {
			return chosen, err
		}
		certificate := pages(hello.ServerName)
		if certificate == nil {
			return chosen, nil
		}
		chosen = chosen.Clone()
		chosen.Certificates = []tls.Certificate{*certificate}
		return chosen, nil
	}
	return made
}

// isMachine reports whether an agent speaks, not a person.
func isMachine(hello *tls.ClientHelloInfo) bool {
	return slices.Contains(hello.SupportedProtos, auth.ALPNRPC) || slices.Contains(hello.SupportedProtos, auth.ALPNRaft)
}

// end closes a connection that made room for another one.
func (m *Mux) end(conn *countedConn, reason string) {
	if conn == nil {
		return
	}
	m.counts.ended.Add(1)
	m.config.Logger.Debug("end connection", logkey.Addr, conn.RemoteAddr().String(), logkey.Reason, reason)
	_ = conn.Close()
}

// handle runs one handshake and hands the connection to its protocol.
func (m *Mux) handle(serving context.Context, conn *countedConn) {
	ctx, cancel := context.WithTimeout(serving, m.config.HandshakeTimeout)
	defer cancel()
	var plain net.Conn = conn
	peeked := &peekedConn{Conn: conn}
	if m.config.Relay != nil {
		plain = peeked
	}
	secured := tls.Server(plain, m.tls)
	err := secured.HandshakeContext(ctx)
	m.conns.shaken(conn)
	switch {
	case err == nil:
		err = m.deliver(ctx, conn, secured)
	case peeked.relayed && errors.Is(err, errRelayed):
		if err = m.welcome(conn); err == nil {
			err = m.relay(serving, peeked)
		}
	}
	if err != nil {
		m.counts.failed.Add(1)
		m.config.Logger.Debug("refuse connection", logkey.Addr, conn.RemoteAddr().String(), logkey.Error, err)
		_ = conn.Close()
	}
}

// welcome counts a person's connection among the others.
func (m *Mux) welcome(conn *countedConn) error {
	victim, ok := m.conns.welcome(conn)
	if !ok {
		m.limited(conn, tooManyConns)
		return fmt.Errorf("admit %s: %w", conn.RemoteAddr(), errCrowded)
	}
	m.end(victim, "it was quiet, and makes room for another one")
	return nil
}

// deliver hands a secured connection to its protocol's listener.
func (m *Mux) deliver(ctx context.Context, conn *countedConn, secured *tls.Conn) error {
	state := secured.ConnectionState()
	proto := state.NegotiatedProtocol
	if proto == "" {
		proto = auth.ALPNHTTP
	}
	l := m.openLane(proto)
	if l == nil {
		return fmt.Errorf("serve protocol %s: this agent does not", proto)
	}
	var out net.Conn = secured
	if proto != auth.ALPNHTTP {
		// Verified in the handshake; read again only for the name.
		identity, err := auth.ParseIdentity(state.PeerCertificates[0])
		if err != nil {
			return err
		}
		if m.config.Admit != nil {
			if err := m.config.Admit(identity); err != nil {
				return fmt.Errorf("admit %s: %w", identity, err)
			}
		}
		if err := tuneSocket(conn.Conn, m.config.FailAfter); err != nil {
			return err
		}
		if !m.conns.promote(conn, identity, m.config.ConnsPerPeerMax) {
			m.counts.limited.Add(1)
			return fmt.Errorf("admit %s: it has %d connections already", identity, m.config.ConnsPerPeerMax)
		}
		out = &peerConn{Conn: secured, peer: Peer{Identity: identity, Addr: conn.RemoteAddr()}}
	} else {
		if err := m.welcome(conn); err != nil {
			return err
		}
	}
	select {
	case l.queue <- out:
		return nil
	case <-l.closed:
		return net.ErrClosed
	case <-ctx.Done():
		return fmt.Errorf("hand over to %s: %w", proto, context.Cause(ctx))
	}
}

// Disconnect closes all RPC and Raft connections of an agent, as after its
// removal from the cluster, and returns how many there were. Make
// MuxConfig.Admit refuse the agent first, or it just dials again.
func (m *Mux) Disconnect(role auth.Role, id string) int {
	return m.conns.disconnect(auth.Identity{Cluster: m.config.Identity.Self().Cluster, Role: role, ID: id})
}

// DisconnectAll closes all RPC and Raft connections, and returns how many there
// were. Agents that are still of the cluster dial again.
func (m *Mux) DisconnectAll() int { return m.conns.disconnectAll() }

// Close stops accepting, ends the handshakes under way and waits for them.
// Connections that were handed out stay with their owners.
func (m *Mux) Close() error {
	var err error
	m.closeOnce.Do(func() {
		close(m.closing)
		err = m.listener.Close()
		if m.started.Load() {
			<-m.served
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		for _, l := range m.mu.lanes {
			_ = l.Close()
		}
	})
	return err
}

// peerConn is a machine connection with the agent at its other end.
type peerConn struct {
	net.Conn
	peer Peer
}

// Lane is the listener of one protocol.
type lane struct {
	addr   net.Addr
	queue  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newLane(addr net.Addr) *lane {
	return &lane{addr: addr, queue: make(chan net.Conn, deliverQueueMax), closed: make(chan struct{})}
}

// Accept waits for the next connection of the protocol.
func (l *lane) Accept() (net.Conn, error) {
	select {
	case <-l.closed: // first: a closed lane hands out nothing more
		return nil, net.ErrClosed
	default:
	}
	select {
	case conn := <-l.queue:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close makes Accept return net.ErrClosed and closes what it left waiting.
// The port stays open for the other protocols.
func (l *lane) Close() error {
	l.once.Do(func() { close(l.closed) })
	for {
		select {
		case conn := <-l.queue:
			_ = conn.Close()
		default:
			return nil
		}
	}
}

// Addr is the address of the port.
func (l *lane) Addr() net.Addr { return l.addr }
