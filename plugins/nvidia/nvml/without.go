//go:build !cgo

package nvml

import (
	"errors"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/nvidia"
)

// Library stands in where the vendor's library cannot be called.
type Library struct{}

// New returns the library at path.
func New(string) *Library { return &Library{} }

var errWithout = errors.New("built without cgo")

// Open says that this build cannot open it.
func (*Library) Open() *structs.Reason {
	return structs.NewReason("device.nvidia_init", "cause", errWithout)
}

// Read reads nothing.
func (*Library) Read() (nvidia.Facts, error) { return nvidia.Facts{}, errWithout }

// Sample measures nothing.
func (*Library) Sample() ([]device.DeviceStats, error) { return nil, errWithout }

// Wait waits for nothing.
func (*Library) Wait(time.Duration) ([]nvidia.Happening, error) { return nil, errWithout }

// Close does nothing.
func (*Library) Close() {}
