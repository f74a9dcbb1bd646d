package config

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"nomadlike/nomadlike/structs"
)

// surroundings are what defaults depend on; the door to the machine.
type surroundings struct {
	hostname func() (string, error)
	address  func(iface string) (string, error) // first global unicast IP of the machine, or of an interface
	readFile func(string) ([]byte, error)
	workDir  func() (string, error)
}

func machine() surroundings {
	return surroundings{hostname: os.Hostname, address: machineAddress, readFile: os.ReadFile, workDir: os.Getwd}
}

// legalName makes the first label of a host name into a name.
func legalName(host string) string {
	label, _, _ := strings.Cut(strings.ToLower(host), ".")
	var b strings.Builder
	for _, c := range label {
		letter, digit := c >= 'a' && c <= 'z', c >= '0' && c <= '9'
		if b.Len() == 0 && digit {
			b.WriteByte('n')
		}
		if letter || digit || c == '-' && b.Len() > 0 {
			b.WriteRune(c)
		}
	}
	name := b.String()
	name = strings.TrimRight(name[:min(len(name), structs.NameLengthMax)], "-")
	if structs.NameProblem(name) != "" {
		return "node"
	}
	return name
}

// machineAddress is the address under which other machines most likely reach
// this one: the first global unicast IPv4 address, then IPv6, then loopback.
func machineAddress(iface string) (string, error) {
	addresses, err := interfaceAddresses(iface)
	if err != nil {
		return "", err
	}
	var best net.IP
	for _, address := range addresses {
		network, ok := address.(*net.IPNet)
		if !ok || !network.IP.IsGlobalUnicast() {
			continue
		}
		if network.IP.To4() != nil {
			return network.IP.String(), nil
		}
		if best == nil {
			best = network.IP
		}
	}
	switch {
	case best != nil:
		return best.String(), nil
	case iface != "":
		return "", fmt.Errorf("interface %s has no address", iface)
	}
	return "127.0.0.1", nil
}

func interfaceAddresses(iface string) ([]net.Addr, error) {
	if iface == "" {
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			return nil, fmt.Errorf("list addresses of this machine: %w", err)
		}
		return addresses, nil
	}
	found, err := net.InterfaceByName(iface)
	if err != nil {
		return nil, fmt.Errorf("find interface %s: %w", iface, errors.Unwrap(err))
	}
	addresses, err := found.Addrs()
	if err != nil {
		return nil, fmt.Errorf("list addresses of %s: %w", iface, err)
	}
	return addresses, nil
}
