package httpapi

import (
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/nomadlike/server"
	"nomadlike/nomadlike/structs"
)

// Latencies are the times that the log and the scheduler of a server take, for
// Prometheus. Only a leader has any to tell. Its methods may be called from any
// goroutine.
type Latencies struct {
	commit    prometheus.Histogram
	pass      prometheus.Histogram
	wait      *prometheus.HistogramVec
	misjudged prometheus.Histogram
	kept      *prometheus.CounterVec
}

var (
	_ prometheus.Collector = (*Latencies)(nil)
	_ server.Observer      = (*Latencies)(nil)
)

// Answers to "when does it start?" by how sure they are.
const (
	answerHalf = "p50"
	answerMost = "p90"
)

// NewLatencies makes them without any observation.
func NewLatencies() *Latencies {
	waits := []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 24 * 3600, 3 * 24 * 3600, 7 * 24 * 3600}
	l := &Latencies{
		commit: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nomadlike_raft_commit_seconds", Help: "Time from a proposal of this leader until it was on the disks of a quorum and applied here.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}),
		pass: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nomadlike_scheduler_pass_seconds", Help: "Time of a pass over the queue, its log entries included.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
		}),
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nomadlike_queue_wait_seconds", Help: "Time from entering the queue until nodes were found, of attempts that this leader placed.", Buckets: waits,
		}, []string{"tier"}),
		misjudged: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "nomadlike_forecast_error_seconds", Help: "Distance between the start that was foretold first, as likely as not, and the start.", Buckets: waits,
		}),
		kept: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nomadlike_forecast_kept_total", Help: "Starts that were not later than this answer of what was foretold first.",
		}, []string{"answer"}),
	}
	// Series that are there from the start can be asked how much they rose.
	for _, tier := range []structs.Priority{structs.PriorityNormal, structs.PriorityUrgent, structs.PriorityCritical} {
		l.wait.WithLabelValues(string(tier))
	}
	for _, answer := range []string{answerHalf, answerMost} {
		l.kept.WithLabelValues(answer)
	}
	return l
}

// Committed is told how long a log entry took.
func (l *Latencies) Committed(took time.Duration) { l.commit.Observe(took.Seconds()) }

// Passed implements server.Observer.
func (l *Latencies) Passed(took time.Duration) { l.pass.Observe(took.Seconds()) }

// Placed implements server.Observer.
func (l *Latencies) Placed(job *structs.Job, at structs.UnixNano, waited time.Duration, first *structs.Forecast) {
	l.wait.WithLabelValues(tierOf(job)).Observe(max(0, waited.Seconds()))
	if first == nil || first.P50 == 0 {
		return
	}
	l.misjudged.Observe(math.Abs(at.Sub(first.P50).Seconds()))
	if at <= first.P50 {
		l.kept.WithLabelValues(answerHalf).Inc()
	}
	if at <= first.P90 {
		l.kept.WithLabelValues(answerMost).Inc()
	}
}

// tierOf is a job's tier as a label: one of three.
func tierOf(job *structs.Job) string {
	switch job.Priority {
	case structs.PriorityUrgent, structs.PriorityCritical:
		return string(job.Priority)
	}
	return string(structs.PriorityNormal)
}

func (l *Latencies) parts() []prometheus.Collector {
	return []prometheus.Collector{l.commit, l.pass, l.wait, l.misjudged, l.kept}
}

// Describe implements prometheus.Collector.
func (l *Latencies) Describe(to chan<- *prometheus.Desc) {
	for _, part := range l.parts() {
		part.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (l *Latencies) Collect(to chan<- prometheus.Metric) {
	for _, part := range l.parts() {
		part.Collect(to)
	}
}
