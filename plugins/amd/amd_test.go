package amd

import (
	"os"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/runtime"
)

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]string{
		``: "", `{"reset": "auto", "faults": {"faults": [{"code": "thermal", "action": "cordon"}]}}`: "",
		`{"reset": "x"}`: "reset", `{"unknown": 1}`: "unknown", `{"faults": {"faults": [{"code": "thermal", "action": "x"}]}}`: "thermal",
	} {
		if _, err := Vendor().ParseConfig([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// Every line of the table has a text of its own in both languages.
func TestEveryFaultHasAText(t *testing.T) {
	table, err := card.ReadTable(builtInFaults, nil)
	if err != nil {
		t.Fatal(err)
	}
	for code := range table.Rules {
		id := "device.card_" + strings.ReplaceAll(code, "-", "_")
		if !messages.Has(messages.English, id) || !messages.Has(messages.Chinese, id) {
			t.Errorf("the catalogue has no %s", id)
		}
	}
}

// Cards without a unique id are named by their numbers, which begin anew in a
// container.
func TestReserveByNumber(t *testing.T) {
	var r device.Reservation
	reserve([]structs.Device{{ID: "GPU-0000:c1:00.0", Index: 2}, {ID: "GPU-4fd3d0e445b9207e", Index: 5}}, &r)
	if r.Env["ROCR_VISIBLE_DEVICES"] != "2,5" || r.Env["HIP_VISIBLE_DEVICES"] != "0,1" || r.Environment(true)["ROCR_VISIBLE_DEVICES"] != "0,1" {
		t.Errorf("%+v", r)
	}
}

func TestPresent(t *testing.T) {
	for name, c := range map[string]struct{ tree, want string }{
		"nothing":    {"etc/x: y", "device.card_absent"},
		"driver":     {"dev/kfd: x", ""},
		"card":       {"sys/bus/pci/devices/0000:c1:00.0/vendor: 0x1002\nsys/bus/pci/devices/0000:c1:00.0/class: 0x120000", "device.card_without_driver"},
		"a graphics": {"sys/bus/pci/devices/0000:c1:00.0/vendor: 0x1002\nsys/bus/pci/devices/0000:c1:00.0/class: 0x030000", "device.card_absent"},
	} {
		got := Vendor().Present(devicetest.Tree(t, c.tree))
		if (got == nil) != (c.want == "") || got != nil && got.ID != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}

func FuzzParseROCm(f *testing.F) {
	text, err := os.ReadFile("testdata/mi300x.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	f.Add(`WARNING {"card7": {"PCI Bus": 1, "Unique ID": "0xffffffffffffffffff", "GPU use (%)": "-1"}, "card-1": {}}`)
	f.Fuzz(func(t *testing.T, text string) {
		rows, _, err := ParseROCm(text)
		if err != nil {
			return
		}
		var facts card.Facts
		for i := range rows {
			facts.Cards = append(facts.Cards, rows[i].card(i))
			for key, value := range rows[i].gauges() {
				if value < 0 {
					t.Errorf("%s is %v", key, value)
				}
			}
		}
		v, h := Vendor(), &card.Health{}
		s, err := v.ParseConfig(nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Resume("b")
		table, _ := card.ReadTable(builtInFaults, nil)
		full := h.Identify(&facts, v.Noun)
		h.Step(full, nil, time.Unix(0, 0), v, table)
		v.Devices(full, &runtime.Surroundings{}, s)
	})
}
