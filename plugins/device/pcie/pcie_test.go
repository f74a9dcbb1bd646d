package pcie

import (
	"os"
	"path/filepath"
	"testing"
)

// tree makes PCI devices below a temporary root.
func tree(t *testing.T, numa map[string]string) string {
	t.Helper()
	root := t.TempDir()
	links := filepath.Join(root, "sys/bus/pci/devices")
	if err := os.MkdirAll(links, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, node := range numa {
		dir := filepath.Join(root, "sys/devices", path)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"numa_node": node + "\n", "vendor": "0x10de\n", "class": "0x030200\n", "local_cpulist": "0-15\n"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(filepath.Join("../../../devices", path), filepath.Join(links, filepath.Base(path))); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestDistances(t *testing.T) {
	root := tree(t, map[string]string{
		"pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:00.0/0000:19:00.0":                           "0",
		"pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:04.0/0000:1a:00.0":                           "0",
		"pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:08.0/0000:1b:00.0/0000:1c:00.0/0000:1d:00.0": "0",
		"pci0000:16/0000:16:03.0/0000:1e:00.0":                                                     "0",
		"pci0000:30/0000:30:02.0/0000:31:00.0":                                                     "0",
		"pci0000:80/0000:80:02.0/0000:81:00.0":                                                     "1",
		"pci0000:90/0000:90:02.0/0000:91:00.0":                                                     "-1",
	})
	places := map[string]Place{}
	for _, bus := range []string{"0000:19:00.0", "0000:1a:00.0", "0000:1d:00.0", "0000:1e:00.0", "0000:31:00.0", "0000:81:00.0", "0000:91:00.0"} {
		place, err := Read(root, "0000"+bus) // as NVML writes it
		if err != nil {
			t.Fatal(err)
		}
		places[bus] = place
	}
	for _, c := range []struct {
		a, b string
		want Distance
	}{
		{"0000:19:00.0", "0000:19:00.0", Same},
		{"0000:19:00.0", "0000:1a:00.0", Switch},
		{"0000:19:00.0", "0000:1d:00.0", Bridge},
		{"0000:19:00.0", "0000:1e:00.0", Root},
		{"0000:19:00.0", "0000:31:00.0", NUMA},
		{"0000:19:00.0", "0000:81:00.0", System},
		{"0000:91:00.0", "0000:81:00.0", System},
	} {
		if got := Between(places[c.a], places[c.b]); got != c.want {
			t.Errorf("%s to %s: %s, want %s", c.a, c.b, got, c.want)
		}
		if there, back := Between(places[c.a], places[c.b]), Between(places[c.b], places[c.a]); there != back {
			t.Errorf("%s to %s is %s, back is %s", c.a, c.b, there, back)
		}
	}
	if a, b := places["0000:19:00.0"].Switch(), places["0000:1a:00.0"].Switch(); a != b || a != "0000:17:00.0" {
		t.Errorf("switches are %q and %q", a, b)
	}
	if got := places["0000:1e:00.0"]; got.Switch() != "" || got.Root() != "pci0000:16" || got.CPUs != "0-15" {
		t.Errorf("place at a root port: %+v", got)
	}
	if got := Vendors(root, "0x10de", "0x0300", "0x0302"); len(got) != 7 {
		t.Errorf("found %v", got)
	}
	if got := Vendors(root, "0x19e5", "0x"); got != nil {
		t.Errorf("found %v", got)
	}
}

func TestNormal(t *testing.T) {
	for in, want := range map[string]string{
		"00000000:3B:00.0": "0000:3b:00.0", "0000:3b:00.0": "0000:3b:00.0", "3B:00.0": "0000:3b:00.0",
		"10000000:01:00.0": "10000000:01:00.0", " 0000:C1:00.0\n": "0000:c1:00.0", "nonsense": "nonsense", "x:y:z": "x:y:z",
	} {
		if got := Normal(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("0000:19:00.0")
	f.Add("../../../../etc")
	root := f.TempDir()
	f.Fuzz(func(t *testing.T, bus string) {
		if place, err := Read(root, bus); err == nil {
			t.Errorf("found %+v in an empty tree", place)
		}
		if Normal(Normal(bus)) != Normal(bus) && Valid(Normal(bus)) {
			t.Errorf("%q is not normal after one step", bus)
		}
	})
}
