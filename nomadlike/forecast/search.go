package forecast

import (
	"math/bits"
	"slices"
	"time"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// newcomer is a job that is put into the traces of the futures, under one of
// its alternatives. It starts after the first turn at which enough nodes have
// room for it that is not reserved for others. That is exactly when the scheduler
// would start it if
//
//   - it stands behind everybody who waits; those behind it are taken to start
//     nothing before it does, which errs a little when they fit where it does not,
//   - its ranks name no fixed ports, and its nodes have at most 64 devices,
//   - nobody can be preempted for it, nobody is preempted before it starts, and no
//     node is nominated for a gang that waits for its victims.
//
// In other cases it is a good guess.
type newcomer struct {
	*Futures
	job        *structs.Job
	spec       int
	least      int // nodes
	span       time.Duration
	pool       string
	place      int // in its pool's queue, among those that wait, from 1
	tests      []test
	behind     []bool // members that stand behind it
	closings   []closing
	ahead      int // members that wait before it in its queue
	away       int // of them, those whose nodes are in maintenance at now
	record     *structs.Project
	quotaUsage structs.QuotaUsage // by its project at now; nil: nobody counts
}

// test is what a rank needs of one node.
type test struct {
	able bool
	need capacity.Amount // devices for all requests
	asks []ask
	last []ask // of a smaller last rank; nil: it is no smaller
}

// ask is one request for devices: so many of these.
type ask struct {
	of    uint64
	count int
}

// newcomerOf describes a job under an alternative, at its place. What the board
// has of the subjob already counts as not there.
func (f *Futures) newcomerOf(job *structs.Job, subjob *structs.Subjob, spec int, got *probe) *newcomer {
	g := f.view()
	n := &newcomer{
		Futures: f, job: job, spec: spec, least: job.NodesMin(), span: got.span, pool: got.pool, place: got.position,
		tests: make([]test, len(g.sites)), behind: make([]bool, len(f.members)),
	}
	for i := range f.members[:f.queued] {
		m := &f.members[i]
		if m.pool == n.pool {
			n.behind[i] = m.place >= n.place
		} else {
			n.behind[i] = m.job.Priority.Rank() < job.Priority.Rank()
		}
	}
	for i := range f.members[:f.queued] {
		if m := &f.members[i]; m.pool == n.pool && !m.now && !m.stuck && !n.behind[i] {
			if n.ahead++; m.away {
				n.away++
			}
		}
	}
	if self, ok := f.found[keyOf(subjob.JobID, subjob.Index)]; ok {
		n.behind[self] = true
	}
	rank := job.SpecAt(spec)
	last := job.SpecOf(spec, job.Nodes-1, job.Nodes)
	smaller := last.DeviceCount() != rank.DeviceCount() && n.least == job.Nodes
	for at := range g.sites {
		s := &g.sites[at]
		if s.node == nil || !f.able(job, rank, s.node) {
			continue
		}
		t := &n.tests[at]
		t.able, t.need, t.asks = true, rank.Amount(), asksOf(s.node, rank.Devices)
		t.need.Devices = asked(t.asks)
		if smaller {
			t.last = asksOf(s.node, last.Devices)
		}
	}
	if n.record = f.base.Project(job.Project); n.record != nil && len(n.record.Quotas) > 0 {
		n.quotaUsage = structs.QuotaUsage{}
		if usage := f.base.ProjectUsage(job.Project); usage != nil {
			n.quotaUsage = usage.QuotaUsage
		}
	}
	n.closings = n.closingsFor()
	return n
}

// able reports whether a rank may stand on a node, whatever the node runs and whatever
// windows close it for a while.
func (f *Futures) able(job *structs.Job, spec structs.Resources, node *structs.Node) bool {
	return feasible.Open(job, spec, openAgain(node), f.base.Pool(node.PoolName()))
}

func asksOf(node *structs.Node, requests []structs.DeviceRequest) []ask {
	asks := make([]ask, len(requests))
	for i, request := range requests {
		for k := range node.Devices {
			if d := &node.Devices[k]; k < 64 && d.Healthy && d.Meets(request) {
				asks[i].of |= 1 << k
			}
		}
		if asks[i].count = request.Count; request.Count == structs.DevicesAll {
			asks[i].count = max(bits.OnesCount64(asks[i].of), 1)
		}
	}
	return asks
}

// fits reports whether the free devices answer all requests.
func fits(asks []ask, free uint64) bool {
	total, of := 0, uint64(0)
	for i := range asks {
		if bits.OnesCount64(free&asks[i].of) < asks[i].count {
			return false
		}
		total += asks[i].count
		of |= asks[i].of
	}
	return len(asks) < 2 || bits.OnesCount64(free&of) >= total
}

// scan walks the trace of one future.
type scan struct {
	*newcomer
	view       *view
	index      int
	future     *future
	before     int     // members before the newcomer in its queue that wait
	fills      bool    // the newcomer fills in, should it start after this turn
	later      []int32 // entries of the log that count when it has not started
	absent     []bool  // by occupancy: it never came, because the newcomer stands before it
	free       []room
	state      []uint8 // by node: how much of a rank fits
	count      [3]int  // of able nodes, by state
	shut       []bool  // nominated for others that have not started yet
	closed     []int8  // windows that bar it, by node
	passed     int     // of the closings
	opened     bool    // some nodes that were in maintenance at now are not any more
	quotaUsage structs.QuotaUsage
}

// How much of a rank fits on a node.
const (
	fitsNone uint8 = iota
	fitsLast       // the smaller last one
	fitsFull
)

// samples returns the start of the newcomer in each future; from is the first turn
// that counts: 0 is now, 1 later.
func (n *newcomer) samples(from int) []sample {
	samples := make([]sample, len(n.futures))
	s := scan{newcomer: n, view: n.view()}
	for i := range n.futures {
		samples[i] = s.through(i, from)
	}
	return samples
}

// through finds the start in one future.
func (s *scan) through(index, from int) sample {
	s.index, s.future, s.quotaUsage = index, &s.futures[index], s.newcomer.quotaUsage
	s.begin()
	done := int32(0)
	for i := range s.future.turns {
		t := &s.future.turns[i]
		s.turn(t, s.future.log[done:t.log])
		done = t.log
		if i+1 < len(s.future.turns) && s.future.turns[i+1].at == t.at {
			continue // the scheduler was not done yet
		}
		if i >= from && !(s.strict && s.before > 0) && s.starts(t) {
			return sample{at: t.at}
		}
		for _, entry := range s.later {
			s.happen(entry)
		}
		s.later = s.later[:0]
	}
	return sample{at: s.future.reached, open: true, end: s.future.ended}
}

// turn lets happen what happened in a turn before the newcomer had its chance.
func (s *scan) turn(t *turn, news []int32) {
	s.close(t.at)
	if s.away > 0 && !s.opened && t.at >= s.opening() {
		s.opened = true
		s.before += s.away
	}
	for _, entry := range news {
		if m := s.starter(s.future, entry); m != nil && m.pool == s.pool && !s.behind[s.future.occupancies[entry-1].member] {
			s.before--
		}
	}
	s.fills = !s.strict && s.filling(s.before, s.reservedBefore(t, s.pool, s.place))
	for _, entry := range news {
		index := max(entry, -entry) - 1
		switch {
		case s.absent[index]:
		case entry < 0 && slices.Contains(s.later, index+1):
			s.later = append(s.later, entry)
		case entry > 0 && s.comesLater(index):
			if h := &s.future.occupancies[index]; s.behind[h.member] && !s.fills {
				s.absent[index] = true // the newcomer keeps its nodes from then on
			} else {
				s.later = append(s.later, entry)
			}
		default:
			s.happen(entry)
		}
	}
}

// comesLater reports whether a gang that started in this turn would have been
// served after the newcomer.
func (s *scan) comesLater(index int32) bool {
	h := &s.future.occupancies[index]
	m := &s.members[h.member]
	switch {
	case h.placed == nil:
		return false
	case s.behind[h.member]:
		return !s.fills || m.span == 0 || m.span >= s.span || m.pool != s.pool || m.job.Priority.Rank() < s.job.Priority.Rank()
	}
	return s.fills && s.view.fills[s.index][index] && m.pool == s.pool && m.job.Priority.Rank() == s.job.Priority.Rank() &&
		s.span > 0 && (m.span == 0 || m.span > s.span)
}

// begin sets up what is free at now.
func (s *scan) begin() {
	sites := s.view.sites
	if s.free == nil {
		s.free, s.state, s.shut, s.closed = make([]room, len(sites)), make([]uint8, len(sites)), make([]bool, len(sites)), make([]int8, len(sites))
	}
	clear(s.closed)
	s.passed = 0
	s.count, s.before, s.opened, s.later = [3]int{}, s.ahead-s.away, false, s.later[:0]
	s.absent = slices.Grow(s.absent[:0], len(s.future.occupancies))[:len(s.future.occupancies)]
	clear(s.absent)
	for at := range sites {
		s.free[at], s.shut[at] = sites[at].free, sites[at].nominatedFor != ""
		if s.tests[at].able {
			s.state[at] = s.test(int32(at))
			s.count[s.state[at]]++
		}
	}
}

func (s *scan) test(at int32) uint8 {
	t, free := &s.tests[at], &s.free[at]
	switch {
	case s.shut[at] || s.closed[at] > 0 || !t.need.FitsBeside(free.Amount):
		return fitsNone
	case fits(t.asks, free.devices):
		return fitsFull
	case t.last != nil && fits(t.last, free.devices):
		return fitsLast
	}
	return fitsNone
}

// happen lets a gang come or go.
func (s *scan) happen(entry int32) {
	index, sign := entry-1, int64(-1)
	if entry < 0 {
		index, sign = -entry-1, +1
	}
	h := &s.future.occupancies[index]
	parts := s.view.of(s.index, s.future, index)
	for i := range parts {
		p := &parts[i]
		free := &s.free[p.at]
		if sign < 0 {
			free.take(p)
			s.shut[p.at] = false
		} else {
			free.give(p)
		}
		s.look(p.at)
	}
	if s.quotaUsage != nil && s.members[h.member].job.Project == s.job.Project {
		s.countQuota(h, parts, sign)
	}
}

// look finds out anew how much of a rank fits on a node.
func (s *scan) look(at int32) {
	if !s.tests[at].able {
		return
	}
	if now := s.test(at); now != s.state[at] {
		s.count[s.state[at]]--
		s.count[now]++
		s.state[at] = now
	}
}

// countQuota keeps count of what the project uses.
func (s *scan) countQuota(h *occupancy, parts []part, sign int64) {
	job := s.members[h.member].job
	for i := range parts {
		used := quotaUsageOf(job.SpecOf(int(h.spec), i, len(parts)), s.view.sites[parts[i].at].node, parts[i].devices)
		if sign < 0 {
			s.quotaUsage = s.quotaUsage.Add(used)
		} else {
			s.quotaUsage = s.quotaUsage.Sub(used)
		}
	}
}

// quotaUsageOf is what a rank with these devices counts in a quota.
func quotaUsageOf(spec structs.Resources, node *structs.Node, devices uint64) structs.QuotaUsage {
	var ids []string
	for ; devices != 0; devices &= devices - 1 {
		ids = append(ids, node.Devices[bits.TrailingZeros64(devices)].ID)
	}
	return structs.QuotaUsageOf(spec, node, ids)
}

// starts reports whether the newcomer starts after a turn.
func (s *scan) starts(t *turn) bool {
	if !s.enough(s.count) {
		return false
	}
	count := s.count
	for _, k := range t.reserved {
		if gone(k, s.job, s.span, t.at) {
			continue
		}
		id, index := k.Job()
		if m, ok := s.found[keyOf(id, index)]; ok && s.behind[m] {
			continue
		}
		for i, at := range k.Nodes() {
			if !s.tests[at].able || s.state[at] == fitsNone {
				continue
			}
			spare := k.Spare(i)
			for _, entry := range s.later { // they would have taken it after the newcomer
				spare = spare.Add(s.tookSpare(entry, at, t.at, k))
			}
			if s.tests[at].need.Fits(spare) {
				continue
			}
			count[s.state[at]]--
			if !s.enough(count) {
				return false
			}
		}
	}
	return (!s.job.SpecAt(s.spec).RDMA || s.together(t)) && s.quota()
}

// gone reports whether a job that starts now, and runs for span as it is believed,
// is out of the way when those that have nodes reserved are to start there. A span of 0 is
// not known.
func gone(k scheduler.Reserved, job *structs.Job, span time.Duration, now structs.UnixNano) bool {
	limit := job.TimeLimit.Std()
	return span > 0 && later(now, span) <= k.Until() && (!k.Bounded() || limit > 0 && later(now, limit) <= k.Until())
}

// tookSpare is what a gang that started in this turn took of what is spare on a
// reserved node.
func (s *scan) tookSpare(entry, at int32, now structs.UnixNano, k scheduler.Reserved) (took capacity.Amount) {
	if entry < 0 {
		return took
	}
	m := &s.members[s.future.occupancies[entry-1].member]
	if gone(k, m.job, m.span, now) {
		return took // it ends before the spare matters
	}
	for _, p := range s.view.of(s.index, s.future, entry-1) {
		if p.at == at {
			took = took.Add(p.Amount)
		}
	}
	return took
}

func (s *scan) enough(count [3]int) bool {
	return count[fitsFull] >= s.least || count[fitsLast] > 0 && count[fitsFull] >= s.least-1
}

// asked counts the devices of all requests.
func asked(asks []ask) (total int64) {
	for i := range asks {
		total += int64(asks[i].count)
	}
	return total
}

// together reports whether one pool has room for all ranks.
func (s *scan) together(*turn) bool {
	pools := make(map[string]int)
	for at, state := range s.state {
		if s.tests[at].able && state == fitsFull {
			name := s.view.sites[at].node.PoolName()
			if pools[name]++; pools[name] >= s.least {
				return true
			}
		}
	}
	return false
}

// quota reports whether the project may have the newcomer too.
func (s *scan) quota() bool {
	if s.quotaUsage == nil {
		return true
	}
	at := slices.Index(s.state, fitsFull)
	if at < 0 {
		return true
	}
	devices := uint64(0)
	for _, a := range s.tests[at].asks {
		for of, left := a.of&s.free[at].devices&^devices, a.count; of != 0 && left > 0; of, left = of&(of-1), left-1 {
			devices |= of & -of
		}
	}
	more := structs.QuotaUsage{}
	one := quotaUsageOf(s.job.SpecAt(s.spec), s.view.sites[at].node, devices)
	for key, amount := range one {
		more[key] = amount * int64(s.least)
	}
	return structs.QuotaProblem(s.record, &structs.ProjectUsage{QuotaUsage: s.quotaUsage}, more) == nil
}
