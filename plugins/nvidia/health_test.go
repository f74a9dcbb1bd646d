package nvidia

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// clinic tells the story of some cards' health.
type clinic struct {
	t      testing.TB
	text   strings.Builder
	s      *Settings
	health *Health
	facts  Facts
	start  time.Time
	now    time.Time
}

func newClinic(t testing.TB, cards int) *clinic {
	s, err := ParseConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &clinic{t: t, s: s, health: &Health{}, start: time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)}
	c.now = c.start
	c.health.Resume("boot-1")
	f := NewFakeLibrary(cards)
	c.facts, _ = f.Read()
	return c
}

// step lets time pass and something happen, and writes what follows.
func (c *clinic) step(after time.Duration, what string, change func(), happened ...Happening) {
	c.now = c.now.Add(after)
	if change != nil {
		change()
	}
	for i := range happened {
		happened[i].At = c.now
		if happened[i].GPU == 0 && happened[i].Compute == 0 && len(c.facts.Cards) > 0 && !c.facts.Cards[0].MIG {
			happened[i].GPU, happened[i].Compute = -1, -1
		}
	}
	fmt.Fprintf(&c.text, "%s  %s\n", c.now.Sub(c.start), what)
	facts := c.facts
	facts.Cards = slices.Clone(facts.Cards)
	c.tell(c.health.Step(Input{Now: c.now, Facts: &facts, Happened: happened}, c.s.actions))
	c.show()
}

func (c *clinic) tell(events []device.Event) {
	for _, e := range events {
		fmt.Fprintf(&c.text, "    event %s on %s, action %q: %s\n", e.Code, e.DeviceID, e.Action, messages.Text(messages.English, e.Reason.ID, e.Reason.Params))
		if !messages.Has(messages.English, e.Reason.ID) || !messages.Has(messages.Chinese, e.Reason.ID) {
			c.t.Errorf("the catalogue has no %s", e.Reason.ID)
		}
	}
}

func (c *clinic) devices() []structs.Device {
	devices := Devices(c.health.Complete(&c.facts), &Surroundings{}, c.s)
	c.health.Apply(devices)
	return devices
}

func (c *clinic) show() {
	for _, d := range c.devices() {
		if !d.Healthy || d.Health != nil {
			fmt.Fprintf(&c.text, "    %s: %s (%s)\n", d.ID, d.Attrs[device.AttrAction], d.Attrs[device.AttrFault])
		}
	}
}

// restart stores and loads, as a restart of the plugin does.
func (c *clinic) restart(boot string) {
	text, err := json.Marshal(c.health)
	if err != nil {
		c.t.Fatal(err)
	}
	if c.health, err = decodeHealth(text); err != nil {
		c.t.Fatal(err)
	}
	c.health.Resume(boot)
	fmt.Fprintf(&c.text, "%s  the plugin is started anew, %s\n", c.now.Sub(c.start), boot)
}

func xid(bus string, number int) Happening {
	return Happening{Bus: bus, XID: number, Source: FromKernel, Uptime: time.Hour}
}

