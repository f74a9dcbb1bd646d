package devices

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/loop"
	"nomadlike/nomadlike/client/machine"
	"nomadlike/nomadlike/client/retry"
	"nomadlike/nomadlike/client/session"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/driver"
)

// Rhythms and patience of devices.
const (
	deviceFirstWord = 5 * time.Second // patience with a plugin's first snapshot
	StatsEvery      = 5 * time.Second
	// followRetry is the pause before a plugin that cannot be asked is asked
	// again.
	followRetry = time.Second
)

// Devices are the accelerators of the node: what their plugins say of them is
// registered, tasks get them clean, and work leaves those that fail. Any goroutine
// may use it, but for Act.
type Devices struct {
	Config
	watch *deviceWatch
	// healing is by device: not reset again before. The loop owns it.
	healing map[string]time.Time
	// toldFaults are the faults that tasks were told of. The loop owns it.
	toldFaults map[taskFault]bool
	// reserved is what allocations have been given, by their ids, also after their
	// end. The loop owns it.
	reserved map[string][]string
}

// Config is what the devices of a node need.
type Config struct {
	Plugins  map[string]device.Plugin
	Declared []structs.Device // by the agent's configuration; nobody watches them
	DataDir  string
	Node     *machine.Registration
	Inbox    *loop.Inbox
	Notes    session.Teller                     // takes what tasks have brought upon their devices
	Live     func(l *loop.Loop) []driver.TaskID // the tasks that may run now
	Work     *sync.WaitGroup
	Now      func() time.Time
	Log      *slog.Logger
}

// Open reads what an earlier process of the agent was told by operators. What
// cannot be read is logged.
func Open(config Config) *Devices {
	isolated, err := openQuarantine(config.DataDir)
	if err != nil {
		config.Log.Error("devices that operators took out of use may get work", logkey.Error, err)
	}
	return &Devices{
		Config: config, healing: make(map[string]time.Time), toldFaults: make(map[taskFault]bool), reserved: make(map[string][]string),
		watch: newDeviceWatch(config.Plugins, config.Declared, isolated, config.Log),
	}
}

// Run listens to the plugins until work is cancelled.
func (d *Devices) Run(work context.Context) {
	d.watch.run(work, func() { d.changed(work) }, func(events []device.Event) {
		d.Inbox.Post(func(l *loop.Loop) { d.tellTasks(l, events) })
	})
}

// FirstWord waits until every plugin has spoken, for a while at most.
func (d *Devices) FirstWord(ctx context.Context) { d.watch.firstWord(ctx, deviceFirstWord) }

// Find returns a device of the node.
func (d *Devices) Find(id string) (structs.Device, bool) {
	found, _, ok := d.watch.find(id)
	return found, ok
}

// Registered returns the devices that the node registers.
func (d *Devices) Registered() []structs.Device {
	devices, _ := d.watch.registered()
	return devices
}

// Measured returns the newest measurement of every device, by its id.
func (d *Devices) Measured() map[string]Measurement { return d.watch.figures() }

// Any reports whether the node has plugins of devices.
func (d *Devices) Any() bool { return len(d.Plugins) > 0 }

// changed puts what the plugins say into the registration, and has the loop act
// upon it.
func (d *Devices) changed(work context.Context) {
	devices, attributes := d.watch.registered()
	d.Node.Describe(attributes, func(node *structs.Node) bool {
		changed := !slices.EqualFunc(node.Devices, devices, func(x, y structs.Device) bool { return device.SameDevice(&x, &y) })
		node.Devices = devices
		return changed
	})
	d.Node.SetFaults(machine.FaultsOfPlugins, d.watch.faults())
	d.Inbox.Post(func(l *loop.Loop) { d.Act(work, l) })
}

