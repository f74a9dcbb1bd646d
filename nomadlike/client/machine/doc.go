// Package machine finds out how the machine is, and says so to the servers: its
// network cards, disks, drivers, packet filter, processes that cannot be killed, and
// starts that fail for its own sake.
//
// Flow: each watch looks by itself and puts attributes and faults into the one
// Registration, which has the servers told of what is new. What a fault means for new
// work stands with the fault.
//
// Limits: devices have a package of their own; nothing here knows of allocations but by
// name.
package machine
