// Package amdsmi opens the vendor's library libamd_smi.so for the amd plugin.
//
// Flow: Open loads the library; Read and Sample call the functions that are
// there. A function that is missing, and a figure that a card does not have, are
// left out.
//
// Limits: it runs in the plugin's own process only, since the library may hang
// and crash. Structures of the library change from release to release: only
// functions that fill numbers, or structures whose beginning has never changed,
// are called.
package amdsmi

import (
	"fmt"
	"strconv"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/amd"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/clib"
)

// Numbers of the library's interface.
const (
	success, notSupported, notImplemented = 0, 2, 3

	initGPUs, memoryVRAM          = 1 << 1, 0
	sensorJunction, sensorMemory  = 1, 2
	metricCurrent, metricCritical = 0, 5
	pagePending, pageUnreserved   = 1, 2
	pageRecord, pagesMax          = 24, 4096
	handlesMax, nameLen           = 64, 64
	milliFrom                     = 1000 // older releases give thousandths of a degree, and no card is that hot
)

// Library is the vendor's library. It implements card.Library.
type Library struct {
	clib.Library
	amd.Machine

	mu struct {
		sync.Mutex
		facts   card.Facts         // of the newest Read
		handles map[string]uintptr // of its cards, by PCI address
	}
}

var _ card.Library = (*Library)(nil)

// New returns the library at path, which is a file or a name that the dynamic
// loader finds; root stands in for "/" where the kernel is asked.
func New(path, root string) *Library {
	return &Library{Library: clib.Library{Path: path}, Machine: amd.Machine{Root: root}}
}

// Source names the library.
func (*Library) Source() string { return "amdsmi" }

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	needed := []string{"amdsmi_init", "amdsmi_get_socket_handles", "amdsmi_get_processor_handles", "amdsmi_get_gpu_device_bdf"}
	return amd.Vendor().OpenLibrary(l, l.Path, needed, func() (cause string) {
		if ret := l.call("amdsmi_init", initGPUs); ret != success {
			cause = describe(ret)
		}
		return cause
	})
}

// Close releases the driver.
func (l *Library) Close() {
	l.call("amdsmi_shut_down")
	l.Unload()
}

// call makes a call. A function that is missing answers notSupported.
func (l *Library) call(name string, arguments ...any) int {
	ret, there := l.Call(name, arguments...)
	if !there {
		return notSupported
	}
	return ret
}

// number makes a call that fills one number of 64 bits behind the arguments;
// false: the library has not the function, or the card cannot say.
func (l *Library) number(name string, arguments ...any) (uint64, bool) {
	var b clib.Buffer
	ret := l.call(name, append(arguments, &b)...)
	return b.U64(0), ret == success
}

// list asks for handles, of sockets or of the processors of one.
func (l *Library) list(name string, of ...any) ([]uintptr, int) {
	var number clib.Buffer
	handles := make(clib.Bytes, 8*handlesMax)
	number.PutU32(0, handlesMax)
	if ret := l.call(name, append(of, &number, handles)...); ret != success {
		return nil, ret
	}
	var all []uintptr
	for i := range min(number.I32(0), handlesMax) {
		all = append(all, uintptr(handles.U64(8*i)))
	}
	return all, success
}

// Read asks for everything about the node's cards.
func (l *Library) Read() (card.Facts, error) {
	var facts card.Facts
	var b clib.Buffer
	if l.call("amdsmi_get_lib_version", &b) == success {
		facts.Library = fmt.Sprintf("%d.%d.%d", b.U32(0), b.U32(4), b.U32(8))
	}
	sockets, ret := l.list("amdsmi_get_socket_handles")
	if ret != success {
		return facts, fmt.Errorf("list AMD cards: %s", describe(ret))
	}
	handles := make(map[string]uintptr)
	for _, socket := range sockets {
		processors, _ := l.list("amdsmi_get_processor_handles", socket)
		for _, handle := range processors {
			at, ok := l.number("amdsmi_get_gpu_device_bdf", handle)
			if !ok {
				continue // a processor that is no card
			}
			bus := fmt.Sprintf("%04x:%02x:%02x.%x", at>>16, at>>8&0xff, at>>3&0x1f, at&7)
			handles[bus] = handle
			facts.Cards = append(facts.Cards, l.readCard(len(facts.Cards), bus, handle))
		}
	}
	l.Complete(&facts)
	l.mu.Lock()
	l.mu.facts, l.mu.handles = facts, handles
	l.mu.Unlock()
	return facts.Clone(), nil
}

