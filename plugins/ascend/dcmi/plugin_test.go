package dcmi_test

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
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/ascend/dcmi"
	"nomadlike/plugins/ascend/dcmitest"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/host"
)

// TestMain lets the test program stand in for the plugin's, by the name that
// it is started under.
func TestMain(m *testing.M) {
	if os.Args[0] == ascend.Name {
		dcmi.Serve()
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

func TestReadAndSample(t *testing.T) {
	m := dcmitest.New(t, append(dcmitest.Chips(4),
		"chip card=7 chip=0 phy=8 die=7 name=910B3 hbm=65536 health=2 network=3 ecc=4 bus=129", "chip card=7 chip=1 phy=9 name=910B3 silent=1",
		"code card=7 chip=0 80E01801", "code card=7 chip=0 8C084E00", "process card=0 chip=0 pid=77 mem=1024")...)
	for _, each := range m.Env() {
		name, value, _ := strings.Cut(each, "=")
		t.Setenv(name, value)
	}
	l := dcmi.New(dcmitest.Build(t))
	if reason := l.Open(); reason != nil {
		t.Fatal(reason)
	}
	defer l.Close()
	facts, err := l.Read()
	must(t, err)
	samples, err := l.Sample()
	must(t, err)
	glances, err := l.Glance()
	must(t, err)
	var text strings.Builder
	for _, each := range []any{facts, glances, samples[ascend.Key{}], samples[ascend.Key{Card: 7}]} {
		encoded, err := json.MarshalIndent(each, "", "  ")
		must(t, err)
		text.Write(encoded)
		text.WriteString("\n")
	}
	golden.Assert(t, "testdata/read.txt", text.String())
	m.Set("init -8005")
	if reason := dcmi.New(dcmitest.Build(t)).Open(); reason == nil || reason.ID != "device.ascend_init" {
		t.Errorf("init fails: %v", reason)
	}
	if reason := dcmi.New("/nonexistent/libdcmi.so").Open(); reason == nil || reason.ID != "device.ascend_no_library" {
		t.Errorf("no library: %v", reason)
	}
	if reason := dcmi.New(dcmitest.Build(t, "dcmi_get_device_health")).Open(); reason == nil || reason.ID != "device.ascend_symbol_missing" {
		t.Errorf("no function: %v", reason)
	}
}

// startNode starts the plugin in a process of its own.
func startNode(t testing.TB, m *dcmitest.Machine, path string, more ...string) *host.DevicePlugin {
	t.Helper()
	run, err := os.MkdirTemp("", "npu") // short: sockets are made in it
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(run) })
	dir := t.TempDir()
	config := fmt.Sprintf(`{"library": %q, "poll": "200ms", "glance": "50ms", "root": %q, "npu_smi": "/nonexistent"`, path, filepath.Join(dir, "root"))
	for _, field := range more {
		config += ", " + field
	}
	h, err := host.New(host.Config{
		RunDir: run, StateDir: dir, BuiltinCommand: []string{"/proc/self/exe"},
		Devices: []host.DeviceConfig{{Name: ascend.Name, Builtin: true, Config: []byte(config + "}"), Env: append(m.Env(), "PATH=/usr/bin:/bin", "GOTRACEBACK=none")}},
		Logger:  slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	must(t, err)
	t.Cleanup(func() { h.Close() })
	plugin, err := h.Device(ascend.Name)
	must(t, err)
	return plugin
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func TestContractOverRealLibrary(t *testing.T) {
	path := dcmitest.Build(t)
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startNode(t, dcmitest.New(t, dcmitest.Chips(8)...), path) })
}

func action(s device.Snapshot, at int) device.Action {
	if at >= len(s.Devices) {
		return "no such device"
	}
	return device.ActionOf(&s.Devices[at])
}

func TestFaultsOverRealLibrary(t *testing.T) {
	m := dcmitest.New(t, dcmitest.Chips(8)...)
	n := startNode(t, m, dcmitest.Build(t))
	snapshots := devicetest.Follow(t, n)
	await := func(what string, holds func(device.Snapshot) bool) device.Snapshot {
		t.Helper()
		return devicetest.Await(t, snapshots, what, holds)
	}
	s := await("eight chips", func(s device.Snapshot) bool { return len(s.Devices) == 8 && s.Devices[7].Healthy })
	if d := s.Devices[5]; d.LinkGroup != "hccs-1" || d.Attrs[device.AttrDeviceIP] != "192.168.11.25" || d.Attrs[device.AttrMinor] != "5" || d.Model != "Ascend910B3" || !strings.HasPrefix(d.ID, "NPU-A1B2C3D4-") {
		t.Errorf("%+v", d)
	}
	m.Change("chip card=2 ", "health=0", "health=3")
	m.Add("code card=2 chip=0 80E18000")
	await("a fault that wants a reset", func(s device.Snapshot) bool { return action(s, 2) == device.ActReset })
	m.Change("chip card=3 ", "health=0", "health=2")
	await("an unknown alarm", func(s device.Snapshot) bool { return action(s, 3) == device.ActCordon })
	m.Remove("chip card=7 ")
	await("a chip that has vanished", func(s device.Snapshot) bool { return action(s, 7) == device.ActReboot })

	// A library that hangs, and one that crashes.
	m.Add("hang dcmi_get_device_health")
	await("a blind plugin", func(s device.Snapshot) bool {
		return s.Blind != nil && action(s, 0) == device.ActCordon && action(s, 2) == device.ActReset
	})
	m.Remove("hang")
	await("sight", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 0) == device.ActNone })
	m.Add("crash dcmi_get_device_health")
	await("a plugin that is down", func(s device.Snapshot) bool {
		return s.Blind != nil && s.Blind.ID == "device.plugin_down" && action(s, 0) == device.ActCordon
	})
	m.Remove("crash")
	await("sight after a crash", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 0) == device.ActNone })
}

