package placement

import (
	"maps"
	"slices"
	"sync/atomic"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/capacity"
)

// Floor is what is free on the nodes of a cluster. It is made by NewFloor or
// Clone. One goroutine at a time may use a floor, reading included; clones may
// be used at the same time.
//
// What changes with every job lies in flat arrays of plain values, so that a
// clone is a few copies of memory:
//
//	index ──► space      free cores and memory, counts, flags
//	      ──► held       which devices are held, which are healthy, as bits
//	      ──► ports      the held ports, a list that is never changed in place
//	level ──► positions  the nodes with that many free devices, as bits
//
// What changes with nodes alone is shared between clones: see site and layout.
type Floor struct {
	*roster
	shared  atomic.Bool // the roster has another floor, too: copy before a change
	sharing atomic.Bool // so have the lists of ports

	spaces []space          // by index
	held   capacity.Set     // by space.word: held devices
	ports  []capacity.Ports // by index: held ports

	layout  *layout // nil: nodes came, went or changed since it was made
	before  *layout // then, the one before; fresh lists the nodes that it does not have right
	fresh   []int32
	levels  []level
	mostCPU []int64 // at least what each node of a word of positions has free
	mostMem []int64
	loose   capacity.Set // the words whose bounds may be far too high
	build   *byte        // another one after each change of what nodes are, not of what they hold
	scratch scratch
}

// scratch is memory that questions use again and again.
type scratch struct {
	near      capacity.Set // positions
	positions []int32      // chosen ones
	free      []int        // by place of the topology
	devices   picker
	options   Options // of the question at hand
}

// roster is what floors share until one of them changes it.
type roster struct {
	sites   []*site      // by index; nil: removed
	healthy capacity.Set // by space.word: healthy devices
	byID    map[string]int32
	classes map[string]*class
	pools   map[string]*structs.Pool
}

// site is what is known of one node since it was Put. It is never changed.
type site struct {
	node    *structs.Node
	usage   *structs.Usage // what it held then; nil: nothing
	class   *class
	devices []string        // ids, by bit
	inOrder bool            // devices are sorted by name, too
	whole   capacity.Amount // what an empty node has free
}

// space is what is free on one node now: an amount, packed with the rest into half
// a cache line.
type space struct {
	cpu     int64
	memory  int64
	word    int32 // first word of the node's devices
	allocs  int32 // allocations that hold something
	devices uint16
	flags   uint8
}

// free is what is free, as an amount.
func (sp *space) free() capacity.Amount {
	return capacity.Amount{CPU: sp.cpu, Memory: sp.memory, Devices: int64(sp.devices)}
}

// setFree changes the cores and the memory that are free. Devices are counted where
// they are listed.
func (sp *space) setFree(free capacity.Amount) { sp.cpu, sp.memory = free.CPU, free.Memory }

// level is where the node stands by its free devices.
func (sp *space) level() uint16 { return min(sp.devices, levelMax) }

// level is the nodes that take new work and have one number of free devices.
type level struct {
	positions capacity.Set
	words     capacity.Set // the words of positions that are not empty
	nodes     int
}

func newLevel(words int) level {
	return level{positions: make(capacity.Set, words), words: capacity.NewSet(words)}
}

func (l *level) copyFrom(other *level) {
	l.positions = append(l.positions[:0], other.positions...)
	l.words = append(l.words[:0], other.words...)
	l.nodes = other.nodes
}

func (l *level) add(pos int) {
	l.positions.Add(pos)
	l.words.Add(pos >> 6)
	l.nodes++
}

func (l *level) drop(pos int) {
	l.positions.Drop(pos)
	if l.positions[pos>>6] == 0 {
		l.words.Drop(pos >> 6)
	}
	l.nodes--
}

// The flags of a space.
const (
	flagOpen      = 1 << iota // takes new work: the node stands in levels
	flagNominated             // nominated for one subjob
	flagOver                  // holds more than it has
	flagMoved                 // no longer holds what it held when it was Put
)

// levelMax bounds the levels; nodes with more free devices stand at the last.
const levelMax = 255

// NewFloor returns a floor without nodes.
func NewFloor() *Floor {
	return &Floor{
		build:  new(byte),
		roster: &roster{byID: make(map[string]int32), classes: make(map[string]*class), pools: make(map[string]*structs.Pool)},
	}
}

// Clone returns a floor that stands alone; indexes and seats of one mean the same
// on the other until either Puts or Removes nodes. Several goroutines may clone
// a floor at the same time once it is Ready.
func (f *Floor) Clone() *Floor {
	clone := &Floor{}
	clone.CopyFrom(f)
	return clone
}

