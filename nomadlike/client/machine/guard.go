package machine

import (
	"log/slog"
	"net/netip"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
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

// Guard keeps the ports at which gangs meet from everybody else, where the machine
// has a packet filter. Any goroutine may use it once it is open.
type Guard struct {
	wall *firewall.Firewall // nil: the node has none
	node *Registration
	log  *slog.Logger
}

// NewGuard makes a guard that keeps nothing until it is open.
func NewGuard(node *Registration, log *slog.Logger) *Guard { return &Guard{node: node, log: log} }

// Open takes over the node's firewall, and registers whether it has one. filter
// nil: it shall have none. It is called before everything else.
func (g *Guard) Open(filter func(nodeID string) firewall.Filter) {
	value := RendezvousOpen
	if filter != nil {
		wall, err := firewall.Open(filter(g.node.Node().ID))
		if err != nil {
			g.log.Warn("ports at which gangs meet are open to every task: the packet filter cannot be set", logkey.Error, err)
		} else {
			g.wall, value = wall, RendezvousGuarded
		}
	}
	g.node.Set(attrRendezvous, value)
}

// Enter keeps the ports at which the gang of an allocation meets. The gang starts
// all the same when that fails.
func (g *Guard) Enter(a *structs.Assignment, by account.Owner) {
	if g.wall == nil {
		return
	}
	gang, meets := meeting(a, by)
	if !meets {
		return
	}
	value := RendezvousGuarded
	if err := g.wall.Enter(a.Alloc.ID, gang); err != nil { // a kernel may lack a part that only rules need
		g.log.Warn("the port at which a gang meets is open to every task", logkey.AllocID, a.Alloc.ID, logkey.Error, err)
		value = RendezvousOpen
	}
	if g.node.Set(attrRendezvous, value) {
		g.node.Refresh()
	}
}

// Leave ends Enter.
func (g *Guard) Leave(id string) {
	if g.wall == nil {
		return
	}
	if err := g.wall.Leave(id); err != nil {
		g.log.Warn("the ports at which gangs met are still kept", logkey.AllocID, id, logkey.Error, err)
	}
}

// Settle takes away what an earlier process of this agent has left, once it is
// known what runs.
func (g *Guard) Settle() {
	if g.wall == nil {
		return
	}
	if err := g.wall.Settle(); err != nil {
		g.log.Warn("the packet filter keeps ports of gangs that have ended", logkey.Error, err)
	}
}

// Close leaves the rules of what goes on running without the agent.
func (g *Guard) Close() {
	if g.wall == nil {
		return
	}
	if err := g.wall.Close(); err != nil {
		g.log.Warn("the packet filter is not tidied up", logkey.Error, err)
	}
}

// Restore sets the firewall again when somebody else has emptied it.
func (g *Guard) Restore() {
	if g.wall == nil {
		return
	}
	switch again, err := g.wall.Restore(); {
	case err != nil:
		g.log.Warn("the packet filter cannot be looked at", logkey.Error, err)
	case again:
		g.log.Warn("another program has emptied the packet filter: the ports at which gangs meet are kept again")
	}
}

// meeting tells the firewall where the gang of an allocation meets; false: at no
// port that is known, or where two nodes have one address, as agents on one machine
// do, of which none knows the users of the other. Pure.
func meeting(a *structs.Assignment, by account.Owner) (firewall.Gang, bool) {
	gang := firewall.Gang{User: uint32(by.UID), AnyUser: by.UID <= 0 || a.Job.Task.Driver == structs.DriverDocker}
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
