package api

import (
	"context"
	"net/http"
	"strconv"

	"nomadlike/nomadlike/structs"
)

// JobFilter narrows a list of jobs; empty fields match all.
type JobFilter struct {
	Name    string
	State   structs.JobState
	Project string
	User    string
	Code    string // an algorithm; favorite/NAME for one of the favourites
	Spec    string // the label of a spec, or the model of its cards
	Output  string // a part of the output location
	Cause   string // the id of the reason that it waits or ended for
	Text    string // a part of the name, or the beginning of the id
}

// Jobs returns one page of the jobs that the caller may see, newest first.
func (c *Client) Jobs(ctx context.Context, filter JobFilter, query *Query) (*JobList, *Meta, error) {
	values := query.values()
	for name, value := range map[string]string{
		"name": filter.Name, "state": string(filter.State), "project": filter.Project, "user": filter.User,
		"code": filter.Code, "spec": filter.Spec, "output": filter.Output, "cause": filter.Cause, "text": filter.Text,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	out := new(JobList)
	meta, err := c.get(ctx, "/v1/jobs", values, out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// SubmitJob queues a job. It may repeat the request: an idempotency key makes
// the repetitions one submission, and key "" chooses a random one.
func (c *Client) SubmitJob(ctx context.Context, request JobRequest, key string) (*JobSubmitted, error) {
	if key == "" {
		key = newKey()
	}
	out := new(JobSubmitted)
	_, err := c.do(ctx, call{
		method: http.MethodPost, path: "/v1/jobs", in: request, repeat: true,
		header: http.Header{HeaderIdempotencyKey: {key}},
	}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ParseJob turns a job file into a job.
func (c *Client) ParseJob(ctx context.Context, request JobRequest) (*JobParsed, error) {
	out := new(JobParsed)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/parse", in: request, repeat: true}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FormatJob writes a job as a job file, or changes values of one.
func (c *Client) FormatJob(ctx context.Context, request JobRequest) (*JobFormatted, error) {
	out := new(JobFormatted)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/format", in: request, repeat: true}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// ValidateJob lists everything that is wrong with a job.
func (c *Client) ValidateJob(ctx context.Context, request JobRequest) (*JobValidated, error) {
	out := new(JobValidated)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/validate", in: request, repeat: true}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// PlanJob previews a job: what every rank would run and whether it would
// start now.
func (c *Client) PlanJob(ctx context.Context, request JobRequest) (*JobPlan, error) {
	out := new(JobPlan)
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/v1/jobs/plan", in: request, repeat: true}, out)
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Job reads one job by its id, a unique prefix of it, or its name.
func (c *Client) Job(ctx context.Context, id string, query *Query) (*JobDetail, *Meta, error) {
	out := new(JobDetail)
	meta, err := c.get(ctx, join("v1", "jobs", id), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// Subjobs returns one page of a job's subjobs by index.
func (c *Client) Subjobs(ctx context.Context, id string, query *Query) (*SubjobList, *Meta, error) {
	out := new(SubjobList)
	meta, err := c.get(ctx, join("v1", "jobs", id, "subjobs"), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// Attempts lists a job's attempts.
func (c *Client) Attempts(ctx context.Context, id string, query *Query) (*AttemptList, *Meta, error) {
	out := new(AttemptList)
	meta, err := c.get(ctx, join("v1", "jobs", id, "attempts"), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// AllocationFilter narrows a list of allocations; nil fields match all.
type AllocationFilter struct {
	Attempt *uint64
	Subjob  *int
}

// Allocations lists a job's allocations.
func (c *Client) Allocations(ctx context.Context, id string, filter AllocationFilter, query *Query) (*AllocationList, *Meta, error) {
	values := query.values()
	if filter.Attempt != nil {
		values.Set("attempt", strconv.FormatUint(*filter.Attempt, 10))
	}
	if filter.Subjob != nil {
		values.Set("subjob", strconv.Itoa(*filter.Subjob))
	}
	out := new(AllocationList)
	meta, err := c.get(ctx, join("v1", "jobs", id, "allocations"), values, out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// JobEvents is the history of a job, oldest first.
func (c *Client) JobEvents(ctx context.Context, id string, query *Query) (*EventList, *Meta, error) {
	out := new(EventList)
	meta, err := c.get(ctx, join("v1", "jobs", id, "events"), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}

// StopJob stops a job, or one of its subjobs.
func (c *Client) StopJob(ctx context.Context, id string, request JobStopRequest) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "jobs", id, "stop"), request)
}

// PauseJob lets what runs of a job stand still, every rank together.
func (c *Client) PauseJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "jobs", id, "pause"), request)
}

// ContinueJob lets a paused job go on.
func (c *Client) ContinueJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "jobs", id, "continue"), request)
}

// ThrottleJob lets a job run and stand still in turns, or lifts that.
func (c *Client) ThrottleJob(ctx context.Context, id string, request ThrottleRequest) (*Changed, error) {
	return c.change(ctx, http.MethodPut, join("v1", "jobs", id, "throttle"), request)
}

// FinishJob ends what runs of a job now, with success.
func (c *Client) FinishJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return c.change(ctx, http.MethodPost, join("v1", "jobs", id, "finish"), request)
}

// DeleteJob forgets an ended job.
func (c *Client) DeleteJob(ctx context.Context, id string) (*Changed, error) {
	return c.change(ctx, http.MethodDelete, join("v1", "jobs", id), nil)
}

// SetJobPriority changes the tier of a queued job.
func (c *Client) SetJobPriority(ctx context.Context, id string, priority structs.Priority) (*Changed, error) {
	return c.change(ctx, http.MethodPut, join("v1", "jobs", id, "priority"), JobPriorityRequest{Priority: priority})
}

// Allocation reads one allocation by its id or a unique prefix of it.
func (c *Client) Allocation(ctx context.Context, id string, query *Query) (*structs.Allocation, *Meta, error) {
	out := new(structs.Allocation)
	meta, err := c.get(ctx, join("v1", "allocations", id), query.values(), out)
	if err != nil {
		return nil, nil, err
	}
	return out, meta, nil
}
