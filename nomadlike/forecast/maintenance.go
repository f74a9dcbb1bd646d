package forecast

import (
	"cmp"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// This file plays windows of maintenance. The board knows them from its nodes, and
// keeps what could run into one off them; what time alone brings about is done here,
// as the leader's sweep and state.Apply do it: a window begins, what it stops is queued
// again, and at its end its nodes are open.

// windowStep is what windows change at one time.
type windowStep struct {
	at    structs.UnixNano
	nodes []*structs.Node // as they are from then on
	stops map[string]bool // ids of those on which nothing goes on; nil: it does everywhere
	opens bool            // a window is over
}

// windowSteps lists what the windows of nodes will change after now, by time.
func windowSteps(nodes func(func(*structs.Node, *structs.Usage) bool), now structs.UnixNano) []windowStep {
	byTime := make(map[structs.UnixNano]*windowStep)
	for node := range nodes {
		for _, at := range stepTimes(node, now) {
			s := byTime[at]
			if s == nil {
				s = &windowStep{at: at}
				byTime[at] = s
			}
			s.add(node, at)
		}
	}
	steps := make([]windowStep, 0, len(byTime))
	for _, s := range byTime {
		steps = append(steps, *s)
	}
	slices.SortFunc(steps, func(a, b windowStep) int { return cmp.Compare(a.at, b.at) })
	return steps
}

// stepTimes is when windows of a node change, each time once. What is due already
// happens next.
func stepTimes(node *structs.Node, now structs.UnixNano) []structs.UnixNano {
	var times []structs.UnixNano
	for i := range node.Maintenance {
		w := &node.Maintenance[i]
		if !w.Begun {
			times = append(times, max(w.Start, now+1))
		}
		times = append(times, max(w.End, now+1))
	}
	slices.Sort(times)
	return slices.Compact(times)
}

// add lets a node change at a time: windows that have begun by then close it, and
// those that are over are gone.
func (s *windowStep) add(node *structs.Node, at structs.UnixNano) {
	then := *node
	then.Maintenance = nil
	for _, w := range node.Maintenance {
		if w.End <= at {
			s.opens = true
			continue
		}
		if !w.Begun && w.Start <= at {
			w.Begun = true
			if !w.KeepRunning {
				if s.stops == nil {
					s.stops = make(map[string]bool)
				}
				s.stops[node.ID] = true
			}
		}
		then.Maintenance = append(then.Maintenance, w)
	}
	s.nodes = append(s.nodes, &then)
}

// nextStep is when a window changes something next.
func (p *player) nextStep() structs.UnixNano {
	if p.step == len(p.steps) {
		return never
	}
	return p.steps[p.step].at
}

// maintain does what windows do until the time that is reached, and reports to how
// many nodes.
func (p *player) maintain() (nodes int) {
	for ; p.nextStep() <= p.at; p.step++ {
		s := &p.steps[p.step]
		if s.stops != nil {
			p.clear(s.stops)
		}
		for _, node := range s.nodes {
			p.board.PutNode(node.ID, node, p.board.NodeUsage(node.ID))
		}
		nodes += len(s.nodes)
	}
	return nodes
}

// clear stops what runs on some nodes and queues it again. What somebody stops
// already ends by itself.
func (p *player) clear(nodes map[string]bool) {
	for k := range p.live {
		if p.live[k] == 0 {
			continue
		}
		h, m := &p.occupancies[p.live[k]-1], &p.members[k]
		stands := slices.ContainsFunc(h.placed, func(r structs.RankPlacement) bool { return nodes[r.NodeID] })
		if h.placed == nil {
			stands = !m.gang.Ending && slices.ContainsFunc(m.gang.Nodes, func(id string) bool { return nodes[id] })
		}
		if !stands {
			continue
		}
		p.board.Requeue(m.subjob.JobID, m.subjob.Index)
		p.cutShort(int32(k))
	}
}

// cutShort ends a gang for others, or for a window, and lets it wait again.
func (p *player) cutShort(k int32) {
	h := &p.occupancies[p.live[k]-1]
	h.to, h.cut = max(p.at, h.from), true
	p.log = append(p.log, -p.live[k])
	p.live[k] = 0
	p.queueAgain(k)
}

// closing is a node that begins or ceases to be closed to a newcomer.
type closing struct {
	at   structs.UnixNano
	site int32
	by   int8 // +1: a window more bars it, -1: one less
}

// closingsFor lists when windows bar a job from nodes that it could use, by time.
func (n *newcomer) closingsFor() []closing {
	if len(n.steps) == 0 {
		return nil
	}
	var list []closing
	for at := range n.tests {
		if !n.tests[at].able {
			continue
		}
		windows := n.view().sites[at].node.Maintenance
		for i := range windows {
			from, to := windows[i].Closed(n.job)
			list = append(list, closing{from, int32(at), +1}, closing{max(to, n.now+1), int32(at), -1})
		}
	}
	slices.SortStableFunc(list, func(a, b closing) int { return cmp.Compare(a.at, b.at) })
	return list
}

// close brings to a time what windows bar the newcomer from.
func (s *scan) close(at structs.UnixNano) {
	for ; s.passed < len(s.closings) && s.closings[s.passed].at <= at; s.passed++ {
		c := &s.closings[s.passed]
		s.closed[c.site] += c.by
		s.look(c.site)
	}
}

// open reports whether windows let a job start on a node at now.
func (f *Futures) open(job *structs.Job, node *structs.Node) bool {
	return node.MaintenanceAgainst(job, f.now) == nil
}

// openAgain is a node as it is when no window is in the way.
func openAgain(node *structs.Node) *structs.Node {
	if node.Maintained() == nil {
		return node
	}
	own := *node
	own.Maintenance = nil
	return &own
}

// awaitsWindow reports whether all futures agree that something starts when a window
// is over: then the time is known, and no experience with other forecasts betters it.
func (f *Futures) awaitsWindow(samples []sample) bool {
	for _, s := range samples {
		if s.open || s.at != samples[0].at {
			return false
		}
	}
	at, found := slices.BinarySearchFunc(f.steps, samples[0].at, func(s windowStep, at structs.UnixNano) int { return cmp.Compare(s.at, at) })
	return found && f.steps[at].opens
}

// opensTo is when windows let a job start on all of some sites, from a time on.
func (f *Futures) opensTo(job *structs.Job, sites map[int32]bool, from structs.UnixNano) structs.UnixNano {
	for {
		at := from
		for site := range sites { // the latest: in any order
			at = max(at, f.view().sites[site].node.OpensTo(job, from))
		}
		if at == from {
			return at
		}
		from = at
	}
}

// inMaintenance reports whether a reason is that nodes are in maintenance.
func inMaintenance(wait *structs.WaitReason) bool {
	return wait != nil && strings.HasPrefix(wait.ID, "scheduler.in_maintenance")
}

// opening is when the first window is over.
func (f *Futures) opening() structs.UnixNano {
	for i := range f.steps {
		if f.steps[i].opens {
			return f.steps[i].at
		}
	}
	return never
}

// windowsOfAll lists the windows that all nodes of a pool have: a node that joins it has
// them too, and none of those of nodes by name.
func (p *scenario) windowsOfAll(pool string) []structs.NodeMaintenance {
	var common []structs.NodeMaintenance
	first := true
	for node := range p.board.Nodes() {
		if node.PoolName() != pool {
			continue
		}
		if first {
			common, first = slices.Clone(node.Maintenance), false
			continue
		}
		common = slices.DeleteFunc(common, func(w structs.NodeMaintenance) bool { return !slices.Contains(node.Maintenance, w) })
	}
	return common
}
