package nvidia

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/pcie"
	"nomadlike/plugins/device/rdma"
)

// machine is a node for goldens: its cards and where they sit.
type machine struct {
	facts  Facts
	tree   strings.Builder
	config string
}

// add puts a card at a path of the PCI tree.
func (m *machine) add(path string, numa int, change func(*Card)) {
	bus := filepath.Base(path)
	m.pci(path, numa)
	number := len(m.facts.Cards)
	card := Card{UUID: fmt.Sprintf("GPU-%d", number), Index: number, Minor: number, Name: "NVIDIA H100 80GB HBM3", Arch: "hopper", Bus: bus, Memory: 80 << 30}
	if change != nil {
		change(&card)
	}
	m.facts.Cards = append(m.facts.Cards, card)
}

func (m *machine) pci(path string, numa int) {
	bus := filepath.Base(path)
	fmt.Fprintf(&m.tree, "sys/devices/%s/numa_node: %d\nsys/bus/pci/devices/%s -> ../../../devices/%s\n", path, numa, bus, path)
}

// nic puts an active RDMA card there.
func (m *machine) nic(name, path string, numa int) {
	m.pci(path, numa)
	fmt.Fprintf(&m.tree, "sys/class/infiniband/%s/device -> ../../../devices/%s\nsys/class/infiniband/%s/ports/1/state: 4: ACTIVE\n", name, path, name)
}

func (m *machine) around(t *testing.T) *Surroundings {
	root := devicetest.Tree(t, m.tree.String())
	around := &Surroundings{Net: rdma.Read(root), Places: make(map[string]pcie.Place)}
	for _, card := range m.facts.Cards {
		place, err := pcie.Read(root, card.Bus)
		if err != nil {
			t.Fatal(err)
		}
		around.Places[card.Bus] = place
	}
	return around
}

// machines are the nodes that the goldens show.
func machines() map[string]func(*machine) {
	links := func(remotes ...string) []Link {
		var all []Link
		for _, remote := range remotes {
			all = append(all, Link{Up: remote != "", Remote: remote})
		}
		return all
	}
	return map[string]func(*machine){
		// Eight cards behind switches, a network card beside each.
		"dgx-h100": func(m *machine) {
			for i := range 8 {
				root := []string{"15", "26", "37", "48", "85", "96", "a7", "b8"}[i]
				base := fmt.Sprintf("pci0000:%s/0000:%s:01.0/0000:%x0:00.0", root, root, i+1)
				m.add(fmt.Sprintf("%s/0000:%x1:00.0/0000:%x3:00.0", base, i+1, i+1), i/4, func(c *Card) {
					for k := range 18 {
						c.Links = append(c.Links, Link{Up: true, Switch: true, Remote: fmt.Sprintf("0000:f%d:00.0", k%4)})
					}
				})
				m.nic(fmt.Sprintf("mlx5_%d", i), fmt.Sprintf("%s/0000:%x1:01.0/0000:%x4:00.0", base, i+1, i+1), i/4)
			}
		},
		// Four cards with bridges between pairs.
		"a100-pairs": func(m *machine) {
			buses := []string{"0000:17:00.0", "0000:65:00.0", "0000:ca:00.0", "0000:e3:00.0"}
			for i, bus := range buses {
				m.add(fmt.Sprintf("pci0000:%s/0000:%s:02.0/%s", bus[5:7], bus[5:7], bus), i/2, func(c *Card) {
					c.Name, c.Arch = "NVIDIA A100 80GB PCIe", "ampere"
					other := buses[i^1]
					c.Links = links(other, other, other, "")
				})
			}
			m.nic("mlx5_0", "pci0000:ca/0000:ca:03.0/0000:cb:00.0", 1)
		},
		// Cards without NVLink in two sockets, two of them under one switch.
		"pcie": func(m *machine) {
			m.add("pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:00.0/0000:19:00.0", 0, nil)
			m.add("pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:04.0/0000:1a:00.0", 0, nil)
			m.add("pci0000:30/0000:30:02.0/0000:31:00.0", 0, nil)
			m.add("pci0000:80/0000:80:02.0/0000:81:00.0", 1, nil)
			m.add("pci0000:90/0000:90:02.0/0000:91:00.0", -1, nil)
		},
		// MIG: one card divided, one in MIG mode without instances, one whole.
		"mig": func(m *machine) {
			for i := range 3 {
				m.add(fmt.Sprintf("pci0000:%d0/0000:%d0:02.0/0000:%d1:00.0", i+1, i+1, i+1), 0, func(c *Card) {
					if i < 2 {
						c.MIG = true
					}
					if i == 0 {
						c.Instances = []Instance{{UUID: "MIG-a", Profile: "1g.10gb", Memory: 9728 << 20, GPU: 7}, {UUID: "MIG-b", Profile: "3g.40gb", Memory: 40 << 30, GPU: 1, Compute: 0}}
					}
				})
			}
		},
		// Parts by configuration, and a card that is left out.
		"shared": func(m *machine) {
			for i := range 4 {
				m.add(fmt.Sprintf("pci0000:%d0/0000:%d0:02.0/0000:%d1:00.0", i+1, i+1, i+1), 0, nil)
			}
			m.config = `{"ignore": ["0000:41:00.0"], "share": [{"cards": ["0"], "how": "time-slice", "parts": 3}, {"cards": ["GPU-1"], "how": "mps", "parts": 2, "pipe_dir": "/run/mps"}]}`
		},
		// A rack-wide fabric, one card not set up yet.
		"fabric": func(m *machine) {
			for i := range 4 {
				m.add(fmt.Sprintf("pci000%d:00/000%d:00:00.0/000%d:01:00.0", i, i, i), i/2, func(c *Card) {
					c.Fabric = &Fabric{Cluster: "c0ffee", Clique: 32766, Ready: i != 3}
					for range 18 {
						c.Links = append(c.Links, Link{Up: true, Switch: true})
					}
				})
			}
		},
	}
}

