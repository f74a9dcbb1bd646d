package nvidia

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/rdma"
)

// Name is the plugin's name.
const Name = "nvidia"

// Times of the plugin's loop.
const (
	// quitAfter is how long the library may hang before the process gives up:
	// a new one may have more luck. The devices are cordoned after
	// guard.Patience.
	quitAfter = 2 * time.Minute
	// openAgain is how often a library that is not there is looked for.
	openAgain = 15 * time.Second
	// waitEach bounds one wait for events, so that a reset need not wait long.
	waitEach = time.Second
	// placesEvery is how often places, network cards and device nodes are
	// read anew.
	placesEvery = time.Minute
	// firstPatience bounds the wait of a new follower for the first look.
	firstPatience = 2 * time.Second
	happenedQueue = 256
)

// Options are the doors of a plugin, all of them thin.
type Options struct {
	Library Library
	Logger  *slog.Logger
	// StateDir takes the stored health; "": it is not stored.
	StateDir string
	// Proc looks processes up and ends them.
	Proc leftover.Door
	// Reset resets a card that nobody uses; nil: with nvidia-smi.
	Reset func(ctx context.Context, uuid string) error
	// Quit ends the process when the library hangs for good; nil: it is never
	// ended.
	Quit func(reason string)
	// Boot is the kernel's boot id, Booted when that was.
	Boot   string
	Booted time.Time
}

// Plugin is the device plugin for NVIDIA cards. It implements device.Plugin
// and device.Healer.
type Plugin struct {
	s     *Settings
	o     Options
	guard *guard.Guard
	feed  *device.Feed

	life   context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup

	happened chan Happening
	lookNow  chan struct{} // holds one token
	storeNow chan struct{} // holds one token
	factsNow chan struct{} // holds one token: facts are there, or cards have changed
	mps      *mpsDaemons
	looked   chan struct{} // closed after the first look
	stored   string        // the mark of what was saved last; storeAll's alone

	mu struct {
		sync.Mutex
		health  *Health
		facts   *Facts // newest, complete; nil: none yet
		around  *Surroundings
		nodes   *Nodes
		readAt  time.Time // of around and nodes
		absent  *structs.Reason
		blind   *structs.Reason
		failing time.Time // since when the library answers with errors; zero: it does not
		stored  string    // what was saved last, to save changes only
		events  []device.Event
		// heals counts how often faults were forgotten, healed has that count by
		// card: what was read of a card before says nothing after it, or a fault
		// that is over would come back. read is the count at which facts were read.
		heals  uint64
		healed map[string]uint64
		read   uint64
		// mpsDown says which MPS daemons are not up, and why, by the directory
		// of their pipes; mpsKnown that they have been looked at.
		mpsDown  map[string]*structs.Reason
		mpsKnown bool
	}
}

var (
	_ device.Plugin = (*Plugin)(nil)
	_ device.Healer = (*Plugin)(nil)
)

// Start makes a plugin and begins to look; Close ends it.
func Start(s *Settings, o Options) *Plugin {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Proc == nil {
		o.Proc = leftover.Proc{Root: filepath.Join(s.Root, "proc")}
	}
	if o.Reset == nil {
		o.Reset = smiReset(s.SMI)
	}
	p := &Plugin{
		s: s, o: o, guard: guard.New(), feed: device.NewFeed(device.Snapshot{At: time.Now(), Blind: structs.NewReason("device.starting", "plugin", Name)}),
		happened: make(chan Happening, happenedQueue), lookNow: make(chan struct{}, 1), storeNow: make(chan struct{}, 1),
		factsNow: make(chan struct{}, 1), mps: &mpsDaemons{program: s.MPSControl, dir: o.StateDir, log: o.Logger}, looked: make(chan struct{}),
	}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.mu.healed = make(map[string]uint64)
	p.mu.health = &Health{Units: make(map[string]*Unit)}
	if o.StateDir != "" {
		health, err := loadHealth(p.storePath())
		if err != nil {
			o.Logger.Warn("stored health of devices is lost", logkey.Error, err)
		}
		p.mu.health = health
	}
	p.mu.health.Resume(o.Boot)
	p.mu.around = &Surroundings{}
	p.mu.nodes = &Nodes{}
	p.ending.Go(p.run)
	p.ending.Go(p.storeAll)
	if slices.ContainsFunc(s.Share, func(share Share) bool { return share.How == device.SharingMPS }) || mpsRecorded(o.StateDir) {
		p.ending.Go(p.tendMPS)
	}
	return p
}

