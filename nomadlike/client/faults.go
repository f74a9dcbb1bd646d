package client

import (
	"cmp"
	"maps"
	"slices"

	"nomadlike/nomadlike/structs"
)

// Who finds faults of the machine. Each says anew what there is.
const (
	faultsOfLinks     = "links"
	faultsOfProcesses = "processes"
	faultsOfDisks     = "disks"
	faultsOfStarts    = "starts"
	faultsOfPlugins   = "plugins"
)

// noteFaults takes what one finder says is wrong with the machine now, and tells
// the servers when that is new.
func (c *Client) noteFaults(finder string, faults []structs.NodeFault) {
	c.mu.Lock()
	if c.mu.faults == nil {
		c.mu.faults = make(map[string][]structs.NodeFault)
	}
	c.mu.faults[finder] = faults
	all := gatherFaults(c.mu.faults)
	changed := !slices.EqualFunc(all, c.mu.node.Faults, sameFault)
	c.mu.node.Faults = all
	c.mu.Unlock()
	if changed {
		c.session.Refresh()
	}
}

// gatherFaults puts what the finders said in the order of a registration. When
// there are more than fit, those that keep work away stay. Pure.
func gatherFaults(found map[string][]structs.NodeFault) []structs.NodeFault {
	var all []structs.NodeFault
	for _, finder := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[finder]...)
	}
	byName := func(a, b structs.NodeFault) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(all, func(a, b structs.NodeFault) int {
		if a.Unfit != b.Unfit {
			if a.Unfit {
				return -1
			}
			return 1
		}
		return byName(a, b)
	})
	all = all[:min(len(all), structs.NodeFaultsMax)]
	slices.SortFunc(all, byName)
	return all
}

// unfit gives the fault that keeps new work from the node; nil: none.
func (c *Client) unfit() *structs.NodeFault {
	node := c.Node()
	return node.Unfit()
}

func sameFault(a, b structs.NodeFault) bool {
	return a.Name == b.Name && a.Unfit == b.Unfit && a.Reason.ID == b.Reason.ID && maps.Equal(a.Reason.Params, b.Reason.Params)
}