func TestDevices(t *testing.T) {
	for name, build := range machines() {
		t.Run(name, func(t *testing.T) {
			m := &machine{facts: Facts{Driver: "550.54.15", CUDA: "12.4"}}
			build(m)
			s, err := ParseConfig([]byte(m.config))
			if err != nil {
				t.Fatal(err)
			}
			around := m.around(t)
			devices := Devices(&m.facts, around, s)
			golden.Assert(t, "testdata/"+name+".txt", render(&m.facts, around, devices))
			snapshot := device.Snapshot{Devices: device.Clone(devices)}
			if dropped := snapshot.Bound(); len(dropped) > 0 {
				t.Errorf("a host would drop %v", dropped)
			}
			// The order in which the library names cards does not matter.
			slices.Reverse(m.facts.Cards)
			for i, d := range Devices(&m.facts, around, s) {
				if d.ID != devices[i].ID || (d.LinkGroup == "") != (devices[i].LinkGroup == "") {
					t.Errorf("in reverse order device %d is %s in %q", i, d.ID, d.LinkGroup)
				}
			}
		})
	}
}

// render shows devices and distances as people would draw them.
func render(facts *Facts, around *Surroundings, devices []structs.Device) string {
	var text strings.Builder
	for _, d := range devices {
		fmt.Fprintf(&text, "%d %s %s %q %d MiB bus=%s numa=%d group=%q\n", d.Index, d.ID, d.Kind, d.Model, d.Memory>>20, d.PCIBus, d.NUMANode, d.LinkGroup)
		var keys []string
		for key := range d.Attrs {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			fmt.Fprintf(&text, "    %s = %s\n", key, d.Attrs[key])
		}
	}
	fmt.Fprintf(&text, "\n%6s", "")
	for _, card := range facts.Cards {
		fmt.Fprintf(&text, "%6s", card.UUID)
	}
	text.WriteString("\n")
	for i, row := range Matrix(facts.Cards, around) {
		fmt.Fprintf(&text, "%6s", facts.Cards[i].UUID)
		for _, word := range row {
			fmt.Fprintf(&text, "%6s", word)
		}
		text.WriteString("\n")
	}
	return text.String()
}

