package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/diary"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/firewall"
	"nomadlike/nomadlike/client/metrics"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/driver"
)

// Limits and rhythms of the loop.
const (
	inputsMax       = 256 // functions that wait for the loop
	batchMax        = 512 // inputs taken before their effects are carried out
	startsMax       = 16  // tasks being started at one time
	leaseTick       = 250 * time.Millisecond
	storeSyncEvery  = 5 * time.Second
	sweepEvery      = time.Minute
	driverFirstWord = 2 * time.Second // patience with a driver's first fingerprint
)

// Client is one node. New reads what it remembers, Run lives.
type Client struct {
	config   Config
	identity store.Identity
	log      *slog.Logger
	files    layout
	store    *store.Store
	data     *data.Store
	rooms    rooms
	looks    chan struct{} // one for each look for data under way
	session  *session.Session
	listener *listener
	drivers  *driverHealth
	devices  *deviceWatch
	ids      *ids
	gauge    *gauge
	stuck    *stuckList
	end      context.CancelCauseFunc // of Run; set before anything runs
	diary    *diary.Book
	disks    diskWatch
	starts   startWatch
	shm      shmWatch
	firewall *firewall.Firewall // nil: the node has none
	quotas   Quotas             // nil: its file system keeps none

	inputs  chan func() // run by the loop
	stopped chan struct{}
	work    sync.WaitGroup // goroutines of effects
	turns   chan struct{}  // one token for each task being started

	// loop is touched by the loop's goroutine alone, and by Run before it.
	loop struct {
		table     *alloc.Table
		effects   []alloc.Effect
		runners   map[string]*runner
		unsaved   map[string]bool // allocations whose last state is not in the store
		strays    map[driver.TaskID]stray
		leaseFrom time.Duration              // as last written
		leaseOver bool                       // strict allocations were told
		waiters   map[string][]chan struct{} // closed when the allocation runs and is known whose it is, or ends
		healing   map[string]time.Time       // by device: not reset again before
		sweeping  bool
		sizes     map[string]int64         // bytes of the directories of ended allocations
		recovered []alloc.State            // read by New, consumed by Run
		holds     map[string]*hold         // debug holds, by allocation
		cleaning  map[string]chan struct{} // closed when what an ended allocation held is free
	}

	mu struct {
		sync.Mutex
		node      structs.Node // fingerprint
		inventory []structs.InventoryItem
		connected bool
		refusal   *structs.Error                 // why servers do not let the node in; nil: they do, or none said
		removed   bool                           // a server said that the node was removed
		note      uint64                         // number of the last note
		meters    map[string]*metrics.Collector  // of allocations that run
		records   map[string]*record             // of allocations that run
		hookTasks map[driver.TaskID]bool         // of hooks that this agent runs
		faults    map[string][]structs.NodeFault // of the machine, by who finds them
	}
	welcomed chan struct{} // closed when a server has welcomed the node once
	welcome  sync.Once
}

