package structs

import (
	"regexp"
	"slices"
)

// Metrics says how training metrics are found in what a job writes. A job without it
// has the common forms read from its logs, and event files from its outputs.
type Metrics struct {
	// Patterns are regular expressions (RE2) for lines of the logs. Named groups
	// are figures; the group step numbers them, and the groups name and value
	// name one at a time. With patterns, nothing else is taken from the logs.
	Patterns []string `json:"patterns,omitempty"`
	// Events is the directory with event files of TensorBoard, as the task sees
	// it, absolute; "" means that of tensorboard, or the outputs.
	Events string `json:"events,omitempty"`
}

// Limits of Metrics.
const (
	MetricPatternsMax = 16
	MetricPatternMax  = 512 // bytes
)

// OutputsDir is where a task finds the directory of its output.
const OutputsDir = "/workspace/outputs"

// EventsDir is the directory, as the task sees it, in which event files of
// TensorBoard are looked for. "": there is none.
func (j *Job) EventsDir() string {
	switch {
	case j.Metrics != nil && j.Metrics.Events != "":
		return j.Metrics.Events
	case j.Tensorboard != nil && j.Tensorboard.LogDir != "":
		return j.Tensorboard.LogDir
	case j.Output != "":
		return OutputsDir
	}
	return ""
}

// metrics checks how training metrics are to be found.
func (v *validator) metrics(m *Metrics) {
	if len(m.Patterns) > MetricPatternsMax {
		v.add("metrics.patterns", "job.metric_patterns", "", "max", MetricPatternsMax)
		return
	}
	for i, text := range m.Patterns {
		at := IndexedPath("metrics.patterns", i)
		compiled, err := regexp.Compile(text)
		switch {
		case len(text) > MetricPatternMax:
			v.add(at, "job.metric_pattern_long", "", "max", MetricPatternMax)
		case err != nil:
			v.add(at, "job.metric_pattern", "", "cause", err.Error())
		case !namesMetric(compiled):
			v.add(at, "job.metric_pattern_nameless", "")
		}
	}
	if m.Events != "" {
		v.directory("metrics.events", m.Events)
	}
}

// namesMetric reports whether a pattern has a group that names a metric.
func namesMetric(pattern *regexp.Regexp) bool {
	names := pattern.SubexpNames()
	if slices.Contains(names, "name") && slices.Contains(names, "value") {
		return true
	}
	return slices.ContainsFunc(names, func(name string) bool { return name != "" && name != "step" && name != "name" && name != "value" })
}

// MetricPoint is one observation of a metric.
type MetricPoint struct {
	Step  int64    `json:"step"`
	At    UnixNano `json:"at"`
	Value float64  `json:"value"`
}

// MetricSeries is how a metric of one rank went in one attempt. Points are
// observations, never means of several; a long series keeps every second,
// fourth and so on.
type MetricSeries struct {
	Name   string        `json:"name"`
	Source string        `json:"source"` // MetricFromLog, or the directory of the event file
	Count  int64         `json:"count"`  // observations
	Min    float64       `json:"min"`
	Max    float64       `json:"max"`
	Last   MetricPoint   `json:"last"`
	Points []MetricPoint `json:"points"`
	// NotFinite counts the observations that were no number or infinite: they
	// are in no point. NotFiniteAt is when the last of them was.
	NotFinite   int64    `json:"not_finite,omitempty"`
	NotFiniteAt UnixNano `json:"not_finite_at,omitempty"`
}

// MetricFromLog is the source of what was found in the log.
const MetricFromLog = "log"

// MetricsRequest asks a node for the metrics of allocations that run or ran there.
type MetricsRequest struct {
	AllocIDs []string `json:"alloc_ids"`
	Names    []string `json:"names,omitempty"` // none: all
	Points   int      `json:"points"`          // of each series at most
}

// MetricsAllocsMax bounds the allocations of one MetricsRequest.
const MetricsAllocsMax = 64

// NodeMetrics answers a MetricsRequest: the allocations of which something is
// kept, in the order of the request.
type NodeMetrics struct {
	Allocs []AllocMetrics `json:"allocs"`
}

// AllocMetrics is what one rank measured of itself in one attempt.
type AllocMetrics struct {
	AllocID string         `json:"alloc_id"`
	Series  []MetricSeries `json:"series"`             // by name and source
	LeftOut int            `json:"left_out,omitempty"` // observations of names beyond the bound
}
