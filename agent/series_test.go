package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/internal/eventually"
	"nomadlike/internal/golden"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// The names and labels of all series are promises to whoever has made
// dashboards of them; the reference explains each, in both languages.
func TestSeriesNames(t *testing.T) {
	var out strings.Builder
	for _, f := range families() {
		kind := "gauge"
		if f.kind == prometheus.CounterValue {
			kind = "counter"
		}
		fmt.Fprintf(&out, "%s %s {%s}\n", f.name, kind, strings.ReplaceAll(f.labels, " ", ","))
	}
	golden.Assert(t, filepath.Join("testdata", "series.golden"), out.String())
	for _, language := range []string{"en", "zh"} {
		page, err := os.ReadFile(filepath.Join("..", "website", "reference", language, "metrics.md"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families() {
			if !bytes.Contains(page, []byte("`"+f.name+"`")) {
				t.Errorf("the reference in %s does not explain %s", language, f.name)
			}
		}
	}
}

// metricsOf reads the series of an agent whose name begins with prefix, by the
// name with its labels.
func metricsOf(t *testing.T, client *api.Client, prefix string) map[string]string {
	t.Helper()
	var text bytes.Buffer
	if err := client.Metrics(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for lines := bufio.NewScanner(&text); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, prefix) {
			at := strings.LastIndexByte(line, ' ')
			found[line[:at]] = line[at+1:]
		}
	}
	return found
}

// A job on cards is seen by Prometheus: its node, its cards, itself and its
// rank, until it has ended.
func (m maker) jobsOnCardsHaveSeries(t *testing.T) {
	c := m.start(t, 2)
	job := runJob(t, c.client, onCards("seen", 1, `sh -c 'while test ! -e ../end; do :; done'`), structs.JobRunning)
	var of map[string]string
	value := func(name string, labels ...string) string {
		for series, value := range of {
			if strings.HasPrefix(series, name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
				return value
			}
		}
		return ""
	}
	eventually.Within(t, time.Minute, "all is measured", func() bool {
		of = metricsOf(t, c.client, "nomadlike_")
		return value("nomadlike_rank_cpu_seconds_total") != "" && value("nomadlike_rank_device_utilization_ratio") != "" && value("nomadlike_rank_running") == "1"
	})
	mine := allocOf(t, c.client, job.Job.ID).Devices[0]
	for _, want := range []struct{ name, label, value string }{
		{"nomadlike_node_up", "", "1"},
		{"nomadlike_node_cpu_cores", `kind="held"`, "0.1"},
		{"nomadlike_device_healthy", `device="GPU-0001"`, "1"},
		{"nomadlike_device_used", `device="` + mine + `"`, "1"},
		{"nomadlike_device_temperature_celsius", `device="` + mine + `"`, ""},
		{"nomadlike_job_state", `state="running"`, "1"},
		{"nomadlike_job_attempts_total", `job="seen"`, "1"},
		{"nomadlike_rank_running", `rank="0"`, "1"},
		{"nomadlike_rank_memory_bytes", `rank="0"`, ""},
		{"nomadlike_rank_restarts_total", `rank="0"`, "0"},
		{"nomadlike_rank_devices", `job="seen"`, "1"},
	} {
		got := value(want.name, want.label)
		if want.value != "" && got != want.value || got == "" {
			t.Errorf("%s{%s} is %q, want %q", want.name, want.label, got, want.value)
		}
	}
	known := regexp.MustCompile(`^nomadlike_(node|device|job|rank)_`)
	for series := range of {
		name, _, _ := strings.Cut(series, "{")
		if known.MatchString(name) && !slices.ContainsFunc(families(), func(f family) bool { return f.name == name }) {
			t.Errorf("%s is in no table", name)
		}
	}
	if _, err := c.client.StopJob(t.Context(), job.Job.ID, api.JobStopRequest{}); err != nil {
		t.Fatal(err)
	}
	eventually.Within(t, time.Minute, "the job's last state", func() bool {
		of = metricsOf(t, c.client, "nomadlike_")
		return value("nomadlike_job_state", `state="stopped"`) == "1" && value("nomadlike_rank_running") == ""
	})
}

// What a node says of itself cannot break the answer for all others: two nodes
// of one name, and a model that looks like a series.
func TestSeriesOfStrangeNodes(t *testing.T) {
	nodes := []*structs.Node{
		{ID: "a", Name: "same", Status: structs.NodeReady, RPCAddr: "a", Devices: []structs.Device{{ID: "d", Model: "\"}\nfake 1", Healthy: true}}},
		{ID: "b", Name: "same", Status: structs.NodeReady, RPCAddr: "b"},
	}
	store := state.New()
	for i, node := range nodes {
		command, err := wire.EncodeCommand(structs.CommandNodeRegister, 1, "tester", &structs.NodeRegister{Node: *node})
		if err != nil {
			t.Fatal(err)
		}
		if result := store.Apply(uint64(i+1), command); result.Err != nil {
			t.Fatal(result.Err)
		}
	}
	asked := newSurvey(time.Now, testOptions(t).Log, func(_ context.Context, node *structs.Node) (*structs.NodeUsage, error) {
		if node.ID == "b" {
			return nil, structs.NewError(structs.CodeUnavailable, "agent.node_away", "node", node.Name)
		}
		return &structs.NodeUsage{At: 1, CPUSeconds: 2.5, Devices: []structs.DeviceUsage{{ID: "d", Gauges: map[string]float64{"utilization_ratio": 0.25, "nonsense": 1}}}}, nil
	})
	leads := true
	collector := &seriesCollector{store: store, survey: asked, leads: func() bool { return leads }, hears: func(id string) bool { return leads || id == "b" }, now: time.Now}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector)
	if n := countSeries(t, registry, "nomadlike_node_up", "nomadlike_device_utilization_ratio", "nomadlike_node_cpu_seconds_total"); n != 4 {
		t.Errorf("%d series", n)
	}
	leads = false // a follower tells of its own nodes only
	if n := countSeries(t, registry, "nomadlike_node_up"); n != 1 {
		t.Errorf("%d series of a follower", n)
	}
}

// countSeries gathers, and counts the series of some families.
func countSeries(t *testing.T, registry *prometheus.Registry, names ...string) int {
	t.Helper()
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, f := range gathered {
		if slices.Contains(names, f.GetName()) {
			count += len(f.GetMetric())
		}
	}
	return count
}