// New opens the node's data directory and looks at the machine. It starts
// nothing. Errors that a person can cure are *structs.Error. Run closes what
// New opened; a Client that is not run is closed with Close.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	machine := config.Machine
	if machine == nil {
		read, err := fingerprint.Read()
		if err != nil {
			return nil, err
		}
		machine = &read
	}
	node, err := fingerprint.Node(*machine, config.Wishes)
	if err != nil {
		return nil, err
	}
	c := &Client{
		config:   config,
		log:      config.Logger,
		files:    layout{config.DataDir},
		inputs:   make(chan func(), inputsMax),
		stopped:  make(chan struct{}),
		welcomed: make(chan struct{}),
		turns:    make(chan struct{}, startsMax),
	}
	if config.SharedDir != "" {
		if err := os.MkdirAll(config.SharedDir, 0o755); err != nil {
			c.log.Warn("shared directory cannot be made: MPI jobs do without", logkey.Path, config.SharedDir, logkey.Error, err)
			c.config.SharedDir = ""
		}
	}
	sameBoot, err := c.open()
	if err != nil {
		return nil, err
	}
	node.ID, node.Incarnation = c.identity.NodeID, c.identity.Incarnation
	node.Machine = machineMark(config.BootID)
	node.RPCAddr, node.Version, node.Devices = config.RPCAddr, config.Version, config.Devices
	node.Storages, node.Data = workspace.Offers(config.Storages), c.data.Names(structs.DataNamesMax)
	node.Status, node.Eligibility = structs.NodeReady, structs.NodeEligible
	c.mu.node = node
	c.log = c.log.With(logkey.NodeID, c.identity.NodeID)
	c.drivers = newDriverHealth(config.Drivers, c.log)
	isolated, err := openQuarantine(config.DataDir)
	if err != nil {
		c.log.Error("devices that operators took out of use may get work", logkey.Error, err)
	}
	if c.ids, err = openIDs(config.DataDir, config.UIDMin, config.UIDMax); err != nil {
		c.log.Error("projects may get other ids than before", logkey.Error, err)
	}
	c.devices = newDeviceWatch(config.DevicePlugins, config.Devices, isolated, c.log)
	c.gauge = newGauge()
	if c.stuck, err = openStuck(config.DataDir, config.BootID); err != nil {
		c.log.Error("processes that would not die may be left", logkey.Error, err)
	}
	if c.diary, err = diary.Open(filepath.Join(config.DataDir, diaryFile), config.Now()); err != nil {
		c.log.Warn("what devices measured before is lost", logkey.Error, err)
	}
	c.loop.healing = make(map[string]time.Time)
	c.loop.table = alloc.NewTable(c.identity.NodeID)
	c.loop.runners = make(map[string]*runner)
	c.loop.unsaved = make(map[string]bool)
	c.loop.waiters = make(map[string][]chan struct{})
	c.loop.sizes = make(map[string]int64)
	c.loop.holds = make(map[string]*hold)
	c.loop.cleaning = make(map[string]chan struct{})
	c.loop.strays = make(map[driver.TaskID]stray)
	c.listener = &listener{c: c}
	c.looks = make(chan struct{}, looksAtOnce)
	c.session = session.New(session.Config{
		NodeID: c.identity.NodeID, Servers: config.Servers, Open: config.OpenSession, Owner: c.listener,
		Boottime: config.Boottime, Chance: config.Chance, Logger: c.log, Refused: c.refused,
	})
	if sameBoot {
		c.restoreLease()
	}
	return c, nil
}

// open reads the identity and the store.
func (c *Client) open() (sameBoot bool, err error) {
	c.identity, sameBoot, err = store.OpenIdentity(c.config.DataDir, c.config.NodeID, c.config.BootID)
	if err != nil {
		return false, err
	}
	if err := c.identity.Unsaved; err != nil {
		c.log.Error("this start is not counted on the disk: the node goes on with what runs and takes no new work until there is room",
			logkey.Path, c.config.DataDir, logkey.Error, err)
	}
	if err := os.MkdirAll(c.files.allocs(), 0o711); err != nil {
		return false, fmt.Errorf("make data directory: %w", err)
	}
	if err := os.MkdirAll(c.files.records(), 0o700); err != nil {
		return false, fmt.Errorf("make data directory: %w", err)
	}
	c.config.Fast.Log, c.config.Fast.Broken = c.log, c.dataLost
	if c.data, err = data.Open(c.config.Fast); err != nil {
		return false, err
	}
	c.store, c.loop.recovered, err = store.Open(c.config.DataDir)
	if errors.Is(err, store.ErrDamaged) {
		// What runs is found by the drivers' own records and the
		// allocations' directories; only unheard reports are lost.
		aside, asideErr := store.SetAside(c.config.DataDir)
		if asideErr != nil {
			return false, errors.Join(err, asideErr)
		}
		c.log.Error("local store is damaged: it is set aside, tasks are found by their directories",
			logkey.Path, aside, logkey.Error, err)
		c.store, c.loop.recovered, err = store.Open(c.config.DataDir)
	}
	if err == nil && c.config.Fsync != nil {
		c.store.Through(c.config.Fsync)
	}
	return sameBoot, err
}

