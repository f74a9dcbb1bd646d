package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
)

// DeviceConfig names one device plugin.
type DeviceConfig struct {
	// Name of the plugin; of its file in PluginDir, or of the built-in.
	Name string
	// Builtin runs the plugin of this name that the agent embeds. Args and
	// SHA256 do not apply then.
	Builtin bool
	Args    []string // after the program's name
	Env     []string // complete: the agent's own environment is not passed on
	SHA256  string   // of the file, in hex; "" means any contents
	// Config is JSON in the plugin's own form; empty: its defaults.
	Config []byte
}

// ErrNoDevicePlugin is returned for a name under which there is no device
// plugin.
var ErrNoDevicePlugin = errors.New("no such device plugin")

// deviceContract is how device plugins are spoken to.
func deviceContract(name string) contract[*deviceplugin.Client] {
	return contract[*deviceplugin.Client]{
		what: "device plugin", version: deviceplugin.ProtocolVersion, unavailable: device.ErrUnavailable,
		service: deviceplugin.Name, handshake: deviceplugin.Handshake(), adapter: &deviceplugin.Adapter{PluginName: name},
		dial: deviceplugin.DialOptions(),
	}
}

// DevicePlugin is a device plugin that outlives the deaths of its program. It
// implements device.Plugin and device.Healer; its methods may be called from
// any goroutine. While the program is down its devices stay known, cordoned:
// work that runs on them goes on.
type DevicePlugin struct {
	process[*deviceplugin.Client]
	setup deviceplugin.Setup

	last struct {
		sync.Mutex
		snapshot device.Snapshot // the newest that was not blind, without events
	}
}

var (
	_ device.Plugin = (*DevicePlugin)(nil)
	_ device.Healer = (*DevicePlugin)(nil)
)

// newDevicePlugin starts a device plugin, whose state is kept below stateDir.
func newDevicePlugin(config Config, each DeviceConfig) (*DevicePlugin, error) {
	from := external(config, each.Name, each.SHA256, each.Args, each.Env)
	if each.Builtin {
		if !validName(each.Name) {
			return nil, fmt.Errorf("open device plugin %.80q: not a name", each.Name)
		}
		from = builtin(config, each.Name, each.Env)
	} else {
		program, err := from.open()
		if err != nil {
			return nil, fmt.Errorf("open device plugin %q: %w", each.Name, err)
		}
		program.close() // opened anew, and checked anew, at each start
	}
	if !filepath.IsAbs(config.StateDir) {
		return nil, fmt.Errorf("open device plugin %q: state directory %q is not absolute", each.Name, config.StateDir)
	}
	stateDir := filepath.Join(config.StateDir, "device-"+each.Name)
	if err := os.MkdirAll(stateDir, 0o700); err != nil {
		return nil, fmt.Errorf("open device plugin %q: %w", each.Name, err)
	}
	p := &DevicePlugin{
		process: process[*deviceplugin.Client]{
			contract: deviceContract(each.Name), source: from, timing: config.timing, runDir: config.RunDir,
			log: config.Logger.With(logkey.Plugin, each.Name),
		},
		setup: deviceplugin.Setup{Config: each.Config, StateDir: stateDir},
	}
	p.prepare = func(ctx context.Context, to *deviceplugin.Client) error { return to.Configure(ctx, p.setup) }
	p.start()
	return p, nil
}

// Fingerprint reports what the plugin does, over all lives of its program.
// The first snapshot comes at once when the program runs, or after a moment.
func (p *DevicePlugin) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	snapshots := make(chan device.Snapshot)
	go func() { // ends with ctx, or with the plugin's loop
		defer close(snapshots)
		silent := time.Now()
		for ctx.Err() == nil && p.life.Err() == nil {
			silent = p.fingerprintOnce(ctx, snapshots, silent)
		}
	}()
	return snapshots, nil
}

