package nvidia

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
)

const (
	// resetLimit bounds nvidia-smi, which may hang with the driver.
	resetLimit  = 2 * time.Minute
	outputMax   = 4 << 10
	settleEvery = 200 * time.Millisecond
	// memorySettle is how long the driver may take to free memory after the
	// last process has ended.
	memorySettle = 2 * time.Second
)

// sample measures cards by device id.
func (p *Plugin) sample(ctx context.Context) (map[string]device.DeviceStats, error) {
	sampled, err := guard.Run(ctx, p.guard, "sample", nil, p.o.Library.Sample)
	if err != nil {
		return nil, err
	}
	by := make(map[string]device.DeviceStats, len(sampled))
	for _, each := range sampled {
		by[each.ID] = each
	}
	return by, nil
}

// source is the id under which a device is measured: parts by configuration
// have no figures of their own.
func source(d *structs.Device) string {
	if d.Kind == device.KindNVIDIAShared {
		return d.Attrs[device.AttrParent]
	}
	return d.ID
}

// Reap ends what dead tasks have left, and looks whether memory is free.
func (p *Plugin) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	chosen, err := p.choose(request.IDs)
	if err != nil {
		return device.ReapReport{}, err
	}
	heals := p.heals()
	measured := make(map[string]device.DeviceStats)
	list := func(ctx context.Context, _ []string) (map[string][]device.Process, error) {
		by, err := p.sample(ctx)
		if err != nil {
			return nil, err
		}
		on := make(map[string][]device.Process)
		for i := range chosen {
			stats := by[source(&chosen[i])]
			on[chosen[i].ID] = stats.Processes
			measured[chosen[i].ID] = stats
		}
		return on, nil
	}
	reaped, err := leftover.End(ctx, request, list, p.o.Proc)
	if err != nil {
		return device.ReapReport{}, fmt.Errorf("reap NVIDIA devices: %w: %w", device.ErrUnavailable, err)
	}
	if p.wantsSettling(reaped, measured) {
		p.settle(ctx, reaped, list, measured)
	}
	for i := range reaped {
		p.judge(&reaped[i], &chosen[i], measured[chosen[i].ID], heals)
	}
	p.publish()
	return device.ReapReport{Devices: reaped}, nil
}

// wantsSettling reports whether an empty device still has memory in use.
func (p *Plugin) wantsSettling(reaped []device.Reaped, measured map[string]device.DeviceStats) bool {
	for i := range reaped {
		if p.suspicious(&reaped[i], measured[reaped[i].ID]) {
			return true
		}
	}
	return false
}

// suspicious reports whether a device has memory in use that no process explains.
func (p *Plugin) suspicious(r *device.Reaped, stats device.DeviceStats) bool {
	used, known := stats.Gauges[device.GaugeMemoryUsed]
	return known && int64(used) > p.s.LeftoverMemory && len(r.Stuck)+len(r.Foreign)+len(r.Live) == 0
}

// settle gives the driver a moment to free memory.
func (p *Plugin) settle(ctx context.Context, reaped []device.Reaped, list leftover.List, measured map[string]device.DeviceStats) {
	ctx, cancel := context.WithTimeout(ctx, memorySettle)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for p.wantsSettling(reaped, measured) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if _, err := list(ctx, nil); err != nil {
			return
		}
	}
}

