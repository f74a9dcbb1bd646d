package ascend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
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
const Name = "ascend"

// Times of the plugin's loop.
const (
	// quitAfter is how long the library may hang or fail before the process
	// gives up: a new one may have more luck.
	quitAfter = 2 * time.Minute
	// openAgain is how often a library that is not there is looked for.
	openAgain = 15 * time.Second
	// placesEvery is how often places, network cards, device nodes and
	// configured addresses are read anew.
	placesEvery = time.Minute
	// firstPatience bounds the wait of a new follower for the first look.
	firstPatience = 2 * time.Second
	// closeLimit bounds the wait for calls that are under way at the end.
	closeLimit    = 2 * time.Second
	storeBytesMax = 8 << 20
)

// Options are the doors of a plugin, all of them thin.
type Options struct {
	Library Library
	Logger  *slog.Logger
	// StateDir takes the stored health; "": it is not stored.
	StateDir string
	// Proc looks processes up and ends them.
	Proc leftover.Door
	// Reset resets a chip that nobody uses; nil: with npu-smi.
	Reset func(ctx context.Context, key Key) error
	// Quit ends the process when the library hangs for good; nil: it is never
	// ended.
	Quit func(reason string)
	// Boot is the kernel's boot id.
	Boot string
}

// Plugin is the device plugin for Ascend cards. It implements device.Plugin
// and device.Healer.
type Plugin struct {
	s     *Settings
	o     Options
	guard *guard.Guard
	feed  *device.Feed

	life   context.Context
	cancel context.CancelFunc
	ending sync.WaitGroup

	lookNow  chan struct{} // holds one token
	storeNow chan struct{} // holds one token
	looked   chan struct{} // closed after the first look
	stored   string        // the mark of what was saved last; storeAll's alone

	mu struct {
		sync.Mutex
		health  *Health
		facts   *Facts // newest, completed by Identify; nil: none yet
		around  *Surroundings
		nodes   *Nodes
		ports   map[int]Port
		readAt  time.Time // of around, nodes and ports
		source  string
		absent  *structs.Reason
		blind   *structs.Reason
		failing time.Time // since when the library answers with errors; zero: it does not
		heals   uint64    // how often faults were forgotten, see heals
		events  []device.Event
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
		lookNow: make(chan struct{}, 1), storeNow: make(chan struct{}, 1), looked: make(chan struct{}),
	}
	p.life, p.cancel = context.WithCancel(context.Background())
	p.mu.health = p.load()
	p.mu.health.Resume(o.Boot)
	p.mu.around, p.mu.nodes = &Surroundings{}, &Nodes{}
	p.ending.Go(p.run)
	p.ending.Go(p.storeAll)
	return p
}

// load reads what an earlier life has stored; what cannot be read is put
// aside, since all faults are measured anew.
func (p *Plugin) load() *Health {
	if p.o.StateDir == "" {
		return &Health{}
	}
	text, err := readFile(p.storePath(), storeBytesMax)
	if errors.Is(err, fs.ErrNotExist) {
		return &Health{}
	}
	if err == nil {
		health, decodeErr := decodeHealth(text)
		if decodeErr == nil {
			return health
		}
		err = decodeErr
	}
	p.o.Logger.Warn("stored health of devices is lost", logkey.Error, err)
	_ = os.Rename(p.storePath(), p.storePath()+".bad")
	return &Health{}
}

func (p *Plugin) storePath() string { return filepath.Join(p.o.StateDir, "health.json") }

// Close ends the plugin's goroutines, except one that hangs in the library.
func (p *Plugin) Close() {
	p.cancel()
	p.ending.Wait()
	p.guard.Wait(closeLimit)
}

// run is the plugin's one loop: it looks, glances and publishes.
func (p *Plugin) run() {
	glance := time.NewTicker(p.s.glance)
	defer glance.Stop()
	open := false
	var triedAt, lookedAt time.Time
	for {
		now := time.Now()
		if !open && (triedAt.IsZero() || now.Sub(triedAt) >= openAgain) {
			triedAt, open = now, p.open()
		}
		switch {
		case open && (lookedAt.IsZero() || now.Sub(lookedAt) >= p.s.poll):
			lookedAt = now
			p.look()
		case open:
			p.glanceOnce()
		}
		select {
		case <-p.life.Done():
			return
		case <-glance.C:
		case <-p.lookNow:
			lookedAt = time.Time{}
		}
	}
}

// open loads the library. A library that is not there is no fault.
func (p *Plugin) open() bool {
	reason, err := guard.Run(p.life, p.guard, "library", p.hangs, func() (*structs.Reason, error) { return p.o.Library.Open(), nil })
	if err != nil {
		return false // the plugin ends
	}
	p.mu.Lock()
	p.mu.absent, p.mu.blind = reason, nil
	if reason == nil {
		p.mu.source = p.o.Library.Source()
	}
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
		p.o.Quit(fmt.Sprintf("the Ascend library does not return for %s", since.Round(time.Second)))
	}
	p.mu.Lock()
	told := p.mu.blind != nil
	p.mu.blind = structs.NewReason("device.library_hangs", "plugin", Name, "call", call)
	p.mu.Unlock()
	if !told {
		p.o.Logger.Error("the Ascend library hangs", logkey.Method, call)
	}
	p.publish()
	p.first()
}

// fails publishes that the library answers with an error.
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
		p.o.Quit(fmt.Sprintf("the Ascend library fails for %s: %v", since.Round(time.Second), err))
	}
}

