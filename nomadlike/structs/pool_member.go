package structs

import (
	"slices"
	"strings"
)

// PoolName is the pool that the node is in: PoolDefault when none says otherwise.
func (n *Node) PoolName() string {
	if n.Pool == "" {
		return PoolDefault
	}
	return n.Pool
}

// PoolOf reports which of the pools a node is in, in whatever order they are
// listed: the first by name that lists the node, else the first by name whose
// constraints all hold, else the one of the node's own configuration, else
// PoolDefault. state.Apply writes the answer to Node.Pool.
func PoolOf(node *Node, pools []*Pool) string {
	named, constrained := "", ""
	for _, pool := range pools {
		switch {
		case pool.lists(node):
			if named == "" || pool.Name < named {
				named = pool.Name
			}
		case pool.Attracts(node):
			if constrained == "" || pool.Name < constrained {
				constrained = pool.Name
			}
		}
	}
	for _, name := range [...]string{named, constrained, node.OwnPool} {
		if name != "" {
			return name
		}
	}
	return PoolDefault
}

// lists reports whether the pool names the node.
func (p *Pool) lists(node *Node) bool { return slices.Contains(p.Nodes, node.Name) }

// Attracts reports whether the pool has constraints and the node's attributes
// meet all of them. The value "a|b" of a constraint is met by "a" and by "b".
func (p *Pool) Attracts(node *Node) bool {
	for attribute, want := range p.Constraints {
		have, known := node.Attributes[attribute]
		if !known || !slices.Contains(strings.Split(want, "|"), have) {
			return false
		}
	}
	return len(p.Constraints) > 0
}
