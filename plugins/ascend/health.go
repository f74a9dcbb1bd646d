package ascend

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

const (
	calm = runtime.Calm
	// patience is how long a chip may not answer, or its network be lost.
	patience = 10 * time.Second
)

// Health is what is known of every chip's faults over time. All faults are
// measured: the driver says when one is over. Only a chip that has vanished
// needs a reboot or an operator's word. Its methods are for one goroutine and
// touch nothing of the world.
type Health struct{ runtime.Health[*Unit] }

// Unit is one chip over time.
type Unit struct {
	runtime.Unit
	Chip Chip `json:"chip"` // as last seen
}

// Resume takes over what an earlier life of the plugin has stored.
func (h *Health) Resume(boot string) {
	h.Booted(boot, func(unit *Unit) bool {
		// A reboot mends what waited for it; the rest is measured anew.
		unit.Faults = nil
		unit.Chip.Gone = true // until it is seen
		return true
	})
}

// Identify names the chips that do not say who they are, by what sat in their
// place before, or by the place itself; and adds those that have vanished
// since the machine started. The result shares nothing with facts that it
// changes.
func (h *Health) Identify(facts *Facts) *Facts {
	full := *facts
	full.Chips = slices.Clone(facts.Chips)
	present := make(map[string]bool)
	for _, chip := range full.Chips {
		present[chip.ID] = true
	}
	for i := range full.Chips {
		chip := &full.Chips[i]
		if chip.ID != "" {
			continue
		}
		known := h.inPlace(chip, present)
		if known != nil && chip.Unreadable != "" {
			why := chip.Unreadable
			*chip = known.Chip
			chip.Unreadable = why
		} else if known != nil {
			chip.ID = known.Chip.ID
		} else {
			chip.ID = placeID(chip)
		}
		present[chip.ID] = true
	}
	for _, id := range h.IDs() {
		if unit := h.Units[id]; !present[id] && !unit.Chip.Gone {
			chip := unit.Chip
			chip.Gone = true
			full.Chips = append(full.Chips, chip)
		}
	}
	return &full
}

// placeID names a chip by where it sits.
func placeID(chip *Chip) string {
	if chip.Bus != "" {
		return "NPU-" + chip.Bus
	}
	return fmt.Sprintf("NPU-%d-%d", chip.Card, chip.Chip)
}

func (h *Health) inPlace(chip *Chip, present map[string]bool) *Unit {
	for _, id := range h.IDs() {
		unit := h.Units[id]
		same := chip.Bus != "" && unit.Chip.Bus == chip.Bus || chip.Bus == "" && unit.Chip.Key == chip.Key
		if same && !present[id] {
			return unit
		}
	}
	return nil
}

// Step judges facts that Identify has completed. unkillable says which unkillable
// processes are still there.
func (h *Health) Step(facts *Facts, unkillable map[string][]int, now time.Time, codes *Codes) []device.Event {
	var events []device.Event
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		unit, known := h.Unit(chip.ID, func() *Unit { return &Unit{} })
		if !known {
			continue
		}
		if !chip.Gone && chip.Unreadable == "" {
			unit.Chip = *chip
		}
		if left, looked := unkillable[chip.ID]; looked {
			unit.Unkillable = left
		}
		silent := chip.Gone || chip.Unreadable != ""
		events = append(events, unit.JudgeAll(unit.conditions(chip, codes), silent, subject(chip), now)...)
	}
	return events
}

// conditions says what is wrong with a chip. A fault that keeps no work away
// is kept, too: it is told once.
func (u *Unit) conditions(chip *Chip, codes *Codes) []runtime.Condition {
	if chip.Gone {
		return []runtime.Condition{{Code: runtime.Gone, Action: codes.Gone, Kept: true, Sticky: true}}
	}
	var all []runtime.Condition
	wrong := func(code, text string, action device.Action, after time.Duration, params ...any) {
		all = append(all, runtime.Condition{Code: code, Text: text, Action: action, After: after, Kept: true, Params: params})
	}
	if chip.Unreadable != "" {
		wrong("unreadable", "", codes.Unreadable, patience, "cause", chip.Unreadable)
	}
	if len(u.Unkillable) > 0 {
		wrong("leftover", "", device.ActCordon, 0, "pids", runtime.Numbers(u.Unkillable))
	}
	if u.Suspect {
		wrong("leftover-memory", "leftover_memory", device.ActCordon, 0)
	}
	if chip.Unreadable != "" {
		return all
	}
	explained := chip.State.Level <= 0
	for _, code := range chip.State.Codes {
		action, known := codes.Faults[code]
		if !known {
			continue // the level speaks for it, below
		}
		explained = true
		text := fmt.Sprintf("%08X", code)
		wrong("fault-"+text, "fault", action, 0, "code", text)
	}
	if !explained {
		var unknown []string
		for _, code := range chip.State.Codes {
			unknown = append(unknown, fmt.Sprintf("%08X", code))
		}
		level := strconv.Itoa(chip.State.Level)
		wrong("health-"+level, "health_"+level, codes.Levels[chip.State.Level], 0, "codes", strings.Join(unknown, ", "))
	}
	if n := chip.State.Network; n > 0 && n != networkStarting {
		wrong("network", "", codes.Network, patience, "state", networkWord(n), "ip", chip.IP)
	}
	return all
}

// subject lets texts name a chip.
func subject(chip *Chip) runtime.Subject {
	return runtime.Subject{ID: chip.ID, Say: func(name string, params ...any) *structs.Reason {
		return structs.NewReason("device.ascend_"+name, append([]any{"card", chip.Physical, "device", chip.ID, "bus", chip.Bus}, params...)...)
	}}
}

// Forget ends the faults of a chip by an operator's word, or after a reset.
// What still holds comes back.
func (h *Health) Forget(id string, now time.Time) []device.Event {
	unit := h.Units[id]
	if unit == nil {
		return nil
	}
	events := unit.Unit.Forget(true, subject(&unit.Chip), now)
	if slices.ContainsFunc(events, func(e device.Event) bool { return e.Code == runtime.Gone }) {
		unit.Chip.Gone = true // taken out of the machine, unless the next look finds it
	}
	return events
}

// Mark is a text that changes when something worth storing has.
func (h *Health) Mark() string {
	return h.Marked(func(unit *Unit) string { return fmt.Sprintf("%s %v", unit.Chip.Bus, unit.Chip.Gone) })
}

// decodeHealth reads a stored Health and drops what makes no sense.
func decodeHealth(text []byte) (*Health, error) {
	h := &Health{}
	err := runtime.Decode(text, h, &h.Health, func(string, *Unit) bool { return true })
	return h, err
}

// networkStarting is the driver's word for a network that comes up.
const networkStarting = 6

// networkWord names a state of a chip's network.
func networkWord(state int) string {
	words := []string{"ok", "socket error", "receive timeout", "unreachable", "time exceeded", "fault", "starting", "thread error", "address is being set"}
	if state >= 0 && state < len(words) {
		return words[state]
	}
	return "state " + strconv.Itoa(state)
}
