package scheduler

import (
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Board is all that the scheduler knows, in four parts that do not know each
// other: the queue with the running gangs, the nodes with what stands on them,
// what is nominated and reserved for gangs that wait, and the accounts of projects. It is brought
// up to date with Sync, or driven by hand through virtual time by forecasts and
// simulations:
//
//	live:     Sync(snapshot) → Pass → propose the plan → Sync(newer) → …
//	virtual:  Clone → Submit, End, PutNode … → Pass → Submit, End … → Pass → …
//
// Pass puts what it places on the board, so that the next pass sees it; Sync
// drops whatever the newest state does not confirm. A board belongs to one
// goroutine at a time; clones are independent of each other.
type Board struct {
	settings Settings
	index    uint64
	now      structs.UnixNano // of the newest pass
	serial   uint64           // of the newest pass
	changes  uint64           // rises with every change of nodes, gangs and quotas
	modelled uint32           // version of the run time estimates

	unsettled bool // by the newest pass, see Unsettled

	queue    queue
	nodes    nodes
	promises promises
	accounts accounts

	journal []journalItem
	changed map[int32]bool // entries in the journal
}

// journalItem is an entry as it was before a pass changed it.
type journalItem struct {
	id     int32
	before entry
}

// NewBoard returns an empty board.
func NewBoard(settings Settings) *Board {
	b := &Board{
		settings: settings, changes: 1, modelled: 1, queue: newQueue(), nodes: newNodes(), accounts: newAccounts(),
		changed: make(map[int32]bool),
	}
	return b
}

// Settings returns the board's rules.
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
	b.nodes.forgetGains()
}

// Index is the index of the state that the board was brought to.
func (b *Board) Index() uint64 { return b.index }

// Clone returns an independent copy. It costs a few moves of memory: what never
// changes is shared.
func (b *Board) Clone() *Board {
	c := *b
	c.queue, c.nodes, c.accounts = b.queue.clone(), b.nodes.clone(), b.accounts.clone()
	c.promises = b.promises.clone(b.serial)
	c.journal, c.changed = slices.Clone(b.journal), maps.Clone(b.changed)
	return &c
}

// Node implements feasible.View.
func (b *Board) Node(id string) (*structs.Node, *structs.Usage) { return b.nodes.floor.Node(id) }

// Pool implements feasible.View.
func (b *Board) Pool(name string) *structs.Pool { return b.nodes.floor.Pool(name) }

// Project implements feasible.View.
func (b *Board) Project(name string) *structs.Project {
	if id, ok := b.accounts.projectByName[name]; ok {
		return b.accounts.projects[id].record
	}
	return nil
}

// ProjectUsage implements feasible.View.
func (b *Board) ProjectUsage(name string) *structs.ProjectUsage {
	if id, ok := b.accounts.projectByName[name]; ok {
		return b.accounts.projects[id].usage
	}
	return nil
}
