// Package cndev opens the vendor's library libcndev.so for the cambricon plugin.
//
// Flow: Open loads the library, and finds which version of its structures it
// speaks; Read and Sample call the functions that are there. A function that is
// missing, and a figure that a card does not have, are left out.
//
// Limits: it runs in the plugin's own process only, since the library may hang
// and crash.
package cndev

import (
	"fmt"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/plugins/cambricon"
	"nomadlike/plugins/device"
	"nomadlike/plugins/device/card"
	"nomadlike/plugins/device/clib"
	"nomadlike/plugins/device/pcie"
)

// Codes that the library returns.
const (
	success            = 0
	unsupportedVersion = 3
	notSupported       = 10
)

// Limits of what one node is believed to have.
const (
	cardsMax     = 128
	linksMax     = 32
	processesMax = 256
)

// Library is the vendor's library. It implements card.Library.
type Library struct {
	clib.Library

	mu struct {
		sync.Mutex
		version int         // of the structures
		handles map[int]int // of the cards of the newest Read
	}
}

var _ card.Library = (*Library)(nil)

// New returns the library at path, which is a file or a name that the dynamic
// loader finds.
func New(path string) *Library { return &Library{Library: clib.Library{Path: path}} }

// Source names the library.
func (*Library) Source() string { return "cndev" }

// Open loads and initialises the library.
func (l *Library) Open() *structs.Reason {
	return cambricon.Vendor().OpenLibrary(l, l.Path, []string{"cndevInit", "cndevGetDeviceCount", "cndevGetUUID"}, func() (cause string) {
		ret, _ := l.Call("cndevInit", 0)
		if ret == success {
			ret = l.agree()
		}
		if ret != success {
			cause = describe(ret)
		}
		return cause
	})
}

// agree finds the newest version of the structures that the library speaks.
// What is read here lies in the same place in all of them.
func (l *Library) agree() int {
	ret := notSupported
	for _, version := range []int{6, 5} {
		l.mu.Lock()
		l.mu.version = version
		l.mu.Unlock()
		var b clib.Buffer
		if ret = l.call("cndevGetDeviceCount", &b); ret != unsupportedVersion {
			return ret
		}
	}
	return ret
}

// Close releases the driver.
func (l *Library) Close() {
	l.Call("cndevRelease")
	l.Unload()
}

// call makes a call that fills a structure whose first field is its version.
func (l *Library) call(name string, b *clib.Buffer, more ...any) int {
	l.mu.Lock()
	version := l.mu.version
	l.mu.Unlock()
	*b = clib.Buffer{}
	b.PutU32(0, uint32(version))
	ret, there := l.Call(name, append([]any{b}, more...)...)
	if !there {
		return notSupported
	}
	return ret
}

// ask is call for a card; false: the library has not the function, or the card
// cannot say.
func (l *Library) ask(name string, b *clib.Buffer, handle int, more ...any) bool {
	return l.call(name, b, append([]any{handle}, more...)...) == success
}

// Read asks for everything about the node's cards.
func (l *Library) Read() (card.Facts, error) {
	var facts card.Facts
	var b clib.Buffer
	if l.call("cndevGetLibVersion", &b) == success {
		facts.Library = versionAt(&b, 4)
	}
	if ret := l.call("cndevGetDeviceCount", &b); ret != success {
		return facts, fmt.Errorf("count MLU cards: %s", describe(ret))
	}
	handles := make(map[int]int)
	for index := range min(b.I32(4), cardsMax) {
		handle := index // before libraries had handles
		var h clib.Buffer
		if ret, there := l.Call("cndevGetDeviceHandleByIndex", index, &h); there && ret == success {
			handle = h.I32(0)
		}
		handles[index] = handle
		if facts.Driver == "" && l.ask("cndevGetVersionInfo", &b, handle) {
			facts.Driver = versionAt(&b, 16)
		}
		facts.Cards = append(facts.Cards, l.readCard(index, handle))
	}
	l.mu.Lock()
	l.mu.handles = handles
	l.mu.Unlock()
	return facts, nil
}

func versionAt(b *clib.Buffer, offset int) string {
	return fmt.Sprintf("%d.%d.%d", b.U32(offset), b.U32(offset+4), b.U32(offset+8))
}

// readCard asks one card. A card that does not answer is given with the reason
// instead.
func (l *Library) readCard(index, handle int) card.Card {
	c := card.Card{Index: index, Minor: index}
	var b clib.Buffer
	if ret := l.call("cndevGetUUID", &b, handle); ret != success {
		c.Unreadable = describe(ret)
	} else if uuid := b.Text(4, 37); uuid != "" {
		c.ID = "MLU-" + uuid
	}
	if l.ask("cndevGetPCIeInfo", &b, handle) {
		c.Bus = pcie.Normal(fmt.Sprintf("%04x:%02x:%02x.%x", b.U32(16), b.U32(20), b.U32(24), b.U32(28)))
	}
	c.Name = l.CallText("cndevGetCardNameStringByDevId", handle)
	if l.ask("cndevGetCardSN", &b, handle) {
		c.Serial = fmt.Sprintf("%x", b.U64(8))
	}
	if l.ask("cndevGetVersionInfo", &b, handle) {
		c.Firmware = versionAt(&b, 4)
	}
	c.Memory, _, _ = l.memory(handle)
	if l.ask("cndevGetPowerInfo", &b, handle) {
		c.PowerLimit = max(b.I32(8), 0)
	}
	if l.ask("cndevGetCurrentPCIInfo", &b, handle) {
		c.Width = max(b.I32(8), 0)
	}
	if l.ask("cndevGetECCInfo", &b, handle) {
		uncorrected := b.U64(48)
		c.ECC = &uncorrected
	}
	l.readLinks(&c, handle)
	l.readHealth(&c, handle)
	return c
}