// judge completes one report and writes what it means into the card's health,
// unless the card's faults were forgotten since heals.
func (p *Plugin) judge(r *device.Reaped, d *structs.Device, stats device.DeviceStats, heals uint64) {
	if used, known := stats.Gauges[device.GaugeMemoryUsed]; known {
		r.MemoryUsed = int64(used)
	}
	uuid := d.ID
	if parent := d.Attrs[device.AttrParent]; parent != "" {
		uuid = parent
	}
	suspect := p.suspicious(r, stats)
	if len(r.Stuck) > 0 {
		r.Reason = structs.NewReason("device.leftover_stuck", "pids", processList(r.Stuck))
	} else if suspect {
		r.Clean = false
		r.Reason = structs.NewReason("device.leftover_memory", "bytes", r.MemoryUsed)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	unit := p.mu.health.Units[uuid]
	if unit == nil || p.mu.facts == nil || p.mu.healed[uuid] > heals {
		return
	}
	unit.Stuck = nil
	for _, each := range r.Stuck {
		unit.Stuck = append(unit.Stuck, each.PID)
	}
	unit.Suspect = suspect && d.Attrs[device.AttrParent] == "" // a part says nothing about the whole
	if p.mu.read != p.mu.heals {                               // the facts are older than some card's health
		p.lookSoon()
		return
	}
	events := p.mu.health.Step(Input{Now: time.Now(), Facts: p.mu.facts}, p.s.actions)
	p.mu.events = append(p.mu.events, events...)
}

func processList(processes []device.Process) string {
	texts := make([]string, len(processes))
	for i, each := range processes {
		texts[i] = fmt.Sprintf("%s[%d]", each.Name, each.PID)
	}
	return strings.Join(texts, ", ")
}

// cardsOf gives the physical cards of devices, each once.
func cardsOf(chosen []structs.Device) []string {
	var uuids []string
	seen := make(map[string]bool)
	for _, d := range chosen {
		uuid := d.ID
		if parent := d.Attrs[device.AttrParent]; parent != "" {
			uuid = parent
		}
		if !seen[uuid] {
			seen[uuid] = true
			uuids = append(uuids, uuid)
		}
	}
	return uuids
}

// Heal resets the cards that wait for it and tests them.
func (p *Plugin) Heal(ctx context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	for _, uuid := range cardsOf(chosen) {
		if err := p.heal(ctx, uuid); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugin) heal(ctx context.Context, uuid string) error {
	p.mu.Lock()
	action := p.mu.health.Worst(uuid)
	p.mu.Unlock()
	switch action {
	case device.ActReset:
	case device.ActNone, device.ActNotice, device.ActTask, device.ActCordon:
		return nil // there is nothing that a reset is for
	default:
		return structs.NewError(structs.CodeConflict, "device.heal_needs", "device", uuid, "action", action)
	}
	if p.s.Reset == resetNever {
		return structs.NewError(structs.CodeConflict, "device.reset_forbidden", "device", uuid)
	}
	defer p.mps.without(ctx, uuid)()
	by, err := p.sample(ctx)
	if err != nil {
		return fmt.Errorf("heal device %s: %w: %w", uuid, device.ErrUnavailable, err)
	}
	if processes := by[uuid].Processes; len(processes) > 0 {
		return fmt.Errorf("heal device %s: %w by %s", uuid, device.ErrBusy, processList(processes))
	}
	facts, err := p.resetCard(ctx, uuid)
	if err != nil {
		return structs.NewError(structs.CodeUnavailable, "device.reset_failed", "device", uuid, "cause", err)
	}
	return p.test(uuid, &facts)
}

// resetCard resets a card with the library closed, since the driver refuses
// while anybody has the card open, and looks at the cards again.
func (p *Plugin) resetCard(ctx context.Context, uuid string) (Facts, error) {
	return guard.Run(ctx, p.guard, "exclusive", nil, func() (Facts, error) {
		// All other calls wait, or are waited for.
		for _, kind := range []string{"read", "sample", "wait"} {
			done, err := p.guard.Take(ctx, kind)
			if err != nil {
				return Facts{}, err
			}
			defer done()
		}
		p.o.Library.Close()
		err := p.o.Reset(ctx, uuid)
		if reason := p.o.Library.Open(); reason != nil {
			return Facts{}, errors.Join(err, fmt.Errorf("the library cannot be opened again: %s", reason.ID))
		}
		facts, readErr := p.o.Library.Read()
		return facts, errors.Join(err, readErr)
	})
}

// test judges a card after its reset; it is well when nothing that is measured
// is wrong.
func (p *Plugin) test(uuid string, facts *Facts) error {
	p.mu.Lock()
	p.forgetLocked(uuid, false)
	events := p.mu.health.Step(Input{Now: time.Now(), Facts: facts}, p.s.actions)
	p.mu.facts, p.mu.read = p.mu.health.Complete(facts), p.mu.heals
	p.mu.events = append(p.mu.events, events...)
	worst := p.mu.health.Worst(uuid)
	p.mu.Unlock()
	p.publish()
	if !worst.TakesWork() {
		return structs.NewError(structs.CodeConflict, "device.test_failed", "device", uuid, "action", worst)
	}
	return nil
}

// Clear forgets the faults of cards by an operator's word.
func (p *Plugin) Clear(_ context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	p.mu.Lock()
	for _, uuid := range cardsOf(chosen) {
		p.forgetLocked(uuid, true)
	}
	p.mu.Unlock()
	p.publish()
	p.lookSoon()
	return nil
}

// smiReset resets with the vendor's own tool.
func smiReset(path string) func(context.Context, string) error {
	return func(ctx context.Context, uuid string) error {
		tool, err := findSMI(path)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, resetLimit)
		defer cancel()
		cmd := exec.CommandContext(ctx, tool, "--gpu-reset", "--id="+uuid)
		cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		cmd.WaitDelay = time.Second
		output, err := cmd.CombinedOutput()
		if err != nil {
			return fmt.Errorf("run %s: %w: %.*s", tool, err, outputMax, strings.TrimSpace(string(output)))
		}
		return nil
	}
}

func findSMI(path string) (string, error) {
	candidates := []string{"/usr/bin/nvidia-smi", "/usr/local/bin/nvidia-smi", "/bin/nvidia-smi", "/usr/local/nvidia/bin/nvidia-smi"}
	if path != "" {
		candidates = []string{path}
	}
	for _, each := range candidates {
		if info, err := os.Stat(each); err == nil && info.Mode().IsRegular() && filepath.IsAbs(each) {
			return each, nil
		}
	}
	return "", errors.New("nvidia-smi is not installed here")
}
