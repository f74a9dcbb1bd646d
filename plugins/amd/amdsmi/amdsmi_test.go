package amdsmi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/plugins/amd"
	"nomadlike/plugins/amd/amdsmi"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/fakelib"
	"nomadlike/plugins/host"
)

// TestMain lets the test program stand in for the plugin's, by the name that it
// is started under.
func TestMain(m *testing.M) {
	if os.Args[0] == amd.Name {
		amdsmi.Serve()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func build(t testing.TB, hidden ...string) string {
	t.Helper()
	return fakelib.Library{Name: "libamd_smi.so", Source: "testdata/fakelib/fake_amdsmi.c"}.Build(t, hidden...)
}

func script(t testing.TB, lines ...string) *fakelib.Script {
	t.Helper()
	return fakelib.NewScript(t, "FAKE_AMDSMI_SCRIPT", lines...)
}

// cards returns the lines of several cards.
func cards(count int) []string {
	var lines []string
	for i := range count {
		lines = append(lines, fmt.Sprintf(`gpu %d bus=%#x name="AMD Instinct MI300X" memory=196592 used=280 util=35`, i, 0xc1+i))
	}
	return lines
}

// tree is the kernel's side of as many cards, which XGMI joins in a ring.
func tree(t testing.TB, count int) string {
	t.Helper()
	const nodes = "sys/class/kfd/kfd/topology/nodes/"
	lines := []string{nodes + "0/gpu_id: 0", nodes + `0/properties: cpu_cores_count 96\nsimd_count 0`, "sys/module/amdgpu/version: 6.10.5", "dev/kfd: x"}
	for i := range count {
		node := fmt.Sprintf("%s%d/", nodes, i+1)
		bus := fmt.Sprintf("sys/bus/pci/devices/0000:%02x:00.0/", 0xc1+i)
		lines = append(lines,
			fmt.Sprintf("%sgpu_id: %d", node, 40000+i),
			fmt.Sprintf(`%sproperties: simd_count 1216\nlocation_id %d\ndomain 0\ndrm_render_minor %d\nunique_id %d\ngfx_target_version 90402`, node, (0xc1+i)<<8, 128+8*i, 5752170827923136638+i),
			node+`io_links/0/properties: type 2\nnode_to 0`,
			fmt.Sprintf(`%sio_links/1/properties: type 11\nnode_to %d`, node, (i+1)%count+1),
			bus+"current_link_width: 16", bus+"hwmon/hwmon3/power1_average: 140000000", bus+"hwmon/hwmon3/power1_cap: 750000000")
	}
	return devicetest.Tree(t, strings.Join(lines, "\n"))
}

func TestReadAndSample(t *testing.T) {
	s := script(t, append(cards(2), `gpu 2 bus=0xc3 silent=1`, `gpu 3 bus=0xc4 name="AMD Instinct MI300X" memory=196592 temp=112000 hot=110000 ecc=3 pending=2 failed=1 xgmi=1`,
		`gpu 4 bus=0x03 name="not for computing" memory=512`)...)
	s.Here()
	root := tree(t, 4)
	must(t, os.MkdirAll(root+"/sys/class/kfd/kfd/proc/77", 0o755))
	must(t, os.WriteFile(root+"/sys/class/kfd/kfd/proc/77/vram_40000", []byte("1073741824\n"), 0o644))
	must(t, os.WriteFile(root+"/sys/class/kfd/kfd/proc/77/vram_40001", []byte("0\n"), 0o644))
	var text strings.Builder
	for _, hidden := range [][]string{nil, {"amdsmi_get_gpu_memory_total", "amdsmi_get_gpu_total_ecc_count", "amdsmi_get_gpu_bad_page_info", "amdsmi_get_temp_metric", "amdsmi_get_gpu_asic_info"}} {
		l := amdsmi.New(build(t, hidden...), root)
		if reason := l.Open(); reason != nil {
			t.Fatal(reason)
		}
		facts, err := l.Read()
		must(t, err)
		samples, err := l.Sample()
		must(t, err)
		for _, each := range []any{facts.Driver, facts.Library, len(facts.Cards), facts.Cards[0], facts.Cards[2], facts.Cards[3], samples[0], samples[1]} {
			must(t, json.NewEncoder(&text).Encode(each))
		}
		l.Close()
	}
	golden.Assert(t, "testdata/read.txt", text.String())
	for name, c := range map[string]struct{ line, path, hide, want string }{
		"init fails":  {"init 6", "", "", "device.card_init"},
		"no library":  {"", "/nonexistent/libamd_smi.so", "", "device.card_no_library"},
		"no function": {"", "", "amdsmi_get_socket_handles", "device.card_symbol_missing"},
	} {
		s.Set(c.line)
		path := c.path
		if path == "" {
			path = build(t, strings.Fields(c.hide)...)
		}
		if reason := amdsmi.New(path, root).Open(); reason == nil || reason.ID != c.want {
			t.Errorf("%s: %v", name, reason)
		}
	}
}

// startNode starts the plugin in a process of its own.
func startNode(t testing.TB, s *fakelib.Script, root, library, tool string) *host.DevicePlugin {
	t.Helper()
	run, err := os.MkdirTemp("", "amd") // short: sockets are made in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(run) })
	config := fmt.Sprintf(`{"library": %q, "tool": %q, "poll": "100ms", "reset": "auto", "root": %q}`, library, tool, root)
	h, err := host.New(host.Config{
		RunDir: run, StateDir: t.TempDir(), BuiltinCommand: []string{"/proc/self/exe"}, Logger: slog.New(slog.DiscardHandler),
		Devices: []host.DeviceConfig{{Name: amd.Name, Builtin: true, Config: []byte(config), Env: append(s.Env(), "PATH=/usr/bin:/bin", "GOTRACEBACK=none")}},
	})
	must(t, err)
	t.Cleanup(func() { h.Close() })
	plugin, err := h.Device(amd.Name)
	must(t, err)
	return plugin
}

func TestContractOverRealLibrary(t *testing.T) {
	path := build(t)
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startNode(t, script(t, cards(4)...), tree(t, 4), path, "") })
}

