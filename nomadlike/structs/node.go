package structs

// NodeStatus is what the cluster knows of a node's life.
//
//	          ┌───────────── stream is back ─────────────┐
//	          ▼                                          │
//	joined ─► ready ──silent, peers reach it──► disconnected
//	          ▲ │                                        │
//	          │ └──silent, nobody reaches it──► lost ◄───┘
//	          └───returned with inventory───────┘
//	ready ──agent left in order──► left ──► ready
type NodeStatus string

// The statuses of a node.
const (
	NodeReady        NodeStatus = "ready"
	NodeDisconnected NodeStatus = "disconnected" // servers cannot hear it, peers can: its training goes on
	NodeLost         NodeStatus = "lost"         // nobody can reach it: its work is restarted elsewhere
	NodeLeft         NodeStatus = "left"         // its agent stopped in order; tasks may go on
)

// CanBecome reports whether a node may change from s to next.
func (s NodeStatus) CanBecome(next NodeStatus) bool {
	switch s {
	case NodeReady:
		return next == NodeDisconnected || next == NodeLost || next == NodeLeft
	case NodeDisconnected, NodeLeft:
		return next == NodeReady || next == NodeLost
	case NodeLost:
		return next == NodeReady
	}
	return next == NodeReady
}

// Eligibility says whether new work may be placed on a node.
type Eligibility string

// The eligibilities of a node.
const (
	NodeEligible Eligibility = "eligible"
	NodeCordoned Eligibility = "cordoned" // no new work, old work goes on
	NodeDraining Eligibility = "draining" // no new work, old work is moved away
)

// AttrAddresses is the attribute with all addresses of a node, with a comma between;
// without it they are not known.
const AttrAddresses = "net.addresses"

// Attributes of a node that say how the driver exec keeps tasks apart there.
const (
	AttrIsolation       = "driver.exec.isolation"        // the parts in use, or IsolationNone
	AttrIsolationReason = "driver.exec.isolation_reason" // why a part is missing
	IsolationNone       = "raw"
)

// Node is a machine that runs work.
//
// Writers: fingerprint fields by its client at registration; Status by the
// leader; Eligibility by operators.
type Node struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	Addr        string            `json:"addr"`               // IP for data between ranks
	RPCAddr     string            `json:"rpc_addr"`           // host:port of its agent
	Pool        string            `json:"pool,omitempty"`     // the pool it is in; state.Apply decides
	OwnPool     string            `json:"own_pool,omitempty"` // the pool of its own configuration
	Topology    []string          `json:"topology,omitempty"` // where it stands, outermost first: room, rack, switch
	RDMA        bool              `json:"rdma,omitempty"`     // a working RDMA network card
	Raw         bool              `json:"raw,omitempty"`      // isolates no processes, by its configuration or because it cannot: jobs on the driver exec need a pool that allows it
	Version     string            `json:"version"`
	Machine     string            `json:"machine,omitempty" since:"12"` // the same for whoever registers from this machine
	Incarnation uint64            `json:"incarnation"`                  // +1 at each start of its agent
	Attributes  map[string]string `json:"attributes,omitempty"`
	Drivers     []string          `json:"drivers,omitempty"`  // healthy task drivers
	Storages    []string          `json:"storages,omitempty"` // "kind/name" of what its administrator's storages serve, in the order of its configuration
	Data        []string          `json:"data,omitempty"`     // data of which it holds copies, by CopyName; at most DataNamesMax
	Capacity    Capacity          `json:"capacity"`
	Devices     []Device          `json:"devices,omitempty"`
	Faults      []NodeFault       `json:"faults,omitempty"` // of the machine itself, by name; at most NodeFaultsMax

	Status        NodeStatus  `json:"status"`
	StatusReason  *Reason     `json:"status_reason,omitempty"`
	StatusAt      UnixNano    `json:"status_at,omitempty"`
	Eligibility   Eligibility `json:"eligibility"`
	DrainDeadline UnixNano    `json:"drain_deadline,omitempty"`
	Removed       bool        `json:"removed,omitempty" since:"12"` // an operator removed it; it stays until strict jobs need its lease no more
	RegisteredAt  UnixNano    `json:"registered_at,omitempty"`
	RegisterIndex uint64      `json:"register_index"`    // log index of its newest registration
	Session       string      `json:"session,omitempty"` // stream that registered it, named by its server: any other is out of date
	// Maintenance are the windows that cover it and have not ended, by start.
	Maintenance []NodeMaintenance `json:"maintenance,omitempty" since:"18"`
	// Unknown are allocations that it runs and that a state from a backup does not
	// know, sorted: it is ending them, and FaultUnknown stands until they have ended.
	Unknown     []string `json:"unknown,omitempty"`
	CreateIndex uint64   `json:"create_index"`
	ModifyIndex uint64   `json:"modify_index"`
}

