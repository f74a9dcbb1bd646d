package loop

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Limits and rhythms of the loop.
const (
	inputsMax   = 256 // functions that wait for the loop
	batchMax    = 512 // inputs taken before their effects are executed
	oftenEvery  = 250 * time.Millisecond
	SeldomEvery = time.Minute
)

// Inbox is the way into the loop, for any goroutine.
type Inbox struct {
	inputs  chan func(*Loop)
	stopped chan struct{}

	mu struct {
		sync.Mutex
		inventory []structs.InventoryItem
	}
}

// NewInbox makes the way into a loop that is not there yet.
func NewInbox() *Inbox {
	return &Inbox{inputs: make(chan func(*Loop), inputsMax), stopped: make(chan struct{})}
}

// Post hands the loop something to do; it is dropped once the loop has
// stopped and nobody will drain it.
func (b *Inbox) Post(f func(*Loop)) {
	select {
	case b.inputs <- f:
	case <-b.stopped:
		// The loop is gone. Finish drains what fits into the channel.
		select {
		case b.inputs <- f:
		default:
		}
	}
}

// Event hands the table an answer of the node's own work.
func (b *Inbox) Event(id string, e alloc.Event) {
	b.Post(func(l *Loop) { l.Step(id, e) })
}

// Ask runs f in the loop and waits for it, for readers of what the loop owns.
func (b *Inbox) Ask(ctx context.Context, f func(*Loop)) error {
	done := make(chan struct{})
	select {
	case b.inputs <- func(l *Loop) { f(l); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return errStopped()
	}
	return b.Await(ctx, done)
}

// Await waits until a channel that the loop closes is closed.
func (b *Inbox) Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-b.stopped:
		return errStopped()
	}
}

func errStopped() error {
	return structs.NewError(structs.CodeUnavailable, "client.stopping")
}

// Inventory returns what may have processes here, as the loop last published it.
func (b *Inbox) Inventory() []structs.InventoryItem {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.mu.inventory)
}

// Events takes what becomes of an allocation.
type Events interface {
	Event(id string, e alloc.Event)
}

// Effects does what the loop decides. Its methods are called by the loop, and
// must not block.
type Effects interface {
	// Execute executes one effect. work is the context of what it begins.
	Execute(work context.Context, l *Loop, e alloc.Effect)
	// Inventory lists what may have processes here and is not in the table.
	Inventory(l *Loop) []structs.InventoryItem
	// Often is called several times a second, Seldom every SeldomEvery.
	Often(l *Loop)
	Seldom(work context.Context, l *Loop)
}

// Config is what a loop needs. All fields are required.
type Config struct {
	NodeID  string
	Inbox   *Inbox
	Store   *store.Store
	Effects Effects
	Now     func() structs.UnixNano
	// Evicted tells the servers that the node has to leave an allocation.
	Evicted func(s *alloc.State, cause *structs.Reason)
	Log     *slog.Logger
}

// Loop owns the tables of a node. Whoever has a *Loop runs in its goroutine, or
// before it: nobody may keep one.
type Loop struct {
	config   Config
	table    *alloc.Table
	effects  []alloc.Effect
	unsaved  map[string]bool // allocations whose last state is not in the store
	tasks    map[string]*Task
	waiters  map[string][]chan struct{} // closed when the allocation runs and is known whose it is, or ends
	cleaning map[string]<-chan struct{} // closed when what an ended allocation held is free
}

// New makes a loop with an empty table.
func New(config Config) *Loop {
	return &Loop{
		config: config, table: alloc.NewTable(config.NodeID), unsaved: make(map[string]bool), tasks: make(map[string]*Task),
		waiters: make(map[string][]chan struct{}), cleaning: make(map[string]<-chan struct{}),
	}
}

