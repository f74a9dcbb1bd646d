package ascend

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/pcie"
)

func settings(t testing.TB, config string) *Settings {
	t.Helper()
	s, err := ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func render(devices []structs.Device) string {
	var text strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&text, "%d %s %s %q %d MiB bus=%s numa=%d group=%q healthy=%v\n", d.Index, d.ID, d.Kind, d.Model, d.Memory>>20, d.PCIBus, d.NUMANode, d.LinkGroup, d.Healthy)
		var keys []string
		for key := range d.Attrs {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprintf(&text, "    %s = %s\n", key, d.Attrs[key])
		}
	}
	return text.String()
}

func TestDevices(t *testing.T) {
	facts, _ := NewFakeLibrary(8).Read()
	fillPorts(&facts, map[int]Port{3: {IP: "10.0.0.3", Gateway: "10.0.0.254"}})
	around := &Surroundings{Places: map[string]pcie.Place{"0000:01:00.0": {Bus: "0000:01:00.0", Path: []string{"pci0000:00", "0000:00:01.0", "0000:01:00.0"}, NUMA: 1, CPUs: "32-63"}}}
	s := settings(t, `{"ignore": ["7", "NPU-0006"]}`)
	h := &Health{}
	h.Resume("b")
	devices := Devices(h.Identify(&facts), around, s)
	nodes := ReadNodes(devicetest.Tree(t, "dev/davinci_manager: x\ndev/hisi_hdc: x\nusr/local/dcmi/libdcmi.so: x\netc/hccn.conf: x"))
	r := reserve(devices[4:6], &nodes)
	if err := r.Bound(); err != nil {
		t.Error(err)
	}
	reservation, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/devices.txt", render(devices)+"\nreservation of 4 and 5:\n"+string(reservation)+"\n")
	snapshot := device.Snapshot{Devices: device.Clone(devices)}
	if dropped := snapshot.Bound(); len(dropped) > 0 {
		t.Errorf("a host would drop %v", dropped)
	}
	if got := r.Environment(true)["ASCEND_RT_VISIBLE_DEVICES"]; got != "0,1" {
		t.Errorf("a container sees %q", got)
	}
	if got := r.Environment(false)["ASCEND_RT_VISIBLE_DEVICES"]; got != "4,5" {
		t.Errorf("a process sees %q", got)
	}
}

func TestParseSMI(t *testing.T) {
	for _, name := range []string{"910b", "a3"} {
		text, err := os.ReadFile("testdata/" + name + ".smi")
		if err != nil {
			t.Fatal(err)
		}
		table, err := ParseSMI(string(text))
		if err != nil {
			t.Fatal(err)
		}
		encoded, err := json.MarshalIndent(table, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		facts := table.facts()
		h := &Health{}
		h.Resume("b")
		golden.Assert(t, "testdata/"+name+".txt", render(Devices(h.Identify(&facts), &Surroundings{}, settings(t, "")))+"\n"+string(encoded)+"\n")
		if got := len(table.samples()); got != len(table.Chips) {
			t.Errorf("%s: %d samples", name, got)
		}
	}
}

func FuzzParseSMI(f *testing.F) {
	for _, name := range []string{"910b", "a3"} {
		text, err := os.ReadFile("testdata/" + name + ".smi")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	f.Add("| 0 x | OK | - - 1/2 |\n| 0 | 0000:01:00.0 | 101 18446744073709551615/ 1 1/ 1 |")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := ParseSMI(text)
		if err != nil {
			return
		}
		for _, r := range table.Chips {
			if !pcie.Valid(r.Bus) || r.Utilization < 0 || r.Utilization > 100 {
				t.Errorf("row %+v", r)
			}
		}
		facts := table.facts()
		h := &Health{}
		h.Resume("b")
		full := h.Identify(&facts)
		s := settings(t, "")
		h.Step(full, nil, time.Unix(0, 0), s.codes)
		Devices(full, &Surroundings{}, s)
	})
}

