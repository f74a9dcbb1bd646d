package api

import (
	"context"
	"net/url"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// JobFigures is what the ranks of a subjob's newest attempt use now, in the
// order of their ranks. More counts ranks beyond FiguresRanksMax.
type JobFigures struct {
	JobID   string        `json:"job_id"`
	Subjob  int           `json:"subjob"`
	Attempt uint64        `json:"attempt"` // 0: there was none yet
	Ranks   []RankFigures `json:"ranks"`
	More    int           `json:"more,omitempty"`
}

// FiguresRanksMax bounds the ranks of one JobFigures.
const FiguresRanksMax = 1024

// RankFigures is what one rank uses. Without Measured its node did not answer
// just now; then the figures are its last ones, or 0.
type RankFigures struct {
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

// JobFigures gives what the ranks of a job use now.
func (c *Client) JobFigures(ctx context.Context, id string, subjob int) (*JobFigures, error) {
	out := new(JobFigures)
	if _, err := c.get(ctx, join("v1", "jobs", id, "figures"), url.Values{"subjob": {strconv.Itoa(subjob)}}, out); err != nil {
		return nil, err
	}
	return out, nil
}

// NodeEvents gives what happened to a node and its cards lately, oldest first.
func (c *Client) NodeEvents(ctx context.Context, id string) (*EventList, error) {
	return c.DeviceEvents(ctx, id, "")
}

// DeviceEvents gives what happened to one card of a node lately, oldest first.
// The card is named by its id, a unique beginning of it, or its number; one that
// is gone by its whole id.
func (c *Client) DeviceEvents(ctx context.Context, id, device string) (*EventList, error) {
	var values url.Values
	if device != "" {
		values = url.Values{"device": {device}}
	}
	out := new(EventList)
	if _, err := c.get(ctx, join("v1", "nodes", id, "events"), values, out); err != nil {
		return nil, err
	}
	return out, nil
}
