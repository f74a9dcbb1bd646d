package amd

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/runtime"
)

// Limits of what the kernel is believed to say.
const (
	kfdFileMax = 16 << 10
	linkXGMI   = 11 // of a link's type
)

// Node is a card as the kernel's driver for computing lists it.
type Node struct {
	Number int    // in the kernel's list, which has processors, too
	GPU    string // the kernel's number of the card
	Bus    string
	Minor  int // of /dev/dri/renderD<minor>
	ID     string
	Arch   string
	Links  []int // numbers of the nodes that XGMI joins it with, one for each link
}

// ReadKFD lists the cards below root, in the kernel's order, which is ROCm's.
func ReadKFD(root string) []Node {
	base := filepath.Join(root, "sys/class/kfd/kfd/topology/nodes")
	entries, err := os.ReadDir(base)
	if err != nil {
		return nil
	}
	var nodes []Node
	for _, entry := range entries[:min(len(entries), runtime.UnitsMax)] {
		number, err := strconv.Atoi(entry.Name())
		p := properties(filepath.Join(base, entry.Name(), "properties"))
		gpu, readErr := runtime.ReadFile(filepath.Join(base, entry.Name(), "gpu_id"), kfdFileMax)
		id := strings.TrimSpace(string(gpu))
		if err != nil || readErr != nil || id == "" || id == "0" || p["simd_count"] == 0 {
			continue // a processor, or a card that may not be used here
		}
		n := Node{Number: number, GPU: id, Minor: int(p["drm_render_minor"]), ID: uniqueID(p["unique_id"]), Arch: archOf(p["gfx_target_version"])}
		at := p["location_id"]
		n.Bus = fmt.Sprintf("%04x:%02x:%02x.%x", p["domain"], at>>8&0xff, at>>3&0x1f, at&7)
		links, _ := filepath.Glob(filepath.Join(base, entry.Name(), "io_links", "*", "properties")) // the pattern is none of a user's
		for _, path := range links {
			if link := properties(path); link["type"] == linkXGMI {
				n.Links = append(n.Links, int(link["node_to"]))
			}
		}
		nodes = append(nodes, n)
	}
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Number, b.Number) })
	return nodes
}

// properties reads lines of a name and a number.
func properties(path string) map[string]uint64 {
	text, err := runtime.ReadFile(path, kfdFileMax)
	if err != nil {
		return nil
	}
	values := make(map[string]uint64)
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) == 2 {
			if n, err := strconv.ParseUint(words[1], 10, 64); err == nil {
				values[words[0]] = n
			}
		}
	}
	return values
}

// archOf writes 90402 as "gfx942".
func archOf(version uint64) string {
	if version == 0 {
		return ""
	}
	return fmt.Sprintf("gfx%d%x%x", version/10000, version/100%100, version%100)
}

// complete adds to a card what the kernel says of it.
func complete(c *card.Card, nodes []Node, root string) {
	c.Minor = -1
	if text, err := runtime.ReadFile(filepath.Join(root, "sys/bus/pci/devices", c.Bus, "current_link_width"), kfdFileMax); err == nil && c.Bus != "" {
		if width, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && width > 0 {
			c.Width = width
		}
	}
	c.PowerLimit = int(power(root, c.Bus, "power1_cap"))
	at := nodeAt(nodes, c.Bus)
	if at < 0 {
		return
	}
	n := &nodes[at]
	c.Index, c.Minor, c.Arch = at, n.Minor, cmp.Or(n.Arch, c.Arch)
	c.ID = cmp.Or(n.ID, c.ID)
	for _, number := range n.Links {
		other := slices.IndexFunc(nodes, func(m Node) bool { return m.Number == number })
		if other < 0 {
			continue // a processor
		}
		c.Links++
		if id := nodes[other].ID; id != "" && !slices.Contains(c.Linked, id) {
			c.Linked = append(c.Linked, id)
		}
	}
}

func nodeAt(nodes []Node, bus string) int {
	return slices.IndexFunc(nodes, func(n Node) bool { return n.Bus == bus })
}

// power reads one of the card's sensors, in watts; 0: it has none.
func power(root, bus string, names ...string) float64 {
	if bus == "" {
		return 0
	}
	for _, name := range names {
		found, _ := filepath.Glob(filepath.Join(root, "sys/bus/pci/devices", bus, "hwmon/hwmon*", name)) // the pattern is none of a user's
		for _, path := range found {
			text, err := runtime.ReadFile(path, kfdFileMax)
			if err != nil {
				continue
			}
			if micro, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err == nil && micro > 0 {
				return micro / 1e6
			}
		}
	}
	return 0
}

// measure adds to a measurement what the kernel measures: power, and who has
// memory of the card.
func measure(s *card.Sample, bus, root string, nodes []Node) {
	if s.Gauges == nil {
		s.Gauges = make(map[string]float64)
	}
	for gauge, names := range map[string][]string{device.GaugePower: {"power1_average", "power1_input"}, device.GaugePowerLimit: {"power1_cap"}} {
		if watts := power(root, bus, names...); watts > 0 {
			s.Gauges[gauge] = watts
		}
	}
	at := nodeAt(nodes, bus)
	if at < 0 {
		return
	}
	base := filepath.Join(root, "sys/class/kfd/kfd/proc")
	entries, err := os.ReadDir(base)
	if err != nil {
		return
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		text, readErr := runtime.ReadFile(filepath.Join(base, entry.Name(), "vram_"+nodes[at].GPU), kfdFileMax)
		if err != nil || readErr != nil {
			continue
		}
		// Every process that computes is listed for every card; it is on those
		// of which it has memory.
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bytes > 0 {
			s.Processes = append(s.Processes, device.Process{PID: pid, Memory: bytes})
		}
	}
}

// Machine is the part of both libraries that is the kernel's.
type Machine struct {
	Root string // stands in for "/"
}

// Complete adds to facts what the kernel says. Cards that it does not list for
// computing are left out, where it lists any.
func (m Machine) Complete(facts *card.Facts) {
	nodes := ReadKFD(m.Root)
	facts.Cards = slices.DeleteFunc(facts.Cards, func(c card.Card) bool { return len(nodes) > 0 && nodeAt(nodes, c.Bus) < 0 })
	for i := range facts.Cards {
		complete(&facts.Cards[i], nodes, m.Root)
	}
	slices.SortStableFunc(facts.Cards, func(a, b card.Card) int { return cmp.Compare(a.Index, b.Index) })
	if text, err := runtime.ReadFile(filepath.Join(m.Root, "sys/module/amdgpu/version"), kfdFileMax); err == nil && facts.Driver == "" {
		facts.Driver = strings.TrimSpace(string(text))
	}
}

// Measure measures the cards of completed facts: ask is what the library says of
// one, and the kernel adds the rest.
func (m Machine) Measure(facts *card.Facts, ask func(bus string) map[string]float64) map[int]card.Sample {
	nodes := ReadKFD(m.Root)
	samples := make(map[int]card.Sample, len(facts.Cards))
	for i := range facts.Cards {
		c := &facts.Cards[i]
		s := card.Sample{Gauges: ask(c.Bus)}
		measure(&s, c.Bus, m.Root, nodes)
		samples[c.Index] = s
	}
	return samples
}
