package state

import (
	"maps"

	"nomadlike/nomadlike/structs"
)

// countOnNode moves a node's sums when an allocation begins or ceases to hold
// what it was given.
func (tx *txn) countOnNode(before, after *structs.Allocation) {
	held := before != nil && before.OccupiesNode()
	holds := after.OccupiesNode()
	if held == holds {
		return
	}
	usage := tx.usage(after.NodeID)
	if holds {
		usage = addUsage(usage, after)
	} else {
		usage = subUsage(usage, after)
		tx.touch(touchSubjob, after.JobID, after.Subjob)
		if usage.NominatedFor != "" {
			tx.review(usage.NominatedFor, false)
		}
		tx.wakeSchedule()
	}
	tx.putUsage(usage)
}

// putUsage stores sums, and notes whether they are over what the node offers.
func (tx *txn) putUsage(usage structs.Usage) {
	node, known := tx.node(usage.NodeID)
	usage.Overcommitted = known && overCapacity(&usage, node)
	usage.ModifyIndex = tx.index()
	tx.touch(touchNode, usage.NodeID, 0)
	tx.put(tableUsage, idKey(usage.NodeID), &usage)
}

// overCapacity reports whether sums are over what node offers. Only a node that
// came back smaller than it was can be so: plans never overfill one.
func overCapacity(usage *structs.Usage, node *structs.Node) bool {
	return node.FreeBeside(usage).Over()
}

// addUsage returns the sums with one more allocation.
func addUsage(usage structs.Usage, alloc *structs.Allocation) structs.Usage {
	usage.Occupy(&alloc.Spec)
	if len(alloc.Ports) > 0 {
		usage.Ports = cloned(usage.Ports)
		for _, port := range alloc.Ports {
			usage.Ports[port] = alloc.ID
		}
	}
	if len(alloc.Devices) > 0 {
		usage.Devices = cloned(usage.Devices)
		for _, device := range alloc.Devices {
			usage.Devices[device] = alloc.ID
		}
	}
	return usage
}

// subUsage returns the sums with one allocation less.
func subUsage(usage structs.Usage, alloc *structs.Allocation) structs.Usage {
	usage.Release(&alloc.Spec)
	if len(alloc.Ports) > 0 {
		usage.Ports = cloned(usage.Ports)
		for _, port := range alloc.Ports {
			if usage.Ports[port] == alloc.ID {
				delete(usage.Ports, port)
			}
		}
	}
	if len(alloc.Devices) > 0 {
		usage.Devices = cloned(usage.Devices)
		for _, device := range alloc.Devices {
			if usage.Devices[device] == alloc.ID {
				delete(usage.Devices, device)
			}
		}
	}
	return usage
}

// cloned copies a map that rows share, so that it may be changed; never nil.
func cloned[K comparable, V any](shared map[K]V) map[K]V {
	if shared == nil {
		return make(map[K]V)
	}
	return maps.Clone(shared)
}
