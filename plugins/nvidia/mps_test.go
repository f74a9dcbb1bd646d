package nvidia

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/nvidia/nvmltest"
)

// mpsConfig divides cards by MPS, with a stand-in for NVIDIA's program.
func mpsConfig(m *nvmltest.MPS, share string) string {
	return fmt.Sprintf(`{"kernel_messages": "none", "poll": "100ms", "root": "/nonexistent", "mps_control": %q, "share": [%s]}`, m.Program, share)
}

// awaitParts follows a plugin until its first device takes work, or not.
func awaitParts(t *testing.T, p *Plugin, healthy bool) device.Snapshot {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	snapshots, err := p.Fingerprint(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return devicetest.Await(t, snapshots, fmt.Sprintf("parts that take work: %v", healthy), func(s device.Snapshot) bool {
		return len(s.Devices) > 0 && s.Devices[0].Healthy == healthy && (healthy || s.Devices[0].Health.ID == "device.nvidia_mps_down")
	})
}

// The daemon is started with its cards, again when it has died, taken over by the
// next agent, and ended when no task uses it and nobody wants it any more.
func TestMPSDaemon(t *testing.T) {
	m, state := nvmltest.NewMPS(t), t.TempDir()
	share := fmt.Sprintf(`{"cards": ["0", "1"], "how": "mps", "parts": 4, "pipe_dir": %q}`, m.Pipes)
	start := func(config string) *Plugin {
		return startFake(t, NewFakeLibrary(3), config, func(o *Options) { o.StateDir = state })
	}
	p := start(mpsConfig(m, share))
	s := awaitParts(t, p, true)
	if len(s.Devices) != 9 || s.Devices[0].Attrs[device.AttrSharing] != device.SharingMPS || s.Devices[0].Memory != 20<<30 {
		t.Fatalf("devices %+v", s.Devices)
	}
	first := m.Await(t)
	if got := m.Environment(t, first, "CUDA_VISIBLE_DEVICES"); got != "GPU-0000,GPU-0001" {
		t.Errorf("the daemon has the cards %q", got)
	}
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := 0
	eventually.Within(t, time.Minute, "another daemon runs", func() bool {
		second = m.Running()
		return second > 0 && second != first
	})
	// The next agent finds it.
	p.Close()
	p = start(mpsConfig(m, share))
	awaitParts(t, p, true)
	if m.Running() != second {
		t.Errorf("daemon %d runs, want %d", m.Running(), second)
	}
	p.Close()
	// Nobody wants it, but a task is on it.
	m.Clients(t, 4711)
	p = start(mpsConfig(m, ""))
	asked := m.Asked(t)
	eventually.Within(t, time.Minute, "it is asked for tasks", func() bool { return m.Asked(t) > asked })
	if m.Running() != second {
		t.Fatal("the daemon was ended under a task")
	}
	m.Clients(t)
	eventually.Within(t, time.Minute, "it is ended", func() bool { return m.Running() == 0 })
	eventually.Within(t, time.Minute, "nothing is on record", func() bool {
		text, err := os.ReadFile(filepath.Join(state, mpsFile))
		return err == nil && strings.TrimSpace(string(text)) == "{}"
	})
	p.Close()
}

// Without the daemon, parts take no work and say why; one that the administrator
// runs is none of the plugin's business.
func TestMPSDaemonThatDoesNotStart(t *testing.T) {
	m := nvmltest.NewMPS(t)
	share := fmt.Sprintf(`{"how": "mps", "parts": 2, "pipe_dir": %q}`, m.Pipes)
	m.Refuse(t, true)
	p := startFake(t, NewFakeLibrary(1), mpsConfig(m, share), nil)
	if s := awaitParts(t, p, false); !strings.Contains(fmt.Sprint(s.Devices[0].Health.Params["cause"]), "-d") {
		t.Errorf("the parts say %+v", s.Devices[0].Health)
	}
	m.Refuse(t, false)
	awaitParts(t, p, true)
	p.Close()
	own := strings.Replace(share, `"how"`, `"daemon": "own", "how"`, 1)
	before := m.Running()
	p = startFake(t, NewFakeLibrary(1), mpsConfig(m, own), nil)
	awaitParts(t, p, true)
	if m.Running() != before {
		t.Error("the administrator's daemon was touched")
	}
}

// A directory that others may write is none for the pipes of all tasks.
func TestMPSDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := ownDirectory(dir + "/new"); err != nil {
		t.Error(err)
	}
	for name, prepare := range map[string]func(path string) error{
		"writable by all": func(path string) error {
			if err := os.Mkdir(path, 0o700); err != nil {
				return err
			}
			return os.Chmod(path, 0o777)
		},
		"link":   func(path string) error { return os.Symlink(dir+"/new", path) },
		"file":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"orphan": func(path string) error { return os.Symlink("nowhere", path) },
	} {
		path := filepath.Join(dir, strings.ReplaceAll(name, " ", "-"))
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		if err := ownDirectory(path); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// A task with parts of several cards has limits for each, by its place.
func TestMPSLimits(t *testing.T) {
	s, err := ParseConfig([]byte(`{"share": [{"how": "mps", "parts": 4}]}`))
	if err != nil {
		t.Fatal(err)
	}
	part := func(card, number int) structs.Device {
		uuid := "GPU-" + strconv.Itoa(card)
		return structs.Device{
			ID: partID(uuid, number), Index: card, Kind: device.KindNVIDIAShared, Memory: 20 << 30,
			Attrs: map[string]string{device.AttrParent: uuid, device.AttrSharing: device.SharingMPS},
		}
	}
	for name, c := range map[string]struct {
		parts             []structs.Device
		visible, per, mem string
	}{
		"one":             {[]structs.Device{part(0, 1)}, "GPU-0", "25", "0=20480M"},
		"two of one card": {[]structs.Device{part(0, 1), part(0, 3)}, "GPU-0", "50", "0=40960M"},
		"of two cards":    {[]structs.Device{part(0, 1), part(1, 1), part(1, 2)}, "GPU-0,GPU-1", "25", "0=20480M,1=40960M"},
	} {
		r := reserve(c.parts, &Nodes{}, s)
		got := [...]string{r.Env["CUDA_VISIBLE_DEVICES"], r.Env["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"], r.Env["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"], r.Env["CUDA_MPS_PIPE_DIRECTORY"]}
		if got != [...]string{c.visible, c.per, c.mem, pipeDirDefault} || len(r.Mounts) != 1 {
			t.Errorf("%s: %q, mounts %+v", name, got, r.Mounts)
		}
	}
}
