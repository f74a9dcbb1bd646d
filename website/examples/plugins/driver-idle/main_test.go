package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/plugins/driver"
	"nomadlike/plugins/driver/drivertest"
	"nomadlike/plugins/driver/tasklog"
	"nomadlike/plugins/host"
)

// build compiles the plugin into a plugin_dir, as its author would, and returns
// the digest under which an administrator allows it.
func build(t *testing.T) (dir, digest string) {
	t.Helper()
	dir = t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	file := filepath.Join(dir, name)
	if output, err := exec.CommandContext(ctx, "go", "build", "-o", file, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, output)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(program)
	return dir, hex.EncodeToString(sum[:])
}

// start runs the plugin as an agent would.
func start(t *testing.T, dir, digest, state string) (*host.Host, driver.Driver) {
	t.Helper()
	run, err := os.MkdirTemp("", "ex") // short: sockets are made in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	h, err := host.New(host.Config{
		PluginDir: dir, RunDir: run,
		Plugins: []host.PluginConfig{{Name: name, Args: []string{"-state", state}, Env: []string{"PATH=/usr/bin:/bin"}, SHA256: digest}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	d, err := h.Driver(name)
	if err != nil {
		t.Fatal(err)
	}
	return h, d
}

// shortState is a state directory whose sockets have short names.
func shortState(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "idle")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestContract(t *testing.T) {
	dir, digest := build(t)
	_, d := start(t, dir, digest, shortState(t))
	drivertest.Run(t, func(*testing.T) driver.Driver { return d })
}

func TestTasksAreIdle(t *testing.T) {
	dir, digest := build(t)
	_, d := start(t, dir, digest, shortState(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reports, err := d.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	report := <-reports
	if report.Health != driver.Healthy || report.Attributes["driver.idle.nice"] != "19" {
		t.Errorf("report is %+v", report)
	}
	for key := range report.Attributes {
		if !strings.HasPrefix(key, "driver.idle.") {
			t.Errorf("attribute %s is another driver's", key)
		}
	}
	// Field 19 of /proc/self/stat is the niceness; the shell's read starts none.
	spec := drivertest.Shell(t, `read -r pid name state parent group session tty owner flags min cmin maj cmaj user system cuser csystem priority nice rest </proc/self/stat; echo "$nice"`)
	drivertest.Start(t, d, spec)
	if result := drivertest.Wait(t, d, spec.ID); !result.Successful() {
		t.Errorf("result is %+v", result)
	}
	if out := drivertest.Log(t, spec, tasklog.Stdout); out != "19\n" {
		t.Errorf("niceness is %q, want 19", out)
	}
}

// A task outlives the agent and the plugin; the next ones find it.
func TestTasksOutliveThePlugin(t *testing.T) {
	dir, digest := build(t)
	state := shortState(t)
	before, d := start(t, dir, digest, state)
	spec := drivertest.Shell(t, `trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.05; done`)
	handle, err := d.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	drivertest.AwaitOutput(t, spec, "ready")
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}

	_, d = start(t, dir, digest, state)
	listed, err := d.(driver.Lister).List(t.Context())
	if err != nil || len(listed) != 1 || listed[0].TaskID != spec.ID || listed[0].Driver != name {
		t.Errorf("listed are %+v, %v", listed, err)
	}
	if err := d.Recover(t.Context(), handle); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Destroy(context.Background(), spec.ID) })
	if err := d.Stop(t.Context(), spec.ID, "", time.Minute); err != nil {
		t.Fatal(err)
	}
	if result := drivertest.Wait(t, d, spec.ID); result.Code != 5 {
		t.Errorf("result is %+v, want the trap's 5", result)
	}
	foreign := handle
	foreign.Driver = "exec"
	if err := d.Recover(t.Context(), foreign); err == nil {
		t.Error("another driver's handle is taken")
	}
}

func TestAnotherProgramIsRefused(t *testing.T) {
	dir, digest := build(t)
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("changed"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if _, err := host.New(host.Config{PluginDir: dir, RunDir: shortState(t), Plugins: []host.PluginConfig{{Name: name, SHA256: digest}}}); err == nil {
		t.Error("a program with another digest is started")
	}
}

func TestStartedByHand(t *testing.T) {
	dir, _ := build(t)
	output, err := exec.Command(filepath.Join(dir, name), "-state", shortState(t)).CombinedOutput()
	if err == nil || !strings.Contains(string(output), "plugin_dir") {
		t.Errorf("%v: %s", err, output)
	}
}
