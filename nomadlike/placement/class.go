package placement

import (
	"slices"
	"strconv"

	"nomadlike/nomadlike/placement/feasible"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// class is what nodes have in common that differ only in name, capacity,
// health and what they hold. A need is compared once with each class.
type class struct {
	node *structs.Node // one of them, its devices in the order of their bits
	pool *structs.Pool // the record of its pool, nil when there is none

	words int            // of a set of its devices
	links []capacity.Set // the link groups, by name
	numas []capacity.Set // the devices of each NUMA node, by number
	cells []capacity.Set // the link groups, and for each NUMA node the devices without one
}

// classNode is a node with its devices in the order of their bits, as
// structs.CompareDevices has them, and nothing of it that a class does not have.
func classNode(node *structs.Node) *structs.Node {
	c := &structs.Node{Pool: node.PoolName(), RDMA: node.RDMA, Raw: node.Raw, Drivers: slices.Clone(node.Drivers), Storages: slices.Clone(node.Storages), Devices: slices.Clone(node.Devices)}
	c.Attributes = secretTraits(node)
	slices.Sort(c.Drivers)
	slices.Sort(c.Storages)
	slices.SortFunc(c.Devices, func(a, b structs.Device) int { return structs.CompareDevices(&a, &b) })
	return c
}

// secretTraits is what of a node's attributes bears on jobs that name secrets.
func secretTraits(node *structs.Node) map[string]string {
	traits := make(map[string]string)
	for _, driver := range node.Drivers {
		if name := structs.AttrMasks(driver); node.Attributes[name] != "" {
			traits[name] = node.Attributes[name]
		}
	}
	if speaks := node.Attributes[structs.AttrProtocol]; speaks != "" {
		traits[structs.AttrProtocol] = speaks
	}
	return traits
}

// classKey writes all that a need may read of a class. Link groups are numbered,
// because their names may tell nodes apart that are alike.
func classKey(b []byte, c *structs.Node, pool *structs.Pool) []byte {
	text := func(s string) {
		b = strconv.AppendInt(b, int64(len(s)), 10)
		b = append(b, ':')
		b = append(b, s...)
	}
	number := func(n int64) {
		b = strconv.AppendInt(b, n, 10)
		b = append(b, ' ')
	}
	text(c.Pool)
	number(poolTraits(pool))
	if c.RDMA {
		b = append(b, '!')
	}
	if c.Raw {
		b = append(b, 'w')
	}
	number(int64(len(c.Drivers)))
	for _, driver := range c.Drivers {
		text(driver)
		text(c.Attributes[structs.AttrMasks(driver)])
	}
	text(c.Attributes[structs.AttrProtocol])
	number(int64(len(c.Storages)))
	for _, storage := range c.Storages {
		text(storage)
	}
	links := linkNames(c.Devices)
	for i := range c.Devices {
		d := &c.Devices[i]
		text(d.Kind)
		text(d.Model)
		text(d.Driver)
		number(d.Memory)
		number(int64(d.NUMANode))
		number(int64(slices.Index(links, d.LinkGroup)))
	}
	return b
}

// poolTraits is what of a pool's record bears on where jobs may stand.
func poolTraits(pool *structs.Pool) int64 {
	traits := int64(0)
	if pool != nil {
		traits = 1
		if pool.Dedicated {
			traits |= 2
		}
		if pool.RDMA {
			traits |= 4
		}
		if pool.Raw {
			traits |= 8
		}
		if pool.NoRDMA {
			traits |= 16
		}
	}
	return traits
}

// linkNames lists the link groups of devices, by name.
func linkNames(devices []structs.Device) []string {
	var names []string
	for i := range devices {
		if name := devices[i].LinkGroup; name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, structs.CompareNames)
	return names
}

func newClass(node *structs.Node, pool *structs.Pool) *class {
	c := &class{node: node, pool: pool, words: capacity.WordsFor(len(node.Devices))}
	gather := func(match func(d *structs.Device) bool) capacity.Set {
		set := capacity.NewSet(len(node.Devices))
		for i := range node.Devices {
			if match(&node.Devices[i]) {
				set.Add(i)
			}
		}
		return set
	}
	var numas []int
	for i := range node.Devices {
		numas = append(numas, node.Devices[i].NUMANode)
	}
	slices.Sort(numas)
	for _, numa := range slices.Compact(numas) {
		c.numas = append(c.numas, gather(func(d *structs.Device) bool { return d.NUMANode == numa }))
		if lone := gather(func(d *structs.Device) bool { return d.NUMANode == numa && d.LinkGroup == "" }); lone.Count() > 0 {
			c.cells = append(c.cells, lone)
		}
	}
	for _, name := range linkNames(node.Devices) {
		c.links = append(c.links, gather(func(d *structs.Device) bool { return d.LinkGroup == name }))
	}
	c.cells = append(c.cells, c.links...)
	return c
}

// match is how the device requests of a need meet a class.
type match struct {
	requests []want // in the order in which they choose
	apart    bool   // no device meets two of them
}

// want is one device request.
type want struct {
	count int          // devices, or structs.DevicesAll
	meets capacity.Set // the devices that it could get
}

// meet compares requests with a class. Requests with ids are compared with one
// node, whose device ids are given.
func (c *class) meet(requests []structs.DeviceRequest, ids []string) match {
	m := match{requests: make([]want, 0, len(requests)), apart: true}
	met := capacity.NewSet(len(c.node.Devices))
	for _, request := range feasible.ChoosingOrder(requests) {
		w := want{count: request.Count, meets: capacity.NewSet(len(c.node.Devices))}
		for i := range c.node.Devices {
			d := c.node.Devices[i]
			if len(request.IDs) > 0 {
				d.ID = ids[i]
			}
			if d.Meets(request) {
				w.meets.Add(i)
			}
		}
		m.apart = m.apart && met.CountIn(w.meets) == 0
		for i, word := range w.meets {
			met[i] |= word
		}
		m.requests = append(m.requests, w)
	}
	return m
}