func (p *Plugin) storePath() string { return filepath.Join(p.o.StateDir, "health.json") }

// Close ends the plugin's goroutines, except one that hangs in the library.
func (p *Plugin) Close() {
	p.cancel()
	p.ending.Wait()
	p.guard.Wait(2 * waitEach)
}

// run is the plugin's one loop: it looks, listens and publishes.
func (p *Plugin) run() {
	poll := time.NewTicker(p.s.poll)
	defer poll.Stop()
	var listening sync.WaitGroup
	defer listening.Wait()
	open, heard := false, false
	var triedAt time.Time
	for {
		if !open && (triedAt.IsZero() || time.Since(triedAt) >= openAgain) {
			triedAt = time.Now()
			open = p.open()
		}
		if open {
			p.look()
			if !heard && p.hasFacts() {
				heard = true
				listening.Go(p.listen)
				listening.Go(p.listenKernel)
			}
		}
		select {
		case <-p.life.Done():
			return
		case <-poll.C:
		case <-p.lookNow:
		}
	}
}

func (p *Plugin) hasFacts() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.facts != nil
}

// open loads the library. A library that is not there is no fault.
func (p *Plugin) open() bool {
	reason, err := guard.Run(p.life, p.guard, "open", p.hangs, func() (*structs.Reason, error) { return p.o.Library.Open(), nil })
	if err != nil {
		return false // the plugin ends
	}
	p.mu.Lock()
	p.mu.absent, p.mu.blind = reason, nil
	p.mu.Unlock()
	if reason != nil {
		p.publish()
		p.first()
	}
	return reason == nil
}

// first lets followers begin.
func (p *Plugin) first() {
	select {
	case <-p.looked:
	default:
		close(p.looked)
	}
}

// hangs is told how long a call of the library has taken so far.
func (p *Plugin) hangs(call string, since time.Duration) {
	if since >= quitAfter && p.o.Quit != nil {
		p.o.Quit(fmt.Sprintf("the NVIDIA library does not return from %q for %s", call, since.Round(time.Second)))
	}
	p.mu.Lock()
	told := p.mu.blind != nil
	p.mu.blind = structs.NewReason("device.library_hangs", "plugin", Name, "call", call)
	p.mu.Unlock()
	if !told {
		p.o.Logger.Error("the NVIDIA library hangs", logkey.Method, call)
	}
	p.publish()
	p.first()
}

// look reads the cards and judges them.
func (p *Plugin) look() {
	p.readPlaces()
	heals := p.heals()
	facts, err := guard.Run(p.life, p.guard, "read", p.hangs, p.o.Library.Read)
	if p.life.Err() != nil {
		return
	}
	if err != nil {
		p.fails(err)
		return
	}
	p.mu.Lock()
	p.mu.blind, p.mu.failing = nil, time.Time{}
	p.mu.Unlock()
	p.place(&facts)
	p.mu.Lock()
	if p.mu.heals != heals {
		p.mu.Unlock()
		p.lookSoon()
		return
	}
	stuck := p.stillStuckLocked()
	events := p.mu.health.Step(Input{Now: time.Now(), Facts: &facts, Stuck: stuck}, p.s.actions)
	first := p.mu.facts == nil
	p.mu.facts, p.mu.read = p.mu.health.Complete(&facts), heals
	p.mu.events = append(p.mu.events, events...)
	p.mu.Unlock()
	if first {
		p.factsNow <- struct{}{} // holds one, and this happens once
	}
	p.publish()
	p.first()
}

// heals is how often faults were forgotten so far.
func (p *Plugin) heals() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.heals
}

// forgetLocked forgets the faults of a card, see Health.Forget.
func (p *Plugin) forgetLocked(uuid string, all bool) {
	p.mu.heals++
	p.mu.healed[uuid] = p.mu.heals
	p.mu.events = append(p.mu.events, p.mu.health.Forget(uuid, all, time.Now())...)
}

