package rpc

import (
	"net"
	"net/netip"
	"sync"

	"nomadlike/nomadlike/auth"
)

// connLimits counts open connections: by address until we know who is at the
// other end (and for HTTP always), by agent afterwards. So nodes behind one
// address do not starve each other, and one node cannot starve the server.
type connLimits struct {
	mu struct {
		sync.Mutex
		byIP   map[netip.Prefix]int
		byPeer map[auth.Identity]map[*countedConn]struct{}
	}
}

func newConnLimits() *connLimits {
	c := new(connLimits)
	c.mu.byIP = make(map[netip.Prefix]int)
	c.mu.byPeer = make(map[auth.Identity]map[*countedConn]struct{})
	return c
}

// countedConn is a connection that leaves its count when it is closed.
type countedConn struct {
	net.Conn
	limits *connLimits

	// Guarded by limits.mu.
	ip     netip.Prefix
	peer   *auth.Identity // nil while it counts by address
	closed bool
}

// admit counts raw for its address, or returns nil when it has perIP open.
func (c *connLimits) admit(raw net.Conn, perIP int) *countedConn {
	ip := addressOf(raw)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.byIP[ip] >= perIP {
		return nil
	}
	c.mu.byIP[ip]++
	return &countedConn{Conn: raw, limits: c, ip: ip}
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

// promote moves conn from its address's count to its agent's, or returns
// false when the agent has perPeer open.
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
	c.dropIPLocked(conn.ip)
	conn.peer = &peer
	return true
}

func (c *connLimits) dropIPLocked(ip netip.Prefix) {
	if c.mu.byIP[ip]--; c.mu.byIP[ip] <= 0 {
		delete(c.mu.byIP, ip)
	}
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

// Close closes the connection and leaves the count, once.
func (conn *countedConn) Close() error {
	c := conn.limits
	c.mu.Lock()
	if !conn.closed {
		conn.closed = true
		if conn.peer == nil {
			c.dropIPLocked(conn.ip)
		} else if conns := c.mu.byPeer[*conn.peer]; conns != nil {
			delete(conns, conn)
			if len(conns) == 0 {
				delete(c.mu.byPeer, *conn.peer)
			}
		}
	}
	c.mu.Unlock()
	return conn.Conn.Close()
}
