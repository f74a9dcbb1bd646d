//go:build cgo

package nvml_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/host"
	"nomadlike/plugins/nvidia"
	"nomadlike/plugins/nvidia/nvml"
	"nomadlike/plugins/nvidia/nvmltest"
)

// TestMain lets the test program stand in for the plugin's, by the name that
// it is started under.
func TestMain(m *testing.M) {
	if os.Args[0] == nvidia.Name {
		nvml.Serve()
		os.Exit(0)
	}
	code := m.Run()
	if shared.path != "" {
		os.RemoveAll(filepath.Dir(shared.path))
	}
	os.Exit(code)
}

// node is a plugin in a process of its own, on a machine that a test drives.
type node struct {
	*nvmltest.Machine
	*host.DevicePlugin
	kernel string // the kernel's messages
}

// startNode starts the plugin. more are fields of its configuration.
func startNode(t testing.TB, m *nvmltest.Machine, path string, more ...string) *node {
	t.Helper()
	return startProgram(t, m, path, []string{"/proc/self/exe"}, more...)
}

// startProgram starts a plugin by a command; without one, the program that the agent embeds.
func startProgram(t testing.TB, m *nvmltest.Machine, path string, command []string, more ...string) *node {
	t.Helper()
	run, err := os.MkdirTemp("", "nv") // short: sockets are made in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(run) })
	dir := t.TempDir()
	kernel := filepath.Join(dir, "kmsg")
	if err := syscall.Mkfifo(kernel, 0o600); err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"library": %q, "poll": "100ms", "root": %q, "kernel_messages": %q`, path, filepath.Join(dir, "root"), kernel)
	for _, field := range more {
		config += ", " + field
	}
	h, err := host.New(host.Config{
		RunDir: run, StateDir: dir, BuiltinCommand: command,
		Devices: []host.DeviceConfig{{Name: nvidia.Name, Builtin: true, Config: []byte(config + "}"), Env: append(m.Env(), "PATH=/usr/bin:/bin")}},
		Logger:  slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	plugin, err := h.Device(nvidia.Name)
	if err != nil {
		t.Fatal(err)
	}
	return &node{Machine: m, DevicePlugin: plugin, kernel: kernel}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func action(s device.Snapshot, id string) device.Action {
	for i := range s.Devices {
		if s.Devices[i].ID == id {
			return device.ActionOf(&s.Devices[i])
		}
	}
	return "no such device"
}

// What make builds for old machines reads cards, hears of their faults and survives
// a library that crashes, as the program of this test does.
func TestEmbeddedProgramReadsCards(t *testing.T) {
	if !host.Embedded(nvidia.Name) {
		t.Log("this build carries no nvidia plugin: make device-plugins")
		return
	}
	n := startProgram(t, nvmltest.New(t, nvmltest.Cards(2)...), nvmltest.Build(t), nil)
	snapshots := devicetest.Follow(t, n)
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	n.Add("crash nvmlDeviceGetName")
	devicetest.Await(t, snapshots, "a plugin that is down", func(s device.Snapshot) bool { return s.Blind != nil })
	n.Remove("crash")
	devicetest.Await(t, snapshots, "two cards again", func(s device.Snapshot) bool { return s.Blind == nil && len(s.Devices) == 2 })
}

func TestContractOverRealLibrary(t *testing.T) {
	path := nvmltest.Build(t)
	devicetest.Run(t, func(t *testing.T) device.Plugin { return startNode(t, nvmltest.New(t, nvmltest.Cards(4)...), path) })
}

func TestFaultsOverRealLibrary(t *testing.T) {
	n := startNode(t, nvmltest.New(t, nvmltest.Cards(4)...), nvmltest.Build(t), `"nvidia_smi": "`+fakeSMI(t)+`"`)
	snapshots := devicetest.Follow(t, n)
	await := func(what string, holds func(device.Snapshot) bool) device.Snapshot {
		t.Helper()
		return devicetest.Await(t, snapshots, what, holds)
	}
	await("four cards", func(s device.Snapshot) bool { return len(s.Devices) == 4 && s.Devices[3].Healthy })

	// A task's own fault says of it and leaves the card alone.
	heard := func(code string) func(device.Snapshot) bool {
		return func(s device.Snapshot) bool {
			for _, e := range s.Events {
				if e.Code == code {
					return true
				}
			}
			return false
		}
	}
	if s := n.until(t, snapshots, "GPU-0000 xid=31", heard("xid-31")); action(s, "GPU-0000") != device.ActNone {
		t.Errorf("after XID 31: %+v", s.Devices[0])
	}
	n.Happen("GPU-0001 xid=48")
	await("XID 48", func(s device.Snapshot) bool { return action(s, "GPU-0001") == device.ActReset })
	n.Happen("GPU-0002 xid=79")
	await("XID 79", func(s device.Snapshot) bool { return action(s, "GPU-0002") == device.ActReboot })

	// The kernel reports a card of which the library is silent.
	kernel, err := os.OpenFile(n.kernel, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer kernel.Close()
	if _, err := kernel.WriteString("4,1,99999999999999,-;NVRM: Xid (PCI:0000:04:00): 119, pid=4711, name=python3, Timeout waiting for RPC from GSP!\n"); err != nil {
		t.Fatal(err)
	}
	s := await("XID 119", func(s device.Snapshot) bool { return action(s, "GPU-0003") == device.ActReset })
	if last := s.Events[len(s.Events)-1]; last.PID != 4711 || last.Reason.Params["process"] != "python3[4711]" {
		t.Errorf("the event is %+v", last)
	}

	// Killing the plugin forgets nothing.
	must(t, syscall.Kill(pluginPID(t), syscall.SIGKILL))
	await("the same after a restart", func(s device.Snapshot) bool {
		return s.Blind == nil && action(s, "GPU-0001") == device.ActReset && action(s, "GPU-0002") == device.ActReboot && action(s, "GPU-0000") == device.ActNone
	})

	// A reset heals; the library is closed meanwhile, and opened again.
	if err := n.Heal(context.Background(), []string{"GPU-0001"}); err != nil {
		t.Errorf("heal: %v", err)
	}
	await("a healed card", func(s device.Snapshot) bool { return action(s, "GPU-0001") == device.ActNone })
	n.until(t, snapshots, "GPU-0001 xid=95", func(s device.Snapshot) bool { return action(s, "GPU-0001") == device.ActReset })

	// Uncorrected errors are told; a card that is added appears; one that is
	// removed asks for a person.
	n.Change("uuid=GPU-0000 ", "uuid=GPU-0000 ecc=5 ")
	await("uncorrected errors", heard("ecc-double"))
	n.Change("uuid=GPU-0000 ", "uuid=GPU-0000 nvcrc=5 nvreplay=2 ")
	s = await("errors of links", heard("nvlink-errors"))
	if said := s.Events[len(s.Events)-1].Reason.Params; said["errors"] != "7" || said["recoveries"] != "1" {
		t.Errorf("of the links is told %v", said)
	}
	if action(s, "GPU-0000") != device.ActNotice || !s.Devices[0].Healthy || s.Devices[0].Attrs[device.AttrFault] != "nvlink-errors" {
		t.Errorf("beside the card is noted %+v", s.Devices[0])
	}
	n.Add(nvmltest.Card(4))
	await("a fifth card", func(s device.Snapshot) bool { return len(s.Devices) == 5 && action(s, "GPU-0004") == device.ActNone })
	n.Remove("gpu uuid=GPU-0004")
	await("a missing card", func(s device.Snapshot) bool { return len(s.Devices) == 5 && action(s, "GPU-0004") == device.ActReboot })
	must(t, n.Clear(context.Background(), []string{"GPU-0004"}))
	await("four cards again", func(s device.Snapshot) bool { return len(s.Devices) == 4 })
}

// until lets an event happen, again and again, until a snapshot shows it: what
// happens before the plugin listens is told by the kernel alone.
func (n *node) until(t *testing.T, snapshots <-chan device.Snapshot, event string, holds func(device.Snapshot) bool) device.Snapshot {
	t.Helper()
	var found device.Snapshot
	eventually.Within(t, time.Minute, event, func() bool {
		n.Happen(event)
		timer := time.NewTimer(200 * time.Millisecond)
		defer timer.Stop()
		for {
			select {
			case found = <-snapshots:
				if holds(found) {
					return true
				}
			case <-timer.C:
				return false
			}
		}
	})
	return found
}

// fakeSMI is an nvidia-smi whose resets succeed.
func fakeSMI(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "nvidia-smi")
	must(t, os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755))
	return path
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// pluginPID finds the plugin's process among this one's children.
func pluginPID(t testing.TB) int {
	t.Helper()
	pid := 0
	eventually.Within(t, time.Minute, "the plugin runs", func() bool {
		entries, _ := filepath.Glob("/proc/[0-9]*/stat")
		for _, entry := range entries {
			stat, err := os.ReadFile(entry)
			line, lineErr := os.ReadFile(filepath.Join(filepath.Dir(entry), "cmdline"))
			if err != nil || lineErr != nil || !strings.HasPrefix(string(line), nvidia.Name+"\x00") {
				continue
			}
			var parent int
			_, rest, _ := strings.Cut(string(stat), ") ")
			if fmt.Sscanf(rest[2:], "%d", &parent); parent == os.Getpid() {
				fmt.Sscanf(filepath.Base(filepath.Dir(entry)), "%d", &pid)
				return true
			}
		}
		return false
	})
	return pid
}

func TestHangingRealLibrary(t *testing.T) {
	n := startNode(t, nvmltest.New(t, nvmltest.Cards(2)...), nvmltest.Build(t))
	snapshots := devicetest.Follow(t, n)
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 && s.Devices[1].Healthy })
	n.Add("hang nvmlDeviceGetMemoryInfo_v2")
	s := devicetest.Await(t, snapshots, "cordoned cards", func(s device.Snapshot) bool { return s.Blind != nil })
	if s.Blind.ID != "device.library_hangs" || action(s, "GPU-0000") != device.ActCordon {
		t.Errorf("%+v", s)
	}
	// Whoever asks gets an answer, and events still come.
	if _, err := n.Reserve(context.Background(), []string{"GPU-0000"}); err != nil {
		t.Errorf("reserve: %v", err)
	}
	started := time.Now()
	if _, err := n.Reap(context.Background(), device.Reaping{IDs: []string{"GPU-0000"}, Limit: 300 * time.Millisecond}); !errors.Is(err, device.ErrUnavailable) || time.Since(started) > 5*time.Second {
		t.Errorf("reap gives %v after %s", err, time.Since(started))
	}
	n.until(t, snapshots, "GPU-0001 xid=79", func(s device.Snapshot) bool { return action(s, "GPU-0001") == device.ActReboot })
	n.Remove("hang")
	devicetest.Await(t, snapshots, "a healthy card", func(s device.Snapshot) bool { return s.Blind == nil && action(s, "GPU-0000") == device.ActNone })
}

func TestHangingInit(t *testing.T) {
	n := startNode(t, nvmltest.New(t, append(nvmltest.Cards(2), "hang nvmlInit_v2")...), nvmltest.Build(t))
	snapshots := devicetest.Follow(t, n)
	devicetest.Await(t, snapshots, "a blind plugin", func(s device.Snapshot) bool { return s.Blind != nil && s.Blind.ID == "device.library_hangs" })
	n.Remove("hang")
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return s.Blind == nil && len(s.Devices) == 2 })
}

func TestCrashingRealLibrary(t *testing.T) {
	n := startNode(t, nvmltest.New(t, nvmltest.Cards(2)...), nvmltest.Build(t))
	snapshots := devicetest.Follow(t, n)
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	n.Add("crash nvmlDeviceGetName")
	// The program dies again and again; the agent and the cards' names live on.
	s := devicetest.Await(t, snapshots, "a plugin that is down", func(s device.Snapshot) bool { return s.Blind != nil && s.Blind.ID == "device.plugin_down" })
	if action(s, "GPU-0000") != device.ActCordon || action(s, "GPU-0001") != device.ActCordon {
		t.Errorf("%+v", s)
	}
	n.Remove("crash")
	devicetest.Await(t, snapshots, "healthy cards", func(s device.Snapshot) bool { return s.Blind == nil && action(s, "GPU-0000") == device.ActNone })
}

func TestMissingSymbols(t *testing.T) {
	for name, c := range map[string]struct {
		hidden []string
		absent string
	}{
		"what nothing works without": {[]string{"nvmlDeviceGetUUID"}, "device.nvidia_symbol_missing"},
		"everything":                 {[]string{"nvml*"}, "device.nvidia_symbol_missing"},
		"figures":                    {[]string{"nvmlDeviceGetTemperature", "nvmlDeviceGetFieldValues", "nvmlDeviceGetPowerUsage", "nvmlErrorString"}, ""},
		"new versions":               {[]string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlSystemGetCudaDriverVersion_v2"}, ""},
		"MIG, links and fabric":      {[]string{"nvmlDeviceGetMigMode", "nvmlDeviceGetNvLinkState", "nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetPciInfo_v3"}, ""},
		"events":                     {[]string{"nvmlEventSetCreate", "nvmlEventSetWait_v2"}, ""},
		"memory":                     {[]string{"nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := startNode(t, nvmltest.New(t, nvmltest.Cards(2)...), nvmltest.Build(t, c.hidden...))
			s := devicetest.Await(t, devicetest.Follow(t, n), "a first look", func(s device.Snapshot) bool { return s.Blind == nil })
			if c.absent != "" {
				if s.Absent == nil || s.Absent.ID != c.absent || len(s.Devices) != 0 {
					t.Errorf("%+v", s)
				}
				return
			}
			if len(s.Devices) != 2 || !s.Devices[0].Healthy {
				t.Fatalf("%+v", s)
			}
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			stats, err := n.Stats(ctx, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if measured := <-stats; len(measured.Devices) != 2 || len(measured.Devices[0].Gauges) < 5 {
				t.Errorf("measured %+v", measured)
			}
			if s.Blind != nil {
				t.Error("the plugin died")
			}
		})
	}
}

// TestReapOverRealLibrary ends a process that a dead task has left on a card.
func TestReapOverRealLibrary(t *testing.T) {
	m := nvmltest.New(t, nvmltest.Cards(2)...)
	n := startNode(t, m, nvmltest.Build(t), `"root": "/"`)
	snapshots := devicetest.Follow(t, n)
	devicetest.Await(t, snapshots, "two cards", func(s device.Snapshot) bool { return len(s.Devices) == 2 })
	child := start(t, "NOMADLIKE_TASK_MARKER=dead:1")
	live := start(t, "NOMADLIKE_TASK_MARKER=live:1")
	foreign := start(t, "HOME=/")
	for _, each := range []*process{child, live, foreign} {
		m.Add(fmt.Sprintf("process GPU-0001 pid=%d mem=2048", each.pid))
	}
	go func() { // the driver forgets a process some time after its end
		<-child.gone
		m.Remove(fmt.Sprintf("process GPU-0001 pid=%d", child.pid))
	}()
	report, err := n.Reap(context.Background(), device.Reaping{IDs: []string{"GPU-0001"}, Mine: []device.Mark{{Env: "NOMADLIKE_TASK_MARKER="}}, Live: []device.Mark{{Env: "NOMADLIKE_TASK_MARKER=live:"}}})
	must(t, err)
	r := report.Devices[0]
	if len(r.Killed) != 1 || r.Killed[0].PID != child.pid || len(r.Live) != 1 || r.Live[0].PID != live.pid || len(r.Foreign) != 1 || r.Foreign[0].PID != foreign.pid || !r.Clean {
		t.Errorf("%+v", r)
	}
	// Nobody is left, but the memory is.
	m.Remove("process")
	m.Change("used=4 ", "used=5000 ")
	report, err = n.Reap(context.Background(), device.Reaping{IDs: []string{"GPU-0000"}})
	must(t, err)
	if report.Clean() || report.Devices[0].Reason.ID != "device.leftover_memory" {
		t.Errorf("%+v", report)
	}
	devicetest.Await(t, snapshots, "a card that waits for a reset", func(s device.Snapshot) bool { return action(s, "GPU-0000") == device.ActReset })
}

type process struct {
	pid  int
	gone chan struct{}
}

// start starts a process that lasts until the test's end.
func start(t *testing.T, env string) *process {
	t.Helper()
	started, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Env: []string{env}})
	must(t, err)
	p := &process{pid: started.Pid, gone: make(chan struct{})}
	go func() {
		started.Wait()
		close(p.gone)
	}()
	t.Cleanup(func() {
		started.Kill()
		<-p.gone
	})
	return p
}

func TestManyCards(t *testing.T) {
	begun := time.Now()
	n := startNode(t, nvmltest.New(t, nvmltest.Cards(128)...), nvmltest.Build(t))
	started := time.Now()
	s := devicetest.Await(t, devicetest.Follow(t, n), "128 cards", func(s device.Snapshot) bool { return len(s.Devices) == 128 })
	t.Logf("compiled in %s; 128 cards %s after the plugin's start", started.Sub(begun), time.Since(started))
	if s.Devices[127].Index != 127 {
		t.Errorf("last device is %+v", s.Devices[127])
	}
}
