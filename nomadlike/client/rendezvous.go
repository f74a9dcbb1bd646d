package client

import (
	"maps"
	"net/netip"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/structs"
)

// This file has the node's firewall keep the ports at which gangs meet.

// attrRendezvous reports whether the node does: RendezvousGuarded or RendezvousOpen.
const attrRendezvous = "net.rendezvous"

// Values of attrRendezvous.
const (
	RendezvousGuarded = "guarded"
	RendezvousOpen    = "open"
)

// openFirewall takes over the node's firewall, and notes whether it has one.
func (c *Client) openFirewall() {
	value := RendezvousOpen
	if c.config.Filter != nil {
		wall, err := firewall.Open(c.config.Filter(c.NodeID()))
		if err != nil {
			c.log.Warn("ports at which gangs meet are open to every task: the packet filter cannot be set", logkey.Error, err)
		} else {
			c.firewall, value = wall, RendezvousGuarded
		}
	}
	c.sayRendezvous(value)
}

// sayRendezvous notes whether the ports of gangs are kept, and reports whether that
// is news.
func (c *Client) sayRendezvous(value string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.node.Attributes[attrRendezvous] == value {
		return false
	}
	all := maps.Clone(c.mu.node.Attributes)
	all[attrRendezvous] = value
	c.mu.node.Attributes = all
	return true
}

// guard keeps the ports at which the gang of an allocation meets. The gang starts
// all the same when that fails.
func (c *Client) guard(a *structs.Assignment, by owner) {
	if c.firewall == nil {
		return
	}
	gang, meets := meeting(a, by)
	if !meets {
		return
	}
	value := RendezvousGuarded
	if err := c.firewall.Enter(a.Alloc.ID, gang); err != nil { // a kernel may lack a part that only rules need
		c.log.Warn("the port at which a gang meets is open to every task", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
		value = RendezvousOpen
	}
	if c.sayRendezvous(value) {
		c.session.Refresh()
	}
}

// unguard ends guard.
func (c *Client) unguard(id string) {
	if c.firewall == nil {
		return
	}
	if err := c.firewall.Leave(id); err != nil {
		c.log.Warn("the ports at which gangs met are still kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// settleGuard takes away what an earlier process of this agent has left, once it is
// known what runs.
func (c *Client) settleGuard() {
	if c.firewall == nil {
		return
	}
	if err := c.firewall.Settle(); err != nil {
		c.log.Warn("the packet filter keeps ports of gangs that have ended", logkey.Error, err)
	}
}

// closeFirewall leaves the rules of what goes on running without the agent.
func (c *Client) closeFirewall() {
	if c.firewall == nil {
		return
	}
	if err := c.firewall.Close(); err != nil {
		c.log.Warn("the packet filter is not tidied up", logkey.Error, err)
	}
}

// keepGuard sets the firewall again when somebody else has emptied it.
func (c *Client) keepGuard() {
	if c.firewall == nil {
		return
	}
	switch again, err := c.firewall.Keep(); {
	case err != nil:
		c.log.Warn("the packet filter cannot be looked at", logkey.Error, err)
	case again:
		c.log.Warn("another program has emptied the packet filter: the ports at which gangs meet are kept again")
	}
}

// meeting tells the firewall where the gang of an allocation meets; false: at no
// port that is known, or where two nodes have one address, as agents on one machine
// do, of which none knows the users of the other. Pure.
func meeting(a *structs.Assignment, by owner) (firewall.Gang, bool) {
	gang := firewall.Gang{User: uint32(by.uid), AnyUser: by.uid <= 0 || a.Job.Task.Driver == structs.DriverDocker}
	nodes, known := make(map[netip.Addr]string), true
	for i := range a.Members {
		m := &a.Members[i]
		addr, err := netip.ParseAddr(m.Addr)
		if err != nil {
			return gang, false
		}
		addr = addr.Unmap().WithZone("")
		if other, ok := nodes[addr]; ok && other != m.NodeID {
			return gang, false
		} else if !ok {
			nodes[addr] = m.NodeID
			known = known && len(m.Addrs) > 0
			for _, text := range m.Addrs {
				from, err := netip.ParseAddr(text)
				known = known && err == nil
				gang.From = append(gang.From, from)
			}
		}
		if port := m.Ports[structs.MasterPortName]; port > 0 {
			gang.Doors = append(gang.Doors, firewall.Door{Addr: addr, Port: uint16(port), Here: m.NodeID == a.Alloc.NodeID})
		}
	}
	if !known {
		gang.From = nil
	}
	return gang, len(gang.Doors) > 0
}
