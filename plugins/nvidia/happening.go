package nvidia

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// news reports whether a happening was not heard before. The kernel repeats all
// that it remembers to every new listener; what is old when nobody has ever
// listened is left to the driver's own verdict.
func (h *Health) news(e Happening, now time.Time) bool {
	if e.Source != FromKernel {
		return true
	}
	if e.Uptime <= h.Kernel {
		return false
	}
	first := h.Kernel == 0
	h.Kernel = e.Uptime
	return !first || now.Sub(e.At) <= oldNews
}

// hear takes an event of the driver.
func (h *Health) hear(e Happening, actions *Actions) []device.Event {
	unit, card := h.find(e)
	if unit == nil || e.XID <= 0 {
		return nil // no card that was ever seen, or only a hint to look
	}
	code, rule := "xid-"+strconv.Itoa(e.XID), actions.xid(e.XID)
	if unit.echoes(code, e) {
		return nil
	}
	unit.past(code, e.At, e.Source)
	action := rule.Action
	if verdict, told := verdictOf(e); told {
		action = actions.Recoveries[verdict].Action
		if action == device.ActNone {
			action = device.ActNotice
		}
	}
	if r := rule.Repeat; r != nil && unit.countSince(code, e.At.Add(-r.Within)) >= r.Count {
		action = action.Worse(r.Action)
	}
	reason := happeningReason(e, card, rule)
	target, instance := card.UUID, ""
	if card.MIG && e.GPU >= 0 {
		if uuid := instanceOf(card, e.GPU, e.Compute); uuid != "" {
			target = uuid
			if !action.Drains() {
				instance = uuid // a reset hits the whole card
			}
		}
	}
	if !action.TakesWork() {
		unit.fault(runtime.Fault{Code: code, Action: action, Reason: reason, Since: e.At, Last: e.At, Count: 1, Instance: instance})
	}
	return []device.Event{{At: e.At, DeviceID: target, Code: code, Action: action, Reason: reason, PID: e.PID}}
}

// fault adds a fault, or makes the one of the same code newer and worse.
func (u *Unit) fault(f runtime.Fault) {
	at := slices.IndexFunc(u.Faults, func(g runtime.Fault) bool { return g.Code == f.Code && g.Instance == f.Instance })
	if at < 0 {
		u.Add(f)
		return
	}
	old := &u.Faults[at]
	old.Last, old.Count, old.Action, old.Reason, old.Verdict = f.Last, old.Count+1, old.Action.Worse(f.Action), f.Reason, false
}

// find returns the card that a happening names.
func (h *Health) find(e Happening) (*Unit, *Card) {
	for _, uuid := range h.IDs() {
		unit := h.Units[uuid]
		card := &unit.Card
		if card.UUID == "" {
			continue
		}
		if e.UUID != "" && (e.UUID == card.UUID || slices.ContainsFunc(card.Instances, func(i Instance) bool { return i.UUID == e.UUID })) {
			return unit, card
		}
		if e.UUID == "" && e.Bus != "" && e.Bus == card.Bus {
			return unit, card
		}
	}
	return nil, nil
}

// echoes reports whether a happening was told before by the other source.
func (u *Unit) echoes(code string, e Happening) bool {
	for i := len(u.History) - 1; i >= 0; i-- {
		p := &u.History[i]
		if p.Code != code {
			continue
		}
		apart := e.At.Sub(p.At).Abs()
		return p.Source != e.Source && apart <= echo
	}
	return false
}

func (u *Unit) countSince(code string, from time.Time) int {
	n := 0
	for _, p := range u.History {
		if p.Code == code && !p.At.Before(from) {
			n++
		}
	}
	return n
}

func instanceOf(card *Card, gpu, compute int) string {
	found := ""
	for _, i := range card.Instances {
		if i.GPU == gpu && (compute < 0 || i.Compute == compute) {
			if found != "" {
				return "" // several: the GPU instance as a whole
			}
			found = i.UUID
		}
	}
	return found
}

// verdictOf reads the driver's new verdict from the words of XID 154.
func verdictOf(e Happening) (int, bool) {
	const recoveryXID = 154
	if e.XID != recoveryXID {
		return 0, false
	}
	_, rest, found := strings.Cut(e.Text, " to 0x")
	if !found {
		return 0, false
	}
	digits := rest
	if end := strings.IndexFunc(rest, func(r rune) bool { return !strings.ContainsRune("0123456789abcdefABCDEF", r) }); end >= 0 {
		digits = rest[:end]
	}
	number, err := strconv.ParseUint(digits, 16, 16)
	return int(number), err == nil
}

func happeningReason(e Happening, card *Card, rule Rule) *structs.Reason {
	who := ""
	if e.PID > 0 {
		who = fmt.Sprintf("%s[%d]", e.Process, e.PID)
	}
	id := "device.nvidia_xid_" + strconv.Itoa(e.XID)
	if !messages.Has(messages.English, id) {
		id = "device.nvidia_xid"
	}
	return reasonFor(id, card, "xid", e.XID, "meaning", rule.Meaning, "process", who)
}
