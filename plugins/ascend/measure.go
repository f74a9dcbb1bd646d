package ascend

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
)

const (
	resetLimit = 5 * time.Minute
	// memorySettle is how long the driver may take to free memory after the
	// last process has ended.
	memorySettle = 3 * time.Second
	settleEvery  = 200 * time.Millisecond
)

// sample measures chips by device id.
func (p *Plugin) sample(ctx context.Context) ([]device.DeviceStats, error) {
	samples, err := guard.Run(ctx, p.guard, "sample", nil, p.o.Library.Sample)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	facts := p.mu.facts
	p.mu.Unlock()
	if facts == nil {
		return nil, nil
	}
	var all []device.DeviceStats
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		if s, measured := samples[chip.Key]; measured && !chip.Gone && !p.s.ignored(chip) {
			all = append(all, device.DeviceStats{ID: chip.ID, Gauges: s.Gauges, Processes: device.BoundProcesses(s.Processes)})
		}
	}
	return all, nil
}

// Stats measures all chips.
func (p *Plugin) Stats(ctx context.Context, every time.Duration) (<-chan device.Stats, error) {
	measured := make(chan device.Stats)
	go func() { // ends with ctx
		defer close(measured)
		tick := time.NewTicker(max(every, device.StatsEveryMin))
		defer tick.Stop()
		for {
			p.mu.Lock()
			ready := p.mu.facts != nil && p.mu.absent == nil
			p.mu.Unlock()
			if ready {
				if sampled, err := p.sample(ctx); err == nil {
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

// Reap ends what dead tasks have left, and looks whether memory is free.
func (p *Plugin) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	if _, err := p.choose(request.IDs); err != nil {
		return device.ReapReport{}, err
	}
	measured := make(map[string]device.DeviceStats)
	list := func(ctx context.Context, _ []string) (map[string][]device.Process, error) {
		all, err := p.sample(ctx)
		if err != nil {
			return nil, err
		}
		on := make(map[string][]device.Process)
		for _, each := range all {
			on[each.ID], measured[each.ID] = each.Processes, each
		}
		return on, nil
	}
	reaped, err := leftover.End(ctx, request, list, p.o.Proc)
	if err != nil {
		return device.ReapReport{}, fmt.Errorf("reap Ascend devices: %w: %w", device.ErrUnavailable, err)
	}
	p.settle(ctx, reaped, list, measured)
	p.mu.Lock()
	for i := range reaped {
		p.judgeLocked(&reaped[i], measured[reaped[i].ID])
	}
	if p.mu.facts != nil {
		p.stepLocked(p.mu.facts)
	}
	p.mu.Unlock()
	p.publish()
	return device.ReapReport{Devices: reaped}, nil
}

// suspicious reports whether a chip has memory in use that no process explains.
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
	for {
		waiting := false
		for i := range reaped {
			waiting = waiting || p.suspicious(&reaped[i], measured[reaped[i].ID])
		}
		if !waiting {
			return
		}
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

// judgeLocked completes one report and writes what it means into the chip's
// health.
func (p *Plugin) judgeLocked(r *device.Reaped, stats device.DeviceStats) {
	if used, known := stats.Gauges[device.GaugeMemoryUsed]; known {
		r.MemoryUsed = int64(used)
	}
	suspect := p.suspicious(r, stats)
	if len(r.Stuck) > 0 {
		r.Reason = structs.NewReason("device.leftover_stuck", "pids", processList(r.Stuck))
	} else if suspect {
		r.Clean = false
		r.Reason = structs.NewReason("device.leftover_memory", "bytes", r.MemoryUsed)
	}
	unit := p.mu.health.Units[r.ID]
	if unit == nil {
		return
	}
	unit.Suspect, unit.Stuck = suspect, nil
	for _, each := range r.Stuck {
		unit.Stuck = append(unit.Stuck, each.PID)
	}
}

func processList(processes []device.Process) string {
	texts := make([]string, len(processes))
	for i, each := range processes {
		texts[i] = fmt.Sprintf("%s[%d]", each.Name, each.PID)
	}
	return strings.Join(texts, ", ")
}

// Heal resets the chips that wait for it, where the configuration allows it,
// and looks at them again.
func (p *Plugin) Heal(ctx context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	for _, d := range chosen {
		if err := p.heal(ctx, d.ID); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plugin) heal(ctx context.Context, id string) error {
	p.mu.Lock()
	action := p.mu.health.Worst(id)
	var key Key
	if unit := p.mu.health.Units[id]; unit != nil {
		key = unit.Chip.Key
	}
	p.mu.Unlock()
	if action.TakesWork() {
		return nil // there is nothing that a reset is for
	}
	if action != device.ActReset && action != device.ActCordon {
		return structs.NewError(structs.CodeConflict, "device.heal_needs", "device", id, "action", action)
	}
	if p.s.Reset == resetNever {
		return structs.NewError(structs.CodeConflict, "device.reset_forbidden", "device", id)
	}
	all, err := p.sample(ctx)
	if err != nil {
		return fmt.Errorf("heal device %s: %w: %w", id, device.ErrUnavailable, err)
	}
	for _, each := range all {
		if each.ID == id && len(each.Processes) > 0 {
			return fmt.Errorf("heal device %s: %w by %s", id, device.ErrBusy, processList(each.Processes))
		}
	}
	if err := p.o.Reset(ctx, key); err != nil {
		return structs.NewError(structs.CodeUnavailable, "device.reset_failed", "device", id, "cause", err)
	}
	facts, err := guard.Run(ctx, p.guard, "library", nil, p.o.Library.Read)
	if err != nil {
		return fmt.Errorf("test device %s after its reset: %w: %w", id, device.ErrUnavailable, err)
	}
	p.mu.Lock()
	p.mu.heals++
	p.mu.events = append(p.mu.events, p.mu.health.Forget(id, time.Now())...)
	fillPorts(&facts, p.mu.ports)
	p.stepLocked(&facts)
	worst := p.mu.health.Worst(id)
	p.mu.Unlock()
	p.publish()
	if !worst.TakesWork() {
		return structs.NewError(structs.CodeConflict, "device.test_failed", "device", id, "action", worst)
	}
	return nil
}

// Clear forgets the faults of chips by an operator's word.
func (p *Plugin) Clear(_ context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.mu.heals++
	for _, d := range chosen {
		p.mu.events = append(p.mu.events, p.mu.health.Forget(d.ID, time.Now())...)
	}
	p.mu.Unlock()
	p.publish()
	select {
	case p.lookNow <- struct{}{}:
	default:
	}
	return nil
}

// smiReset resets with the vendor's own tool, in band, and answers the tool's
// question whether that is meant.
func smiReset(path string) func(context.Context, Key) error {
	return func(ctx context.Context, key Key) error {
		tool, err := findSMI(path)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, resetLimit)
		defer cancel()
		output, err := runSMI(ctx, tool, "set", "-t", "reset", "-i", strconv.Itoa(key.Card), "-c", strconv.Itoa(key.Chip), "-m", "1")
		if err == nil && strings.Contains(strings.ToLower(output), "fail") {
			err = errors.New(strings.TrimSpace(output[:min(len(output), 300)]))
		}
		return err
	}
}
