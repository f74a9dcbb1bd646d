package structs

import (
	"cmp"
	"slices"
	"strings"
)

// This file holds the choice of devices within one node, and its check.

// Meets reports whether a device is of the kind, model and size that a request
// asks for. Health and holders are not looked at.
func (d *Device) Meets(request DeviceRequest) bool {
	return d.Kind == request.Kind && d.Memory >= request.Memory && modelMatches(d.Model, request.Model) &&
		(len(request.Models) == 0 || slices.ContainsFunc(request.Models, func(want string) bool { return modelMatches(d.Model, want) })) &&
		(len(request.IDs) == 0 || slices.Contains(request.IDs, d.ID))
}

// modelMatches reports whether want stands in model as a word of its own, in any
// letter case: "A800" is in "NVIDIA A800-SXM4-80GB" and "910B" in
// "Ascend910B3", but "A10" is not in "A100".
func modelMatches(model, want string) bool {
	if want == "" {
		return true
	}
	for at := 0; at+len(want) <= len(model); at++ {
		end := at + len(want)
		if (at == 0 || wordEdge(model[at-1], want[0])) && (end == len(model) || wordEdge(want[len(want)-1], model[end])) &&
			equalFold(model[at:end], want) {
			return true
		}
	}
	return false
}

// equalFold compares texts of one length, ASCII letter case aside.
func equalFold(a, b string) bool {
	for i := range len(a) {
		if lowerASCII(a[i]) != lowerASCII(b[i]) {
			return false
		}
	}
	return true
}

// wordEdge reports whether a word may end between two neighbouring characters:
// not within a number, and not within letters.
func wordEdge(left, right byte) bool {
	return characterClass(left) != characterClass(right) || characterClass(left) == 0
}

func characterClass(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return 1
	case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80:
		return 2
	}
	return 0
}

// ChooseDevices answers requests with healthy devices that nobody holds, by
// CompareNames; false when they are short. The choice is a function of the
// arguments alone. Requests for all devices choose first, then narrow ones
// before wide ones. Within one request devices stay together as closest says.
func ChooseDevices(node *Node, usage *Usage, requests []DeviceRequest) ([]string, bool) {
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
	slices.SortFunc(chosen, CompareNames)
	return chosen, true
}

