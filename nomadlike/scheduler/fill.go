package scheduler

import (
	"cmp"
	"slices"
)

// fillMax bounds the entries of a group that fill in.
const fillMax = 512

// fill goes over to filling what the reservations leave. No gang delays them any
// more, so within a tier those that are expected to be done first go first: that
// leaves most room for the next, and costs the others least. In a partition queue of fair
// share the order stays.
func (p *pass) fill(w *queueWalk) {
	c := &w.heap[0]
	if c.pos++; int(c.pos) >= len(p.listOf(*c)) {
		p.drop(w)
	}
	p.awaitQuotas(w)
	if w.closed, w.filling = true, w.shares == nil; !w.filling {
		p.sink(w)
		return
	}
	heap := w.heap[:0]
	for _, c := range w.heap {
		g := &p.queue.groups[c.group]
		if p.hopeless(w, &p.queue.entries[g.queue[c.pos]]) {
			continue
		}
		c.list, c.pos = slices.Clone(g.queue[c.pos:min(len(g.queue), int(c.pos)+fillMax)]), 0
		for _, id := range c.list {
			p.modelEntry(&p.queue.entries[id])
		}
		heapify(c.list, p.fillsFirst)
		heap = append(heap, c)
	}
	w.heap = heap
	p.heapify(w)
}

// fillOn goes on with the next entry of the group that may fill in. Those behind
// the one that failed need as much room for as long, but may have a shorter
// limit.
func (p *pass) fillOn(w *queueWalk, a *answer) {
	list := w.heap[0].list[:0]
	if a.fault == faultReserved && (p.promises.boundCount > 0 || p.nodes.windows > 0) {
		list = p.pop(w.heap[0].list)
		for len(list) > 0 && !p.sooner(&p.queue.entries[list[0]], a) {
			list = p.pop(list)
		}
	}
	w.heap[0].list = list
	p.advance(w, 0)
}

// hopeless reports whether an entry, and all behind it in its group, find no room,
// however short they are, and nobody makes room for them. What they say is the
// same whether the walk comes to them or not.
func (p *pass) hopeless(w *queueWalk, e *entry) bool {
	sh := p.queue.shapes.list[e.shape]
	if sh.odd || sh.vip != nil || p.mayPreempt(e) || p.ceiling(&p.queue.partitions[w.partition], sh) != nil {
		return false
	}
	look, memo := p.judge(sh), &p.queue.memos[sh.id]
	if look.reason != nil || !p.underQuota(e, sh) {
		return false
	}
	if memo.noRoom && !p.nodes.gained(sh, memo.mark) {
		memo.mark = p.nodes.mark()
		return true
	}
	for i := range sh.needs {
		n := &sh.needs[i]
		if !look.can(i) {
			continue
		}
		options := p.optionsFor(e, n)
		if options.Avoid != nil {
			options.Avoid = p.nominated
		}
		if p.quotaFault(e, n) != faultNone || p.nodes.floor.Fits(&n.Need, sh.min, options) >= sh.min {
			return false
		}
	}
	memo.noRoom, memo.mark = true, p.nodes.mark()
	return true
}

// fillsFirst orders entries of one group that fill in, as shorter does: they are
// of one tier, and all of them moved or none.
func (p *pass) fillsFirst(x, y int32) bool {
	a, b := &p.queue.entries[x], &p.queue.entries[y]
	if a.span != b.span && !p.queue.groups[a.group].key.moved {
		return a.span < b.span
	}
	return comparePlace(a, b) < 0
}

// pop takes the first entry out of a heap of those that fill in.
func (p *pass) pop(heap []int32) []int32 {
	last := len(heap) - 1
	heap[0] = heap[last]
	sink(heap[:last], 0, p.fillsFirst)
	return heap[:last]
}

// shorter orders entries that fill in: tier, what an administrator moved, what
// is guaranteed before what is borrowed, and then the shortest.
func (p *pass) shorter(x *entry, xRank rank, y *entry, yRank rank) int {
	if c := cmp.Compare(y.job.Priority.Rank(), x.job.Priority.Rank()); c != 0 {
		return c
	}
	switch {
	case x.subjob.Moved != y.subjob.Moved:
		return first(x.subjob.Moved)
	case x.subjob.Moved:
		return comparePlace(x, y)
	case xRank.borrows != yRank.borrows:
		return first(yRank.borrows)
	case x.span != y.span:
		return cmp.Compare(x.span, y.span)
	}
	return comparePlace(x, y)
}