func TestFallsBackToTool(t *testing.T) {
	table, err := os.ReadFile("../testdata/910b.smi")
	must(t, err)
	tool := filepath.Join(t.TempDir(), "npu-smi")
	must(t, os.WriteFile(tool, []byte("#!/bin/sh\ncat <<'END'\n"+string(table)+"END\n"), 0o755))
	n := startNode(t, dcmitest.New(t), "/nonexistent/libdcmi.so", fmt.Sprintf(`"npu_smi": %q`, tool))
	s := devicetest.Await(t, devicetest.Follow(t, n), "eight chips", func(s device.Snapshot) bool { return len(s.Devices) == 8 })
	if s.Attributes[device.NodeSource] != "npu-smi" || s.Devices[0].ID != "NPU-0000:c1:00.0" || s.Devices[4].LinkGroup != "hccs-0" || action(s, 7) != device.ActReset {
		t.Errorf("%+v", s)
	}
}

func TestNothingToAsk(t *testing.T) {
	n := startNode(t, dcmitest.New(t), "/nonexistent/libdcmi.so")
	s := devicetest.Await(t, devicetest.Follow(t, n), "a reason", func(s device.Snapshot) bool { return s.Absent != nil })
	if s.Absent.ID != "device.ascend_no_library" || len(s.Devices) != 0 {
		t.Errorf("%+v", s)
	}
	if _, err := n.Reserve(context.Background(), []string{"x"}); !errors.Is(err, device.ErrUnknownDevice) {
		t.Errorf("reserve gives %v", err)
	}
}