func TestReserve(t *testing.T) {
	root := devicetest.Tree(t, `
dev/nvidiactl: x
dev/nvidia-uvm: x
proc/driver/nvidia/capabilities/gpu0/mig/gi7/access: DeviceFileMinor: 66\nDeviceFileMode: 292
proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access: DeviceFileMinor: 67\nDeviceFileMode: 292
proc/driver/nvidia/capabilities/gpu0/mig/gi1/access: DeviceFileMinor: 12
proc/driver/nvidia/capabilities/mig/config: DeviceFileMinor: 1
usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15: x
usr/lib/x86_64-linux-gnu/libcuda.so.1 -> libcuda.so.550.54.15
usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15: x
usr/lib/x86_64-linux-gnu/libnvidia-glcore.so.550.54.15: x
usr/lib/x86_64-linux-gnu/libcuda.so.535.1: x
usr/bin/nvidia-smi: x
`)
	nodes := ReadNodes(root, "550.54.15")
	if hostile := ReadNodes(root, "../../../*"); len(hostile.Libraries) != 0 {
		t.Errorf("a hostile driver version finds %v", hostile.Libraries)
	}
	cases := map[string]struct{ machine, ids string }{
		"whole":      {"dgx-h100", "GPU-2,GPU-3"},
		"mig":        {"mig", "MIG-a"},
		"mps":        {"shared", "GPU-1::2"},
		"time-slice": {"shared", "GPU-0::1,GPU-0::3"},
	}
	var text strings.Builder
	for _, name := range []string{"whole", "mig", "mps", "time-slice"} {
		c := cases[name]
		m := &machine{facts: Facts{Driver: "550.54.15", CUDA: "12.4"}}
		machines()[c.machine](m)
		s, err := ParseConfig([]byte(m.config))
		if err != nil {
			t.Fatal(err)
		}
		var chosen []structs.Device
		for _, d := range Devices(&m.facts, m.around(t), s) {
			if slices.Contains(strings.Split(c.ids, ","), d.ID) {
				chosen = append(chosen, d)
			}
		}
		r := reserve(chosen, &nodes, s)
		if err := r.Bound(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		encoded, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s: %s\n%s\n", name, c.ids, encoded)
	}
	golden.Assert(t, "testdata/reserve.txt", text.String())
}

func TestParseConfig(t *testing.T) {
	for text, want := range map[string]string{
		``:                          "",
		`{}`:                        "",
		`{"poll": "2s"}`:            "",
		`{"poll": "1ms"}`:           "poll",
		`{"poll": "soon"}`:          "poll",
		`{"unknown": 1}`:            "unknown",
		`{"reset": "always"}`:       "reset",
		`{"leftover_memory": -1}`:   "leftover_memory",
		`{"share": [{"how": "x"}]}`: "how",
		`{"share": [{"how": "mps", "parts": 1}]}`:                                          "parts",
		`{"share": [{"how": "mps", "parts": 2, "pipe_dir": "../x"}]}`:                      "pipe_dir",
		`{"actions": {"xid": [{"code": 31, "action": "reset"}]}}`:                          "",
		`{"actions": {"xid": [{"code": 31, "action": "explode"}]}}`:                        "explode",
		`{"actions": {"condition": [{"name": "bad-mood", "action": "reset"}]}}`:            "bad-mood",
		`{"actions": {"condition": [{"name": "thermal", "after": "-1s"}]}}`:                "after",
		`{"actions": {"xid": [{"code": 92, "repeat": {"count": 1, "within": "1h"}}]}}`:     "repeat",
		`{"actions": {}, "actions_file": "/x"}`:                                            "exclude",
		`{"actions_file": "/nonexistent/actions.json"}`:                                    "actions_file",
		`{"actions": {"unknown_xid": "cordon", "recovery": [{"code": 5, "action": ""}]}} `: "",
	} {
		_, err := ParseConfig([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestActionsOverride(t *testing.T) {
	a, err := ReadActions([]byte(`{"xid": [{"code": 94, "action": "cordon"}, {"code": 9999, "action": "reboot", "meaning": "new"}], "condition": [{"name": "thermal", "action": ""}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if r := a.xid(94); r.Action != device.ActCordon || r.Repeat != nil || r.Meaning == "" {
		t.Errorf("94 is %+v", r)
	}
	if r := a.xid(9999); r.Action != device.ActReboot || r.Meaning != "new" {
		t.Errorf("9999 is %+v", r)
	}
	if r := a.xid(79); r.Action != device.ActReboot {
		t.Errorf("79 is %+v", r)
	}
	if r := a.xid(12345); r.Action != device.ActNotice {
		t.Errorf("an unknown one is %+v", r)
	}
	if r := a.Conditions["thermal"]; r.Action != device.ActNone || r.After == 0 {
		t.Errorf("thermal is %+v", r)
	}
}

func FuzzReadActions(f *testing.F) {
	f.Add([]byte(`{"xid": [{"code": 1, "action": "reset", "repeat": {"count": 3, "within": "1h", "action": "reboot"}}]}`))
	f.Add(builtInActions)
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := ReadActions(text)
		if err != nil {
			return
		}
		for code, rule := range a.XIDs {
			if !rule.Action.Known() || rule.Repeat != nil && (rule.Repeat.Count < 2 || rule.Repeat.Within <= 0) {
				t.Errorf("%d: %+v", code, rule)
			}
		}
	})
}

func TestPresent(t *testing.T) {
	for name, c := range map[string]struct{ tree, want string }{
		"nothing":                {"etc/x: y", "device.nvidia_absent"},
		"driver":                 {"proc/driver/nvidia/version: NVRM version", ""},
		"node":                   {"dev/nvidiactl: x", ""},
		"library":                {"usr/lib64/libnvidia-ml.so.1: x", ""},
		"card without a driver":  {`sys/bus/pci/devices/0000:17:00.0/vendor: 0x10de\nsys` + "\n" + "sys/bus/pci/devices/0000:18:00.0/vendor: 0x10de\nsys/bus/pci/devices/0000:18:00.0/class: 0x030200", "device.nvidia_card_without_driver"},
		"another vendor's card":  {"sys/bus/pci/devices/0000:18:00.0/vendor: 0x1002\nsys/bus/pci/devices/0000:18:00.0/class: 0x030200", "device.nvidia_absent"},
		"another vendor's audio": {"sys/bus/pci/devices/0000:18:00.0/vendor: 0x10de\nsys/bus/pci/devices/0000:18:00.0/class: 0x040300", "device.nvidia_absent"},
	} {
		got := Present(devicetest.Tree(t, c.tree))
		if (got == nil) != (c.want == "") || got != nil && got.ID != c.want {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}
