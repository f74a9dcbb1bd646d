package scheduler

import (
	"cmp"
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

const (
	// futileMax bounds the gangs of a partition queue that look for a reservation in vain:
	// each look visits every node.
	futileMax = 16
	// promiseSlack is how far a promised start at least lies behind what was
	// reckoned; promiseOf has the rest.
	promiseSlack = 15 * time.Minute
	promiseSlip  = 3 // of what estimates say: one part in so many
	limitSlip    = 5 // of what limits say
	limitFar     = 3 // how many times further away than expected limits may promise a start
)

// reservation reserves nodes for a gang that is blocked. It has one of three forms:
//
//	timed    the gang is expected to have its nodes at a time: others may use
//	         them until then, and what is spare on them then for longer
//	bounded  only time limits count, for when the gang has its nodes and for who
//	         may use them until then. While limits keep the start that was promised
//	         to the gang, that is until the promise, though it may well start
//	         before; once the promise has passed, until limits give it the nodes
//	strict   no time is known, not even by limits: others may take nothing there
//	         that the gang lacks or would then lack
//
// The time of a bounded one never moves away: what stands there has ended by it,
// and so has whoever is let in. So a promise that limits keep once is kept: see
// promiseOf. A strict one takes the nodes where the gang is nearest to starting. On them,
// what it needs is only ever freed, and when others come nearer it moves there:
// the sum of its free shares only grows, so it starts after finitely many ends.
type reservation struct {
	entry     int32
	jobID     string
	index     int
	partition int32
	need      *need
	at        structs.UnixNano // who is let in has left by then; never: not known
	expected  structs.UnixNano // estimated start; never: not known
	sure      structs.UnixNano // start by time limits, of a bounded one
	due       structs.UnixNano // to be promised, when nothing is yet
	strict    bool
	bounded   bool
	nodes     []int32
	spare     []capacity.Amount // by node: what others may take there whenever they end
}

// spares reports whether a rank with the needs n may stand on a reserved node whenever
// it ends.
func (r *reservation) spares(b *Board, at int32, n *need) bool {
	s := &b.nodes.states[at]
	take := b.nodes.rankOn(n, at)
	spare := r.spare[s.rank]
	if take.CPU > 0 && take.CPU > spare.CPU || take.Memory > 0 && take.Memory > spare.Memory {
		return false
	}
	if take.Devices > 0 && take.Devices > spare.Devices && b.nodes.sameDevices(at, n, r.need) {
		return false
	}
	return b.nodes.sparesPorts(at, r.need, n)
}

// sameDevices reports whether two needs may want the same device of a node.
func (ns *nodes) sameDevices(at int32, x, y *need) bool {
	if x.rank.Devices == 0 || y.rank.Devices == 0 {
		return false
	}
	if !ns.builds.list[ns.states[at].build].mixed {
		return true
	}
	a, c := x.Spec(), y.Spec()
	for i := range ns.states[at].node.Devices {
		d := &ns.states[at].node.Devices[i]
		if slices.ContainsFunc(a.Devices, d.Meets) && slices.ContainsFunc(c.Devices, d.Meets) {
			return true
		}
	}
	return false
}

// sparesPorts errs on the safe side: a port that the reserved gang names must
// not be taken, not even by chance, and its dynamic ones must remain.
func (ns *nodes) sparesPorts(at int32, reserved, n *need) bool {
	its, mine := n.heads, reserved.heads
	if len(its) == 0 || len(mine) == 0 {
		return true
	}
	node := ns.states[at].node
	low, high := node.Capacity.PortMin, node.Capacity.PortMax
	if dynamic := dynamicPorts(mine); dynamic > 0 {
		used := 0
		if _, usage := ns.floor.Node(node.ID); usage != nil {
			used = len(usage.Ports)
		}
		if high-low+1-used < dynamic+len(its) {
			return false
		}
	}
	for _, m := range mine {
		if m.Static == 0 {
			continue
		}
		for _, p := range its {
			if p.Static == m.Static || p.Static == 0 && m.Static >= low && m.Static <= high {
				return false
			}
		}
	}
	return true
}

func dynamicPorts(ports []structs.PortRequest) int {
	count := 0
	for _, p := range ports {
		if p.Static == 0 {
			count++
		}
	}
	return count
}

// dropReservations drops the reservations of a partition queue.
func (b *Board) dropReservations(partition int32) {
	for i, r := range b.promises.reservations {
		if r == nil || r.partition != partition {
			continue
		}
		for _, at := range r.nodes {
			b.nodes.states[at].reservation = 0
		}
		b.promises.drop(i)
	}
}

// addReservation adds a reservation.
func (b *Board) addReservation(r *reservation) {
	at := b.promises.add(r)
	for rank, node := range r.nodes {
		b.nodes.states[node].reservation, b.nodes.states[node].rank = int32(at)+1, int32(rank)
	}
}

// reserve reserves for a blocked gang the nodes on which it is expected to start
// first, or is nearest to starting; false: it found none. The first blocked gang
// of a pool always gets them. Further ones get them only at a known time, and
// while no more than half of the nodes that they could use are reserved, so that
// reservations for many never stand in the way of all.
func (p *pass) reserve(w *queueWalk, id int32, sh *shape) bool {
	e := &p.queue.entries[id]
	var best *reservation
	for i := range sh.needs {
		if r := p.reservationFor(w, id, sh, &sh.needs[i]); r != nil && (best == nil || r.before(best)) {
			best = r
		}
	}
	if best == nil {
		w.futile++
		return false
	}
	if best.due != 0 {
		p.promise(id, best.due)
	}
	if p.accounts.projects[e.project].counts() && p.quotaReservations[e.project] == nil {
		p.reserveQuota(e, best.need.least, &quotaReservation{at: best.expected, strict: best.strict})
	}
	w.reservations++
	w.nodesReserved += len(best.nodes)
	p.addReservation(best)
	return true
}

// lone reports whether no gang of a partition queue can have a reservation beside its
// first: all could use what that one has, and it has half of it already.
func (p *pass) lone(w *queueWalk) bool {
	first := slices.IndexFunc(p.promises.reservations, func(r *reservation) bool { return r != nil && r.partition == w.partition })
	if first < 0 || p.settings.Passing == Easy {
		return false
	}
	r := p.promises.reservations[first]
	if 2*(w.nodesReserved+1) <= p.profileOf(r.need, false).able {
		return false
	}
	at := r.nodes[0]
	return !slices.ContainsFunc(p.queue.partitions[w.partition].groups, func(g int32) bool {
		group := &p.queue.groups[g]
		sh := p.queue.shapes.list[group.key.shape]
		if len(group.queue) == 0 || sh.odd {
			return false
		}
		look := p.judge(sh)
		for i := range sh.needs {
			if look.can(i) && p.nodes.able(&sh.needs[i], at) {
				return false
			}
		}
		return look.reason == nil
	})
}

// promise fixes the start that is promised to a gang.
func (p *pass) promise(id int32, due structs.UnixNano) {
	p.note(id)
	p.queue.entries[id].strictAt = due
	p.promised = append(p.promised, id)
}

// promiseOf is the start to promise at now to a gang that is expected to start at
// one time, and by time limits at another. What limits say is promised with a fifth of
// the way there added, in which short gangs may pass again and again. Where it
// lies too far behind what is expected, limits say little, and estimates are taken at
// their word: with a third added, after which they no longer count.
func promiseOf(now, expected, sure structs.UnixNano) structs.UnixNano {
	if sure != never {
		if due := sure.Add(max(promiseSlack, sure.Sub(now)/limitSlip)); due <= expected.Add((limitFar-1)*expected.Sub(now)+promiseSlack) {
			return due
		}
	}
	return expected.Add(max(promiseSlack, expected.Sub(now)/promiseSlip))
}

// before orders the reservations that a gang may have under its alternatives: one
// that keeps what was promised, then the soonest.
func (r *reservation) before(other *reservation) bool {
	if r.bounded != other.bounded {
		return r.bounded
	}
	return cmp.Or(cmp.Compare(r.at, other.at), cmp.Compare(r.sure, other.sure)) < 0
}

// reservationFor finds the nodes of a reservation under one alternative, nil
// when there are too few.
func (p *pass) reservationFor(w *queueWalk, id int32, sh *shape, n *need) *reservation {
	e := &p.queue.entries[id]
	prof := p.profileOf(n, false)
	candidates := p.nodes.candidates(sh, w.partition)
	if w.reservations > 0 && 2*(w.nodesReserved+sh.min) > prof.able {
		return nil
	}
	picks := p.soonest(prof, e, candidates, sh.min)
	if len(picks) < sh.min {
		return nil
	}
	r := &reservation{entry: id, jobID: e.jobID, index: e.index, partition: w.partition, need: n, at: p.lastOf(picks)}
	if r.expected = r.at; w.reservations == 0 {
		picks = p.bind(r, e, candidates, picks)
	}
	switch {
	case w.reservations > 0 && r.at == never:
		return nil
	case r.at == never:
		r.strict, r.bounded, r.expected, r.due = true, false, never, 0
		if picks = p.nearest(n, prof, candidates, sh.min); picks == nil {
			return nil
		}
	}
	r.nodes, r.spare = make([]int32, len(picks)), make([]capacity.Amount, len(picks))
	slices.SortFunc(picks, func(a, b pick) int { return cmp.Compare(a.place, b.place) })
	for i := range picks {
		r.nodes[i] = picks[i].at
		r.spare[i] = p.spareOn(r, picks[i].at)
	}
	return r
}

// bind lets time limits decide about the reservation of the first gang of a partition
// queue where they keep what is promised to it, and once the promise has passed. It
// returns the nodes to reserve, which are picks where estimates decide. As a
// reference EASY goes by estimates alone until the promise has passed.
//
// Why a promise is kept: what stands on the nodes has ended by r.at, or leaves
// enough room, and so does what is let in. So some nodes have room by limits until
// then at the next pass too, whichever are picked. A gang that outruns its limit is taken
// to end within the slack for which a promise may be passed.
func (p *pass) bind(r *reservation, e *entry, candidates []int32, picks []pick) []pick {
	due := e.strictAt
	late := due != 0 && p.now > due
	if !late && (p.settings.Passing == Easy || r.at == never) {
		if due == 0 && r.at != never {
			r.due = promiseOf(p.now, r.at, never)
		}
		return picks
	}
	timed := slices.Clone(picks)
	picks = p.soonest(p.profileOf(r.need, true), e, candidates, len(timed))
	r.sure = p.lastOf(picks)
	if late {
		r.at, r.expected, r.bounded = r.sure, r.sure, true
		return picks
	}
	if due == 0 {
		due = promiseOf(p.now, r.at, r.sure)
		r.due = due
	}
	if r.sure == never || r.sure > due.Add(promiseSlack) {
		return timed
	}
	r.at, r.bounded = r.sure, true
	if !slices.ContainsFunc(picks, func(x pick) bool { return p.nodes.windows > 0 && p.nodes.closedTo(e, x.at, due) }) {
		r.at = max(r.sure, due)
	}
	return picks
}

// lastOf is when all of the picked nodes have room; never: that is not known.
func (p *pass) lastOf(picks []pick) structs.UnixNano {
	at := p.now
	for i := range picks {
		at = max(at, picks[i].when)
	}
	if at >= whenever {
		return never
	}
	return at
}

// pick is a node that a reservation may take.
type pick struct {
	at    int32
	place int32            // of the node among all, by node id
	near  int32            // how near it is to having room, in thousandths
	when  structs.UnixNano // when it is expected to have room; 0: now
}

// whenever is the time at which a node has room that nobody can estimate.
const whenever = never - 1

func (x pick) sooner(y pick) bool { return x.when < y.when || x.when == y.when && x.place < y.place }

// soonest picks the count nodes with the earliest times that nobody has reserved, in
// no order; fewer when there are no more. Where windows of maintenance stand between
// some of these times and the last of them, it looks again for what is open then.
func (p *pass) soonest(prof *profile, e *entry, candidates []int32, count int) []pick {
	if p.nodes.windows == 0 {
		return p.soonestFrom(prof, nil, p.now, candidates, count)
	}
	from := p.now
	for range windowTries {
		picks := p.soonestFrom(prof, e, from, candidates, count)
		at := p.lastOf(picks)
		if len(picks) < count || at == never || !slices.ContainsFunc(picks, func(x pick) bool { return p.nodes.closedTo(e, x.at, at) }) {
			return picks
		}
		from = at
	}
	return p.soonestFrom(prof, e, from, candidates, count)
}

// windowTries bounds the looks for a time at which no window is in the way of any
// node of a gang. What is left is decided when the time comes.
const windowTries = 16

// soonestFrom is soonest with the times at which nodes are open to e from a time on;
// nil: windows do not matter.
func (p *pass) soonestFrom(prof *profile, e *entry, from structs.UnixNano, candidates []int32, count int) []pick {
	picks := p.promises.picks[:0]
	last := -1 // the latest of as many as are asked for
	for _, at := range candidates {
		when := prof.times[at]
		if when != never && e != nil {
			when = p.opensTo(e, at, when, from)
		}
		if when == never || last >= 0 && when > picks[last].when {
			continue
		}
		s := &p.nodes.states[at]
		if s.reservation != 0 || s.nominatedFor != "" {
			continue
		}
		one := pick{at: at, place: s.place, when: when}
		switch {
		case len(picks) < count:
			picks = append(picks, one)
		case one.sooner(picks[last]):
			picks[last] = one
		default:
			continue
		}
		if len(picks) < count {
			continue
		}
		if count > fewPicks { // all of them, to be sorted
			break
		}
		last = 0
		for i := range picks {
			if picks[last].sooner(picks[i]) {
				last = i
			}
		}
	}
	if count > fewPicks && len(picks) == count {
		picks = p.soonestOfMany(prof, e, from, candidates, count)
	}
	p.promises.picks = picks
	return picks
}

// fewPicks is up to how many picks the latest is looked for anew each time.
const fewPicks = 16

func (p *pass) soonestOfMany(prof *profile, e *entry, from structs.UnixNano, candidates []int32, count int) []pick {
	picks := p.open(prof, candidates)
	if e != nil {
		for i := range picks {
			picks[i].when = p.opensTo(e, picks[i].at, picks[i].when, from)
		}
	}
	return earliest(picks, count, pick.sooner)
}

// open lists the able nodes that nobody has reserved.
func (p *pass) open(prof *profile, candidates []int32) []pick {
	picks := p.promises.picks[:0]
	for _, at := range candidates {
		if s := &p.nodes.states[at]; prof.times[at] != never && s.reservation == 0 && s.nominatedFor == "" {
			picks = append(picks, pick{at: at, place: s.place, when: prof.times[at]})
		}
	}
	return picks
}

// nearest picks for rank 0 the node that is nearest to holding it, then the
// nearest for the others. It returns nil when no node could ever give rank 0 its
// ports.
func (p *pass) nearest(n *need, prof *profile, candidates []int32, count int) []pick {
	picks := p.open(prof, candidates)
	p.promises.picks = picks
	head, best := -1, int32(-1)
	for i := range picks {
		near := p.nodes.nearness(n, picks[i].at, n.ports)
		if picks[i].near = near; len(n.heads) > 0 {
			near = p.nodes.nearness(n, picks[i].at, n.heads)
		}
		if (near > best || near == best && picks[i].place < picks[head].place) && p.nodes.headFits(n, picks[i].at) {
			head, best = i, near
		}
	}
	if head < 0 {
		return nil
	}
	picks[0], picks[head] = picks[head], picks[0]
	earliest(picks[1:], count-1, func(a, b pick) bool { return a.near > b.near || a.near == b.near && a.place < b.place })
	return picks[:count]
}

// headFits reports whether a node has the ports of rank 0 when it is empty.
func (ns *nodes) headFits(n *need, at int32) bool {
	_, ok := feasible.ChoosePorts(ns.states[at].node, nil, n.heads, 0)
	return ok
}

// nearness reports in thousandths how much of the scarcest need of a rank with
// these ports is free: 1000 when it fits. It only grows while nothing new is
// put on the node.
func (ns *nodes) nearness(n *need, at int32, ports []structs.PortRequest) int32 {
	s := &ns.states[at]
	rank := ns.rankOn(n, at)
	room := ns.room(at)
	if ns.builds.list[s.build].mixed && rank.Devices > 0 {
		room.Devices = ns.meeting(n, at)
	}
	if s.shut || room.Over() {
		return 0
	}
	if len(ports) > 0 {
		node, usage := ns.floor.Node(s.node.ID)
		if _, ok := feasible.ChoosePorts(node, usage, ports, 0); !ok {
			return 0
		}
	}
	return min(part(room.CPU, rank.CPU), part(room.Memory, rank.Memory), part(room.Devices, rank.Devices))
}

func part(free, need int64) int32 {
	switch {
	case free >= need:
		return 1000
	case free <= 0:
		return 0
	}
	return int32(float64(free) / float64(need) * 1000)
}

// meeting counts the free healthy devices of a node that meet a need.
func (ns *nodes) meeting(n *need, at int32) int64 { return int64(ns.floor.Meeting(&n.Need, int(at))) }

// spareOn is what others may take of a reserved node whenever they end.
func (p *pass) spareOn(r *reservation, at int32) capacity.Amount {
	s := &p.nodes.states[at]
	room := p.nodes.room(at)
	mixed := p.nodes.builds.list[s.build].mixed
	if mixed {
		room.Devices = p.nodes.meeting(r.need, at)
	}
	if !r.strict {
		for record := s.seats; record >= 0; record = p.nodes.occupants[record].next {
			e := &p.queue.entries[p.nodes.occupants[record].entry]
			if p.queue.runs[e.run].endBy(r.bounded) > r.at {
				continue
			}
			leaves := e.gang.demands[p.nodes.occupants[record].rank]
			if mixed {
				leaves.Devices = 0
			}
			room = room.Add(leaves)
		}
	}
	return room.Sub(p.nodes.rankOn(r.need, at)).Positive()
}

// Reservation is the start that a blocked gang has.
type Reservation struct {
	JobID  string
	Subjob int
	Pool   string           // in whose queue it waits
	At     structs.UnixNano // estimated; 0: not known
	Strict bool             // nothing passes it on its nodes, not even what would end before At
	Nodes  []string         // ids
}

// Reservations lists the starts that are reserved, by time.
func (b *Board) Reservations() []Reservation {
	var list []Reservation
	for _, r := range b.promises.reservations {
		if r == nil {
			continue
		}
		out := Reservation{JobID: r.jobID, Subjob: r.index, Pool: b.queue.partitions[r.partition].pool, At: r.expected, Strict: r.strict}
		if r.expected == never {
			out.At = 0
		}
		for _, at := range r.nodes {
			if node := b.nodes.states[at].node; node != nil {
				out.Nodes = append(out.Nodes, node.ID)
			}
		}
		slices.Sort(out.Nodes)
		list = append(list, out)
	}
	late := func(r Reservation) structs.UnixNano {
		if r.At == 0 {
			return math.MaxInt64
		}
		return r.At
	}
	slices.SortFunc(list, func(x, y Reservation) int {
		return cmp.Or(cmp.Compare(late(x), late(y)), cmp.Compare(x.JobID, y.JobID), cmp.Compare(x.Subjob, y.Subjob))
	})
	return list
}
