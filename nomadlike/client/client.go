package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/account"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/client/code"
	"nomadlike/nomadlike/client/data"
	"nomadlike/nomadlike/client/devices"
	"nomadlike/nomadlike/client/environment"
	"nomadlike/nomadlike/client/fingerprint"
	"nomadlike/nomadlike/client/hold"
	"nomadlike/nomadlike/client/hooks"
	"nomadlike/nomadlike/client/layout"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/objects"
	"nomadlike/nomadlike/client/prepare"
	"nomadlike/nomadlike/client/room"
	"nomadlike/nomadlike/client/run"
	"nomadlike/nomadlike/client/secrets"
	"nomadlike/nomadlike/client/service"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/client/staging"
	"nomadlike/nomadlike/client/store"
	"nomadlike/nomadlike/client/usage"
	"nomadlike/nomadlike/client/watch"
	"nomadlike/nomadlike/client/workspace"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
	"nomadlike/plugins/driver"
)

// Rhythms of a node.
const (
	storeSyncEvery  = 5 * time.Second
	driverFirstWord = 2 * time.Second // patience with a driver's first fingerprint
)

// Client is one node. New reads what it remembers, Run lives.
type Client struct {
	config    Config
	identity  store.Identity
	log       *slog.Logger
	files     layout.Layout
	store     *store.Store
	data      *data.Store
	code      *code.Store
	session   *session.Session
	listener  *listener
	inbox     *loop.Inbox
	loop      *loop.Loop              // of Run's goroutine, once that runs
	recovered []alloc.State           // read by New, consumed by Run
	end       context.CancelCauseFunc // of Run; set before anything runs
	work      sync.WaitGroup          // goroutines of effects
	parts

	mu struct {
		sync.Mutex
		connected bool
		refusal   *structs.Error // why servers do not let the node in; nil: they do, or none said
		removed   bool           // a server said that the node was removed
	}
	welcomed chan struct{} // closed when a server has welcomed the node once
	welcome  sync.Once
}

// parts are the rooms of a node, each of which knows only the few methods of the
// others that it names.
type parts struct {
	node       *machine.Registration
	drivers    *machine.Drivers
	disks      *machine.Disks
	starts     *machine.Starts
	unkillable *machine.Unkillable
	guard      *machine.Guard
	bounds     *room.Rooms
	devices    *devices.Devices
	usage      *usage.Usage
	preparer   *prepare.Preparer
	objects    *objects.Store
	staging    *staging.Exchange
	watch      *watch.Watch
	holds      *hold.Holds
	secrets    *secrets.Keeper
	service    *service.Service
	images     *service.Images
	lease      *run.Lease
	runs       *run.Runs
}

