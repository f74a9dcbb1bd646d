package fingerprint

import (
	"net/netip"
	"slices"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Interface is a network interface of the node.
type Interface struct {
	Name     string
	Up       bool
	Loopback bool
	Addrs    []netip.Prefix // with the length of their network's prefix
}

// has finds the interface's own prefix of an address.
func (i Interface) has(addr netip.Addr) (netip.Prefix, bool) {
	for _, p := range i.Addrs {
		if p.Addr().Unmap().WithZone("") == addr {
			return p, true
		}
	}
	return netip.Prefix{}, false
}

// network is the network of an address, as a CIDR; "" when no interface has
// the address.
func network(interfaces []Interface, addr netip.Addr) string {
	for _, i := range interfaces {
		if p, ok := i.has(addr); ok {
			return p.Masked().String()
		}
	}
	return ""
}

// addresses lists the addresses from which the node may reach others, with a comma
// between. "": they are not known, because addr is none of them (what others see of
// the node is translated) or they are too many to be told.
func addresses(interfaces []Interface, addr netip.Addr) string {
	var all []string
	for _, i := range interfaces {
		if _, own := i.has(addr); !i.Up || !own && (i.Loopback || containers(i.Name)) {
			continue
		}
		for _, p := range i.Addrs {
			if p.Addr().Unmap().IsGlobalUnicast() || p.Addr().IsLoopback() {
				all = append(all, p.Addr().Unmap().WithZone("").String())
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	joined := strings.Join(all, ",")
	if !slices.Contains(all, addr.String()) || len(joined) > attributeMax {
		return ""
	}
	return joined
}

// containers reports whether an interface leads to containers of this node alone: the
// bridges of container engines and the ends of their cables.
func containers(name string) bool {
	return slices.ContainsFunc([]string{"docker", "br-", "veth", "cni", "virbr"}, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// ChooseAddress decides under which address ranks on other nodes reach those on this
// one, and the interface that has it.
//
// The interface by its name wins: what the agent advertises may be another network,
// for management. Next comes advertise, an IP; it need not belong to an interface
// (a translated address), and then the interface is "". Then the one of the default route, then the first
// other one that is up, and the loopback at last. IPv4 goes before IPv6.
func ChooseAddress(interfaces []Interface, advertise, name, defaultRoute string) (netip.Addr, string, error) {
	if name != "" {
		for _, i := range interfaces {
			if addr, ok := i.best(true); i.Name == name && ok {
				return addr, i.Name, nil
			}
		}
		return netip.Addr{}, "", structs.NewError(structs.CodeInvalid, "client.bad_interface", "interface", name)
	}
	if advertise != "" {
		addr, err := netip.ParseAddr(advertise)
		if err != nil || addr.IsUnspecified() {
			return netip.Addr{}, "", structs.NewError(structs.CodeInvalid, "client.bad_advertise", "addr", advertise)
		}
		addr = addr.Unmap()
		for _, i := range interfaces {
			if _, ok := i.has(addr); ok {
				return addr, i.Name, nil
			}
		}
		return addr, "", nil
	}
	for _, wanted := range []func(Interface) bool{
		func(i Interface) bool { return i.Name == defaultRoute },
		func(i Interface) bool { return !i.Loopback },
		func(i Interface) bool { return i.Loopback },
	} {
		for _, i := range interfaces {
			if addr, ok := i.best(i.Loopback); i.Up && wanted(i) && ok {
				return addr, i.Name, nil
			}
		}
	}
	return netip.Addr{}, "", structs.NewError(structs.CodeInvalid, "client.no_address")
}

// best is the address of the interface that others should use. Link-local
// addresses only work with a zone and are left out.
func (i Interface) best(loopback bool) (netip.Addr, bool) {
	for _, want4 := range []bool{true, false} {
		for _, p := range i.Addrs {
			addr := p.Addr().Unmap().WithZone("")
			if addr.Is4() == want4 && !addr.IsLinkLocalUnicast() && (loopback || !addr.IsLoopback()) && addr.IsValid() {
				return addr, true
			}
		}
	}
	return netip.Addr{}, false
}
