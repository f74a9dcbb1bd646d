package fingerprint

import (
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// textMax bounds what is read of one kernel text, in bytes.
const textMax = 256 << 10

// Read looks at this machine. Texts that cannot be read are left empty;
// what cannot be done without is missed by Node.
func Read() (Machine, error) {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = ""
	}
	interfaces, err := readInterfaces()
	if err != nil {
		return Machine{}, err
	}
	m := Machine{
		Hostname:    hostname,
		Cores:       runtime.NumCPU(),
		Interfaces:  interfaces,
		MemInfo:     read("/proc/meminfo"),
		CPUInfo:     readSome("/proc/cpuinfo", 4<<10),
		OSRelease:   read("/etc/os-release"),
		Kernel:      read("/proc/sys/kernel/osrelease"),
		Routes:      read("/proc/net/route"),
		Arch:        runtime.GOARCH,
		PageSize:    os.Getpagesize(),
		BootID:      read("/proc/sys/kernel/random/boot_id"),
		Virtualized: read("/sys/class/dmi/id/product_name"),
	}
	own := read("/proc/self/cgroup")
	m.CPUMax = readCgroup(own, "", "cpu.max")
	m.CFSQuota = readCgroup(own, "cpu", "cpu.cfs_quota_us")
	m.CFSPeriod = readCgroup(own, "cpu", "cpu.cfs_period_us")
	m.MemoryMax = readMemoryMax(own)
	return m, nil
}

// MemoryMax is how much memory this process may use together with the others
// of its cgroup, in bytes; 0 without a limit.
func MemoryMax() int64 { return parseMemoryMax(readMemoryMax(read("/proc/self/cgroup"))) }

func readMemoryMax(own string) string {
	if text := readCgroup(own, "", "memory.max"); text != "" {
		return text
	}
	return readCgroup(own, "memory", "memory.limit_in_bytes")
}

// readCgroup reads a limit of this process's own cgroup; controller is "" for
// the unified hierarchy (v2).
func readCgroup(own, controller, file string) string {
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		root := "/sys/fs/cgroup"
		if controller == "" && parts[1] != "" {
			continue
		}
		if controller != "" {
			if !contains(parts[1], controller) {
				continue
			}
			root = filepath.Join(root, controller)
		}
		for _, path := range []string{filepath.Join(root, filepath.Clean("/"+parts[2]), file), filepath.Join(root, file)} {
			if text := read(path); text != "" {
				return text
			}
		}
	}
	return ""
}

func contains(list, name string) bool {
	for _, one := range strings.Split(list, ",") {
		if one == name {
			return true
		}
	}
	return false
}

func read(path string) string { return readSome(path, textMax) }

// readSome reads the beginning of a text, "" when it cannot be read.
func readSome(path string, most int64) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(data), "\n")
}

func readInterfaces() ([]Interface, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list network interfaces: %w", err)
	}
	var interfaces []Interface
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			continue // it went away
		}
		one := Interface{Name: i.Name, Up: i.Flags&net.FlagUp != 0, Loopback: i.Flags&net.FlagLoopback != 0}
		for _, addr := range addrs {
			if prefix, err := netip.ParsePrefix(addr.String()); err == nil {
				one.Addrs = append(one.Addrs, prefix)
			}
		}
		interfaces = append(interfaces, one)
	}
	return interfaces, nil
}
