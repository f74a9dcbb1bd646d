package state

import (
	"nomadlike/nomadlike/structs"
)

// tellFaults records which faults of a node itself are new or say something
// else than before, and which are over. Figures within a reason change all the
// time and count for nothing. There are few faults: see structs.NodeFaultsMax.
func (tx *txn) tellFaults(before, after *structs.Node) {
	for i := range after.Faults {
		f := &after.Faults[i]
		if was := faultOf(before, f.Name); was != nil && was.Unfit == f.Unfit && was.Reason.ID == f.Reason.ID {
			continue
		}
		event := nodeEvent("event.node.fault", after)
		event.Severity, event.Cause = severityWarn, f.Reason
		if f.Unfit {
			event.ID, event.Severity = "event.node.unfit", severityError
		}
		tx.tell(event, "node", after.Name, "fault", f.Name)
	}
	for i := range before.Faults {
		if name := before.Faults[i].Name; faultOf(after, name) == nil {
			tx.tell(nodeEvent("event.node.fault_over", after), "node", after.Name, "fault", name)
		}
	}
}

// faultOf finds a fault of a node by its name; nil: there is none.
func faultOf(node *structs.Node, name string) *structs.NodeFault {
	for i := range node.Faults {
		if node.Faults[i].Name == name {
			return &node.Faults[i]
		}
	}
	return nil
}