// fingerprintOnce follows one life of the program, and then says that it is
// down until the next one answers. Nothing has been heard since silent; it
// returns since when nothing has been heard after it. A life that ends before it
// has said anything ends no silence: a program that dies at each look would
// otherwise be waited for anew each time, and its cards be thought well.
func (p *DevicePlugin) fingerprintOnce(ctx context.Context, to chan<- device.Snapshot, silent time.Time) time.Time {
	send := func(snapshot device.Snapshot) bool {
		select {
		case to <- snapshot:
			return true
		case <-ctx.Done():
		case <-p.life.Done():
		}
		return false
	}
	end, err := p.get(ctx, p.timing.patience-time.Since(silent))
	if err != nil {
		_, reason, change := p.now()
		if ctx.Err() != nil || p.life.Err() != nil || !send(p.blind(reason)) {
			return silent
		}
		select {
		case <-change:
		case <-ctx.Done():
		case <-p.life.Done():
		}
		return silent
	}
	snapshots, err := end.Fingerprint(ctx)
	if err == nil {
		for snapshot := range snapshots {
			if !send(p.complete(snapshot)) {
				return silent
			}
			silent = time.Time{}
		}
	}
	if silent.IsZero() {
		silent = time.Now()
	}
	// Its end is told only when it lasts: most restarts take no time.
	current, _, change := p.now()
	if current == end { // not noticed yet that it has died
		timer := time.NewTimer(exitPoll)
		defer timer.Stop()
		select {
		case <-change:
		case <-timer.C: // the stream alone has ended: ask anew
		case <-ctx.Done():
		case <-p.life.Done():
		}
	}
	return silent
}

// complete adds the devices that a blind plugin cannot name.
func (p *DevicePlugin) complete(snapshot device.Snapshot) device.Snapshot {
	p.last.Lock()
	defer p.last.Unlock()
	if snapshot.Blind == nil {
		kept := snapshot
		kept.Events = nil
		kept.Devices = device.Clone(snapshot.Devices)
		p.last.snapshot = kept
		return snapshot
	}
	if len(snapshot.Devices) == 0 {
		snapshot.Devices = device.Cordoned(p.last.snapshot.Devices, snapshot.Blind)
	}
	return snapshot
}

// blind is the snapshot of a plugin whose program is down.
func (p *DevicePlugin) blind(why string) device.Snapshot {
	reason := structs.NewReason("device.plugin_down", "plugin", p.source.name, "cause", why)
	if ofLoader(why) {
		reason.ID = "device.plugin_library"
	}
	p.last.Lock()
	attributes := p.last.snapshot.Attributes
	p.last.Unlock()
	return p.complete(device.Snapshot{At: time.Now(), Blind: reason, Attributes: attributes})
}

// ofLoader reports whether a program could not be started for the libraries of the
// machine: the loader of glibc says so, or the kernel does not find the loader.
func ofLoader(why string) bool {
	return strings.Contains(why, "' not found (required by") || strings.Contains(why, "error while loading shared libraries") ||
		strings.Contains(why, "fork/exec") && strings.Contains(why, "no such file or directory")
}

// Reserve asks what a task needs to see devices.
func (p *DevicePlugin) Reserve(ctx context.Context, ids []string) (device.Reservation, error) {
	end, err := p.up(ctx)
	if err != nil {
		return device.Reservation{}, err
	}
	return end.Reserve(ctx, ids)
}

// Stats measures over all lives of the program.
func (p *DevicePlugin) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	go func() { // ends with ctx, or with the plugin's loop
		defer close(measured)
		for ctx.Err() == nil && p.life.Err() == nil {
			end, err := p.up(ctx)
			if err != nil {
				continue // up has waited a moment
			}
			stream, err := end.Stats(ctx, every)
			if err != nil {
				p.settle(ctx)
				continue
			}
			for stats := range stream {
				select {
				case measured <- stats:
				case <-ctx.Done():
				case <-p.life.Done():
				}
			}
			p.settle(ctx)
		}
	}()
	return measured, nil
}

// settle leaves the loop a moment to notice that the program has died.
func (p *DevicePlugin) settle(ctx context.Context) {
	timer := time.NewTimer(exitPoll)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-p.life.Done():
	}
}

// Reap has devices cleaned.
func (p *DevicePlugin) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	end, err := p.up(ctx)
	if err != nil {
		return device.ReapReport{}, err
	}
	return end.Reap(ctx, request)
}

// Heal has devices reset and tested.
func (p *DevicePlugin) Heal(ctx context.Context, ids []string) error {
	end, err := p.up(ctx)
	if err != nil {
		return err
	}
	return end.Heal(ctx, ids)
}

// Clear has the faults of devices forgotten.
func (p *DevicePlugin) Clear(ctx context.Context, ids []string) error {
	end, err := p.up(ctx)
	if err != nil {
		return err
	}
	return end.Clear(ctx, ids)
}
