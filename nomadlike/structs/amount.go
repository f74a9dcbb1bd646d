package structs

import (
	"math"
	"strconv"

	"nomadlike/nomadlike/structs/capacity"
)

// milliMax keeps sums of cores far from the end of int64.
const milliMax = math.MaxInt64 / 4

// MilliCPU is an amount of cores as thousandths of a core, rounded to the
// nearest. What is not an amount (negative, not a number) is 0.
func MilliCPU(cores float64) int64 {
	switch milli := math.Round(cores * 1000); {
	case !(milli > 0):
		return 0
	case milli > milliMax:
		return milliMax
	default:
		return int64(milli)
	}
}

// Amount is what one rank of the spec takes of a node. Devices are those that it
// asks for by number, and one for a request for all of a node's.
func (r *Resources) Amount() capacity.Amount {
	a := capacity.Amount{CPU: MilliCPU(r.CPU), Memory: max(r.Memory, 0)}
	for i := range r.Devices {
		switch count := r.Devices[i].Count; {
		case count > 0:
			a.Devices = a.Devices + int64(count)
		case count == DevicesAll:
			a.Devices++
		}
	}
	return a
}

// Amount is what is used. Nil uses nothing.
func (u *Usage) Amount() capacity.Amount {
	if u == nil {
		return capacity.Amount{}
	}
	return capacity.Amount{CPU: MilliCPU(u.CPU), Memory: max(u.Memory, 0), Devices: int64(len(u.Devices))}
}

// SetAmount changes the cores and the memory that are used. Which devices are is
// told one by one.
func (u *Usage) SetAmount(used capacity.Amount) {
	u.CPU, u.Memory = float64(used.CPU)/1000, used.Memory
}

// Occupy adds a rank with the needs of spec to what is used, and Release takes it
// away again: cores in whole thousandths, so that an empty node is empty again
// whatever came and went. Its ports and devices are listed by the caller.
func (u *Usage) Occupy(spec *Resources) {
	u.SetAmount(u.Amount().Add(spec.Amount()))
	u.Allocs++
}

// Release is the opposite of Occupy.
func (u *Usage) Release(spec *Resources) {
	u.SetAmount(u.Amount().Sub(spec.Amount()))
	u.Allocs--
}

// Free is what the node can still give: cores, memory, and healthy devices that
// nobody uses. Cores and memory are negative when its capacity shrank below what
// is used. Usage may be nil: nothing is.
func (n *Node) Free(usage *Usage) capacity.Amount {
	free := n.FreeBeside(usage)
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Healthy && !usage.UsesDevice(d.ID) {
			free.Devices++
		}
	}
	return free
}

// FreeBeside is Free without devices, for those who look at each of them anyway.
func (n *Node) FreeBeside(usage *Usage) capacity.Amount {
	free := capacity.Amount{CPU: MilliCPU(n.Capacity.CPU), Memory: max(n.Capacity.Memory, 0)}
	if usage == nil {
		return free
	}
	return free.Sub(capacity.Amount{CPU: MilliCPU(usage.CPU), Memory: max(usage.Memory, 0)})
}

// FormatMilliCPU writes thousandths of a core as cores: 1500 is "1.5".
func FormatMilliCPU(milli int64) string {
	return strconv.FormatFloat(float64(max(milli, 0))/1000, 'f', -1, 64)
}

// UsesPort reports whether a port is used. Nil uses none.
func (u *Usage) UsesPort(port int) bool {
	if u == nil {
		return false
	}
	_, used := u.Ports[port]
	return used
}

// UsesDevice reports whether a device is used. Nil uses none.
func (u *Usage) UsesDevice(id string) bool {
	if u == nil {
		return false
	}
	_, used := u.Devices[id]
	return used
}
