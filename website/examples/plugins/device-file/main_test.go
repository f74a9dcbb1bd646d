package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/host"
)

// build compiles the plugin into a plugin_dir, as its author would.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-o", filepath.Join(dir, name), ".")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	return dir
}

// start runs the plugin for a file, as an agent would.
func start(t *testing.T, dir, file string) *host.DevicePlugin {
	t.Helper()
	run, err := os.MkdirTemp("", "ex") // short: sockets are made in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	h, err := host.New(host.Config{
		PluginDir: dir, RunDir: run, StateDir: t.TempDir(),
		Devices: []host.DeviceConfig{{Name: name, Env: []string{"PATH=/usr/bin:/bin"}, Config: []byte(fmt.Sprintf(`{"file": %q}`, file))}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	d, err := h.Device(name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// write puts cards into the file, as a whole.
func write(t *testing.T, file string, cards ...card) {
	t.Helper()
	text, err := json.Marshal(cards)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file+".new", text, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

func TestExample(t *testing.T) {
	dir := build(t)
	file := filepath.Join(t.TempDir(), "cards.json")
	a := card{ID: "card-a", Model: "Example 1", Memory: 1 << 30, Path: "/dev/null", Load: 0.5}
	b := card{ID: "card-b", Model: "Example 1", Memory: 1 << 30, Path: "/dev/zero"}
	write(t, file, a, b)
	devicetest.Run(t, func(t *testing.T) device.Plugin { return start(t, dir, file) })

	snapshots := devicetest.Follow(t, start(t, dir, file))
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 && s.Devices[1].Healthy })
	b.Fault, b.Action = "burnt", device.ActService
	write(t, file, a, b)
	s := devicetest.Await(t, snapshots, "a fault", func(s device.Snapshot) bool { return len(s.Devices) == 2 && !s.Devices[1].Healthy })
	if device.ActionOf(&s.Devices[1]) != device.ActService || len(s.Events) != 1 || s.Events[0].Code != "burnt" {
		t.Errorf("%+v", s)
	}
	if err := os.WriteFile(file, []byte("{broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	s = devicetest.Await(t, snapshots, "a plugin that cannot look", func(s device.Snapshot) bool { return s.Blind != nil })
	if len(s.Devices) != 2 || device.ActionOf(&s.Devices[0]) != device.ActCordon || device.ActionOf(&s.Devices[1]) != device.ActService {
		t.Errorf("%+v", s)
	}
	write(t, file, a)
	devicetest.Await(t, snapshots, "one card", func(s device.Snapshot) bool { return s.Blind == nil && len(s.Devices) == 1 && s.Devices[0].Healthy })
}

func TestStartedByHand(t *testing.T) {
	dir := build(t)
	output, err := exec.Command(filepath.Join(dir, name)).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "plugin_dir") {
		t.Errorf("%v: %s", err, output)
	}
}