func TestTool(t *testing.T) {
	text, err := os.ReadFile("testdata/a3.smi")
	if err != nil {
		t.Fatal(err)
	}
	path := t.TempDir() + "/npu-smi"
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat <<'END'\n"+string(text)+"END\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tool := &Tool{Path: path}
	if reason := tool.Open(); reason != nil {
		t.Fatal(reason)
	}
	facts, err := tool.Read()
	if err != nil || len(facts.Chips) != 4 || facts.Driver != "26.0.rc2" {
		t.Errorf("%+v, %v", facts, err)
	}
	if glances, err := tool.Glance(); err != nil || len(glances) != 4 || glances[3].Err == "" || glances[0].Level != 0 {
		t.Errorf("%+v, %v", glances, err)
	}
	for name, bad := range map[string]*Tool{"missing": {Path: "/nonexistent/npu-smi"}, "useless": {Path: "/bin/true"}, "failing": {Path: "/bin/false"}} {
		if reason := bad.Open(); reason == nil || reason.ID != "device.ascend_no_tool" {
			t.Errorf("%s: %v", name, reason)
		}
	}
	chain := NewChain(&Tool{Path: "/nonexistent/npu-smi"}, tool)
	if reason := chain.Open(); reason != nil || chain.Source() != "npu-smi" {
		t.Errorf("chain: %v", reason)
	}
	chain.Close()
}

func TestParseHCCN(t *testing.T) {
	ports := ParseHCCN("address_0=192.168.10.2\nnetmask_0=255.255.255.0\ngateway_0 = 192.168.10.1\n# address_1=1.1.1.1\naddress_1=nonsense\naddress_x=1.2.3.4\nsend_arp_status_0=1\naddress_2=fe80::1\nIPv6address_3=1.1.1.1\naddress_9999=1.1.1.1\n")
	want := map[int]Port{0: {IP: "192.168.10.2", Mask: "255.255.255.0", Gateway: "192.168.10.1"}, 2: {IP: "fe80::1"}}
	if fmt.Sprint(ports) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", ports, want)
	}
}

func FuzzParseHCCN(f *testing.F) {
	f.Add("address_0=192.168.10.2\nnetmask_0=255.255.255.0")
	f.Fuzz(func(t *testing.T, text string) {
		for number, port := range ParseHCCN(text) {
			if number < 0 || number > 1023 || port == (Port{}) {
				t.Errorf("%d: %+v", number, port)
			}
		}
	})
}

