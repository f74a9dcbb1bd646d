package dcmi

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/ascend"
)

// Codes that the library returns.
const (
	success      = 0
	notSupported = -8255
)

// Limits of what one node is believed to have.
const (
	cardsMax  = 64
	chipsMax  = 8 // of each card
	codesMax  = 128
	linksMax  = 64   // chips for which links are asked about
	bufferLen = 1024 // of any result; 32 processes take the half
)

// Library is the vendor's library. It implements ascend.Library.
type Library struct {
	path string

	mu struct {
		sync.Mutex
		handle  uintptr            // 0: not loaded
		symbols map[string]uintptr // looked up; 0: the library has none
		chips   []ascend.Key       // of the newest Read
	}
}

var _ ascend.Library = (*Library)(nil)

// New gives the library at path, which is a file or a name that the dynamic
// loader finds.
func New(path string) *Library { return &Library{path: path} }

// Source names the library.
func (*Library) Source() string { return "dcmi" }

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	handle, err := purego.Dlopen(l.path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return structs.NewReason("device.ascend_no_library", "library", l.path, "cause", err)
	}
	l.mu.Lock()
	l.mu.handle, l.mu.symbols = handle, make(map[string]uintptr)
	l.mu.Unlock()
	for _, needed := range []string{"dcmi_init", "dcmi_get_device_health"} {
		if l.symbol(needed) == 0 {
			l.Close()
			return structs.NewReason("device.ascend_symbol_missing", "library", l.path, "symbol", needed)
		}
	}
	if l.symbol("dcmi_get_card_list") == 0 && l.symbol("dcmi_get_card_num_list") == 0 {
		l.Close()
		return structs.NewReason("device.ascend_symbol_missing", "library", l.path, "symbol", "dcmi_get_card_list")
	}
	if ret := l.call("dcmi_init"); ret != success {
		l.Close()
		return structs.NewReason("device.ascend_init", "cause", describe(ret))
	}
	return nil
}

// Close forgets the library. It stays mapped: unloading one that has threads
// of its own ends the process.
func (l *Library) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.handle, l.mu.symbols, l.mu.chips = 0, nil, nil
}

// symbol gives the address of a function; 0: the library has none.
func (l *Library) symbol(name string) uintptr {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mu.handle == 0 {
		return 0
	}
	address, looked := l.mu.symbols[name]
	if !looked {
		found, err := purego.Dlsym(l.mu.handle, name)
		if err != nil {
			found = 0
		}
		address = found
		l.mu.symbols[name] = address
	}
	return address
}

// call makes a call with integers and buffers as arguments. A function that is
// missing answers notSupported.
func (l *Library) call(name string, arguments ...any) int {
	address := l.symbol(name)
	if address == 0 {
		return notSupported
	}
	words := make([]uintptr, len(arguments))
	var pinned runtime.Pinner
	defer pinned.Unpin()
	for i, argument := range arguments {
		switch a := argument.(type) {
		case int:
			words[i] = uintptr(a)
		case *buffer:
			pinned.Pin(a)
			words[i] = uintptr(unsafe.Pointer(a))
		default:
			panic(fmt.Sprintf("call %s with a %T", name, argument)) // a mistake in this package
		}
	}
	ret, _, _ := purego.SyscallN(address, words...)
	return int(int32(ret))
}

// describe says what a code of the library means.
func describe(code int) string {
	switch code {
	case -8001:
		return "invalid parameter (-8001)"
	case -8002:
		return "not permitted (-8002)"
	case -8005:
		return "internal error (-8005)"
	case -8006:
		return "time out (-8006)"
	case -8007, -8008:
		return fmt.Sprintf("no such device (%d)", code)
	case -8012:
		return "device not ready (-8012)"
	case -8013:
		return "not supported in containers (-8013)"
	case notSupported:
		return "not supported (-8255)"
	}
	return fmt.Sprintf("DCMI error %d", code)
}
