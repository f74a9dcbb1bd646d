package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// Properties of FakeNetwork.
const (
	fakeBuffer    = 256 << 10       // bytes under way in one direction
	fakeBacklog   = 128             // connections that a listener has not accepted yet
	fakeKeepalive = 3 * time.Second // a cut that lasts so long breaks idle connections too
	fakePortFirst = 30000
)

var (
	errFakeRefused = errors.New("connection refused")
	errFakeTimeout = errors.New("connection timed out")
	errFakeReset   = errors.New("connection reset by peer")
)

// FakeNetwork is a network in memory for tests, with cuts between hosts. It
// behaves as TCP with TCP_USER_TIMEOUT does: across a cut bytes wait and
// arrive after it is healed, a dial gets no answer, a side with
// unacknowledged bytes gives up after failAfter, an idle one after three
// seconds, and a side that gave up resets the other one when they meet
// again. It works inside and outside of synctest bubbles.
type FakeNetwork struct {
	failAfter time.Duration

	mu struct {
		sync.Mutex
		changed   *sync.Cond // dials under way wait for it
		listeners map[string]*fakeListener
		cuts      map[fakePath]uint64 // to the number of the cut
		conns     map[*fakeConn]struct{}
		cutCount  uint64
		port      int
	}
}

// fakePath is one direction between two hosts.
type fakePath struct{ from, to string }

// NewFakeNetwork makes an empty network. failAfter is what real connections
// get as TCP_USER_TIMEOUT; 0 means DefaultFailAfter.
func NewFakeNetwork(failAfter time.Duration) *FakeNetwork {
	setDefault(&failAfter, DefaultFailAfter)
	n := &FakeNetwork{failAfter: failAfter}
	n.mu.changed = sync.NewCond(&n.mu.Mutex)
	n.mu.listeners = make(map[string]*fakeListener)
	n.mu.cuts = make(map[fakePath]uint64)
	n.mu.conns = make(map[*fakeConn]struct{})
	n.mu.port = fakePortFirst
	return n
}

// Listen opens addr, an IP with port that nobody listens on.
func (n *FakeNetwork) Listen(addr string) (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, taken := n.mu.listeners[addr]; taken {
		return nil, fmt.Errorf("listen on %s: address in use", addr)
	}
	l := &fakeListener{network: n, addr: fakeAddr(addr), queue: make(chan *fakeConn, fakeBacklog), closed: make(chan struct{})}
	n.mu.listeners[addr] = l
	return l, nil
}

// Dial returns the dialer of one host, an IP without port.
func (n *FakeNetwork) Dial(host string) DialFunc {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := n.dial(ctx, host, addr)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "fake", Addr: fakeAddr(addr), Err: err}
		}
		return conn, nil
	}
}

func (n *FakeNetwork) dial(ctx context.Context, from, addr string) (net.Conn, error) {
	to, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.mu.changed.Broadcast()
	})
	defer stop()
	n.mu.Lock()
	defer n.mu.Unlock()
	for n.cutLocked(from, to) && ctx.Err() == nil {
		n.mu.changed.Wait()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l := n.mu.listeners[addr]
	if l == nil {
		return nil, errFakeRefused
	}
	n.mu.port++
	local := fakeAddr(net.JoinHostPort(from, fmt.Sprint(n.mu.port)))
	near := n.newConnLocked(local, l.addr, from, to)
	far := n.newConnLocked(l.addr, local, to, from)
	near.peer, far.peer = far, near
	select {
	case l.queue <- far:
		return near, nil
	default:
		delete(n.mu.conns, near)
		delete(n.mu.conns, far)
		return nil, errFakeRefused
	}
}

func (n *FakeNetwork) newConnLocked(local, remote fakeAddr, here, there string) *fakeConn {
	c := &fakeConn{network: n, local: local, remote: remote, here: here, there: there}
	c.changed = sync.NewCond(&n.mu.Mutex)
	n.mu.conns[c] = struct{}{}
	return c
}

