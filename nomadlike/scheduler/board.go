package scheduler

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// subjobID names a subjob.
type subjobID struct {
	job   string
	index int
}

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
	nodes    map[string]boardNode
	queued   map[subjobID]entry
	running  map[subjobID]*running
	pools    map[string]*structs.Pool
	projects map[string]ProjectChange
}

type boardNode struct {
	node  *structs.Node
	usage *structs.Usage
}

type running struct {
	Running
	held []structs.RankPlacement
}

// Running is a gang that holds nodes.
type Running struct {
	Job      *structs.Job
	Subjob   int
	Attempt  uint64
	Spec     int              // index into Job.Resources
	Nodes    []string         // ids by rank
	PlacedAt structs.UnixNano // when it got its nodes
}

// Queued is a subjob that waits, at its place.
type Queued struct {
	Job      *structs.Job
	Subjob   *structs.Subjob
	Position int // in the queue of its pool, from 1
}

// Reservation is the start that a blocked gang keeps.
type Reservation struct {
	JobID  string
	Subjob int
	At     structs.UnixNano // estimated; 0: not known
	Nodes  []string         // ids
}

// NewBoard gives an empty board.
func NewBoard(settings Settings) *Board {
	return &Board{
		settings: settings, nodes: map[string]boardNode{}, queued: map[subjobID]entry{}, running: map[subjobID]*running{},
		pools: map[string]*structs.Pool{}, projects: map[string]ProjectChange{},
	}
}

// Sync brings the board to the newest state, reading only what changed since
// the last call. Placements of earlier passes that the state does not have are
// dropped.
func (b *Board) Sync(snapshot Snapshot) {
	changes := snapshot.Changes(b.index)
	if changes.Full {
		*b = *NewBoard(b.settings)
	}
	b.index = snapshot.Index()
	for _, c := range changes.Nodes {
		b.PutNode(c.ID, c.Node, c.Usage)
	}
	for _, c := range changes.Subjobs {
		id := subjobID{c.JobID, c.Index}
		delete(b.queued, id)
		delete(b.running, id)
		switch {
		case c.Subjob == nil:
		case c.Subjob.State == structs.JobQueued:
			b.queued[id] = entry{c.Job, c.Subjob}
		case c.Attempt != nil:
			r := &running{Running: Running{Job: c.Job, Subjob: c.Index, Attempt: c.Attempt.Number, Spec: c.Attempt.Spec, PlacedAt: c.Attempt.PlacedAt}}
			for _, a := range c.Allocs {
				r.Nodes = append(r.Nodes, a.NodeID)
				r.held = append(r.held, structs.RankPlacement{NodeID: a.NodeID, Ports: a.Ports, Devices: a.Devices})
			}
			b.running[id] = r
		}
	}
	for _, c := range changes.Pools {
		b.PutPool(c.Name, c.Pool)
	}
	for _, c := range changes.Projects {
		b.projects[c.Name] = c
	}
}

// Clone gives an independent copy. It is cheap: what never changes is shared.
func (b *Board) Clone() *Board {
	c := *b
	c.nodes, c.queued, c.running = maps.Clone(b.nodes), maps.Clone(b.queued), maps.Clone(b.running)
	c.pools, c.projects = maps.Clone(b.pools), maps.Clone(b.projects)
	return &c
}

// Settings gives the board's rules.
func (b *Board) Settings() Settings { return b.settings }

// SetSettings changes the board's rules for later passes, for instance Quiet,
// or Alone on a clone.
func (b *Board) SetSettings(settings Settings) { b.settings = settings }

// Index is the index of the state that the board was brought to.
func (b *Board) Index() uint64 { return b.index }

// Pass decides which queued gangs start at now, holds what it places on the
// board, and explains the rest.
func (b *Board) Pass(now structs.UnixNano, seed uint64) structs.Plan {
	plan := Schedule(Input{Snapshot: b, Reservations: b.settings.Reservations, Quiet: b.settings.Quiet}, now, seed)
	for i := range plan.Gangs {
		b.hold(&plan.Gangs[i], now)
	}
	for _, update := range plan.Waits {
		e := b.queued[subjobID{update.JobID, update.Subjob}]
		subjob := *e.subjob
		subjob.Wait = update.Wait
		b.queued[subjobID{update.JobID, update.Subjob}] = entry{e.job, &subjob}
	}
	return plan
}

// hold moves a placed gang from the queue to its nodes.
func (b *Board) hold(gang *structs.GangPlan, now structs.UnixNano) {
	id := subjobID{gang.JobID, gang.Subjob}
	e := b.queued[id]
	delete(b.queued, id)
	r := &running{Running: Running{Job: e.job, Subjob: gang.Subjob, Attempt: gang.Attempt, Spec: gang.Spec, PlacedAt: now}, held: gang.Placements}
	n := needOf(e.job, gang.Spec)
	for i := range gang.Placements {
		r.Nodes = append(r.Nodes, gang.Placements[i].NodeID)
		at := b.nodes[gang.Placements[i].NodeID]
		s := newSeat(at.node, at.usage)
		s.hold(&n, &gang.Placements[i], gang.JobID)
		b.nodes[gang.Placements[i].NodeID] = boardNode{at.node, s.usage}
	}
	b.running[id] = r
}