// NodeID is the id under which the node registers.
func (c *Client) NodeID() string { return c.identity.NodeID }

// Node gives what the node last registered, or will register. The value is
// the caller's.
func (c *Client) Node() structs.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	node := c.mu.node
	node.Attributes = maps.Clone(node.Attributes)
	node.Drivers = slices.Clone(node.Drivers)
	return node
}

// Connected reports whether a server has welcomed the node on a stream that
// is still open.
func (c *Client) Connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.connected
}

// Welcomed is closed when a server has welcomed the node for the first time.
func (c *Client) Welcomed() <-chan struct{} { return c.welcomed }

// Server is the address of the server that the node's stream leads to, ""
// without a stream.
func (c *Client) Server() string { return c.session.Server() }

// Close releases a Client that was never run.
func (c *Client) Close() error {
	c.data.Close()
	return c.store.Close()
}

// Run runs the node until ctx is cancelled. Then it tells the server that
// the agent stops, waits for everything it has started, and leaves the tasks
// running. It is called once; drivers are closed by their owner afterwards.
//
// Run ends by itself when the local store cannot be made durable (ErrStorage),
// and when the node was removed and nothing of it runs any more (ErrRemoved).
func (c *Client) Run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.end = end
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	c.listener.work = work
	var drivers sync.WaitGroup
	drivers.Go(func() { c.drivers.run(work, c.driversChanged) })
	drivers.Go(func() { c.devices.run(work, func() { c.devicesChanged(work) }) })
	if c.config.SysRoot != "" {
		links := linkWatch{addr: c.Node().Attributes[attrInterface]}
		c.lookAtLinks(&links)
		drivers.Go(func() { c.watchLinks(work, &links) })
	}
	c.openFirewall()
	c.openQuotas()
	c.lookAtStuck()
	drivers.Go(func() { c.watchStuck(work) })
	c.lookAtDisks()
	drivers.Go(func() { c.watchDisks(work) })
	drivers.Go(func() { c.keepDiary(work) })
	drivers.Go(func() { c.keepRanks(work) })
	c.drivers.firstWord(ctx, driverFirstWord)
	c.devices.firstWord(ctx, deviceFirstWord)
	c.driversChanged()
	c.takeOver(work)

	var streaming sync.WaitGroup
	streaming.Go(func() { c.session.Run(ctx) })
	var syncing sync.WaitGroup
	syncing.Go(func() { c.syncStore(work, end) })

	c.runLoop(ctx, work)
	close(c.stopped)
	streaming.Wait()
	stopWork()
	c.work.Wait()
	syncing.Wait()
	drivers.Wait()
	err := c.finish()
	if cause := context.Cause(ctx); errors.Is(cause, ErrStorage) || errors.Is(cause, ErrRemoved) {
		return cause // of which the error of closing is an echo
	}
	return err
}

// finish stores what is left and closes the store and every rank's socket.
func (c *Client) finish() error {
	c.drain()
	c.save()
	for _, id := range slices.Sorted(maps.Keys(c.loop.runners)) {
		if p := c.loop.runners[id].prepared; p != nil {
			closeShell(p.shell, c.log)
		}
	}
	c.closeFirewall()
	return c.Close()
}

// runLoop carries out inputs and ticks until ctx is cancelled.
func (c *Client) runLoop(ctx, work context.Context) {
	lease := time.NewTicker(leaseTick)
	defer lease.Stop()
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case input := <-c.inputs:
			input()
			c.moreInputs()
		case <-lease.C:
			c.checkLease()
			c.endRemoved()
		case <-sweep.C:
			c.sweep(work)
			c.actOnDevices(work)
		}
		c.carryOut(work)
	}
}

// moreInputs takes what waits already, so that one store transaction serves
// all of it.
func (c *Client) moreInputs() {
	for range batchMax {
		select {
		case input := <-c.inputs:
			input()
		default:
			return
		}
	}
}

