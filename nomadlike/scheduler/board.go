package scheduler

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/placement"
	"nomadlike/nomadlike/structs"
)

// Board is all that the scheduler knows: nodes with what they hold, the queue,
// the running gangs, pools and projects. It is brought up to date with Sync, or
// driven by hand through virtual time by forecasts and simulations:
//
//	live:     Sync(snapshot) → Pass → propose the plan → Sync(newer) → …
//	virtual:  Clone → Submit, End, PutNode … → Pass → Submit, End … → Pass → …
//
// Pass holds what it places on the board, so that the next pass sees it; Sync
// drops whatever the newest state does not confirm. A board belongs to one
// goroutine at a time; clones are independent of each other.
type Board struct {
	settings Settings
	index    uint64
	now      structs.UnixNano // of the newest pass

	floor    *placement.Floor
	spots    []spot // by floor index
	stays    []stay
	freeStay int32 // first free record, -1: none
	builds   builds
	built    uint64 // rises when what nodes could hold when empty changes
	listed   bool   // the lists of spots are up to date
	every    []int32
	byName   map[string][]int32

	ableCells []int8 // by alternative and build: 0 not asked yet, 1 able, 2 not
	ableWidth int

	gains       []int32 // spots that came to have more room, in order
	gainsFrom   int     // gains that were forgotten
	touches     []int32 // spots that changed, in order
	touchesFrom int     // touches that were forgotten
	changes     uint64  // rises with every change of nodes, gangs and quotas

	entries   []entry
	freeEntry []int32
	found     table
	runs      []run
	idle      []int32 // delayed entries
	claims    []int32 // claimed entries, and running ones that change their size

	shapes     shapes
	memos      []memo // by shape
	lanes      []lane
	laneByPool map[string]int32
	common     int32 // the lane of structs.PoolDefault
	groups     []group
	freeGroup  []int32
	groupByKey map[groupKey]int32

	projects      []project
	projectByName map[string]int32

	spending []spent // since the newest pass

	kept      []*reservation // nil: free
	keptCount int
	// boundCount of them go by time limits alone.
	boundCount int
	picks      []pick // scratch
	profiles   []*profile
	serial     uint64 // of the newest pass

	modelled uint32 // version of the run time estimates
	journal  []journalItem
	changed  map[int32]bool // entries in the journal
}

// memo is what was found out for all gangs of a shape.
type memo struct {
	noRoom bool // no room at all, as of mark
	mark   int
	judged uint64 // value of Board.built at which outlook was found out, 0: never
	outlook
}

// journalItem is an entry as it was before a pass changed it.
type journalItem struct {
	id     int32
	before entry
}

// NewBoard gives an empty board.
func NewBoard(settings Settings) *Board {
	b := &Board{
		settings: settings, floor: placement.NewFloor(), freeStay: -1, built: 1, changes: 1, modelled: 1,
		builds: builds{byKey: make(map[string]int32)},
		shapes: shapes{byKey: make(map[string]*shape)},
		found:  newTable(), laneByPool: make(map[string]int32), groupByKey: make(map[groupKey]int32),
		projectByName: make(map[string]int32), changed: make(map[int32]bool),
	}
	b.common = b.laneOf(structs.PoolDefault).id
	return b
}

// Settings gives the board's rules.
func (b *Board) Settings() Settings { return b.settings }

// SetSettings changes the board's rules for later passes, for instance Quiet,
// or Alone on a clone.
func (b *Board) SetSettings(settings Settings) {
	old := b.settings
	b.settings = settings
	if old.sameRules(&settings) {
		return
	}
	b.remodel()
	b.forgetGains()
}

// Index is the index of the state that the board was brought to.
func (b *Board) Index() uint64 { return b.index }

// Clone gives an independent copy. It costs a few moves of memory: what never
// changes is shared.
func (b *Board) Clone() *Board {
	c := *b
	c.floor = b.floor.Clone()
	c.spots, c.stays = slices.Clone(b.spots), slices.Clone(b.stays)
	b.builds.shared, c.builds.shared = true, true
	b.shapes.shared, c.shapes.shared = true, true
	c.ableCells = slices.Clone(b.ableCells)
	c.gains, c.touches = slices.Clip(b.gains), slices.Clip(b.touches)
	c.entries, c.freeEntry = slices.Clone(b.entries), slices.Clone(b.freeEntry)
	c.found.slots = slices.Clone(b.found.slots)
	c.runs, c.idle, c.claims = slices.Clone(b.runs), slices.Clone(b.idle), slices.Clone(b.claims)
	c.memos = slices.Clone(b.memos)
	c.lanes, c.laneByPool = slices.Clone(b.lanes), maps.Clone(b.laneByPool)
	for i := range c.lanes {
		c.lanes[i].groups = slices.Clone(c.lanes[i].groups)
	}
	c.groups, c.groupByKey = cloneGroups(b.groups), maps.Clone(b.groupByKey)
	c.freeGroup = slices.Clone(b.freeGroup)
	c.projects, c.projectByName = slices.Clone(b.projects), maps.Clone(b.projectByName)
	c.spending = slices.Clone(b.spending)
	c.kept, c.picks = slices.Clone(b.kept), nil
	c.profiles = b.cloneProfiles()
	c.journal, c.changed = slices.Clone(b.journal), maps.Clone(b.changed)
	return &c
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

// Node implements structs.Ground.
func (b *Board) Node(id string) (*structs.Node, *structs.Usage) { return b.floor.Node(id) }

// Pool implements structs.Ground.
func (b *Board) Pool(name string) *structs.Pool { return b.floor.Pool(name) }

// Project implements structs.Ground.
func (b *Board) Project(name string) *structs.Project {
	if id, ok := b.projectByName[name]; ok {
		return b.projects[id].record
	}
	return nil
}

// ProjectUsage implements structs.Ground.
func (b *Board) ProjectUsage(name string) *structs.ProjectUsage {
	if id, ok := b.projectByName[name]; ok {
		return b.projects[id].usage
	}
	return nil
}
