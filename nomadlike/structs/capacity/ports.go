package capacity

import "slices"

// Ports are used ports, sorted, each once. A list is never changed in place, so
// that copies of a cluster's nodes may share it.
type Ports []int32

// PortsOf sorts a list that its caller no longer uses.
func PortsOf(list []int32) Ports {
	slices.Sort(list)
	return slices.Compact(list)
}

// Contains reports whether a port is among them.
func (p Ports) Contains(port int32) bool {
	_, found := slices.BinarySearch(p, port)
	return found
}

// CountIn counts the ports from low to below high.
func (p Ports) CountIn(low, high int32) int {
	from, _ := slices.BinarySearch(p, low)
	to, _ := slices.BinarySearch(p, high)
	return to - from
}

// With returns the ports with more of them.
func (p Ports) With(more []int32) Ports {
	sum := append(make(Ports, 0, len(p)+len(more)), p...)
	for _, port := range more {
		if at, found := slices.BinarySearch(sum, port); !found {
			sum = slices.Insert(sum, at, port)
		}
	}
	return sum
}

// Without returns the ports with some of them free again.
func (p Ports) Without(less []int32) Ports {
	rest := append(make(Ports, 0, len(p)), p...)
	for _, port := range less {
		if at, found := slices.BinarySearch(rest, port); found {
			rest = slices.Delete(rest, at, at+1)
		}
	}
	return rest
}