// drain runs the inputs that came too late for the loop: what tasks told
// while the agent stopped is stored and not lost.
func (c *Client) drain() {
	for {
		select {
		case input := <-c.inputs:
			input()
		default:
			return
		}
	}
}

// post gives the loop something to do; it is dropped once the loop has
// stopped and nobody will drain it.
func (c *Client) post(f func()) {
	select {
	case c.inputs <- f:
	case <-c.stopped:
		// The loop is gone. finish drains what fits into the channel.
		select {
		case c.inputs <- f:
		default:
		}
	}
}

// event gives the table an answer of the node's own work.
func (c *Client) event(id string, e alloc.Event) {
	c.post(func() { c.add(c.loop.table.Step(id, e, c.now())) })
}

// ask runs f in the loop and waits for it, for readers of the loop's data.
func (c *Client) ask(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case c.inputs <- func() { f(); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return errStopped()
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return errStopped()
	}
}

func errStopped() error {
	return structs.NewError(structs.CodeUnavailable, "client.stopping")
}

func (c *Client) now() structs.UnixNano { return structs.At(c.config.Now()) }

func (c *Client) add(effects []alloc.Effect) { c.loop.effects = append(c.loop.effects, effects...) }

// driversChanged puts the healthy drivers into the registration.
func (c *Client) driversChanged() {
	healthy, attributes := c.drivers.healthy()
	raw := !c.config.Own && c.drivers.isolatesNone()
	c.describe(attributes, func(node *structs.Node) bool {
		changed := !slices.Equal(node.Drivers, healthy) || node.Raw != raw
		node.Drivers, node.Raw = healthy, raw
		return changed
	})
}

// describe changes what the node registers: change is told of the node, and
// says whether it did anything, and the attributes are put over those that are
// there. Servers are told of what is new.
func (c *Client) describe(attributes map[string]string, change func(*structs.Node) bool) {
	c.mu.Lock()
	changed := change(&c.mu.node)
	all := maps.Clone(c.mu.node.Attributes)
	for key, value := range attributes {
		if all[key] != value {
			all[key] = value
			changed = true
		}
	}
	c.mu.node.Attributes = all
	c.mu.Unlock()
	if changed {
		c.session.Refresh()
	}
}

// listener is the session's view of the client.
type listener struct {
	c    *Client
	work context.Context // of the effects; set before the session runs
}

// Hello gives the registration with what may have processes here.
func (o *listener) Hello() *structs.NodeRegister {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	node := o.c.mu.node
	return &structs.NodeRegister{Node: node, Inventory: slices.Clone(o.c.mu.inventory)}
}

// Assignments gives the loop what the server wants.
func (o *listener) Assignments(a *structs.Assignments) {
	for i := range a.Set {
		if one := &a.Set[i]; one.Alloc != nil {
			one.Job = one.Job.OfAttempt(one.Alloc.Attempt)
		}
	}
	o.c.post(func() {
		o.c.settleStrays(o.work, a)
		o.c.add(o.c.loop.table.Assign(a, o.c.now()))
		o.c.assignHolds(o.work, a)
		o.c.reopenShells(a)
		o.c.wakeWaiters()
		o.c.actOnDevices(o.work)
	})
}

// Delivered gives the loop the reports that are done with.
func (o *listener) Delivered(done []session.Delivered) {
	o.c.post(func() {
		for _, d := range done {
			if d.Note != 0 {
				o.c.noteDelivered(d.AllocID, d.Note)
				continue
			}
			o.c.add(o.c.loop.table.Step(d.AllocID, alloc.Acked{Status: d.Status}, o.c.now()))
		}
	})
}

// Connected notes whether a server hears the node.
func (o *listener) Connected(w *structs.Welcome) {
	o.c.mu.Lock()
	defer o.c.mu.Unlock()
	o.c.mu.connected = w != nil
	if w != nil {
		o.c.welcome.Do(func() { close(o.c.welcomed) })
	}
}
