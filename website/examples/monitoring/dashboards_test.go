package monitoring

import (
	"encoding/json"
	"testing"

	"nomadlike/internal/golden"
)

//go:generate go test -count=1 -run TestDashboards -rewrite .

// panel is a picture of a dashboard, or a number.
type panel struct {
	title string
	unit  string // of Grafana
	width int    // of 24; numbers are 4 high, pictures 8
	lines []line // one: a number, when it has no legend
	bad   []step
}

// line is a query and what its series are called; labels stand in {{}}.
type line struct{ expr, legend string }

// step is the colour of a number from a value on.
type step struct {
	from  float64
	color string
}

// dashboard is a page of panels, which fill rows of 24 columns in their order.
type dashboard struct {
	uid, title string
	vars       []variable
	panels     []panel
}

// variable is what the reader chooses: a label of series.
type variable struct{ name, label, series string }

func number(title, unit, expr string, bad ...step) panel {
	return panel{title: title, unit: unit, width: 4, lines: []line{{expr, ""}}, bad: bad}
}

func picture(title, unit string, lines ...line) panel {
	return panel{title: title, unit: unit, width: 12, lines: lines}
}

func someAreBad() step { return step{1, "red"} }

// dashboards is the table that the files are written from.
func dashboards() []dashboard {
	project := variable{"project", "Project", "nomadlike_job_state"}
	return []dashboard{
		{uid: "nomadlike", title: "nomadlike: cluster", panels: []panel{
			number("Servers that answer", "short", `sum(up{job="nomadlike"})`),
			number("Leaders", "short", `sum(nomadlike_raft_leader)`, step{0, "red"}, step{1, "green"}, step{2, "red"}),
			number("Nodes not ready", "short", `max(sum without (status) (nomadlike_nodes{status=~"lost|disconnected"}))`, someAreBad()),
			number("Unhealthy cards", "short", `count(nomadlike_device_healthy == 0) or vector(0)`, someAreBad()),
			number("Subjobs that wait", "short", `max(nomadlike_subjobs{state="queued"})`),
			number("Longest wait", "s", `max(nomadlike_queue_oldest_wait_seconds)`),
			picture("Cards in use, by model", "short", line{`sum by (model) (nomadlike_device_used)`, "{{model}} in use"}, line{`count by (model) (nomadlike_device_used)`, "{{model}} there"}),
			picture("Use of the cards that jobs hold, by project", "percentunit", line{`avg by (project) (nomadlike_rank_device_utilization_ratio)`, "{{project}}"}),
			picture("Waiting, by pool and tier", "short", line{`max by (pool, tier) (nomadlike_queue_subjobs)`, "{{pool}} {{tier}}"}),
			picture("Longest wait, by pool", "s", line{`max by (pool) (nomadlike_queue_oldest_wait_seconds)`, "{{pool}}"}),
			picture("Subjobs by state", "short", line{`max by (state) (nomadlike_subjobs{state!~"succeeded|failed|stopped|expired"})`, "{{state}}"}),
			picture("Cores offered and held", "short", line{`max by (kind) (nomadlike_cpu_cores)`, "{{kind}}"}),
			picture("Hottest cards", "celsius", line{`topk(10, nomadlike_device_temperature_celsius)`, "{{node}} {{number}}"}),
			picture("Power drawn by cards", "watt", line{`sum by (pool) (nomadlike_device_power_watts)`, "{{pool}}"}),
			picture("Least disk left for tasks", "bytes", line{`bottomk(10, nomadlike_node_disk_free_bytes)`, "{{node}}"}),
			picture("Errors of memory and links of cards, by the hour", "short",
				line{`sum by (node, number) (increase(nomadlike_device_ecc_uncorrected_total[1h]))`, "{{node}} {{number}} ECC"},
				line{`sum by (node, number) (increase(nomadlike_device_nvlink_errors_total[1h]))`, "{{node}} {{number}} NVLink"}),
			picture("Attempts lost to nodes, cards and preemption, by the hour", "short", line{`sum by (project) (increase(nomadlike_job_infra_losses_total[1h]))`, "{{project}}"}),
		}},
		{uid: "nomadlike-project", title: "nomadlike: project", vars: []variable{project}, panels: []panel{
			number("Jobs that run", "short", `count(sum by (job_id) (nomadlike_job_state{project="$project", state="running"}) > 0) or vector(0)`),
			number("Cards held", "short", `sum(nomadlike_rank_devices{project="$project"})`),
			number("Use of the cards", "percentunit", `avg(nomadlike_rank_device_utilization_ratio{project="$project"})`),
			number("Memory held by tasks", "bytes", `sum(nomadlike_rank_memory_bytes{project="$project"})`),
			number("Restarts of a day", "short", `sum(increase(nomadlike_job_restarts_total{project="$project"}[1d]))`),
			number("Losses of a day", "short", `sum(increase(nomadlike_job_infra_losses_total{project="$project"}[1d]))`),
			picture("Cards held, by user", "short", line{`sum by (user) (nomadlike_rank_devices{project="$project"})`, "{{user}}"}),
			picture("Use of the cards, by user", "percentunit", line{`avg by (user) (nomadlike_rank_device_utilization_ratio{project="$project"})`, "{{user}}"}),
			picture("Subjobs by state", "short", line{`sum by (state) (nomadlike_job_state{project="$project"})`, "{{state}}"}),
			picture("Processor time of tasks, in cores, by user", "short", line{`sum by (user) (rate(nomadlike_rank_cpu_seconds_total{project="$project"}[$__rate_interval]))`, "{{user}}"}),
			picture("Ranks with the least used cards", "percentunit", line{`bottomk(10, nomadlike_rank_device_utilization_ratio{project="$project"})`, "{{job_name}} {{rank}}"}),
			picture("Attempts lost to nodes, cards and preemption, by the hour", "short", line{`sum by (job_name) (increase(nomadlike_job_infra_losses_total{project="$project"}[1h]))`, "{{job_name}}"}),
		}},
		{uid: "nomadlike-job", title: "nomadlike: job", vars: []variable{project, {"job_id", "Job", `nomadlike_job_state{project="$project"}`}}, panels: []panel{
			number("Ranks that run", "short", `sum(nomadlike_rank_running{job_id="$job_id"})`),
			number("Cards held", "short", `sum(nomadlike_rank_devices{job_id="$job_id"})`),
			number("Use of the cards", "percentunit", `avg(nomadlike_rank_device_utilization_ratio{job_id="$job_id"})`),
			number("Attempts", "short", `sum(nomadlike_job_attempts_total{job_id="$job_id"})`),
			number("Restarts", "short", `sum(nomadlike_job_restarts_total{job_id="$job_id"})`, someAreBad()),
			number("Losses", "short", `sum(nomadlike_job_infra_losses_total{job_id="$job_id"})`, someAreBad()),
			picture("Use of the cards, by rank", "percentunit", line{`nomadlike_rank_device_utilization_ratio{job_id="$job_id"}`, "{{subjob}}/{{rank}}"}),
			picture("Memory of the cards, by rank", "bytes", line{`nomadlike_rank_device_memory_used_bytes{job_id="$job_id"}`, "{{subjob}}/{{rank}}"}),
			picture("Memory, by rank", "bytes", line{`nomadlike_rank_memory_bytes{job_id="$job_id"}`, "{{subjob}}/{{rank}}"}),
			picture("Processor time in cores, by rank", "short", line{`rate(nomadlike_rank_cpu_seconds_total{job_id="$job_id"}[$__rate_interval])`, "{{subjob}}/{{rank}}"}),
			picture("Where it runs", "short", line{`count by (node) (nomadlike_rank_running{job_id="$job_id"} == 1)`, "{{node}}"}),
			picture("Restarts by rank", "short", line{`nomadlike_rank_restarts_total{job_id="$job_id"}`, "{{subjob}}/{{rank}}"}),
		}},
		{uid: "nomadlike-servers", title: "nomadlike: control plane", panels: []panel{
			number("Servers that answer", "short", `sum(up{job="nomadlike"})`),
			number("Leaders", "short", `sum(nomadlike_raft_leader)`, step{0, "red"}, step{1, "green"}, step{2, "red"}),
			number("Changes of leader in a day", "short", `max(increase(nomadlike_raft_leader_changes_total[1d]))`, step{5, "red"}),
			number("Age of the newest backup", "s", `time() - max(nomadlike_backup_time_seconds)`, step{10800, "red"}),
			number("First certificate to end", "s", `min(nomadlike_agent_certificate_expiry_timestamp_seconds) - time()`, step{0, "red"}, step{86400, "green"}),
			number("CA ends", "s", `min(nomadlike_ca_expiry_timestamp_seconds) - time()`, step{0, "red"}, step{90 * 86400, "green"}),
			picture("Time to commit (P99)", "s", line{`histogram_quantile(0.99, sum by (le) (rate(nomadlike_raft_commit_seconds_bucket[$__rate_interval])))`, "P99"},
				line{`histogram_quantile(0.5, sum by (le) (rate(nomadlike_raft_commit_seconds_bucket[$__rate_interval])))`, "P50"}),
			picture("Last contact with the leader", "s", line{`nomadlike_raft_last_contact_seconds`, "{{instance}}"}),
			picture("Time of a pass over the queue", "s", line{`histogram_quantile(0.99, sum by (le) (rate(nomadlike_scheduler_pass_seconds_bucket[$__rate_interval])))`, "P99"},
				line{`histogram_quantile(0.5, sum by (le) (rate(nomadlike_scheduler_pass_seconds_bucket[$__rate_interval])))`, "P50"}),
			picture("Wait of what was placed (P90), by tier", "s", line{`histogram_quantile(0.9, sum by (le, tier) (increase(nomadlike_queue_wait_seconds_bucket[1h])))`, "{{tier}}"}),
			picture("Error of first forecasts", "s", line{`histogram_quantile(0.5, sum by (le) (increase(nomadlike_forecast_error_seconds_bucket[1d])))`, "P50"},
				line{`histogram_quantile(0.9, sum by (le) (increase(nomadlike_forecast_error_seconds_bucket[1d])))`, "P90"}),
			picture("Share of first forecasts that held: half of P50 and nine tenths of P90 should", "percentunit",
				line{`sum by (answer) (increase(nomadlike_forecast_kept_total[1d])) / on () group_left () sum(increase(nomadlike_forecast_error_seconds_count[1d]))`, "{{answer}}"}),
			picture("Space left for the log", "bytes", line{`nomadlike_raft_disk_free_bytes`, "{{instance}}"}),
			picture("Length of the log, and entries since the snapshot", "short", line{`nomadlike_raft_log_bytes`, "{{instance}} bytes"}, line{`nomadlike_raft_snapshot_lag_entries`, "{{instance}} entries"}),
			picture("Time to answer (P99)", "s", line{`histogram_quantile(0.99, sum by (le, route) (rate(nomadlike_http_request_seconds_bucket[$__rate_interval])))`, "{{route}}"}),
			picture("Requests that failed here, by the second", "short", line{`sum by (route, status) (rate(nomadlike_http_requests_total{status=~"5.."}[$__rate_interval])) or vector(0)`, "{{route}} {{status}}"}),
			picture("Memory and goroutines of servers", "short", line{`process_resident_memory_bytes{job="nomadlike"}`, "{{instance}} bytes"}, line{`go_goroutines{job="nomadlike"}`, "{{instance}} goroutines"}),
			picture("Agents by role and status", "short", line{`max by (role, status) (nomadlike_agents)`, "{{role}} {{status}}"}),
		}},
	}
}