// readCard asks one card. A card that does not answer is given with the reason
// instead.
func (l *Library) readCard(index int, bus string, handle uintptr) card.Card {
	c := card.Card{Index: index, Bus: bus}
	var b clib.Buffer
	ret := l.call("amdsmi_get_gpu_memory_total", handle, memoryVRAM, &b)
	if ret != success && ret != notSupported && ret != notImplemented {
		c.Unreadable = describe(ret)
		return c
	}
	c.Memory = b.U64(0)
	var length clib.Buffer
	length.PutU32(0, clib.BufferLen)
	if b = (clib.Buffer{}); l.call("amdsmi_get_gpu_device_uuid", handle, &length, &b) == success {
		c.Serial = b.Text(0, nameLen)
		c.ID = c.Serial // until the kernel says by what ROCm knows it
	}
	if b = (clib.Buffer{}); l.call("amdsmi_get_gpu_asic_info", handle, &b) == success {
		c.Name = b.Text(0, nameLen)
	}
	if b = (clib.Buffer{}); l.call("amdsmi_get_gpu_total_ecc_count", handle, &b) == success {
		uncorrected := b.U64(8)
		c.ECC = &uncorrected
	}
	l.findPages(&c, handle)
	if b = (clib.Buffer{}); l.call("amdsmi_gpu_xgmi_error_status", handle, &b) == success && b.U32(0) > 0 {
		c.Find("link-errors", "")
	}
	now, hot := l.temperature(handle, sensorJunction, metricCurrent), l.temperature(handle, sensorJunction, metricCritical)
	if hot > 0 && now >= hot {
		c.Find("thermal", fmt.Sprintf("%.0f °C", now))
	}
	return c
}

// findPages looks for pages of memory that wait to be taken out of use, or
// cannot be.
func (l *Library) findPages(c *card.Card, handle uintptr) {
	var number clib.Buffer
	pages := make(clib.Bytes, pageRecord*pagesMax)
	number.PutU32(0, pagesMax)
	if l.call("amdsmi_get_gpu_bad_page_info", handle, &number, pages) != success {
		return
	}
	states := make(map[uint32]int)
	for i := range min(number.I32(0), pagesMax) {
		states[pages.U32(pageRecord*i+16)]++
	}
	if n := states[pagePending]; n > 0 {
		c.Find("repair-pending", strconv.Itoa(n))
	}
	if n := states[pageUnreserved]; n > 0 {
		c.Find("repair-failed", strconv.Itoa(n))
	}
}

// temperature asks a sensor, in degrees; 0: it cannot say.
func (l *Library) temperature(handle uintptr, sensor, metric int) float64 {
	value, ok := l.number("amdsmi_get_temp_metric", handle, sensor, metric)
	degrees := float64(int64(value))
	if degrees >= milliFrom {
		degrees /= milliFrom
	}
	if !ok || degrees < 0 {
		return 0
	}
	return degrees
}

// Sample measures all cards of the newest Read.
func (l *Library) Sample() (map[int]card.Sample, error) {
	l.mu.Lock()
	facts, handles := l.mu.facts, l.mu.handles
	l.mu.Unlock()
	return l.Measure(&facts, func(bus string) map[string]float64 { return l.gauges(handles[bus]) }), nil
}

func (l *Library) gauges(handle uintptr) map[string]float64 {
	gauges := make(map[string]float64, 16)
	for gauge, name := range map[string]string{device.GaugeMemoryTotal: "amdsmi_get_gpu_memory_total", device.GaugeMemoryUsed: "amdsmi_get_gpu_memory_usage"} {
		if bytes, ok := l.number(name, handle, memoryVRAM); ok {
			gauges[gauge] = float64(bytes)
		}
	}
	var b clib.Buffer
	if l.call("amdsmi_get_gpu_activity", handle, &b) == success {
		for gauge, percent := range map[string]uint32{device.GaugeUtilization: b.U32(0), device.GaugeMemoryUtilization: b.U32(4)} {
			if percent <= 100 {
				gauges[gauge] = float64(percent) / 100
			}
		}
	}
	for gauge, sensor := range map[string]int{device.GaugeTemperature: sensorJunction, device.GaugeMemoryTemperature: sensorMemory} {
		if degrees := l.temperature(handle, sensor, metricCurrent); degrees > 0 {
			gauges[gauge] = degrees
		}
	}
	if b = (clib.Buffer{}); l.call("amdsmi_get_gpu_total_ecc_count", handle, &b) == success {
		gauges[device.GaugeECCCorrected], gauges[device.GaugeECCUncorrected] = float64(b.U64(0)), float64(b.U64(8))
	}
	return gauges
}

// describe says what a code of the library means.
func describe(code int) string {
	return clib.Describe("AMD SMI", map[int]string{
		1: "invalid argument", notSupported: "not supported", 4: "a part of the library cannot be loaded", 6: "error of the graphics driver", 8: "time out",
		10: "not permitted", 12: "input or output error", 30: "busy", 31: "no such device", 32: "not initialised", 40: "no data",
	}, code)
}

// Serve runs the plugin for the agent that has started this process, with the
// vendor's library, or its tool where that cannot be loaded.
func Serve() {
	v := amd.Vendor()
	v.Serve(func(s *card.Settings) []card.Library {
		return []card.Library{New(s.Library, s.Root), &amd.Tool{Machine: amd.Machine{Root: s.Root}, Tool: v.ToolOf(s)}}
	})
}
