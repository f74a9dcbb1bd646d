package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs/outlook"
)

// Outlook is how full the cluster was over the last day, how full it is expected
// to be for the next hours, and what could start now. It names no jobs.
type Outlook struct {
	outlook.Load
	// CouldStart reports for each model of cards how many jobs of the caller's project
	// would start now, tried by the scheduler. It is null when that cannot be told now.
	CouldStart []outlook.Startable `json:"could_start"`
}

// OutlookRead is the endpoint of the outlook.
var OutlookRead = endpoint[None, Outlook](Route{
	Name: "outlook.read", Method: http.MethodGet, Pattern: "/v1/outlook", Verb: VerbList, Kind: ObjectQueue, From: FromKind,
	Query:   []Param{{"pool", "string", "only this pool, and what could start there"}},
	Summary: "How full were the pools over the last 24 hours, how full will they probably be over the next 12, and what could start now?",
})

// OutlookPast is the endpoint of who held which card.
var OutlookPast = endpoint[None, outlook.Past](Route{
	Name: "outlook.past", Method: http.MethodGet, Pattern: "/v1/outlook/past", Verb: VerbList, Kind: ObjectQueue, From: FromKind,
	Query:   []Param{{"pool", "string", "only nodes of this pool"}},
	Summary: "Which job held each card of each node over the last 24 hours",
})

// Past reports which job held each card over the last 24 hours, of all nodes, or with
// a name those of one pool. Jobs that the caller may not read have no names.
func (c *Client) Past(ctx context.Context, pool string) (*outlook.Past, error) {
	values := url.Values{}
	if pool != "" {
		values.Set("pool", pool)
	}
	out, _, err := read(ctx, c, OutlookPast, "", values)
	return out, err
}

// Outlook reports how full all pools, or with a name that one, were and will be, and
// what could start now.
func (c *Client) Outlook(ctx context.Context, pool string) (*Outlook, error) {
	values := url.Values{}
	if pool != "" {
		values.Set("pool", pool)
	}
	out, _, err := read(ctx, c, OutlookRead, "", values)
	return out, err
}
