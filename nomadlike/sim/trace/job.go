package trace

import (
	"slices"
	"time"
)

// Bounds of what is read, so that a wrong file ends in a message and not in a
// machine without memory.
const (
	JobsMax  = 5_000_000 // jobs of one trace
	GPUsMax  = 1 << 20   // devices of one job, and of one pool
	PoolsMax = 10_000    // pools of one file
	// bytesMax bounds a trace after decompression.
	bytesMax = 4 << 30
	// fieldMax bounds one text of a trace, in bytes.
	fieldMax = 4096
	// secondsMax bounds a time: about 200 years.
	secondsMax = 200 * 366 * 24 * 3600
)

// Job is one line of a trace. Times count from the trace's own zero.
type Job struct {
	ID       string
	User     string
	Group    string // the virtual cluster: the pool that it runs in
	Name     string
	State    string        // how it ended there, in the trace's words
	Submit   time.Duration // since the trace's zero
	Start    time.Duration // as recorded, negative when unknown; nothing replays it
	Duration time.Duration // of its run, negative when unknown
	Limit    time.Duration // that its user asked for, 0: none
	GPUs     int           // of all its nodes together; processors in SWF
	Nodes    int           // as recorded, 0: unknown
	CPUs     int           // 0: unknown
}

// Trace is a recorded or generated workload.
type Trace struct {
	Jobs []Job // by submission; those of one instant in the order of the file
	// Nodes and NodeGPUs are the machine as the file describes it, 0: it does not.
	Nodes, NodeGPUs int
}

// Between returns the jobs that were submitted from one time to another, both
// included; a negative end has no bound.
func (t *Trace) Between(from, to time.Duration) []Job {
	first, _ := slices.BinarySearchFunc(t.Jobs, from, func(j Job, at time.Duration) int { return compare(j.Submit, at) })
	end := len(t.Jobs)
	if to >= 0 {
		end, _ = slices.BinarySearchFunc(t.Jobs, to+1, func(j Job, at time.Duration) int { return compare(j.Submit, at) })
	}
	return t.Jobs[min(first, end):end]
}

// before returns the jobs that were submitted before a time.
func (t *Trace) before(at time.Duration) []Job {
	return t.Jobs[:len(t.Jobs)-len(t.Between(at, -1))]
}

func compare(a, b time.Duration) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// sortJobs puts jobs in the order of their submission and keeps the file's
// order within an instant.
func sortJobs(jobs []Job) {
	bySubmit := func(a, b Job) int { return compare(a.Submit, b.Submit) }
	if !slices.IsSortedFunc(jobs, bySubmit) {
		slices.SortStableFunc(jobs, bySubmit)
	}
}
