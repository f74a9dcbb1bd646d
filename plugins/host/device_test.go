package host_test

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
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/deviceplugin"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/host"
)

// deviceRoles are the device plugins that the test program can be. Their
// devices have the name of the configuration's first word in their model.
func deviceRoles() map[string]func() {
	serve := func(name string, wrap func(*device.Fake, deviceplugin.Setup) device.Plugin) func() {
		return func() {
			deviceplugin.Serve(name, func(setup deviceplugin.Setup) (device.Plugin, error) {
				if string(setup.Config) == "bad" {
					return nil, structs.NewError(structs.CodeInvalid, "device.bad_config", "plugin", name, "problem", "it says bad")
				}
				return wrap(device.NewFake(device.FakeDevices("test/card", 4)...), setup), nil
			})
		}
	}
	plain := func(f *device.Fake, _ deviceplugin.Setup) device.Plugin { return f }
	return map[string]func(){
		"dev-ext":      serve("dev-ext", plain),
		"dev-impostor": serve("somebody-else", plain),
		"dev-newer": func() { // as the loader ends a program that was built on a newer machine
			fmt.Fprintln(os.Stderr, "dev-newer: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by dev-newer)")
			os.Exit(1)
		},
		"dev-hostile": serve("dev-hostile", func(f *device.Fake, _ deviceplugin.Setup) device.Plugin { return &hostileDevices{f} }),
		"dev-hanger": serve("dev-hanger", func(f *device.Fake, _ deviceplugin.Setup) device.Plugin {
			f.Hang()
			return f
		}),
		"dev-once": serve("dev-once", func(f *device.Fake, setup deviceplugin.Setup) device.Plugin {
			mark := filepath.Join(setup.StateDir, "started")
			if _, err := os.Stat(mark); err == nil {
				os.Exit(4) // works in its first life only
			}
			if os.WriteFile(mark, nil, 0o600) != nil {
				os.Exit(5)
			}
			return f
		}),
		"dev-loops": serve("dev-loops", func(f *device.Fake, setup deviceplugin.Setup) device.Plugin {
			lives, err := os.OpenFile(filepath.Join(setup.StateDir, "lives"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
			if err != nil {
				os.Exit(5)
			}
			defer lives.Close()
			info, err := lives.Stat()
			if _, failed := lives.WriteString("x"); err != nil || failed != nil {
				os.Exit(5)
			}
			return &loopingDevices{Fake: f, works: info.Size() == 0}
		}),
	}
}

// loopingDevices is a plugin that answers, and dies as soon as it looks at its
// cards: a library that crashes makes one. In its first life it works.
type loopingDevices struct {
	*device.Fake
	works bool
}

func (l *loopingDevices) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	if !l.works {
		os.Exit(6)
	}
	return l.Fake.Fingerprint(ctx)
}

// hostileDevices is a plugin that says what no plugin may.
type hostileDevices struct{ *device.Fake }

func (h *hostileDevices) Fingerprint(ctx context.Context) (<-chan device.Snapshot, error) {
	to := make(chan device.Snapshot)
	go func() {
		defer close(to)
		devices := device.FakeDevices("test/card", device.DevicesMax+5)
		devices[0].ID = "../../etc/shadow"
		devices[1].ID = devices[2].ID
		devices[3].Kind = "no kind"
		devices[4].Model = "red \x1b[31m"
		devices[5].Attrs = map[string]string{"k": strings.Repeat("x", 10_000)}
		select {
		case to <- device.Snapshot{Devices: devices, Events: make([]device.Event, 2*device.EventsMax)}:
		case <-ctx.Done():
		}
		<-ctx.Done()
	}()
	return to, nil
}

func (h *hostileDevices) Reserve(_ context.Context, ids []string) (device.Reservation, error) {
	switch ids[0] {
	case "memory":
		return device.Reservation{Nodes: []device.Node{{HostPath: "/dev/../dev/mem", TaskPath: "/dev/mem", Access: "rw"}}}, nil
	case "root":
		return device.Reservation{Mounts: []device.Mount{{HostPath: "/", TaskPath: "/host"}}}, nil
	case "outside":
		return device.Reservation{Nodes: []device.Node{{HostPath: "/etc/shadow", TaskPath: "/dev/x", Access: "r"}}}, nil
	case "flood":
		return device.Reservation{CDI: []string{strings.Repeat("x", 2*deviceplugin.MessageBytesMax)}}, nil
	}
	os.Exit(9)
	return device.Reservation{}, nil
}

// startDevice opens a host with one device plugin.
func startDevice(t *testing.T, each host.DeviceConfig) (*host.Host, *host.DevicePlugin) {
	t.Helper()
	return startDeviceIn(t, t.TempDir(), each)
}

// startDeviceIn is startDevice with the place of what plugins keep.
func startDeviceIn(t *testing.T, state string, each host.DeviceConfig) (*host.Host, *host.DevicePlugin) {
	t.Helper()
	if each.Env == nil {
		each.Env = []string{"PATH=/usr/bin:/bin"}
	}
	h, err := host.New(host.Hasty(host.Config{
		PluginDir: install(t, each.Name), RunDir: shortDir(t), StateDir: state, Devices: []host.DeviceConfig{each},
		Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	d, err := h.Device(each.Name)
	if err != nil {
		t.Fatal(err)
	}
	return h, d
}

func TestDeviceContractOverPlugin(t *testing.T) {
	devicetest.Run(t, func(t *testing.T) device.Plugin {
		_, d := startDevice(t, host.DeviceConfig{Name: "dev-ext"})
		return d
	})
}

func TestKilledDevicePluginComesBack(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-ext"})
	snapshots := devicetest.Follow(t, d)
	devicetest.Await(t, snapshots, "devices", func(s device.Snapshot) bool { return len(s.Devices) == 4 })
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stats, err := d.Stats(ctx, device.StatsEveryMin)
	if err != nil {
		t.Fatal(err)
	}
	<-stats
	first := pluginPID(t, "dev-ext")
	must(t, syscall.Kill(first, syscall.SIGKILL))
	eventually.Within(t, time.Minute, "reservations again", func() bool {
		_, err := d.Reserve(context.Background(), []string{"FAKE-0001"})
		return err == nil
	})
	if second := pluginPID(t, "dev-ext"); second == first {
		t.Error("it is the same program")
	}
	devicetest.Await(t, snapshots, "healthy devices", func(s device.Snapshot) bool { return s.Blind == nil && len(s.Devices) == 4 && s.Devices[0].Healthy })
	<-stats // measured by the second program as well
	<-stats
}

func TestDevicesStayKnownWithoutTheirPlugin(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-once"})
	snapshots := devicetest.Follow(t, d)
	devicetest.Await(t, snapshots, "devices", func(s device.Snapshot) bool { return len(s.Devices) == 4 && s.Devices[0].Healthy })
	must(t, syscall.Kill(pluginPID(t, "dev-once"), syscall.SIGKILL))
	s := devicetest.Await(t, snapshots, "a blind snapshot", func(s device.Snapshot) bool { return s.Blind != nil })
	if len(s.Devices) != 4 {
		t.Fatalf("blind snapshot has %d devices, want the 4 known before", len(s.Devices))
	}
	for _, each := range s.Devices {
		if action := device.ActionOf(&each); each.Healthy || action != device.ActCordon || action.Drains() || each.Health.ID != "device.plugin_down" {
			t.Errorf("device %s: healthy %v, action %q, %v; want a cordon that moves no work", each.ID, each.Healthy, action, each.Health)
		}
	}
	if _, err := d.Reserve(context.Background(), []string{"FAKE-0001"}); !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("reserve gives %v", err)
	}
}

// A program that dies whenever it looks is told as down after one patience, not
// when the pauses between its lives have become longer than that.
func TestLoopingDevicePluginIsDown(t *testing.T) {
	state := t.TempDir()
	_, d := startDeviceIn(t, state, host.DeviceConfig{Name: "dev-loops"})
	snapshots := devicetest.Follow(t, d)
	devicetest.Await(t, snapshots, "devices", func(s device.Snapshot) bool { return s.Blind == nil && len(s.Devices) == 4 })
	must(t, syscall.Kill(pluginPID(t, "dev-loops"), syscall.SIGKILL))
	s := devicetest.Await(t, snapshots, "a plugin that is down", func(s device.Snapshot) bool { return s.Blind != nil })
	lives, err := os.ReadFile(filepath.Join(state, "device-dev-loops", "lives"))
	if err != nil {
		t.Fatal(err)
	}
	// The pauses before its sixth life are 3.1 s together; the patience is 2 s.
	if len(lives) > 5 {
		t.Errorf("it was told as down in its life %d", len(lives))
	}
	if len(s.Devices) != 4 || s.Devices[0].Healthy {
		t.Errorf("its devices are %+v", s.Devices)
	}
}

func TestStoppedDevicePluginIsReplaced(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-ext"})
	devicetest.Devices(t, d)
	first := pluginPID(t, "dev-ext")
	must(t, syscall.Kill(first, syscall.SIGSTOP))
	eventually.Within(t, time.Minute, "another program", func() bool {
		_, err := d.Reserve(context.Background(), []string{"FAKE-0001"})
		return err == nil && pluginPID(t, "dev-ext") != first
	})
}

func TestHangingDeviceCallsEnd(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-hanger"})
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	devicetest.Devices(t, d) // the stream is not held up
	started := time.Now()
	// The plugin knows the deadline, too, and may be the first to give up.
	if _, err := d.Reserve(ctx, []string{"FAKE-0001"}); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, device.ErrUnavailable) {
		t.Errorf("reserve gives %v", err)
	}
	if took := time.Since(started); took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestBadDevicePluginsAreUnavailable(t *testing.T) {
	cases := map[string]struct {
		config []byte
		want   string
	}{
		"garbage":      {nil, "Unrecognized remote plugin message"},
		"quitter":      {nil, "plugin"},
		"dev-impostor": {nil, "somebody-else"},
		"exec-ext":     {nil, "device contract"}, // a driver is no device plugin
		"dev-ext":      {[]byte("bad"), "it says bad"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, d := startDevice(t, host.DeviceConfig{Name: name, Config: c.config, Args: []string{"/nonexistent"}})
			s := devicetest.Await(t, devicetest.Follow(t, d), "a blind snapshot", func(s device.Snapshot) bool {
				return s.Blind != nil && s.Blind.Params["cause"] != "starting"
			})
			if cause := s.Blind.Params["cause"]; s.Blind.ID != "device.plugin_down" || !strings.Contains(cause, c.want) {
				t.Errorf("it is blind because of %v, want %q in it", s.Blind, c.want)
			}
		})
	}
}

// A plugin that needs a newer C library than the machine has is told from one that
// fails, with what the loader said of it.
func TestPluginOfANewerMachine(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-newer"})
	s := devicetest.Await(t, devicetest.Follow(t, d), "a blind snapshot", func(s device.Snapshot) bool {
		return s.Blind != nil && s.Blind.Params["cause"] != "starting"
	})
	if s.Blind.ID != "device.plugin_library" || !strings.Contains(s.Blind.Params["cause"], "GLIBC_2.34' not found") || s.Blind.Params["plugin"] != "dev-newer" {
		t.Errorf("it is blind because of %+v", s.Blind)
	}
}

func TestHostileDevicePluginIsBounded(t *testing.T) {
	_, d := startDevice(t, host.DeviceConfig{Name: "dev-hostile"})
	s := devicetest.Await(t, devicetest.Follow(t, d), "devices", func(s device.Snapshot) bool { return len(s.Devices) > 0 })
	if want := device.DevicesMax - 4; len(s.Devices) != want || len(s.Events) != device.EventsMax {
		t.Errorf("%d devices, %d events; want %d, %d", len(s.Devices), len(s.Events), want, device.EventsMax)
	}
	for _, each := range s.Devices {
		if strings.Contains(each.ID, "..") || strings.ContainsRune(each.Model, 0x1b) || len(each.Attrs["k"]) > device.TextMax {
			t.Errorf("device came through: %.200v", each)
		}
	}
	if s.Attributes[deviceplugin.AttributeDropped] == "" {
		t.Error("what was dropped is not told")
	}
	for _, id := range []string{"memory", "root", "outside", "flood", "crash"} {
		if got, err := d.Reserve(context.Background(), []string{id}); err == nil {
			t.Errorf("reservation %q came through: %.200v", id, got)
		}
	}
}

func TestDevicePluginsAreNamedOnce(t *testing.T) {
	dir := install(t, "dev-ext")
	one := host.DeviceConfig{Name: "dev-ext"}
	config := host.Config{PluginDir: dir, RunDir: shortDir(t), StateDir: t.TempDir(), Devices: []host.DeviceConfig{one, one}}
	if h, err := host.New(config); err == nil {
		h.Close()
		t.Error("a plugin can be named twice")
	}
	config.Devices = []host.DeviceConfig{{Name: "../dev-ext", Builtin: true}}
	if h, err := host.New(config); err == nil {
		h.Close()
		t.Error("a path is taken for a built-in's name")
	}
	config.Devices, config.StateDir = []host.DeviceConfig{one}, "relative"
	if h, err := host.New(config); err == nil {
		h.Close()
		t.Error("a relative state directory is taken")
	}
}

// TestEmbeddedPrograms executes contents that are no file, both ways.
func TestEmbeddedPrograms(t *testing.T) {
	contents, err := os.ReadFile("/bin/true")
	must(t, err)
	dir := t.TempDir()
	for name, open := range map[string]func() (string, func(), error){
		"in memory": func() (string, func(), error) { return host.InMemory(contents) },
		"in a file": func() (string, func(), error) { return host.InFile(contents, dir) },
	} {
		path, done, err := open()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		process, err := os.StartProcess(path, []string{"true"}, &os.ProcAttr{})
		if err != nil {
			t.Errorf("%s: start: %v", name, err)
			continue
		}
		if state, err := process.Wait(); err != nil || !state.Success() {
			t.Errorf("%s: %v, %v", name, state, err)
		}
		if err := os.WriteFile(path, []byte("x"), 0); name == "in memory" && err == nil {
			t.Error("a sealed program can be changed")
		}
		done()
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("files are left: %v, %v", entries, err)
	}
}

// TestEmbeddedPlugin runs what a build of make carries; a plain build carries
// nothing and says so.
func TestEmbeddedPlugin(t *testing.T) {
	for _, name := range host.Builtins() {
		missing := host.BuiltinMissing(host.Config{}, name)
		if (missing == nil) != host.Embedded(name) {
			t.Errorf("%s: missing %v, embedded %v", name, missing, host.Embedded(name))
		}
		h, err := host.New(host.Hasty(host.Config{
			RunDir: shortDir(t), StateDir: t.TempDir(), Devices: []host.DeviceConfig{{Name: name, Builtin: true, Env: []string{"PATH=/usr/bin:/bin"}}},
			Logger: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		}))
		must(t, err)
		d, err := h.Device(name)
		must(t, err)
		s := devicetest.Await(t, devicetest.Follow(t, d), "a report", func(s device.Snapshot) bool {
			return s.Blind == nil || !host.Embedded(name) && strings.Contains(s.Blind.Params["cause"], "carries no")
		})
		if host.Embedded(name) && s.Absent == nil && len(s.Devices) == 0 {
			t.Errorf("%s: neither devices nor a reason: %+v", name, s)
		}
		must(t, h.Close())
	}
}

func TestBuiltinEnv(t *testing.T) {
	got := host.BuiltinEnv("ascend", []string{"PATH=/bin"})
	if len(got) != 2 || got[0] != "PATH=/bin" || !strings.HasPrefix(got[1], "LD_LIBRARY_PATH=/usr/local/dcmi:") {
		t.Errorf("ascend: %q", got)
	}
	if got := host.BuiltinEnv("nvidia", []string{"LD_LIBRARY_PATH=/x"}); len(got) != 2 || got[0] != "LD_LIBRARY_PATH=/x" {
		t.Errorf("nvidia: %q", got)
	}
}