func TestHealthStories(t *testing.T) {
	stories := map[string]func(c *clinic){
		"xids": func(c *clinic) {
			c.step(0, "all is well", nil)
			up := time.Hour
			say := func(number int, text string) Happening {
				up += time.Second
				return Happening{Bus: "0000:01:00.0", XID: number, Source: FromKernel, Uptime: up, PID: 77, Process: "python3", Text: text}
			}
			c.step(time.Minute, "XID 31: a kernel's own fault", nil, say(31, ""))
			c.step(time.Minute, "XID 9999: nobody knows it", nil, say(9999, ""))
			c.step(time.Minute, "XID 48: memory was lost", nil, say(48, ""))
			c.step(time.Second, "the library says the same a second later", nil, Happening{UUID: "GPU-0000", XID: 48, Source: FromLibrary})
			c.step(time.Minute, "XID 79 on the other card", nil, Happening{Bus: "0000:02:00.0", XID: 79, Source: FromLibrary})
			c.step(time.Minute, "XID 154: the driver wants a reboot", nil, say(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x2 (Node Reboot Required)"))
			c.step(0, "an error of a card that was never seen", nil, Happening{Bus: "0000:99:00.0", XID: 79, Source: FromLibrary})
			c.restart("boot-1")
			c.step(time.Second, "nothing is forgotten", nil)
			c.restart("boot-2")
			c.step(time.Second, "the machine was rebooted: the cards get another chance", nil)
		},
		"repeats": func(c *clinic) {
			c.step(0, "all is well", nil)
			for i := range 3 {
				c.step(time.Hour, fmt.Sprintf("XID 92 for the %d. time", i+1), nil, Happening{UUID: "GPU-0000", XID: 92, Source: FromLibrary})
			}
			for i := range 5 {
				c.step(time.Hour, fmt.Sprintf("XID 94 for the %d. time", i+1), nil, Happening{UUID: "GPU-0001", XID: 94, Source: FromLibrary})
			}
		},
		"kernel": func(c *clinic) {
			old := xid("0000:01:00.0", 79)
			c.facts.Driver = "550"
			c.step(0, "all is well", nil)
			old.At = c.now.Add(-time.Hour)
			c.tell(c.health.Step(Input{Now: c.now, Happened: []Happening{old}}, c.s.actions))
			fmt.Fprintf(&c.text, "0s  an error of an hour ago is left to the driver's verdict\n")
			c.show()
			again := xid("0000:02:00.0", 79)
			again.Uptime += time.Minute
			c.step(time.Minute, "a new one counts", nil, again)
			c.tell(c.health.Step(Input{Now: c.now, Happened: []Happening{again, old}}, c.s.actions))
			c.restart("boot-1")
			c.tell(c.health.Step(Input{Now: c.now, Happened: []Happening{old, again}}, c.s.actions))
			fmt.Fprintf(&c.text, "1m0s  the kernel's repeats are not heard twice\n")
		},
		"lost": func(c *clinic) {
			c.step(0, "all is well", nil)
			c.step(5*time.Second, "a card is lost", func() { c.facts.Cards[1] = Card{Index: 1, Bus: "0000:02:00.0", Lost: true, Unreadable: "GPU is lost"} })
			c.step(5*time.Second, "it no longer says where it is", func() { c.facts.Cards[1] = Card{Index: 1, Lost: true, Unreadable: "GPU is lost"} })
			c.step(5*time.Second, "it has vanished", func() { c.facts.Cards = c.facts.Cards[:1] })
			c.restart("boot-1")
			c.step(5*time.Second, "it is not forgotten", nil)
			f := NewFakeLibrary(2)
			c.step(time.Minute, "it is back, which proves nothing", func() { c.facts, _ = f.Read() })
			c.step(time.Minute, "still", nil)
			c.tell(c.health.Forget("GPU-0001", true, c.now))
			c.step(0, "an operator clears it", nil)
			c.step(time.Minute, "another card is taken out", func() { c.facts.Cards = c.facts.Cards[1:] })
			c.tell(c.health.Forget("GPU-0000", true, c.now))
			c.step(0, "an operator says that is right", nil)
		},
		"conditions": func(c *clinic) {
			c.step(0, "all is well", nil)
			c.step(5*time.Second, "heat", func() { c.facts.Cards[0].State.ThermalSlowdown, c.facts.Cards[0].State.Temperature = true, 92 })
			c.step(55*time.Second, "still hot", nil)
			c.step(5*time.Second, "for a minute now", nil)
			c.step(5*time.Second, "cool", func() { c.facts.Cards[0].State.ThermalSlowdown = false })
			c.step(29*time.Second, "for a while", nil)
			c.step(5*time.Second, "and well", nil)
			c.step(5*time.Second, "a row waits to be remapped", func() { c.facts.Cards[0].State.RemapPending = true })
			c.step(5*time.Second, "and another failed", func() { c.facts.Cards[0].State.RemapFailed = true })
			c.step(5*time.Second, "links go down on the other one", func() { c.facts.Cards[1].Links = []Link{{Up: true}, {Up: true}} })
			c.step(5*time.Second, "one of two", func() { c.facts.Cards[1].Links = []Link{{Up: true}, {Up: false}} })
			c.step(10*time.Second, "for ten seconds", nil)
			c.step(5*time.Second, "up again, but eight lanes only", func() {
				c.facts.Cards[1].Links = []Link{{Up: true}, {Up: true}}
				c.facts.Cards[1].State.PCIeWidth = 8
			})
			c.step(30*time.Second, "for half a minute", nil)
			errors := uint64(3)
			c.step(5*time.Second, "uncorrected errors appear", func() { c.facts.Cards[1].State.ECCUncorrected = &errors })
			c.step(5*time.Second, "no more of them", nil)
			c.restart("boot-2")
			c.step(time.Second, "rebooted, the failed row is still failed", func() {
				c.facts.Cards[0].State.RemapPending = false
				c.facts.Cards[1].State.PCIeWidth = 16
			})
		},
		"links": func(c *clinic) {
			count := func(card int, errors, recoveries uint64) func() {
				return func() {
					c.facts.Cards[card].State.LinkErrors, c.facts.Cards[card].State.LinkRecoveries = &errors, &recoveries
				}
			}
			count(0, 7, 1)()
			c.step(0, "errors of before are nobody's news", nil)
			c.step(5*time.Second, "no new ones", nil)
			c.step(5*time.Second, "a link makes errors", count(0, 9, 1))
			c.step(5*time.Second, "more of them are the same fault", count(0, 400, 1))
			c.step(linksCalm-5*time.Second, "quiet, but not for long", nil)
			c.step(0, "a link had to be set up anew", count(0, 400, 2))
			c.restart("boot-1")
			c.step(time.Second, "nothing is forgotten, and nothing told twice", nil)
			c.step(5*time.Second, "the other card can tell from now on", count(1, 12, 0))
			c.step(linksCalm, "quiet for long", nil)
			c.step(5*time.Second, "the driver was loaded anew: counts begin at zero", count(0, 0, 0))
			c.step(5*time.Second, "and errors come again", count(0, 1, 0))
			c.tell(c.health.Forget("GPU-0000", true, c.now))
			c.step(0, "an operator clears it", nil)
			c.step(5*time.Second, "the other one, too", count(1, 13, 0))
			c.restart("boot-2")
			c.step(time.Second, "rebooted", count(1, 0, 0))
		},
		"verdict": func(c *clinic) {
			reset, none, reboot := 1, 0, 2
			c.step(0, "all is well", nil)
			c.step(time.Second, "XID 95", nil, Happening{UUID: "GPU-0000", XID: 95, Source: FromLibrary})
			c.step(time.Second, "the driver asks for a reset", func() { c.facts.Cards[0].State.Recovery = &reset })
			c.step(time.Second, "the driver asks for a reboot", func() { c.facts.Cards[0].State.Recovery = &reboot })
			c.step(time.Second, "somebody has reset the card: the driver asks for nothing", func() { c.facts.Cards[0].State.Recovery = &none })
			c.step(calm, "all is well", nil)
		},
		"mig": func(c *clinic) {
			c.facts.Cards[0].MIG = true
			c.facts.Cards[0].Instances = []Instance{{UUID: "MIG-a", Profile: "1g.10gb", GPU: 7}, {UUID: "MIG-b", Profile: "1g.10gb", GPU: 8}}
			c.step(0, "all is well", nil)
			c.step(time.Second, "a kernel's fault in one instance", nil, Happening{UUID: "GPU-0000", XID: 31, GPU: 8, Compute: -1, Source: FromLibrary})
			c.step(time.Second, "a hardware fault in one instance hits the card", nil, Happening{UUID: "GPU-0000", XID: 48, GPU: 7, Compute: 0, Source: FromLibrary})
			c.step(time.Second, "the card is divided anew", func() {
				c.facts.Cards[0].Instances = []Instance{{UUID: "MIG-c", Profile: "7g.80gb", GPU: 0}}
			})
		},
		"leftover": func(c *clinic) {
			c.step(0, "all is well", nil)
			c.health.Units["GPU-0000"].Unkillable = []int{77, 78}
			c.health.Units["GPU-0001"].Suspect = true
			c.step(time.Second, "two processes cannot be killed, and memory belongs to nobody", nil)
			facts := c.facts
			c.now = c.now.Add(time.Second)
			c.tell(c.health.Step(Input{Now: c.now, Facts: &facts, Unkillable: map[string][]int{"GPU-0000": nil}}, c.s.actions))
			c.step(calm, "the processes are gone", nil)
			c.tell(c.health.Forget("GPU-0001", false, c.now))
			c.step(0, "the other card was reset", nil)
		},
		"fabric": func(c *clinic) {
			c.facts.Cards[0].Fabric = &Fabric{}
			c.step(0, "the fabric manager is starting", nil)
			c.step(40*time.Second, "it does not come", nil)
			c.step(time.Second, "it comes", func() { c.facts.Cards[0].Fabric = &Fabric{Cluster: "c", Ready: true} })
			c.step(calm, "all is well", nil)
			c.step(time.Second, "the fabric says no", func() { c.facts.Cards[0].Fabric = &Fabric{Cluster: "c", Ready: true, Error: "unknown"} })
			c.step(calm, "still", nil)
		},
	}
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t, 2)
			tell(c)
			golden.Assert(t, "testdata/health/"+name+".txt", c.text.String())
		})
	}
}