// Submit puts a subjob into the queue.
func (b *Board) Submit(job *structs.Job, subjob *structs.Subjob) {
	b.queued[subjobID{subjob.JobID, subjob.Index}] = entry{job, subjob}
}

// Withdraw takes a subjob out of the queue; false: it was not in it.
func (b *Board) Withdraw(jobID string, subjob int) bool {
	_, ok := b.queued[subjobID{jobID, subjob}]
	delete(b.queued, subjobID{jobID, subjob})
	return ok
}

// End frees what a running subjob holds; false: it does not run.
func (b *Board) End(jobID string, subjob int) bool {
	r, ok := b.running[subjobID{jobID, subjob}]
	if !ok {
		return false
	}
	delete(b.running, subjobID{jobID, subjob})
	n := needOf(r.Job, r.Spec)
	for _, p := range r.held {
		at := b.nodes[p.NodeID]
		if at.usage == nil {
			continue
		}
		u := *at.usage
		u.CPU -= float64(n.cpu) / 1000
		u.Memory -= n.memory
		u.Allocs--
		u.Ports, u.Devices = maps.Clone(u.Ports), maps.Clone(u.Devices)
		for _, port := range p.Ports {
			delete(u.Ports, port)
		}
		for _, device := range p.Devices {
			delete(u.Devices, device)
		}
		b.nodes[p.NodeID] = boardNode{at.node, &u}
	}
	return true
}

// PutNode makes or changes a node and what it holds; a nil node removes it.
func (b *Board) PutNode(id string, node *structs.Node, usage *structs.Usage) {
	if node == nil {
		delete(b.nodes, id)
		return
	}
	b.nodes[id] = boardNode{node, usage}
}

// PutPool makes or changes the record of a pool; nil removes it.
func (b *Board) PutPool(name string, pool *structs.Pool) { b.pools[name] = pool }

// PutProject makes or changes the record of a project; nil removes it.
func (b *Board) PutProject(name string, project *structs.Project) {
	p := b.projects[name]
	p.Name, p.Project = name, project
	b.projects[name] = p
}

// SetPriority changes the tier of a queued job; false: it does not wait.
func (b *Board) SetPriority(jobID string, priority structs.Priority) bool {
	found := false
	for id, e := range b.queued {
		if id.job == jobID {
			job := *e.job
			job.Priority = priority
			b.queued[id], found = entry{&job, e.subjob}, true
		}
	}
	return found
}

// Running yields the gangs that hold nodes, by job id and subjob.
func (b *Board) Running() iter.Seq[Running] {
	return func(yield func(Running) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(b.running), compareID) {
			if !yield(b.running[id].Running) {
				return
			}
		}
	}
}

func compareID(x, y subjobID) int {
	return cmp.Or(cmp.Compare(x.job, y.job), cmp.Compare(x.index, y.index))
}

// Queued yields what waits, in the order of the queue.
func (b *Board) Queued() iter.Seq[Queued] {
	return func(yield func(Queued) bool) {
		for i, e := range queueOf(b) {
			if !yield(Queued{Job: e.job, Subjob: e.subjob, Position: i + 1}) {
				return
			}
		}
	}
}

// Explain tells why a subjob waited in the newest pass that explained; nil when
// it does not wait or was not explained yet.
func (b *Board) Explain(jobID string, subjob int) *structs.WaitReason {
	if e, ok := b.queued[subjobID{jobID, subjob}]; ok {
		return e.subjob.Wait
	}
	return nil
}

// Reservations lists the starts that the newest pass reserved.
func (b *Board) Reservations() []Reservation { return nil }

// Queue implements Still.
func (b *Board) Queue() iter.Seq2[*structs.Job, *structs.Subjob] {
	return func(yield func(*structs.Job, *structs.Subjob) bool) {
		for _, id := range slices.SortedFunc(maps.Keys(b.queued), compareID) {
			if e := b.queued[id]; !yield(e.job, e.subjob) {
				return
			}
		}
	}
}

// Nodes implements Still.
func (b *Board) Nodes() iter.Seq2[*structs.Node, *structs.Usage] {
	return func(yield func(*structs.Node, *structs.Usage) bool) {
		for _, id := range slices.Sorted(maps.Keys(b.nodes)) {
			if n := b.nodes[id]; !yield(n.node, n.usage) {
				return
			}
		}
	}
}

// Holders implements Still.
func (b *Board) Holders(nodeID string) iter.Seq[*structs.Allocation] {
	return func(yield func(*structs.Allocation) bool) {
		for _, r := range b.running {
			if slices.Contains(r.Nodes, nodeID) && !yield(&structs.Allocation{JobID: r.Job.ID, NodeID: nodeID}) {
				return
			}
		}
	}
}
