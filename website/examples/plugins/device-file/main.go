// Device-file is a complete device plugin for nomadlike, to begin one's own
// with. Its devices are what a JSON file says, so that it can be tried on any
// machine: a real one asks a vendor's library or tool instead.
//
// Flow: main serves; open reads the configuration and starts a loop that looks
// at the file several times a second and publishes what has changed; the
// methods of cards answer the agent.
//
// Limits: it keeps nothing between its lives, and ends nobody's processes. The
// guide "Device plugins" explains every step.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
)

// name is the plugin's name, that of its file in plugin_dir, and the name
// under which the agent's configuration knows it.
const name = "device-file"

// lookEvery is how often the file is looked at.
const lookEvery = 100 * time.Millisecond

func main() { deviceplugin.Serve(name, open) }

// config is what the agent's configuration says to this plugin.
type config struct {
	File string `json:"file"` // absolute
}

// open makes the plugin. It must not wait for hardware: the agent expects an
// answer soon.
func open(setup deviceplugin.Setup) (device.Plugin, error) {
	var c config
	decoder := json.NewDecoder(bytes.NewReader(setup.Config))
	decoder.DisallowUnknownFields() // a mistyped name is worth an error
	if err := decoder.Decode(&c); err != nil || !filepath.IsAbs(c.File) {
		problem := "want a field \"file\" with an absolute path"
		if err != nil {
			problem = err.Error()
		}
		return nil, structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", name, "problem", problem)
	}
	p := &cards{file: c.File, feed: device.NewFeed(device.Snapshot{})}
	p.look()
	go p.run() // for the life of the process
	return p, nil
}

// card is one device in the file.
type card struct {
	ID     string  `json:"id"`
	Model  string  `json:"model"`
	Memory int64   `json:"memory"`
	Path   string  `json:"path"`            // of its device node
	Group  string  `json:"group,omitempty"` // devices of one group are close together
	Load   float64 `json:"load,omitempty"`  // 0 to 1
	// Fault says that something is wrong; Action what is to be done about it:
	// "cordon", "reset", "reboot" or "service".
	Fault  string        `json:"fault,omitempty"`
	Action device.Action `json:"action,omitempty"`
}

// cards is the plugin. Its methods may be called from many goroutines: what
// changes is in the feed, which has a lock of its own.
type cards struct {
	file string
	feed *device.Feed
}

var _ device.Plugin = (*cards)(nil)

func (p *cards) run() {
	for range time.Tick(lookEvery) {
		p.look()
	}
}

// look reads the file and publishes. The feed wakes nobody when nothing has
// changed.
func (p *cards) look() {
	listed, err := p.read()
	snapshot := device.Snapshot{At: time.Now(), Attributes: map[string]string{device.NodeSource: p.file}}
	switch {
	case errors.Is(err, os.ErrNotExist):
		// No hardware is no fault: it is said, and that is all.
		snapshot.Absent = structs.NewReason("device.fault", "device", p.file, "code", "absent")
	case err != nil:
		// Not being able to look is: the agent keeps the devices that it
		// knows, and gives them no new work.
		snapshot.Blind = structs.NewReason("device.library_fails", "plugin", name, "cause", err)
	}
	before := p.feed.Newest()
	for i, c := range listed {
		d := structs.Device{
			ID: c.ID, Index: i, Kind: "example/card", Model: c.Model, Memory: c.Memory, NUMANode: -1, LinkGroup: c.Group,
			Healthy: true, Driver: "1.0", Attrs: map[string]string{"path": c.Path},
		}
		if c.Fault != "" {
			reason := structs.NewReason("device.fault", "device", c.ID, "code", c.Fault)
			device.Judge(&d, c.Action, reason)
			d.Attrs[device.AttrFault] = c.Fault
			if !known(before.Devices, c) {
				snapshot.Events = append(snapshot.Events, device.Event{At: snapshot.At, DeviceID: c.ID, Code: c.Fault, Action: c.Action, Reason: reason})
			}
		}
		snapshot.Devices = append(snapshot.Devices, d)
	}
	p.feed.Publish(snapshot)
}

// known reports whether a fault was told before.
func known(devices []structs.Device, c card) bool {
	return slices.ContainsFunc(devices, func(d structs.Device) bool { return d.ID == c.ID && d.Attrs[device.AttrFault] == c.Fault })
}

func (p *cards) read() ([]card, error) {
	text, err := os.ReadFile(p.file)
	if err != nil {
		return nil, err
	}
	var listed []card
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("read %s: %w", p.file, err)
	}
	return listed, nil
}

// Fingerprint reports the devices, now and after every change.
func (p *cards) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	return p.feed.Follow(ctx), nil
}

// Reserve says what a task needs so that it sees these devices and no others:
// device nodes that it may open, and a variable that names them.
func (p *cards) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	chosen, err := p.find(ids)
	if err != nil {
		return device.Reservation{}, err
	}
	var r device.Reservation
	var names []string
	for _, d := range chosen {
		path := d.Attrs["path"]
		r.Nodes = append(r.Nodes, device.Node{HostPath: path, TaskPath: path, Access: "rw"})
		names = append(names, d.ID)
	}
	r.Env = map[string]string{"EXAMPLE_VISIBLE_CARDS": strings.Join(names, ",")}
	return r, nil
}

// find returns devices by id.
func (p *cards) find(ids []string) ([]structs.Device, error) {
	all := p.feed.Newest().Devices
	var chosen []structs.Device
	for _, id := range ids {
		at := slices.IndexFunc(all, func(d structs.Device) bool { return d.ID == id })
		if at < 0 {
			return nil, fmt.Errorf("card %.80q: %w", id, device.ErrUnknownDevice)
		}
		chosen = append(chosen, all[at])
	}
	return chosen, nil
}

// Stats measures the devices, until ctx ends.
func (p *cards) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	go func() {
		defer close(measured)
		tick := time.NewTicker(max(every, device.StatsEveryMin))
		defer tick.Stop()
		for {
			stats := device.Stats{At: time.Now()}
			if listed, err := p.read(); err == nil {
				for _, c := range listed {
					stats.Devices = append(stats.Devices, device.DeviceStats{ID: c.ID, Gauges: map[string]float64{
						device.GaugeUtilization: c.Load, device.GaugeMemoryTotal: float64(c.Memory),
					}})
				}
			}
			select {
			case measured <- stats:
			case <-ctx.Done():
				return
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

// Reap is called before a device is used again. These devices hold nothing of
// dead tasks; a real plugin uses package plugins/device/leftover here.
func (p *cards) Reap(_ context.Context, request device.Reaping) (device.ReapReport, error) {
	if _, err := p.find(request.IDs); err != nil {
		return device.ReapReport{}, err
	}
	var report device.ReapReport
	for _, id := range request.IDs {
		report.Devices = append(report.Devices, device.Reaped{ID: id, MemoryUsed: -1, Clean: true})
	}
	return report, nil
}
