//go:build cgo

package nvml

import (
	"math"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"nomadlike/plugins/device"
)

// pcieCount is the traffic that a card had counted at one moment.
type pcieCount struct {
	at             time.Time
	sent, received float64
}

// meter measures cards. It keeps what it has counted last, for rates.
type meter struct {
	lib *loaded
	mu  struct {
		sync.Mutex
		counts map[string]pcieCount // by card
	}
}

func newMeter(lib *loaded) *meter {
	m := &meter{lib: lib}
	m.begin()
	return m
}

// begin forgets what was counted: another life of the library may count anew.
func (m *meter) begin() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.counts = make(map[string]pcieCount)
}

// sample measures cards.
func (m *meter) sample(cards []handle) []device.DeviceStats {
	sampled := make([][]device.DeviceStats, len(cards))
	// At a time, not one after the other: one figure of old drivers takes
	// some twentieths of a second to measure.
	var all sync.WaitGroup
	limit := make(chan struct{}, sampleMany)
	for i, h := range cards {
		limit <- struct{}{}
		all.Go(func() {
			defer func() { <-limit }()
			sampled[i] = m.sampleCard(h)
		})
	}
	all.Wait()
	return slices.Concat(sampled...)
}

// sampleMany is how many cards are measured at a time.
const sampleMany = 8

// sampleCard measures a card and its MIG devices.
func (m *meter) sampleCard(h handle) []device.DeviceStats {
	stats := device.DeviceStats{ID: h.uuid, Gauges: make(map[string]float64, 32)}
	dev, set := h.device, func(key string, value float64) { stats.Gauges[key] = value }
	if use, ok := ask(m.lib, "nvmlDeviceGetUtilizationRates", dev.GetUtilizationRates); ok {
		set(device.GaugeUtilization, float64(use.Gpu)/100)
		set(device.GaugeMemoryUtilization, float64(use.Memory)/100)
	}
	m.sampleMemory(dev, set)
	if milliwatts, ok := ask(m.lib, "nvmlDeviceGetPowerUsage", dev.GetPowerUsage); ok {
		set(device.GaugePower, float64(milliwatts)/1000)
	}
	if milliwatts, ok := ask(m.lib, "nvmlDeviceGetEnforcedPowerLimit", dev.GetEnforcedPowerLimit); ok {
		set(device.GaugePowerLimit, float64(milliwatts)/1000)
	}
	if degrees, ok := ask(m.lib, "nvmlDeviceGetTemperature", func() (uint32, nvml.Return) { return dev.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		set(device.GaugeTemperature, float64(degrees))
	}
	if percent, ok := ask(m.lib, "nvmlDeviceGetFanSpeed", dev.GetFanSpeed); ok {
		set(device.GaugeFan, float64(percent)/100)
	}
	for key, clock := range map[string]nvml.ClockType{device.GaugeClockCompute: nvml.CLOCK_SM, device.GaugeClockMemory: nvml.CLOCK_MEM} {
		if megahertz, ok := ask(m.lib, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return dev.GetClockInfo(clock) }); ok {
			set(key, float64(megahertz)*1e6)
		}
	}
	const slowdowns = nvml.ClocksThrottleReasonHwSlowdown | nvml.ClocksThrottleReasonHwThermalSlowdown | nvml.ClocksThrottleReasonHwPowerBrakeSlowdown | swThermalSlowdown
	throttled := 0.0
	if m.lib.clockReasons(dev)&slowdowns != 0 {
		throttled = 1
	}
	set(device.GaugeThrottled, throttled)
	m.sampleErrors(dev, set)
	m.samplePCIe(dev, h.uuid, set)
	m.sampleFields(dev, h.uuid, set)
	stats.Processes = m.processes(dev)
	all := []device.DeviceStats{stats}
	for _, instance := range h.instances {
		all = append(all, m.sampleInstance(instance))
	}
	return all
}

// swThermalSlowdown is the driver's own slowdown by heat.
const swThermalSlowdown = 0x20

// sampleInstance measures a MIG device, which has few figures of its own.
func (m *meter) sampleInstance(h instanceHandle) device.DeviceStats {
	stats := device.DeviceStats{ID: h.uuid, Gauges: make(map[string]float64, 4)}
	m.sampleMemory(h.device, func(key string, value float64) { stats.Gauges[key] = value })
	stats.Processes = m.processes(h.device)
	return stats
}

func (m *meter) sampleMemory(dev nvml.Device, set func(string, float64)) {
	if memory, ok := ask(m.lib, "nvmlDeviceGetMemoryInfo_v2", dev.GetMemoryInfo_v2); ok {
		set(device.GaugeMemoryUsed, float64(memory.Used))
		set(device.GaugeMemoryTotal, float64(memory.Total))
		return
	}
	if memory, ok := ask(m.lib, "nvmlDeviceGetMemoryInfo", dev.GetMemoryInfo); ok {
		set(device.GaugeMemoryUsed, float64(memory.Used))
		set(device.GaugeMemoryTotal, float64(memory.Total))
	}
}

