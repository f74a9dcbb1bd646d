package server

import (
	"slices"
	"strings"
	"testing"

	"nomadlike/nomadlike/structs"
)

// Addresses of a node count only when the one that its ranks have is among them,
// and when they are few enough to be sent to every rank.
func TestAddrsOf(t *testing.T) {
	for _, c := range []struct {
		name, addr, told string
		want             []string
	}{
		{"two", "10.0.0.1", "10.0.0.1,fd00::1", []string{"10.0.0.1", "fd00::1"}},
		{"none told", "10.0.0.1", "", nil},
		{"no address either", "", "", []string{""}}, // such a node has no ranks to meet
		{"a translated one", "203.0.113.7", "10.0.0.1", nil},
		{"too many", "10.0.0.1", "10.0.0.1" + strings.Repeat(",10.0.0.2", addrsMax), nil},
	} {
		node := &structs.Node{Addr: c.addr, Attributes: map[string]string{structs.AttrAddresses: c.told}}
		if got := addrsOf(node); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
