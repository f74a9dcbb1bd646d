//go:build cgo

package nvml

import (
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/nomadlike/structs"
)

// loaded is the shared library in this process, and which functions it has:
// calling one that is missing would end the process.
type loaded struct {
	path string
	mu   struct {
		sync.Mutex
		symbols *dl.DynamicLibrary // nil: not loaded
		known   map[string]bool    // functions that were looked up
	}
}

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

// load loads the library. The reason says why it cannot be used; then it is not
// loaded.
func (l *loaded) load() *structs.Reason {
	// The binding's calls are bound to the library's functions for the life of
	// the process, so it must never be unmapped: Open after Close finds it at
	// its place. A library of another version needs a new process.
	symbols := dl.New(l.path, dl.RTLD_LAZY|dl.RTLD_GLOBAL|dl.RTLD_NODELETE)
	if err := symbols.Open(); err != nil {
		return structs.NewReason("device.nvidia_no_library", "library", l.path, "cause", err)
	}
	l.mu.Lock()
	l.mu.symbols, l.mu.known = symbols, make(map[string]bool)
	l.mu.Unlock()
	for _, versions := range needed() {
		if !l.has(versions...) {
			l.unload()
			return structs.NewReason("device.nvidia_symbol_missing", "library", l.path, "symbol", versions[0])
		}
	}
	return nil
}

func (l *loaded) unload() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.symbols != nil {
		_ = l.mu.symbols.Close() // there is nothing to be done about it
	}
	l.mu.symbols, l.mu.known = nil, nil
}

// has reports whether the library has any of some functions.
func (l *loaded) has(names ...string) bool {
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
func (l *loaded) text(ret nvml.Return) string {
	if l.has("nvmlErrorString") {
		return fmt.Sprintf("%s (%d)", ret.Error(), int(ret))
	}
	return fmt.Sprintf("NVML error %d", int(ret))
}

// ask makes a call if the library has the function. False: it has not, or the
// card cannot say.
func ask[T any](l *loaded, name string, call func() (T, nvml.Return)) (T, bool) {
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
