package cambricon

import (
	"os"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/messages"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/runtime"
)

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]string{
		``: "", `{"poll": "1s", "ignore": ["0"]}`: "", `{"faults": {"faults": [{"code": "xid", "action": "cordon", "after": "1m"}]}}`: "",
		`{"poll": "1ms"}`: "poll", `{"reset": "auto"}`: "reset", `{"unknown": 1}`: "unknown", `{"leftover_memory": -1}`: "leftover",
		`{"faults": {"faults": [{"code": "xid", "action": "explode"}]}}`: "explode", `{"faults": {"faults": [{"action": "reset"}]}}`: "code",
		`{"faults": {"unknown": "x"}}`: "unknown", `{"faults": {"faults": [{"code": "xid", "after": "-1s"}]}}`: "after",
		`{"faults": {}, "faults_file": "/x"}`: "exclude", `{"faults_file": "/nonexistent"}`: "faults_file",
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

func TestPresent(t *testing.T) {
	for name, c := range map[string]struct{ tree, want string }{
		"nothing": {"etc/x: y", "device.card_absent"},
		"driver":  {"dev/cambricon_ctl: x", ""},
		"card":    {"sys/bus/pci/devices/0000:9e:00.0/vendor: 0xcabc\nsys/bus/pci/devices/0000:9e:00.0/class: 0x120000", "device.card_without_driver"},
	} {
		got := Vendor().Present(devicetest.Tree(t, c.tree))
		if (got == nil) != (c.want == "") || got != nil && got.ID != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	if got := Vendor().FindLibrary(devicetest.Tree(t, "usr/lib64/libcndev.so: x")); !strings.HasSuffix(got, "/usr/lib64/libcndev.so") {
		t.Errorf("library at %q", got)
	}
}

func FuzzParseCnmon(f *testing.F) {
	text, err := os.ReadFile("testdata/mlu370.json")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"CnmonInfo": [{"CardNum": -1, "PhysicalMemUsage": {"Total": "x"}}, {"CardNum": [1], "PCI": {"Bus": "\""}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := ParseCnmon(text)
		if err != nil {
			return
		}
		var facts card.Facts
		for i := range rows {
			facts.Cards = append(facts.Cards, rows[i].card(i))
			for key, value := range rows[i].sample().Gauges {
				if value < 0 {
					t.Errorf("%s is %v", key, value)
				}
			}
		}
		v := Vendor()
		s, err := v.ParseConfig(nil)
		if err != nil {
			t.Fatal(err)
		}
		h := &card.Health{}
		h.Resume("b")
		table, _ := card.ReadTable(builtInFaults, nil)
		full := h.Identify(&facts, v.Noun)
		h.Step(full, nil, time.Unix(0, 0), v, table)
		for _, d := range v.Devices(full, &runtime.Surroundings{}, s) {
			if d.ID == "" || d.Kind != device.KindCambricon {
				t.Errorf("%+v", d)
			}
		}
	})
}
