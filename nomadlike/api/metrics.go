package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"nomadlike/nomadlike/structs"
)

// Points of the series in one answer.
const (
	MetricPointsDefault = 200
	MetricPointsMax     = 1024
)

// MetricsFilter says which metrics of a job are wanted. Zero values mean all.
type MetricsFilter struct {
	Attempt uint64
	Subjob  *int
	Rank    *int
	Names   []string
	Points  int // of each series; 0: MetricPointsDefault
}

// JobMetrics is what the ranks of a job measured of themselves, newest attempt
// first, at most structs.MetricsAllocsMax of them.
type JobMetrics struct {
	Ranks   []RankMetrics `json:"ranks"`
	LeftOut int           `json:"left_out,omitempty"` // ranks beyond the bound; ask for them by attempt and rank
	Away    []string      `json:"away,omitempty"`     // nodes that did not answer
}

// RankMetrics is what one rank measured of itself in one attempt.
type RankMetrics struct {
	AllocID string                 `json:"alloc_id"`
	Subjob  int                    `json:"subjob,omitempty"`
	Attempt uint64                 `json:"attempt"`
	Rank    int                    `json:"rank"`
	Node    string                 `json:"node"`
	Series  []structs.MetricSeries `json:"series"`
	LeftOut int                    `json:"left_out,omitempty"` // observations of names beyond the bound
}

// JobMetrics returns the training metrics that a job's ranks wrote into logs and event
// files, as far as their nodes keep them.
func (c *Client) JobMetrics(ctx context.Context, id string, filter MetricsFilter) (*JobMetrics, error) {
	values := url.Values{}
	if filter.Attempt > 0 {
		values.Set("attempt", strconv.FormatUint(filter.Attempt, 10))
	}
	if filter.Subjob != nil {
		values.Set("subjob", strconv.Itoa(*filter.Subjob))
	}
	if filter.Rank != nil {
		values.Set("rank", strconv.Itoa(*filter.Rank))
	}
	if len(filter.Names) > 0 {
		values.Set("name", strings.Join(filter.Names, ","))
	}
	if filter.Points > 0 {
		values.Set("points", strconv.Itoa(filter.Points))
	}
	out, _, err := read(ctx, c, JobsMetrics, id, values)
	return out, err
}

// The endpoints of metric routes.
var (
	JobsMetrics = endpoint[None, JobMetrics](Route{
		Name: "jobs.metrics", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/metrics", Verb: VerbLogs, Kind: ObjectJob, From: FromJob,
		Query: []Param{
			{"attempt", "integer", "only this attempt"},
			{"subjob", "integer", "only this subjob"},
			{"rank", "integer", "only this rank"},
			{"name", "string", "only figures of these names, comma-separated"},
			{"points", "integer", "at most so many points of each series, 1 to 1024; 200 unless told"},
		},
		Summary: "The curves of a job: figures that its ranks wrote into logs and event files",
	})
)

// metricRoutes are the routes of usage and metrics.
func metricRoutes() []Route {
	return []Route{
		JobsMetrics.route,
	}
}