func TestCodes(t *testing.T) {
	c, err := ReadCodes([]byte(`{"RestartNPUCodes": ["0x80E21007"], "SeparateNPUCodes": ["80e21007", "AABBCCDD"], "NotHandleFaultNetworkCodes": ["81078603"], "levels": {"1": "cordon"}, "network": "notice", "rings": [{"model": "910C", "size": 16}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Faults[0x80E21007] != device.ActService || c.Faults[0xAABBCCDD] != device.ActService || c.Faults[0x8C084E00] != device.ActCordon || c.Levels[1] != device.ActCordon || c.Network != device.ActNotice {
		t.Errorf("%+v", c)
	}
	if c.ring("Ascend910C") != 16 || c.ring("Ascend910B3") != 8 || c.ring("Ascend310P") != 0 {
		t.Error("rings are wrong")
	}
	for _, bad := range []string{`{`, `{"levels": {"7": "reset"}}`, `{"levels": {"1": "explode"}}`, `{"network": "x"}`, `{"RestartNPUCodes": ["xyz"]}`, `{"rings": [{"size": 4}]}`} {
		if _, err := ReadCodes([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func FuzzReadCodes(f *testing.F) {
	f.Add(builtInCodes)
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ReadCodes(text)
		if err != nil {
			return
		}
		for code, action := range c.Faults {
			if !action.Known() {
				t.Errorf("%08X: %q", code, action)
			}
		}
	})
}

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]string{
		``: "", `{"poll": "1s", "glance": "100ms"}`: "", `{"reset": "auto"}`: "", `{"codes": {"RestartNPUCodes": ["1"]}}`: "",
		`{"poll": "soon"}`: "poll", `{"glance": "1ms"}`: "glance", `{"reset": "x"}`: "reset", `{"unknown": 1}`: "unknown",
		`{"leftover_memory": -1}`: "leftover", `{"codes": {}, "codes_file": "/x"}`: "exclude", `{"codes_file": "/nonexistent"}`: "codes_file",
	} {
		if _, err := ParseConfig([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestHealth tells the story of some chips.
func TestHealth(t *testing.T) {
	s := settings(t, "")
	h := &Health{}
	h.Resume("boot-1")
	facts, _ := NewFakeLibrary(3).Read()
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	now := start
	var story strings.Builder
	tell := func(events []device.Event) {
		for _, e := range events {
			fmt.Fprintf(&story, "    event %s on %s, action %q: %s\n", e.Code, e.DeviceID, e.Action, messages.Text(messages.English, e.Reason.ID, e.Reason.Params))
			if !messages.Has(messages.English, e.Reason.ID) || !messages.Has(messages.Chinese, e.Reason.ID) {
				t.Errorf("the catalogue has no %s", e.Reason.ID)
			}
		}
	}
	var unkillable map[string][]int
	step := func(after time.Duration, what string, change func()) {
		now = now.Add(after)
		if change != nil {
			facts.Chips = slices.Clone(facts.Chips)
			change()
		}
		fmt.Fprintf(&story, "%s  %s\n", now.Sub(start), what)
		full := h.Identify(&facts)
		tell(h.Step(full, unkillable, now, s.codes))
		devices := Devices(full, &Surroundings{}, s)
		h.Apply(devices)
		for _, d := range devices {
			if d.Health != nil {
				fmt.Fprintf(&story, "    %s: healthy %v, %q (%s)\n", d.ID, d.Healthy, d.Attrs[device.AttrAction], d.Attrs[device.AttrFault])
			}
		}
	}
	chip := func(i int) *Chip { return &facts.Chips[i] }
	step(0, "all is well", nil)
	step(time.Second, "a code that restarts the business", func() { chip(0).State = State{Level: 2, Codes: []uint32{0x8C204E00}} })
	step(time.Second, "a code that wants a reset besides", func() { chip(0).State.Codes = []uint32{0x8C204E00, 0x80E18000} })
	step(time.Second, "both are over", func() { chip(0).State = State{} })
	step(calm, "for a while", nil)
	step(time.Second, "an unknown code at level 3", func() { chip(1).State = State{Level: 3, Codes: []uint32{0xDEADBEEF}} })
	step(time.Second, "it does not answer any more", func() { chip(1).Unreadable, chip(1).ID = "device not ready (-8012)", "" })
	step(patience, "for some time", nil)
	step(time.Second, "it answers, and is well", func() { *chip(1) = h.Units["NPU-0001"].Chip; chip(1).State = State{} })
	step(calm, "for a while", nil)
	step(time.Second, "the network of a chip is lost", func() { chip(2).State.Network = 3 })
	step(patience, "for some time", nil)
	step(time.Second, "it starts", func() { chip(2).State.Network = 6 })
	step(calm, "and is well", nil)
	step(time.Second, "only npu-smi can be asked, which knows no dies", func() {
		for i := range facts.Chips {
			chip(i).ID = ""
		}
	})
	step(time.Second, "a chip has vanished", func() { facts.Chips = facts.Chips[:2] })
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	if h, err = decodeHealth(text); err != nil {
		t.Fatal(err)
	}
	h.Resume("boot-1")
	step(time.Second, "the plugin was started anew", nil)
	tell(h.Forget("NPU-0002", now))
	step(time.Second, "an operator says that is right", nil)
	h.Units["NPU-0000"].Unkillable = []int{7}
	step(time.Second, "a process is unkillable", nil)
	unkillable = map[string][]int{"NPU-0000": nil}
	step(calm, "it is gone", nil)
	h.Resume("boot-2")
	step(time.Second, "the machine was rebooted", nil)
	golden.Assert(t, "testdata/health.txt", story.String())
}

func FuzzDecodeHealth(f *testing.F) {
	f.Add([]byte(`{"boot":"b","units":{"a":{"chip":{"id":"a"},"faults":{"gone":{"action":"reboot"}}},"b":null}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		h, err := decodeHealth(text)
		if err != nil {
			return
		}
		h.Resume("x")
		s := settings(t, "")
		facts, _ := NewFakeLibrary(2).Read()
		full := h.Identify(&facts)
		h.Step(full, nil, time.Unix(0, 0), s.codes)
		h.Apply(Devices(full, &Surroundings{}, s))
	})
}

func TestPresent(t *testing.T) {
	for name, c := range map[string]struct{ tree, want string }{
		"nothing": {"etc/x: y", "device.ascend_absent"},
		"driver":  {"dev/davinci_manager: x", ""},
		"library": {"usr/local/dcmi/libdcmi.so: x", ""},
		"card":    {"sys/bus/pci/devices/0000:c1:00.0/vendor: 0x19e5\nsys/bus/pci/devices/0000:c1:00.0/class: 0x120000", "device.ascend_card_without_driver"},
	} {
		got := Present(devicetest.Tree(t, c.tree))
		if (got == nil) != (c.want == "") || got != nil && got.ID != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
	if got := FindLibrary("/nonexistent"); got != "libdcmi.so" {
		t.Errorf("library at %q", got)
	}
}

var errTest = errors.New("the driver was unloaded")
