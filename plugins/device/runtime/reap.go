package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/guard"
	"nomadlike/plugins/device/leftover"
)

// settleEvery is how often memory is measured that the driver has yet to free.
const settleEvery = 200 * time.Millisecond

// reaping is one Reap under way.
type reaping[F any] struct {
	p        *Plugin[F]
	chosen   []structs.Device
	measured map[string]device.DeviceStats // by device, as last seen
}

// measuredAs is the id under which a device is measured: parts that software
// divides have no figures of their own.
func measuredAs(d *structs.Device) string {
	if how := d.Attrs[device.AttrSharing]; how == device.SharingMPS || how == device.SharingTimeSlice {
		return d.Attrs[device.AttrParent]
	}
	return d.ID
}

// cardOf is the id of the card that a device is, or is a part of.
func cardOf(d *structs.Device) string {
	if parent := d.Attrs[device.AttrParent]; parent != "" {
		return parent
	}
	return d.ID
}

// list measures and lists the processes on the chosen devices.
func (r *reaping[F]) list(ctx context.Context, _ []string) (map[string][]device.Process, error) {
	sampled, err := r.p.sample(ctx)
	if err != nil {
		return nil, err
	}
	by := make(map[string]device.DeviceStats, len(sampled))
	for _, each := range sampled {
		by[each.ID] = each
	}
	on := make(map[string][]device.Process)
	for i := range r.chosen {
		stats := by[measuredAs(&r.chosen[i])]
		on[r.chosen[i].ID], r.measured[r.chosen[i].ID] = stats.Processes, stats
	}
	return on, nil
}

// suspicious reports whether a device has memory in use that no process explains.
func (r *reaping[F]) suspicious(one *device.Reaped) bool {
	used, known := r.measured[one.ID].Gauges[device.GaugeMemoryUsed]
	return known && int64(used) > r.p.o.LeftoverMemory && len(one.Unkillable)+len(one.Foreign)+len(one.Live) == 0
}

// settle gives the driver a moment to free the memory of empty devices.
func (r *reaping[F]) settle(ctx context.Context, reaped []device.Reaped) {
	ctx, cancel := context.WithTimeout(ctx, r.p.o.MemorySettle)
	defer cancel()
	tick := time.NewTicker(settleEvery)
	defer tick.Stop()
	for {
		waiting := false
		for i := range reaped {
			waiting = waiting || r.suspicious(&reaped[i])
		}
		if !waiting {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if _, err := r.list(ctx, nil); err != nil {
			return
		}
	}
}

// concludeLocked completes one report and writes what it means into the card's
// health, unless the card's faults were forgotten since heals.
func (r *reaping[F]) concludeLocked(one *device.Reaped, d *structs.Device, heals uint64) {
	if used, known := r.measured[one.ID].Gauges[device.GaugeMemoryUsed]; known {
		one.MemoryUsed = int64(used)
	}
	suspect := r.suspicious(one)
	if len(one.Unkillable) > 0 {
		one.Reason = structs.NewReason("device.leftover_stuck", "pids", processList(one.Unkillable))
	} else if suspect {
		one.Clean = false
		one.Reason = structs.NewReason("device.leftover_memory", "bytes", one.MemoryUsed)
	}
	unit := r.p.v.Common(cardOf(d))
	if unit == nil || r.p.mu.facts == nil || r.p.mu.healed[cardOf(d)] > heals {
		return
	}
	unit.Unkillable = nil
	for _, each := range one.Unkillable {
		unit.Unkillable = append(unit.Unkillable, each.PID)
	}
	unit.Suspect = suspect && d.Attrs[device.AttrParent] == "" // a part says nothing about the whole
}

// Reap ends what dead tasks have left, and looks whether memory is free.
func (p *Plugin[F]) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	chosen, err := p.choose(request.IDs)
	if err != nil {
		return device.ReapReport{}, err
	}
	heals := p.heals()
	r := &reaping[F]{p: p, chosen: chosen, measured: make(map[string]device.DeviceStats)}
	reaped, err := leftover.End(ctx, request, r.list, p.o.Proc)
	if err != nil {
		return device.ReapReport{}, fmt.Errorf("reap %s devices: %w: %w", p.o.Vendor, device.ErrUnavailable, err)
	}
	r.settle(ctx, reaped)
	p.mu.Lock()
	for i := range reaped {
		r.concludeLocked(&reaped[i], &chosen[i], heals)
	}
	switch {
	case p.mu.facts == nil:
	case p.mu.read != p.mu.heals: // the facts are older than some card's health
		p.LookSoon()
	default:
		p.judgeLocked(p.mu.facts, nil)
	}
	p.mu.Unlock()
	p.publish()
	return device.ReapReport{Devices: reaped}, nil
}

