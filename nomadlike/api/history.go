package api

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
)

// NodeHistory is what a node and its cards measured during the last day, as far
// back as the node's agent keeps it. Every series has one value for each of the
// times of At, for the span of Step that begins there; null where nothing was
// measured.
type NodeHistory struct {
	ID      string                 `json:"id"`
	Name    string                 `json:"name"`
	Step    structs.Duration       `json:"step"`
	At      []structs.UnixNano     `json:"at"`
	Machine []structs.GaugeHistory `json:"machine"`
	Devices []CardHistory          `json:"devices"` // in the order of their numbers; those that are gone last
}

// CardHistory is what one card, or one part of a card, measured. One that the node
// has no more has only its id.
type CardHistory struct {
	ID     string                 `json:"id"`
	Index  int                    `json:"index"`
	Slice  int                    `json:"slice,omitempty"` // which part of its card it is, from 1
	Model  string                 `json:"model,omitempty"`
	Gone   bool                   `json:"gone,omitempty"`
	Series []structs.GaugeHistory `json:"series"`
}

// HistoryFilter says what is wanted of a node's history. Zero values mean all that
// there is, in structs.HistoryPointsDefault points.
type HistoryFilter struct {
	Device string        // id, a unique beginning of it, or number
	Since  time.Duration // how far back
	Points int           // at most
}

// NodeHistory returns what a node and its cards measured lately. The node has to
// answer.
func (c *Client) NodeHistory(ctx context.Context, id string, filter HistoryFilter) (*NodeHistory, error) {
	values := url.Values{}
	if filter.Device != "" {
		values.Set("device", filter.Device)
	}
	if filter.Since > 0 {
		values.Set("since", filter.Since.String())
	}
	if filter.Points > 0 {
		values.Set("points", strconv.Itoa(filter.Points))
	}
	out, _, err := read(ctx, c, NodesPast, id, values)
	return out, err
}