// cutLocked reports whether anything is lost between two hosts.
func (n *FakeNetwork) cutLocked(a, b string) bool {
	return n.mu.cuts[fakePath{a, b}] != 0 || n.mu.cuts[fakePath{b, a}] != 0
}

// Cut loses everything between two hosts.
func (n *FakeNetwork) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay loses everything from one host to another; the way back works.
func (n *FakeNetwork) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	path := fakePath{from, to}
	if n.mu.cuts[path] != 0 {
		return
	}
	n.mu.cutCount++
	n.mu.cuts[path] = n.mu.cutCount
	for c := range n.mu.conns {
		if (c.here == from && c.there == to) || (c.here == to && c.there == from) {
			c.giveUpLocked(fakeKeepalive)
			if len(c.peer.inbox) > 0 {
				c.giveUpLocked(n.failAfter)
			}
		}
	}
}

// Isolate cuts a host off from all hosts that are known so far.
func (n *FakeNetwork) Isolate(host string) {
	for _, other := range n.hosts() {
		if other != host {
			n.Cut(host, other)
		}
	}
}

func (n *FakeNetwork) hosts() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	seen := make(map[string]struct{})
	var hosts []string
	add := func(host string) {
		if _, known := seen[host]; !known {
			seen[host] = struct{}{}
			hosts = append(hosts, host)
		}
	}
	for addr := range n.mu.listeners {
		if host, _, err := net.SplitHostPort(addr); err == nil {
			add(host)
		}
	}
	for c := range n.mu.conns {
		add(c.here)
	}
	return hosts
}

// Heal ends all cuts.
func (n *FakeNetwork) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.mu.cuts)
	for c := range n.mu.conns {
		if c.broken != nil && c.peer.broken == nil {
			c.peer.breakLocked(errFakeReset)
		}
		c.changed.Broadcast()
	}
	n.mu.changed.Broadcast()
}

type fakeAddr string

func (fakeAddr) Network() string  { return "fake" }
func (a fakeAddr) String() string { return string(a) }

type fakeListener struct {
	network *FakeNetwork
	addr    fakeAddr
	queue   chan *fakeConn
	closed  chan struct{}
	once    sync.Once
}