// fails publishes that the library answers with an error. One that goes on
// doing so may be of another version than the driver by now: a new process
// loads the one of the day.
func (p *Plugin) fails(err error) {
	p.mu.Lock()
	if p.mu.failing.IsZero() {
		p.mu.failing = time.Now()
	}
	since := time.Since(p.mu.failing)
	p.mu.blind = structs.NewReason("device.library_fails", "plugin", Name, "cause", err)
	p.mu.Unlock()
	p.publish()
	p.first()
	if since >= quitAfter && p.o.Quit != nil {
		p.o.Quit(fmt.Sprintf("the NVIDIA library fails for %s: %v", since.Round(time.Second), err))
	}
}

// stillStuckLocked looks which stuck processes are still there.
func (p *Plugin) stillStuckLocked() map[string][]int {
	stuck := make(map[string][]int)
	for uuid, unit := range p.mu.health.Units {
		if len(unit.Stuck) == 0 {
			continue
		}
		stuck[uuid] = slices.DeleteFunc(slices.Clone(unit.Stuck), func(pid int) bool { return !p.o.Proc.Look(pid).Exists })
	}
	return stuck
}

// readPlaces reads network cards and device nodes, now and then.
func (p *Plugin) readPlaces() {
	p.mu.Lock()
	fresh := time.Since(p.mu.readAt) < placesEvery && p.mu.facts != nil && len(p.mu.nodes.Common) > 0
	driver := ""
	if p.mu.facts != nil {
		driver = p.mu.facts.Driver
	}
	p.mu.Unlock()
	if fresh {
		return
	}
	net, nodes := rdma.Read(p.s.Root), ReadNodes(p.s.Root, driver)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.around = &Surroundings{Net: net, Places: p.mu.around.Places}
	p.mu.nodes, p.mu.readAt = &nodes, time.Now()
}

// place finds where cards sit. A card never moves while the machine runs.
func (p *Plugin) place(facts *Facts) {
	p.mu.Lock()
	around := p.mu.around
	p.mu.Unlock()
	places := maps.Clone(around.Places)
	if places == nil {
		places = make(map[string]pcie.Place)
	}
	for i := range facts.Cards {
		bus := facts.Cards[i].Bus
		if _, known := places[bus]; known || bus == "" {
			continue
		}
		if place, err := pcie.Read(p.s.Root, bus); err == nil {
			places[bus] = place
		}
	}
	p.mu.Lock()
	p.mu.around = &Surroundings{Net: around.Net, Places: places}
	p.mu.Unlock()
}

// publish makes a snapshot of all that is known, and stores health that has
// changed.
func (p *Plugin) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	snapshot := device.Snapshot{At: time.Now(), Absent: p.mu.absent, Blind: p.mu.blind, Events: p.mu.events}
	p.mu.events = nil
	if p.mu.facts != nil {
		snapshot.Devices = Devices(p.mu.facts, p.mu.around, p.s)
		p.mu.health.Apply(snapshot.Devices)
		p.cordonMPSLocked(snapshot.Devices)
		snapshot.Attributes = nodeAttributes(p.mu.facts, "nvml")
		if len(snapshot.Devices) == 0 && snapshot.Absent == nil {
			snapshot.Absent = noDevices(p.mu.facts)
		}
	}
	if p.mu.blind != nil {
		snapshot.Devices = device.Cordoned(snapshot.Devices, p.mu.blind)
	}
	p.feed.Publish(snapshot)
	select {
	case p.storeNow <- struct{}{}:
	default:
	}
}

// noDevices says why a library that works names no devices.
func noDevices(facts *Facts) *structs.Reason {
	for i := range facts.Cards {
		if facts.Cards[i].MIG {
			return structs.NewReason("device.nvidia_mig_empty")
		}
	}
	return structs.NewReason("device.nvidia_no_cards")
}

// storeAll saves health whenever it has changed, beside everything else: a slow
// disk holds no event up.
func (p *Plugin) storeAll() {
	for {
		select {
		case <-p.storeNow:
			p.store()
		case <-p.life.Done():
			p.store()
			return
		}
	}
}