// TestEveryReasonHasAText renders all that the table can lead to.
func TestEveryReasonHasAText(t *testing.T) {
	a, err := ReadActions(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name := range a.Conditions {
		id := "device.nvidia_" + strings.ReplaceAll(name, "-", "_")
		if !messages.Has(messages.English, id) || !messages.Has(messages.Chinese, id) {
			t.Errorf("the catalogue has no %s", id)
		}
	}
	for _, action := range []device.Action{device.ActNone, device.ActNotice, device.ActTask, device.ActCordon, device.ActReset, device.ActReboot, device.ActService} {
		if id := "device.action_" + string(action); !messages.Has(messages.English, id) || !messages.Has(messages.Chinese, id) {
			t.Errorf("the catalogue has no %s", id)
		}
	}
}

// TestFaultsStay: whatever happens, a card that asks to be drained never takes
// work again without a reset, an operator, a reboot or the driver's word; a
// restart of the plugin changes nothing; and nothing grows without bound.
func TestFaultsStay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s, err := ParseConfig(nil)
		if err != nil {
			rt.Fatal(err)
		}
		h := &Health{}
		h.Resume("boot")
		library := NewFakeLibrary(2)
		facts, _ := library.Read()
		for i := range facts.Cards {
			facts.Cards[i].State.Recovery = nil // no word of the driver
		}
		now, uptime := time.Unix(1_800_000_000, 0).UTC(), time.Hour
		drained := map[string]bool{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 90).Draw(rt, "seconds")) * time.Second)
			uptime += time.Second
			in := Input{Now: now}
			card := rapid.IntRange(0, 1).Draw(rt, "card")
			uuid := fmt.Sprintf("GPU-%04d", card)
			switch rapid.IntRange(0, 7).Draw(rt, "what") {
			case 0, 1:
				source := rapid.SampledFrom([]Source{FromLibrary, FromKernel}).Draw(rt, "source")
				number := rapid.SampledFrom([]int{13, 31, 48, 63, 74, 79, 92, 94, 95, 119, 4711}).Draw(rt, "xid")
				in.Happened = []Happening{{At: now, Uptime: uptime, Bus: fmt.Sprintf("0000:%02x:00.0", card+1), XID: number, GPU: -1, Compute: -1, Source: source}}
				if rule := s.actions.xid(number); rule.Action.Drains() && !echoed(h, uuid, number, in.Happened[0]) {
					drained[uuid] = true
				}
			case 2:
				facts.Cards[card].Lost = rapid.Bool().Draw(rt, "lost")
			case 3:
				facts.Cards[card].State.ThermalSlowdown = rapid.Bool().Draw(rt, "hot")
			case 4:
				facts.Cards[card].State.RemapPending = rapid.Bool().Draw(rt, "pending")
			case 5:
				h.Forget(uuid, true, now)
				delete(drained, uuid)
			case 6:
				text, err := json.Marshal(h)
				if err != nil {
					rt.Fatal(err)
				}
				before := verdicts(h, &facts, s)
				if h, err = decodeHealth(text); err != nil {
					rt.Fatal(err)
				}
				h.Resume("boot")
				if after := verdicts(h, &facts, s); after != before {
					rt.Fatalf("a restart changes\n%s\nto\n%s", before, after)
				}
			case 7:
				if h.Worst(uuid) == device.ActReset {
					h.Forget(uuid, false, now)
					delete(drained, uuid)
				}
			}
			read := facts
			read.Cards = slices.Clone(facts.Cards)
			in.Facts = &read
			for _, e := range h.Step(in, s.actions) {
				if e.Reason == nil || e.Code == "" || e.DeviceID == "" {
					rt.Fatalf("event %+v", e)
				}
			}
			for uuid := range drained {
				if !h.Worst(uuid).Drains() {
					rt.Fatalf("%s was to be drained and takes work again", uuid)
				}
			}
			for _, unit := range h.Units {
				if len(unit.Faults) > faultsMax || len(unit.History) > historyMax {
					rt.Fatalf("%d faults, %d happenings", len(unit.Faults), len(unit.History))
				}
			}
		}
	})
}