// look reads the chips and judges them.
func (p *Plugin) look() {
	p.readPlaces()
	heals := p.heals()
	facts, err := guard.Run(p.life, p.guard, "library", p.hangs, p.o.Library.Read)
	if p.life.Err() != nil {
		return
	}
	if err != nil {
		p.fails(err)
		return
	}
	p.place(&facts)
	p.mu.Lock()
	p.mu.blind, p.mu.failing = nil, time.Time{}
	if p.mu.heals == heals {
		fillPorts(&facts, p.mu.ports)
		p.stepLocked(&facts)
	}
	p.mu.Unlock()
	p.publish()
	p.first()
}

// heals counts how often faults were forgotten. What was read of the chips before
// that says nothing after it: a fault that is over would come back.
func (p *Plugin) heals() uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.heals
}

// stepLocked judges facts.
func (p *Plugin) stepLocked(facts *Facts) {
	full := p.mu.health.Identify(facts)
	p.mu.events = append(p.mu.events, p.mu.health.Step(full, p.stillStuckLocked(), time.Now(), p.s.codes)...)
	p.mu.facts = full
}

// glanceOnce asks for health alone, and publishes at once when it differs.
func (p *Plugin) glanceOnce() {
	heals := p.heals()
	glances, err := guard.Run(p.life, p.guard, "library", p.hangs, p.o.Library.Glance)
	if err != nil || p.life.Err() != nil {
		return // the next look tells why
	}
	p.mu.Lock()
	if p.mu.facts == nil || p.mu.heals != heals {
		p.mu.Unlock()
		return
	}
	hung := p.mu.blind != nil
	p.mu.blind = nil
	facts, changed := glanced(p.mu.facts, glances)
	if changed {
		p.stepLocked(facts)
	}
	p.mu.Unlock()
	if changed || hung {
		p.publish()
	}
}

// glanced puts newer health into a copy of facts; false: nothing is new.
func glanced(facts *Facts, glances []Glance) (*Facts, bool) {
	copied := *facts
	copied.Chips = slices.Clone(facts.Chips)
	changed := false
	for _, g := range glances {
		at := slices.IndexFunc(copied.Chips, func(c Chip) bool { return c.Key == g.Key && !c.Gone })
		if at < 0 {
			continue
		}
		chip := &copied.Chips[at]
		if chip.State.Level != g.Level || !slices.Equal(chip.State.Codes, g.Codes) || chip.Unreadable != g.Err {
			chip.State.Level, chip.State.Codes, chip.Unreadable = g.Level, g.Codes, g.Err
			changed = true
		}
	}
	return &copied, changed
}

// stillStuckLocked looks which stuck processes are still there.
func (p *Plugin) stillStuckLocked() map[string][]int {
	stuck := make(map[string][]int)
	for id, unit := range p.mu.health.Units {
		if len(unit.Stuck) > 0 {
			stuck[id] = slices.DeleteFunc(slices.Clone(unit.Stuck), func(pid int) bool { return !p.o.Proc.Look(pid).Exists })
		}
	}
	return stuck
}

// readPlaces reads network cards, device nodes and addresses, now and then.
func (p *Plugin) readPlaces() {
	p.mu.Lock()
	fresh := !p.mu.readAt.IsZero() && time.Since(p.mu.readAt) < placesEvery
	p.mu.Unlock()
	if fresh {
		return
	}
	net, nodes := rdma.Read(p.s.Root), ReadNodes(p.s.Root)
	var ports map[int]Port
	if text, err := readFile(filepath.Join(p.s.Root, "etc/hccn.conf"), hccnBytesMax); err == nil {
		ports = ParseHCCN(string(text))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.around = &Surroundings{Net: net, Places: p.mu.around.Places}
	p.mu.nodes, p.mu.ports, p.mu.readAt = &nodes, ports, time.Now()
}

// place finds where chips sit. A chip never moves while the machine runs.
func (p *Plugin) place(facts *Facts) {
	p.mu.Lock()
	around := p.mu.around
	p.mu.Unlock()
	places := maps.Clone(around.Places)
	if places == nil {
		places = make(map[string]pcie.Place)
	}
	for i := range facts.Chips {
		bus := facts.Chips[i].Bus
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

// publish makes a snapshot of all that is known.
func (p *Plugin) publish() {
	p.mu.Lock()
	defer p.mu.Unlock()
	snapshot := device.Snapshot{At: time.Now(), Absent: p.mu.absent, Blind: p.mu.blind, Events: p.mu.events}
	p.mu.events = nil
	if facts := p.mu.facts; facts != nil {
		snapshot.Devices = Devices(facts, p.mu.around, p.s)
		p.mu.health.Apply(snapshot.Devices)
		snapshot.Attributes = map[string]string{device.NodeSource: p.mu.source}
		for key, value := range map[string]string{device.NodeDriver: facts.Driver, device.NodeLibrary: facts.Library} {
			if value != "" {
				snapshot.Attributes[key] = value
			}
		}
		if len(snapshot.Devices) == 0 && snapshot.Absent == nil {
			snapshot.Absent = structs.NewReason("device.ascend_no_chips")
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

// storeAll saves health whenever it has changed, beside everything else.
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

// store saves health when it has changed.
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
		err = writeFile(p.storePath(), text)
	}
	if err != nil {
		p.o.Logger.Error("health of devices cannot be stored", logkey.Error, err)
		return
	}
	p.stored = mark
}

// writeFile writes so that a crash leaves either the old or the new.
func writeFile(path string, text []byte) error {
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write health: %w", err)
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("write health: %w", err)
	}
	return nil
}

// Fingerprint reports the chips of this node.
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
			return nil, fmt.Errorf("device %.80q: %w", id, device.ErrUnknownDevice)
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
	return reserve(chosen, nodes), nil
}
