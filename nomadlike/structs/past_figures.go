package structs

// Figures that a node keeps of its past under names of their own; the others
// have the keys of package plugins/device.
const (
	PastHealthy = "healthy"   // 1 while a device may get work, 0 when it was not well at any time
	PastCores   = "cpu_cores" // of the machine, or of a rank, at work
)

// Figures that are kept of a rank, beside PastCores and its memory. Those of its
// cards are of all of them together.
const (
	PastProcesses       = "processes"
	PastCardUse         = "device_utilization_ratio"   // mean over the cards
	PastCardMemory      = "device_memory_used_bytes"   // sum
	PastCardMemoryTotal = "device_memory_total_bytes"  // sum
	PastCardTemperature = "device_temperature_celsius" // of the hottest
	PastCardPower       = "device_power_watts"         // sum
	PastCardPowerLimit  = "device_power_limit_watts"   // sum
)

// PastFiguresMax is how many figures one rank has at most.
const PastFiguresMax = 9

// Bounds of the past.
const (
	PastPointsMax     = 24 * 60 // of one series: a day of minutes
	PastPointsDefault = 240
	PastValuesMax     = 300_000 // of one answer
)

// PastRequest asks a node what it and its devices measured.
type PastRequest struct {
	Devices []string `json:"devices,omitempty"` // ids; empty: all
	Since   UnixNano `json:"since"`
	Points  int      `json:"points"` // at most, 1 to PastPointsMax
}

// NodePast is what a node and its devices measured, as Count points from the
// moment From on, each of a span of Step. Like NodeFigures it is in no log.
type NodePast struct {
	From    UnixNano     `json:"from"`
	Step    Duration     `json:"step"`
	Count   int          `json:"count"`
	Machine []PastSeries `json:"machine,omitempty"`
	Devices []DevicePast `json:"devices,omitempty"`
}

// DevicePast is what one device measured.
type DevicePast struct {
	ID     string       `json:"id"`
	Series []PastSeries `json:"series,omitempty"`
}

// RankPastRequest asks a node what ranks that run or ran there used, as Count
// points from the moment From on, each of a span of Step; both are whole seconds.
type RankPastRequest struct {
	AllocIDs []string `json:"alloc_ids"`
	From     UnixNano `json:"from"`
	Step     Duration `json:"step"`
	Count    int      `json:"count"` // 1 to PastPointsMax, and PastValuesMax over all ranks
}

// RankPastAllocsMax bounds the ranks of one RankPastRequest.
const RankPastAllocsMax = 1024

// NodeRankPast answers a RankPastRequest: those ranks of which something is
// kept, in the order of the request.
type NodeRankPast struct {
	Ranks []RankPast `json:"ranks"`
}

// RankPast is what one rank used.
type RankPast struct {
	AllocID string       `json:"alloc_id"`
	Series  []PastSeries `json:"series"`
}

// PastSeries is one figure over time. A value is the mean of its span, of
// temperature and memory the highest, of "healthy" the lowest, and of what only
// rises the last; nil: it was not measured.
type PastSeries struct {
	Gauge  string     `json:"gauge"`
	Values []*float64 `json:"values"`
}
