package scheduler

import (
	"slices"

	"nomadlike/nomadlike/placement"
)

// nodes is the part of a board that knows the nodes: what is free on them, which
// seats of gangs are on each, and what could stand there.
type nodes struct {
	floor        *placement.Floor
	states       []nodeState // by floor index
	occupants    []occupant
	freeOccupant int32 // first free record, -1: none
	builds       builds
	windows      int                // nodes with windows of maintenance
	built        uint64             // rises when what nodes could run when empty changes
	listed       bool               // the lists of nodes are up to date
	every        []int32            // all, by id
	byPartition  [][]int32          // and of each partition queue's pool; the lists are replaced, never changed
	byName       map[string][]int32 // and by name or id, when somebody asked

	ableCells []int8 // by alternative and build: 0 not asked yet, 1 able, 2 not
	ableWidth int

	gains       []int32 // nodes that came to have more room, in order
	gainsFrom   int     // gains that were forgotten
	touches     []int32 // nodes that changed, in order
	touchesFrom int     // touches that were forgotten
}

func newNodes() nodes {
	return nodes{floor: placement.NewFloor(), freeOccupant: -1, built: 1, builds: builds{byKey: make(map[string]int32)}}
}

// clone copies what changes; builds are shared until one side meets a new one.
func (n *nodes) clone() nodes {
	n.builds.shared = true
	c := *n
	c.floor = n.floor.Clone()
	c.states, c.occupants = slices.Clone(n.states), slices.Clone(n.occupants)
	c.ableCells = slices.Clone(n.ableCells)
	c.gains, c.touches = slices.Clip(n.gains), slices.Clip(n.touches)
	return c
}
