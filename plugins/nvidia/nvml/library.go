//go:build cgo

package nvml

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/device"
	"nomadlike/plugins/nvidia"
)

// Library is the vendor's library. It implements nvidia.Library by its parts:
// one asks what cards are, one what they do, one waits for what happens to
// them.
type Library struct {
	api    nvml.Interface
	loaded *loaded
	cards  *roster
	reader reader
	meter  *meter
	events *listener
}

var _ nvidia.Library = (*Library)(nil)

// New returns the library at path, which is a file or a name that the dynamic
// loader finds.
func New(path string) *Library {
	api, lib, cards := nvml.New(nvml.WithLibraryPath(path)), &loaded{path: path}, &roster{}
	return &Library{
		api: api, loaded: lib, cards: cards,
		reader: reader{api: api, lib: lib}, meter: newMeter(lib), events: &listener{api: api, lib: lib, cards: cards},
	}
}

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	if reason := l.loaded.load(); reason != nil {
		return reason
	}
	l.meter.begin()
	switch ret := l.api.Init(); ret {
	case nvml.SUCCESS:
		return nil
	case nvml.ERROR_DRIVER_NOT_LOADED:
		l.unload()
		return structs.NewReason("device.nvidia_no_driver")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		l.unload()
		return structs.NewReason("device.nvidia_version_mismatch")
	default:
		text := l.loaded.text(ret)
		l.unload()
		return structs.NewReason("device.nvidia_init", "cause", text)
	}
}

// Close releases the driver.
func (l *Library) Close() {
	l.events.close()
	l.api.Shutdown()
	l.unload()
}

// unload lets go of the library and of the cards that it named.
func (l *Library) unload() {
	l.loaded.unload()
	l.cards.clear()
}

// Read asks for everything about the node and its cards.
func (l *Library) Read() (nvidia.Facts, error) {
	facts, handles, err := l.reader.read()
	if err == nil {
		l.cards.replace(handles)
	}
	return facts, err
}

// Sample measures all cards of the newest Read.
func (l *Library) Sample() ([]device.DeviceStats, error) {
	return l.meter.sample(l.cards.newest()), nil
}

// Wait blocks until cards report events, at most for limit.
func (l *Library) Wait(limit time.Duration) ([]nvidia.Happening, error) { return l.events.wait(limit) }
