package ascend

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

const (
	// calm is how long a fault must be over for a chip to be well again.
	calm = 30 * time.Second
	// patience is how long a chip may not answer, or its network be lost.
	patience = 10 * time.Second

	unitsMax  = 256
	faultsMax = 128 // of each chip
)

// Health is what is known of every chip's faults over time. All faults are
// measured: the driver says when one is over. Only a chip that has vanished
// needs a reboot or an operator's word. Its methods are for one goroutine and
// touch nothing of the world.
type Health struct {
	Boot  string           `json:"boot"` // the kernel's boot id
	Units map[string]*Unit `json:"units"`
}

// Unit is one chip over time.
type Unit struct {
	Chip   Chip             `json:"chip"` // as last seen
	Faults map[string]Fault `json:"faults,omitempty"`
	// Since says from when on a condition has held that is no fault yet.
	Since map[string]time.Time `json:"since,omitempty"`
	// Stuck are processes of dead tasks on it that could not be ended, Suspect
	// that its memory is in use by nobody.
	Stuck   []int `json:"stuck,omitempty"`
	Suspect bool  `json:"suspect,omitempty"`
}

// Fault is something wrong with a chip.
type Fault struct {
	Action device.Action   `json:"action"`
	Reason *structs.Reason `json:"reason"`
	Since  time.Time       `json:"since"`
	Last   time.Time       `json:"last"`
}

// Resume takes over what an earlier life of the plugin has stored.
func (h *Health) Resume(boot string) {
	if h.Units == nil {
		h.Units = make(map[string]*Unit)
	}
	if h.Boot != boot {
		// A reboot mends what waited for it; the rest is measured anew.
		for _, unit := range h.Units {
			unit.Faults, unit.Since, unit.Stuck, unit.Suspect = nil, nil, nil, false
			unit.Chip.Gone = true // until it is seen
		}
	}
	h.Boot = boot
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
	for _, id := range sortedUnits(h.Units) {
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
	for _, id := range sortedUnits(h.Units) {
		unit := h.Units[id]
		same := chip.Bus != "" && unit.Chip.Bus == chip.Bus || chip.Bus == "" && unit.Chip.Key == chip.Key
		if same && !present[id] {
			return unit
		}
	}
	return nil
}

// Step judges facts that Identify has completed. stuck says which stuck
// processes are still there.
func (h *Health) Step(facts *Facts, stuck map[string][]int, now time.Time, codes *Codes) []device.Event {
	var events []device.Event
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		unit := h.Units[chip.ID]
		if unit == nil {
			if len(h.Units) >= unitsMax {
				continue
			}
			unit = &Unit{}
			h.Units[chip.ID] = unit
		}
		if !chip.Gone && chip.Unreadable == "" {
			unit.Chip = *chip
		}
		if left, looked := stuck[chip.ID]; looked {
			unit.Stuck = left
		}
		events = append(events, unit.judge(chip, now, codes)...)
	}
	return events
}

// finding is one thing that is wrong now.
type finding struct {
	code   string
	action device.Action
	after  time.Duration // it must hold that long
	reason *structs.Reason
}

// findings says what is wrong with a chip.
func (u *Unit) findings(chip *Chip, codes *Codes) []finding {
	if chip.Gone {
		return []finding{{"gone", codes.Gone, 0, reasonFor("device.ascend_gone", chip)}}
	}
	var all []finding
	if chip.Unreadable != "" {
		all = append(all, finding{"unreadable", codes.Unreadable, patience, reasonFor("device.ascend_unreadable", chip, "cause", chip.Unreadable)})
	}
	if len(u.Stuck) > 0 {
		all = append(all, finding{"leftover", device.ActCordon, 0, reasonFor("device.ascend_leftover", chip, "pids", joinInts(u.Stuck))})
	}
	if u.Suspect {
		all = append(all, finding{"leftover-memory", device.ActCordon, 0, reasonFor("device.ascend_leftover_memory", chip)})
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
		all = append(all, finding{"fault-" + text, action, 0, reasonFor("device.ascend_fault", chip, "code", text)})
	}
	if !explained {
		var unknown []string
		for _, code := range chip.State.Codes {
			unknown = append(unknown, fmt.Sprintf("%08X", code))
		}
		level := strconv.Itoa(chip.State.Level)
		all = append(all, finding{
			"health-" + level, codes.Levels[chip.State.Level], 0,
			reasonFor("device.ascend_health_"+level, chip, "codes", strings.Join(unknown, ", ")),
		})
	}
	if n := chip.State.Network; n > 0 && n != networkStarting {
		all = append(all, finding{"network", codes.Network, patience, reasonFor("device.ascend_network", chip, "state", networkWord(n), "ip", chip.IP)})
	}
	return all
}

