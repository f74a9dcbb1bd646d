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

// Bounds of JobResults.
const (
	ResultJobsMax    = 100 // jobs of one request
	ResultMetricsMax = 64  // metrics of one job
)

// JobResults says where the metrics of several jobs stand, in the order in which the
// jobs were named: those that have measured something and whose logs the caller may read.
type JobResults struct {
	Jobs    []JobResult `json:"jobs"`
	LeftOut int         `json:"left_out,omitempty"` // jobs beyond the bound of one answer; ask for fewer
	Away    []string    `json:"away,omitempty"`     // nodes that did not answer
}

// JobResult is where the metrics of one job stand, by name.
type JobResult struct {
	JobID   string         `json:"job_id"`
	Metrics []MetricResult `json:"metrics"`
}

// MetricResult sums up one metric of a job over its newest attempts, or over its
// subjobs: which of the least and the most is the best only people know.
type MetricResult struct {
	Name   string              `json:"name"`
	Count  int64               `json:"count"` // observations
	Min    float64             `json:"min"`
	Max    float64             `json:"max"`
	Last   structs.MetricPoint `json:"last"`
	Subjob int                 `json:"subjob,omitempty"` // that measured last
}

// JobResults returns where metrics of some jobs stand; no names means all of them.
func (c *Client) JobResults(ctx context.Context, jobs, names []string) (*JobResults, error) {
	values := url.Values{"job": {strings.Join(jobs, ",")}}
	if len(names) > 0 {
		values.Set("name", strings.Join(names, ","))
	}
	out, _, err := read(ctx, c, JobsResults, "", values)
	return out, err
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
	JobsResults = endpoint[None, JobResults](Route{
		Name: "jobs.results", Method: http.MethodGet, Pattern: "/v1/job-results", Verb: VerbList, Kind: ObjectJob, From: FromKind,
		Query: []Param{
			{"job", "string", "ids of jobs, comma-separated, at most 100"},
			{"name", "string", "only metrics of these names, comma-separated"},
		},
		Summary: "Where the metrics of some jobs stand: last, least and most of each",
	})
)

// metricRoutes are the routes of usage and metrics.
func metricRoutes() []Route {
	return []Route{
		JobsMetrics.route,
		JobsResults.route,
	}
}
