package cndev_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/cambricon"
	"nomadlike/plugins/cambricon/cndev"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/fakelib"
	"nomadlike/plugins/host"
)

// TestMain lets the test program stand in for the plugin's, by the name that it
// is started under.
func TestMain(m *testing.M) {
	if os.Args[0] == cambricon.Name {
		cndev.Serve()
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
	return fakelib.Library{Name: "libcndev.so", Source: "testdata/fakelib/fake_cndev.c"}.Build(t, hidden...)
}

func script(t testing.TB, lines ...string) *fakelib.Script {
	t.Helper()
	return fakelib.NewScript(t, "FAKE_CNDEV_SCRIPT", lines...)
}

// cards returns the lines of several cards, pairs of them joined.
func cards(count int) []string {
	var lines []string
	for i := range count {
		lines = append(lines, fmt.Sprintf("card %d uuid=20211118-0000-0000-0000-%012d name=MLU370-X8 memory=24576 used=120 util=35", i, i))
	}
	for i := 0; i+1 < count; i += 2 {
		lines = append(lines, fmt.Sprintf("link %d %d", i, i+1))
	}
	return lines
}

func TestReadAndSample(t *testing.T) {
	s := script(t, append(cards(2), "card 3 name=MLU370-X8 silent=1", "card 4 uuid=4 name=MLU590 memory=81920 state=0 driver=7 ecc=3",
		`incident 4 15 "double bit error"`, `incident 4 99 "news"`, "process 0 pid=77 mem=1024")...)
	s.Here()
	var text strings.Builder
	for _, hidden := range [][]string{nil, {"cndevGetCardHealthStateV2", "cndevGetMemoryUsageV2", "cndevGetMLULinkPortNumber", "cndevGetECCInfo"}} {
		l := cndev.New(build(t, hidden...))
		if reason := l.Open(); reason != nil {
			t.Fatal(reason)
		}
		facts, err := l.Read()
		must(t, err)
		samples, err := l.Sample()
		must(t, err)
		for _, each := range []any{facts.Driver, facts.Library, facts.Cards[0], facts.Cards[1], facts.Cards[2], facts.Cards[3], samples[0], samples[2]} {
			must(t, json.NewEncoder(&text).Encode(each))
		}
		l.Close()
		s.Add("version 5") // the second one speaks no newer structures
	}
	golden.Assert(t, "testdata/read.txt", text.String())
	for name, c := range map[string]struct{ line, path, hide, want string }{
		"init fails":  {"init 1", "", "", "device.card_init"},
		"older":       {"version 4", "", "", "device.card_init"},
		"no library":  {"", "/nonexistent/libcndev.so", "", "device.card_no_library"},
		"no function": {"", "", "cndevGetUUID", "device.card_symbol_missing"},
	} {
		s.Set(c.line)
		path := c.path
		if path == "" {
			path = build(t, strings.Fields(c.hide)...)
		}
		if reason := cndev.New(path).Open(); reason == nil || reason.ID != c.want {
			t.Errorf("%s: %v", name, reason)
		}
	}
}

// startNode starts the plugin in a process of its own.
func startNode(t testing.TB, s *fakelib.Script, library, tool string) *host.DevicePlugin {
	t.Helper()
	run, err := os.MkdirTemp("", "mlu") // short: sockets are made in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(run) })
	dir := t.TempDir()
	config := fmt.Sprintf(`{"library": %q, "tool": %q, "poll": "100ms", "root": %q}`, library, tool, filepath.Join(dir, "root"))
	h, err := host.New(host.Config{
		RunDir: run, StateDir: dir, BuiltinCommand: []string{"/proc/self/exe"}, Logger: slog.New(slog.DiscardHandler),
		Devices: []host.DeviceConfig{{Name: cambricon.Name, Builtin: true, Config: []byte(config), Env: append(s.Env(), "PATH=/usr/bin:/bin", "GOTRACEBACK=none")}},
	})
	must(t, err)
	t.Cleanup(func() { h.Close() })
	plugin, err := h.Device(cambricon.Name)
	must(t, err)
	return plugin
}

func TestContractOverRealLibrary(t *testing.T) {
	path := build(t)
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startNode(t, script(t, cards(4)...), path, "") })
}

func action(s device.Snapshot, at int) device.Action {
	if at >= len(s.Devices) {
		return "no such device"
	}
	return device.ActionOf(&s.Devices[at])
}