// sampleErrors measures what has gone wrong so far.
func (m *meter) sampleErrors(dev nvml.Device, set func(string, float64)) {
	for key, kind := range map[string]nvml.MemoryErrorType{
		device.GaugeECCCorrected: nvml.MEMORY_ERROR_TYPE_CORRECTED, device.GaugeECCUncorrected: nvml.MEMORY_ERROR_TYPE_UNCORRECTED,
	} {
		if count, ok := ask(m.lib, "nvmlDeviceGetTotalEccErrors", func() (uint64, nvml.Return) { return dev.GetTotalEccErrors(kind, nvml.VOLATILE_ECC) }); ok {
			set(key, float64(count))
		}
	}
	if m.lib.has("nvmlDeviceGetRemappedRows") {
		if corrected, uncorrected, pending, failed, ret := dev.GetRemappedRows(); ret == nvml.SUCCESS {
			set(device.GaugeRemappedCorrected, float64(corrected))
			set(device.GaugeRemappedUncorrected, float64(uncorrected))
			set(device.GaugeRemapPending, one(pending))
			set(device.GaugeRemapFailed, one(failed))
		}
	}
	if pending, ok := ask(m.lib, "nvmlDeviceGetRetiredPagesPendingStatus", dev.GetRetiredPagesPendingStatus); ok {
		set(device.GaugeRetiredPending, one(pending == nvml.FEATURE_ENABLED))
	}
}

func one(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// samplePCIe measures the PCI link.
func (m *meter) samplePCIe(dev nvml.Device, uuid string, set func(string, float64)) {
	if generation, ok := ask(m.lib, "nvmlDeviceGetCurrPcieLinkGeneration", dev.GetCurrPcieLinkGeneration); ok {
		set(device.GaugePCIeGeneration, float64(generation))
	}
	if width, ok := ask(m.lib, "nvmlDeviceGetCurrPcieLinkWidth", dev.GetCurrPcieLinkWidth); ok {
		set(device.GaugePCIeWidth, float64(width))
	}
	if replays, ok := ask(m.lib, "nvmlDeviceGetPcieReplayCounter", dev.GetPcieReplayCounter); ok {
		set(device.GaugePCIeReplays, float64(replays))
	}
	bytes := m.lib.fields(dev, nvml.FI_DEV_PCIE_COUNT_TX_BYTES, nvml.FI_DEV_PCIE_COUNT_RX_BYTES)
	if bytes[0] != nil && bytes[1] != nil {
		m.pcieRate(uuid, pcieCount{at: time.Now(), sent: *bytes[0], received: *bytes[1]}, set)
		return
	}
	for key, counter := range map[string]nvml.PcieUtilCounter{device.GaugePCIeSent: nvml.PCIE_UTIL_TX_BYTES, device.GaugePCIeReceived: nvml.PCIE_UTIL_RX_BYTES} {
		if kilobytes, ok := ask(m.lib, "nvmlDeviceGetPcieThroughput", func() (uint32, nvml.Return) { return dev.GetPcieThroughput(counter) }); ok {
			set(key, float64(kilobytes)*1024)
		}
	}
}

// pcieRate makes rates of counts, from the second measurement on. A counter
// that begins anew has none for once.
func (m *meter) pcieRate(uuid string, now pcieCount, set func(string, float64)) {
	m.mu.Lock()
	before, known := m.mu.counts[uuid]
	m.mu.counts[uuid] = now
	m.mu.Unlock()
	seconds := now.at.Sub(before.at).Seconds()
	if known && seconds > 0 && now.sent >= before.sent && now.received >= before.received {
		set(device.GaugePCIeSent, (now.sent-before.sent)/seconds)
		set(device.GaugePCIeReceived, (now.received-before.received)/seconds)
	}
}

// sampleFields measures what only comes by number.
func (m *meter) sampleFields(dev nvml.Device, _ string, set func(string, float64)) {
	const kibi = 1024
	values := m.lib.fields(dev, append([]uint32{
		nvml.FI_DEV_MEMORY_TEMP, nvml.FI_DEV_TOTAL_ENERGY_CONSUMPTION,
		nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_TX, nvml.FI_DEV_NVLINK_THROUGHPUT_DATA_RX,
	}, linkErrorFields()...)...)
	for i, into := range []struct {
		key    string
		factor float64
	}{{device.GaugeMemoryTemperature, 1}, {device.GaugeEnergy, 1e-3}, {device.GaugeNVLinkSent, kibi}, {device.GaugeNVLinkReceived, kibi}} {
		if values[i] != nil {
			set(into.key, *values[i]*into.factor)
		}
	}
	if errors, known := sumOf(values[4:7]); known {
		set(device.GaugeNVLinkErrors, errors)
	}
	if values[7] != nil {
		set(device.GaugeNVLinkRecoveries, *values[7])
	}
}

// unknownMemory is the library's word for memory that it cannot tell.
const unknownMemory = math.MaxUint64

// processes lists who has the card open, each process once.
func (m *meter) processes(dev nvml.Device) []device.Process {
	var all []device.Process
	add := func(listed []nvml.ProcessInfo, ok bool) {
		if !ok {
			return
		}
		for _, each := range listed {
			p := device.Process{PID: int(each.Pid)}
			if each.UsedGpuMemory != unknownMemory {
				p.Memory = int64(each.UsedGpuMemory)
			}
			at := slices.IndexFunc(all, func(q device.Process) bool { return q.PID == p.PID })
			if at < 0 {
				all = append(all, p)
			} else {
				all[at].Memory = max(all[at].Memory, p.Memory)
			}
		}
	}
	if m.lib.has("nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses") {
		listed, ret := dev.GetComputeRunningProcesses()
		add(listed, ret == nvml.SUCCESS)
	}
	if m.lib.has("nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses") {
		listed, ret := dev.GetGraphicsRunningProcesses()
		add(listed, ret == nvml.SUCCESS)
	}
	return device.BoundProcesses(all)
}
