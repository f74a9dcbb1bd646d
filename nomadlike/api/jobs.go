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
	Tag     string // tags, separated by commas: it has all of them
	Text    string // words that are all found in it; tag:NAME finds a tag, and so do user:, project:, pool:, code: and card:
	Trends  bool   // tell how a metric of the first that run goes: JobSummary.Trend
}

// Jobs returns one page of the jobs that the caller may see, newest first.
func (c *Client) Jobs(ctx context.Context, filter JobFilter, query *Query) (*JobList, *Meta, error) {
	values := query.values()
	for name, value := range map[string]string{
		"name": filter.Name, "state": string(filter.State), "project": filter.Project, "user": filter.User,
		"code": filter.Code, "spec": filter.Spec, "output": filter.Output, "cause": filter.Cause, "tag": filter.Tag, "text": filter.Text,
	} {
		if value != "" {
			values.Set(name, value)
		}
	}
	if filter.Trends {
		values.Set("trends", "true")
	}
	return read(ctx, c, JobsList, "", values)
}

// SubmitJob queues a job. It may repeat the request: an idempotency key makes
// the repetitions one submission, and key "" chooses a random one.
func (c *Client) SubmitJob(ctx context.Context, request JobRequest, key string) (*JobSubmitted, error) {
	request = request.zoned()
	if key == "" {
		key = newKey()
	}
	return post(ctx, c, JobsSubmit, call{path: JobsSubmit.path(""), repeat: true, header: http.Header{HeaderIdempotencyKey: {key}}}, request)
}

// ParseJob turns a job file into a job.
func (c *Client) ParseJob(ctx context.Context, request JobRequest) (*JobParsed, error) {
	return ask(ctx, c, JobsParse, "", request)
}

// FormatJob writes a job as a job file, or changes values of one.
func (c *Client) FormatJob(ctx context.Context, request JobRequest) (*JobFormatted, error) {
	return ask(ctx, c, JobsFormat, "", request)
}

// ValidateJob lists everything that is wrong with a job.
func (c *Client) ValidateJob(ctx context.Context, request JobRequest) (*JobValidated, error) {
	request = request.zoned()
	return ask(ctx, c, JobsValidate, "", request)
}

// PlanJob previews a job: what every rank would run and whether it would
// start now.
func (c *Client) PlanJob(ctx context.Context, request JobRequest) (*JobPlan, error) {
	request = request.zoned()
	return ask(ctx, c, JobsPlan, "", request)
}

// Job reads one job by its id, a unique prefix of it, or its name.
func (c *Client) Job(ctx context.Context, id string, query *Query) (*JobDetail, *Meta, error) {
	return read(ctx, c, JobsRead, id, query.values())
}

// Subjobs returns one page of a job's subjobs by index.
func (c *Client) Subjobs(ctx context.Context, id string, query *Query) (*SubjobList, *Meta, error) {
	return read(ctx, c, JobsSubjobs, id, query.values())
}

// Attempts lists a job's attempts.
func (c *Client) Attempts(ctx context.Context, id string, query *Query) (*AttemptList, *Meta, error) {
	return read(ctx, c, JobsAttempts, id, query.values())
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
	return read(ctx, c, JobsAllocations, id, values)
}

// JobEvents is the history of a job, oldest first.
func (c *Client) JobEvents(ctx context.Context, id string, query *Query) (*EventList, *Meta, error) {
	return read(ctx, c, JobsEvents, id, query.values())
}

// StopJob stops a job, or one of its subjobs.
func (c *Client) StopJob(ctx context.Context, id string, request JobStopRequest) (*Changed, error) {
	return change(ctx, c, JobsStop, id, request)
}

// PauseJob lets what runs of a job stand still, every rank together.
func (c *Client) PauseJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return change(ctx, c, JobsPause, id, request)
}

// ContinueJob lets a paused job go on.
func (c *Client) ContinueJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return change(ctx, c, JobsContinue, id, request)
}

// ThrottleJob lets a job run and stand still in turns, or lifts that.
func (c *Client) ThrottleJob(ctx context.Context, id string, request ThrottleRequest) (*Changed, error) {
	return change(ctx, c, JobsThrottle, id, request)
}

// FinishJob ends what runs of a job now, with success.
func (c *Client) FinishJob(ctx context.Context, id string, request JobControlRequest) (*Changed, error) {
	return change(ctx, c, JobsFinish, id, request)
}

// DeleteJob forgets an ended job.
func (c *Client) DeleteJob(ctx context.Context, id string) (*Changed, error) {
	return change(ctx, c, JobsDelete, id, None{})
}

// SetJobPriority changes the tier of a queued job.
func (c *Client) SetJobPriority(ctx context.Context, id string, priority structs.Priority) (*Changed, error) {
	return change(ctx, c, JobsPriority, id, JobPriorityRequest{Priority: priority})
}

// AnnotateJob changes the tags and the note of a job, and returns what it has then.
func (c *Client) AnnotateJob(ctx context.Context, id string, request JobAnnotateRequest) (*JobAnnotations, error) {
	return change(ctx, c, JobsAnnotate, id, request)
}

// Allocation reads one allocation by its id or a unique prefix of it.
func (c *Client) Allocation(ctx context.Context, id string, query *Query) (*structs.Allocation, *Meta, error) {
	return read(ctx, c, AllocationsRead, id, query.values())
}
