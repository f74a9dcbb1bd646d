package taskpages

import (
	"net"
	"strconv"
	"strings"
)

// place is what an origin stands for.
type place struct {
	host  string // without a port, in lower case
	alloc string
	port  int
}

const labelMax = 63 // bytes of one label of a host's name

// Host is the host of a port of an allocation under a domain, without a port of its own.
func Host(domain, alloc string, port int) string {
	return strconv.Itoa(port) + "-" + alloc + "." + domain
}

// under reports whether a host lies under a domain, and what its name is without a port.
func under(domain, host string) (name string, ok bool) {
	if bare, _, err := net.SplitHostPort(host); err == nil {
		host = bare
	}
	name = strings.ToLower(strings.TrimSuffix(host, "."))
	return name, strings.HasSuffix(name, "."+domain)
}

// placeOf reads a host as Host writes it.
func placeOf(domain, host string) (place, bool) {
	name, ok := under(domain, host)
	if !ok {
		return place{}, false
	}
	label := strings.TrimSuffix(name, "."+domain)
	number, alloc, ok := strings.Cut(label, "-")
	port, err := strconv.ParseUint(number, 10, 16)
	if !ok || err != nil || port == 0 || len(label) > labelMax || strconv.FormatUint(port, 10) != number {
		return place{}, false
	}
	for _, c := range []byte(alloc) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return place{}, false
		}
	}
	return place{host: name, alloc: alloc, port: int(port)}, alloc != ""
}
