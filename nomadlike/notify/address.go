package notify

import (
	"net"
	"net/netip"
	"net/url"
	"strings"

	"nomadlike/nomadlike/structs"
)

// HostAllowed reports whether a host, as an address names it, is one that the
// administrator allowed: by its name, with a port where that is not the usual one, or as
// *.DOMAIN for everything below a domain.
func HostAllowed(allowed []string, host, port, usual string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	for _, one := range allowed {
		name, onlyPort := strings.ToLower(one), usual
		if h, p, err := net.SplitHostPort(one); err == nil {
			name, onlyPort = strings.ToLower(h), p
		}
		if port != onlyPort {
			continue
		}
		if below, ok := strings.CutPrefix(name, "*"); ok && strings.HasPrefix(below, ".") && strings.HasSuffix(host, below) && host != below {
			return true
		}
		if host == strings.Trim(name, "[]") {
			return true
		}
	}
	return false
}

// CheckAddress refuses an address that nothing may be sent to: of another scheme, with a
// password in it, or at a host that the administrator did not allow. It returns the host
// to show. Where the host's name leads is judged when it is dialled, see Forbidden.
func CheckAddress(text string, allowed []string) (host string, err error) {
	address, parseErr := url.Parse(text)
	if parseErr != nil || len(text) > structs.NotifyAddressMax || address.Hostname() == "" || address.User != nil || address.Fragment != "" ||
		address.Scheme != "https" && address.Scheme != "http" || strings.ContainsAny(text, " \t\r\n\x00\\") {
		return "", structs.NewError(structs.CodeInvalid, "notify.url") // the address is a secret: it is not repeated
	}
	usual := map[string]string{"https": "443", "http": "80"}[address.Scheme]
	port := address.Port()
	if port == "" {
		port = usual
	}
	if !HostAllowed(allowed, address.Hostname(), port, usual) {
		return "", structs.NewError(structs.CodeForbidden, "notify.host_not_allowed", "host", oneLine(bounded(address.Host, structs.UserTextMax)))
	}
	return address.Host, nil
}

// Forbidden reports whether nothing may ever be sent to an IP address, whoever allowed
// the name that led there: this machine, the link, many machines at once, none, or
// another spelling of one of these.
func Forbidden(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	if !ip.IsValid() || ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() ||
		ip.IsInterfaceLocalMulticast() || ip.IsLinkLocalMulticast() {
		return true
	}
	for _, no := range forbidden {
		if no.Contains(ip) {
			return true
		}
	}
	for _, prefix := range translated {
		if prefix.Contains(ip) { // an IPv4 address stands in its last bytes
			bytes := ip.As16()
			return Forbidden(netip.AddrFrom4([4]byte(bytes[12:])))
		}
	}
	if sixToFour.Contains(ip) {
		bytes := ip.As16()
		return Forbidden(netip.AddrFrom4([4]byte(bytes[2:6])))
	}
	return false
}

var (
	forbidden = []netip.Prefix{
		netip.MustParsePrefix("0.0.0.0/8"),          // this machine
		netip.MustParsePrefix("240.0.0.0/4"),        // reserved, and broadcast
		netip.MustParsePrefix("100.100.100.200/32"), // metadata of machines in a cloud
		netip.MustParsePrefix("fd00:ec2::254/128"),  // the same
	}
	translated = []netip.Prefix{netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("::/96")}
	sixToFour  = netip.MustParsePrefix("2002::/16")
)
