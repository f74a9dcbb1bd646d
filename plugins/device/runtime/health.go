package runtime

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// UnitsMax bounds the cards that are remembered.
const UnitsMax = 256

// Health keeps the units of one machine, by the id of the card. It is stored,
// so that a card that waits for a reset is not taken for healthy after a
// restart of the plugin. P is a pointer to the vendor's unit, which embeds
// Unit. Its methods are for one goroutine and touch nothing of the world.
type Health[P interface{ Common() *Unit }] struct {
	Boot  string       `json:"boot"` // the kernel's boot id
	Units map[string]P `json:"units"`
}

// Booted takes over what an earlier life has stored. After a reboot, reset is
// called for each unit; one that it returns false for is forgotten.
func (h *Health[P]) Booted(boot string, reset func(unit P) (keep bool)) (rebooted bool) {
	if h.Units == nil {
		h.Units = make(map[string]P)
	}
	rebooted = h.Boot != boot
	h.Boot = boot
	if rebooted {
		maps.DeleteFunc(h.Units, func(_ string, unit P) bool {
			unit.Common().Rebooted()
			return !reset(unit)
		})
	}
	return rebooted
}

// IDs lists the known cards in order.
func (h *Health[P]) IDs() []string { return slices.Sorted(maps.Keys(h.Units)) }

// Unit returns the unit of a card, made anew if need be; false: there are too
// many.
func (h *Health[P]) Unit(id string, fresh func() P) (P, bool) {
	unit, known := h.Units[id]
	if !known && len(h.Units) < UnitsMax {
		unit, known = fresh(), true
		h.Units[id] = unit
	}
	return unit, known
}

// Common returns the common record of a card; nil: there is none.
func (h *Health[P]) Common(id string) *Unit {
	if unit, known := h.Units[id]; known {
		return unit.Common()
	}
	return nil
}

// Worst returns what a card asks for.
func (h *Health[P]) Worst(id string) device.Action {
	if unit := h.Common(id); unit != nil {
		return unit.Worst()
	}
	return device.ActNone
}

// Unkillable lists the unkillable processes by card, of the cards that have some.
func (h *Health[P]) Unkillable() map[string][]int {
	unkillable := make(map[string][]int)
	for id, unit := range h.Units {
		if pids := unit.Common().Unkillable; len(pids) > 0 {
			unkillable[id] = pids
		}
	}
	return unkillable
}

// Apply writes the verdicts into devices.
func (h *Health[P]) Apply(devices []structs.Device) {
	for i := range devices {
		if unit := h.Common(cardOf(&devices[i])); unit != nil {
			unit.apply(&devices[i])
		}
	}
}

// Marked is a text that changes when something worth storing has; more says
// what the vendor's unit adds.
func (h *Health[P]) Marked(more func(unit P) string) string {
	var text strings.Builder
	text.WriteString(h.Boot)
	for _, id := range h.IDs() {
		unit := h.Units[id].Common()
		fmt.Fprintf(&text, "\n%s %v %v %s", id, unit.Suspect, unit.Unkillable, more(h.Units[id]))
		for _, f := range unit.Faults {
			fmt.Fprintf(&text, " %s %s %d %s %v", f.Code, f.Action, f.Count, f.Instance, f.Verdict)
		}
	}
	return text.String()
}

// Decode reads a stored health into one of a vendor, and drops what makes no
// sense. keep is asked about each unit.
func Decode[P interface {
	comparable
	Common() *Unit
}](text []byte, into any, h *Health[P], keep func(id string, unit P) bool) error {
	if err := json.Unmarshal(text, into); err != nil {
		return err
	}
	var none P
	for _, id := range h.IDs() {
		unit := h.Units[id]
		if unit == none || len(h.Units) > UnitsMax || !keep(id, unit) {
			delete(h.Units, id)
			continue
		}
		common := unit.Common()
		common.Faults = common.Faults[:min(len(common.Faults), FaultsMax)]
	}
	return nil
}
