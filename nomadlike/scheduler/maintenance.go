package scheduler

import (
	"time"

	"nomadlike/nomadlike/structs"
)

// This file plans around windows of maintenance. Nodes carry the windows that cover
// them; structs.NodeMaintenance.Bars is the one rule, which state.Apply asks again.

// closedTo reports whether a window of a node keeps an entry from starting there at a
// time.
func (ns *nodes) closedTo(e *entry, at int32, when structs.UnixNano) bool {
	s := &ns.states[at]
	return len(s.node.Maintenance) > 0 && s.node.MaintenanceAgainst(e.job, when) != nil
}

// opensTo returns when a node that has room at a time lets an entry start, from on or
// later: then, or at the end of the windows that it could run into. Times before now
// stay as they are where no window is in the way.
func (p *pass) opensTo(e *entry, at int32, when, from structs.UnixNano) structs.UnixNano {
	if when >= whenever {
		return when
	}
	open := p.nodes.states[at].node.OpensTo(e.job, max(when, from))
	if from == p.now && open == max(when, from) {
		return when
	}
	return open
}

// isClosed is isReserved, or a window that the gang could run into.
func (p *pass) isClosed(at int) bool {
	return p.isReserved(at) || p.nodes.closedTo(p.placing, int32(at), p.now)
}

// isNominatedOrClosed is isNominated, or a window that the gang could run into.
func (p *pass) isNominatedOrClosed(at int) bool {
	return p.isNominated(at) || p.nodes.closedTo(p.placing, int32(at), p.now)
}

// reach is how long an entry is counted as running where windows are concerned: of
// windows that stop what runs, and of those that do not.
type reach struct{ stops, keeps time.Duration }

// reachOf tells the reach of an entry. While no node has a window all are alike.
func (p *pass) reachOf(e *entry) reach {
	if p.nodes.windows == 0 {
		return reach{}
	}
	return reach{e.job.MaintenanceSpan(false), e.job.MaintenanceSpan(true)}
}

// within reports whether windows may let in one with reach r where they bar one with
// the reach of another.
func (r reach) within(other reach) bool { return r.stops < other.stops || r.keeps < other.keeps }

// countWindows keeps count of the nodes that have windows.
func (ns *nodes) countWindows(before, after *structs.Node) {
	if before != nil && len(before.Maintenance) > 0 {
		ns.windows--
	}
	if after != nil && len(after.Maintenance) > 0 {
		ns.windows++
	}
}

// closing describes the window that keeps a gang from nodes which have room for it.
type closing struct {
	window *structs.NodeMaintenance // the first that ends
	nodes  []string                 // names
}

// closingFor finds out whether windows are what keeps a gang waiting: the nodes that
// have room and are closed to it.
func (p *pass) closingFor(e *entry, sh *shape, w *queueWalk, n *need) *closing {
	if p.nodes.windows == 0 {
		return nil
	}
	var c closing
	for _, at := range p.nodes.candidates(sh, w.partition) {
		s := &p.nodes.states[at]
		if s.node == nil || !s.open(e.key()) || !p.nodes.roomFor(n, sh.vip != nil, at) {
			continue
		}
		window := s.node.MaintenanceAgainst(e.job, p.now)
		if window == nil {
			continue
		}
		c.nodes = append(c.nodes, s.node.Name)
		if c.window == nil || window.End < c.window.End {
			c.window = window
		}
	}
	if c.window == nil {
		return nil
	}
	return &c
}

// inMaintenance finds out whether a gang that the cluster could hold waits for nodes in
// maintenance: as many as it needs would be able without the windows that have begun.
func (b *Board) inMaintenance(sh *shape) *structs.WaitReason {
	if b.nodes.windows == 0 {
		return nil
	}
	for i := range sh.needs {
		n := &sh.needs[i]
		able, c := 0, closing{}
		for _, at := range b.nodes.candidates(sh, b.queue.partitionOf(poolName(sh.pool)).id) {
			if b.nodes.able(n, at) {
				able++
				continue
			}
			window := b.nodes.states[at].node.Maintained()
			if window == nil {
				continue
			}
			open := *b.nodes.states[at].node
			if open.Maintenance = nil; !b.nodes.could(n, &open) {
				continue
			}
			c.nodes = append(c.nodes, open.Name)
			if c.window == nil || window.End < c.window.End {
				c.window = window
			}
		}
		if c.window != nil && able+len(c.nodes) >= sh.min {
			return c.reason(sh, able)
		}
	}
	return nil
}

// reason says it to people.
func (c *closing) reason(sh *shape, room int) *structs.WaitReason {
	id, why := "scheduler.maintenance", "scheduler.maintenance_why"
	if c.window.Begun {
		id, why = "scheduler.in_maintenance", "scheduler.in_maintenance_why"
	}
	params := []any{
		"nodes", sh.size(), "need", sh.text(), "room", room, "closed", len(c.nodes), "names", shorten(c.nodes),
		"start", c.window.Start.Time().Truncate(time.Second).Format(time.RFC3339),
		"end", c.window.End.Time().Truncate(time.Second).Format(time.RFC3339),
	}
	if c.window.Reason != "" {
		id = why
		params = append(params, "why", c.window.Reason)
	}
	return waitFor(id, params...)
}
