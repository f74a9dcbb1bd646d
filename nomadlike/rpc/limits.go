package rpc

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/nomadlike/auth"
)

// connLimits counts open connections in three crowds: those whose handshake is
// under way and those of HTTP by address, those of agents by agent. So nodes
// behind one address do not starve each other, one node cannot starve the
// server, and people and tasks at a node's address cannot keep its agent out.
//
// A full crowd makes room for a newcomer: strangers that say nothing are ended
// before anybody who may have something to say is turned away.
type connLimits struct {
	now   func() time.Time
	quiet time.Duration // an HTTP connection that moved nothing for so long may be ended

	mu struct {
		sync.Mutex
		handshakes, http crowd
		byPeer           map[auth.Identity]map[*countedConn]struct{}
	}
}

// crowd is the connections of one kind.
type crowd struct {
	perIP, all int // at most
	count      int
	byIP       map[netip.Prefix][]*countedConn // in the order they came
}

func newConnLimits(config *MuxConfig) *connLimits {
	c := &connLimits{now: config.Now, quiet: config.QuietAfter}
	c.mu.handshakes = crowd{perIP: config.HandshakesPerIPMax, all: config.HandshakesMax, byIP: make(map[netip.Prefix][]*countedConn)}
	c.mu.http = crowd{perIP: config.ConnsPerIPMax, all: config.ConnsMax, byIP: make(map[netip.Prefix][]*countedConn)}
	c.mu.byPeer = make(map[auth.Identity]map[*countedConn]struct{})
	return c
}

// enter adds conn. When the crowd, or the part of it from conn's address, is
// full, a victim that oldest chooses leaves for it; without one conn stays out.
func (w *crowd) enter(conn *countedConn, oldest func([]*countedConn) *countedConn) (victim *countedConn, ok bool) {
	if victim, ok = w.place(conn, oldest); !ok {
		return nil, false
	}
	if victim != nil {
		w.leave(victim)
	}
	w.byIP[conn.ip] = append(w.byIP[conn.ip], conn)
	w.count++
	conn.crowd = w
	return victim, true
}

// place finds who would leave for conn, nil when there is room; false when there is
// none and nobody leaves.
func (w *crowd) place(conn *countedConn, oldest func([]*countedConn) *countedConn) (victim *countedConn, ok bool) {
	own := w.byIP[conn.ip]
	switch {
	case len(own) >= w.perIP:
		victim = oldest(own)
	case w.count >= w.all:
		most := own
		for _, conns := range w.byIP {
			if len(conns) > len(most) {
				most = conns
			}
		}
		victim = oldest(most)
	default:
		return nil, true
	}
	return victim, victim != nil
}

func (w *crowd) leave(conn *countedConn) {
	conns := w.byIP[conn.ip]
	at := slices.Index(conns, conn)
	if at < 0 {
		return
	}
	w.count--
	conn.crowd = nil
	if len(conns) == 1 {
		delete(w.byIP, conn.ip)
		return
	}
	w.byIP[conn.ip] = slices.Delete(conns, at, at+1)
}

// countedConn is a connection that leaves its count when it is closed.
type countedConn struct {
	net.Conn
	limits *connLimits
	ip     netip.Prefix
	moved  atomic.Int64 // when bytes last went either way, Unix nanoseconds

	// Guarded by limits.mu.
	crowd  *crowd         // nil: it counts by agent, or not any more
	peer   *auth.Identity // nil while it counts by address
	closed bool
}

// Read notes that the connection is in use.
func (conn *countedConn) Read(b []byte) (int, error) {
	n, err := conn.Conn.Read(b)
	if n > 0 {
		conn.moved.Store(conn.limits.now().UnixNano())
	}
	return n, err
}

// Write notes that the connection is in use.
func (conn *countedConn) Write(b []byte) (int, error) {
	n, err := conn.Conn.Write(b)
	if n > 0 {
		conn.moved.Store(conn.limits.now().UnixNano())
	}
	return n, err
}

