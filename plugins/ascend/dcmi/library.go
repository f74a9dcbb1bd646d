package dcmi

import (
	"fmt"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/ascend"
	"nomadlike/plugins/device/clib"
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
	linksMax  = 64 // chips for which links are asked about
	bufferLen = clib.BufferLen
)

// buffer takes a result of the library; 32 processes take the half.
type buffer = clib.Buffer

// Library is the vendor's library. It implements ascend.Library.
type Library struct {
	clib.Library

	mu struct {
		sync.Mutex
		chips []ascend.Key // of the newest Read
	}
}

var _ ascend.Library = (*Library)(nil)

// New returns the library at path, which is a file or a name that the dynamic
// loader finds.
func New(path string) *Library { return &Library{Library: clib.Library{Path: path}} }

// Source names the library.
func (*Library) Source() string { return "dcmi" }

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	if err := l.Load(); err != nil {
		return structs.NewReason("device.ascend_no_library", "library", l.Path, "cause", err)
	}
	missing := l.Missing("dcmi_init", "dcmi_get_device_health")
	if missing == "" && !l.Has("dcmi_get_card_num_list") {
		missing = l.Missing("dcmi_get_card_list")
	}
	if missing != "" {
		l.Close()
		return structs.NewReason("device.ascend_symbol_missing", "library", l.Path, "symbol", missing)
	}
	if ret := l.call("dcmi_init"); ret != success {
		l.Close()
		return structs.NewReason("device.ascend_init", "cause", describe(ret))
	}
	return nil
}

// Close forgets the library.
func (l *Library) Close() {
	l.Unload()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.chips = nil
}

// call makes a call. A function that is missing answers notSupported.
func (l *Library) call(name string, arguments ...any) int {
	ret, there := l.Call(name, arguments...)
	if !there {
		return notSupported
	}
	return ret
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
