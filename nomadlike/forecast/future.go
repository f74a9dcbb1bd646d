package forecast

import (
	"math"
	"slices"
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// future is what happened in one future.
type future struct {
	starts      []structs.UnixNano // by queued member; 0: none until reached
	occupancies []occupancy        // in the order of their starts, those that run at now first
	reached     structs.UnixNano   // until when it was followed
	ended       bool               // nothing happens after that
	turns       []turn             // the first is now
	log         []int32            // who came (occupancy + 1) and who left (minus that), in order
}

// turn is the state after one pass, or after ends that called for none.
type turn struct {
	at       structs.UnixNano
	log      int32                // how much of the log has happened
	reserved []scheduler.Reserved // for blocked gangs
}

// occupancy is a gang on its nodes.
type occupancy struct {
	member  int32
	spec    int32
	attempt uint64
	from    structs.UnixNano
	to      structs.UnixNano        // never: nobody knows
	placed  []structs.RankPlacement // nil: what the member runs on at now
	cut     bool                    // ended by others at to
}

// settledLeft is up to how many waiting members a pass is repeated until nothing starts, as
// leaders do, where ends that are close to each other count as one. Where more wait, the
// next end is near.
const settledLeft = 64

// never is a time that does not come.
const never = structs.UnixNano(1<<63 - 1)

// sampleOf is the start of a queued member.
func (u *future) sampleOf(i int) sample {
	if at := u.starts[i]; at != 0 {
		return sample{at: at}
	}
	return sample{at: u.reached, open: true, end: u.ended}
}

// player runs the scheduler through one future.
type player struct {
	*Futures
	*future
	index    int // of the future
	board    *scheduler.Board
	draw     Draw
	at       structs.UnixNano
	live     []int32 // occupancy by member + 1; 0: none
	tries    []int32 // starts by member
	ends     endHeap
	left     int    // queued members that have to start
	again    []bool // members that wait again
	back     int    // how many they are
	reserved []scheduler.Reserved
	step     int // of the windows, that comes next
}

// play follows future i for at most so much work, see WorkMax, and reports how
// much it took.
func (f *Futures) play(i, work int) int {
	u := &f.futures[i]
	u.starts = make([]structs.UnixNano, f.queued)
	p := &player{
		Futures: f, future: u, index: i, board: f.base.Clone(), draw: f.times.Draw(mix(f.seed, uint64(i))), at: f.now,
		live: make([]int32, len(f.members)), tries: make([]int32, len(f.members)), again: make([]bool, len(f.members)),
	}
	for k := range f.members {
		m := &f.members[k]
		if k < f.queued && m.now {
			u.starts[k] = f.now
		}
		if k < f.queued && f.asked(k) {
			p.left++
		}
		if k >= f.queued || m.now {
			p.goesOn(int32(k))
		}
	}
	p.log = p.log[:0] // who is there at now is no news
	p.turn(p.board)
	return p.run(work)
}

// run makes passes until everybody who was asked about has started, and then
// follows the ends of the rest, for whoever comes after them.
func (p *player) run(work int) int {
	took, more := (len(p.members)-p.queued)/runningPerWork, false
	each := 1 + p.board.NodeIndexes()/nodesPerWork
	for p.left > 0 || p.only < 0 {
		if !more {
			next, some := p.next()
			if p.reached = p.horizon; !some || next > p.horizon {
				p.ended = !some
				return took
			}
			p.advance(next)
			took += p.maintain() / steppedPerWork
		}
		p.reached = p.at
		if p.done() {
			p.turn(nil)
			more = false
			continue
		}
		if took >= work {
			return took
		}
		if p.coarse {
			p.board.SpareEstimates(p.at, p.reservedUntil())
		}
		p.in.pause()
		plan := p.board.Pass(p.at, p.seed)
		took += each + len(plan.Gangs)
		more = p.carryOut(&plan)
		p.turn(p.board)
	}
	return took
}

// reservedUntil is up to when estimated ends matter to those that have nodes reserved, with
// as much again to spare.
func (p *player) reservedUntil() structs.UnixNano {
	until := p.at
	for _, k := range p.turns[len(p.turns)-1].reserved {
		at := k.Until()
		if at == 0 {
			return never
		}
		until = max(until, at)
	}
	return until.Add(until.Sub(p.at))
}

// done reports whether nobody will start any more.
func (p *player) done() bool { return p.left == 0 && p.back == 0 }

// queueAgain notes that a member waits again.
func (p *player) queueAgain(k int32) { p.again[k], p.back = true, p.back+1 }

// turn notes the state that was reached; a nil board keeps nothing for anybody.
func (p *player) turn(board *scheduler.Board) {
	t := turn{at: p.at, log: int32(len(p.log))}
	if p.only >= 0 {
		return
	}
	if board != nil && p.reservedLeft > 0 {
		p.reserved = board.Reserved(p.reserved[:0])
		if last := len(p.turns) - 1; last >= 0 && slices.EqualFunc(p.reserved, p.turns[last].reserved, scheduler.Reserved.Equal) {
			t.reserved = p.turns[last].reserved
		} else {
			t.reserved = slices.Clone(p.reserved)
			for _, k := range t.reserved {
				p.reservedLeft -= len(k.Nodes())
			}
		}
	}
	p.turns = append(p.turns, t)
}

// asked reports whether somebody wants to know when a queued member starts.
func (f *Futures) asked(k int) bool {
	m := &f.members[k]
	return !m.now && !m.stuck && (f.only < 0 || f.only == k)
}

// next is when something happens next.
func (p *player) next() (structs.UnixNano, bool) {
	next := never
	for len(p.ends) > 0 && p.stale(p.ends[0]) {
		p.ends.pop()
	}
	if len(p.ends) > 0 {
		next = p.ends[0].at
	}
	if due, ok := p.board.Due(p.at); ok && !p.done() {
		next = min(next, max(due, p.at+1))
	}
	next = min(next, p.nextStep())
	return next, next != never
}

// stale reports whether an end belongs to a gang that others ended before.
func (p *player) stale(e end) bool {
	h := &p.occupancies[e.index]
	return h.to != e.at || p.live[h.member] != e.index+1
}

// advance goes on to the next time at which something happens, and ends what
// ends until then. Where times are drawn by chance anyway, ends that are close
// to each other count as one, at their mean: there is no bias in that, and it
// saves most of the passes.
func (p *player) advance(next structs.UnixNano) {
	until := next
	if p.coarse {
		until = max(next, min(p.windowEnd(next), p.nextStep()-1))
	}
	count, past := int64(0), int64(0) // after next
	for len(p.ends) > 0 && p.ends[0].at <= until {
		e := p.ends.pop()
		if p.stale(e) {
			continue
		}
		count++
		past += int64(e.at - next)
		m := &p.members[p.occupancies[e.index].member]
		p.live[p.occupancies[e.index].member] = 0
		p.log = append(p.log, -e.index-1)
		if p.done() && p.step == len(p.steps) {
			continue // nobody asks the board any more
		}
		if m.gang.Again && p.occupancies[e.index].placed == nil {
			p.board.Requeue(m.subjob.JobID, m.subjob.Index)
			p.queueAgain(p.occupancies[e.index].member)
		} else {
			p.board.End(m.subjob.JobID, m.subjob.Index)
		}
	}
	p.at = next
	if count > 0 {
		p.at += structs.UnixNano(past / count)
	}
}

// windowEnd is the end of the window in which a time lies. Windows do not begin
// where somebody ends: those who come and go within one, again and again, would
// have to wait for the others each time.
func (p *player) windowEnd(at structs.UnixNano) structs.UnixNano {
	past := at.Sub(p.now).Seconds()
	if past < windowLeast {
		return p.now.Add(windowLeast * time.Second)
	}
	grow := math.Log1p(windowShare)
	step := math.Floor(math.Log(past/windowLeast)/grow) + 1
	return p.now.Add(time.Duration(windowLeast * math.Exp(step*grow) * float64(time.Second)))
}

// goesOn lets a gang that occupies nodes at now end some time.
func (p *player) goesOn(k int32) {
	m := &p.members[k]
	g := &m.gang
	end := never
	share := p.share(k)
	switch runtime, known := p.draw.Runtime(m.job, m.subjob.Index, share, p.now.Sub(g.PlacedAt)); {
	case g.Ending && g.End > p.now:
		end = p.now.Add(time.Duration(share * float64(g.End.Sub(p.now))))
	case known:
		end = max(later(g.PlacedAt, runtime), p.now)
	}
	p.occupy(occupancy{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: g.PlacedAt, to: end})
}

// occupy notes a gang on its nodes.
func (p *player) occupy(h occupancy) {
	p.occupancies = append(p.occupancies, h)
	p.log = append(p.log, int32(len(p.occupancies)))
	p.live[h.member] = int32(len(p.occupancies))
	if h.to != never {
		p.ends.push(end{h.to, int32(len(p.occupancies) - 1)})
	}
}

// share is the chance of a member's next run in this future.
func (p *player) share(k int32) float64 {
	try := p.tries[k]
	p.tries[k]++
	if try == 0 {
		return p.shares[int(k)*len(p.futures)+p.index]
	}
	return unit(mix(mix(p.seed, uint64(p.index)), mix(p.members[k].identity(), uint64(try))))
}

// carryOut does what a plan says; true: another pass may place more.
func (p *player) carryOut(plan *structs.Plan) bool {
	ranks, again := 0, false
	for i := range plan.Gangs {
		g := &plan.Gangs[i]
		ranks += len(g.Placements)
		k := p.found[keyOf(g.JobID, g.Subjob)]
		if own := p.live[k]; own != 0 {
			p.resize(k, g)
			continue
		}
		delay := p.yield(k, g)
		again = again || len(g.Victims) > 0
		if !g.Nominate {
			p.begin(k, g, delay)
		}
	}
	unsettled := p.board.Unsettled() && (!p.coarse || p.left <= settledLeft)
	return again || unsettled || len(plan.Gangs) >= scheduler.GangsMax || ranks >= scheduler.RanksMax
}

// yield ends the victims of a gang, and reports how long they take to leave.
func (p *player) yield(k int32, g *structs.GangPlan) time.Duration {
	longest := time.Duration(0)
	for _, victim := range g.Victims {
		v, known := p.found[keyOf(victim.JobID, victim.Subjob)]
		if !known || p.live[v] == 0 {
			continue
		}
		p.cutShort(v)
		longest = max(longest, grace(p.members[v].job))
	}
	if longest == 0 {
		return 0
	}
	return time.Duration(unit(mix(mix(p.seed, uint64(p.index)), p.members[k].identity())) * float64(longest))
}

// begin starts a gang after a delay.
func (p *player) begin(k int32, g *structs.GangPlan, delay time.Duration) {
	m := &p.members[k]
	if p.again[k] {
		p.again[k], p.back = false, p.back-1
	}
	from := p.at.Add(delay)
	if int(k) < p.queued && p.starts[k] == 0 {
		p.starts[k] = from
		if p.asked(int(k)) {
			p.left--
		}
	}
	to := never
	if runtime, known := p.draw.Runtime(m.job, m.subjob.Index, p.share(k), 0); known {
		to = later(from, max(runtime, 0))
	}
	p.occupy(occupancy{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: from, to: to, placed: g.Placements})
	p.board.Started(g.JobID, g.Subjob, from)
}

// resize lets a gang go on with another number of nodes: what it has left takes
// that much longer or shorter.
func (p *player) resize(k int32, g *structs.GangPlan) {
	h := &p.occupancies[p.live[k]-1]
	old := len(h.placed)
	if h.placed == nil {
		old = len(p.members[k].gang.Nodes)
	}
	to := h.to
	if to != never && len(g.Placements) > 0 {
		to = later(p.at, time.Duration(float64(max(to.Sub(p.at), 0))*float64(old)/float64(len(g.Placements))))
	}
	h.to, h.cut = p.at, true
	p.log = append(p.log, -p.live[k])
	p.occupy(occupancy{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: p.at, to: to, placed: g.Placements})
	p.board.Started(g.JobID, g.Subjob, p.at)
}

// grace is how long the ranks of a job may take to stop.
func grace(job *structs.Job) time.Duration {
	span := job.StopGrace.Std()
	if job.Checkpoint != nil {
		span = max(span, job.Checkpoint.Grace.Std())
	}
	return max(span, 0)
}

// later adds a span to a time, and stays at never.
func later(at structs.UnixNano, span time.Duration) structs.UnixNano {
	if at == never || span > HorizonMax*100 {
		return never
	}
	return at.Add(span)
}

// end is when an occupancy ends.
type end struct {
	at    structs.UnixNano
	index int32
}

// endHeap has the next end first.
type endHeap []end

func (h endHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].index < h[j].index
}

func (h *endHeap) push(e end) {
	*h = append(*h, e)
	s := *h
	for i := len(s) - 1; i > 0; {
		up := (i - 1) / 2
		if !s.less(i, up) {
			return
		}
		s[i], s[up] = s[up], s[i]
		i = up
	}
}

func (h *endHeap) pop() end {
	s := *h
	first := s[0]
	last := len(s) - 1
	s[0] = s[last]
	s = s[:last]
	*h = s
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return first
		}
		if child+1 < last && s.less(child+1, child) {
			child++
		}
		if !s.less(child, i) {
			return first
		}
		s[i], s[child] = s[child], s[i]
		i = child
	}
}
