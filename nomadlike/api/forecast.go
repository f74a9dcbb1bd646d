package api

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/structs/outlook"
)

// QueueForecast is when everything that waits and that the caller may read
// starts: pool by pool, each in the order in which it is served.
type QueueForecast struct {
	At     structs.UnixNano `json:"at"` // when somebody looked
	Starts []outlook.Start  `json:"starts"`
}

// JobOutlook is when a job would start that is not submitted yet. Victims that
// the caller may not read have no names.
type JobOutlook struct {
	outlook.Answer
	At       structs.UnixNano  `json:"at"`
	Holders  []JobRef          `json:"holders,omitempty"` // of what it would wait for, those that the caller may read, and one without a name for others
	Defaults []structs.Default `json:"defaults"`          // what the job leaves to nomadlike
	Warnings []structs.Error   `json:"warnings,omitempty"`
}

// JobForecast is when the queued subjobs of a job start, and what was said
// before: one list for each attempt, oldest first.
type JobForecast struct {
	JobID   string               `json:"job_id"`
	At      structs.UnixNano     `json:"at"`
	Starts  []outlook.Start      `json:"starts"`
	Holders []JobRef             `json:"holders,omitempty"` // of what they wait for, those that the caller may read, and one without a name for others
	Helps   []outlook.Help       `json:"helps,omitempty"`   // when asked for: changes that would start the first of Starts sooner than it says
	History [][]structs.Forecast `json:"history"`
}

// Accuracy is how forecasts came out: of each attempt that has started, the
// first answer.
type Accuracy struct {
	All   Calibration            `json:"all"`
	Pools map[string]Calibration `json:"pools"`
}

// Calibration is the accuracy of some forecasts. Errors are of the point, in
// seconds. A hit is within five minutes or a fifth of the wait.
type Calibration struct {
	N         int     `json:"n"`
	HitPct    float64 `json:"hit_pct"`
	MAE       float64 `json:"mae_s"`
	MedAE     float64 `json:"medae_s"`
	P90AbsErr float64 `json:"p90_abs_err_s"`
	Bias      float64 `json:"bias_s"`    // mean of point less start
	Cov50Pct  float64 `json:"cov50_pct"` // starts that were not after the P50
	Cov90Pct  float64 `json:"cov90_pct"` // and the P90
}

// WhatIfRequest names the changes of a what-if, at most outlook.ChangesMax, in their
// order. Jobs are named by id, unique id prefix or name.
type WhatIfRequest struct {
	Changes []outlook.Change `json:"changes"`
}

// Effect is what changes would do to the queue.
type Effect struct {
	outlook.Effect
	Hidden int `json:"hidden,omitempty"` // shifts of jobs that the caller may not read
}

// The endpoints of forecast routes.
var (
	JobsForecast = endpoint[JobRequest, JobOutlook](Route{
		Name: "jobs.forecast", Method: http.MethodPost, Pattern: "/v1/jobs/forecast", Verb: VerbSubmit, Kind: ObjectJob, From: FromBody, Question: true,
		Summary: "When would this job start? Now, about when, or never and why; for each spec; and who would have to yield",
	})
	JobsForecastRead = endpoint[None, JobForecast](Route{
		Name: "jobs.forecast_read", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/forecast", Verb: VerbRead, Kind: ObjectJob, From: FromJob, Blocking: true,
		Query:   append(blockingParams(), Param{"helps", "boolean", "what would start it sooner, too"}),
		Summary: "When does this queued job start, and how did that answer move?",
	})
	QueueForecastRead = endpoint[None, QueueForecast](Route{
		Name: "queue.forecast", Method: http.MethodGet, Pattern: "/v1/queue/forecast", Verb: VerbList, Kind: ObjectQueue, From: FromKind,
		Summary: "When does everything that waits start?",
	})
	QueueTimeline = endpoint[None, outlook.Timeline](Route{
		Name: "queue.timeline", Method: http.MethodGet, Pattern: "/v1/queue/timeline", Verb: VerbList, Kind: ObjectQueue, From: FromKind,
		Query: []Param{
			{"hours", "integer", "how far to look, at most 168; 24 unless told"},
			{"pool", "string", "only nodes of this pool"},
		},
		Summary: "What runs, is reserved and is expected on each node",
	})
	QueueAccuracy = endpoint[None, Accuracy](Route{
		Name: "queue.accuracy", Method: http.MethodGet, Pattern: "/v1/queue/accuracy", Verb: VerbList, Kind: ObjectQueue, From: FromKind,
		Summary: "How did the forecasts that were given come out?",
	})
	QueueWhatIf = endpoint[WhatIfRequest, Effect](Route{
		Name: "queue.what_if", Method: http.MethodPost, Pattern: "/v1/queue/what-if", Verb: VerbWhatIf, Kind: ObjectQueue, From: FromKind, Question: true,
		Summary: "Who would start earlier or later after some changes? Nothing is changed",
	})
)

func forecastRoutes() []Route {
	return []Route{
		JobsForecast.route,
		JobsForecastRead.route,
		QueueForecastRead.route,
		QueueTimeline.route,
		QueueAccuracy.route,
		QueueWhatIf.route,
		OutlookRead.route,
		OutlookPast.route,
	}
}

// ForecastJob reports when a job would start that is not submitted yet.
func (c *Client) ForecastJob(ctx context.Context, request JobRequest) (*JobOutlook, error) {
	request = request.zoned()
	return ask(ctx, c, JobsForecast, "", request)
}

// JobForecast reports when the queued subjobs of a job start, and what was said
// before. As a blocking query it returns when a kept answer changes.
func (c *Client) JobForecast(ctx context.Context, id string, query *Query) (*JobForecast, *Meta, error) {
	return read(ctx, c, JobsForecastRead, id, query.values())
}

// JobHelps is JobForecast with what would help.
func (c *Client) JobHelps(ctx context.Context, id string) (*JobForecast, error) {
	out, _, err := read(ctx, c, JobsForecastRead, id, url.Values{"helps": {"true"}})
	return out, err
}

// QueueForecast reports when everything that waits starts.
func (c *Client) QueueForecast(ctx context.Context) (*QueueForecast, error) {
	out, _, err := read(ctx, c, QueueForecastRead, "", nil)
	return out, err
}

// Timeline reports what runs, is reserved and is expected on each node, of one
// pool or with "" of all, within a horizon of whole hours; 0: a day.
func (c *Client) Timeline(ctx context.Context, horizon time.Duration, pool string) (*outlook.Timeline, error) {
	values := url.Values{}
	if horizon > 0 {
		values.Set("hours", strconv.Itoa(int((horizon+time.Hour-1)/time.Hour)))
	}
	if pool != "" {
		values.Set("pool", pool)
	}
	out, _, err := read(ctx, c, QueueTimeline, "", values)
	return out, err
}

// Accuracy reports how the forecasts that were given came out.
func (c *Client) Accuracy(ctx context.Context) (*Accuracy, error) {
	out, _, err := read(ctx, c, QueueAccuracy, "", nil)
	return out, err
}

// WhatIf reports who would start earlier or later after some changes; it changes
// nothing.
func (c *Client) WhatIf(ctx context.Context, changes []outlook.Change) (*Effect, error) {
	return ask(ctx, c, QueueWhatIf, "", WhatIfRequest{Changes: changes})
}
