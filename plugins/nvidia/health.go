package nvidia

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

// Limits and times of Health.
const (
	historyMax = 64 // happenings remembered for each card
	faultsMax  = runtime.FaultsMax
	cardsMax   = runtime.UnitsMax
	// echo is in which the kernel's word and the library's on the same error
	// of one card count as one.
	echo = 5 * time.Second
	// oldNews is how old a message of the kernel may be for a first listener.
	oldNews = 10 * time.Minute
	calm    = runtime.Calm
	// linksCalm is calm for errors of NVLinks: a bad cable has some now and then,
	// which are one fault.
	linksCalm = 10 * time.Minute
)

// Health is what is known of every card's faults over time. It is stored, so
// that a card that waits for a reset is not taken for well after a restart of
// the plugin. Its methods are for one goroutine; they take the time as an
// argument and touch nothing of the world.
type Health struct {
	runtime.Health[*Unit]
	// Kernel is how far the kernel's messages were heard, as uptime; 0: never
	// since the machine started.
	Kernel time.Duration `json:"kernel,omitempty"`
}

// Unit is one card over time.
type Unit struct {
	runtime.Unit
	Card    Card   `json:"card"` // as last seen
	History []Past `json:"history,omitempty"`
	// Links and Width are the best that was seen since the machine started,
	// ECC and the errors of links the last counts; nil: never read.
	Links          int     `json:"links,omitempty"`
	Width          int     `json:"width,omitempty"`
	ECC            uint64  `json:"ecc,omitempty"`
	LinkErrors     *uint64 `json:"link_errors,omitempty"`
	LinkRecoveries *uint64 `json:"link_recoveries,omitempty"`
}

// Past is a happening that was.
type Past struct {
	At     time.Time `json:"at"`
	Code   string    `json:"code"`
	Source Source    `json:"source"`
}

// Input is what a Step is made of.
type Input struct {
	Now        time.Time
	Facts      *Facts // nil: nothing was read
	Happened   []Happening
	Unkillable map[string][]int // by card: which of its unkillable processes are still there; nil: not looked
}

// Resume takes over what an earlier life of the plugin has stored. A reboot
// ends what waited for it, or for a reset; what needs a person stays.
func (h *Health) Resume(boot string) {
	rebooted := h.Booted(boot, func(unit *Unit) bool {
		unit.Links, unit.Width, unit.ECC, unit.LinkErrors, unit.LinkRecoveries = 0, 0, 0, nil, nil
		unit.Card.UUID = "" // it may be gone for good; the next look tells
		return len(unit.Faults) > 0 || len(unit.History) > 0
	})
	if rebooted {
		h.Kernel = 0
	}
}

// Step takes what was seen and heard, and returns what is worth telling.
func (h *Health) Step(in Input, actions *Actions) []device.Event {
	var events []device.Event
	if in.Facts != nil {
		events = append(events, h.look(in, actions)...)
	}
	for _, each := range in.Happened {
		if h.news(each, in.Now) {
			events = append(events, h.hear(each, actions)...)
		}
	}
	return events
}

// Complete adds to facts the cards that have vanished since the machine
// started, and fills in those that can no longer say who they are. The result
// shares nothing with facts that it changes.
func (h *Health) Complete(facts *Facts) *Facts {
	full := *facts
	full.Cards = make([]Card, 0, len(facts.Cards))
	present := make(map[string]bool)
	for _, card := range facts.Cards {
		if card.UUID != "" {
			present[card.UUID] = true
		}
	}
	for _, card := range facts.Cards {
		if card.UUID == "" {
			known := h.byPlace(&card, present)
			if known == nil {
				continue // never seen before: nothing to offer
			}
			lost, why := card.Lost, card.Unreadable
			card = known.Card
			card.Lost, card.Unreadable = lost, why
			present[card.UUID] = true
		}
		full.Cards = append(full.Cards, card)
	}
	for _, uuid := range h.IDs() {
		if unit := h.Units[uuid]; !present[uuid] && unit.Card.UUID != "" {
			card := unit.Card
			card.Unreadable = "gone"
			full.Cards = append(full.Cards, card)
		}
	}
	return &full
}

// byPlace finds the known card that sits where a nameless one does.
func (h *Health) byPlace(card *Card, present map[string]bool) *Unit {
	for _, uuid := range h.IDs() {
		unit := h.Units[uuid]
		same := card.Bus != "" && unit.Card.Bus == card.Bus || card.Bus == "" && unit.Card.Index == card.Index
		if same && !present[uuid] && unit.Card.UUID != "" {
			return unit
		}
	}
	return nil
}