// object is a JSON object whose keys are sorted when it is written.
type object = map[string]any

// json writes a dashboard as Grafana 9 and later import it.
func (d *dashboard) json() object {
	source := object{"type": "prometheus", "uid": "${source}"}
	choices := []object{{"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1, "hide": 0}}
	for _, v := range d.vars {
		query := "label_values(" + v.series + ", " + v.name + ")"
		choices = append(choices, object{
			"name": v.name, "label": v.label, "type": "query", "datasource": source, "definition": query,
			"query": object{"query": query, "refId": v.name}, "refresh": 2, "sort": 1, "hide": 0,
		})
	}
	var panels []object
	x, y, height := 0, 0, 0
	for i, p := range d.panels {
		kind, high, defaults := "timeseries", 8, object{"unit": p.unit}
		if p.unit == "percentunit" {
			defaults["min"], defaults["max"] = 0, 1
		}
		options := object{}
		if p.lines[0].legend == "" {
			kind, high = "stat", 4
			options = object{"colorMode": "value", "reduceOptions": object{"calcs": []string{"lastNotNull"}}}
		}
		if len(p.bad) > 0 {
			steps := []object{{"color": "green", "value": nil}}
			if p.bad[0].from == 0 { // the lowest colour has no beginning
				steps = []object{{"color": p.bad[0].color, "value": nil}}
				p.bad = p.bad[1:]
			}
			for _, one := range p.bad {
				steps = append(steps, object{"color": one.color, "value": one.from})
			}
			defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
		}
		if x+p.width > 24 {
			x, y, height = 0, y+height, 0
		}
		var targets []object
		for at, one := range p.lines {
			targets = append(targets, object{"datasource": source, "expr": one.expr, "legendFormat": one.legend, "refId": string(rune('A' + at))})
		}
		panels = append(panels, object{
			"id": i + 1, "type": kind, "title": p.title, "datasource": source, "targets": targets, "options": options,
			"gridPos":     object{"x": x, "y": y, "w": p.width, "h": high},
			"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		})
		x, height = x+p.width, max(height, high)
	}
	return object{
		"uid": d.uid, "title": d.title, "tags": []string{"nomadlike"}, "schemaVersion": 38, "version": 1, "refresh": "30s", "timezone": "browser", "editable": true,
		"time": object{"from": "now-6h", "to": "now"}, "templating": object{"list": choices}, "annotations": object{"list": []object{}}, "panels": panels,
	}
}

// TestDashboards: the files are what the table says.
func TestDashboards(t *testing.T) {
	names := map[string]string{"nomadlike": "cluster", "nomadlike-project": "project", "nomadlike-job": "job", "nomadlike-servers": "servers"}
	for _, one := range dashboards() {
		text, err := json.MarshalIndent(one.json(), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		golden.Assert(t, "dashboard-"+names[one.uid]+".json", string(text)+"\n")
	}
}