// New opens the node's data directory and looks at the machine. It starts
// nothing. Errors that a person can cure are *structs.Error. Run closes what
// New opened; a Client that is not run is closed with Close.
func New(config Config) (*Client, error) {
	config, err := config.withDefaults()
	if err != nil {
		return nil, err
	}
	hardware := config.Machine
	if hardware == nil {
		read, err := fingerprint.Read()
		if err != nil {
			return nil, err
		}
		hardware = &read
	}
	node, err := fingerprint.Node(*hardware, config.Wishes)
	if err != nil {
		return nil, err
	}
	c := &Client{
		config: config, log: config.Logger, files: layout.Layout{Root: config.DataDir}, inbox: loop.NewInbox(), welcomed: make(chan struct{}),
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
	node.Attributes[structs.AttrProtocol] = strconv.Itoa(wire.ProtocolVersion)
	c.log = c.log.With(logkey.NodeID, c.identity.NodeID)
	c.listener = &listener{c: c}
	c.session = session.New(session.Config{
		NodeID: c.identity.NodeID, Servers: config.Servers, Open: config.OpenSession, Owner: c.listener,
		Boottime: config.Boottime, Chance: config.Chance, Logger: c.log, Refused: c.refused,
	})
	c.furnish(node)
	c.sweepSecrets()
	if sameBoot {
		c.lease.Restore()
	}
	return c, nil
}

// furnish makes the rooms of the node.
func (c *Client) furnish(node structs.Node) {
	config := &c.config
	now := func() structs.UnixNano { return structs.At(config.Now()) }
	notes := session.NewNotes(c.session, config.Boottime, config.Now)
	c.node = machine.NewRegistration(node, c.session.Refresh)
	c.drivers = machine.NewDrivers(config.Drivers, c.log)
	c.disks = machine.NewDisks(config.DataDir, c.files.Allocs(), config.Disk, c.node, c.log)
	c.starts = machine.NewStarts(c.disks, c.node, config.Now, c.log)
	c.unkillable = machine.OpenUnkillable(config.DataDir, config.BootID, c.node, c.log)
	c.guard = machine.NewGuard(c.node, c.log)
	allotted, err := account.OpenIDs(config.DataDir, config.UIDMin, config.UIDMax)
	if err != nil {
		c.log.Error("projects may get other ids than before", logkey.Error, err)
	}
	owners := &account.Owners{Bound: config.Accounts, IDs: allotted, Layout: c.files}
	c.bounds = room.New(room.Config{
		Layout: c.files, Bounds: config.Room, Disk: config.Disk, Every: config.RoomEvery, Drivers: config.Drivers,
		Events: c.inbox, Node: c.node, Work: &c.work, Log: c.log,
	})
	c.devices = devices.Open(devices.Config{
		Plugins: config.DevicePlugins, Declared: config.Devices, DataDir: config.DataDir, Node: c.node, Inbox: c.inbox, Notes: notes,
		Live: c.mayRun, Work: &c.work, Now: config.Now, Log: c.log,
	})
	c.secrets = secrets.New(config.AskSecrets, c.serversToAsk, config.SecretsDir)
	scripts := hooks.New(c.files, notes, c.secrets, config.Now, c.log)
	looks := &environment.Environment{Drivers: config.Drivers, DataDir: config.DataDir, Now: config.Now, Log: c.log}
	c.holds = hold.New(hold.Config{
		NodeID: c.identity.NodeID, Layout: c.files, Drivers: config.Drivers, Inbox: c.inbox, Notes: notes, Devices: c.devices,
		Own: scripts, Secrets: c.secrets, Work: &c.work, Now: config.Now, Log: c.log,
	})
	c.service = service.New(service.Config{
		NodeID: c.identity.NodeID, Layout: c.files, Drivers: config.Drivers, Storages: config.Storages, Owners: owners,
		Holds: c.holds, Inbox: c.inbox, OpenExec: config.OpenExec, Log: c.log,
	})
	c.images = service.NewImages(config.Drivers, config.Now, c.log)
	c.objects = objects.New(objects.Config{NodeID: c.identity.NodeID, Storages: config.Storages, Now: config.Now, Log: c.log})
	c.staging = staging.New(staging.Config{
		NodeID: c.identity.NodeID, Servers: config.Staging.Servers, Nodes: config.Staging.Nodes, Stored: c.objects, Copies: data.Versions{Store: c.data},
		Rate: c.stagingRate(), Now: config.Now, Log: c.log,
	})
	sets := &prepare.Datasets{
		Exchange: c.staging,
		Store:    c.data, Remotes: config.Remotes, Events: c.inbox, Notes: notes, Node: c.node, Now: config.Now, Log: c.log,
	}
	travelled := &prepare.Code{Store: c.code, Layout: c.files, Events: c.inbox, Notes: notes, Now: config.Now, Log: c.log}
	c.preparer = prepare.New(prepare.Config{
		Layout: c.files, Drivers: config.Drivers, Storages: config.Storages, Data: sets, Code: travelled, Owners: owners,
		Binary: config.Binary, SharedDir: config.SharedDir, EnvFile: config.EnvFile, NCCLDebug: config.NCCLDebug,
		SysRoot: config.SysRoot, Events: c.inbox, Notes: notes, Node: c.node, Disks: c.disks, Rooms: c.bounds, Guard: c.guard,
		Environment: looks, Hooks: scripts, Secrets: c.secrets, Devices: c.devices, Holds: c.holds, Shells: c.service, Now: config.Now, Log: c.log,
	})
	places := &watch.Places{Storages: config.Storages, Owners: owners}
	c.usage = usage.Open(usage.Config{
		Layout: c.files, Drivers: config.Drivers, Devices: c.devices, Disks: c.disks, Inbox: c.inbox, Places: places,
		Load: config.Load, Now: config.Now, Log: c.log,
	})
	c.watch = watch.New(watch.Config{
		Layout: c.files, Places: places, Inbox: c.inbox, Notes: notes, Devices: c.devices, Usage: c.usage, Environment: looks,
		Fitness: c.preparer, Every: config.PatrolEvery, Boottime: config.Boottime, Now: config.Now, Log: c.log,
	})
	c.lease = run.NewLease(c.files.Lease(), c.session, config.Boottime, config.Now, c.log)
	c.runs = run.New(run.Config{
		Layout: c.files, Drivers: config.Drivers, Inbox: c.inbox, Report: c.session.Report, Refresh: c.session.Refresh, Lease: c.lease,
		Preparer: c.preparer, Rooms: c.bounds, Unkillable: c.unkillable, Starts: c.starts, Watch: c.watch, Usage: c.usage, Hooks: scripts, Secrets: c.secrets,
		Holds: c.holds, Devices: c.devices, SharedDir: config.SharedDir, ShmDir: config.ShmDir, Keep: config.Keep,
		Work: &c.work, Now: config.Now, Log: c.log,
	})
	c.loop = loop.New(loop.Config{
		NodeID: c.identity.NodeID, Inbox: c.inbox, Store: c.store, Effects: effects{c.runs, c}, Now: now, Log: c.log,
		Evicted: func(s *alloc.State, cause *structs.Reason) {
			notes.Send(structs.AllocNote{AllocID: s.AllocID, Attempt: s.Attempt, Evicted: cause})
		},
	})
}

// stagingRate is how many bytes per second the node exchanges with others at most, each
// way; 0: it takes no part.
func (c *Client) stagingRate() int64 {
	if c.config.Staging.Off {
		return 0
	}
	if c.config.Staging.Rate > 0 {
		return c.config.Staging.Rate
	}
	return machine.LinkSpeed(c.config.SysRoot, c.Node().Attributes[machine.AttrInterface]) / 2
}

// serversToAsk lists the servers, the one that the node's stream leads to first.
func (c *Client) serversToAsk() []string {
	var addresses []string
	if first := c.session.Server(); first != "" {
		addresses = append(addresses, first)
	}
	if c.config.Servers != nil {
		for _, addr := range c.config.Servers() {
			if !slices.Contains(addresses, addr) {
				addresses = append(addresses, addr)
			}
		}
	}
	return addresses
}

// sweepSecrets removes the files of secrets of allocations that the node knows no more.
func (c *Client) sweepSecrets() {
	known := make(map[string]bool, len(c.recovered))
	for i := range c.recovered {
		known[c.recovered[i].AllocID] = true
	}
	if err := c.secrets.Sweep(func(id string) bool { return known[id] }); err != nil {
		c.log.Warn("files of secrets of ended tasks stay in memory", logkey.Path, c.secrets.Root(), logkey.Error, err)
	}
}

// mayRun lists the tasks that may run now, with those that hold the places of others.
func (c *Client) mayRun(l *loop.Loop) []driver.TaskID {
	var tasks []driver.TaskID
	for _, item := range l.MayRun() {
		tasks = append(tasks, alloc.TaskID(item.AllocID))
	}
	return append(tasks, c.holds.Tasks()...)
}

// effects is what the loop has done, and what it looks after from time to time.
type effects struct {
	*run.Runs
	c *Client
}

// Often ends what has to end by the clock.
func (e effects) Often(l *loop.Loop) {
	e.c.lease.Check(l)
	e.c.endRemoved(l)
}

// Seldom tidies up.
func (e effects) Seldom(work context.Context, l *loop.Loop) {
	e.c.runs.Sweep(work, l)
	e.c.devices.Act(work, l)
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
	if err := os.MkdirAll(c.files.Allocs(), 0o711); err != nil {
		return false, fmt.Errorf("make data directory: %w", err)
	}
	if err := os.MkdirAll(c.files.Records(), 0o700); err != nil {
		return false, fmt.Errorf("make data directory: %w", err)
	}
	c.config.Fast.Log, c.config.Fast.Broken = c.log, c.dataLost
	if c.data, err = data.Open(c.config.Fast); err != nil {
		return false, err
	}
	c.code, err = code.Open(code.Config{Dir: c.files.Code(), Ask: c.config.AskCode, Servers: c.serversToAsk, Now: c.config.Now, Log: c.log})
	if err != nil {
		return false, err
	}
	c.store, c.recovered, err = store.Open(c.config.DataDir)
	if errors.Is(err, store.ErrDamaged) {
		// What runs is found by the drivers' own records and the
		// allocations' directories; only unheard reports are lost.
		aside, asideErr := store.SetAside(c.config.DataDir)
		if asideErr != nil {
			return false, errors.Join(err, asideErr)
		}
		c.log.Error("local store is damaged: it is set aside, tasks are found by their directories",
			logkey.Path, aside, logkey.Error, err)
		c.store, c.recovered, err = store.Open(c.config.DataDir)
	}
	if err == nil && c.config.Fsync != nil {
		c.store.Through(c.config.Fsync)
	}
	return sameBoot, err
}

// NodeID is the id under which the node registers.
func (c *Client) NodeID() string { return c.identity.NodeID }

// Node returns what the node last registered, or will register. The value is the
// caller's.
func (c *Client) Node() structs.Node { return c.node.Node() }

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
	c.objects.Close()
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
	drivers.Go(func() { c.drivers.Run(work, c.driversChanged) })
	drivers.Go(func() { c.devices.Run(work) })
	drivers.Go(func() { c.images.Run(work) })
	if c.config.SysRoot != "" {
		links := machine.NewLinks(machine.LinksConfig{
			SysRoot: c.config.SysRoot, Addr: c.Node().Attributes[machine.AttrInterface], Declared: c.config.Wishes.RDMA,
			Every: c.config.LinksEvery, Now: c.config.Now, Node: c.node, Log: c.log,
		})
		links.Look()
		drivers.Go(func() { links.Watch(work) })
	}
	c.guard.Open(c.config.Filter)
	c.bounds.Open(c.config.Quotas)
	c.unkillable.Look()
	drivers.Go(func() { c.unkillable.Watch(work) })
	c.disks.Look()
	drivers.Go(func() { c.disks.Watch(work, func() { c.starts.Look(); c.guard.Restore() }) })
	drivers.Go(func() { c.usage.RecordHistory(work) })
	drivers.Go(func() { c.usage.RecordRanks(work) })
	c.drivers.FirstWord(ctx, driverFirstWord)
	c.devices.FirstWord(ctx)
	c.driversChanged()
	c.runs.TakeOver(work, c.loop, c.recovered)
	c.recovered = nil

	var streaming sync.WaitGroup
	streaming.Go(func() { c.session.Run(ctx) })
	var syncing sync.WaitGroup
	syncing.Go(func() { c.syncStore(work, end) })

	c.loop.Run(ctx, work)
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
	c.loop.Finish()
	c.runs.Close()
	c.guard.Close()
	return c.Close()
}