// Accept waits for a dial.
func (l *fakeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.queue:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close frees the address; connections stay.
func (l *fakeListener) Close() error {
	l.once.Do(func() {
		l.network.mu.Lock()
		delete(l.network.mu.listeners, string(l.addr))
		l.network.mu.Unlock()
		close(l.closed)
		for {
			select {
			case conn := <-l.queue:
				_ = conn.Close()
			default:
				return
			}
		}
	})
	return nil
}

// Addr is what was listened on.
func (l *fakeListener) Addr() net.Addr { return l.addr }

// fakeConn is one side of a connection. FakeNetwork.mu guards all of it.
type fakeConn struct {
	network       *FakeNetwork
	local, remote fakeAddr
	here, there   string // hosts
	peer          *fakeConn
	changed       *sync.Cond

	inbox  []byte // sent by the peer, not yet read
	ended  bool   // the peer closed its side
	closed bool
	broken error

	readBy, writeBy deadline
}

// deadline wakes a connection's waiters when it passes.
type deadline struct {
	at    time.Time
	timer *time.Timer
}

func (d *deadline) passed() bool { return !d.at.IsZero() && !time.Now().Before(d.at) }

// Read waits for bytes of the peer that have come through.
func (c *fakeConn) Read(b []byte) (int, error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	for {
		flowing := c.network.mu.cuts[fakePath{c.there, c.here}] == 0
		switch {
		case c.closed:
			return 0, net.ErrClosed
		case c.broken != nil:
			return 0, c.failure("read", c.broken)
		case c.readBy.passed():
			return 0, c.failure("read", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return 0, nil
		case flowing && len(c.inbox) > 0:
			count := copy(b, c.inbox)
			c.inbox = c.inbox[count:]
			c.peer.changed.Broadcast()
			return count, nil
		case flowing && c.ended:
			return 0, io.EOF
		}
		c.changed.Wait()
	}
}

// Write puts bytes under way; it waits while too many are.
func (c *fakeConn) Write(b []byte) (int, error) {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	written := 0
	for {
		switch {
		case c.closed:
			return written, net.ErrClosed
		case c.broken != nil:
			return written, c.failure("write", c.broken)
		case c.writeBy.passed():
			return written, c.failure("write", os.ErrDeadlineExceeded)
		case len(b) == 0:
			return written, nil
		case c.peer.closed && !c.network.cutLocked(c.here, c.there):
			return written, c.failure("write", errFakeReset)
		case len(c.peer.inbox) < fakeBuffer:
			count := min(len(b), fakeBuffer-len(c.peer.inbox))
			c.peer.inbox = append(c.peer.inbox, b[:count]...)
			b, written = b[count:], written+count
			c.peer.changed.Broadcast()
			if c.network.cutLocked(c.here, c.there) {
				c.giveUpLocked(c.network.failAfter)
			}
			continue
		}
		c.changed.Wait()
	}
}

// giveUpLocked breaks this side when the cuts of its path last for another
// span.
func (c *fakeConn) giveUpLocked(span time.Duration) {
	out, in := fakePath{c.here, c.there}, fakePath{c.there, c.here}
	outCut, inCut := c.network.mu.cuts[out], c.network.mu.cuts[in]
	time.AfterFunc(span, func() {
		c.network.mu.Lock()
		defer c.network.mu.Unlock()
		same := (outCut != 0 && c.network.mu.cuts[out] == outCut) || (inCut != 0 && c.network.mu.cuts[in] == inCut)
		if same && !c.closed && c.broken == nil {
			c.breakLocked(errFakeTimeout)
		}
	})
}

func (c *fakeConn) breakLocked(err error) {
	c.broken = err
	c.changed.Broadcast()
}

// Close ends both directions; the peer reads what is under way, then io.EOF.
func (c *fakeConn) Close() error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	c.closed = true
	c.inbox = nil
	c.peer.ended = c.broken == nil
	c.readBy.stop()
	c.writeBy.stop()
	c.changed.Broadcast()
	c.peer.changed.Broadcast()
	if c.peer.closed || c.peer.broken != nil {
		delete(c.network.mu.conns, c)
		delete(c.network.mu.conns, c.peer)
	}
	return nil
}

func (c *fakeConn) failure(op string, err error) error {
	return &net.OpError{Op: op, Net: "fake", Source: c.local, Addr: c.remote, Err: err}
}

// LocalAddr is this side's address.
func (c *fakeConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the peer's address.
func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline bounds reads and writes.
func (c *fakeConn) SetDeadline(at time.Time) error {
	return errors.Join(c.SetReadDeadline(at), c.SetWriteDeadline(at))
}

// SetReadDeadline bounds reads.
func (c *fakeConn) SetReadDeadline(at time.Time) error { return c.setDeadline(&c.readBy, at) }

// SetWriteDeadline bounds writes.
func (c *fakeConn) SetWriteDeadline(at time.Time) error { return c.setDeadline(&c.writeBy, at) }

func (c *fakeConn) setDeadline(d *deadline, at time.Time) error {
	c.network.mu.Lock()
	defer c.network.mu.Unlock()
	if c.closed {
		return net.ErrClosed
	}
	d.stop()
	d.at = at
	if !at.IsZero() {
		d.timer = time.AfterFunc(max(0, time.Until(at)), func() {
			c.network.mu.Lock()
			defer c.network.mu.Unlock()
			c.changed.Broadcast()
		})
	}
	c.changed.Broadcast()
	return nil
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