// judge compares what is wrong now with what was, and tells of changes once.
func (u *Unit) judge(chip *Chip, now time.Time, codes *Codes) []device.Event {
	var events []device.Event
	holds := make(map[string]bool)
	for _, f := range u.findings(chip, codes) {
		holds[f.code] = true
		if old, known := u.Faults[f.code]; known {
			old.Last, old.Reason = now, f.reason
			u.Faults[f.code] = old
			continue
		}
		since, waiting := u.Since[f.code]
		if !waiting {
			since = now
			if u.Since == nil {
				u.Since = make(map[string]time.Time)
			}
			u.Since[f.code] = now
		}
		if now.Sub(since) < f.after || f.action == device.ActNone || len(u.Faults) >= faultsMax {
			continue
		}
		if u.Faults == nil {
			u.Faults = make(map[string]Fault)
		}
		// Kept also when it does not keep work away: it is told once.
		u.Faults[f.code] = Fault{Action: f.action, Reason: f.reason, Since: since, Last: now}
		events = append(events, device.Event{At: now, DeviceID: chip.ID, Code: f.code, Action: f.action, Reason: f.reason})
	}
	for code := range u.Since {
		if !holds[code] {
			delete(u.Since, code)
		}
	}
	for _, code := range sortedFaults(u.Faults) {
		f := u.Faults[code]
		// What does not answer says nothing about its other faults; and being
		// back proves nothing about having been gone.
		silent := chip.Gone || chip.Unreadable != ""
		if holds[code] || silent || code == "gone" || now.Sub(f.Last) < calm {
			continue
		}
		delete(u.Faults, code)
		events = append(events, recovered(code, chip, now))
	}
	return events
}

func recovered(code string, chip *Chip, now time.Time) device.Event {
	return device.Event{At: now, DeviceID: chip.ID, Code: code, Action: device.ActNone, Reason: reasonFor("device.ascend_recovered", chip, "code", code)}
}

// Forget ends the faults of a chip by an operator's word, or after a reset.
// What still holds comes back.
func (h *Health) Forget(id string, now time.Time) []device.Event {
	unit := h.Units[id]
	if unit == nil {
		return nil
	}
	var events []device.Event
	for _, code := range sortedFaults(unit.Faults) {
		events = append(events, recovered(code, &unit.Chip, now))
	}
	_, gone := unit.Faults["gone"]
	unit.Faults, unit.Since, unit.Suspect = nil, nil, false
	if gone {
		unit.Chip.Gone = true // taken out of the machine, unless the next look finds it
	}
	return events
}

// Apply writes the verdicts into devices.
func (h *Health) Apply(devices []structs.Device) {
	for i := range devices {
		d := &devices[i]
		id := d.ID
		if parent := d.Attrs[device.AttrParent]; parent != "" {
			id = parent
		}
		unit := h.Units[id]
		if unit == nil {
			continue
		}
		worst := ""
		for _, code := range sortedFaults(unit.Faults) {
			if worst == "" || unit.Faults[worst].Action.Worse(unit.Faults[code].Action) != unit.Faults[worst].Action {
				worst = code
			}
		}
		if f, wrong := unit.Faults[worst]; wrong && f.Action != device.ActTask {
			device.Judge(d, f.Action, f.Reason)
			d.Attrs[device.AttrFault] = worst
			d.Attrs[device.AttrFaultSince] = f.Since.UTC().Format(time.RFC3339)
		}
	}
}

// Worst gives what a chip asks for.
func (h *Health) Worst(id string) device.Action {
	worst := device.ActNone
	if unit := h.Units[id]; unit != nil {
		for _, f := range unit.Faults {
			worst = worst.Worse(f.Action)
		}
	}
	return worst
}

// mark is a text that changes when something worth storing has.
func (h *Health) mark() string {
	var text strings.Builder
	text.WriteString(h.Boot)
	for _, id := range sortedUnits(h.Units) {
		unit := h.Units[id]
		fmt.Fprintf(&text, "\n%s %s %v %v %v", id, unit.Chip.Bus, unit.Chip.Gone, unit.Stuck, unit.Suspect)
		for _, code := range sortedFaults(unit.Faults) {
			fmt.Fprintf(&text, " %s %s", code, unit.Faults[code].Action)
		}
	}
	return text.String()
}

// decodeHealth reads a stored Health and drops what makes no sense.
func decodeHealth(text []byte) (*Health, error) {
	h := &Health{}
	if err := json.Unmarshal(text, h); err != nil {
		return nil, fmt.Errorf("read stored health: %w", err)
	}
	for id, unit := range h.Units {
		if unit == nil || len(h.Units) > unitsMax || len(unit.Faults) > faultsMax {
			delete(h.Units, id)
		}
	}
	return h, nil
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

// reasonFor makes a reason that names the chip.
func reasonFor(id string, chip *Chip, params ...any) *structs.Reason {
	return structs.NewReason(id, append([]any{"card", chip.Physical, "device", chip.ID, "bus", chip.Bus}, params...)...)
}

func sortedUnits(units map[string]*Unit) []string {
	ids := make([]string, 0, len(units))
	for id := range units {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func sortedFaults(faults map[string]Fault) []string {
	codes := make([]string, 0, len(faults))
	for code := range faults {
		codes = append(codes, code)
	}
	slices.Sort(codes)
	return codes
}

func joinInts(numbers []int) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}
