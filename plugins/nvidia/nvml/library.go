//go:build cgo

package nvml

import (
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/nvidia"
)

// Library is the vendor's library. It implements nvidia.Library.
type Library struct {
	path string
	api  nvml.Interface

	mu struct {
		sync.Mutex
		symbols *dl.DynamicLibrary
		known   map[string]bool // functions that were looked up
		cards   []handle        // of the newest Read
		changed bool            // cards since the last registration for events
		counts  map[string]pcieCount
	}
	events nvml.EventSet // of Wait alone; nil: not made yet
}

// handle is how the library names a card, with what it said about itself.
type handle struct {
	device    nvml.Device
	uuid      string
	instances []instanceHandle
}

type instanceHandle struct {
	device nvml.Device
	uuid   string
}

var _ nvidia.Library = (*Library)(nil)

// New returns the library at path, which is a file or a name that the dynamic
// loader finds.
func New(path string) *Library {
	return &Library{path: path, api: nvml.New(nvml.WithLibraryPath(path))}
}

// cardsMax bounds what one node is believed to have.
const cardsMax = 256

// needed are the functions that nothing works without. Of each line one is
// enough: they are versions of one function.
func needed() [][]string {
	return [][]string{
		{"nvmlInit_v2", "nvmlInit"},
		{"nvmlShutdown"},
		{"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
		{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
		{"nvmlDeviceGetUUID"},
	}
}

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	// The binding's calls are bound to the library's functions for the life of
	// the process, so it must never be unmapped: Open after Close finds it at
	// its place. A library of another version needs a new process.
	symbols := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL|dl.RTLD_NODELETE)
	if err := symbols.Open(); err != nil {
		return structs.NewReason("device.nvidia_no_library", "library", l.path, "cause", err)
	}
	l.mu.Lock()
	l.mu.symbols, l.mu.known = symbols, make(map[string]bool)
	l.mu.counts = make(map[string]pcieCount)
	l.mu.Unlock()
	for _, versions := range needed() {
		if !l.has(versions...) {
			l.unload()
			return structs.NewReason("device.nvidia_symbol_missing", "library", l.path, "symbol", versions[0])
		}
	}
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
		text := l.text(ret)
		l.unload()
		return structs.NewReason("device.nvidia_init", "cause", text)
	}
}

// Close gives the driver back.
func (l *Library) Close() {
	if l.events != nil && l.has("nvmlEventSetFree") {
		l.events.Free()
	}
	l.events = nil
	l.api.Shutdown()
	l.unload()
}

func (l *Library) unload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.symbols != nil {
		_ = l.mu.symbols.Close() // there is nothing to be done about it
	}
	l.mu.symbols, l.mu.known, l.mu.cards = nil, nil, nil
}

// has reports whether the library has any of some functions.
func (l *Library) has(names ...string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.symbols == nil {
		return false
	}
	for _, name := range names {
		found, looked := l.mu.known[name]
		if !looked {
			found = l.mu.symbols.Lookup(name) == nil
			l.mu.known[name] = found
		}
		if found {
			return true
		}
	}
	return false
}

// text says what a return value means. The library's own words are behind a
// function that may be missing, too.
func (l *Library) text(ret nvml.Return) string {
	if l.has("nvmlErrorString") {
		return fmt.Sprintf("%s (%d)", ret.Error(), int(ret))
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

// ask makes a call if the library has the function. False: it has not, or the
// card cannot say.
func ask[T any](l *Library, name string, call func() (T, nvml.Return)) (T, bool) {
	var none T
	if !l.has(name) {
		return none, false
	}
	value, ret := call()
	if ret != nvml.SUCCESS {
		return none, false
	}
	return value, true
}

// or returns a value, or its zero when there is none.
func or[T any](value T, _ bool) T { return value }