// look judges what was read.
func (h *Health) look(in Input, actions *Actions) []device.Event {
	var events []device.Event
	for _, card := range h.Complete(in.Facts).Cards {
		unit, known := h.Unit(card.UUID, func() *Unit { return &Unit{} })
		if !known {
			continue
		}
		gone := card.Unreadable == "gone"
		if !gone && card.Unreadable == "" && !card.Lost {
			unit.remember(&card)
		}
		if unkillable, looked := in.Unkillable[card.UUID]; looked {
			unit.Unkillable = unkillable
		}
		for _, c := range unit.conditions(&card, actions) {
			if event := unit.judge(c, actions, &card, in.Now); event != nil {
				events = append(events, *event)
			}
		}
		if !gone {
			events = append(events, unit.heedVerdict(&card, actions, in.Now)...)
		}
	}
	return events
}

// remember keeps what a readable card says.
func (u *Unit) remember(card *Card) {
	if u.Card.UUID == "" && card.State.ECCUncorrected != nil {
		u.ECC = *card.State.ECCUncorrected // what was before is nobody's news
	}
	u.Card = *card
	u.Links = max(u.Links, linksUp(card))
	u.Width = max(u.Width, card.State.PCIeWidth)
}

// condition is one thing that was measured.
type condition struct {
	name   string
	holds  bool
	sticky bool          // a fault once it holds: measuring well again is not enough
	kept   bool          // a fault also where its action lets the card take work: what it says stands beside the card
	calm   time.Duration // how long it must be over for its fault to be; 0: calm
	params []any
}

// conditions measures a card against what is known of it.
func (u *Unit) conditions(card *Card, actions *Actions) []condition {
	if card.Unreadable == "gone" {
		return []condition{{name: "gone", holds: true, sticky: true}}
	}
	readable := card.Unreadable == "" && !card.Lost
	all := []condition{
		{name: "gone", sticky: true},
		{name: "lost", holds: card.Lost, sticky: true},
		{name: "unreadable", holds: card.Unreadable != "" && !card.Lost, params: []any{"cause", card.Unreadable}},
		{name: "leftover", holds: len(u.Unkillable) > 0, params: []any{"pids", runtime.Numbers(u.Unkillable)}},
	}
	if !readable {
		return all // what was measured before still counts
	}
	s := &card.State
	grew := s.ECCUncorrected != nil && *s.ECCUncorrected > u.ECC
	if s.ECCUncorrected != nil {
		u.ECC = *s.ECCUncorrected // smaller after a reset
	}
	linkErrors, linkRecoveries := rise(&u.LinkErrors, s.LinkErrors), rise(&u.LinkRecoveries, s.LinkRecoveries)
	used := s.MemoryUsed - min(s.MemoryReserved, s.MemoryUsed)
	if u.Suspect && used == 0 {
		u.Suspect = false
	}
	fabric := card.Fabric
	return append(all,
		condition{name: "remap-pending", holds: s.RemapPending},
		condition{name: "remap-failed", holds: s.RemapFailed},
		condition{name: "retired-pending", holds: s.RetiredPending},
		condition{name: "ecc-double", holds: grew, params: []any{"count", u.ECC}},
		condition{name: "thermal", holds: s.ThermalSlowdown, params: []any{"temperature", s.Temperature}},
		condition{name: "hard-slowdown", holds: s.HardSlowdown && !s.ThermalSlowdown && !s.PowerBrake},
		condition{name: "power-brake", holds: s.PowerBrake},
		condition{name: "nvlink-down", holds: linksUp(card) < u.Links, params: []any{"up", linksUp(card), "best", u.Links}},
		condition{
			name: "nvlink-errors", holds: linkErrors > 0 || linkRecoveries > 0, kept: true, calm: linksCalm,
			params: []any{"errors", count(u.LinkErrors), "recoveries", count(u.LinkRecoveries)},
		},
		condition{name: "pcie-narrow", holds: s.PCIeWidth > 0 && s.PCIeWidth < u.Width, params: []any{"width", s.PCIeWidth, "best", u.Width}},
		condition{name: "fabric", holds: fabric != nil && (!fabric.Ready || fabric.Error != ""), params: []any{"cause", fabricCause(fabric)}},
		condition{name: "leftover-memory", holds: u.Suspect, params: []any{"bytes", used}},
		recoveryCondition(s.Recovery, actions),
	)
}

// rise returns by how much a count has risen since the last look, and remembers
// it. What was before the first look is nobody's news, and a smaller count, as
// after a reset, begins anew; a card that cannot say now says nothing.
func rise(last **uint64, now *uint64) uint64 {
	if now == nil {
		return 0
	}
	before, value := *last, *now
	*last = &value
	if before == nil || value < *before {
		return 0
	}
	return value - *before
}

// count reads a count; 0: the card cannot say.
func count(n *uint64) uint64 {
	if n == nil {
		return 0
	}
	return *n
}

