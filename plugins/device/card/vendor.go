package card

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
	"nomadlike/plugins/device/leftover"
	"nomadlike/plugins/device/runtime"
)

// Times of a plugin.
const (
	pollMin = 50 * time.Millisecond
	// memorySettle is how long a driver may take to free memory after the last
	// process has ended.
	memorySettle = 3 * time.Second
)

// Vendor is what one vendor's cards have of their own. All of it is data, and
// two or three pure functions.
type Vendor struct {
	Name     string // of the plugin, "cambricon"
	Title    string // in words, "Cambricon"
	Noun     string // what people call a card, "MLU"
	Kind     string // of its devices
	LinkKind string // what its links are called
	Table    []byte // of faults, as JSON

	// Library is the name of the vendor's library, Dirs where it is looked for.
	Library string
	Dirs    []string
	// Tool is the vendor's program, which answers where the library cannot be
	// loaded.
	Tool runtime.Tool
	// PCI is the vendor's number, and Classes those of its cards, as
	// pcie.Vendors takes them.
	PCI     string
	Classes []string
	// Driver are paths that are there when the driver is. Nodes are the control
	// nodes that every task needs, and Mounts what containers without the
	// vendor's runtime need; those that are there.
	Driver, Nodes, Mounts []string
	// CardNodes begin the names of a card's own device nodes, which the card's
	// minor number ends: the first is always there, others may be.
	CardNodes []string

	// LeftoverMemory is how many bytes an unused card has in use.
	LeftoverMemory int64
	// Reset resets a card with the tool; nil: nothing here can.
	Reset func(ctx context.Context, tool *runtime.Tool, card *Card) error
	// Reserve adds to nodes and mounts what else a task needs to see devices,
	// which are in order. It is pure.
	Reserve func(chosen []structs.Device, r *device.Reservation)
}

// Config is a plugin's configuration, as JSON. Every field may be left out.
type Config struct {
	runtime.Config
	// Library is the path, or the name, of the vendor's library, Tool the path
	// of its program; empty: they are looked for at the usual places.
	Library string `json:"library,omitempty"`
	Tool    string `json:"tool,omitempty"`
	// Faults is put over the built-in table, FaultsFile the same in a file.
	Faults     json.RawMessage `json:"faults,omitempty"`
	FaultsFile string          `json:"faults_file,omitempty"`
}

// Settings is a checked configuration.
type Settings struct {
	Config
	poll  time.Duration
	table *Table
}

