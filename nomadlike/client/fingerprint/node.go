package fingerprint

import (
	"math"
	"net/netip"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Machine is what was read from this machine.
type Machine struct {
	Hostname   string
	Cores      int // that this process may run on
	Interfaces []Interface

	MemInfo     string // /proc/meminfo
	CPUInfo     string // /proc/cpuinfo, its beginning
	OSRelease   string // /etc/os-release
	Kernel      string // /proc/sys/kernel/osrelease
	Routes      string // /proc/net/route
	CPUMax      string // cgroup v2 limit of this process, "" without
	CFSQuota    string // cgroup v1 limit
	CFSPeriod   string
	MemoryMax   string // cgroup v2 or v1 limit
	Arch        string // GOARCH
	PageSize    int
	BootID      string
	Virtualized string // product name of the machine, "" when unknown
}

// Wishes is what the administrator says about the node. Zero values mean the
// defaults.
type Wishes struct {
	Name           string
	Advertise      string // IP
	Interface      string
	Pool           string
	ReservedCPU    float64 // cores kept for the node itself
	ReservedMemory int64   // bytes
	PortMin        int     // dynamic ports, inclusive
	PortMax        int
	Attributes     map[string]string
	Topology       []string // where the machine stands, outermost first
	RDMA           bool
}

// Defaults of Wishes, and its limits.
const (
	PortMinDefault = 20000
	PortMaxDefault = 29999
	NameDefault    = "node"
	nodeNameMax    = 63
	attributesMax  = 256
)

// Node says what the machine offers: the part of a registration that does
// not change while the agent runs. Wrong wishes give a *structs.Error.
func Node(m Machine, w Wishes) (structs.Node, error) {
	addr, iface, err := ChooseAddress(m.Interfaces, w.Advertise, w.Interface, parseDefaultInterface(m.Routes))
	if err != nil {
		return structs.Node{}, err
	}
	capacity, err := capacity(m, w)
	if err != nil {
		return structs.Node{}, err
	}
	name, err := nodeName(m.Hostname, w.Name)
	if err != nil {
		return structs.Node{}, err
	}
	attributes := attributes(m, iface, addr)
	if len(w.Attributes) > attributesMax {
		return structs.Node{}, structs.NewError(structs.CodeTooLarge, "client.too_many_attributes", "max", attributesMax)
	}
	for key, value := range w.Attributes {
		attributes[cleanAttribute(key)] = cleanAttribute(value)
	}
	return structs.Node{
		Name:       name,
		Addr:       addr.String(),
		Pool:       w.Pool, // until the servers decide by their pools' records
		OwnPool:    w.Pool,
		Topology:   w.Topology,
		RDMA:       w.RDMA,
		Attributes: attributes,
		Capacity:   capacity,
	}, nil
}

func capacity(m Machine, w Wishes) (structs.Capacity, error) {
	memory, err := parseMemTotal(m.MemInfo)
	if err != nil {
		return structs.Capacity{}, err
	}
	if limit := parseMemoryMax(m.MemoryMax); limit > 0 {
		memory = min(memory, limit)
	}
	cpu := float64(m.Cores)
	limit := parseCPUMax(m.CPUMax)
	if limit == 0 {
		limit = cores(m.CFSQuota, m.CFSPeriod)
	}
	if limit > 0 {
		cpu = min(cpu, limit)
	}
	c := structs.Capacity{CPU: cpu - w.ReservedCPU, Memory: memory - w.ReservedMemory, PortMin: w.PortMin, PortMax: w.PortMax}
	if c.PortMin == 0 && c.PortMax == 0 {
		c.PortMin, c.PortMax = PortMinDefault, PortMaxDefault
	}
	switch {
	case !(w.ReservedCPU >= 0) || math.IsInf(w.ReservedCPU, 0) || w.ReservedMemory < 0 || c.CPU <= 0 || c.Memory <= 0:
		return structs.Capacity{}, structs.NewError(structs.CodeInvalid, "client.bad_reserve",
			"cpu", w.ReservedCPU, "memory", w.ReservedMemory, "cores", cpu, "total", memory)
	case c.PortMin < 1 || c.PortMax > 65535 || c.PortMin > c.PortMax:
		return structs.Capacity{}, structs.NewError(structs.CodeInvalid, "client.bad_ports", "min", c.PortMin, "max", c.PortMax)
	}
	// Hundredths of a core are enough, and no binary fraction shows.
	c.CPU = math.Floor(c.CPU*100+1e-9) / 100
	return c, nil
}

// nodeName makes a legal name of the host name; one that was wished for has
// to be legal as it stands.
func nodeName(hostname, wish string) (string, error) {
	if wish != "" {
		if legal(wish) != wish {
			return "", structs.NewError(structs.CodeInvalid, "client.bad_node_name", "name", wish)
		}
		return wish, nil
	}
	label, _, _ := strings.Cut(hostname, ".")
	if name := legal(strings.ToLower(label)); name != "" {
		return name, nil
	}
	return NameDefault, nil
}

// legal keeps what may stand in a node's name: letters, digits, '-' and '.',
// with a letter or digit at both ends.
func legal(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return -1
	}, name)
	name = strings.Trim(name[:min(len(name), nodeNameMax)], "-.")
	return name
}

func attributes(m Machine, iface string, addr netip.Addr) map[string]string {
	release := parseOSRelease(m.OSRelease)
	all := map[string]string{
		"kernel.name":         "linux",
		"kernel.version":      m.Kernel,
		"os.name":             release["ID"],
		"os.version":          release["VERSION_ID"],
		"os.pretty":           release["PRETTY_NAME"],
		"cpu.arch":            m.Arch,
		"cpu.model":           parseCPUModel(m.CPUInfo),
		"net.interface":       iface,
		"net.network":         network(m.Interfaces, addr),
		structs.AttrAddresses: addresses(m.Interfaces, addr),
		"net.family":          "ipv4",
		"host.name":           m.Hostname,
		"host.product":        m.Virtualized,
		"boot.id":             m.BootID,
	}
	if addr.Is6() {
		all["net.family"] = "ipv6"
	}
	for key, value := range all {
		if value = cleanAttribute(value); value == "" {
			delete(all, key)
		} else {
			all[key] = value
		}
	}
	return all
}
