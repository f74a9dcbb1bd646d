package forecast

import (
	"time"

	"nomadlike/nomadlike/scheduler"
	"nomadlike/nomadlike/structs"
)

// future is what happened in one future.
type future struct {
	starts  []structs.UnixNano // by queued member; 0: none until reached
	holds   []hold             // in the order of their starts, those that run at now first
	reached structs.UnixNano   // until when it was followed
	ended   bool               // nothing happens after that
}

// hold is a gang on its nodes.
type hold struct {
	member  int32
	spec    int32
	attempt uint64
	from    structs.UnixNano
	to      structs.UnixNano        // never: nobody knows
	placed  []structs.RankPlacement // nil: what the member runs on at now
	cut     bool                    // ended by others at to
}

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
	index int // of the future
	board *scheduler.Board
	draw  Draw
	at    structs.UnixNano
	live  []int32 // hold by member + 1; 0: none
	tries []int32 // starts by member
	ends  endHeap
	left  int // queued members that have to start
}

// play follows future i for at most so many passes, and tells how many it took.
func (f *Futures) play(i, steps int) int {
	u := &f.futures[i]
	u.starts = make([]structs.UnixNano, f.queued)
	p := &player{
		Futures: f, future: u, index: i, board: f.base.Clone(), draw: f.times.Draw(mix(f.seed, uint64(i))), at: f.now,
		live: make([]int32, len(f.members)), tries: make([]int32, len(f.members)),
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
	took := 0
	for again := false; p.left > 0; {
		if !again {
			next, some := p.next()
			if !some || next > f.horizon {
				u.ended = !some
				u.reached = max(p.at, f.now)
				if some {
					u.reached = f.horizon
				}
				return took
			}
			p.at = next
			p.release()
		}
		if took++; took > steps {
			break
		}
		plan := p.board.Pass(p.at, f.seed)
		again = p.carryOut(&plan)
	}
	u.reached = p.at
	return took
}

// asked tells whether somebody wants to know when a queued member starts.
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
	if due, ok := p.board.Due(p.at); ok {
		next = min(next, max(due, p.at+1))
	}
	return next, next != never
}

// stale tells whether an end belongs to a gang that others ended before.
func (p *player) stale(e end) bool {
	h := &p.holds[e.hold]
	return h.to != e.at || p.live[h.member] != e.hold+1
}

// release ends what ends at the time that was reached.
func (p *player) release() {
	for len(p.ends) > 0 && p.ends[0].at <= p.at {
		e := p.ends.pop()
		if p.stale(e) {
			continue
		}
		m := &p.members[p.holds[e.hold].member]
		p.live[p.holds[e.hold].member] = 0
		if m.gang.Again && p.holds[e.hold].placed == nil {
			p.board.Requeue(m.subjob.JobID, m.subjob.Index)
		} else {
			p.board.End(m.subjob.JobID, m.subjob.Index)
		}
	}
}

// goesOn lets a gang that holds nodes at now end some time.
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
	p.hold(hold{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: g.PlacedAt, to: end})
}

func (p *player) hold(h hold) {
	p.holds = append(p.holds, h)
	p.live[h.member] = int32(len(p.holds))
	if h.to != never {
		p.ends.push(end{h.to, int32(len(p.holds) - 1)})
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
		if !g.Claim {
			p.begin(k, g, delay)
		}
	}
	return again || len(plan.Gangs) >= scheduler.GangsMax || ranks >= scheduler.RanksMax
}

// yield ends the victims of a gang, and tells how long they take to leave.
func (p *player) yield(k int32, g *structs.GangPlan) time.Duration {
	longest := time.Duration(0)
	for _, victim := range g.Victims {
		v, known := p.found[keyOf(victim.JobID, victim.Subjob)]
		if !known || p.live[v] == 0 {
			continue
		}
		h := &p.holds[p.live[v]-1]
		h.to, h.cut = max(p.at, h.from), true
		p.live[v] = 0
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
	p.hold(hold{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: from, to: to, placed: g.Placements})
	p.board.Started(g.JobID, g.Subjob, from)
}

// resize lets a gang go on with another number of nodes: what it has left takes
// that much longer or shorter.
func (p *player) resize(k int32, g *structs.GangPlan) {
	h := &p.holds[p.live[k]-1]
	old := len(h.placed)
	if h.placed == nil {
		old = len(p.members[k].gang.Nodes)
	}
	to := h.to
	if to != never && len(g.Placements) > 0 {
		to = later(p.at, time.Duration(float64(max(to.Sub(p.at), 0))*float64(old)/float64(len(g.Placements))))
	}
	h.to, h.cut = p.at, true
	p.hold(hold{member: k, spec: int32(g.Spec), attempt: g.Attempt, from: p.at, to: to, placed: g.Placements})
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

// end is when a hold ends.
type end struct {
	at   structs.UnixNano
	hold int32
}

// endHeap has the next end first.
type endHeap []end

func (h endHeap) less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].hold < h[j].hold
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