// deviceWatch listens to what the device plugins say of the node's devices. Its
// methods may be called from any goroutine.
type deviceWatch struct {
	plugins  map[string]device.Plugin
	declared []structs.Device // by the agent's configuration; nobody watches them
	isolated *quarantine
	log      *slog.Logger
	first    chan struct{} // closed when every plugin has spoken once

	mu struct {
		sync.Mutex
		last    map[string]device.Snapshot // by plugin, without events
		stats   map[string]device.Stats
		changed func() // nil before run
	}
}

func newDeviceWatch(plugins map[string]device.Plugin, declared []structs.Device, isolated *quarantine, log *slog.Logger) *deviceWatch {
	w := &deviceWatch{plugins: plugins, declared: declared, isolated: isolated, log: log, first: make(chan struct{})}
	w.mu.last = make(map[string]device.Snapshot)
	w.mu.stats = make(map[string]device.Stats)
	if len(plugins) == 0 {
		close(w.first)
	}
	return w
}

// FirstWord waits until every plugin has spoken, or for limit: a node that
// registers without its devices would seem to have lost them.
func (w *deviceWatch) firstWord(ctx context.Context, limit time.Duration) {
	if !retry.Await(ctx, w.first, limit) && ctx.Err() == nil {
		w.log.Warn("device plugins have not spoken yet: the node registers without their devices")
	}
}

// Run listens until ctx is cancelled, and calls changed after every word and happened
// with the events that it brings.
func (w *deviceWatch) run(ctx context.Context, changed func(), happened func([]device.Event)) {
	w.mu.Lock()
	w.mu.changed = changed
	w.mu.Unlock()
	var listening sync.WaitGroup
	for name, plugin := range w.plugins {
		listening.Go(func() {
			again(ctx, func() error { return w.listen(ctx, name, plugin, changed, happened) })
		})
		listening.Go(func() {
			again(ctx, func() error { return w.measure(ctx, name, plugin) })
		})
	}
	listening.Wait()
}

// again runs f until ctx is cancelled, with pauses.
func again(ctx context.Context, f func() error) {
	for ctx.Err() == nil {
		_ = f() // it has been logged
		if !retry.Sleep(ctx, followRetry) {
			return
		}
	}
}

func (w *deviceWatch) listen(ctx context.Context, name string, plugin device.Plugin, changed func(), happened func([]device.Event)) error {
	snapshots, err := plugin.Fingerprint(ctx)
	if err != nil {
		w.log.Error("device plugin cannot be asked", logkey.Plugin, name, logkey.Error, err)
		return err
	}
	for snapshot := range snapshots {
		w.note(name, snapshot)
		if len(snapshot.Events) > 0 {
			happened(snapshot.Events)
		}
		changed()
	}
	return nil
}

func (w *deviceWatch) note(name string, s device.Snapshot) {
	for _, e := range s.Events {
		w.log.Warn("device event", logkey.Plugin, name, "device", e.DeviceID, "code", e.Code, "action", string(e.Action), "pid", e.PID, logkey.Reason, e.Reason)
	}
	s.Events = nil
	w.mu.Lock()
	defer w.mu.Unlock()
	_, spoke := w.mu.last[name]
	w.mu.last[name] = s
	if !spoke && len(w.mu.last) == len(w.plugins) {
		close(w.first)
	}
}

// measure keeps the newest figures of a plugin's devices.
func (w *deviceWatch) measure(ctx context.Context, name string, plugin device.Plugin) error {
	measured, err := plugin.Stats(ctx, StatsEvery)
	if err != nil {
		w.log.Warn("device plugin does not measure", logkey.Plugin, name, logkey.Error, err)
		return err
	}
	for stats := range measured {
		w.mu.Lock()
		w.mu.stats[name] = stats
		w.mu.Unlock()
	}
	return nil
}

// Measurement is what a plugin measured of a device, and when.
type Measurement struct {
	At time.Time
	device.DeviceStats
}

