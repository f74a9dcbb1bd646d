package fingerprint

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

func text(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func machine(t testing.TB) Machine {
	return Machine{
		Hostname: "GPU-01.rack2.example.org", Cores: 64,
		Interfaces: []Interface{
			{Name: "lo", Up: true, Loopback: true, Addrs: addrs("127.0.0.1", "::1")},
			{Name: "docker0", Up: true, Addrs: addrs("172.18.0.1")},
			{Name: "eth0", Up: true, Addrs: addrs("fe80::1", "2001:db8::7", "10.77.0.3")},
			{Name: "ib0", Up: true, Addrs: addrs("192.168.7.3")},
			{Name: "eth1", Up: false, Addrs: addrs("10.78.0.3")},
		},
		MemInfo: text(t, "meminfo"), CPUInfo: text(t, "cpuinfo"), OSRelease: text(t, "os-release"),
		Kernel: "6.1.0-18-amd64", Routes: text(t, "route"), Arch: "amd64", PageSize: 4096, BootID: "b",
	}
}

func addrs(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, one := range texts {
		addr := netip.MustParseAddr(one)
		bits := 24
		if addr.Is6() {
			bits = 64
		}
		all = append(all, netip.PrefixFrom(addr, bits))
	}
	return all
}

func TestNodeOfAMachine(t *testing.T) {
	node, err := Node(machine(t), Wishes{
		Pool: "a800", ReservedCPU: 1.5, ReservedMemory: 2 << 30, Attributes: map[string]string{"rack": "r2\x1b[31m"},
	})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(map[string]any{
		"name": node.Name, "addr": node.Addr, "pool": node.Pool, "attributes": node.Attributes, "capacity": node.Capacity,
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/node.json", string(data)+"\n")
}

func TestThisMachineHasAFingerprint(t *testing.T) {
	m, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	node, err := Node(m, Wishes{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Capacity.CPU <= 0 || node.Capacity.Memory <= 0 || node.Addr == "" || node.Name == "" || node.Attributes["kernel.version"] == "" {
		t.Fatalf("incomplete: %+v", node)
	}
}

func TestContainerLimitsBound(t *testing.T) {
	m := machine(t)
	m.CPUMax, m.MemoryMax = "250000 100000", "1073741824"
	node, err := Node(m, Wishes{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Capacity.CPU != 2.5 || node.Capacity.Memory != 1<<30 {
		t.Errorf("v2: %+v", node.Capacity)
	}
	m.CPUMax, m.MemoryMax, m.CFSQuota, m.CFSPeriod = "max 100000", "9223372036854771712", "50000", "100000"
	node, err = Node(m, Wishes{})
	if err != nil {
		t.Fatal(err)
	}
	if node.Capacity.CPU != 0.5 || node.Capacity.Memory != 24096244<<10 {
		t.Errorf("v1: %+v", node.Capacity)
	}
}

func TestChooseAddress(t *testing.T) {
	all := machine(t).Interfaces
	for _, c := range []struct {
		advertise, name, route string
		addr, iface, refused   string
	}{
		{route: "eth0", addr: "10.77.0.3", iface: "eth0"},
		{route: "", addr: "172.18.0.1", iface: "docker0"},
		{route: "eth1", addr: "172.18.0.1", iface: "docker0"}, // down
		{name: "ib0", route: "eth0", addr: "192.168.7.3", iface: "ib0"},
		{name: "lo", addr: "127.0.0.1", iface: "lo"},
		{name: "eth9", refused: "client.bad_interface"},
		{advertise: "10.77.0.3", addr: "10.77.0.3", iface: "eth0"},
		{advertise: "10.77.0.3", name: "ib0", addr: "192.168.7.3", iface: "ib0"},
		{advertise: "10.77.0.3", name: "eth9", refused: "client.bad_interface"},
		{advertise: "203.0.113.9", addr: "203.0.113.9"},
		{advertise: "2001:db8::7", addr: "2001:db8::7", iface: "eth0"},
		{advertise: "gpu-01", refused: "client.bad_advertise"},
		{advertise: "0.0.0.0", refused: "client.bad_advertise"},
	} {
		addr, iface, err := ChooseAddress(all, c.advertise, c.name, c.route)
		if c.refused != "" {
			wantRefusal(t, err, c.refused)
			continue
		}
		if err != nil || addr.String() != c.addr || iface != c.iface {
			t.Errorf("%+v: got %s %s %v", c, addr, iface, err)
		}
	}
	_, _, err := ChooseAddress(nil, "", "", "")
	wantRefusal(t, err, "client.no_address")
	if addr, _, err := ChooseAddress(all[:1], "", "", ""); err != nil || addr.String() != "127.0.0.1" {
		t.Errorf("loopback only: %s %v", addr, err)
	}
}

func TestWishesThatCanNotBe(t *testing.T) {
	for refused, w := range map[string]Wishes{
		"client.bad_reserve":   {ReservedCPU: 64},
		"client.bad_ports":     {PortMin: 3000, PortMax: 2000},
		"client.bad_node_name": {Name: "Gpu 01"},
	} {
		_, err := Node(machine(t), w)
		wantRefusal(t, err, refused)
	}
	_, err := Node(machine(t), Wishes{PortMin: 1, PortMax: 70000})
	wantRefusal(t, err, "client.bad_ports")
	_, err = Node(machine(t), Wishes{ReservedMemory: -1})
	wantRefusal(t, err, "client.bad_reserve")
}

func TestNodeNames(t *testing.T) {
	for host, want := range map[string]string{
		"GPU-01.rack2": "gpu-01", "": NameDefault, "---": NameDefault, "机器7": "7", "-a_b-": "ab",
	} {
		if got, err := nodeName(host, ""); err != nil || got != want {
			t.Errorf("host %q: %q %v, want %q", host, got, err, want)
		}
	}
}

func wantRefusal(t *testing.T, err error, id string) {
	t.Helper()
	var e *structs.Error
	if !errors.As(err, &e) || e.ID != id {
		t.Errorf("got %v, want %s", err, id)
		return
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		if !messages.Has(language, id) {
			t.Errorf("%s has no text in %s", id, language)
		}
	}
}

func FuzzNode(f *testing.F) {
	m := machine(f)
	f.Add(m.MemInfo, m.CPUInfo, m.OSRelease, m.Routes, "max 100000", "-1")
	f.Add("MemTotal: 1 kB", "model name:", "A=\"", "\x00", "1e309 1", "9")
	f.Fuzz(func(t *testing.T, mem, cpu, release, routes, cpuMax, memMax string) {
		m := m
		m.MemInfo, m.CPUInfo, m.OSRelease, m.Routes, m.CPUMax, m.MemoryMax = mem, cpu, release, routes, cpuMax, memMax
		node, err := Node(m, Wishes{})
		if err != nil {
			return
		}
		if !(node.Capacity.CPU >= 0) || node.Capacity.CPU > 64 || node.Capacity.Memory <= 0 {
			t.Fatalf("capacity %+v", node.Capacity)
		}
		for key, value := range node.Attributes {
			if len(value) > attributeMax || value == "" || value != cleanAttribute(value) {
				t.Fatalf("attribute %s=%q", key, value)
			}
		}
	})
}

// What a node says of its addresses is where its connections may come from.
func TestAddresses(t *testing.T) {
	on := func(name string, up bool, addrs ...string) Interface {
		i := Interface{Name: name, Up: up, Loopback: name == "lo"}
		for _, text := range addrs {
			i.Addrs = append(i.Addrs, netip.MustParsePrefix(text))
		}
		return i
	}
	lo, eth := on("lo", true, "127.0.0.1/8", "::1/128"), on("eth0", true, "10.0.0.1/24", "fe80::1/64", "fd00::1/64")
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprintf("10.1.%d.1/24", i))
	}
	for _, c := range []struct {
		name       string
		interfaces []Interface
		addr, want string
	}{
		{"one card", []Interface{lo, eth}, "10.0.0.1", "10.0.0.1,fd00::1"},
		{"two cards", []Interface{lo, eth, on("ib0", true, "192.168.0.1/24")}, "192.168.0.1", "10.0.0.1,192.168.0.1,fd00::1"},
		{"a card that is down", []Interface{lo, eth, on("eth1", false, "10.2.0.1/24")}, "10.0.0.1", "10.0.0.1,fd00::1"},
		{"bridges of containers", []Interface{lo, eth, on("docker0", true, "172.17.0.1/16"), on("br-0a1b", true, "172.18.0.1/16"), on("veth1", true, "10.9.0.1/24")}, "10.0.0.1", "10.0.0.1,fd00::1"},
		{"a bridge that ranks use", []Interface{lo, on("br-lan", true, "10.3.0.1/24")}, "10.3.0.1", "10.3.0.1"},
		{"a translated address", []Interface{lo, eth}, "203.0.113.7", ""},
		{"the loopback", []Interface{lo, eth}, "127.0.0.1", "10.0.0.1,127.0.0.1,::1,fd00::1"},
		{"too many to tell", []Interface{lo, eth, on("eth1", true, many...)}, "10.0.0.1", ""},
	} {
		if got := addresses(c.interfaces, netip.MustParseAddr(c.addr)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
