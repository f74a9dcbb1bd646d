package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/internal/golden"
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
	want := make(map[string]string)
	for _, f := range families() {
		kind := "gauge"
		if f.kind == prometheus.CounterValue {
			kind = "counter"
		}
		want[f.name] = kind + " " + f.labels
	}
	for name, of := range ofServers() {
		want[name] = of
	}
	for _, language := range []string{"en", "zh"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "website", "reference", language, "metrics.md"))
		if err != nil {
			t.Fatal(err)
		}
		explained := make(map[string]string)
		for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
			explained[row[1]] = strings.TrimSpace(row[2] + " " + strings.Join(strings.Fields(strings.ReplaceAll(row[3], "`", "")), " "))
		}
		if diff := cmp.Diff(want, explained); diff != "" {
			t.Errorf("the reference in %s explains other series (-code +page):\n%s", language, diff)
		}
	}
}

// metricRow is a line of the reference page: name, type, labels.
var metricRow = regexp.MustCompile("(?m)^\\| `(nomadlike_\\w+)` \\| (\\w+) \\| ([^|]*) \\|")

// describedBy are the names and labels in what prometheus.Desc says of itself.
var describedBy = regexp.MustCompile(`fqName: "(\w+)".*variableLabels: \{([^}]*)\}`)

// ofServers lists the series of a server itself: type and labels by name. Those of
// backups are the agent's, where a test has them.
func ofServers() map[string]string {
	found := map[string]string{"nomadlike_backup_time_seconds": "gauge", "nomadlike_backup_failures_total": "counter"}
	leads := func() bool { return false }
	m := newMetrics(state.New(), leads, leads, &seriesCollector{store: state.New()})
	for _, one := range []struct {
		kind      string
		collector prometheus.Collector
	}{{"counter", m.requests}, {"histogram", m.took}, {"gauge", stateCollector{}}, {"histogram", NewLatencies()}, {"gauge", queueCollector{}}, {"gauge", serverCollector{}}} {
		descs := make(chan *prometheus.Desc, 100)
		one.collector.Describe(descs)
		close(descs)
		for desc := range descs {
			words := describedBy.FindStringSubmatch(desc.String())
			of := one.kind
			if strings.HasSuffix(words[1], "_total") {
				of = "counter"
			}
			found[words[1]] = strings.TrimSpace(of + " " + strings.ReplaceAll(words[2], ",", " "))
		}
	}
	return found
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
	asked := newSurvey(time.Now, slog.New(slog.DiscardHandler), func(_ context.Context, node *structs.Node) (*structs.NodeUsage, error) {
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
	leads = false // a follower reports its own nodes only
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
