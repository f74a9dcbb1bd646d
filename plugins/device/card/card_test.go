package card

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/runtime"
)

func vendor() *Vendor {
	return &Vendor{Name: "acme", Title: "Acme", Noun: "XPU", Kind: "acme/xpu", LinkKind: "link", Table: []byte(`{"unknown": "cordon", "faults": [
		{"code": "gone", "action": "reboot"}, {"code": "unreadable", "action": "cordon", "after": "10s"}, {"code": "leftover", "action": "cordon"},
		{"code": "ecc-uncorrected", "action": "reset", "sticky": true}, {"code": "link-down", "action": "cordon"}, {"code": "pcie-narrow", "action": "service"},
		{"code": "thermal", "action": "notice"}]}`)}
}

func settings(t testing.TB, config string) *Settings {
	t.Helper()
	s, err := vendor().ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func someCards(count int) Facts {
	var facts Facts
	for i := range count {
		none := uint64(0)
		facts.Cards = append(facts.Cards, Card{ID: fmt.Sprintf("XPU-%d", i), Index: i, Minor: i, Bus: fmt.Sprintf("0000:%02x:00.0", i+1), Links: 2, Width: 16, ECC: &none})
	}
	return facts
}

// TestHealth tells the story of some cards.
func TestHealth(t *testing.T) {
	v, s, h, facts := vendor(), settings(t, ""), &Health{}, someCards(3)
	h.Resume("boot-1")
	start := time.Date(2026, 11, 24, 8, 0, 0, 0, time.UTC)
	now := start
	var story strings.Builder
	tell := func(events []device.Event) {
		for _, e := range events {
			fmt.Fprintf(&story, "    event %s on %s, action %q: %s\n", e.Code, e.DeviceID, e.Action, messages.Text(messages.English, e.Reason.ID, e.Reason.Params))
		}
	}
	var unkillable map[string][]int
	step := func(after time.Duration, what string, change func()) {
		now = now.Add(after)
		facts = facts.Clone()
		if change != nil {
			change()
		}
		fmt.Fprintf(&story, "%s  %s\n", now.Sub(start), what)
		full := h.Identify(&facts, v.Noun)
		tell(h.Step(full, unkillable, now, v, s.table))
		devices := v.Devices(full, &runtime.Surroundings{}, s)
		h.Apply(devices)
		for _, d := range devices {
			if d.Health != nil {
				fmt.Fprintf(&story, "    %s: healthy %v, %q (%s)\n", d.ID, d.Healthy, d.Attrs[device.AttrAction], d.Attrs[device.AttrFault])
			}
		}
	}
	card := func(i int) *Card { return &facts.Cards[i] }
	count := func(n uint64) *uint64 { return &n }
	step(0, "all is well", nil)
	step(time.Second, "memory errors", func() { card(0).ECC = count(3) })
	step(time.Hour, "no more of them", nil)
	tell(h.Forget("XPU-0", false, now, v))
	step(time.Second, "it was reset, and counts on", nil)
	step(time.Second, "a link is lost, and a finding that is in no table", func() { card(1).Links = 1; card(1).Find("odd", "strange"); card(1).Find("odd", "again") })
	step(runtime.Calm, "the link is back", func() { card(1).Links, card(1).Findings = 2, nil })
	step(runtime.Calm, "for a while", nil)
	step(time.Second, "lanes are lost", func() { card(2).Width = 8 })
	step(time.Second, "a card does not answer, and does not say who it is", func() { *card(1) = Card{Index: 1, Bus: card(1).Bus, Unreadable: "time out"} })
	step(10*time.Second, "for some time", nil)
	step(time.Second, "another library knows no ids", func() {
		for i := range facts.Cards {
			card(i).ID, card(i).Unreadable = "", ""
		}
		card(1).Links, card(1).Width = 2, 16
	})
	step(runtime.Calm, "for a while", nil)
	step(time.Second, "a card has vanished, and one that was never seen has come", func() { facts.Cards = append(facts.Cards[:1:1], facts.Cards[2], Card{Index: 7}) })
	text, err := json.Marshal(h.Stored())
	if err != nil {
		t.Fatal(err)
	}
	mark := h.Mark()
	h = &Health{}
	if err := h.Restore(text); err != nil || h.Mark() != mark {
		t.Fatalf("%v, marks %s and %s", err, mark, h.Mark())
	}
	h.Resume("boot-1")
	step(time.Second, "the plugin was started anew", nil)
	tell(h.Forget("XPU-1", true, now, v))
	step(time.Second, "an operator says that is right", nil)
	h.Units["XPU-0"].Unkillable = []int{7}
	step(time.Second, "a process is unkillable, and it is hot", func() { card(0).Find("thermal", "") })
	unkillable = map[string][]int{"XPU-0": nil}
	step(runtime.Calm, "both are over", func() { card(0).Findings = nil })
	h.Resume("boot-2")
	step(time.Second, "the machine was rebooted: all is measured anew", func() { card(1).Width = 16 })
	golden.Assert(t, "testdata/health.txt", story.String())
}

func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"boot":"b","units":{"XPU-0":{"card":{"id":"XPU-0"},"faults":[{"code":"gone","action":"reboot"}]},"a":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, v, s := &Health{}, vendor(), settings(t, "")
		if h.Restore(text) != nil {
			return
		}
		h.Resume("x")
		facts := someCards(2)
		full := h.Identify(&facts, v.Noun)
		h.Step(full, nil, time.Unix(0, 0), v, s.table)
		h.Apply(v.Devices(full, &runtime.Surroundings{}, s))
	})
}

func TestGroups(t *testing.T) {
	cards := someCards(6).Cards
	cards[0].Linked, cards[4].Linked = []string{"XPU-4"}, []string{"XPU-5", "unknown"}
	cards[2].Linked = []string{"XPU-1"}
	if got, want := strings.Join(groupsOf(cards, "x"), " "), "x-0 x-1 x-1  x-0 x-0"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