func TestFaultsOverRealLibrary(t *testing.T) {
	m := script(t, cards(6)...)
	n := startNode(t, m, build(t), "")
	snapshots := devicetest.Follow(t, n)
	await := func(what string, holds func(device.Snapshot) bool) device.Snapshot {
		t.Helper()
		return devicetest.Await(t, snapshots, what, holds)
	}
	s := await("six cards", func(s device.Snapshot) bool { return len(s.Devices) == 6 && s.Devices[5].Healthy })
	if d := s.Devices[3]; d.LinkGroup != "mlulink-1" || d.Kind != device.KindCambricon || d.Model != "MLU370-X8" || d.PCIBus != "0000:43:00.0" || d.Memory != 24<<30 {
		t.Errorf("%+v", d)
	}
	r, err := n.Reserve(context.Background(), []string{s.Devices[3].ID, s.Devices[1].ID})
	must(t, err)
	if r.Env["MLU_VISIBLE_DEVICES"] != "1,3" || r.Environment(true)["MLU_VISIBLE_DEVICES"] != "0,1" || len(r.Nodes) != 2 || r.Nodes[1].HostPath != "/dev/cambricon_dev3" {
		t.Errorf("%+v", r)
	}
	m.Change("card 0 ", "used=", "state=0 used=")
	await("a device error", func(s device.Snapshot) bool { return action(s, 0) == device.ActReset })
	m.Change("card 1 ", "used=", "ecc=5 used=")
	s = await("memory that was lost", func(s device.Snapshot) bool { return action(s, 1) == device.ActReset })
	if f := s.Devices[1].Attrs[device.AttrFault]; f != "ecc-uncorrected" {
		t.Errorf("the fault is %s", f)
	}
	m.Add(`incident 2 22 "repair"`)
	await("a repair that did not work", func(s device.Snapshot) bool { return action(s, 2) == device.ActService })
	m.Remove("card 5 ")
	s = await("a card that has vanished", func(s device.Snapshot) bool { return action(s, 5) == device.ActReboot })
	var told *structs.Error
	if err := n.Heal(context.Background(), []string{s.Devices[1].ID}); !errors.As(err, &told) || told.ID != "device.reset_forbidden" {
		t.Errorf("a reset gives %v", err)
	}
	must(t, n.Clear(context.Background(), []string{s.Devices[1].ID}))
	await("a card that an operator has cleared", func(s device.Snapshot) bool { return action(s, 1) == device.ActNone })
	// A library that hangs, and one that crashes.
	m.Add("hang cndevGetUUID")
	await("a blind plugin", func(s device.Snapshot) bool {
		return s.Blind != nil && action(s, 3) == device.ActCordon && action(s, 2) == device.ActService
	})
	m.Remove("hang")
	await("sight", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 3) == device.ActNone })
	m.Add("crash cndevGetUUID")
	await("a plugin that is down", func(s device.Snapshot) bool { return s.Blind != nil && s.Blind.ID == "device.plugin_down" })
	m.Remove("crash")
	await("sight after a crash", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 2) == device.ActService })
}

// A dead task's process and what it left in memory.
func TestReapOverRealLibrary(t *testing.T) {
	m := script(t, cards(2)...)
	n := startNode(t, m, build(t), "")
	s := devicetest.Await(t, devicetest.Follow(t, n), "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	m.Change("card 0 ", "used=120", "used=9000")
	report, err := n.Reap(context.Background(), device.Reaping{IDs: []string{s.Devices[0].ID}, Mine: []device.Mark{{Cgroup: "/none"}}, Limit: time.Second})
	if err != nil || report.Clean() || report.Devices[0].Reason.ID != "device.leftover_memory" {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestFallsBackToTool(t *testing.T) {
	output, err := os.ReadFile("../testdata/mlu370.json")
	must(t, err)
	tool := filepath.Join(t.TempDir(), "cnmon")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\ncat > cnmon_info.json <<'END'\n"+string(output)+"END\n"), 0o755))
	n := startNode(t, script(t), "/nonexistent/libcndev.so", tool)
	s := devicetest.Await(t, devicetest.Follow(t, n), "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	if s.Attributes[device.NodeSource] != "cnmon" || s.Devices[1].Model != "MLU370-X8" || s.Devices[1].PCIBus != "0000:9f:00.0" {
		t.Errorf("%+v", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	stats, err := n.Stats(ctx, time.Second)
	must(t, err)
	if measured := <-stats; len(measured.Devices) != 2 || measured.Devices[1].Gauges[device.GaugeMemoryUsed] != 1<<30 {
		t.Errorf("%+v", measured)
	}
}

func TestNothingToAsk(t *testing.T) {
	n := startNode(t, script(t), "/nonexistent/libcndev.so", "/nonexistent/cnmon")
	s := devicetest.Await(t, devicetest.Follow(t, n), "a reason", func(s device.Snapshot) bool { return s.Absent != nil })
	if s.Absent.ID != "device.card_no_library" || len(s.Devices) != 0 {
		t.Errorf("%+v", s)
	}
}
