package api

import (
	"context"
	"net/http"
	"net/url"

	"nomadlike/nomadlike/faults"
	"nomadlike/nomadlike/structs"
)

// JobFaults is the story of each fault of a job, the newest faults.Max of them by
// subjob and attempt.
type JobFaults struct {
	JobID  string         `json:"job_id"`
	Faults []faults.Fault `json:"faults"`
	Lost   float64        `json:"lost"`           // hours of devices, or without any of nodes, of all of them
	Away   []string       `json:"away,omitempty"` // nodes that did not tell of steps
}

// JobDiff is in what two jobs differ.
type JobDiff struct {
	// Before is the job that the other one is compared with: the one that was asked
	// for, or the newest of its lineage that succeeded; nil when none did.
	Before      *DiffJob             `json:"before"`
	After       DiffJob              `json:"after"`
	Differences []structs.Difference `json:"differences"` // of the job files, in their order
	// Found is what the first ranks of the newest attempts found and had: their node,
	// the digest of the image, versions.
	Found []structs.Difference `json:"found"`
	// Hidden: the caller may not read the environment of one of the two, so values of
	// variables were not compared.
	Hidden bool `json:"hidden,omitempty"`
}

// DiffJob is one of two jobs that are compared.
type DiffJob struct {
	ID          string           `json:"id"`
	Name        string           `json:"name"`
	User        string           `json:"user,omitempty"`
	State       structs.JobState `json:"state"`
	SubmittedAt structs.UnixNano `json:"submitted_at"`
	FinishedAt  structs.UnixNano `json:"finished_at,omitempty"`
}

// The endpoints of what became of a job.
var (
	JobsFaults = endpoint[None, JobFaults](Route{
		Name: "jobs.faults", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/faults", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
		Summary: "The story of each fault: when it was, when it was noticed, how the job went on, and what was lost",
	})
	JobsDiff = endpoint[None, JobDiff](Route{
		Name: "jobs.diff", Method: http.MethodGet, Pattern: "/v1/jobs/{id}/diff", Verb: VerbRead, Kind: ObjectJob, From: FromJob,
		Query:   []Param{{"with", "string", "compare with this job: id, unique id prefix or name; the newest job of its lineage that succeeded unless told"}},
		Summary: "In what does this job differ from another, or from the last of its lineage that succeeded?",
	})
)

func jobStoryRoutes() []Route {
	return []Route{JobsFaults.route, JobsDiff.route}
}

// JobFaults returns the story of each fault of a job.
func (c *Client) JobFaults(ctx context.Context, id string) (*JobFaults, error) {
	out, _, err := read(ctx, c, JobsFaults, id, nil)
	return out, err
}

// JobDiff returns in what a job differs from another one, or with "" from the last of its
// lineage that succeeded.
func (c *Client) JobDiff(ctx context.Context, id, with string) (*JobDiff, error) {
	values := url.Values{}
	if with != "" {
		values.Set("with", with)
	}
	out, _, err := read(ctx, c, JobsDiff, id, values)
	return out, err
}
