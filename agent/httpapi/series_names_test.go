package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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
	for _, language := range []string{"en", "zh"} {
		page, err := os.ReadFile(filepath.Join("..", "..", "website", "reference", language, "metrics.md"))
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
