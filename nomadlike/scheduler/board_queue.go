package scheduler

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// queue is the part of a board that knows every live subjob: those that wait, in
// their order, and those that run.
//
//	found ──► entries ◄── partitions ──► groups of entries that are alike
//	             ▲
//	            runs, idle
type queue struct {
	entries   []entry
	freeEntry []int32
	found     table
	runs      []run
	idle      []int32 // delayed entries

	partitions      []partitionQueue
	partitionByPool map[string]int32
	common          int32 // the partition queue of structs.PoolDefault
	groups          []group
	freeGroup       []int32
	groupByKey      map[groupKey]int32

	shapes shapes
	memos  []memo // by shape
}

// memo is what was found out for all gangs of a shape.
type memo struct {
	noRoom bool // no room at all, as of mark
	mark   int
	judged uint64 // value of Board.built at which outlook was found out, 0: never
	outlook
}

func newQueue() queue {
	q := queue{
		found: newTable(), partitionByPool: make(map[string]int32), groupByKey: make(map[groupKey]int32),
		shapes: shapes{byKey: make(map[string]*shape)},
	}
	q.common = q.partitionOf(structs.PoolDefault).id
	return q
}

// clone copies what changes; shapes are shared until one side meets a new one.
func (q *queue) clone() queue {
	q.shapes.shared = true
	c := *q
	c.entries, c.freeEntry = slices.Clone(q.entries), slices.Clone(q.freeEntry)
	c.found.slots = slices.Clone(q.found.slots)
	c.runs, c.idle = slices.Clone(q.runs), slices.Clone(q.idle)
	c.memos = slices.Clone(q.memos)
	c.partitions, c.partitionByPool = slices.Clone(q.partitions), maps.Clone(q.partitionByPool)
	for i := range c.partitions {
		c.partitions[i].groups = slices.Clone(c.partitions[i].groups)
	}
	c.groups, c.groupByKey = cloneGroups(q.groups), maps.Clone(q.groupByKey)
	c.freeGroup = slices.Clone(q.freeGroup)
	return c
}

// cloneGroups copies groups and their queues into one piece of memory.
func cloneGroups(groups []group) []group {
	total := 0
	for i := range groups {
		total += len(groups[i].queue) + len(groups[i].odd)
	}
	arena := make([]int32, 0, total)
	part := func(list []int32) []int32 {
		from := len(arena)
		arena = append(arena, list...)
		return slices.Clip(arena[from:])
	}
	copied := slices.Clone(groups)
	for i := range copied {
		copied[i].queue, copied[i].odd = part(copied[i].queue), part(copied[i].odd)
	}
	return copied
}
