package ascend

import (
	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
)

// Library is the door to what knows the chips. Its methods may block for ever
// and may be called from several goroutines, except that Open and Close have
// no other call beside them.
type Library interface {
	// Open loads and initialises the library. The reason says why there is
	// none to use; it is nil when there is.
	Open() *structs.Reason
	// Source names what answers: "dcmi" or "npu-smi". Valid after Open.
	Source() string
	// Read returns all facts about the node's chips.
	Read() (Facts, error)
	// Glance asks all chips of the newest Read for their health alone.
	Glance() ([]Glance, error)
	// Sample measures all chips of the newest Read, by Chip.Key.
	Sample() (map[Key]Sample, error)
	// Close releases the library; Open may follow.
	Close()
}

// Key is where a chip sits: its card, and its number on the card.
type Key struct {
	Card int `json:"card"`
	Chip int `json:"chip"`
}

// Facts are what is known about a node's chips.
type Facts struct {
	Driver  string `json:"driver"`
	Library string `json:"library,omitempty"`
	Chips   []Chip `json:"chips"`
}

// Chip is one NPU.
type Chip struct {
	Key
	ID       string `json:"id,omitempty"` // by its die; "": not known
	Logic    int    `json:"logic"`        // the number that programs use
	Physical int    `json:"physical"`     // of /dev/davinci<physical>; -1: not known
	Name     string `json:"name"`         // "Ascend910B3"
	Board    string `json:"board,omitempty"`
	Bus      string `json:"bus,omitempty"` // as pcie.Normal writes it
	Memory   uint64 `json:"memory"`        // bytes of HBM, or DDR without it
	// Linked are the chips reached over HCCS.
	Linked []Key `json:"linked,omitempty"`

	IP      string `json:"ip,omitempty"` // of its own network port
	Mask    string `json:"mask,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	// Super is the chip's place in a super pod; nil: it is in none.
	Super *SuperPlace `json:"super,omitempty"`

	// Unreadable says why the chip did not answer; Gone that it is not there
	// any more.
	Unreadable string `json:"unreadable,omitempty"`
	Gone       bool   `json:"gone,omitempty"`

	State State `json:"state"`
}

// SuperPlace is where a chip is in a super pod.
type SuperPlace struct {
	Device uint32 `json:"device"` // the number that rank tables name
	Pod    uint32 `json:"pod"`
}

// State is what health is judged by.
type State struct {
	Level   int      `json:"level"`           // of health: 0 well, 1 to 3 worse, -1 not known
	Codes   []uint32 `json:"codes,omitempty"` // faults that hold now
	Network int      `json:"network"`         // as the driver says; 0 and 6 are well, -1 not known
}

// Glance is the health of one chip at one moment.
type Glance struct {
	Key
	Level int
	Codes []uint32
	Err   string // why it did not answer; "": it did
}

// Sample is one measurement of one chip.
type Sample struct {
	Gauges    map[string]float64
	Processes []device.Process
}

// levelUnknown is the library's word for a chip that is not there.
const levelUnknown = -1
