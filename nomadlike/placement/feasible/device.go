package feasible

import (
	"cmp"
	"slices"

	"nomadlike/nomadlike/structs"
)

// ChooseDevices answers requests with healthy devices that nobody holds, by
// CompareNames; false when they are short. The choice is a function of the
// arguments alone. Requests for all devices choose first, then narrow ones
// before wide ones. Within one request devices stay together as closest says.
func ChooseDevices(node *structs.Node, usage *structs.Usage, requests []structs.DeviceRequest) ([]string, bool) {
	if len(requests) == 0 {
		return nil, true
	}
	taken, ok := takeAll(node, usage, requests)
	if !ok {
		return nil, false
	}
	rest, ok := chooseCounted(freeDevices(node, usage, taken), ChoosingOrder(requests))
	if !ok {
		return nil, false
	}
	chosen := make([]string, 0, len(taken)+len(rest))
	for _, d := range append(taken, rest...) {
		chosen = append(chosen, d.ID)
	}
	slices.SortFunc(chosen, structs.CompareNames)
	return chosen, true
}

// takeAll returns the devices of requests for all of a node's: each that meets
// one must be healthy, and neither held nor met by another such request.
func takeAll(node *structs.Node, usage *structs.Usage, requests []structs.DeviceRequest) ([]*structs.Device, bool) {
	var taken []*structs.Device
	for _, request := range requests {
		if request.Count != structs.DevicesAll {
			continue
		}
		before := len(taken)
		for i := range node.Devices {
			d := &node.Devices[i]
			if !d.Meets(request) {
				continue
			}
			if !d.Healthy || usage.UsesDevice(d.ID) || slices.Contains(taken, d) {
				return nil, false
			}
			taken = append(taken, d)
		}
		if len(taken) == before {
			return nil, false
		}
	}
	return taken, true
}

// freeDevices lists the healthy devices that nobody holds and that are not
// taken: small ones first, then by CompareNames.
func freeDevices(node *structs.Node, usage *structs.Usage, taken []*structs.Device) []*structs.Device {
	var free []*structs.Device
	for i := range node.Devices {
		if d := &node.Devices[i]; d.Healthy && !usage.UsesDevice(d.ID) && !slices.Contains(taken, d) {
			free = append(free, d)
		}
	}
	slices.SortFunc(free, structs.CompareDevices)
	return free
}

// chooseCounted assigns each request its count of the free devices. When requests
// that overlap get into each other's way, any way to deal the devices out will
// do.
func chooseCounted(free []*structs.Device, requests []structs.DeviceRequest) ([]*structs.Device, bool) {
	rest, chosen := slices.Clone(free), []*structs.Device(nil)
	for _, request := range requests {
		if request.Count == structs.DevicesAll {
			continue // takeAll has them
		}
		var meeting []*structs.Device
		for _, d := range rest {
			if d.Meets(request) {
				meeting = append(meeting, d)
			}
		}
		if len(meeting) < request.Count {
			return deal(free, requests)
		}
		for _, d := range closest(meeting, request.Count) {
			chosen = append(chosen, d)
			rest = slices.DeleteFunc(rest, func(other *structs.Device) bool { return other == d })
		}
	}
	return chosen, true
}

// ChoosingOrder lists the requests that ask for something in the order in which
// they choose: those for all devices, then narrow ones before wide ones.
func ChoosingOrder(requests []structs.DeviceRequest) []structs.DeviceRequest {
	order := make([]structs.DeviceRequest, 0, len(requests))
	for _, request := range requests {
		if request.Count > 0 || request.Count == structs.DevicesAll {
			order = append(order, request)
		}
	}
	slices.SortStableFunc(order, func(a, b structs.DeviceRequest) int { return narrowness(b) - narrowness(a) })
	return order
}

// narrowness orders requests: all of a node's devices, then named devices, then a model, then a size.
func narrowness(r structs.DeviceRequest) int {
	n := 0
	if r.Count == structs.DevicesAll {
		n += 8
	}
	if len(r.IDs) > 0 {
		n += 4
	}
	if r.Model != "" || len(r.Models) > 0 {
		n += 2
	}
	if r.Memory > 0 {
		n++
	}
	return n
}

// closest takes count of the free devices so that few links are slow:
//
//	a link group has enough ──► the smallest such group
//	else a NUMA node has enough ──► the smallest such node, and within it:
//	else ──► the whole of the largest group, the rest again in this way
//
// Devices without a link group form one group for each NUMA node, which counts
// only in the last step. Among equals the first by name or number is taken,
// and within a group the first devices of free.
func closest(free []*structs.Device, count int) []*structs.Device {
	var chosen []*structs.Device
	rest, inNUMA := slices.Clone(free), false
	for len(chosen) < count {
		missing := count - len(chosen)
		linked := slices.DeleteFunc(slices.Clone(rest), func(d *structs.Device) bool { return d.LinkGroup == "" })
		if group := smallestWith(linked, missing, sameLink, compareLinks); group != nil {
			return append(chosen, group[:missing]...)
		}
		if group := smallestWith(rest, missing, sameNUMA, compareNUMA); group != nil && !inNUMA {
			rest, inNUMA = group, true
			continue
		}
		group := largest(rest)
		group = group[:min(missing, len(group))]
		chosen = append(chosen, group...)
		rest = slices.DeleteFunc(rest, func(d *structs.Device) bool { return slices.Contains(group, d) })
	}
	return chosen
}

