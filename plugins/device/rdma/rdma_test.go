package rdma

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/plugins/device/devicetest"
	"nomadlike/plugins/device/pcie"
)

func TestReadServer(t *testing.T) {
	root := devicetest.TreeFile(t, "testdata/server.tree")
	inventory := Read(root)
	text, err := json.MarshalIndent(inventory, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/server.json", string(text)+"\n")
	if !inventory.RDMA() {
		t.Error("no RDMA found")
	}
}

func TestReadNothing(t *testing.T) {
	inventory := Read(t.TempDir())
	if len(inventory.Cards) != 0 || len(inventory.Nets) != 0 || inventory.RDMA() {
		t.Errorf("found %+v", inventory)
	}
	if choice := inventory.Choose(nil); choice.Net != "" || choice.Cards != nil {
		t.Errorf("chose %+v", choice)
	}
	if _, _, ok := inventory.Nearest(pcie.Place{}); ok {
		t.Error("a card is near")
	}
}

func TestReadThisMachine(t *testing.T) {
	Read("/") // whatever it has
}

func TestChoose(t *testing.T) {
	inventory := Read(devicetest.TreeFile(t, "testdata/server.tree"))
	for name, c := range map[string]struct {
		allowed []string
		want    string
	}{
		"everything":    {nil, "[mlx5_0:1 mlx5_1:1 mlx5_3:1] [ib0 ib1 ib3] InfiniBand ens5"},
		"by card":       {[]string{"mlx5_1", "bond"}, "[mlx5_1:1] [ib1] InfiniBand bond0"},
		"by interface":  {[]string{"ens"}, "[mlx5_4:1] [ens5] Ethernet ens5"},
		"one that lost": {[]string{"ib2"}, "[] []  "},
		"no bond parts": {[]string{"eno", "bond"}, "[] []  bond0"},
	} {
		got := inventory.Choose(c.allowed)
		if text := fmt.Sprintf("%v %v %s %s", got.Cards, got.RDMANets, got.Layer, got.Net); text != c.want {
			t.Errorf("%s: %s, want %s", name, text, c.want)
		}
	}
}

func TestNearest(t *testing.T) {
	root := devicetest.TreeFile(t, "testdata/server.tree")
	inventory := Read(root)
	gpu := func(path string, numa int) pcie.Place {
		parts := strings.Split(path, "/")
		return pcie.Place{Bus: parts[len(parts)-1], Path: parts, NUMA: numa}
	}
	for name, c := range map[string]struct {
		place    pcie.Place
		card     string
		distance pcie.Distance
	}{
		"same switch":   {gpu("pci0000:16/0000:16:02.0/0000:17:00.0/0000:18:04.0/0000:1a:00.0", 0), "mlx5_0", pcie.Switch},
		"down is far":   {gpu("pci0000:80/0000:80:02.0/0000:81:00.0/0000:82:04.0/0000:84:00.0", 1), "mlx5_3", pcie.NUMA},
		"other socket":  {gpu("pci0000:f0/0000:f0:02.0/0000:f1:00.0", 3), "mlx5_0", pcie.System},
		"same root":     {gpu("pci0000:30/0000:30:03.0/0000:3f:00.0", 0), "mlx5_1", pcie.Root},
		"nothing known": {pcie.Place{NUMA: -1}, "mlx5_0", pcie.System},
	} {
		card, distance, ok := inventory.Nearest(c.place)
		if !ok || card.Name != c.card || distance != c.distance {
			t.Errorf("%s: %s at %s, want %s at %s", name, card.Name, distance, c.card, c.distance)
		}
	}
}

// TestWatch tells the story of some links, second by second.
func TestWatch(t *testing.T) {
	start := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	var w Watch
	var story strings.Builder
	at := start
	step := func(after time.Duration, what string, inventory Inventory) {
		at = at.Add(after)
		fmt.Fprintf(&story, "%s %s\n", at.Sub(start), what)
		for _, fault := range w.Step(inventory, at) {
			fmt.Fprintf(&story, "    %s since %s: %s\n", fault.Link, fault.Since.Sub(start), messages.Text(messages.English, fault.Reason.ID, fault.Reason.Params))
		}
	}
	port := func(name, state string, gbit float64, downed uint64) Card {
		return Card{Name: name, Ports: []Port{{Number: 1, State: state, Rate: gbit * 1e9, Counters: map[string]uint64{"link_downed": downed}}}}
	}
	up := port("mlx5_0", "ACTIVE", 400, 3)
	unused := port("mlx5_1", "DOWN", 10, 0)
	eth := func(up bool, gbit float64) Net { return Net{Name: "eth0", Up: up, Speed: gbit * 1e9} }
	step(0, "one port works, one was never connected", Inventory{Cards: []Card{up, unused}, Nets: []Net{eth(true, 25)}})
	step(time.Minute, "nothing changes", Inventory{Cards: []Card{up, unused}, Nets: []Net{eth(true, 25)}})
	step(time.Second, "the port is lost", Inventory{Cards: []Card{port("mlx5_0", "DOWN", 10, 4), unused}, Nets: []Net{eth(true, 25)}})
	step(time.Second, "the interface, too", Inventory{Cards: []Card{port("mlx5_0", "DOWN", 10, 4), unused}, Nets: []Net{eth(false, 0)}})
	step(time.Second, "both are back, the interface slower", Inventory{Cards: []Card{port("mlx5_0", "ACTIVE", 400, 4), unused}, Nets: []Net{eth(true, 10)}})
	step(40*time.Second, "all is calm", Inventory{Cards: []Card{port("mlx5_0", "ACTIVE", 400, 4), unused}, Nets: []Net{eth(true, 25)}})
	for i := range 4 {
		step(45*time.Second, "the port was down between two looks", Inventory{Cards: []Card{port("mlx5_0", "ACTIVE", 400, uint64(5+i)), unused}, Nets: []Net{eth(true, 25)}})
	}
	step(time.Hour, "an hour later", Inventory{Cards: []Card{port("mlx5_0", "ACTIVE", 400, 8), unused}, Nets: []Net{eth(true, 25)}})
	step(time.Second, "the card has vanished", Inventory{Cards: []Card{unused}, Nets: []Net{eth(true, 25)}})
	golden.Assert(t, "testdata/watch.txt", story.String())
}

func FuzzRead(f *testing.F) {
	f.Add("4: ACTIVE", "400 Gb/sec (4X NDR)", "25000", "1")
	f.Add("", "x Gb/sec", "-1", "\x00")
	f.Fuzz(func(t *testing.T, state, rate, speed, carrier string) {
		root := t.TempDir()
		for name, contents := range map[string]string{
			"sys/class/infiniband/mlx5_0/ports/1/state": state, "sys/class/infiniband/mlx5_0/ports/1/rate": rate,
			"sys/class/net/eth0/device/x": "", "sys/class/net/eth0/speed": speed, "sys/class/net/eth0/carrier": carrier,
		} {
			path := filepath.Join(root, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(contents), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		inventory := Read(root)
		if len(inventory.Cards) != 1 || len(inventory.Nets) != 1 || inventory.Cards[0].Ports[0].Rate < 0 || inventory.Nets[0].Speed < 0 {
			t.Errorf("read %+v", inventory)
		}
		inventory.Choose(nil)
		new(Watch).Step(inventory, time.Now())
	})
}
