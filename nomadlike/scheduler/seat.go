package scheduler

import (
	"cmp"
	"maps"
	"slices"
	"sort"

	"nomadlike/nomadlike/structs"
)

// seat is a node with what is still free on it during one walk of the queue.
type seat struct {
	node    *structs.Node
	usage   *structs.Usage // the snapshot's; a copy once owned
	owned   bool
	healthy int   // healthy devices of all kinds, held ones included
	cpu     int64 // free thousandths of a core
	memory  int64 // free bytes
	devices int   // free healthy devices of all kinds
	kept    *reservation
	started []string // jobs that this walk put here
}

func newSeat(node *structs.Node, usage *structs.Usage) seat {
	s := seat{node: node, usage: usage, cpu: node.FreeCPU(usage), memory: node.FreeMemory(usage)}
	for i := range node.Devices {
		d := &node.Devices[i]
		if !d.Healthy {
			continue
		}
		s.healthy++
		if !s.holdsDevice(d.ID) {
			s.devices++
		}
	}
	return s
}

func (s *seat) holdsDevice(id string) bool {
	if s.usage == nil {
		return false
	}
	_, held := s.usage.Devices[id]
	return held
}

// emptied is the seat as if nothing held anything on its node.
func (s *seat) emptied() seat {
	return seat{node: s.node, healthy: s.healthy, cpu: s.node.FreeCPU(nil), memory: s.node.FreeMemory(nil), devices: s.healthy}
}

// holdsWhenEmpty tells whether a rank with these needs would fit the seat if
// nothing held anything on its node.
func (s *seat) holdsWhenEmpty(n *need, ports []structs.PortRequest) bool {
	e := s.emptied()
	return e.lack(n, ports) == ""
}

func (s *seat) portsFitWhenEmpty(ports []structs.PortRequest) bool {
	e := s.emptied()
	return e.portsFit(ports)
}

// lack names what keeps one rank with these needs off the seat: "" when it
// fits, else cpu, memory, a kind of device, or ports.
func (s *seat) lack(n *need, ports []structs.PortRequest) string {
	switch {
	case s.cpu < n.cpu:
		return "cpu"
	case s.memory < n.memory:
		return "memory"
	case s.devices < n.devices:
		return n.deviceKind()
	}
	if n.devices > 0 {
		if _, ok := structs.ChooseDevices(s.node, s.usage, n.spec.Devices); !ok {
			return n.deviceKind()
		}
	}
	if !s.portsFit(ports) {
		return portsLacking(ports)
	}
	return ""
}

// portsFit tells whether the ports can be had. The plain case of a few dynamic
// ports in a wide range is answered without a search.
func (s *seat) portsFit(ports []structs.PortRequest) bool {
	if len(ports) == 0 {
		return true
	}
	held := 0
	if s.usage != nil {
		held = len(s.usage.Ports)
	}
	dynamic := !slices.ContainsFunc(ports, func(p structs.PortRequest) bool { return p.Static != 0 })
	if dynamic && len(ports) == 1 && s.node.Capacity.PortMin > 0 && s.node.Capacity.PortMax <= 65535 &&
		s.node.Capacity.PortMax-s.node.Capacity.PortMin+1 > held {
		return true
	}
	_, ok := structs.ChoosePorts(s.node, s.usage, ports, 0)
	return ok
}

// hold takes what placement gives to one rank out of the seat.
func (s *seat) hold(n *need, placement *structs.RankPlacement, jobID string) {
	if !s.owned {
		own := structs.Usage{NodeID: s.node.ID}
		if s.usage != nil {
			own = *s.usage
			own.Ports, own.Devices = maps.Clone(s.usage.Ports), maps.Clone(s.usage.Devices)
		}
		s.usage, s.owned = &own, true
	}
	s.started = append(s.started, jobID)
	s.cpu -= n.cpu
	s.memory -= n.memory
	s.devices -= len(placement.Devices)
	s.usage.CPU += float64(n.cpu) / 1000
	s.usage.Memory += n.memory
	s.usage.Allocs++
	for _, port := range placement.Ports {
		if s.usage.Ports == nil {
			s.usage.Ports = make(map[int]string)
		}
		s.usage.Ports[port] = jobID
	}
	for _, id := range placement.Devices {
		if s.usage.Devices == nil {
			s.usage.Devices = make(map[string]string)
		}
		s.usage.Devices[id] = jobID
	}
}

// hall holds the seats by node id and an order of the schedulable ones by how
// little is free, so that a best fit is found without looking at full nodes.
type hall struct {
	seats  []seat
	order  []int32          // schedulable seats: fewest free devices, then cores, then memory, then id
	byName map[string][]int // node names and ids to seats; made when a job names nodes
}

func newHall(seats []seat) *hall {
	h := &hall{seats: seats, order: make([]int32, 0, len(seats))}
	for i := range seats {
		if seats[i].node.Schedulable() {
			h.order = append(h.order, int32(i))
		}
	}
	slices.SortFunc(h.order, h.compare)
	return h
}

func (h *hall) compare(a, b int32) int {
	return compareFree(&h.seats[a], a, &h.seats[b], b)
}

func compareFree(a *seat, i int32, b *seat, j int32) int {
	return cmp.Or(cmp.Compare(a.devices, b.devices), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.memory, b.memory), cmp.Compare(i, j))
}

// hold takes placement out of seat i and moves the seat to its new place in
// the order. Only schedulable seats are ever held.
func (h *hall) hold(i int32, n *need, placement *structs.RankPlacement, jobID string) {
	s := &h.seats[i]
	from, _ := slices.BinarySearchFunc(h.order, i, h.compare)
	s.hold(n, placement, jobID)
	// What is free shrank, so the seat moves towards the front.
	to := sort.Search(from, func(k int) bool { return h.compare(h.order[k], i) > 0 })
	copy(h.order[to+1:from+1], h.order[to:from])
	h.order[to] = i
}

// start is the first place in the order where a rank with these needs could
// fit: everything before has too few devices, or too few cores.
func (h *hall) start(n *need) int {
	return sort.Search(len(h.order), func(k int) bool {
		s := &h.seats[h.order[k]]
		if s.devices != n.devices {
			return s.devices > n.devices
		}
		return s.cpu >= n.cpu
	})
}

// named lists the seats whose node has the given name or id, by id.
func (h *hall) named(name string) []int {
	if h.byName == nil {
		h.byName = make(map[string][]int, 2*len(h.seats))
		for i := range h.seats {
			node := h.seats[i].node
			h.byName[node.ID] = append(h.byName[node.ID], i)
			if node.Name != node.ID {
				h.byName[node.Name] = append(h.byName[node.Name], i)
			}
		}
	}
	return h.byName[name]
}