// Run executes inputs and ticks until ctx is cancelled. It is called once;
// Finish follows it.
func (l *Loop) Run(ctx, work context.Context) {
	defer close(l.config.Inbox.stopped)
	often := time.NewTicker(oftenEvery)
	defer often.Stop()
	seldom := time.NewTicker(SeldomEvery)
	defer seldom.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case input := <-l.config.Inbox.inputs:
			input(l)
			// What waits already is taken as well, so that one store transaction serves
			// all of it.
			for more := min(len(l.config.Inbox.inputs), batchMax); more > 0; more-- {
				(<-l.config.Inbox.inputs)(l)
			}
		case <-often.C:
			l.config.Effects.Often(l)
		case <-seldom.C:
			l.config.Effects.Seldom(work, l)
		}
		l.Execute(work)
	}
}

// Finish runs the inputs that came too late for the loop, and stores the states:
// what tasks told while the agent stopped is not lost. It is called after Run and
// after everything that the loop has begun.
func (l *Loop) Finish() {
	for len(l.config.Inbox.inputs) > 0 {
		(<-l.config.Inbox.inputs)(l)
	}
	l.save()
}

// Execute does what the table asked for: the states go to the store first, in one
// transaction, then every effect in its order.
func (l *Loop) Execute(work context.Context) {
	if len(l.effects) == 0 && len(l.unsaved) == 0 {
		return
	}
	effects := l.effects
	l.save()
	l.effects = nil
	l.Publish()
	for _, e := range effects {
		if _, saved := e.(alloc.Persist); !saved {
			l.config.Effects.Execute(work, l, e)
		}
	}
	l.Wake()
}

// save writes the states that the store does not have. What cannot be
// written now is tried again with the next effects: the drivers' own records
// and the allocation's directory stand in for it meanwhile.
func (l *Loop) save() {
	for _, e := range l.effects {
		if p, ok := e.(alloc.Persist); ok {
			l.unsaved[p.AllocID] = true
		}
	}
	if len(l.unsaved) == 0 {
		return
	}
	var changes []store.Change
	for _, id := range slices.Sorted(maps.Keys(l.unsaved)) {
		change := store.Change{AllocID: id}
		if s, ok := l.table.State(id); ok {
			change.State = &s
		}
		changes = append(changes, change)
	}
	if err := l.config.Store.Apply(changes); err != nil {
		l.config.Log.Error("states are not stored", logkey.Count, len(changes), logkey.Error, err)
		return
	}
	clear(l.unsaved)
}

// Publish keeps what the next Hello will say.
func (l *Loop) Publish() {
	items := append(l.table.Inventory(), l.config.Effects.Inventory(l)...)
	l.config.Inbox.mu.Lock()
	defer l.config.Inbox.mu.Unlock()
	l.config.Inbox.mu.inventory = items
}

func (l *Loop) add(effects []alloc.Effect) { l.effects = append(l.effects, effects...) }

// Step hands the table an event of an allocation.
func (l *Loop) Step(id string, e alloc.Event) { l.add(l.table.Step(id, e, l.config.Now())) }

// Assign hands the table what the servers assign.
func (l *Loop) Assign(a *structs.Assignments) { l.add(l.table.Assign(a, l.config.Now())) }

// EndLease ends the strict allocations.
func (l *Loop) EndLease() { l.add(l.table.EndLease(l.config.Now())) }

// Resume hands the table what an earlier agent has stored.
func (l *Loop) Resume(states []alloc.State) { l.add(l.table.Resume(states, l.config.Now())) }

// Adopt hands the table a task of which only its driver knew.
func (l *Loop) Adopt(a *structs.Assignment, handle driver.Handle) {
	l.add(l.table.Adopt(a, handle, l.config.Now()))
}

// Evict takes an allocation away from this node, by the node's own fault. The
// servers are told first, once: they tell every rank of its gang to save its work.
func (l *Loop) Evict(id string, cause *structs.Reason, stop *structs.StopOrder) {
	s, ok := l.table.State(id)
	if !ok {
		return
	}
	if s.Force == alloc.ForceNone && s.Phase != alloc.PhaseEnded {
		l.config.Evicted(&s, cause)
	}
	l.Step(id, alloc.Evicted{Cause: cause, Stop: stop})
}