// readLinks asks which cards are reached over MLU-Link.
func (l *Library) readLinks(c *card.Card, handle int) {
	ports, there := l.Call("cndevGetMLULinkPortNumber", handle)
	if !there {
		return
	}
	for port := range min(max(ports, 0), linksMax) {
		var b clib.Buffer
		if !l.ask("cndevGetMLULinkStatus", &b, handle, port) || b.I32(4) != 1 {
			continue
		}
		c.Links++
		if l.ask("cndevGetMLULinkRemoteInfo", &b, handle, port) {
			if uuid := b.Text(48, 37); uuid != "" {
				c.Linked = append(c.Linked, "MLU-"+uuid)
			}
		}
	}
}

// memory returns total and used bytes.
func (l *Library) memory(handle int) (total, used uint64, ok bool) {
	var b clib.Buffer
	if ret, there := l.Call("cndevGetMemoryUsageV2", &b, handle); there && ret == success {
		return b.U64(0) << 20, b.U64(8) << 20, true
	}
	if l.ask("cndevGetMemoryUsage", &b, handle) {
		return b.U64(8) << 20, b.U64(16) << 20, true
	}
	return 0, 0, false
}

// Sample measures all cards of the newest Read.
func (l *Library) Sample() (map[int]card.Sample, error) {
	l.mu.Lock()
	handles := l.mu.handles
	l.mu.Unlock()
	samples := make(map[int]card.Sample, len(handles))
	for index, handle := range handles {
		samples[index] = l.sample(handle)
	}
	return samples, nil
}

func (l *Library) sample(handle int) card.Sample {
	gauges := make(map[string]float64, 16)
	var b clib.Buffer
	if total, used, ok := l.memory(handle); ok {
		gauges[device.GaugeMemoryTotal], gauges[device.GaugeMemoryUsed] = float64(total), float64(used)
	}
	if l.ask("cndevGetDeviceUtilizationInfo", &b, handle) && b.U32(4) <= 100 {
		gauges[device.GaugeUtilization] = float64(b.U32(4)) / 100
	}
	if l.ask("cndevGetPowerInfo", &b, handle) {
		gauges[device.GaugePower], gauges[device.GaugePowerLimit] = float64(b.I32(4)), float64(b.I32(8))
	}
	if l.ask("cndevGetTemperatureInfo", &b, handle) {
		gauges[device.GaugeTemperature] = float64(b.I32(120))
		if memory := b.I32(132); memory > 0 {
			gauges[device.GaugeMemoryTemperature] = float64(memory)
		}
	}
	if l.ask("cndevGetFrequencyInfo", &b, handle) {
		gauges[device.GaugeClockCompute], gauges[device.GaugeClockMemory] = float64(b.I32(4))*1e6, float64(b.I32(8))*1e6
	}
	if l.ask("cndevGetECCInfo", &b, handle) {
		gauges[device.GaugeECCCorrected], gauges[device.GaugeECCUncorrected] = float64(b.U64(40)), float64(b.U64(48))
	}
	if l.ask("cndevGetCurrentPCIInfo", &b, handle) {
		gauges[device.GaugePCIeGeneration], gauges[device.GaugePCIeWidth] = float64(b.I32(4)), float64(b.I32(8))
	}
	return card.Sample{Gauges: gauges, Processes: l.processes(handle)}
}

// processes lists who uses the card.
func (l *Library) processes(handle int) []device.Process {
	const size = 24
	var number clib.Buffer
	list := make(clib.Bytes, size*processesMax)
	l.mu.Lock()
	list.PutU32(0, uint32(l.mu.version))
	l.mu.Unlock()
	number.PutU32(0, processesMax)
	if ret, there := l.Call("cndevGetProcessInfo", &number, list, handle); !there || ret != success {
		return nil
	}
	var all []device.Process
	for i := range min(number.I32(0), processesMax) {
		if pid := list.I32(size*i + 4); pid > 0 {
			all = append(all, device.Process{PID: pid, Memory: int64(list.U64(size*i+8)) << 10})
		}
	}
	return all
}

// describe says what a code of the library means.
func describe(code int) string {
	return clib.Describe("CNDev", map[int]string{
		1: "no driver", 2: "the driver is too old", unsupportedVersion: "unsupported version of the interface", 4: "not initialised", 5: "invalid argument",
		6: "no such device", 7: "unknown error", 8: "out of memory", notSupported: "not supported", 12: "no devices", 13: "not permitted", 17: "time out",
	}, code)
}

// Serve runs the plugin for the agent that has started this process, with the
// vendor's library, or its tool where that cannot be loaded.
func Serve() {
	v := cambricon.Vendor()
	v.Serve(func(s *card.Settings) []card.Library {
		return []card.Library{New(s.Library), &cambricon.Tool{Tool: v.ToolOf(s)}}
	})
}
