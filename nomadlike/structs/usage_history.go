package structs

// Gauges of a node's history under names of their own; the others
// have the keys of package plugins/device.
const (
	GaugeHealthy = "healthy"   // 1 while a device may get work, 0 when it was unhealthy at any time
	GaugeCores   = "cpu_cores" // of the machine, or of a rank, at work
)

// Gauges of a rank's history, beside GaugeCores and its memory. Those of its
// cards are of all of them together.
const (
	GaugeProcesses       = "processes"
	GaugeCardUse         = "device_utilization_ratio"   // mean over the cards
	GaugeCardMemory      = "device_memory_used_bytes"   // sum
	GaugeCardMemoryTotal = "device_memory_total_bytes"  // sum
	GaugeCardTemperature = "device_temperature_celsius" // of the hottest
	GaugeCardPower       = "device_power_watts"         // sum
	GaugeCardPowerLimit  = "device_power_limit_watts"   // sum
)

// HistoryGaugesMax is how many gauges one rank has at most.
const HistoryGaugesMax = 9

// Bounds of a history.
const (
	HistoryPointsMax     = 24 * 60 // of one series: a day of minutes
	HistoryPointsDefault = 240
	HistoryValuesMax     = 300_000 // of one answer
)

// HistoryRequest asks a node what it and its devices measured.
type HistoryRequest struct {
	Devices []string `json:"devices,omitempty"` // ids; empty: all
	Since   UnixNano `json:"since"`
	Points  int      `json:"points"` // at most, 1 to HistoryPointsMax
}

// NodeHistory is what a node and its devices measured, as Count points from the
// moment From on, each of a span of Step. Like NodeUsage it is in no log.
type NodeHistory struct {
	From    UnixNano        `json:"from"`
	Step    Duration        `json:"step"`
	Count   int             `json:"count"`
	Machine []GaugeHistory  `json:"machine,omitempty"`
	Devices []DeviceHistory `json:"devices,omitempty"`
}

// DeviceHistory is what one device measured.
type DeviceHistory struct {
	ID     string         `json:"id"`
	Series []GaugeHistory `json:"series,omitempty"`
}

// RankHistoryRequest asks a node what ranks that run or ran there used, as Count
// points from the moment From on, each of a span of Step; both are whole seconds.
type RankHistoryRequest struct {
	AllocIDs []string `json:"alloc_ids"`
	From     UnixNano `json:"from"`
	Step     Duration `json:"step"`
	Count    int      `json:"count"` // 1 to HistoryPointsMax, and HistoryValuesMax over all ranks
}

// RankHistoryAllocsMax bounds the ranks of one RankHistoryRequest.
const RankHistoryAllocsMax = 1024

// NodeRankHistory answers a RankHistoryRequest: those ranks of which something is
// kept, in the order of the request.
type NodeRankHistory struct {
	Ranks []RankHistory `json:"ranks"`
}

// RankHistory is what one rank used.
type RankHistory struct {
	AllocID string         `json:"alloc_id"`
	Series  []GaugeHistory `json:"series"`
}

// GaugeHistory is one gauge over time. A value is the mean of its span, of
// temperature and memory the highest, of "healthy" the lowest, and of what only
// rises the last; nil: it was not measured.
type GaugeHistory struct {
	Gauge  string     `json:"gauge"`
	Values []*float64 `json:"values"`
}
