//go:build cgo

package nvml_test

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/plugins/device"
	"nomadlike/plugins/nvidia"
	"nomadlike/plugins/nvidia/nvml"
	"nomadlike/plugins/nvidia/nvmltest"
)

// shared is the one library of this process: a second one would not be called.
var shared struct {
	sync.Once
	path string
}

func library(t testing.TB) string {
	t.Helper()
	shared.Do(func() {
		built := nvmltest.Build(t)
		dir, err := os.MkdirTemp("", "nvml")
		if err != nil {
			t.Fatal(err)
		}
		shared.path = dir + "/libnvidia-ml.so.1"
		if err := os.Rename(built, shared.path); err != nil {
			t.Fatal(err)
		}
	})
	if shared.path == "" {
		t.Skip("no C compiler is installed here: the fake libnvidia-ml.so.1 cannot be built")
	}
	return shared.path
}

func open(t testing.TB, m *nvmltest.Machine) *nvml.Library {
	t.Helper()
	m.Here()
	l := nvml.New(library(t))
	if reason := l.Open(); reason != nil {
		t.Fatalf("open: %v", reason)
	}
	t.Cleanup(l.Close)
	return l
}

func TestReadAndSample(t *testing.T) {
	m := nvmltest.New(t,
		"driver 550.54.15", "cuda 12040",
		nvmltest.Card(0)+" fabric=3 clique=7", nvmltest.Card(1)+" width=8 ecc=2 pending=1 throttle=64", nvmltest.Card(2)+" mig=1", nvmltest.Card(3)+" lost=1", nvmltest.Card(4)+" lost=2",
		"link GPU-0000 up=1 remote=00000000:02:00.0", "link GPU-0000 up=0", "link GPU-0001 up=1 remote=00000000:01:00.0", "link GPU-0001 up=1 remote=00000000:AA:00.0 switch=1",
		`instance GPU-0002 uuid=MIG-0001 name="NVIDIA H100 80GB HBM3 MIG 1g.10gb" gi=7 ci=0 total=9728 used=12`, `instance GPU-0002 uuid=MIG-0002 gi=8 ci=1 total=9728`,
		"process GPU-0000 pid=77 mem=1024", "process GPU-0000 pid=78 mem=5", "process MIG-0001 pid=79 mem=10",
	)
	l := open(t, m)
	facts, err := l.Read()
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/read.json", indent(t, facts))
	sampled, err := l.Sample()
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/sample.json", indent(t, sampled))
}

func indent(t testing.TB, value any) string {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func TestEvents(t *testing.T) {
	m := nvmltest.New(t, nvmltest.Cards(2)...)
	l := open(t, m)
	if _, err := l.Read(); err != nil {
		t.Fatal(err)
	}
	if happened, err := l.Wait(20 * time.Millisecond); err != nil || len(happened) != 0 {
		t.Fatalf("nothing has happened, but %v, %v", happened, err)
	}
	m.Happen("GPU-0001 xid=79")
	m.Happen("GPU-0000 xid=31 gi=7 ci=0")
	m.Happen("GPU-0000 type=256")
	happened, err := l.Wait(time.Second)
	if err != nil || len(happened) != 3 {
		t.Fatalf("%v, %v", happened, err)
	}
	for i := range happened {
		happened[i].At = time.Time{}
	}
	want := []nvidia.Happening{
		{UUID: "GPU-0001", XID: 79, GPU: -1, Compute: -1, Source: nvidia.FromLibrary},
		{UUID: "GPU-0000", XID: 31, GPU: 7, Compute: 0, Source: nvidia.FromLibrary},
		{UUID: "GPU-0000", GPU: -1, Compute: -1, Source: nvidia.FromLibrary},
	}
	for i := range want {
		if happened[i] != want[i] {
			t.Errorf("event %d is %+v, want %+v", i, happened[i], want[i])
		}
	}
	// A card that comes later reports events as well.
	m.Add(nvmltest.Card(2))
	if _, err := l.Read(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Wait(time.Millisecond); err != nil {
		t.Fatal(err)
	}
	m.Happen("GPU-0002 xid=48")
	if happened, err := l.Wait(time.Second); err != nil || len(happened) != 1 || happened[0].UUID != "GPU-0002" {
		t.Errorf("%v, %v", happened, err)
	}
}

func TestOpenAfterClose(t *testing.T) {
	l := open(t, nvmltest.New(t, nvmltest.Cards(2)...))
	for range 3 {
		l.Close()
		if reason := l.Open(); reason != nil {
			t.Fatal(reason)
		}
		if facts, err := l.Read(); err != nil || len(facts.Cards) != 2 {
			t.Fatalf("%+v, %v", facts, err)
		}
	}
}

func TestNoLibrary(t *testing.T) {
	for name, path := range map[string]string{"missing": "/nonexistent/libnvidia-ml.so.1", "no library": os.Args[0] + ".txt"} {
		if strings.HasSuffix(path, ".txt") {
			path = t.TempDir() + "/text"
			if err := os.WriteFile(path, []byte("no library\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		reason := nvml.New(path).Open()
		if reason == nil || reason.ID != "device.nvidia_no_library" || reason.Params["cause"] == "" {
			t.Errorf("%s: %v", name, reason)
		}
	}
}

func TestInitRefused(t *testing.T) {
	for code, want := range map[string]string{"9": "device.nvidia_no_driver", "18": "device.nvidia_version_mismatch", "4": "device.nvidia_init"} {
		m := nvmltest.New(t, "init "+code)
		m.Here()
		if reason := nvml.New(library(t)).Open(); reason == nil || reason.ID != want {
			t.Errorf("nvmlInit gives %s: %v, want %s", code, reason, want)
		}
	}
}

func TestCountFails(t *testing.T) {
	l := open(t, nvmltest.New(t, append(nvmltest.Cards(1), "fail nvmlDeviceGetCount_v2 999")...))
	if facts, err := l.Read(); err == nil {
		t.Errorf("read gives %+v", facts)
	}
}

func BenchmarkRead128(b *testing.B) {
	l := open(b, nvmltest.New(b, nvmltest.Cards(128)...))
	for b.Loop() {
		if facts, err := l.Read(); err != nil || len(facts.Cards) != 128 {
			b.Fatal(err)
		}
	}
}

func BenchmarkSample8(b *testing.B) {
	l := open(b, nvmltest.New(b, nvmltest.Cards(8)...))
	if _, err := l.Read(); err != nil {
		b.Fatal(err)
	}
	var last []device.DeviceStats
	for b.Loop() {
		sampled, err := l.Sample()
		if err != nil || len(sampled) != 8 {
			b.Fatal(err)
		}
		last = sampled
	}
	_ = last
}