// admit counts raw among the handshakes. When there are too many, the oldest
// one is ended: a handshake takes milliseconds, so it is not a friend's.
// nil: there is no room all the same.
func (c *connLimits) admit(raw net.Conn) (conn, victim *countedConn) {
	conn = &countedConn{Conn: raw, limits: c, ip: addressOf(raw)}
	conn.moved.Store(c.now().UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	victim, ok := c.mu.handshakes.enter(conn, func(conns []*countedConn) *countedConn {
		if len(conns) == 0 {
			return nil
		}
		return conns[0]
	})
	if !ok {
		return nil, nil
	}
	return conn, victim
}

// addressOf is what connections are counted by: an IPv4 address, or the /64
// of an IPv6 address, of which one host owns all.
func addressOf(conn net.Conn) netip.Prefix {
	addr, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return netip.Prefix{}
	}
	ip := addr.Addr().Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}

// shaken takes conn out of the handshakes, whatever becomes of it.
func (c *connLimits) shaken(conn *countedConn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.crowd == &c.mu.handshakes {
		c.mu.handshakes.leave(conn)
	}
}

// welcome counts conn, which was shaken, among the HTTP connections, in the place of one that has been
// quiet for long when there is no other; false when there is none of these.
func (c *connLimits) welcome(conn *countedConn) (victim *countedConn, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.closed {
		return nil, false
	}
	return c.mu.http.enter(conn, c.quietest())
}

// quietest finds the one of some HTTP connections that moved nothing for longest,
// if that is long.
func (c *connLimits) quietest() func([]*countedConn) *countedConn {
	before := c.now().Add(-c.quiet).UnixNano()
	return func(conns []*countedConn) *countedConn {
		var quietest *countedConn
		for _, one := range conns {
			if at := one.moved.Load(); at <= before && (quietest == nil || at < quietest.moved.Load()) {
				quietest = one
			}
		}
		return quietest
	}
}

// hopeful reports whether there would be a place for conn among the HTTP connections.
func (c *connLimits) hopeful(conn *countedConn) bool {
	quietest := c.quietest()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.mu.http.place(conn, quietest)
	return ok
}

// promote counts conn, which was shaken, for its agent, or returns false when
// the agent has perPeer open.
func (c *connLimits) promote(conn *countedConn, peer auth.Identity, perPeer int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	conns := c.mu.byPeer[peer]
	if conn.closed || len(conns) >= perPeer {
		return false
	}
	if conns == nil {
		conns = make(map[*countedConn]struct{})
		c.mu.byPeer[peer] = conns
	}
	conns[conn] = struct{}{}
	conn.peer = &peer
	return true
}

// disconnect closes every connection of an agent.
func (c *connLimits) disconnect(peer auth.Identity) int {
	c.mu.Lock()
	var conns []*countedConn
	for conn := range c.mu.byPeer[peer] {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
	return len(conns)
}

// disconnectAll closes the connections of all agents.
func (c *connLimits) disconnectAll() int {
	c.mu.Lock()
	var peers []auth.Identity
	for peer := range c.mu.byPeer {
		peers = append(peers, peer)
	}
	c.mu.Unlock()
	count := 0
	for _, peer := range peers {
		count += c.disconnect(peer)
	}
	return count
}

// Close closes the connection and leaves the count, once.
func (conn *countedConn) Close() error {
	c := conn.limits
	c.mu.Lock()
	if !conn.closed {
		conn.closed = true
		if conn.crowd != nil {
			conn.crowd.leave(conn)
		}
		if conn.peer != nil {
			conns := c.mu.byPeer[*conn.peer]
			delete(conns, conn)
			if len(conns) == 0 {
				delete(c.mu.byPeer, *conn.peer)
			}
		}
	}
	c.mu.Unlock()
	return conn.Conn.Close()
}
