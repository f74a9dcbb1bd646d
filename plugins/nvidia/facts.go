package nvidia

import (
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Library is the door to the vendor's library. Its methods may block for ever
// and may be called from several goroutines, except that Open and Close have
// no other call beside them.
type Library interface {
	// Open loads and initialises the library. The reason says why there is
	// none to use; it is nil when there is.
	Open() *structs.Reason
	// Read returns all facts about the node's cards.
	Read() (Facts, error)
	// Sample measures all cards. Processes are listed with them.
	Sample() ([]device.DeviceStats, error)
	// Wait blocks until the driver reports events, at most for limit.
	Wait(limit time.Duration) ([]Happening, error)
	// Close releases the driver, so that a card can be reset. Open may
	// follow.
	Close()
}

// Facts are what the library says about a node.
type Facts struct {
	Driver  string `json:"driver"`
	Library string `json:"library"`
	CUDA    string `json:"cuda"` // "12.4"
	Cards   []Card `json:"cards"`
}

// Card is one physical card.
type Card struct {
	UUID   string `json:"uuid"`
	Index  int    `json:"index"`
	Minor  int    `json:"minor"` // of /dev/nvidia<minor>; -1: not known
	Name   string `json:"name"`
	Arch   string `json:"arch,omitempty"` // "hopper"
	Serial string `json:"serial,omitempty"`
	VBIOS  string `json:"vbios,omitempty"`
	Bus    string `json:"bus"` // as pcie.Normal writes it
	Memory uint64 `json:"memory"`
	// Unreadable says why the card did not answer; the fields above may be
	// empty then.
	Unreadable string `json:"unreadable,omitempty"`
	// Lost: the driver says that the card can no longer be reached.
	Lost bool `json:"lost,omitempty"`

	MIG       bool       `json:"mig,omitempty"` // MIG mode is on
	Instances []Instance `json:"instances,omitempty"`
	Links     []Link     `json:"links,omitempty"`
	Fabric    *Fabric    `json:"fabric,omitempty"` // nil: no part of one
	State     State      `json:"state"`
}

// Instance is a MIG device: a compute instance in a GPU instance.
type Instance struct {
	UUID    string `json:"uuid"`
	Profile string `json:"profile"` // "1g.10gb"
	Memory  uint64 `json:"memory"`
	GPU     int    `json:"gpu"`     // number of the GPU instance
	Compute int    `json:"compute"` // number of the compute instance in it
}

// Link is one NVLink of a card.
type Link struct {
	Up     bool   `json:"up"`
	Remote string `json:"remote,omitempty"` // PCI address at the other end
	Switch bool   `json:"switch,omitempty"` // that is an NVSwitch
}

// Fabric is a card's membership in an NVLink fabric.
type Fabric struct {
	Cluster string `json:"cluster,omitempty"`
	Clique  uint32 `json:"clique"`
	// Ready: the fabric manager has set the card up. CUDA works only then.
	Ready bool   `json:"ready"`
	Error string `json:"error,omitempty"` // what the driver says is wrong with it
}

// State is the part of a card's facts that health is judged by. A pointer that
// is nil means that the card cannot say.
type State struct {
	Recovery       *int    `json:"recovery,omitempty"` // the driver's own verdict, see actions.json
	RemapPending   bool    `json:"remap_pending,omitempty"`
	RemapFailed    bool    `json:"remap_failed,omitempty"`
	RetiredPending bool    `json:"retired_pending,omitempty"`
	ECCUncorrected *uint64 `json:"ecc_uncorrected,omitempty"` // since the driver was loaded
	// LinkErrors are the errors of its NVLinks since the driver was loaded, LinkRecoveries
	// how often one had to be set up anew.
	LinkErrors      *uint64 `json:"link_errors,omitempty"`
	LinkRecoveries  *uint64 `json:"link_recoveries,omitempty"`
	ThermalSlowdown bool    `json:"thermal_slowdown,omitempty"`
	HardSlowdown    bool    `json:"hard_slowdown,omitempty"`
	PowerBrake      bool    `json:"power_brake,omitempty"`
	Temperature     int     `json:"temperature,omitempty"`
	PCIeWidth       int     `json:"pcie_width,omitempty"`
	MemoryUsed      uint64  `json:"memory_used"`
	MemoryReserved  uint64  `json:"memory_reserved,omitempty"` // by the driver, part of used in old libraries
	PowerLimit      int     `json:"power_limit,omitempty"`     // watts
}

// Source is where a happening was seen.
type Source string

// The sources of happenings.
const (
	FromLibrary Source = "nvml"
	FromKernel  Source = "kernel"
)

// Happening is an event of the driver.
type Happening struct {
	At time.Time `json:"at"`
	// Uptime is how long the machine had run, for what the kernel says: it
	// orders the kernel's messages for ever.
	Uptime  time.Duration `json:"uptime,omitempty"`
	UUID    string        `json:"uuid,omitempty"` // either this
	Bus     string        `json:"bus,omitempty"`  // or this names the card; both empty: it concerns all
	XID     int           `json:"xid,omitempty"`  // 0: none; the cards should be looked at soon
	GPU     int           `json:"gpu"`            // GPU instance, -1: the whole card
	Compute int           `json:"compute"`        // compute instance, -1: the whole GPU instance
	PID     int           `json:"pid,omitempty"`
	Process string        `json:"process,omitempty"`
	Text    string        `json:"text,omitempty"` // the driver's own words
	Source  Source        `json:"source"`
}