// Figures returns the newest measurement of every device, by its id: at most a
// few seconds old while its plugin answers. A part of a card that is not measured by
// itself has what it has in common with the card: how busy and how hot it is. Watts,
// bytes and counters are the card's alone: sums over parts would count them twice.
func (w *deviceWatch) figures() map[string]Measurement {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := make(map[string]Measurement)
	for _, stats := range w.mu.stats {
		for _, one := range stats.Devices {
			all[one.ID] = Measurement{stats.At, one}
		}
	}
	for _, s := range w.mu.last {
		for i := range s.Devices {
			part := &s.Devices[i]
			card, measured := all[part.Attrs[device.AttrParent]]
			if _, itself := all[part.ID]; itself || !measured {
				continue
			}
			shared := Measurement{At: card.At, DeviceStats: device.DeviceStats{ID: part.ID, Gauges: make(map[string]float64)}}
			for _, gauge := range []string{device.GaugeUtilization, device.GaugeTemperature} {
				if value, ok := card.Gauges[gauge]; ok {
					shared.Gauges[gauge] = value
				}
			}
			all[part.ID] = shared
		}
	}
	return all
}

// registered returns the devices and attributes that the node registers. An id
// that two sources claim belongs to the first of them: the configuration, then
// the plugins by name.
func (w *deviceWatch) registered() ([]structs.Device, map[string]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	devices := slices.Clone(w.declared)
	attributes := make(map[string]string)
	seen := make(map[string]bool, len(devices))
	for i := range devices {
		seen[devices[i].ID] = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.mu.last)) {
		s := w.mu.last[name]
		for i := range s.Devices {
			if id := s.Devices[i].ID; !seen[id] && len(devices) < structs.DeviceCountMax {
				seen[id] = true
				devices = append(devices, s.Devices[i])
			}
		}
		for key, value := range s.Attributes {
			attributes["device."+name+"."+key] = value
		}
		attributes["device."+name+".state"] = stateOf(&s)
	}
	for i := range devices {
		w.isolated.judge(&devices[i])
	}
	return devices, attributes
}

// stateOf is the plugin's condition in a word that people may look up.
func stateOf(s *device.Snapshot) string {
	switch {
	case s.Blind != nil:
		return s.Blind.ID
	case s.Absent != nil:
		return s.Absent.ID
	}
	return "ready"
}

// find returns a device and the name of the plugin that has it, "" for a
// declared one.
func (w *deviceWatch) find(id string) (d structs.Device, plugin string, ok bool) {
	for i := range w.declared {
		if w.declared[i].ID == id {
			d = w.declared[i]
			w.isolated.judge(&d)
			return d, "", true
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(w.mu.last)) {
		devices := w.mu.last[name].Devices
		if i := slices.IndexFunc(devices, func(d structs.Device) bool { return d.ID == id }); i >= 0 {
			d = devices[i]
			w.isolated.judge(&d)
			return d, name, true
		}
	}
	return structs.Device{}, "", false
}

// tell has the registration made anew, when the watch runs.
func (w *deviceWatch) tell() {
	w.mu.Lock()
	changed := w.mu.changed
	w.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// busy names the plugins that have devices now.
func (w *deviceWatch) busy() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var names []string
	for name, s := range w.mu.last {
		if len(s.Devices) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// faults are the plugins that cannot look at their devices now: without a word of
// them a node would seem to have none. It takes other work meanwhile.
func (w *deviceWatch) faults() []structs.NodeFault {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []structs.NodeFault
	for _, name := range slices.Sorted(maps.Keys(w.mu.last)) {
		if blind := w.mu.last[name].Blind; blind != nil && blind.ID != deviceStarting {
			faults = append(faults, structs.NodeFault{Name: "plugin/" + name, Reason: blind})
		}
	}
	return faults
}

// deviceStarting is said by plugins that have not looked yet.
const deviceStarting = "device.starting"

// errUnclean says that a device cannot be used before somebody cleans it.
var errUnclean = errors.New("device is not clean")
