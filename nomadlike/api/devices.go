package api

import (
	"context"

	"nomadlike/nomadlike/structs"
)

// NodeDevices is a node with its cards, who is on them and what they measure.
// Measured is false when the node did not answer in time, or is not there: then
// its figures are missing or, up to a minute, those that it gave last.
type NodeDevices struct {
	ID          string              `json:"id"`
	Name        string              `json:"name"`
	Pool        string              `json:"pool"`
	Status      structs.NodeStatus  `json:"status"`
	Eligibility structs.Eligibility `json:"eligibility"`
	CPU         float64             `json:"cpu"`      // cores offered
	CPUHeld     float64             `json:"cpu_held"` // cores given to allocations
	Memory      int64               `json:"memory"`   // bytes offered
	MemoryHeld  int64               `json:"memory_held"`
	Measured    bool                `json:"measured"`
	At          structs.UnixNano    `json:"at,omitempty"`          // of the measurement
	CPUBusy     float64             `json:"cpu_busy,omitempty"`    // cores of the machine at work lately; 0: unknown
	MemoryBusy  int64               `json:"memory_busy,omitempty"` // bytes of the machine in use
	Devices     []DeviceState       `json:"devices"`               // in the order of their numbers
}

// DeviceState is one card, or one part of a card, of a node.
type DeviceState struct {
	structs.Device
	Slice  int          `json:"slice,omitempty"`  // which part of its card it is, from 1
	Action string       `json:"action,omitempty"` // what its condition asks for: notice, task, cordon, reset, reboot, service
	Used   bool         `json:"used"`
	Owner  *DeviceOwner `json:"owner,omitempty"` // nil: nobody, or a job that the caller may not read
	// At is when the gauges were measured. They are under the stable names of
	// the reference; one that the device does not have is not there.
	At        structs.UnixNano        `json:"at,omitempty"`
	Gauges    map[string]float64      `json:"gauges,omitempty"`
	Processes []structs.DeviceProcess `json:"processes,omitempty"` // for operators
}

// DeviceOwner is the rank that a device was given to.
type DeviceOwner struct {
	JobID   string `json:"job_id"`
	Job     string `json:"job"`
	Project string `json:"project"`
	User    string `json:"user,omitempty"`
	Subjob  int    `json:"subjob,omitempty"`
	Attempt uint64 `json:"attempt"`
	Rank    int    `json:"rank"`
	AllocID string `json:"alloc_id"`
}

// DeviceList is a page of nodes by name, with their devices.
type DeviceList struct {
	Nodes []NodeDevices `json:"nodes"`
	Next  string        `json:"next,omitempty"`
}

// DeviceFilter narrows a DeviceList.
type DeviceFilter struct {
	Node string // only the node of this id or name
	Pool string // only nodes of this pool
}

// Devices returns one page of nodes with their devices, freshly measured.
func (c *Client) Devices(ctx context.Context, filter DeviceFilter, query *Query) (*DeviceList, error) {
	values := query.values()
	for name, value := range map[string]string{"node": filter.Node, "pool": filter.Pool} {
		if value != "" {
			values.Set(name, value)
		}
	}
	out, _, err := read(ctx, c, DevicesList, "", values)
	return out, err
}

// NodeDevices returns the devices of one node, by its id, a unique prefix of it,
// or its name.
func (c *Client) NodeDevices(ctx context.Context, id string) (*NodeDevices, error) {
	out, _, err := read(ctx, c, NodesDevices, id, nil)
	return out, err
}

// DeviceTreatRequest names a device of a node, by its id or its number, and
// what is to be done to it.
type DeviceTreatRequest struct {
	Device string            `json:"device"`
	Act    structs.DeviceAct `json:"act"`              // clear | reset | quarantine
	Reason string            `json:"reason,omitempty"` // of a quarantine
}

// DeviceTreated reports which device was treated.
type DeviceTreated struct {
	Device string `json:"device"` // its id
	Index  uint64 `json:"index"`
}

// TreatDevice clears a device's faults by an operator's word, resets it, or keeps
// new work from it.
func (c *Client) TreatDevice(ctx context.Context, node string, request DeviceTreatRequest) (*DeviceTreated, error) {
	return change(ctx, c, NodesTreatDevice, node, request)
}
