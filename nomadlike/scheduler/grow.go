package scheduler

import (
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
)

// When a shrunk elastic gang is worth a restart on more nodes.
const (
	// growAfter is how long a gang runs at least between changes of its size, and
	// growRangeAfter one of torchrun's range, whose script expects to be started
	// anew at any moment.
	growAfter      = 10 * time.Minute
	growRangeAfter = time.Minute
	// growOverhead is the time that a restart takes besides the work that it
	// repeats: to stop, to get ready, to load the checkpoint.
	growOverhead = 3 * time.Minute
	// growGain is how many times its cost the growth must save.
	growGain = 2.0
	// growsMax bounds the growths of one pass.
	growsMax = 4
	// growLook is how often a gang that may grow is looked at though nothing
	// changed: the longer it runs the more it may be worth.
	growLook = 5 * time.Minute
)

// GrowDue reports when a shrunk elastic gang is worth another look though nothing
// changes. False: there is none.
func (b *Board) GrowDue(now structs.UnixNano) (structs.UnixNano, bool) {
	due := never
	for _, r := range b.queue.runs {
		e := &b.queue.entries[r.entry]
		if g := e.gang; b.queue.growing(e) {
			look := g.runningAt.Add(growsAfter(e.job))
			if look <= now {
				look = now.Add(growLook)
			}
			due = min(due, look)
		}
	}
	return due, due != never
}

// grow lets shrunk elastic gangs with allow_resize have idle nodes, when nobody
// waits for any. With r the time that a gang of n nodes is still expected to
// run, m the nodes that it could have, and c the work since its newest
// checkpoint that it would repeat, it grows when
//
//	r - (r + c)·n/m - overhead  >  growGain·(c + overhead)
//
// and it has run for growAfter. A gang of whose run time nothing is known is
// expected to run as long again as it has run. One of torchrun's range keeps its
// checkpoints itself, often enough for a launcher that starts it anew whenever a
// process fails: unless it registers them, c is taken for 0.
func (p *pass) grow() {
	var shrunk []int32
	for _, r := range p.queue.runs {
		if e := &p.queue.entries[r.entry]; p.mayGrow(e) {
			shrunk = append(shrunk, r.entry)
		}
	}
	grown := 0
	for _, id := range p.queue.sortedEntries(shrunk) {
		if grown == growsMax || len(p.plan.Gangs) >= GangsMax {
			return
		}
		if p.growOne(id) {
			grown++
		}
	}
}

func (p *pass) mayGrow(e *entry) bool {
	return p.queue.growing(e) && p.now.Sub(e.gang.runningAt) >= growsAfter(e.job)
}

func growsAfter(job *structs.Job) time.Duration {
	if job.TorchRange() {
		return growRangeAfter
	}
	return growAfter
}

// growing reports whether a gang runs on fewer nodes than it could have.
func (q *queue) growing(e *entry) bool {
	sh := q.shapes.list[e.shape]
	g := e.gang
	return sh.resize && !g.whole && g.runningAt != 0 && g.endingAt == 0 && e.nomination == nil && len(g.seats) > 0
}