// ParseConfig reads and checks a configuration. The error is a *structs.Error.
func (v *Vendor) ParseConfig(text []byte) (*Settings, error) {
	s := &Settings{}
	err := runtime.ReadConfig(v.Name, text, &s.Config, func() (err error) {
		if s.poll, err = s.Check(runtime.Defaults{PollMin: pollMin, Reset: runtime.ResetNever, LeftoverMemory: v.LeftoverMemory}); err != nil {
			return err
		}
		if s.Reset != runtime.ResetNever && v.Reset == nil {
			return fmt.Errorf("reset is %q, but nothing here can reset such a card", s.Reset)
		}
		override, err := runtime.Override("faults", s.Faults, s.FaultsFile, tableBytesMax)
		if err != nil {
			return err
		}
		s.Library = cmp.Or(s.Library, v.FindLibrary(s.Root))
		s.table, err = ReadTable(v.Table, override)
		return err
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// ToolOf returns the vendor's program as the configuration names it.
func (v *Vendor) ToolOf(s *Settings) *runtime.Tool {
	tool := v.Tool
	tool.Path = s.Config.Tool
	return &tool
}

// FindLibrary returns where the vendor's library lies; its bare name, for the
// dynamic loader, when it is at none of the usual places.
func (v *Vendor) FindLibrary(root string) string {
	for _, dir := range v.Dirs {
		if runtime.Exists(root, dir+"/"+v.Library) {
			return filepath.Join(root, dir, v.Library)
		}
	}
	return v.Library
}

// Present reports, without loading anything, whether the plugin is worth
// starting on the machine below root ("/" but in tests): nil when the driver is
// there. Otherwise the reason says what was looked for.
func (v *Vendor) Present(root string) *structs.Reason {
	if runtime.Exists(root, v.Driver...) {
		return nil
	}
	if buses := runtime.Cards(root, v.PCI, v.Classes...); buses != "" {
		return structs.NewReason("device.card_without_driver", "vendor", v.Title, "bus", buses)
	}
	return structs.NewReason("device.card_absent", "vendor", v.Title)
}

// SharedLibrary is what OpenLibrary needs of one; clib.Library is one.
type SharedLibrary interface {
	Load() error
	Missing(names ...string) string
	Unload()
}

// OpenLibrary loads the vendor's library at path, looks for the functions without
// which nothing works, and has it begin; cause says why it does not, "": it does.
func (v *Vendor) OpenLibrary(l SharedLibrary, path string, needed []string, begin func() (cause string)) *structs.Reason {
	if err := l.Load(); err != nil {
		return structs.NewReason("device.card_no_library", "vendor", v.Title, "library", path, "cause", err)
	}
	if missing := l.Missing(needed...); missing != "" {
		l.Unload()
		return structs.NewReason("device.card_symbol_missing", "vendor", v.Title, "library", path, "symbol", missing)
	}
	if cause := begin(); cause != "" {
		l.Unload()
		return structs.NewReason("device.card_init", "vendor", v.Title, "cause", cause)
	}
	return nil
}

// NoTool is the reason of a tool that does not answer.
func (v *Vendor) NoTool(cause error) *structs.Reason {
	return structs.NewReason("device.card_no_tool", "tool", v.Tool.Name, "cause", cause)
}

// Options are the doors of a plugin.
type Options struct {
	Library  Library
	Logger   *slog.Logger
	StateDir string // takes the stored health; "": it is not stored
	Proc     leftover.Door
	Quit     func(reason string)
	Boot     string
}

// Plugin is the device plugin of a vendor.
type Plugin = runtime.Plugin[Facts]

// Start makes a plugin and begins to look; Close ends it.
func (v *Vendor) Start(s *Settings, o Options) *Plugin {
	return runtime.Start(&cards{Library: o.Library, Health: &Health{}, v: v, s: s}, runtime.Options{
		Name: v.Name, Vendor: v.Title, Root: s.Root, Poll: s.poll, LeftoverMemory: s.LeftoverMemory, MemorySettle: memorySettle,
		Logger: o.Logger, StateDir: o.StateDir, Proc: o.Proc, Quit: o.Quit, Boot: o.Boot,
		MayReset: s.Reset != runtime.ResetNever,
	})
}

// Serve runs the plugin for the agent that has started this process, with the
// first of a vendor's libraries that can be opened. It lives as long as the
// process.
func (v *Vendor) Serve(libraries func(s *Settings) []Library) {
	deviceplugin.Serve(v.Name, func(setup deviceplugin.Setup) (device.Plugin, error) {
		settings, err := v.ParseConfig(setup.Config)
		if err != nil {
			return nil, err
		}
		this := runtime.ThisProcess()
		return v.Start(settings, Options{
			Library: NewChain(libraries(settings)...), Logger: this.Logger, StateDir: setup.StateDir, Boot: this.Boot, Quit: this.Quit,
		}), nil
	})
}

// cards is what the runtime asks of a vendor.
type cards struct {
	Library
	*Health
	v      *Vendor
	s      *Settings
	common device.Reservation // nodes and mounts that every task needs
	nodes  map[string]bool    // of cards, that are there besides the first
}

var _ runtime.Vendor[Facts] = (*cards)(nil)

// Sample measures the cards of facts, by device id.
func (c *cards) Sample(facts *Facts) ([]device.DeviceStats, error) {
	samples, err := c.Library.Sample()
	if err != nil {
		return nil, err
	}
	var all []device.DeviceStats
	for i := range facts.Cards {
		card := &facts.Cards[i]
		if s, measured := samples[card.Index]; measured && !card.Gone && !c.s.ignored(card) {
			all = append(all, device.DeviceStats{ID: card.ID, Gauges: s.Gauges, Processes: device.BoundProcesses(s.Processes)})
		}
	}
	return all, nil
}

// Judge names the cards and judges them.
func (c *cards) Judge(facts *Facts, unkillable map[string][]int, now time.Time) (*Facts, []device.Event) {
	full := c.Identify(facts, c.v.Noun)
	return full, c.Step(full, unkillable, now, c.v, c.s.table)
}

// Forget ends the faults of a card.
func (c *cards) Forget(id string, all bool, now time.Time) []device.Event {
	return c.Health.Forget(id, all, now, c.v)
}

// Survey looks which control nodes and files are there.
func (c *cards) Survey(*Facts) (keep func(), complete bool) {
	var common device.Reservation
	for _, path := range c.v.Nodes {
		if runtime.Exists(c.s.Root, path) {
			common.Nodes = append(common.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
		}
	}
	for _, path := range c.v.Mounts {
		if runtime.Exists(c.s.Root, path) {
			common.Mounts = append(common.Mounts, device.Mount{HostPath: path, TaskPath: path, ReadOnly: true})
		}
	}
	nodes := make(map[string]bool)
	for i := 1; i < len(c.v.CardNodes); i++ {
		found, err := filepath.Glob(filepath.Join(c.s.Root, c.v.CardNodes[i]) + "[0-9]*")
		if err != nil {
			continue // its name is no pattern: nothing is found
		}
		for _, path := range found {
			nodes[filepath.Base(path)] = true
		}
	}
	return func() { c.common, c.nodes = common, nodes }, true
}

// Buses lists the PCI addresses of the cards.
func (c *cards) Buses(facts *Facts) []string {
	buses := make([]string, len(facts.Cards))
	for i := range facts.Cards {
		buses[i] = facts.Cards[i].Bus
	}
	return buses
}

// Show makes the devices of a snapshot.
func (c *cards) Show(facts *Facts, around *runtime.Surroundings) device.Snapshot {
	snapshot := device.Snapshot{Devices: c.v.Devices(facts, around, c.s), Attributes: runtime.NodeAttributes(c.Source(), facts.Driver, facts.Library)}
	c.Apply(snapshot.Devices)
	if len(snapshot.Devices) == 0 {
		snapshot.Absent = structs.NewReason("device.card_no_cards", "vendor", c.v.Title)
	}
	return snapshot
}

// Reserve says what a task needs to see devices.
func (c *cards) Reserve(chosen []structs.Device) device.Reservation {
	chosen = slices.Clone(chosen)
	device.Sort(chosen)
	r := device.Reservation{Nodes: slices.Clone(c.common.Nodes), Mounts: slices.Clone(c.common.Mounts)}
	for i := range chosen {
		minor, known := chosen[i].Attrs[device.AttrMinor]
		for at, begin := range c.v.CardNodes {
			if path := begin + minor; known && (at == 0 || c.nodes[filepath.Base(path)]) {
				r.Nodes = append(r.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
			}
		}
	}
	c.v.Reserve(chosen, &r)
	return r
}

// Reset resets a card.
func (c *cards) Reset(ctx context.Context, id string, facts *Facts) error {
	at := slices.IndexFunc(facts.Cards, func(card Card) bool { return card.ID == id && !card.Gone })
	if at < 0 {
		return errors.New("the driver no longer names it")
	}
	return c.v.Reset(ctx, c.v.ToolOf(c.s), &facts.Cards[at])
}

// ignored reports whether a card is not offered.
func (s *Settings) ignored(card *Card) bool {
	return runtime.Named(s.Ignore, card.ID, card.Bus, card.Index)
}

// Devices turns facts that Identify has completed into the devices of a
// snapshot, all healthy, in order. It is pure.
func (v *Vendor) Devices(facts *Facts, around *runtime.Surroundings, s *Settings) []structs.Device {
	groups := groupsOf(facts.Cards, v.LinkKind)
	var devices []structs.Device
	for i := range facts.Cards {
		card := &facts.Cards[i]
		if s.ignored(card) || card.ID == "" {
			continue
		}
		d := structs.Device{
			ID: card.ID, Index: card.Index, Kind: v.Kind, Model: cmp.Or(card.Name, v.Noun), Memory: int64(card.Memory), PCIBus: card.Bus,
			LinkGroup: groups[i], Healthy: true, Driver: facts.Driver, Attrs: make(map[string]string),
		}
		around.Describe(&d)
		number := func(key string, n int) {
			if n > 0 {
				runtime.SetAttr(&d, key, strconv.Itoa(n))
			}
		}
		if card.Minor >= 0 {
			runtime.SetAttr(&d, device.AttrMinor, strconv.Itoa(card.Minor))
		}
		runtime.SetAttr(&d, device.AttrSerial, card.Serial)
		runtime.SetAttr(&d, device.AttrArch, card.Arch)
		runtime.SetAttr(&d, device.AttrVBIOS, card.Firmware)
		number(device.AttrPowerLimit, card.PowerLimit)
		number(device.AttrLinkCount, card.Links)
		number(device.AttrLinkPeers, len(card.Linked))
		if groups[i] != "" {
			runtime.SetAttr(&d, device.AttrLinkKind, v.LinkKind)
		}
		devices = append(devices, d)
	}
	device.Sort(devices)
	return devices
}

// groupsOf names the link group of every card, in the order of cards; "": it is
// joined to none. Groups are numbered by their first card.
func groupsOf(cards []Card, kind string) []string {
	at := make(map[string]int, len(cards))
	root := make([]int, len(cards)) // the smallest card of each one's group
	for i := range cards {
		at[cards[i].ID], root[i] = i, i
	}
	for changed := true; changed; {
		changed = false
		for i := range cards {
			for _, id := range cards[i].Linked {
				k, known := at[id]
				if least := min(root[i], root[k]); known && root[i] != root[k] {
					root[i], root[k], changed = least, least, true
				}
			}
		}
	}
	members, numbers, groups := make(map[int]int), make(map[int]int), make([]string, len(cards))
	for i := range cards {
		members[root[i]]++
	}
	for i := range cards {
		if members[root[i]] < 2 {
			continue
		}
		if _, numbered := numbers[root[i]]; !numbered {
			numbers[root[i]] = len(numbers)
		}
		groups[i] = fmt.Sprintf("%s-%d", kind, numbers[root[i]])
	}
	return groups
}
