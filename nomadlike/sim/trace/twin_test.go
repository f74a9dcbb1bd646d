package trace

import (
	"slices"
	"time"
)

// The twin replays a trace in the most obvious way, over arrays of free
// devices: no scheduler, no state, no indexes. What it says of fifo and sjf is
// what these words mean.

type twinJob struct {
	*task
	held map[int]int // devices by node
}

type twinPool struct {
	free    []int // devices by node
	each    int
	bag     bool
	queue   []*twinJob
	running []*twinJob
}

// twin returns the report of a replay under fifo, or under sjf with true run
// times.
func twin(t *Trace, options Options) Report {
	r := newReplay(t, options)
	pools := make([]*twinPool, len(r.pools))
	for i, pool := range r.pools {
		pools[i] = &twinPool{each: pool.GPUs, free: slices.Repeat([]int{pool.GPUs}, pool.Nodes)}
		if options.Place == PlaceFungible {
			pools[i] = &twinPool{bag: true, free: []int{pool.GPUs * pool.Nodes}}
		}
	}
	next := 0
	for left := len(r.tasks); left > 0; {
		now := time.Duration(1 << 62)
		if next < len(r.tasks) {
			now = r.tasks[next].trace.Submit
		}
		for _, pool := range pools {
			for _, j := range pool.running {
				now = min(now, j.began+j.trace.Duration)
			}
		}
		for _, pool := range pools {
			left -= pool.endings(now)
		}
		for ; next < len(r.tasks) && r.tasks[next].trace.Submit == now; next++ {
			pool := pools[r.tasks[next].pool]
			pool.queue = append(pool.queue, &twinJob{task: r.tasks[next]})
		}
		for _, pool := range pools {
			pool.starts(now, options.Policy)
		}
	}
	return r.report()
}

// endings frees what ends now, and counts it.
func (p *twinPool) endings(now time.Duration) int {
	before := len(p.running)
	p.running = slices.DeleteFunc(p.running, func(j *twinJob) bool {
		if j.began+j.trace.Duration != now {
			return false
		}
		for node, devices := range j.held {
			p.free[node] += devices
		}
		j.end = now
		return true
	})
	return before - len(p.running)
}

// starts takes jobs off the head of the queue while they fit.
func (p *twinPool) starts(now time.Duration, policy Policy) {
	if policy == PolicySJF {
		slices.SortStableFunc(p.queue, func(a, b *twinJob) int { return compare(a.estimate(), b.estimate()) })
	}
	for len(p.queue) > 0 {
		j := p.queue[0]
		j.held = p.place(j.size)
		if j.held == nil {
			return
		}
		for node, devices := range j.held {
			p.free[node] -= devices
		}
		j.began = now
		p.running, p.queue = append(p.running, j), p.queue[1:]
	}
}

// estimate is the run time that sjf orders by; the scheduler takes nothing
// below a second for an estimate.
func (j *twinJob) estimate() time.Duration { return max(j.trace.Duration, time.Second) }

// place returns devices by node, nil when there is no room.
func (p *twinPool) place(size int) map[int]int {
	if size <= p.each || p.bag {
		best := -1
		for node, free := range p.free {
			if free >= size && (best < 0 || free < p.free[best]) {
				best = node
			}
		}
		if best < 0 {
			return nil
		}
		return map[int]int{best: size}
	}
	held := make(map[int]int)
	for node, free := range p.free {
		if take := min(p.each, size); size > 0 && free == p.each {
			held[node] = take
			size -= take
		}
	}
	if size >= p.each {
		return nil
	}
	most := -1
	for node, free := range p.free {
		if held[node] == 0 && free >= size && (most < 0 || free > p.free[most]) {
			most = node
		}
	}
	if size > 0 && most < 0 {
		return nil
	}
	if size > 0 {
		held[most] = size
	}
	return held
}
