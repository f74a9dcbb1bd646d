package api

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
)

// JobUsage is what the ranks of a subjob's newest attempt use now, in the
// order of their ranks. More counts ranks beyond UsageRanksMax.
type JobUsage struct {
	JobID   string      `json:"job_id"`
	Subjob  int         `json:"subjob"`
	Attempt uint64      `json:"attempt"` // 0: there was none yet
	Ranks   []RankUsage `json:"ranks"`
	More    int         `json:"more,omitempty"`
}

// UsageRanksMax bounds the ranks of one JobUsage.
const UsageRanksMax = 1024

// RankUsage is what one rank uses. Without Measured its node did not answer
// just now; then the figures are its last ones, or 0.
type RankUsage struct {
	AllocID    string              `json:"alloc_id"`
	Rank       int                 `json:"rank"`
	NodeID     string              `json:"node_id"`
	Node       string              `json:"node"`
	Status     structs.AllocStatus `json:"status"`
	Measured   bool                `json:"measured"`
	At         structs.UnixNano    `json:"at,omitempty"`
	CPU        float64             `json:"cpu"`                // cores that it may use
	CPUBusy    float64             `json:"cpu_busy,omitempty"` // cores at work lately
	CPUSeconds float64             `json:"cpu_seconds,omitempty"`
	Memory     int64               `json:"memory"` // bytes that it may use
	MemoryUsed int64               `json:"memory_used,omitempty"`
	Processes  int                 `json:"processes,omitempty"`
	Devices    []RankDevice        `json:"devices,omitempty"` // that it holds
}

// RankDevice is a card of a rank. Gauges are under the stable names of the
// reference; one that the device does not have is not there.
type RankDevice struct {
	ID      string             `json:"id"`
	Index   int                `json:"index"`
	Model   string             `json:"model"`
	Healthy bool               `json:"healthy"`
	Gauges  map[string]float64 `json:"gauges,omitempty"`
}

// JobHistory is what the ranks of one attempt used while they ran, in the order of
// their ranks, as far as their nodes keep it. Every series has one value for
// each of the times of At, for the span of Step that begins there; null where
// nothing was measured. Away are the nodes that did not answer; More counts ranks
// beyond structs.RankPastAllocsMax.
type JobHistory struct {
	JobID   string             `json:"job_id"`
	Subjob  int                `json:"subjob"`
	Attempt uint64             `json:"attempt"` // 0: there was none yet
	Step    structs.Duration   `json:"step"`
	At      []structs.UnixNano `json:"at"`
	Ranks   []RankHistory      `json:"ranks"`
	Away    []string           `json:"away,omitempty"`
	More    int                `json:"more,omitempty"`
}

// RankHistory is what one rank used. The gauges are structs.GaugeCores,
// memory_used_bytes of the rank itself, structs.GaugeProcesses, and those of
// its cards together, structs.GaugeCardUse and so on.
type RankHistory struct {
	AllocID string                 `json:"alloc_id"`
	Rank    int                    `json:"rank"`
	NodeID  string                 `json:"node_id"`
	Node    string                 `json:"node"`
	Status  structs.AllocStatus    `json:"status"`
	CPU     float64                `json:"cpu"`    // cores that it may use
	Memory  int64                  `json:"memory"` // bytes that it may use
	Series  []structs.GaugeHistory `json:"series"`
}

// JobHistoryFilter says what is wanted of a job's history. Zero values mean all ranks
// of the newest attempt of the first subjob, from its start to its end or now,
// in structs.HistoryPointsDefault points.
type JobHistoryFilter struct {
	Subjob  int
	Attempt uint64
	Rank    *int
	Since   time.Duration // how far back from its end, or from now
	Points  int           // at most
}

// JobHistory returns what the ranks of a job used while they ran.
func (c *Client) JobHistory(ctx context.Context, id string, filter JobHistoryFilter) (*JobHistory, error) {
	values := url.Values{"subjob": {strconv.Itoa(filter.Subjob)}}
	if filter.Attempt > 0 {
		values.Set("attempt", strconv.FormatUint(filter.Attempt, 10))
	}
	if filter.Rank != nil {
		values.Set("rank", strconv.Itoa(*filter.Rank))
	}
	if filter.Since > 0 {
		values.Set("since", filter.Since.String())
	}
	if filter.Points > 0 {
		values.Set("points", strconv.Itoa(filter.Points))
	}
	out, _, err := read(ctx, c, JobsPast, id, values)
	return out, err
}

// JobUsage returns what the ranks of a job use now.
func (c *Client) JobUsage(ctx context.Context, id string, subjob int) (*JobUsage, error) {
	out, _, err := read(ctx, c, JobsFigures, id, url.Values{"subjob": {strconv.Itoa(subjob)}})
	return out, err
}

// NodeEvents returns what happened to a node and its cards lately, oldest first.
func (c *Client) NodeEvents(ctx context.Context, id string) (*EventList, error) {
	return c.DeviceEvents(ctx, id, "")
}

// DeviceEvents returns what happened to one card of a node lately, oldest first.
// The card is named by its id, a unique beginning of it, or its number; one that
// is gone by its whole id.
func (c *Client) DeviceEvents(ctx context.Context, id, device string) (*EventList, error) {
	var values url.Values
	if device != "" {
		values = url.Values{"device": {device}}
	}
	out, _, err := read(ctx, c, NodesEvents, id, values)
	return out, err
}
