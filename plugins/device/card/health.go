package card

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

// Health is what is known of every card's faults over time. Its methods are for
// one goroutine and touch nothing of the world.
type Health struct{ runtime.Health[*Unit] }

// Unit is one card over time.
type Unit struct {
	runtime.Unit
	Card Card `json:"card"` // as last seen
	// Links and Width are the best that was seen since the machine started, ECC
	// is the last count.
	Links int    `json:"links,omitempty"`
	Width int    `json:"width,omitempty"`
	ECC   uint64 `json:"ecc,omitempty"`
}

// Resume takes over what an earlier life of the plugin has stored. A reboot
// ends what waited for it, or for a reset; what needs a person stays.
func (h *Health) Resume(boot string) {
	h.Booted(boot, func(unit *Unit) bool {
		unit.Links, unit.Width, unit.ECC = 0, 0, 0
		unit.Card.Gone = true // until it is seen
		return len(unit.Faults) > 0
	})
}

// Identify names the cards that do not say who they are, by what sat in their
// place before, or by the place itself; and adds those that have vanished since
// the machine started.
func (h *Health) Identify(facts *Facts, noun string) *Facts {
	full := facts.Clone()
	present := make(map[string]bool)
	for _, card := range full.Cards {
		present[card.ID] = true
	}
	for i := range full.Cards {
		card := &full.Cards[i]
		if card.ID != "" {
			continue
		}
		if known := h.inPlace(card, present); known != nil {
			why := card.Unreadable
			if why != "" {
				*card = known.Card
			}
			card.ID, card.Unreadable, card.Gone = known.Card.ID, why, false
		} else if card.Bus != "" {
			card.ID = noun + "-" + card.Bus
		} else {
			card.ID = fmt.Sprintf("%s-%d", noun, card.Index)
		}
		present[card.ID] = true
	}
	for _, id := range h.IDs() {
		if unit := h.Units[id]; !present[id] && !unit.Card.Gone {
			card := unit.Card
			card.Gone = true
			full.Cards = append(full.Cards, card)
		}
	}
	return &full
}

// inPlace finds the known card that sits where a nameless one does.
func (h *Health) inPlace(card *Card, present map[string]bool) *Unit {
	for _, id := range h.IDs() {
		unit := h.Units[id]
		same := card.Bus != "" && unit.Card.Bus == card.Bus || card.Bus == "" && unit.Card.Index == card.Index
		if same && !present[id] && unit.Card.ID != "" {
			return unit
		}
	}
	return nil
}

// Step judges facts that Identify has completed. unkillable says which unkillable
// processes are still there.
func (h *Health) Step(facts *Facts, unkillable map[string][]int, now time.Time, v *Vendor, table *Table) []device.Event {
	var events []device.Event
	for i := range facts.Cards {
		card := &facts.Cards[i]
		unit, known := h.Unit(card.ID, func() *Unit { return &Unit{} })
		if !known {
			continue
		}
		if left, looked := unkillable[card.ID]; looked {
			unit.Unkillable = left
		}
		silent := card.Gone || card.Unreadable != ""
		if !silent {
			unit.remember(card)
		}
		events = append(events, unit.JudgeAll(unit.conditions(card, table), silent, subject(card, v), now)...)
	}
	return events
}

// remember keeps what a card that answers says.
func (u *Unit) remember(card *Card) {
	if u.Card.ID == "" && card.ECC != nil {
		u.ECC = *card.ECC // what was before is nobody's news
	}
	u.Card = *card
	u.Links, u.Width = max(u.Links, card.Links), max(u.Width, card.Width)
}

// conditions says what is wrong with a card. A fault that keeps no work away is
// kept, too: it is told once.
func (u *Unit) conditions(card *Card, table *Table) []runtime.Condition {
	var all []runtime.Condition
	wrong := func(code string, params ...any) {
		rule := table.rule(code)
		all = append(all, runtime.Condition{
			Code: code, Action: rule.Action, After: rule.After, Sticky: rule.Sticky || code == runtime.Gone, Kept: true, Params: params,
		})
	}
	if card.Gone {
		wrong(runtime.Gone)
		return all
	}
	if len(u.Unkillable) > 0 {
		wrong(codeLeftover, "pids", runtime.Numbers(u.Unkillable))
	}
	if u.Suspect {
		wrong(codeLeftoverMem)
	}
	if card.Unreadable != "" {
		wrong(codeUnreadable, "cause", card.Unreadable)
		return all
	}
	if card.ECC != nil {
		if *card.ECC > u.ECC {
			wrong(CodeECC, "count", *card.ECC)
		}
		u.ECC = *card.ECC // smaller after a reset
	}
	if card.Links < u.Links {
		wrong(CodeLinkDown, "up", card.Links, "best", u.Links)
	}
	if card.Width > 0 && card.Width < u.Width {
		wrong(CodePCIeNarrow, "width", card.Width, "best", u.Width)
	}
	for _, f := range card.Findings {
		wrong(f.Code, "detail", cmp.Or(f.Detail, f.Code))
	}
	return all
}

// subject lets texts name a card. A finding that the catalogue has no text for
// is told by its code.
func subject(card *Card, v *Vendor) runtime.Subject {
	return runtime.Subject{ID: card.ID, Say: func(name string, params ...any) *structs.Reason {
		id := "device.card_" + strings.ReplaceAll(name, "-", "_")
		if !messages.Has(messages.English, id) {
			id, params = "device.card_fault", append([]any{"code", name}, params...)
		}
		return structs.NewReason(id, append([]any{"noun", v.Noun, "card", card.Index, "device", card.ID, "bus", card.Bus}, params...)...)
	}}
}

// Forget ends the faults of a card: all by an operator's word, or those that a
// reset ends. What still holds comes back.
func (h *Health) Forget(id string, all bool, now time.Time, v *Vendor) []device.Event {
	unit := h.Units[id]
	if unit == nil {
		return nil
	}
	events := unit.Unit.Forget(all, subject(&unit.Card, v), now)
	unit.ECC, unit.Links, unit.Width = 0, unit.Card.Links, unit.Card.Width
	if unit.Card.ECC != nil {
		unit.ECC = *unit.Card.ECC // what was counted is what is forgotten
	}
	if slices.ContainsFunc(events, func(e device.Event) bool { return e.Code == runtime.Gone }) {
		unit.Card.Gone = true // taken out of the machine, unless the next look finds it
	}
	return events
}

// Mark is a text that changes when something worth storing has.
func (h *Health) Mark() string {
	return h.Marked(func(unit *Unit) string {
		return fmt.Sprintf("%s %v %d %d %d", unit.Card.Bus, unit.Card.Gone, unit.Links, unit.Width, unit.ECC)
	})
}

// Restore reads a stored health and drops what makes no sense.
func (h *Health) Restore(text []byte) error {
	read := &Health{}
	if err := runtime.Decode(text, read, &read.Health, func(id string, unit *Unit) bool {
		return unit.Card.ID == "" || unit.Card.ID == id
	}); err != nil {
		return err
	}
	*h = *read
	return nil
}

// Stored is what is stored.
func (h *Health) Stored() any { return h }
