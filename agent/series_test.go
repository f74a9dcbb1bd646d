package agent

import (
	"bufio"
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

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
		{"nomadlike_job_attempts_total", `job_name="seen"`, "1"},
		{"nomadlike_rank_running", `rank="0"`, "1"},
		{"nomadlike_rank_memory_bytes", `rank="0"`, ""},
		{"nomadlike_rank_restarts_total", `rank="0"`, "0"},
		{"nomadlike_rank_devices", `job_name="seen"`, "1"},
	} {
		got := value(want.name, want.label)
		if want.value != "" && got != want.value || got == "" {
			t.Errorf("%s{%s} is %q, want %q", want.name, want.label, got, want.value)
		}
	}
	names, err := os.ReadFile("httpapi/testdata/series.golden")
	if err != nil {
		t.Fatal(err)
	}
	known := regexp.MustCompile(`^nomadlike_(node|device|job|rank)_`)
	for series := range of {
		name, _, _ := strings.Cut(series, "{")
		if known.MatchString(name) && !strings.Contains("\n"+string(names), "\n"+name+" ") {
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