// takeAll gives the devices of requests for all of a node's: each that meets
// one must be healthy, and neither held nor met by another such request.
func takeAll(node *Node, usage *Usage, requests []DeviceRequest) ([]*Device, bool) {
	var taken []*Device
	for _, request := range requests {
		if request.Count != DevicesAll {
			continue
		}
		before := len(taken)
		for i := range node.Devices {
			d := &node.Devices[i]
			if !d.Meets(request) {
				continue
			}
			if !d.Healthy || usage.holdsDevice(d.ID) || slices.Contains(taken, d) {
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
func freeDevices(node *Node, usage *Usage, taken []*Device) []*Device {
	var free []*Device
	for i := range node.Devices {
		if d := &node.Devices[i]; d.Healthy && !usage.holdsDevice(d.ID) && !slices.Contains(taken, d) {
			free = append(free, d)
		}
	}
	slices.SortFunc(free, CompareDevices)
	return free
}

// CompareDevices is the order in which equal devices of a node are given out:
// those with less memory first, then by CompareNames of their ids.
func CompareDevices(a, b *Device) int {
	return cmp.Or(cmp.Compare(a.Memory, b.Memory), CompareNames(a.ID, b.ID))
}

// CompareNames orders names as people count: shorter ones first, so that
// node-2 comes before node-10, then by bytes.
func CompareNames(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// chooseCounted gives each request its count of the free devices. When requests
// that overlap get into each other's way, any way to deal the devices out will
// do.
func chooseCounted(free []*Device, requests []DeviceRequest) ([]*Device, bool) {
	rest, chosen := slices.Clone(free), []*Device(nil)
	for _, request := range requests {
		if request.Count == DevicesAll {
			continue // takeAll has them
		}
		var meeting []*Device
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
			rest = slices.DeleteFunc(rest, func(other *Device) bool { return other == d })
		}
	}
	return chosen, true
}

// ChoosingOrder lists the requests that ask for something in the order in which
// they choose: those for all devices, then narrow ones before wide ones.
func ChoosingOrder(requests []DeviceRequest) []DeviceRequest {
	order := make([]DeviceRequest, 0, len(requests))
	for _, request := range requests {
		if request.Count > 0 || request.Count == DevicesAll {
			order = append(order, request)
		}
	}
	slices.SortStableFunc(order, func(a, b DeviceRequest) int { return narrowness(b) - narrowness(a) })
	return order
}

// narrowness orders requests: all of a node's devices, then named devices, then a model, then a size.
func narrowness(r DeviceRequest) int {
	n := 0
	if r.Count == DevicesAll {
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
func closest(free []*Device, count int) []*Device {
	var chosen []*Device
	rest, inNUMA := slices.Clone(free), false
	for len(chosen) < count {
		missing := count - len(chosen)
		linked := slices.DeleteFunc(slices.Clone(rest), func(d *Device) bool { return d.LinkGroup == "" })
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
		rest = slices.DeleteFunc(rest, func(d *Device) bool { return slices.Contains(group, d) })
	}
	return chosen
}

func sameLink(a, b *Device) bool {
	return a.LinkGroup == b.LinkGroup && (a.LinkGroup != "" || a.NUMANode == b.NUMANode)
}

func sameNUMA(a, b *Device) bool { return a.NUMANode == b.NUMANode }

func compareLinks(a, b *Device) int {
	return cmp.Or(CompareNames(a.LinkGroup, b.LinkGroup), compareNUMA(a, b))
}

func compareNUMA(a, b *Device) int { return cmp.Compare(a.NUMANode, b.NUMANode) }

// smallestWith gives the smallest group of devices that has at least count.
func smallestWith(devices []*Device, count int, same func(a, b *Device) bool, compare func(a, b *Device) int) []*Device {
	var best []*Device
	for _, group := range groups(devices, same) {
		if len(group) >= count && (best == nil || cmp.Or(len(group)-len(best), compare(group[0], best[0])) < 0) {
			best = group
		}
	}
	return best
}

// largest gives the largest group of linked devices.
func largest(devices []*Device) []*Device {
	var best []*Device
	for _, group := range groups(devices, sameLink) {
		if best == nil || cmp.Or(len(best)-len(group), compareLinks(group[0], best[0])) < 0 {
			best = group
		}
	}
	return best
}

// groups parts devices by same, an equivalence, keeping their order.
func groups(devices []*Device, same func(a, b *Device) bool) [][]*Device {
	var parts [][]*Device
	for _, d := range devices {
		at := slices.IndexFunc(parts, func(part []*Device) bool { return same(part[0], d) })
		if at < 0 {
			parts = append(parts, []*Device{d})
		} else {
			parts[at] = append(parts[at], d)
		}
	}
	return parts
}

// devicesProblem checks that given answers requests with devices of the node
// that are healthy and that nobody holds.
func devicesProblem(node *Node, usage *Usage, requests []DeviceRequest, given []string) *Reason {
	refused := func() *Reason { return NewReason("scheduler.refused_devices", "node", node.Name) }
	chosen := make([]*Device, 0, len(given))
	for _, id := range given {
		d := node.device(id)
		if d == nil || slices.Contains(chosen, d) {
			return refused()
		}
		if !d.Healthy {
			return NewReason("scheduler.node_device_unhealthy", "node", node.Name, "device", id)
		}
		if usage.holdsDevice(id) {
			return NewReason("scheduler.node_device_held", "node", node.Name, "device", id)
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

// device finds a device of the node, nil for an unknown one.
func (n *Node) device(id string) *Device {
	for i := range n.Devices {
		if n.Devices[i].ID == id {
			return &n.Devices[i]
		}
	}
	return nil
}

// answers reports whether devices are exactly what the counted requests ask for.
func answers(devices []*Device, requests []DeviceRequest) bool {
	want := 0
	for _, request := range requests {
		want += max(request.Count, 0)
	}
	if len(devices) != want {
		return false
	}
	if len(requests) == 1 { // the usual case needs no search
		return !slices.ContainsFunc(devices, func(d *Device) bool { return want > 0 && !d.Meets(requests[0]) })
	}
	_, ok := deal(devices, requests)
	return ok
}

// deal gives each counted request its count of the devices, in any way that
// works; false when there is none: a small matching, found by augmenting paths.
func deal(devices []*Device, requests []DeviceRequest) ([]*Device, bool) {
	holder := make([]int, len(devices)) // device -> seat, -1 when free
	for i := range holder {
		holder[i] = -1
	}
	var seats []DeviceRequest
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
	var dealt []*Device
	for d, s := range holder {
		if s >= 0 {
			dealt = append(dealt, devices[d])
		}
	}
	return dealt, true
}
