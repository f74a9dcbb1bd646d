package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/structs"
)

// ParallelRequest changes how many subjobs of a batch or a sweep run at a time; 0: all.
type ParallelRequest struct {
	Parallel int `json:"parallel"`
}

// TrialMetricsMax bounds the trials of one answer whose metric is asked for: each costs
// its node a small file.
const TrialMetricsMax = 2048

// TrialList is the trials of a sweep, or the subjobs of a batch: best first where there is
// a metric, those without it behind, by number.
type TrialList struct {
	Metric  string   `json:"metric,omitempty"` // that they are ordered by
	Goal    string   `json:"goal,omitempty"`   // minimize | maximize
	Trials  []Trial  `json:"trials"`
	Waiting int      `json:"waiting,omitempty"`  // of them, that wait for their turn
	LeftOut int      `json:"left_out,omitempty"` // trials whose metric was not asked for: there are too many
	Away    []string `json:"away,omitempty"`     // nodes that did not answer
}

// Trial is one of them.
type Trial struct {
	Subjob     int                  `json:"subjob"`
	Name       string               `json:"name,omitempty"` // its values, the name of the subtask, or the number of the array
	Params     []structs.ParamValue `json:"params,omitempty"`
	State      structs.JobState     `json:"state"`
	Turn       bool                 `json:"turn,omitempty"` // it waits for its turn
	Attempt    uint64               `json:"attempt,omitempty"`
	ExitCode   int                  `json:"exit_code,omitempty"`
	StartedAt  structs.UnixNano     `json:"started_at,omitempty"`
	FinishedAt structs.UnixNano     `json:"finished_at,omitempty"`
	Metric     *MetricResult        `json:"metric,omitempty"`
}

// The endpoints of batches and sweeps.
var (
	JobsTrials = endpoint[None, TrialList](Route{
		Name: "jobs.trials", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/trials", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
		Query:   []Param{{"metric", "string", "order by this metric instead of the one that the sweep names"}},
		Summary: "The trials of a sweep, or the subjobs of a batch, best first",
	})
	JobsParallel = endpoint[ParallelRequest, Changed](Route{
		Name: "jobs.parallel", Method: http.MethodPut, Pattern: "/v1/jobs/{id}/parallel", Verb: VerbControl, Kind: ObjectJob, From: FromJob,
		Summary: "Change how many subjobs of a batch or a sweep run at a time; what runs goes on",
	})
)

func trialRoutes() []Route { return []Route{JobsTrials.route, JobsParallel.route} }

// JobTrials returns the trials of a sweep, or the subjobs of a batch; no metric means the
// one that the sweep names.
func (c *Client) JobTrials(ctx context.Context, id, metric string) (*TrialList, error) {
	values := url.Values{}
	if metric != "" {
		values.Set("metric", metric)
	}
	out, _, err := read(ctx, c, JobsTrials, id, values)
	return out, err
}

// SetParallel changes how many subjobs of a job run at a time; 0: all.
func (c *Client) SetParallel(ctx context.Context, id string, most int) (*Changed, error) {
	return change(ctx, c, JobsParallel, id, ParallelRequest{Parallel: most})
}
