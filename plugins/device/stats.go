package device

import "time"

// Stats is one measurement of all devices of a plugin.
type Stats struct {
	At      time.Time     `json:"at"`
	Devices []DeviceStats `json:"devices,omitempty"` // in the order of the snapshot; those that answered
}

// DeviceStats is one measurement of one device. A figure that the device does
// not have, or could not give this time, is not in Gauges.
type DeviceStats struct {
	ID        string             `json:"id"`
	Gauges    map[string]float64 `json:"gauges,omitempty"` // under the keys below
	Processes []Process          `json:"processes,omitempty"`
}

// Process is a process of this machine that has a context on a device.
type Process struct {
	PID    int    `json:"pid"`
	Name   string `json:"name,omitempty"`
	Memory int64  `json:"memory"` // bytes on the device; 0: unknown
}

// Keys of DeviceStats.Gauges, with their units last. "_total" counts since
// the driver was loaded. They are stable: series are named after them.
const (
	GaugeUtilization       = "utilization_ratio"        // time with work, 0 to 1
	GaugeMemoryUtilization = "memory_utilization_ratio" // time in which memory was read or written, 0 to 1
	GaugeMemoryUsed        = "memory_used_bytes"
	GaugeMemoryTotal       = "memory_total_bytes"
	GaugePower             = "power_watts"
	GaugePowerLimit        = "power_limit_watts"
	GaugeEnergy            = "energy_joules_total"
	GaugeTemperature       = "temperature_celsius"
	GaugeMemoryTemperature = "memory_temperature_celsius"
	GaugeFan               = "fan_ratio"
	GaugeClockCompute      = "clock_compute_hertz"
	GaugeClockMemory       = "clock_memory_hertz"
	GaugeThrottled         = "throttled" // 1 while heat, power or hardware slow it down
	GaugeVoltage           = "voltage_volts"

	GaugePCIeReceived     = "pcie_received_bytes_per_second"
	GaugePCIeSent         = "pcie_sent_bytes_per_second"
	GaugePCIeGeneration   = "pcie_generation"
	GaugePCIeWidth        = "pcie_width_lanes"
	GaugePCIeReplays      = "pcie_replays_total"
	GaugeNVLinkReceived   = "nvlink_received_bytes_total"
	GaugeNVLinkSent       = "nvlink_sent_bytes_total"
	GaugeNVLinkUp         = "nvlink_up"
	GaugeNVLinkErrors     = "nvlink_errors_total"
	GaugeNVLinkRecoveries = "nvlink_recoveries_total"

	GaugeECCCorrected        = "ecc_corrected_total"
	GaugeECCUncorrected      = "ecc_uncorrected_total"
	GaugeRemappedCorrected   = "remapped_rows_corrected"
	GaugeRemappedUncorrected = "remapped_rows_uncorrected"
	GaugeRemapPending        = "remap_pending"
	GaugeRemapFailed         = "remap_failed"
	GaugeRetiredPending      = "retired_pages_pending"

	GaugeCPUUtilization     = "device_cpu_utilization_ratio" // of the device's own processors
	GaugeVectorUtilization  = "vector_utilization_ratio"
	GaugeNetworkUp          = "network_up" // the device's own port: 1 when its peer answers
	GaugeHealth             = "health_level"
	GaugeHugePagesUsedPages = "hugepages_used_pages"
)
