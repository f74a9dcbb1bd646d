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

	table    common[string]    // the rank table of mode mindspore; "" without NPUs
	hostFile common[string]    // "host slots=N"
	hydra    common[string]    // "host:N"
	cluster  [2]common[string] // TF_CONFIG's part of all, by addresses and by names
	command  common[parted]    // of ranks whose command says nothing about the rank
}

// common is what the first who asks for it makes.
type common[T any] struct {
	once sync.Once
	made T
	err  error
}

func (c *common[T]) by(make func() (T, error)) (T, error) {
	c.once.Do(func() { c.made, c.err = make() })
	return c.made, c.err
}

// parted is a command and its words.
type parted struct {
	command string
	words   []string
}

// parted parts a command without variables: all ranks have the same. Who changes
// the words changes a copy.
func (g *Gang) parted(command string) ([]string, error) {
	part := func() (parted, error) {
		words, _, err := structs.ExpandCommand(command, func(string) (string, bool) { return "", false })
		return parted{command, words}, err
	}
	p, err := g.command.by(part)
	if p.command != command {
		p, err = part()
	}
	return p.words, err
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
