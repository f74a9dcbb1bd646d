package structs

// UsageRequest asks a node what it measures of itself.
type UsageRequest struct{}

// NodeUsage is what a node measures of itself at one moment. It never goes
// into the log: whoever wants to see it asks the node.
type NodeUsage struct {
	At          UnixNano      `json:"at"`
	CPUSeconds  float64       `json:"cpu_seconds"`           // spent by the whole machine since its boot
	CPUCores    float64       `json:"cpu_cores,omitempty"`   // busy since the measurement before; 0 at the first
	MemoryUsed  int64         `json:"memory_used"`           // bytes
	MemoryTotal int64         `json:"memory_total"`          // bytes
	DiskFree    int64         `json:"disk_free,omitempty"`   // bytes, where the node keeps its records and its tasks' files
	InodesFree  int64         `json:"inodes_free,omitempty"` // there
	Devices     []DeviceUsage `json:"devices,omitempty"`     // of those that are measured, by id
	Tasks       []TaskUsage   `json:"tasks,omitempty"`       // of those that run and could be measured, by allocation id
	Unmeasured  int           `json:"unmeasured,omitempty"`  // tasks whose driver did not answer in time
}

// DeviceUsage is one measurement of one device. Gauges are under the keys of
// package plugins/device; one that the device does not have is not there.
type DeviceUsage struct {
	ID        string             `json:"id"`
	At        UnixNano           `json:"at"`
	Gauges    map[string]float64 `json:"gauges,omitempty"`
	Processes []DeviceProcess    `json:"processes,omitempty"` // the first DeviceProcessesMax
}

// DeviceProcessesMax bounds the processes that are told of one device.
const DeviceProcessesMax = 64

// DeviceProcess is a process of a node that has a context on a device.
type DeviceProcess struct {
	PID    int    `json:"pid"`
	Name   string `json:"name,omitempty"`
	Memory int64  `json:"memory"` // bytes on the device; 0: unknown
}

// TaskUsage is what one rank uses, with everything that it has started.
type TaskUsage struct {
	AllocID    string  `json:"alloc_id"`
	CPUSeconds float64 `json:"cpu_seconds"`         // since its start
	CPUCores   float64 `json:"cpu_cores,omitempty"` // busy since the measurement before; 0 at the first
	Memory     int64   `json:"memory"`              // resident bytes
	Processes  int     `json:"processes"`
}

// DeviceAct is what an operator may have a node do to a device.
type DeviceAct string

// The acts. Each changes the node's own view only: the state learns of it by
// the node's next registration.
const (
	DeviceClear DeviceAct = "clear" // forget its faults, without a test
	DeviceReset DeviceAct = "reset" // reset and test it; nothing may run on it
	// DeviceQuarantine keeps new work off it until it is cleared; what runs on it
	// goes on.
	DeviceQuarantine DeviceAct = "quarantine"
)

// Known reports whether a is one of the acts of this version.
func (a DeviceAct) Known() bool {
	return a == DeviceClear || a == DeviceReset || a == DeviceQuarantine
}

// DeviceReasonMax bounds the reason that an operator gives, in bytes.
const DeviceReasonMax = 256

// DeviceTreat asks a node to do something to one of its devices, which is named
// by its full id.
type DeviceTreat struct {
	Device string    `json:"device"`
	Act    DeviceAct `json:"act"`
	By     string    `json:"by"`               // who asked, for the node's log
	Reason string    `json:"reason,omitempty"` // of a quarantine
}

// DeviceTreated answers a DeviceTreat that succeeded.
type DeviceTreated struct{}