// EvictionOrder tells a job that keeps checkpoints to save one first, as the
// servers do when they take nodes away from it.
func EvictionOrder(job *structs.Job) *structs.StopOrder {
	if job == nil || job.Checkpoint == nil {
		return nil
	}
	return &structs.StopOrder{
		Signal: cmp.Or(job.Checkpoint.Signal, structs.DefaultCheckpointSignal),
		Grace:  cmp.Or(job.Checkpoint.Grace, structs.DefaultCheckpointGrace),
	}
}

// Forget drops the state of an ended allocation from the table and from the store.
func (l *Loop) Forget(id string) {
	if l.table.Forget(id) {
		l.unsaved[id] = true
	}
}

// State returns what is known of an allocation.
func (l *Loop) State(id string) (alloc.State, bool) { return l.table.State(id) }

// States returns all that is known, by allocation.
func (l *Loop) States() []alloc.State { return l.table.States() }

// Assignment returns the servers' newest word on an allocation, nil without one.
func (l *Loop) Assignment(id string) *structs.Assignment { return l.table.Assignment(id) }

// MayRun returns the allocations that may have processes.
func (l *Loop) MayRun() []structs.InventoryItem { return l.table.Inventory() }

// HasStrict reports whether an allocation ends with the node's lease.
func (l *Loop) HasStrict() bool { return l.table.HasStrict() }

// Task returns the allocation at work here with the id, and begins one that is not.
func (l *Loop) Task(id string) *Task {
	t, ok := l.tasks[id]
	if !ok {
		t = &Task{ID: id, Ended: make(chan struct{}), Cleaned: make(chan struct{})}
		l.tasks[id] = t
	}
	return t
}

// End closes Ended of an allocation and forgets it. Its cleaning follows, until
// Free.
func (l *Loop) End(t *Task) {
	close(t.Ended)
	delete(l.tasks, t.ID)
	l.cleaning[t.ID] = t.Cleaned
}

// Free says that nothing is held any more by an allocation that has ended.
func (l *Loop) Free(id string) { delete(l.cleaning, id) }

// Cleaned returns a channel that is closed when an allocation that ends has set
// free what it held; nil: it has, or never held anything.
func (l *Loop) Cleaned(id string) <-chan struct{} {
	if t, ok := l.tasks[id]; ok {
		return t.Cleaned
	}
	return l.cleaning[id]
}

// Wait returns a channel that is closed when the allocation runs and is known
// whose it is, or ends.
func (l *Loop) Wait(id string) <-chan struct{} {
	changed := make(chan struct{})
	l.waiters[id] = append(l.waiters[id], changed)
	return changed
}

// Waiting returns how many wait for an allocation.
func (l *Loop) Waiting(id string) int { return len(l.waiters[id]) }

// Wake lets those go on that wait for an allocation to run, and to be known to
// whom it belongs.
func (l *Loop) Wake() {
	for id, waiters := range l.waiters {
		state, ok := l.table.State(id)
		if ok && state.Phase != alloc.PhaseEnded && (state.Phase != alloc.PhaseRunning || l.table.Assignment(id) == nil) {
			continue
		}
		for _, changed := range waiters {
			close(changed)
		}
		delete(l.waiters, id)
	}
}

// Task is an allocation at work here, as all rooms know it. Attempt, Driver and
// Devices are set by the loop, before the goroutines begin that read them.
type Task struct {
	ID       string
	Attempt  uint64
	Driver   string                             // "": not known
	Devices  []string                           // ids of those that it holds
	Assigned atomic.Pointer[structs.Assignment] // the servers' newest word
	Ended    chan struct{}                      // closed when the allocation has ended
	Cleaned  chan struct{}                      // closed when what it held is free
}

// While returns a context that ends with the allocation, in a goroutine of group.
// The caller cancels it.
func (t *Task) While(work context.Context, group *sync.WaitGroup) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(work)
	group.Go(func() {
		defer cancel()
		select {
		case <-t.Ended:
		case <-ctx.Done():
		}
	})
	return ctx, cancel
}