func fabricCause(f *Fabric) string {
	if f == nil || f.Error == "" {
		return "the fabric manager has not set it up"
	}
	return f.Error
}

// recoveryCondition is the driver's own verdict; its action is the verdict's.
func recoveryCondition(verdict *int, actions *Actions) condition {
	if verdict == nil {
		return condition{name: "recovery"}
	}
	rule, known := actions.Recoveries[*verdict]
	if !known {
		rule = Rule{Action: device.ActCordon, Meaning: strconv.Itoa(*verdict)}
	}
	return condition{name: "recovery", holds: rule.Action != device.ActNone, params: []any{"verdict", rule.Meaning, "action", rule.Action}}
}

// judge turns a condition into a fault, or ends one, and says of it once.
func (u *Unit) judge(c condition, actions *Actions, card *Card, now time.Time) *device.Event {
	rule := actions.Conditions[c.name]
	if c.name == "recovery" && c.holds {
		rule = Rule{Action: c.params[3].(device.Action)}
	}
	event, began := u.Judge(runtime.Condition{
		Code: c.name, Holds: c.holds, Action: rule.Action, After: rule.After, Calm: c.calm, Sticky: c.sticky, Params: c.params,
		Kept: c.kept, Still: c.kept, // figures that rise all the time are no news of the card
		Again: c.name == "ecc-double",
	}, subject(card), now)
	if began {
		u.past(c.name, now, FromLibrary)
	}
	return event
}

// subject lets texts name a card.
func subject(card *Card) runtime.Subject {
	return runtime.Subject{ID: card.UUID, Say: func(name string, params ...any) *structs.Reason {
		return reasonFor("device.nvidia_"+strings.ReplaceAll(name, "-", "_"), card, params...)
	}}
}

// heedVerdict ends faults that the driver has asked a reset for, once it asks
// no more.
func (u *Unit) heedVerdict(card *Card, actions *Actions, now time.Time) []device.Event {
	if card.State.Recovery == nil || card.Unreadable != "" || card.Lost {
		return nil
	}
	asked := actions.Recoveries[*card.State.Recovery].Action != device.ActNone
	var events []device.Event
	u.Faults = slices.DeleteFunc(u.Faults, func(f runtime.Fault) bool {
		if !f.Measured && f.Verdict && !asked && strings.HasPrefix(f.Code, "xid-") {
			events = append(events, *subject(card).Recovered(f.Code, now))
			return true
		}
		return false
	})
	for i := range u.Faults {
		u.Faults[i].Verdict = u.Faults[i].Verdict || asked
	}
	return events
}

// past remembers a happening.
func (u *Unit) past(code string, at time.Time, source Source) {
	u.History = append(u.History, Past{At: at, Code: code, Source: source})
	if over := len(u.History) - historyMax; over > 0 {
		u.History = slices.Delete(u.History, 0, over)
	}
}

// reasonFor makes a reason that names the card.
func reasonFor(id string, card *Card, params ...any) *structs.Reason {
	return structs.NewReason(id, append([]any{"card", card.Index, "device", card.UUID, "bus", card.Bus}, params...)...)
}

// Mark is a text that changes when something worth storing has: faults, what
// is known of cards, and how far the kernel was heard.
func (h *Health) Mark() string {
	return fmt.Sprintf("%d %s", h.Kernel, h.Marked(func(unit *Unit) string {
		last := int64(0)
		if n := len(unit.History); n > 0 {
			last = unit.History[n-1].At.UnixNano()
		}
		return fmt.Sprintf("%q %d %d %d %d %d %d %d", unit.Card.UUID, unit.Links, unit.Width, unit.ECC, len(unit.History), count(unit.LinkErrors), count(unit.LinkRecoveries), last)
	}))
}

// Forget ends the faults of a card: after a reset those of ActReset and below,
// and by an operator's word all. Conditions that still hold come back.
func (h *Health) Forget(uuid string, all bool, now time.Time) []device.Event {
	unit := h.Units[uuid]
	if unit == nil {
		return nil
	}
	events := unit.Unit.Forget(all, subject(&unit.Card), now)
	unit.ECC = 0
	unit.Links, unit.Width = linksUp(&unit.Card), unit.Card.State.PCIeWidth
	if slices.ContainsFunc(events, func(e device.Event) bool { return e.Code == "gone" }) {
		unit.Card.UUID = "" // taken out of the machine, unless the next look finds it
	}
	return events
}

// decodeHealth reads a stored Health and drops what makes no sense.
func decodeHealth(text []byte) (*Health, error) {
	h := &Health{}
	err := runtime.Decode(text, h, &h.Health, func(uuid string, unit *Unit) bool {
		unit.History = unit.History[:min(len(unit.History), historyMax)]
		return unit.Card.UUID == "" || unit.Card.UUID == uuid
	})
	return h, err
}