func sameLink(a, b *structs.Device) bool {
	return a.LinkGroup == b.LinkGroup && (a.LinkGroup != "" || a.NUMANode == b.NUMANode)
}

func sameNUMA(a, b *structs.Device) bool { return a.NUMANode == b.NUMANode }

func compareLinks(a, b *structs.Device) int {
	return cmp.Or(structs.CompareNames(a.LinkGroup, b.LinkGroup), compareNUMA(a, b))
}

func compareNUMA(a, b *structs.Device) int { return cmp.Compare(a.NUMANode, b.NUMANode) }

// smallestWith returns the smallest group of devices that has at least count.
func smallestWith(devices []*structs.Device, count int, same func(a, b *structs.Device) bool, compare func(a, b *structs.Device) int) []*structs.Device {
	var best []*structs.Device
	for _, group := range groups(devices, same) {
		if len(group) >= count && (best == nil || cmp.Or(len(group)-len(best), compare(group[0], best[0])) < 0) {
			best = group
		}
	}
	return best
}

// largest returns the largest group of linked devices.
func largest(devices []*structs.Device) []*structs.Device {
	var best []*structs.Device
	for _, group := range groups(devices, sameLink) {
		if best == nil || cmp.Or(len(best)-len(group), compareLinks(group[0], best[0])) < 0 {
			best = group
		}
	}
	return best
}

// groups parts devices by same, an equivalence, keeping their order.
func groups(devices []*structs.Device, same func(a, b *structs.Device) bool) [][]*structs.Device {
	var parts [][]*structs.Device
	for _, d := range devices {
		at := slices.IndexFunc(parts, func(part []*structs.Device) bool { return same(part[0], d) })
		if at < 0 {
			parts = append(parts, []*structs.Device{d})
		} else {
			parts[at] = append(parts[at], d)
		}
	}
	return parts
}

// devicesProblem checks that given answers requests with devices of the node
// that are healthy and that nobody holds.
func devicesProblem(node *structs.Node, usage *structs.Usage, requests []structs.DeviceRequest, given []string) *structs.Reason {
	refused := func() *structs.Reason { return structs.NewReason("scheduler.refused_devices", "node", node.Name) }
	chosen := make([]*structs.Device, 0, len(given))
	for _, id := range given {
		d := node.Device(id)
		if d == nil || slices.Contains(chosen, d) {
			return refused()
		}
		if !d.Healthy {
			return structs.NewReason("scheduler.node_device_unhealthy", "node", node.Name, "device", id)
		}
		if usage.UsesDevice(id) {
			return structs.NewReason("scheduler.node_device_held", "node", node.Name, "device", id)
		}
		chosen = append(chosen, d)
	}
	all, ok := takeAll(node, usage, requests)
	if !ok {
		return refused()
	}
	for _, d := range all {
		at := slices.Index(chosen, d)
		if at < 0 {
			return refused()
		}
		chosen = slices.Delete(chosen, at, at+1)
	}
	if !answers(chosen, requests) {
		return refused()
	}
	return nil
}

// answers reports whether devices are exactly what the counted requests ask for.
func answers(devices []*structs.Device, requests []structs.DeviceRequest) bool {
	want := 0
	for _, request := range requests {
		want += max(request.Count, 0)
	}
	if len(devices) != want {
		return false
	}
	if len(requests) == 1 { // the usual case needs no search
		return !slices.ContainsFunc(devices, func(d *structs.Device) bool { return want > 0 && !d.Meets(requests[0]) })
	}
	_, ok := deal(devices, requests)
	return ok
}

// deal assigns each counted request its count of the devices, in any way that
// works; false when there is none: a small matching, found by augmenting paths.
func deal(devices []*structs.Device, requests []structs.DeviceRequest) ([]*structs.Device, bool) {
	holder := make([]int, len(devices)) // device -> seat, -1 when free
	for i := range holder {
		holder[i] = -1
	}
	var seats []structs.DeviceRequest
	visited := make([]bool, len(devices))
	var seat func(s int) bool
	seat = func(s int) bool {
		for d := range devices {
			if visited[d] || !devices[d].Meets(seats[s]) {
				continue
			}
			visited[d] = true
			if holder[d] < 0 || seat(holder[d]) {
				holder[d] = s
				return true
			}
		}
		return false
	}
	for _, request := range requests {
		for range request.Count { // none for DevicesAll
			if len(seats) == len(devices) {
				return nil, false
			}
			seats = append(seats, request)
			clear(visited)
			if !seat(len(seats) - 1) {
				return nil, false
			}
		}
	}
	var dealt []*structs.Device
	for d, s := range holder {
		if s >= 0 {
			dealt = append(dealt, devices[d])
		}
	}
	return dealt, true
}
