package runtime

import (
	"context"
	"fmt"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/leftover"
)

// settleEvery is how often memory is measured that the driver has yet to free.
const settleEvery = 200 * time.Millisecond

// reaping is one Reap under way.
type reaping struct {
	sample   func(context.Context) ([]device.DeviceStats, error)
	usedMax  int64 // bytes in use on a device that nobody uses
	chosen   []structs.Device
	measured map[string]device.DeviceStats // by device, as last seen
}

// leavings are what dead tasks have left on a device, for the health of its card.
type leavings struct {
	card       string
	unkillable []int
	suspect    bool
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
func (r *reaping) list(ctx context.Context, _ []string) (map[string][]device.Process, error) {
	sampled, err := r.sample(ctx)
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
func (r *reaping) suspicious(one *device.Reaped) bool {
	used, known := r.measured[one.ID].Gauges[device.GaugeMemoryUsed]
	return known && int64(used) > r.usedMax && len(one.Unkillable)+len(one.Foreign)+len(one.Live) == 0
}

// settle leaves the driver a moment to free the memory of empty devices.
func (r *reaping) settle(ctx context.Context, limit time.Duration, reaped []device.Reaped) {
	ctx, cancel := context.WithTimeout(ctx, limit)
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

// conclude completes one report, and returns what it means for the card.
func (r *reaping) conclude(one *device.Reaped, d *structs.Device) leavings {
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
	left := leavings{card: cardOf(d), suspect: suspect && d.Attrs[device.AttrParent] == ""} // a part says nothing about the whole
	for _, each := range one.Unkillable {
		left.unkillable = append(left.unkillable, each.PID)
	}
	return left
}

// Reap ends what dead tasks have left, and looks whether memory is free.
func (h *healer[F]) Reap(ctx context.Context, request device.Reaping) (device.ReapReport, error) {
	chosen, err := h.known.choose(request.IDs)
	if err != nil {
		return device.ReapReport{}, err
	}
	heals := h.known.heals()
	r := &reaping{sample: h.meter.sample, usedMax: h.o.LeftoverMemory, chosen: chosen, measured: make(map[string]device.DeviceStats)}
	reaped, err := leftover.End(ctx, request, r.list, h.o.Proc)
	if err != nil {
		return device.ReapReport{}, fmt.Errorf("reap %s devices: %w: %w", h.o.Vendor, device.ErrUnavailable, err)
	}
	r.settle(ctx, h.o.MemorySettle, reaped)
	left := make([]leavings, len(reaped))
	for i := range reaped {
		left[i] = r.conclude(&reaped[i], &chosen[i])
	}
	if h.known.reaped(left, heals) {
		h.lookSoon()
	}
	h.known.publish()
	return device.ReapReport{Devices: reaped}, nil
}

func processList(processes []device.Process) string {
	texts := make([]string, len(processes))
	for i, each := range processes {
		texts[i] = fmt.Sprintf("%s[%d]", each.Name, each.PID)
	}
	return strings.Join(texts, ", ")
}