func processList(processes []device.Process) string {
	texts := make([]string, len(processes))
	for i, each := range processes {
		texts[i] = fmt.Sprintf("%s[%d]", each.Name, each.PID)
	}
	return strings.Join(texts, ", ")
}

// cardsOf lists the cards of devices, each once.
func cardsOf(chosen []structs.Device) []string {
	var ids []string
	seen := make(map[string]bool)
	for i := range chosen {
		if id := cardOf(&chosen[i]); !seen[id] {
			seen[id] = true
			ids = append(ids, id)
		}
	}
	return ids
}

// Heal resets the cards that wait for it and tests them.
func (p *Plugin[F]) Heal(ctx context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	for _, id := range cardsOf(chosen) {
		if err := p.heal(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// worst returns what a card asks for.
func (p *Plugin[F]) worst(id string) device.Action {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.worstLocked(id)
}

func (p *Plugin[F]) worstLocked(id string) device.Action {
	if unit := p.v.Common(id); unit != nil {
		return unit.Worst()
	}
	return device.ActNone
}

func (p *Plugin[F]) heal(ctx context.Context, id string) error {
	action := p.worst(id)
	if action.TakesWork() || action == device.ActCordon && !p.o.ResetsCordoned {
		return nil // there is nothing that a reset is for
	}
	if action != device.ActReset && action != device.ActCordon {
		return structs.NewError(structs.CodeConflict, "device.heal_needs", "device", id, "action", action)
	}
	if !p.o.MayReset {
		return structs.NewError(structs.CodeConflict, "device.reset_forbidden", "device", id)
	}
	if p.o.Free != nil {
		defer p.o.Free(ctx, id)()
	}
	sampled, err := p.sample(ctx)
	if err != nil {
		return fmt.Errorf("heal device %s: %w: %w", id, device.ErrUnavailable, err)
	}
	for _, each := range sampled {
		if each.ID == id && len(each.Processes) > 0 {
			return fmt.Errorf("heal device %s: %w by %s", id, device.ErrBusy, processList(each.Processes))
		}
	}
	facts, err := p.reset(ctx, id)
	if err != nil {
		return err
	}
	return p.test(id, &facts)
}

// reset resets a card, and reads the cards again.
func (p *Plugin[F]) reset(ctx context.Context, id string) (F, error) {
	failed := func(err error) error {
		return structs.NewError(structs.CodeUnavailable, "device.reset_failed", "device", id, "cause", err)
	}
	if p.o.ResetClosed {
		facts, err := p.resetClosed(ctx, id)
		if err != nil {
			return facts, failed(err)
		}
		return facts, nil
	}
	if err := p.v.Reset(ctx, id, p.Facts()); err != nil {
		var none F
		return none, failed(err)
	}
	facts, err := guard.Run(ctx, p.guard, callLibrary, nil, p.v.Read)
	if err != nil {
		return facts, fmt.Errorf("test device %s after its reset: %w: %w", id, device.ErrUnavailable, err)
	}
	return facts, nil
}

// resetClosed resets a card with the library closed.
func (p *Plugin[F]) resetClosed(ctx context.Context, id string) (F, error) {
	return guard.Run(ctx, p.guard, "exclusive", nil, func() (F, error) {
		var facts F
		// All other calls wait, or are waited for.
		for _, kind := range []string{callLibrary, callSample, CallWait} {
			done, err := p.guard.Take(ctx, kind)
			if err != nil {
				return facts, err
			}
			defer done()
		}
		p.v.Close()
		err := p.v.Reset(ctx, id, p.Facts())
		if reason := p.v.Open(); reason != nil {
			return facts, errors.Join(err, fmt.Errorf("the library cannot be opened again: %s", reason.ID))
		}
		facts, readErr := p.v.Read()
		return facts, errors.Join(err, readErr)
	})
}

// test judges a card after its reset; it is well when nothing that is measured
// is wrong.
func (p *Plugin[F]) test(id string, facts *F) error {
	p.mu.Lock()
	p.forgetLocked(id, false)
	p.mu.read = p.mu.heals
	p.judgeLocked(facts, nil)
	worst := p.worstLocked(id)
	p.mu.Unlock()
	p.publish()
	if !worst.TakesWork() {
		return structs.NewError(structs.CodeConflict, "device.test_failed", "device", id, "action", worst)
	}
	return nil
}

// Clear forgets the faults of cards by an operator's word.
func (p *Plugin[F]) Clear(_ context.Context, ids []string) error {
	chosen, err := p.choose(ids)
	if err != nil {
		return err
	}
	p.mu.Lock()
	for _, id := range cardsOf(chosen) {
		p.forgetLocked(id, true)
	}
	p.mu.Unlock()
	p.publish()
	p.LookSoon()
	return nil
}
