package httpapi

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nomadlike/agent/httpapi/front"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
)

// metrics are what an agent tells Prometheus. Labels of its own series hold
// routes, states and codes only; what has names is in seriesCollector.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
}

func newMetrics(store *state.Store, leads, full func() bool, named *seriesCollector) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nomadlike_http_requests_total", Help: "Requests to the HTTP API by route and status.",
		}, []string{"route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nomadlike_http_request_seconds", Help: "Time to answer by route; blocking queries and streams left out.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, 1, 5},
		}, []string{"route"}),
	}
	m.registry.MustRegister(m.requests, m.took, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), stateCollector{store, leads, full}, named)
	return m
}

// Observe implements front.Observer: it counts one answered request.
func (m *metrics) Observe(route string, stream bool, status int, took time.Duration) {
	m.requests.WithLabelValues(route, strconv.Itoa(status)).Inc()
	if !stream {
		m.took.WithLabelValues(route).Observe(took.Seconds())
	}
}

// handler writes the metrics in Prometheus's text form.
func (m *metrics) handler() front.Handler {
	write := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return func(r *front.Request) error {
		write.ServeHTTP(r.Writer, r.Request)
		return nil
	}
}

// stateCollector reads the replicated state when it is asked.
type stateCollector struct {
	store *state.Store
	leads func() bool
	full  func() bool
}

func (stateCollector) index() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_state_index", "Log index that this server has applied.", nil, nil)
}

func (stateCollector) leader() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_raft_leader", "1 on the server that believes to lead.", nil, nil)
}

func (stateCollector) room() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_raft_disk_full", "1 on a server without room for log entries, which leads only when no other can.", nil, nil)
}

func (stateCollector) subjobs() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_subjobs", "Subjobs by state.", []string{"state"}, nil)
}

func (stateCollector) nodes() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_nodes", "Nodes by status.", []string{"status"}, nil)
}

func (stateCollector) cpu() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_cpu_cores", "Cores of ready nodes, offered and held by allocations.", []string{"kind"}, nil)
}

func (stateCollector) jobs() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_jobs_kept", "Jobs in the state, those that ended included.", nil, nil)
}

func (stateCollector) forgotten() *prometheus.Desc {
	return prometheus.NewDesc("nomadlike_jobs_forgotten_total", "Ended jobs that were removed because the settings keep them no longer.", nil, nil)
}

// Describe implements prometheus.Collector.
func (c stateCollector) Describe(to chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.index(), c.leader(), c.room(), c.subjobs(), c.nodes(), c.cpu(), c.jobs(), c.forgotten()} {
		to <- desc
	}
}

// Collect implements prometheus.Collector.
func (c stateCollector) Collect(to chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	snapshot := c.store.Snapshot()
	gauge(c.index(), float64(snapshot.Index()))
	gauge(c.jobs(), float64(snapshot.JobCount()))
	to <- prometheus.MustNewConstMetric(c.forgotten(), prometheus.CounterValue, float64(snapshot.Forgotten()))
	leader := 0.0
	if c.leads() {
		leader = 1
	}
	gauge(c.leader(), leader)
	gauge(c.room(), truth(c.full()))
	subjobs := map[structs.JobState]int{}
	for view := range snapshot.Jobs() {
		for _, one := range structs.JobStates() {
			subjobs[one] += view.Status.Counts.Of(one)
		}
	}
	for _, one := range structs.JobStates() {
		gauge(c.subjobs(), float64(subjobs[one]), string(one))
	}
	nodes := map[structs.NodeStatus]int{}
	offered, held := 0.0, 0.0
	for node, usage := range snapshot.Nodes() {
		nodes[node.Status]++
		if node.Status == structs.NodeReady {
			offered += node.Capacity.CPU
			if usage != nil {
				held += usage.CPU
			}
		}
	}
	for _, status := range []structs.NodeStatus{structs.NodeReady, structs.NodeDisconnected, structs.NodeLost, structs.NodeLeft} {
		gauge(c.nodes(), float64(nodes[status]), string(status))
	}
	gauge(c.cpu(), offered, "offered")
	gauge(c.cpu(), held, "held")
}
