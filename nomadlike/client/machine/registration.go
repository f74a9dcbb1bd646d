package machine

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"nomadlike/nomadlike/structs"
)

// Who finds faults of the machine. Each says anew what there is.
const (
	faultsOfLinks     = "links"
	faultsOfProcesses = "processes"
	faultsOfDisks     = "disks"
	faultsOfStarts    = "starts"
	FaultsOfPlugins   = "plugins"
)

// Unfit is why a node is not fit for an allocation.
type Unfit struct {
	Check string // what was looked at
	Cause string
}

// Registration is what the node says of itself to the servers. Any goroutine may
// use it.
type Registration struct {
	refresh func() // has the servers told what is new

	mu struct {
		sync.Mutex
		node   structs.Node
		faults map[string][]structs.NodeFault // of the machine, by who finds them
	}
}

// NewRegistration begins with node. refresh is called, from any goroutine, when
// the servers have to be told of a change.
func NewRegistration(node structs.Node, refresh func()) *Registration {
	r := &Registration{refresh: refresh}
	r.mu.node, r.mu.faults = node, make(map[string][]structs.NodeFault)
	return r
}

// Node returns what the node last registered, or will register. The value is the
// caller's.
func (r *Registration) Node() structs.Node {
	r.mu.Lock()
	defer r.mu.Unlock()
	node := r.mu.node
	node.Attributes = maps.Clone(node.Attributes)
	node.Drivers = slices.Clone(node.Drivers)
	return node
}

// Change changes what is registered: change is told of the node, may replace what
// it has, and reports whether it did anything. The servers hear of it with the next
// Refresh.
func (r *Registration) Change(change func(node *structs.Node) bool) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return change(&r.mu.node)
}

// Describe changes what is registered as Change does, puts attributes over those
// that are there, and tells the servers of what is new.
func (r *Registration) Describe(attributes map[string]string, change func(node *structs.Node) bool) {
	if r.Change(func(node *structs.Node) bool {
		changed := change(node)
		all := maps.Clone(node.Attributes)
		for key, value := range attributes {
			if all[key] != value {
				all[key] = value
				changed = true
			}
		}
		node.Attributes = all
		return changed
	}) {
		r.refresh()
	}
}

// Set sets one attribute, and reports whether that is news.
func (r *Registration) Set(name, value string) bool {
	return r.Change(func(node *structs.Node) bool {
		if node.Attributes[name] == value {
			return false
		}
		all := maps.Clone(node.Attributes)
		if all == nil {
			all = make(map[string]string)
		}
		all[name] = value
		node.Attributes = all
		return true
	})
}

// Refresh has the servers told what is registered now.
func (r *Registration) Refresh() { r.refresh() }

// SetFaults takes what one finder says is wrong with the machine now, and tells
// the servers when that is new.
func (r *Registration) SetFaults(finder string, faults []structs.NodeFault) {
	r.mu.Lock()
	r.mu.faults[finder] = faults
	all := gatherFaults(r.mu.faults)
	changed := !slices.EqualFunc(all, r.mu.node.Faults, sameFault)
	r.mu.node.Faults = all
	r.mu.Unlock()
	if changed {
		r.refresh()
	}
}

// HasFault reports whether the node has registered a fault of a name.
func (r *Registration) HasFault(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.mu.node.Faults, func(f structs.NodeFault) bool { return f.Name == name })
}

// Unfit returns the fault that keeps new work from the node; nil: none.
func (r *Registration) Unfit() *structs.NodeFault {
	node := r.Node()
	return node.Unfit()
}

// gatherFaults puts what the finders said in the order of a registration. When
// there are more than fit, those that keep work away stay. Pure.
func gatherFaults(found map[string][]structs.NodeFault) []structs.NodeFault {
	var all []structs.NodeFault
	for _, finder := range slices.Sorted(maps.Keys(found)) {
		all = append(all, found[finder]...)
	}
	byName := func(a, b structs.NodeFault) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortStableFunc(all, func(a, b structs.NodeFault) int {
		if a.Unfit != b.Unfit {
			if a.Unfit {
				return -1
			}
			return 1
		}
		return byName(a, b)
	})
	all = all[:min(len(all), structs.NodeFaultsMax)]
	slices.SortFunc(all, byName)
	return all
}

func sameFault(a, b structs.NodeFault) bool {
	return a.Name == b.Name && a.Unfit == b.Unfit && a.Reason.ID == b.Reason.ID && maps.Equal(a.Reason.Params, b.Reason.Params)
}