// store saves the faults when they have changed. The time at which a fault was
// last seen is no change.
func (p *Plugin) store() {
	p.mu.Lock()
	mark := p.mu.health.mark()
	if p.o.StateDir == "" || mark == p.stored {
		p.mu.Unlock()
		return
	}
	text, err := json.Marshal(p.mu.health)
	p.mu.Unlock()
	if err == nil {
		err = saveHealth(p.storePath(), text)
	}
	if err != nil {
		p.o.Logger.Error("health of devices cannot be stored", logkey.Error, err)
		return
	}
	p.stored = mark
}

// listen waits for the library's events, as long as the plugin lives.
func (p *Plugin) listen() {
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	for p.life.Err() == nil {
		happened, err := guard.Run(p.life, p.guard, "wait", nil, func() ([]Happening, error) { return p.o.Library.Wait(waitEach) })
		for _, each := range happened {
			p.hear(each)
		}
		if err != nil { // no events on this machine, or not now: polling goes on
			pause.Reset(p.s.poll)
			select {
			case <-pause.C:
			case <-p.life.Done():
			}
		}
	}
}

// listenKernel follows the kernel's messages, as long as the plugin lives.
func (p *Plugin) listenKernel() {
	if p.s.Kernel == kernelNone {
		return
	}
	pause := time.NewTimer(0)
	defer pause.Stop()
	<-pause.C
	told := false
	for p.life.Err() == nil {
		log, err := openKernelLog(p.s.Kernel)
		if err == nil {
			err = log.follow(p.life, p.o.Booted, p.hear)
		}
		if err != nil && !told && p.life.Err() == nil {
			told = true
			p.o.Logger.Warn("the kernel's messages cannot be read; XIDs come from the library only", logkey.Error, err)
		}
		pause.Reset(p.s.poll)
		select {
		case <-pause.C:
		case <-p.life.Done():
		}
	}
}

// hear takes one event and publishes at once.
func (p *Plugin) hear(e Happening) {
	if e.XID == 0 {
		p.lookSoon()
		return
	}
	p.mu.Lock()
	events := p.mu.health.Step(Input{Now: time.Now(), Happened: []Happening{e}}, p.s.actions)
	p.mu.events = append(p.mu.events, events...)
	p.mu.Unlock()
	for _, event := range events {
		p.o.Logger.Warn("NVIDIA card reports an error", logkey.Reason, event.DeviceID+" "+event.Code)
	}
	p.publish()
	p.lookSoon() // what else has changed
}

func (p *Plugin) lookSoon() {
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
}

// Fingerprint reports the cards of this node.
func (p *Plugin) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	timer := time.NewTimer(firstPatience)
	defer timer.Stop()
	select {
	case <-p.looked:
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.feed.Follow(ctx), nil
}

// choose finds devices of the newest snapshot.
func (p *Plugin) choose(ids []string) ([]structs.Device, error) {
	all := p.feed.Newest().Devices
	chosen := make([]structs.Device, 0, len(ids))
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d structs.Device) bool { return d.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("NVIDIA device %.80q: %w", id, device.ErrUnknownDevice)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// Reserve says what a task needs to see devices.
func (p *Plugin) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	chosen, err := p.choose(ids)
	if err != nil {
		return device.Reservation{}, err
	}
	p.mu.Lock()
	nodes := p.mu.nodes
	p.mu.Unlock()
	return reserve(chosen, nodes, p.s), nil
}

// Stats measures all cards.
func (p *Plugin) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	p.mu.Lock()
	absent := p.mu.absent
	p.mu.Unlock()
	go func() { // ends with ctx
		defer close(measured)
		tick := time.NewTicker(max(every, device.StatsEveryMin))
		defer tick.Stop()
		for {
			if absent == nil {
				sampled, err := guard.Run(ctx, p.guard, "sample", nil, p.o.Library.Sample)
				if err == nil {
					select {
					case measured <- device.Stats{At: time.Now(), Devices: sampled}:
					case <-ctx.Done():
						return
					}
				}
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return measured, nil
}