// CopyFrom makes f equal to another floor, as Clone would, in the memory that f
// has already.
func (f *Floor) CopyFrom(other *Floor) {
	other.Ready()
	if !other.shared.Load() || !other.sharing.Load() {
		other.shared.Store(true)
		other.sharing.Store(true)
	}
	f.roster, f.layout, f.build, f.ports = other.roster, other.layout, other.build, other.ports
	f.before, f.fresh = nil, nil
	f.shared.Store(true)
	f.sharing.Store(true)
	f.spaces = append(f.spaces[:0], other.spaces...)
	f.held = append(f.held[:0], other.held...)
	f.mostCPU = append(f.mostCPU[:0], other.mostCPU...)
	f.mostMem = append(f.mostMem[:0], other.mostMem...)
	f.loose = append(f.loose[:0], other.loose...)
	f.levels = slices.Grow(f.levels[:0], len(other.levels))[:len(other.levels)]
	for i := range other.levels {
		f.levels[i].copyFrom(&other.levels[i])
	}
}

// own makes the floor's roster its own.
func (f *Floor) own() {
	if !f.shared.Load() {
		return
	}
	f.roster = &roster{
		sites: slices.Clone(f.sites), healthy: slices.Clone(f.healthy),
		byID: maps.Clone(f.byID), classes: maps.Clone(f.classes), pools: maps.Clone(f.pools),
	}
	f.shared.Store(false)
}

// setPorts replaces the list of held ports of a node.
func (f *Floor) setPorts(at int32, held capacity.Ports) {
	f.ownPorts()
	f.ports[at] = held
}

func (f *Floor) ownPorts() {
	if f.sharing.Load() {
		f.ports = slices.Clone(f.ports)
		f.sharing.Store(false)
	}
}

// Len counts the nodes.
func (f *Floor) Len() int { return len(f.byID) }

// Index returns the number by which Options ask about a node: at least 0, below
// Indexes, and the same until the node is removed.
func (f *Floor) Index(id string) (int, bool) {
	at, known := f.byID[id]
	return int(at), known
}

// Indexes bounds the indexes of all nodes.
func (f *Floor) Indexes() int { return len(f.sites) }

// At returns the node with an index, nil when it was removed.
func (f *Floor) At(index int) *structs.Node {
	if f.sites[index] == nil {
		return nil
	}
	return f.sites[index].node
}

// Node returns a node and what it holds now, nil for an unknown one; a nil usage
// holds nothing. Neither may be changed. What is held since the node was Put is
// told without its holders.
func (f *Floor) Node(id string) (*structs.Node, *structs.Usage) {
	at, known := f.byID[id]
	if !known {
		return nil, nil
	}
	return f.sites[at].node, f.usage(at)
}

// Pool returns a pool's record, nil when it has none.
func (f *Floor) Pool(name string) *structs.Pool { return f.pools[name] }

// PutPool adds or replaces a pool's record. The nodes say themselves which pool
// they are in.
func (f *Floor) PutPool(pool *structs.Pool) {
	before := f.pools[pool.Name]
	f.own()
	f.pools[pool.Name] = pool
	f.poolChanged(pool.Name, before, pool)
}

// RemovePool forgets a pool's record.
func (f *Floor) RemovePool(name string) {
	before := f.pools[name]
	f.own()
	delete(f.pools, name)
	f.poolChanged(name, before, nil)
}

// poolChanged moves the nodes of a pool to other classes.
func (f *Floor) poolChanged(name string, before, after *structs.Pool) {
	if poolTraits(before) == poolTraits(after) {
		return
	}
	for at, s := range f.sites {
		if s != nil && s.node.PoolName() == name {
			moved := *s
			moved.class = f.classOf(classNode(s.node))
			f.sites[at] = &moved
			f.build = new(byte)
			f.unsettle()
		}
	}
}

// unsettle notes that the layout is no longer right, but for the fresh nodes in
// its order.
func (f *Floor) unsettle(fresh ...int32) {
	if f.layout != nil {
		f.before, f.layout = f.layout, nil
	}
	f.fresh = append(f.fresh, fresh...)
}

// classOf finds the class of a node that classNode gave.
func (f *Floor) classOf(node *structs.Node) *class {
	pool := f.pools[node.Pool]
	key := classKey(nil, node, pool)
	c, known := f.classes[string(key)]
	if !known {
		f.own()
		c = newClass(node, pool)
		f.classes[string(key)] = c
	}
	return c
}

