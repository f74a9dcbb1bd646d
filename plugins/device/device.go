// Package device is the contract between a node's client and what knows the
// accelerators of that node: the library or tool of a vendor (NVIDIA, Ascend,
// Cambricon, AMD), or a program of a third party.
//
// Flow: client/devices follows Fingerprint and registers what it reports as
// the node's devices; before a task starts it calls Reap and Reserve for the
// devices that the plan gave to it, and hands the Reservation to the task
// driver; while anybody looks it follows Stats. A device that goes wrong says
// in its attributes what is to be done (see Action), and the client does it.
// plugins/host speaks the same contract to plugins in other processes,
// through the adapter in plugins/device/deviceplugin.
//
// Limits: the package holds types and pure functions only. A plugin decides
// nothing about jobs: it reports, prepares devices and cleans them. Vendor
// libraries can crash and hang, therefore plugins that load one always run in
// a process of their own. Growth comes as further optional interfaces such as
// Healer, not by widening Plugin.
package device

import (
	"context"
	"errors"
	"maps"
	"time"

	"nomadlike/nomadlike/structs"
)

// Errors that every plugin returns, also from another process; match them
// with errors.Is.
var (
	// ErrUnknownDevice is returned when a plugin has no device with a given
	// id now.
	ErrUnknownDevice = errors.New("unknown device")
	// ErrBusy is returned by Heal when a device is still in use.
	ErrBusy = errors.New("device is in use")
	// ErrUnsupported is returned by a plugin for an act that it cannot do.
	ErrUnsupported = errors.New("not supported by the device plugin")
	// ErrUnavailable is returned when the plugin itself cannot answer: its
	// process crashed, hangs, or is being restarted. Try again later.
	ErrUnavailable = errors.New("device plugin unavailable")
)

// Limits of what a plugin may say. A host drops what is above them.
const (
	DevicesMax      = 1024 // of one plugin on one node
	EventsMax       = 256  // in one snapshot
	ProcessesMax    = 1024 // of one device
	ReservationsMax = 512  // device nodes, and mounts, of one reservation, each
	EnvMax          = 256  // variables of one reservation
	AttrsMax        = 64   // attributes of one device
	TextMax         = 1024 // bytes of any single text
	GaugesMax       = 128  // figures of one device
)

// Plugin knows the devices of one vendor on this node. Every method may be
// called from any goroutine, several at a time; every one returns soon after
// its context is cancelled.
type Plugin interface {
	// Fingerprint reports the devices of this node with their health. It
	// sends a first snapshot at once, even when that only says that the
	// plugin cannot look yet, another one after every change, and closes the
	// channel when ctx is cancelled. Called once by client/devices, which
	// must keep receiving; a plugin merges what is not received in time.
	Fingerprint(ctx context.Context) (<-chan Snapshot, error)

	// Reserve says what a task needs so that it sees these devices and no
	// others. It changes nothing on the devices; reserving one twice returns
	// the same answer. ErrUnknownDevice names an id that is not there.
	Reserve(ctx context.Context, ids []string) (Reservation, error)

	// Stats measures all devices once per every, the first time at once,
	// until ctx is cancelled. A plugin may raise an interval below
	// StatsEveryMin to that; a slow reader gets fewer measurements.
	Stats(ctx context.Context, every time.Duration) (<-chan Stats, error)

	// Reap finds what dead tasks have left on devices, ends it, and says
	// whether the devices are clean. The client calls it for the devices of
	// an allocation after its end, and again before their next use. It
	// returns within Reaping.Limit and a little.
	Reap(ctx context.Context, request Reaping) (ReapReport, error)
}

// Healer is an optional interface: a plugin that can bring devices back.
type Healer interface {
	// Heal resets devices that wait for it and tests them; those that pass
	// are healthy in the next snapshot. The caller makes sure that no
	// allocation is on them; ErrBusy says that a process still is. The error
	// says in words why a device stays as it is.
	Heal(ctx context.Context, ids []string) error
	// Clear forgets the faults of devices by an operator's word, without a
	// test. What a plugin still measures as wrong is reported anew.
	Clear(ctx context.Context, ids []string) error
}

