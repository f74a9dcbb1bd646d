// Package host provides the client with its drivers and device plugins: those built
// into the agent, and those of plugin_dir, each of these a program of its own
// that is launched, watched and restarted here.
//
// Flow: agent opens a Host with what its configuration says and registers the
// built-in drivers; client asks for a driver by name and uses it. Behind the
// name of an external one stands a Plugin: its loop starts the program,
// recovers the tasks that it had, pings it, and starts it anew, after a pause
// that grows, when it dies or is silent. Calls made meanwhile wait a moment
// and then fail with driver.ErrUnavailable; a Wait outlasts the restart.
//
// Device plugins run as programs of their own always, also those that the
// agent carries (see Builtins): vendors' libraries crash and hang. Behind the
// name of one stands a DevicePlugin, which configures each new program and
// keeps the devices known, without new work, while there is none.
//
// A plugin program dies with the agent (its tasks do not: that is the
// driver's contract), and a new agent starts a new one and recovers the tasks
// by their handles. go-plugin's own way of attaching to a running program is
// not used, since it would give up the mutual TLS made for each pair.
//
// Limits: Linux. plugin_dir and its programs must belong to root or the
// agent's user and be writable by nobody else; programs are executed through
// the descriptor that was checked, so they must be binaries, not scripts.
package host

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"nomadlike/plugins/driver"
)

// ErrNoDriver is returned for a name under which there is no driver.
var ErrNoDriver = errors.New("no such driver")

// Config says which external plugins there are.
type Config struct {
	// PluginDir holds the programs; "" means that there are none.
	PluginDir string
	// RunDir takes the plugins' sockets; it is made with mode 0700.
	RunDir string
	// Plugins are started, no others: a file in PluginDir alone does nothing.
	Plugins []PluginConfig
	// Devices are the device plugins that are started.
	Devices []DeviceConfig
	// StateDir is absolute; device plugins keep what must outlive them in
	// directories below it. Needed when there are Devices.
	StateDir string
	// BuiltinCommand runs built-in device plugins instead of the program that
	// the agent embeds: the path of a program and its first arguments, to
	// which the plugin's name is added. Empty: the embedded program.
	BuiltinCommand []string
	Logger         *slog.Logger // nil: no logs

	timing timing // zero: the defaults
}

// PluginConfig names one external driver.
type PluginConfig struct {
	Name   string   // of the driver and of its file in PluginDir
	Args   []string // after the program's name
	Env    []string // complete: the agent's own environment is not passed on
	SHA256 string   // of the file, in hex; "" means any contents
}

// Host holds the drivers of one node.
type Host struct {
	config Config

	mu struct {
		sync.Mutex
		drivers map[string]driver.Driver
		devices map[string]*DevicePlugin
		plugins []interface{ close() }
	}
}

// New starts the configured plugins and returns without waiting for them. A
// plugin that may not be used is an error: its configuration was meant.
func New(config Config) (*Host, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.timing == (timing{}) {
		config.timing = defaultTiming()
	}
	h := &Host{config: config}
	h.mu.drivers = make(map[string]driver.Driver)
	h.mu.devices = make(map[string]*DevicePlugin)
	if len(config.Plugins) == 0 && len(config.Devices) == 0 {
		return h, nil
	}
	if err := makeRunDir(config.RunDir); err != nil {
		return nil, err
	}
	for _, each := range config.Plugins {
		program, err := openProgram(config.PluginDir, each.Name, each.SHA256)
		if err != nil {
			h.Close()
			return nil, fmt.Errorf("open driver plugin %q: %w", each.Name, err)
		}
		program.close() // opened anew, and checked anew, at each start
		if _, taken := h.mu.drivers[each.Name]; taken {
			h.Close()
			return nil, fmt.Errorf("open driver plugin %q: named twice", each.Name)
		}
		p := newPlugin(config, each)
		h.mu.drivers[each.Name] = p
		h.mu.plugins = append(h.mu.plugins, p)
	}
	for _, each := range config.Devices {
		if _, taken := h.mu.devices[each.Name]; taken {
			h.Close()
			return nil, fmt.Errorf("open device plugin %q: named twice", each.Name)
		}
		p, err := newDevicePlugin(config, each)
		if err != nil {
			h.Close()
			return nil, err
		}
		h.mu.devices[each.Name] = p
		h.mu.plugins = append(h.mu.plugins, p)
	}
	return h, nil
}

// Register adds a built-in driver. The host does not close it.
func (h *Host) Register(name string, d driver.Driver) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, taken := h.mu.drivers[name]; taken {
		return fmt.Errorf("register driver %q: the name is taken", name)
	}
	h.mu.drivers[name] = d
	return nil
}

// Driver returns a driver by the name that job files use.
func (h *Host) Driver(name string) (driver.Driver, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.mu.drivers[name]
	if !ok {
		return nil, fmt.Errorf("driver %q: %w", name, ErrNoDriver)
	}
	return d, nil
}

// Device returns a device plugin by its name.
func (h *Host) Device(name string) (*DevicePlugin, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d, ok := h.mu.devices[name]
	if !ok {
		return nil, fmt.Errorf("device plugin %q: %w", name, ErrNoDevicePlugin)
	}
	return d, nil
}

// DeviceNames lists the device plugins in order.
func (h *Host) DeviceNames() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.mu.devices))
}

// Names lists the drivers in order.
func (h *Host) Names() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Sorted(maps.Keys(h.mu.drivers))
}

// Close ends the plugin programs and waits for them. Tasks go on.
func (h *Host) Close() error {
	h.mu.Lock()
	plugins := h.mu.plugins
	h.mu.plugins = nil
	h.mu.Unlock()
	var all sync.WaitGroup
	for _, p := range plugins {
		all.Go(p.close)
	}
	all.Wait()
	return nil
}