// Schedulable reports whether new work may be placed on the node now.
func (n *Node) Schedulable() bool {
	return n.Status == NodeReady && n.Eligibility == NodeEligible && n.Unfit() == nil && n.Maintained() == nil
}

// HasDriver reports whether the node runs tasks with the named driver.
func (n *Node) HasDriver(name string) bool {
	for _, driver := range n.Drivers {
		if driver == name {
			return true
		}
	}
	return false
}

// Capacity is what a node offers to jobs, its reserve for itself taken off.
type Capacity struct {
	CPU     float64 `json:"cpu"`      // cores
	Memory  int64   `json:"memory"`   // bytes
	PortMin int     `json:"port_min"` // dynamic ports, inclusive
	PortMax int     `json:"port_max"` // inclusive
}

// memorySlack is the part of a node's memory that its own reserve and firmware may
// take: a machine that was bought with as much memory as its cards have is not told
// to have less.
const memorySlack = 10 // one tenth

// ShortOfMemory reports what the devices of a node have in all when its own memory is
// less than that: what goes to a card comes through it, and checkpoints of all cards
// lie in it. 0: it has enough.
func (n *Node) ShortOfMemory() (devices int64) {
	for i := range n.Devices {
		devices += n.Devices[i].Memory
	}
	if n.Capacity.Memory >= devices-devices/memorySlack {
		return 0
	}
	return devices
}

// Device is an accelerator of a node.
type Device struct {
	ID        string            `json:"id"`
	Index     int               `json:"index"` // the vendor's number on this node, from 0; may change at a reboot
	Kind      string            `json:"kind"`  // vendor/type
	Model     string            `json:"model"`
	Memory    int64             `json:"memory"` // bytes
	PCIBus    string            `json:"pci_bus,omitempty"`
	NUMANode  int               `json:"numa_node"`
	LinkGroup string            `json:"link_group,omitempty"`
	Healthy   bool              `json:"healthy"`
	Health    *Reason           `json:"health,omitempty"`
	Driver    string            `json:"driver_version,omitempty"`
	Attrs     map[string]string `json:"attrs,omitempty"`
}

// Usage is what allocations hold on one node, kept by state.Apply so that
// nobody sums allocations on the hot path.
type Usage struct {
	NodeID  string            `json:"node_id"`
	CPU     float64           `json:"cpu"`
	Memory  int64             `json:"memory"`
	Ports   map[int]string    `json:"ports,omitempty"`   // port -> allocation id
	Devices map[string]string `json:"devices,omitempty"` // device id -> allocation id
	Allocs  int               `json:"allocs"`
	// NominatedFor is the subjob that the node is nominated for, as SubjobKey writes
	// it; nobody else may be placed here. "": nobody.
	NominatedFor string `json:"claim,omitempty"`
	// Overcommitted: the node came back smaller than what it holds. Plans never
	// cause it, and place nothing while it lasts.
	Overcommitted bool   `json:"overcommitted,omitempty"`
	ModifyIndex   uint64 `json:"modify_index"`
}
