package ascend

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/leftover"
	"nomadlike/plugins/device/runtime"
)

// Name is the plugin's name.
const Name = "ascend"

// Times of the plugin's loop.
const (
	quitAfter = runtime.QuitAfter
	openAgain = runtime.OpenAgain
	// memorySettle is how long the driver may take to free memory after the
	// last process has ended.
	memorySettle = 3 * time.Second
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
type Plugin = runtime.Plugin[Facts]

// chips is what the runtime does not know of Ascend chips.
type chips struct {
	Library
	*Health
	s     *Settings
	reset func(ctx context.Context, key Key) error
	nodes Nodes
	ports map[int]Port
}

var (
	_ runtime.Vendor[Facts]  = (*chips)(nil)
	_ runtime.Glancer[Facts] = (*chips)(nil)
)

// Start makes a plugin and begins to look; Close ends it.
func Start(s *Settings, o Options) *Plugin {
	if o.Reset == nil {
		o.Reset = smiReset(s.SMI)
	}
	c := &chips{Library: o.Library, Health: &Health{}, s: s, reset: o.Reset}
	return runtime.Start(c, runtime.Options{
		Name: Name, Vendor: "Ascend", Root: s.Root, Poll: s.poll, Glance: s.glance, LeftoverMemory: s.LeftoverMemory, MemorySettle: memorySettle,
		Logger: o.Logger, StateDir: o.StateDir, Proc: o.Proc, Quit: o.Quit, Boot: o.Boot,
		MayReset: s.Reset != runtime.ResetNever, ResetsCordoned: true,
	})
}

// Sample measures the chips of facts, by device id.
func (c *chips) Sample(facts *Facts) ([]device.DeviceStats, error) {
	samples, err := c.Library.Sample()
	if err != nil {
		return nil, err
	}
	var all []device.DeviceStats
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		if s, measured := samples[chip.Key]; measured && !chip.Gone && !c.s.ignored(chip) {
			all = append(all, device.DeviceStats{ID: chip.ID, Gauges: s.Gauges, Processes: device.BoundProcesses(s.Processes)})
		}
	}
	return all, nil
}

// Judge names the chips and judges them.
func (c *chips) Judge(facts *Facts, unkillable map[string][]int, now time.Time) (*Facts, []device.Event) {
	full := c.Identify(facts)
	fillPorts(full, c.ports)
	return full, c.Step(full, unkillable, now, c.s.codes)
}

// Forget ends all faults of a chip: those that a reset does not end need none.
func (c *chips) Forget(id string, _ bool, now time.Time) []device.Event {
	return c.Health.Forget(id, now)
}

// Restore reads what an earlier life has stored.
func (c *chips) Restore(text []byte) error {
	health, err := decodeHealth(text)
	if err == nil {
		*c.Health = *health
	}
	return err
}

// Stored is what is stored.
func (c *chips) Stored() any { return c.Health }

// Survey reads the device nodes and the configured addresses of chips.
func (c *chips) Survey(*Facts) (keep func(), complete bool) {
	nodes := ReadNodes(c.s.Root)
	var ports map[int]Port
	if text, err := runtime.ReadFile(filepath.Join(c.s.Root, "etc/hccn.conf"), hccnBytesMax); err == nil {
		ports = ParseHCCN(string(text))
	}
	return func() { c.nodes, c.ports = nodes, ports }, true
}

// Buses lists the PCI addresses of the chips.
func (c *chips) Buses(facts *Facts) []string {
	buses := make([]string, len(facts.Chips))
	for i := range facts.Chips {
		buses[i] = facts.Chips[i].Bus
	}
	return buses
}

// Show makes the devices of a snapshot.
func (c *chips) Show(facts *Facts, around *Surroundings) device.Snapshot {
	snapshot := device.Snapshot{Devices: Devices(facts, around, c.s), Attributes: runtime.NodeAttributes(c.Source(), facts.Driver, facts.Library)}
	c.Apply(snapshot.Devices)
	if len(snapshot.Devices) == 0 {
		snapshot.Absent = structs.NewReason("device.ascend_no_chips")
	}
	return snapshot
}

// Reserve says what a task needs to see devices.
func (c *chips) Reserve(chosen []structs.Device) device.Reservation {
	return reserve(chosen, &c.nodes)
}

// Reset resets a chip, which the tool names by its place.
func (c *chips) Reset(ctx context.Context, id string, facts *Facts) error {
	at := slices.IndexFunc(facts.Chips, func(chip Chip) bool { return chip.ID == id })
	if at < 0 {
		return fmt.Errorf("the driver no longer names chip %s", id)
	}
	return c.reset(ctx, facts.Chips[at].Key)
}

// Glance asks for health alone.
func (c *chips) Glance(facts *Facts) (*Facts, bool, error) {
	glances, err := c.Library.Glance()
	if err != nil {
		return nil, false, err
	}
	newer, changed := glanced(facts, glances)
	return newer, changed, nil
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