func echoed(h *Health, uuid string, number int, e Happening) bool {
	unit := h.Units[uuid]
	return unit == nil || unit.Card.UUID == "" || unit.echoes(fmt.Sprintf("xid-%d", number), e)
}

func verdicts(h *Health, facts *Facts, s *Settings) string {
	devices := Devices(h.Complete(facts), &Surroundings{}, s)
	h.Apply(devices)
	var text strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&text, "%s %v %s %s\n", d.ID, d.Healthy, d.Attrs[device.AttrAction], d.Attrs[device.AttrFault])
	}
	return text.String()
}

func FuzzDecodeHealth(f *testing.F) {
	f.Add([]byte(`{"boot":"b","units":{"GPU-0000":{"card":{"uuid":"GPU-0000"},"faults":[{"code":"xid-79","action":"reboot"}]}}}`))
	f.Add([]byte(`{"units":{"a":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := decodeHealth(text)
		if err != nil {
			return
		}
		h.Resume("boot")
		s, err := ParseConfig(nil)
		if err != nil {
			t.Fatal(err)
		}
		facts, _ := NewFakeLibrary(2).Read()
		h.Step(Input{Now: time.Unix(0, 0), Facts: &facts, Happened: []Happening{{UUID: "GPU-0000", XID: 79, GPU: -1, Compute: -1, Source: FromLibrary}}}, s.actions)
		h.Apply(Devices(h.Complete(&facts), &Surroundings{}, s))
		if !h.Worst("GPU-0000").Drains() && len(h.Units) <= cardsMax-2 {
			t.Error("XID 79 was not noticed")
		}
	})
}