func action(s device.Snapshot, at int) device.Action {
	if at >= len(s.Devices) {
		return "no such device"
	}
	return device.ActionOf(&s.Devices[at])
}

// rocmSMI is the vendor's program, which keeps with what it was called.
func rocmSMI(t testing.TB) (path, calls string) {
	t.Helper()
	output, err := os.ReadFile("../testdata/mi300x.json")
	must(t, err)
	path, calls = filepath.Join(t.TempDir(), "rocm-smi"), filepath.Join(t.TempDir(), "calls")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\necho \"$@\" >> "+calls+"\necho 'WARNING: AMD GPU device(s) is/are in a low-power state'\ncat <<'END'\n"+string(output)+"END\n"), 0o755))
	return path, calls
}

func TestFaultsOverRealLibrary(t *testing.T) {
	m := script(t, cards(6)...)
	tool, calls := rocmSMI(t)
	n := startNode(t, m, tree(t, 6), build(t), tool)
	snapshots, ctx := devicetest.Follow(t, n), context.Background()
	await := func(what string, holds func(device.Snapshot) bool) device.Snapshot {
		t.Helper()
		return devicetest.Await(t, snapshots, what, holds)
	}
	s := await("six cards", func(s device.Snapshot) bool { return len(s.Devices) == 6 && s.Devices[5].Healthy })
	if d := s.Devices[1]; d.ID != "GPU-4fd3d0e445b9207f" || d.LinkGroup != "xgmi-0" || d.Kind != device.KindAMD || d.PCIBus != "0000:c2:00.0" || d.Attrs[device.AttrArch] != "gfx942" || d.Driver != "6.10.5" {
		t.Errorf("%+v", d)
	}
	r, err := n.Reserve(ctx, []string{s.Devices[3].ID, s.Devices[1].ID})
	must(t, err)
	if r.Env["ROCR_VISIBLE_DEVICES"] != "GPU-4fd3d0e445b9207f,GPU-4fd3d0e445b92081" || r.Env["HIP_VISIBLE_DEVICES"] != "0,1" || len(r.Nodes) != 3 || r.Nodes[2].HostPath != "/dev/dri/renderD152" {
		t.Errorf("%+v", r)
	}
	m.Change("gpu 1 ", "used=", "ecc=5 used=")
	s = await("memory that was lost", func(s device.Snapshot) bool { return action(s, 1) == device.ActReset })
	m.Change("gpu 2 ", "used=", "failed=1 used=")
	await("a page that stays", func(s device.Snapshot) bool { return action(s, 2) == device.ActService })
	m.Change("gpu 3 ", "used=", "pending=1 used=")
	await("a page that waits", func(s device.Snapshot) bool { return action(s, 3) == device.ActCordon })
	m.Remove("gpu 5 ")
	await("a card that has vanished", func(s device.Snapshot) bool { return action(s, 5) == device.ActReboot })
	must(t, n.Heal(ctx, []string{s.Devices[1].ID}))
	await("a card that was reset", func(s device.Snapshot) bool { return action(s, 1) == device.ActNone })
	if text, err := os.ReadFile(calls); err != nil || !strings.Contains(string(text), "--gpureset -d 0\n") {
		t.Errorf("rocm-smi was called with %q, %v", text, err)
	}
	// A library that hangs, and one that crashes.
	m.Add("hang amdsmi_get_gpu_memory_total")
	await("a blind plugin", func(s device.Snapshot) bool {
		return s.Blind != nil && action(s, 0) == device.ActCordon && action(s, 2) == device.ActService
	})
	m.Remove("hang")
	await("sight", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 0) == device.ActNone })
	m.Add("crash amdsmi_get_gpu_memory_total")
	await("a plugin that is down", func(s device.Snapshot) bool { return s.Blind != nil && s.Blind.ID == "device.plugin_down" })
	m.Remove("crash")
	await("sight after a crash", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 2) == device.ActService })
}

func TestFallsBackToTool(t *testing.T) {
	tool, _ := rocmSMI(t)
	n := startNode(t, script(t), tree(t, 2), "/nonexistent/libamd_smi.so", tool)
	s := devicetest.Await(t, devicetest.Follow(t, n), "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	if s.Attributes[device.NodeSource] != "rocm-smi" || s.Devices[0].Model != "AMD Instinct MI300X" || s.Devices[0].PCIBus != "0000:c1:00.0" || s.Devices[1].Attrs[device.AttrMinor] != "136" {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stats, err := n.Stats(ctx, time.Second)
	must(t, err)
	if measured := <-stats; len(measured.Devices) != 2 || measured.Devices[0].Gauges[device.GaugeMemoryUsed] != 301989888 || measured.Devices[0].Gauges[device.GaugePower] != 140 {
		t.Errorf("%+v", measured)
	}
}

func TestNothingToAsk(t *testing.T) {
	n := startNode(t, script(t), tree(t, 1), "/nonexistent/libamd_smi.so", "/nonexistent/rocm-smi")
	s := devicetest.Await(t, devicetest.Follow(t, n), "a reason", func(s device.Snapshot) bool { return s.Absent != nil })
	if s.Absent.ID != "device.card_no_library" || len(s.Devices) != 0 {
		t.Errorf("%+v", s)
	}
}
