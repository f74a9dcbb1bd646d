package ascend

import (
	"net/netip"
	"strconv"
	"strings"
)

// hccnBytesMax bounds /etc/hccn.conf.
const hccnBytesMax = 1 << 20

// Port is the configured address of a chip's own network port.
type Port struct {
	IP, Mask, Gateway string
}

// ParseHCCN reads /etc/hccn.conf: lines such as "address_0=192.168.10.2",
// "netmask_0=…", "gateway_0=…", by the physical number of the chip. Lines that
// it does not know, and values that are no addresses, are left out.
func ParseHCCN(text string) map[int]Port {
	ports := make(map[int]Port)
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSpace(line), "=")
		if !found {
			continue
		}
		what, digits, found := strings.Cut(strings.TrimSpace(name), "_")
		number, err := strconv.ParseUint(digits, 10, 10)
		value = strings.TrimSpace(value)
		if _, addressErr := netip.ParseAddr(value); !found || err != nil || addressErr != nil {
			continue
		}
		port := ports[int(number)]
		switch what {
		case "address":
			port.IP = value
		case "netmask":
			port.Mask = value
		case "gateway":
			port.Gateway = value
		default:
			continue
		}
		ports[int(number)] = port
	}
	return ports
}

// fillPorts fills in the configured addresses of chips where the library reported none.
func fillPorts(facts *Facts, ports map[int]Port) {
	for i := range facts.Chips {
		chip := &facts.Chips[i]
		port, known := ports[chip.Physical]
		if !known {
			continue
		}
		if chip.IP == "" {
			chip.IP, chip.Mask = port.IP, port.Mask
		}
		if chip.Gateway == "" {
			chip.Gateway = port.Gateway
		}
	}
}
