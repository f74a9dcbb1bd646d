package fingerprint

import "testing"

func TestLoadOfAMachine(t *testing.T) {
	stat := "cpu  1000 20 300 90000 500 10 20 30 40 0\ncpu0 500 10 150 45000 250 5 10 15 20 0\n"
	memory := "MemTotal:       16000 kB\nMemFree:         1000 kB\nMemAvailable:    4000 kB\n"
	want := Load{CPUSeconds: 13.8, MemoryUsed: 12000 << 10, MemoryTotal: 16000 << 10}
	if got := ParseLoad(stat, memory); got != want {
		t.Errorf("load %+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "cpu", "cpu a b c d e f g h", "intr 1 2 3 4 5 6 7 8"} {
		if got := ParseLoad(bad, ""); got != (Load{}) {
			t.Errorf("load of %q is %+v", bad, got)
		}
	}
	if now := ReadLoad(); now.CPUSeconds <= 0 || now.MemoryUsed <= 0 || now.MemoryUsed > now.MemoryTotal {
		t.Errorf("this machine uses %+v", now)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add("cpu 1 2 3 4 5 6 7 8 9 10", "MemTotal: 5 kB\nMemAvailable: 3 kB\n")
	f.Fuzz(func(t *testing.T, stat, memory string) {
		load := ParseLoad(stat, memory)
		if load.CPUSeconds < 0 || load.MemoryUsed < 0 || load.MemoryUsed > load.MemoryTotal {
			t.Errorf("load %+v", load)
		}
	})
}
