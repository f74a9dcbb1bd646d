package launch

import (
	"strings"
	"sync"

	"nomadlike/nomadlike/structs"
)

// Gang is what all ranks of an attempt have in common: the hosts, and the files
// that list them in one form or another. Each is worked out once, by the first rank
// that needs it, and is the same bytes for all. Many may use a Gang at a time, and
// what they build shares it.
type Gang struct {
	hosts []string // lines of the hosts file
	names string   // of the ranks, joined; "" when they are too long for a variable

	table    common    // the rank table of mode mindspore; "" without NPUs
	hostFile common    // "host slots=N"
	hydra    common    // "host:N"
	cluster  [2]common // TF_CONFIG's part of all, by addresses and by names
}

// common is a text that the first who asks for it makes.
type common struct {
	once sync.Once
	text string
	err  error
}

func (c *common) by(write func() (string, error)) (string, error) {
	c.once.Do(func() { c.text, c.err = write() })
	return c.text, c.err
}

// NewGang works out what the ranks of a gang have in common.
func NewGang(members []structs.Member) (*Gang, error) {
	g := &Gang{hosts: make([]string, len(members))}
	names, length := make([]string, len(members)), 0
	for rank := range members {
		m := &members[rank]
		if m.Rank != rank || m.Name == "" {
			return nil, structs.NewError(structs.CodeInternal, "launch.input", "what", "members are not by rank")
		}
		g.hosts[rank], names[rank] = m.Addr+" "+m.Name, m.Name
		length += len(m.Name) + 1
	}
	if length <= rankNamesMax {
		g.names = strings.Join(names, ",")
	}
	return g, nil
}