func (p *pass) growOne(id int32) bool {
	e := &p.queue.entries[id]
	if p.accounts.projects[e.project].quotaReserved {
		return false // its quota is for a gang that waits
	}
	sh, old := p.queue.shapes.list[e.shape], e.gang
	n := &sh.needs[old.spec]
	options := p.optionsFor(e, n)
	p.nodes.floor.Give(old.seats)
	size := min(p.sizeMost(e, sh, n), p.nodes.floor.Fits(&n.Need, sh.nodes, options))
	if size <= old.left || !p.worthGrowing(e, size) {
		p.nodes.floor.Take(old.seats)
		return false
	}
	seats, ok := p.nodes.floor.Pick(&n.Need, size, options)
	if !ok {
		p.nodes.floor.Take(old.seats)
		return false
	}
	placed := p.nodes.floor.Placements(seats)
	p.nodes.floor.Take(old.seats)
	project := &p.accounts.projects[e.project]
	if project.counts() {
		usage := &structs.ProjectUsage{QuotaUsage: project.due().QuotaUsage.Sub(old.quotaUsage)}
		if structs.QuotaProblem(project.record, usage, p.usageOf(e, n.Index(), seats, placed)) != nil {
			return false
		}
	}
	key, next := structs.AttemptKey{JobID: e.jobID, Subjob: e.index, Number: old.attempt}, e.nextAttempt()
	if p.settings.Alone {
		p.replaceGang(id, p.newGang(e, n.Index(), next, seats, placed, p.now))
	} else {
		p.note(id)
		p.detach(id, true)
		own := *old
		own.endingAt = p.now
		e.gang = &own
		e.nomination = &nomination{spec: n.Index(), victims: []structs.AttemptKey{key}, own: true, quotaUsage: p.nodes.usageAsNominated(e, n.Index(), placed)}
		for i := range seats {
			e.nomination.nodes = append(e.nomination.nodes, int32(seats[i].Index()))
		}
		p.attach(id, true)
		p.foresee(e, p.now)
	}
	p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
		JobID: e.jobID, Subjob: e.index, Attempt: next, Spec: n.Index(), Placements: placed,
		Victims: []structs.AttemptKey{key},
	})
	p.ranks += len(placed)
	return true
}

// worthGrowing applies the rule of grow.
func (p *pass) worthGrowing(e *entry, size int) bool {
	ran := p.now.Sub(e.gang.runningAt)
	left := ran
	if end := p.queue.runs[e.run].end; end != never {
		left = end.Sub(p.now)
	}
	again := p.now.Sub(e.gang.since())
	if e.job.TorchRange() && e.gang.checkpointAt == 0 {
		again = 0
	}
	fewer := float64(e.gang.left) / float64(size)
	saved := left.Seconds() - (left+again).Seconds()*fewer - growOverhead.Seconds()
	return saved > growGain*(again+growOverhead).Seconds()
}

// nextAttempt is the number of the attempt after the one that runs. On a board
// that is alone the sub-job may not know yet that it was started.
func (e *entry) nextAttempt() uint64 { return max(e.subjob.NextAttempt(), e.gang.attempt+1) }

// replaceGang ends a gang and starts its next attempt in one step. What the
// next attempt still has to run is what the old one had, on more nodes.
func (p *pass) replaceGang(id int32, g *gang) {
	e := &p.queue.entries[id]
	fewer := float64(e.gang.left) / float64(g.left)
	if left := p.queue.runs[e.run].end; left != never {
		e.span = time.Duration(float64(left.Sub(p.now)) * fewer)
	}
	subjob := *e.subjob
	subjob.Attempt = g.attempt
	p.spend(e)
	p.detach(id, true)
	e.gang, e.nomination, e.subjob = g, nil, &subjob
	p.attach(id, true)
	p.foresee(e, p.now)
}

// resized carries out a change of size that a live board planned.
func (p *pass) resized(id int32) bool {
	e := &p.queue.entries[id]
	n := &p.queue.shapes.list[e.shape].needs[e.nomination.spec]
	nodes, old := e.nomination.nodes, e.gang
	options := p.optionsFor(e, n)
	options.Avoid = func(at int) bool { return !slices.Contains(nodes, int32(at)) }
	p.nodes.floor.Give(old.seats)
	seats, ok := p.nodes.floor.Pick(&n.Need, len(nodes), options)
	var placed []structs.RankPlacement
	if ok {
		placed = p.nodes.floor.Placements(seats)
	}
	p.nodes.floor.Take(old.seats)
	if !ok {
		return false
	}
	key, next := structs.AttemptKey{JobID: e.jobID, Subjob: e.index, Number: old.attempt}, e.nextAttempt()
	p.replaceGang(id, p.newGang(e, n.Index(), next, seats, placed, p.now))
	p.plan.Gangs = append(p.plan.Gangs, structs.GangPlan{
		JobID: e.jobID, Subjob: e.index, Attempt: next, Spec: n.Index(), Placements: placed,
		Victims: []structs.AttemptKey{key},
	})
	return true
}
