package structs

// NodeFaultsMax bounds the faults that a node registers.
const NodeFaultsMax = 64

// NodeFault is something about a machine, apart from its devices, that is not
// well now. The node finds it, and finds when it is over.
type NodeFault struct {
	// Name says what is unhealthy: "link/eth0", "link/mlx5_0:1", "processes".
	// A node has one fault of a name.
	Name   string  `json:"name"`
	Reason *Reason `json:"reason"`
	Unfit  bool    `json:"unfit,omitempty"` // the node takes no new work while it lasts
}

// Unfit returns the first fault that keeps new work from the node; nil: none.
func (n *Node) Unfit() *NodeFault {
	for i := range n.Faults {
		if n.Faults[i].Unfit {
			return &n.Faults[i]
		}
	}
	return nil
}
