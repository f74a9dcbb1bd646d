// Package pcie reads from sysfs where PCI devices sit, and reports how near two
// of them are to each other.
//
// Flow: Read gathers, at the door, the path of every asked device through the
// bridges of the machine; Distance and the methods of Place are pure.
//
// Limits: Linux. In a virtual machine the tree is what the hypervisor shows,
// often flat; then everything is as near as its NUMA node.
package pcie

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Distance is how far a signal goes from one device to another; smaller is
// nearer.
type Distance int

// The distances, named as nvidia-smi names them.
const (
	Same   Distance = iota // one and the same device
	Switch                 // PIX: at most one PCI switch between them
	Bridge                 // PXB: several switches below one root port
	Root                   // PHB: through the root complex
	NUMA                   // NODE: other root complexes of one NUMA node
	System                 // SYS: between sockets, or not known
)

// String returns the word that stands in attributes.
func (d Distance) String() string {
	names := []string{"same", "pix", "pxb", "phb", "node", "sys"}
	if d < Same || d > System {
		return "sys"
	}
	return names[d]
}

// Place is where a device sits.
type Place struct {
	Bus  string   // "0000:17:00.0"
	Path []string // root complex, bridges, and the device itself at last
	NUMA int      // -1: not known
	CPUs string   // CPUs that are near, as "0-31,64-95"
}

// Switch names the PCI switch above the device; "" when it hangs directly at
// a root port.
func (p Place) Switch() string {
	if len(p.Path) < 5 {
		return ""
	}
	return p.Path[len(p.Path)-3]
}

// Root names the root of the device's tree.
func (p Place) Root() string {
	if len(p.Path) < 2 {
		return ""
	}
	return p.Path[0]
}

// Between reports how far two devices are from each other.
func Between(a, b Place) Distance {
	common := 0
	for common < len(a.Path) && common < len(b.Path) && a.Path[common] == b.Path[common] {
		common++
	}
	rest := max(len(a.Path), len(b.Path)) - common
	switch {
	case a.Bus == b.Bus:
		return Same
	case common >= 2 && rest <= 2:
		return Switch
	case common >= 2:
		return Bridge
	case common == 1:
		return Root
	case a.NUMA >= 0 && a.NUMA == b.NUMA:
		return NUMA
	}
	return System
}

// Normal writes a PCI address as the kernel does: four digits of domain, lower
// case. Vendors' libraries write eight digits. What is no address stays as it
// is, in lower case.
func Normal(bus string) string {
	bus = strings.ToLower(strings.TrimSpace(bus))
	domain, rest, found := strings.Cut(bus, ":")
	if !found {
		return bus
	}
	if !strings.Contains(rest, ":") { // no domain: "17:00.0"
		return "0000:" + bus
	}
	number, err := strconv.ParseUint(domain, 16, 32)
	if err != nil {
		return bus
	}
	return fmt.Sprintf("%04x:%s", number, rest)
}

// Read finds a device below root, which is "/" but in tests.
func Read(root, bus string) (Place, error) {
	bus = Normal(bus)
	place := Place{Bus: bus, NUMA: -1}
	if !Valid(bus) {
		return place, fmt.Errorf("find PCI device: %.40q is no address", bus)
	}
	entry := filepath.Join(root, "sys/bus/pci/devices", bus)
	target, err := filepath.EvalSymlinks(entry)
	if err != nil {
		return place, fmt.Errorf("find PCI device %s: %w", bus, err)
	}
	place.Path = split(target)
	if text, err := os.ReadFile(filepath.Join(entry, "numa_node")); err == nil {
		if number, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			place.NUMA = number
		}
	}
	if text, err := os.ReadFile(filepath.Join(entry, "local_cpulist")); err == nil {
		place.CPUs = strings.TrimSpace(string(text))
	}
	return place, nil
}

// split returns the parts of a sysfs path from the root complex on.
func split(target string) []string {
	parts := strings.Split(target, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "pci") && strings.Contains(part, ":") {
			return parts[i:]
		}
	}
	return parts[max(len(parts)-1, 0):]
}

// Valid reports whether bus is an address as Normal writes it.
func Valid(bus string) bool {
	var domain, number, slot, function uint64
	if len(bus) > 16 {
		return false
	}
	n, err := fmt.Sscanf(bus, "%x:%x:%x.%x", &domain, &number, &slot, &function)
	return err == nil && n == 4 && fmt.Sprintf("%04x:%02x:%02x.%x", domain, number, slot, function) == bus
}

// Vendors lists the addresses of the PCI devices below root with a vendor and
// a class that begins with one of classes, as sysfs writes them: "0x10de",
// "0x0302". It serves to tell people of hardware that no driver serves.
func Vendors(root, vendor string, classes ...string) []string {
	entries, err := os.ReadDir(filepath.Join(root, "sys/bus/pci/devices"))
	if err != nil {
		return nil
	}
	var found []string
	for _, entry := range entries {
		dir := filepath.Join(root, "sys/bus/pci/devices", entry.Name())
		text, err := os.ReadFile(filepath.Join(dir, "vendor"))
		if err != nil || strings.TrimSpace(string(text)) != vendor {
			continue
		}
		class, err := os.ReadFile(filepath.Join(dir, "class"))
		if err != nil {
			continue
		}
		for _, want := range classes {
			if strings.HasPrefix(string(class), want) {
				found = append(found, entry.Name())
				break
			}
		}
	}
	return found
}
