package gossip

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// fakeQueue is how many packets wait at a member of a FakeNetwork; more are
// lost, as a socket's buffer would lose them.
const fakeQueue = 1024

// FakeNetwork is a network in memory for tests, with cuts between hosts. It
// works inside and outside of synctest bubbles.
type FakeNetwork struct {
	mu struct {
		sync.Mutex
		members map[string]*FakeTransport // by host:port
		cuts    map[[2]string]bool        // from host, to host
		watch   func(from, to string, packet []byte)
	}
}

// NewFakeNetwork makes an empty network.
func NewFakeNetwork() *FakeNetwork {
	n := new(FakeNetwork)
	n.mu.members = make(map[string]*FakeTransport)
	n.mu.cuts = make(map[[2]string]bool)
	return n
}

// Transport makes the transport of one member at addr, an IP with port, for
// Config.Transport. Making it again at the same address replaces a member
// that was closed, as a restart does.
func (n *FakeNetwork) Transport(addr string) (*FakeTransport, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || net.ParseIP(host) == nil {
		return nil, fmt.Errorf("listen on %q: want an IP with port", addr)
	}
	t := &FakeTransport{
		network: n, addr: addr, host: host, port: port,
		packets: make(chan *memberlist.Packet, fakeQueue), streams: make(chan net.Conn),
		closed: make(chan struct{}),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mu.members[addr] != nil {
		return nil, fmt.Errorf("listen on %s: address in use", addr)
	}
	n.mu.members[addr] = t
	return t, nil
}

// Cut loses everything between two hosts.
func (n *FakeNetwork) Cut(a, b string) {
	n.CutOneWay(a, b)
	n.CutOneWay(b, a)
}

// CutOneWay loses everything from one host to another.
func (n *FakeNetwork) CutOneWay(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.cuts[[2]string{from, to}] = true
}

// Heal ends all cuts.
func (n *FakeNetwork) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.mu.cuts)
}

// Watch calls see with every packet that is delivered; see must not block
// and must copy what it keeps. nil ends it.
func (n *FakeNetwork) Watch(see func(from, to string, packet []byte)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mu.watch = see
}

// Inject delivers a packet that no member sent.
func (n *FakeNetwork) Inject(from, to string, packet []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.deliverLocked(from, to, packet)
}

func (n *FakeNetwork) deliverLocked(from, to string, packet []byte) {
	target := n.mu.members[to]
	if target == nil || n.mu.cuts[[2]string{hostOf(from), target.host}] {
		return
	}
	if n.mu.watch != nil {
		n.mu.watch(from, to, packet)
	}
	copied := append([]byte(nil), packet...)
	select {
	case target.packets <- &memberlist.Packet{Buf: copied, From: fakeAddr(from), Timestamp: time.Now()}:
	default:
	}
}

func (n *FakeNetwork) cut(a, b string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.cuts[[2]string{a, b}] || n.mu.cuts[[2]string{b, a}]
}

func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	return host
}

type fakeAddr string

func (fakeAddr) Network() string  { return "udp" }
func (a fakeAddr) String() string { return string(a) }

// FakeTransport connects one member to a FakeNetwork.
type FakeTransport struct {
	network          *FakeNetwork
	addr, host, port string
	packets          chan *memberlist.Packet
	streams          chan net.Conn
	closed           chan struct{}
	once             sync.Once
}

var _ memberlist.NodeAwareTransport = (*FakeTransport)(nil)

// FinalAdvertiseAddr tells the member its own address.
func (t *FakeTransport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	var port int
	if _, err := fmt.Sscanf(t.port, "%d", &port); err != nil {
		return nil, 0, fmt.Errorf("read port %q: %w", t.port, err)
	}
	return net.ParseIP(t.host), port, nil
}

// WriteTo sends a packet; it is lost where nobody listens.
func (t *FakeTransport) WriteTo(b []byte, addr string) (time.Time, error) {
	t.network.mu.Lock()
	defer t.network.mu.Unlock()
	t.network.deliverLocked(t.addr, addr, b)
	return time.Now(), nil
}

// WriteToAddress sends a packet.
func (t *FakeTransport) WriteToAddress(b []byte, addr memberlist.Address) (time.Time, error) {
	return t.WriteTo(b, addr.Addr)
}

// PacketCh is where packets arrive.
func (t *FakeTransport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// StreamCh is where connections arrive.
func (t *FakeTransport) StreamCh() <-chan net.Conn { return t.streams }

// DialTimeout connects to another member; across a cut it waits in vain.
func (t *FakeTransport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	failed := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: fakeAddr(addr), Err: err}
	}
	if t.network.cut(t.host, hostOf(addr)) {
		select {
		case <-ctx.Done():
			return nil, failed(os.ErrDeadlineExceeded)
		case <-t.closed:
			return nil, failed(net.ErrClosed)
		}
	}
	t.network.mu.Lock()
	target := t.network.mu.members[addr]
	t.network.mu.Unlock()
	if target == nil {
		return nil, failed(errors.New("connection refused"))
	}
	near, far := net.Pipe()
	select {
	case target.streams <- &fakeStream{Conn: far, network: t.network, here: target.host, there: t.host, remote: fakeAddr(t.addr)}:
		return &fakeStream{Conn: near, network: t.network, here: t.host, there: target.host, remote: fakeAddr(addr)}, nil
	case <-target.closed:
		return nil, failed(errors.New("connection refused"))
	case <-ctx.Done():
		return nil, failed(os.ErrDeadlineExceeded)
	}
}

// DialAddressTimeout connects to another member.
func (t *FakeTransport) DialAddressTimeout(addr memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return t.DialTimeout(addr.Addr, timeout)
}

// Shutdown takes the member off the network.
func (t *FakeTransport) Shutdown() error {
	t.once.Do(func() {
		t.network.mu.Lock()
		defer t.network.mu.Unlock()
		delete(t.network.mu.members, t.addr)
		close(t.closed)
	})
	return nil
}

// fakeStream fails as soon as its hosts are cut off from each other.
type fakeStream struct {
	net.Conn
	network     *FakeNetwork
	here, there string
	remote      net.Addr
}

func (s *fakeStream) RemoteAddr() net.Addr { return s.remote }

func (s *fakeStream) Read(b []byte) (int, error) {
	if s.network.cut(s.here, s.there) {
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Read(b)
}

func (s *fakeStream) Write(b []byte) (int, error) {
	if s.network.cut(s.here, s.there) {
		return 0, os.ErrDeadlineExceeded
	}
	return s.Conn.Write(b)
}
