package httpapi

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
)

// gathered are the values of all series by name and labels; histograms are there as
// name_count and name_sum.
func gathered(t *testing.T, collectors ...prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collectors...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, label.GetName()+"="+label.GetValue())
			}
			at := strings.TrimPrefix(f.GetName(), "nomadlike_") + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.GetHistogram() != nil:
				found[at+"_count"], found[at+"_sum"] = float64(m.GetHistogram().GetSampleCount()), m.GetHistogram().GetSampleSum()
			case m.GetCounter() != nil:
				found[at] = m.GetCounter().GetValue()
			default:
				found[at] = m.GetGauge().GetValue()
			}
		}
	}
	return found
}

func expect(t *testing.T, found, want map[string]float64) {
	t.Helper()
	for at, value := range want {
		if got, ok := found[at]; !ok || got != value {
			t.Errorf("%s is %v (there: %v), want %v", at, got, ok, value)
		}
	}
}

// What waits is told by pool and tier, with how long the oldest does; a pool that
// nothing waits for is told as well, and one that is no pool of the cluster has no name.
func TestSeriesOfTheQueue(t *testing.T) {
	h := newHarness(t)
	file := func(name, more string) string {
		return `job "` + name + `" {` + "\n" + more + `
  resources {
    cpu    = 1
    memory = "16MiB"
  }
  task { command = "true" }
}`
	}
	h.submit(structs.CommandPoolPut, structs.PoolPut{Pool: structs.Pool{Name: "a100"}})
	for _, text := range []string{file("first", ""), file("second", ""), file("third", `priority = "urgent"`), file("other", `after "first" {}`)} {
		if _, err := h.admin.SubmitJob(t.Context(), api.JobRequest{HCL: text}, ""); err != nil {
			t.Fatal(err)
		}
		h.replica.SetNow(h.replica.Now().Add(time.Minute))
	}
	expect(t, gathered(t, queueCollector{h.replica.Store(), h.replica.Now}), map[string]float64{
		"queue_subjobs{pool=default,tier=normal}":             2,
		"queue_subjobs{pool=default,tier=urgent}":             1,
		"queue_subjobs{pool=default,tier=critical}":           0,
		"queue_subjobs{pool=a100,tier=normal}":                0,
		"queue_oldest_wait_seconds{pool=default,tier=normal}": 240,
		"queue_oldest_wait_seconds{pool=default,tier=urgent}": 120,
		"queue_oldest_wait_seconds{pool=a100,tier=urgent}":    0,
	})
}

// What was foretold is compared with what came.
func TestLatencies(t *testing.T) {
	l := NewLatencies()
	at := structs.At(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
	foretold := func(half, most time.Duration) *structs.Forecast {
		return &structs.Forecast{P50: at.Add(half), P90: at.Add(most)}
	}
	urgent := &structs.Job{Priority: structs.PriorityUrgent}
	l.Placed(&structs.Job{}, at, 30*time.Second, foretold(time.Minute, time.Hour)) // earlier than likely
	l.Placed(urgent, at, time.Minute, foretold(-2*time.Minute, time.Minute))       // later, within bounds
	l.Placed(urgent, at, time.Minute, foretold(-2*time.Minute, -time.Minute))      // later than said
	l.Placed(&structs.Job{Priority: "from another version"}, at, -time.Second, nil)
	l.Committed(2 * time.Second)
	l.Passed(time.Second)
	expect(t, gathered(t, l), map[string]float64{
		"queue_wait_seconds{tier=normal}_count": 2, "queue_wait_seconds{tier=normal}_sum": 30,
		"queue_wait_seconds{tier=urgent}_count": 2, "queue_wait_seconds{tier=critical}_count": 0,
		"forecast_error_seconds{}_count": 3, "forecast_error_seconds{}_sum": 300,
		"forecast_kept_total{answer=p50}": 1, "forecast_kept_total{answer=p90}": 2,
		"raft_commit_seconds{}_sum": 2, "scheduler_pass_seconds{}_sum": 1,
	})
}

// What agents say of themselves breaks no answer: names that are twice there, roles and
// states that are none, letters that are none. A follower tells of its own certificate
// alone.
func TestSeriesOfServers(t *testing.T) {
	end := structs.At(time.Unix(5000, 0))
	leads := true
	collector := serverCollector{
		raft: func() LogStats {
			return LogStats{Term: 7, Leaders: 2, LastContact: -1, AppliedIndex: 90, SnapshotIndex: 100}
		},
		members: func() []api.Member {
			return []api.Member{
				{ID: "a", Name: "one", Role: "server", Status: "alive", CertificateEndsAt: end},
				{ID: "b", Name: "one", Role: "server", Status: "alive", CertificateEndsAt: end},
				{ID: "c", Name: "two", Role: "client", Status: "alive", CertificateEndsAt: end},
				{ID: "d", Name: "two", Role: "client", Status: "alive", CertificateEndsAt: end},
				{ID: "e", Name: "bad\xff", Role: "emperor", Status: "asleep"},
				{ID: "f", Name: "gone", Role: "client", Status: "dead", CertificateEndsAt: end},
			}
		},
		self: func() api.AgentSelf {
			return api.AgentSelf{ID: "a", Name: "one", Version: "1.2.3", Protocol: 52, Roles: []string{"server"}}
		},
		ends:  func() (time.Time, time.Time) { return time.Unix(6000, 0), time.Unix(9000, 0) },
		leads: func() bool { return leads },
	}
	found := gathered(t, collector)
	expect(t, found, map[string]float64{
		"build_info{protocol=52,version=1.2.3}": 1, "raft_term{}": 7, "raft_leader_changes_total{}": 2, "raft_snapshot_lag_entries{}": 0, "ca_expiry_timestamp_seconds{}": 9000,
		"agents{role=server,status=alive}": 2, "agents{role=client,status=alive}": 2, "agents{role=other,status=other}": 1, "agents{role=client,status=dead}": 1,
		"agent_certificate_expiry_timestamp_seconds{agent=one,role=server}": 6000, "agent_certificate_expiry_timestamp_seconds{agent=two,role=client}": 5000,
	})
	for _, absent := range []string{"raft_last_contact_seconds{}", "raft_disk_free_bytes{}", "agent_certificate_expiry_timestamp_seconds{agent=gone,role=client}"} {
		if value, there := found[absent]; there {
			t.Errorf("%s is %v", absent, value)
		}
	}
	leads = false
	if value, there := gathered(t, collector)["agent_certificate_expiry_timestamp_seconds{agent=two,role=client}"]; there {
		t.Errorf("a follower tells of another agent's certificate: %v", value)
	}
}

// The newest lines of a log are whole ones, and no more than were asked for.
func TestLogLines(t *testing.T) {
	lines := NewLogLines(100)
	for i := range 1000 {
		if n, err := lines.Write([]byte(strings.Repeat("x", i%9) + "\n")); err != nil || n != i%9+1 {
			t.Fatal(n, err)
		}
	}
	text := string(lines.Lines())
	if len(text) > 100 || len(text) < 90 || !strings.HasSuffix(text, "\n") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 9 {
			t.Errorf("no line: %q", line)
		}
	}
	short := NewLogLines(100)
	_, _ = short.Write([]byte("one\n"))
	if string(short.Lines()) != "one\n" {
		t.Errorf("%q", short.Lines())
	}
}