func TestMissingSymbols(t *testing.T) {
	for name, hidden := range map[string][]string{
		"figures": {"dcmi_get_device_utilization_rate", "dcmi_get_device_power_info", "dcmi_get_device_hbm_info", "dcmi_get_device_ecc_info", "dcmi_get_device_resource_info"},
		"names":   {"dcmi_get_device_chip_info_v2", "dcmi_get_device_die_v2", "dcmi_get_device_pcie_info_v2", "dcmi_get_topo_info_by_device_id", "dcmi_get_device_ip", "dcmi_get_device_network_health"},
	} {
		n := startNode(t, dcmitest.New(t, dcmitest.Chips(2)...), dcmitest.Build(t, hidden...))
		s := devicetest.Await(t, devicetest.Follow(t, n), "two chips", func(s device.Snapshot) bool { return len(s.Devices) == 2 && s.Devices[0].Healthy })
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		stats, err := n.Stats(ctx, time.Second)
		must(t, err)
		if measured := <-stats; len(measured.Devices) != 2 || len(measured.Devices[0].Gauges) == 0 {
			t.Errorf("%s: %+v of %+v", name, measured, s)
		}
		cancel()
	}
}

// BenchmarkFault measures from a fault that the library knows to the snapshot
// that says so in the agent's process: mostly the wait for the next glance.
func BenchmarkFault(b *testing.B) {
	m := dcmitest.New(b, dcmitest.Chips(8)...)
	n := startNode(b, m, dcmitest.Build(b), `"poll": "5s"`, `"glance": "250ms"`)
	snapshots := devicetest.Follow(b, n)
	devicetest.Await(b, snapshots, "eight chips", func(s device.Snapshot) bool { return len(s.Devices) == 8 })
	m.Change("chip card=3 ", "health=0", "health=1")
	devicetest.Await(b, snapshots, "a first warning", func(s device.Snapshot) bool { return action(s, 3) == device.ActNotice })
	number := 0
	for b.Loop() {
		number++ // of a code that is in no table and new each time
		m.Set(append(dcmitest.Chips(8)[:3], strings.Replace(dcmitest.Chip(3), "health=0", fmt.Sprintf("health=%d", 2+number%2), 1))...)
		devicetest.Await(b, snapshots, "the fault", func(s device.Snapshot) bool { return s.Blind == nil && action(s, 3) != device.ActNotice })
		b.StopTimer()
		must(b, n.Clear(context.Background(), []string{"NPU-A1B2C3D4-00000000-00000000-00000000-00001003"}))
		m.Set(append(dcmitest.Chips(8)[:3], strings.Replace(dcmitest.Chip(3), "health=0", "health=1", 1))...)
		must(b, n.Clear(context.Background(), []string{"NPU-A1B2C3D4-00000000-00000000-00000000-00001003"}))
		devicetest.Await(b, snapshots, "the warning again", func(s device.Snapshot) bool { return action(s, 3) == device.ActNotice })
		b.StartTimer()
	}
}

// Chips of a super pod have their place in it; a driver that says the same of
// all of them says nothing.
func TestSuperPlaces(t *testing.T) {
	m := dcmitest.New(t)
	for _, each := range m.Env() {
		name, value, _ := strings.Cut(each, "=")
		t.Setenv(name, value)
	}
	l := dcmi.New(dcmitest.Build(t))
	for name, c := range map[string]struct {
		places []string
		want   string
	}{
		"in none":           {[]string{"", ""}, "- -"},
		"in one":            {[]string{"sdid=0 pod=3", "sdid=1 pod=3"}, "0/3 1/3"},
		"one of two in one": {[]string{"", "sdid=1 pod=3"}, "- 1/3"},
		"the same of all":   {[]string{"sdid=0 pod=0", "sdid=0 pod=0"}, "- -"},
		"nothing of one":    {[]string{"sdid=0 pod=0"}, "-"},
		"one alone":         {[]string{"sdid=5 pod=0"}, "5/0"},
		"not valid":         {[]string{"sdid=4294967295 pod=1", "sdid=1 pod=4294967295"}, "- -"},
	} {
		var lines []string
		for i, place := range c.places {
			lines = append(lines, dcmitest.Chip(i)+" "+place)
		}
		m.Set(lines...)
		if reason := l.Open(); reason != nil {
			t.Fatal(reason)
		}
		facts, err := l.Read()
		must(t, err)
		var got []string
		for i := range facts.Chips {
			text := "-"
			if s := facts.Chips[i].Super; s != nil {
				text = fmt.Sprintf("%d/%d", s.Device, s.Pod)
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		l.Close()
	}
}