// Put adds a node, or replaces what is known of it and of what it holds. A nil
// usage holds nothing. Neither may be changed afterwards. It is cheap when only
// usage differs from what was Put before.
func (f *Floor) Put(node *structs.Node, usage *structs.Usage) {
	f.own()
	at, known := f.byID[node.ID]
	if !known {
		at = int32(len(f.sites))
		f.byID[node.ID] = at
		f.sites, f.spaces = append(f.sites, nil), append(f.spaces, space{})
		f.ownPorts()
		f.ports = append(f.ports, nil)
	}
	before := f.sites[at]
	s := &site{node: node, usage: usage}
	switch {
	case before != nil && before.node == node:
		s.class, s.devices, s.inOrder, s.whole = before.class, before.devices, before.inOrder, before.whole
	default:
		sorted := classNode(node)
		s.class, s.whole = f.classOf(sorted), node.Free(nil)
		s.devices = make([]string, len(sorted.Devices))
		for i := range sorted.Devices {
			s.devices[i] = sorted.Devices[i].ID
		}
		s.inOrder = slices.IsSortedFunc(s.devices, structs.CompareNames)
		f.build = new(byte)
		if before == nil || before.class != s.class || compareNodes(before.node, node) != 0 {
			f.unsettle(at)
		}
	}
	f.sites[at] = s
	f.furnish(at, before)
}

// furnish works out what is free on a node that was Put.
func (f *Floor) furnish(at int32, before *site) {
	s, sp := f.sites[at], &f.spaces[at]
	f.unlist(at)
	if words := s.class.words; before == nil || before.class.words < words {
		sp.word = int32(len(f.held)) // what it had is left over until pack
		f.held = append(f.held, make(capacity.Set, words)...)
		f.healthy = append(f.healthy, make(capacity.Set, words)...)
	}
	*sp = space{word: sp.word}
	sp.setFree(s.node.FreeBeside(s.usage))
	held, healthy := f.devicesAt(at)
	clear(held)
	clear(healthy)
	for i := range s.node.Devices {
		d := &s.node.Devices[i]
		if bit := s.bitOf(d.ID); d.Healthy {
			healthy.Add(bit)
		}
	}
	var ports []int32
	if u := s.usage; u != nil {
		for id := range u.Devices {
			if bit := s.bitOf(id); bit >= 0 {
				held.Add(bit)
			}
		}
		for port := range u.Ports {
			ports = append(ports, int32(port))
		}
		sp.allocs = int32(u.Allocs)
		if u.NominatedFor != "" {
			sp.flags |= flagNominated
		}
		if u.Overcommitted {
			sp.flags |= flagOver
		}
	}
	if len(ports) > 0 || len(f.ports[at]) > 0 {
		f.setPorts(at, capacity.PortsOf(ports))
	}
	if s.node.Schedulable() {
		sp.flags |= flagOpen
	}
	f.list(at)
}

// bitOf finds the bit of a device, -1 for an unknown one.
func (s *site) bitOf(id string) int { return slices.Index(s.devices, id) }

// devicesAt returns the held and the healthy devices of a node, to be changed.
func (f *Floor) devicesAt(at int32) (held, healthy capacity.Set) {
	from := int(f.spaces[at].word)
	to := from + f.sites[at].class.words
	return f.held[from:to], f.healthy[from:to]
}

// Remove forgets a node; an unknown one is not there already.
func (f *Floor) Remove(id string) {
	at, known := f.byID[id]
	if !known {
		return
	}
	f.own()
	delete(f.byID, id)
	f.sites[at], f.spaces[at], f.build = nil, space{}, new(byte)
	f.unsettle()
}

// usage reports what a node holds now.
func (f *Floor) usage(at int32) *structs.Usage {
	s, sp := f.sites[at], &f.spaces[at]
	if sp.flags&flagMoved == 0 {
		return s.usage
	}
	now := structs.Usage{NodeID: s.node.ID}
	if s.usage != nil {
		now = *s.usage
	}
	now.SetAmount(s.whole.Sub(sp.free()))
	now.Allocs, now.Overcommitted = int(sp.allocs), sp.flags&flagOver != 0
	now.Devices, now.Ports = f.usedDevices(at), f.usedPorts(at)
	return &now
}

// usedDevices names the devices that are held, with those who held them when
// the node was Put. Holders of devices that the node no longer has stay.
func (f *Floor) usedDevices(at int32) map[string]string {
	s := f.sites[at]
	devices := make(map[string]string)
	if s.usage != nil {
		for id, holder := range s.usage.Devices {
			if s.bitOf(id) < 0 {
				devices[id] = holder
			}
		}
	}
	held, _ := f.devicesAt(at)
	for _, bit := range held.Members() {
		id := s.devices[bit]
		devices[id] = ""
		if s.usage != nil {
			devices[id] = s.usage.Devices[id]
		}
	}
	return devices
}

// usedPorts reports which ports are held, with those who held them when the node
// was Put.
func (f *Floor) usedPorts(at int32) map[int]string {
	ports := make(map[int]string, len(f.ports[at]))
	for _, port := range f.ports[at] {
		ports[int(port)] = ""
		if u := f.sites[at].usage; u != nil {
			ports[int(port)] = u.Ports[int(port)]
		}
	}
	return ports
}