// Timing of calls.
const (
	StatsEveryMin    = 100 * time.Millisecond
	ReapLimitDefault = 10 * time.Second
	ReapLimitMax     = 2 * time.Minute
)

// Snapshot is all that a plugin knows at one moment. Every snapshot is
// complete: a device that is not in it is not there.
type Snapshot struct {
	At time.Time `json:"at"`
	// Devices are in order of Index, then ID. What a device has besides the
	// fields of structs.Device stands in Attrs, under the keys of attr.go.
	Devices []structs.Device `json:"devices,omitempty"`
	// Absent says why there are no devices: no hardware, no driver, no
	// library. That is no fault.
	Absent *structs.Reason `json:"absent,omitempty"`
	// Blind says that the plugin cannot look now: its library hangs, or its
	// process is down. Devices are then those known before, cordoned.
	Blind *structs.Reason `json:"blind,omitempty"`
	// Attributes describe the node, under the keys of attr.go.
	Attributes map[string]string `json:"attributes,omitempty"`
	// Events have happened since the snapshot before. Each is told once.
	Events []Event `json:"events,omitempty"`
}

// Event is something that happened to a device at one moment, whether or not
// it changed the device's health: a task's own fault does not.
type Event struct {
	At       time.Time       `json:"at"`
	DeviceID string          `json:"device_id"`
	Code     string          `json:"code"`          // stable, for instance "xid-79"
	Action   Action          `json:"action"`        // what it asks for
	Reason   *structs.Reason `json:"reason"`        // in words, for people
	PID      int             `json:"pid,omitempty"` // the process that caused it, 0: unknown
}

// Reservation is what a task needs to see devices, and no others. A driver
// takes the part that it can use: exec Env and Nodes, docker either CDI, or
// Container, or Nodes with Mounts, and Env in every case.
type Reservation struct {
	// Env wins over the image's and the job's own variables of these names.
	Env map[string]string `json:"env,omitempty"`
	// ContainerEnv is put over Env in a container: devices may have other
	// numbers there. See Environment.
	ContainerEnv map[string]string `json:"container_env,omitempty"`

	Nodes  []Node   `json:"nodes,omitempty"`
	Mounts []Mount  `json:"mounts,omitempty"` // libraries and tools, for a container without the vendor's runtime
	CDI    []string `json:"cdi,omitempty"`    // names such as "nvidia.com/gpu=GPU-…"
	// Container is how the container engine's own support is asked; nil:
	// there is none for these devices.
	Container *Container `json:"container,omitempty"`
}

// Environment returns the variables of a task that runs in a container, or not.
func (r *Reservation) Environment(container bool) map[string]string {
	if !container || len(r.ContainerEnv) == 0 {
		return r.Env
	}
	env := maps.Clone(r.Env)
	if env == nil {
		env = make(map[string]string, len(r.ContainerEnv))
	}
	maps.Copy(env, r.ContainerEnv)
	return env
}

// Node is a device node of this machine that the task may open. Its fields
// are those of driver.Device.
type Node struct {
	HostPath string `json:"host_path"`
	TaskPath string `json:"task_path"`
	Access   string `json:"access"` // a subset of "rwm"
}

// Mount puts a file or directory of this machine into the task. Its fields
// are those of driver.Mount.
type Mount struct {
	HostPath string `json:"host_path"`
	TaskPath string `json:"task_path"`
	ReadOnly bool   `json:"read_only"`
}

// Container asks a container engine that knows the vendor.
type Container struct {
	Driver       string            `json:"driver,omitempty"`       // of a DeviceRequest; "": it has none
	IDs          []string          `json:"ids,omitempty"`          // for the DeviceRequest
	Capabilities []string          `json:"capabilities,omitempty"` // for the DeviceRequest
	Runtime      string            `json:"runtime,omitempty"`      // name of the OCI runtime; "": there is none
	Env          map[string]string `json:"env,omitempty"`          // for that runtime, besides Reservation.Env
}
