package structs

// PastRun is one ended attempt as run-time estimates need it. The state keeps
// the newest of them, also of jobs that were deleted since.
type PastRun struct {
	Seq       uint64   `json:"seq"` // rises by one with each
	JobID     string   `json:"job_id"`
	Project   string   `json:"project"`
	User      string   `json:"user"`
	Name      string   `json:"name"`
	Image     string   `json:"image,omitempty"`
	Category  string   `json:"category,omitempty"`
	Pool      string   `json:"pool,omitempty"`
	Devices   int      `json:"devices"` // of the whole gang
	Nodes     int      `json:"nodes"`
	Waited    Duration `json:"waited"`  // in the queue before this attempt
	Runtime   Duration `json:"runtime"` // from placement to the last rank's end, without what it was paused
	TimeLimit Duration `json:"time_limit,omitempty"`
	Expected  Duration `json:"expected,omitempty"`
	Outcome   Outcome  `json:"outcome"`
	EndedAt   UnixNano `json:"ended_at"`
}

// Forecast is one answer to "when does it start?", kept so that its
// calibration can be shown. The leader writes one when a job enters the queue
// and again when the answer moves; state.Apply fills StartedAt.
type Forecast struct {
	JobID     string    `json:"job_id"`
	Subjob    int       `json:"subjob"`
	Attempt   uint64    `json:"attempt"` // the attempt whose start is forecast
	JobName   string    `json:"job_name"`
	Project   string    `json:"project"`
	Pool      string    `json:"pool,omitempty"`
	GivenAt   UnixNano  `json:"given_at"`
	Position  int       `json:"position,omitempty"` // in the queue, from 1
	Point     UnixNano  `json:"point"`              // the one best answer
	P50       UnixNano  `json:"p50"`
	P90       UnixNano  `json:"p90"`
	Features  []float64 `json:"features,omitempty"` // what the calibration learns from
	Revision  int       `json:"revision"`           // 0 for the first of an attempt
	StartedAt UnixNano  `json:"started_at,omitempty"`
	Withdrawn bool      `json:"withdrawn,omitempty"` // the job left the queue without a start
}
