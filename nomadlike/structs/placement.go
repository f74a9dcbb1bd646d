package structs

import "slices"

// RanksMax bounds the nodes of one gang that a plan may carry.
const RanksMax = 16384

// Names reports whether the job's placement names the node, by name or by id.
func (j *Job) Names(node *Node) bool {
	return slices.Contains(j.Placement.Nodes, node.Name) || slices.Contains(j.Placement.Nodes, node.ID)
}

// Chooses reports whether the node is one of the chosen machines.
func (v *VIP) Chooses(node *Node) bool {
	return slices.ContainsFunc(v.Machines, func(m VIPMachine) bool { return m.Node == node.Name || m.Node == node.ID })
}

// Kills reports whether one of nodes is a machine whose jobs are to be ended.
func (v *VIP) Kills(nodes []*Node) bool {
	if v == nil {
		return false
	}
	return slices.ContainsFunc(v.Machines, func(m VIPMachine) bool {
		return m.Busy == BusyKill && slices.ContainsFunc(nodes, func(n *Node) bool { return m.Node == n.Name || m.Node == n.ID })
	})
}
