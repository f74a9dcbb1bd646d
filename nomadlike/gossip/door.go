package gossip

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// Bounds of streams that come in. memberlist reads the whole of a stream's
// first message before it can report whether its sender has the key, and buffers
// it while it grows: what it may read of strangers is bounded here.
const (
	streamsMax        = 128      // at once
	streamsPerAddress = 32       // of them, from one address
	streamBytesMax    = 12 << 20 // of one: twice what MembersMax members take
	addressBytesMax   = 12 << 20 // of those of one address
	streamsBytesMax   = 32 << 20 // of all

	// An address whose streams sent too much opens none for a while: what is read
	// of it is garbage, and one that may begin again at once makes it faster than
	// it is collected. Its packets go on.
	shutFor    = time.Second
	addressMax = 4096 // remembered; those without streams are forgotten first
)

// errStreamBytes ends a stream that sends too much.
var errStreamBytes = errors.New("more bytes than a stream of gossip may have")

// door is a transport that lets in a bounded number of streams, which read a
// bounded number of bytes. Streams that this agent opens pass as they are.
type door struct {
	memberlist.NodeAwareTransport
	streams chan net.Conn
	refused func()
	done    chan struct{}
	once    sync.Once
	now     func() time.Time
	pumping sync.WaitGroup

	mu struct {
		sync.Mutex
		bytes  int64
		open   int
		byAddr map[netip.Prefix]*visitors
	}
}

// visitors are the streams of one address.
type visitors struct {
	open  int
	bytes int64
	shut  time.Time // until then it opens no more
}

// newDoor puts a door before a transport. refused is called for every stream
// that is turned away.
func newDoor(transport memberlist.NodeAwareTransport, refused func()) *door {
	d := &door{NodeAwareTransport: transport, streams: make(chan net.Conn), refused: refused, done: make(chan struct{}), now: time.Now}
	d.mu.byAddr = make(map[netip.Prefix]*visitors)
	d.pumping.Go(d.pump)
	return d
}

// StreamCh is where the streams arrive that were let in.
func (d *door) StreamCh() <-chan net.Conn { return d.streams }

// Shutdown closes the transport.
func (d *door) Shutdown() error {
	err := d.NodeAwareTransport.Shutdown()
	d.once.Do(func() { close(d.done) })
	d.pumping.Wait()
	return err
}

func (d *door) pump() {
	for {
		select {
		case <-d.done:
			return
		case conn := <-d.NodeAwareTransport.StreamCh():
			if conn == nil {
				continue
			}
			visitor := d.admit(conn)
			if visitor == nil {
				d.refused()
				_ = conn.Close()
				continue
			}
			select {
			case d.streams <- visitor:
			case <-d.done:
				_ = visitor.Close()
				return
			}
		}
	}
}

// admit counts a stream, or returns nil when there are too many.
func (d *door) admit(conn net.Conn) *visitor {
	from := addressOf(conn)
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.mu.byAddr[from]
	if d.mu.open >= streamsMax || all != nil && (all.open >= streamsPerAddress || d.now().Before(all.shut)) {
		return nil
	}
	if all == nil {
		d.forgetLocked()
		all = new(visitors)
		d.mu.byAddr[from] = all
	}
	all.open++
	d.mu.open++
	return &visitor{Conn: conn, door: d, from: from, all: all}
}

// forgetLocked drops addresses that have no streams, when there are many.
func (d *door) forgetLocked() {
	if len(d.mu.byAddr) < addressMax {
		return
	}
	for from, all := range d.mu.byAddr {
		if all.open == 0 {
			delete(d.mu.byAddr, from)
		}
	}
}

// addressOf is what streams are counted by: an IPv4 address, or the /64 of an
// IPv6 address.
func addressOf(conn net.Conn) netip.Prefix {
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	ip, bits := addr.Addr().Unmap().WithZone(""), 32
	if ip.Is6() {
		bits = 64
	}
	prefix, _ := ip.Prefix(bits)
	return prefix
}

// visitor is a stream that came in.
type visitor struct {
	net.Conn
	door  *door
	from  netip.Prefix
	all   *visitors
	bytes int64 // read; guarded by door.mu
	gone  bool  // guarded by door.mu
}

// Read reads within the bounds of the stream, its address and the door.
func (v *visitor) Read(p []byte) (int, error) {
	n, err := v.Conn.Read(p)
	d := v.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if v.gone {
		return n, err
	}
	v.bytes += int64(n)
	v.all.bytes += int64(n)
	d.mu.bytes += int64(n)
	if v.bytes > streamBytesMax || v.all.bytes > addressBytesMax || d.mu.bytes > streamsBytesMax {
		if v.bytes > streamBytesMax || v.all.bytes > addressBytesMax {
			v.all.shut = d.now().Add(shutFor)
		}
		return 0, fmt.Errorf("read stream of %s: %w", v.from, errStreamBytes)
	}
	return n, err
}

// Close closes the stream, and releases what it was counted for.
func (v *visitor) Close() error {
	d := v.door
	d.mu.Lock()
	if !v.gone {
		v.gone = true
		d.mu.open--
		d.mu.bytes -= v.bytes
		v.all.bytes -= v.bytes
		if v.all.open--; v.all.open == 0 && !d.now().Before(v.all.shut) {
			delete(d.mu.byAddr, v.from)
		}
	}
	d.mu.Unlock()
	return v.Conn.Close()
}

// listenAttempts bounds how often a port that is to be free for TCP and UDP is
// looked for.
const listenAttempts = 10

// listen opens memberlist's own transport, as memberlist would, so that a door
// can stand before it.
func listen(list *memberlist.Config) (memberlist.NodeAwareTransport, error) {
	config := &memberlist.NetTransportConfig{BindAddrs: []string{list.BindAddr}, BindPort: list.BindPort, Logger: list.Logger}
	for attempt := 1; ; attempt++ {
		transport, err := memberlist.NewNetTransport(config)
		switch {
		case err == nil:
			if list.BindPort == 0 {
				list.BindPort = transport.GetAutoBindPort()
				list.AdvertisePort = list.BindPort
			}
			return transport, nil
		case list.BindPort != 0 || attempt == listenAttempts || !strings.Contains(err.Error(), "address already in use"):
			return nil, err
		}
	}
}