// driversChanged puts the healthy drivers into the registration.
func (c *Client) driversChanged() {
	healthy, attributes := c.drivers.Healthy()
	raw := !c.config.Own && c.drivers.IsolatesNone()
	c.node.Describe(attributes, func(node *structs.Node) bool {
		changed := !slices.Equal(node.Drivers, healthy) || node.Raw != raw
		node.Drivers, node.Raw = healthy, raw
		return changed
	})
}

// dataLost ends allocations whose data the disk has refused, or was found damaged,
// after they had begun to read it: what they would read may be wrong.
func (c *Client) dataLost(ids []string, cause error) {
	why := "client.data_lost"
	if errors.Is(cause, data.ErrDamaged) {
		why = "client.data_damaged"
	}
	for _, id := range ids {
		c.inbox.Event(id, alloc.Evicted{Cause: structs.NewReason(why, "cause", cause.Error())})
	}
}

// listener is the session's view of the client.
type listener struct {
	c    *Client
	work context.Context // of the effects; set before the session runs
}

// Hello returns the registration with what may have processes here.
func (o *listener) Hello() *structs.NodeRegister {
	return &structs.NodeRegister{Node: o.c.node.Node(), Inventory: o.c.inbox.Inventory()}
}

// Assignments hands the loop what the server wants.
func (o *listener) Assignments(a *structs.Assignments) {
	for i := range a.Set {
		if one := &a.Set[i]; one.Alloc != nil {
			one.Job = one.Job.OfAttempt(one.Alloc.Attempt)
		}
	}
	o.c.inbox.Post(func(l *loop.Loop) {
		o.c.runs.SettleStrays(o.work, l, a)
		l.Assign(a)
		o.c.holds.Assign(o.work, l, a)
		o.c.runs.Reopen(o.work, l, a)
		l.Wake()
		o.c.devices.Act(o.work, l)
	})
}

// Delivered hands the loop the reports that are done with, and the watch the notes.
func (o *listener) Delivered(done []session.Delivered) {
	o.c.inbox.Post(func(l *loop.Loop) {
		for _, d := range done {
			if d.Note != 0 {
				o.c.work.Go(func() { o.c.watch.Delivered(d.AllocID, d.Note) })
				continue
			}
			l.Step(d.AllocID, alloc.Acked{Status: d.Status})
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
