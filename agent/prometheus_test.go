package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"nomadlike/internal/eventually"
	"nomadlike/nomadlike/api"
	"nomadlike/nomadlike/structs"
	"nomadlike/website/examples/monitoring"
)

// scraping is a Prometheus of the distribution that scrapes one agent as the files
// that are handed out say.
type scraping struct {
	address string // host:port
	dir     string
}

// absentHere are series that a cluster of one development agent cannot have.
var absentHere = map[string]string{
	"nomadlike_backup_time_seconds":   "a development agent makes no backups",
	"nomadlike_backup_failures_total": "a development agent makes no backups",
}

// startPrometheus starts one with the files handed out, in which only paths, targets and
// the interval are others.
func startPrometheus(t *testing.T, target, caPEM, secret string) *scraping {
	t.Helper()
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("no Prometheus is installed here: apt-get install prometheus")
	}
	p := &scraping{dir: t.TempDir()}
	path := func(name string) string { return filepath.Join(p.dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("ca.pem", caPEM)
	write("token", secret+"\n")
	for _, file := range monitoring.Files() {
		text := string(file.Data)
		if file.Name == "prometheus.yml" {
			for old, now := range map[string]string{
				"scrape_interval: 30s": "scrape_interval: 500ms", "/etc/prometheus/nomadlike-ca.pem": path("ca.pem"), "/etc/prometheus/nomadlike-token": path("token"),
				`["server-1:4646", "server-2:4646", "server-3:4646"]`: `["` + target + `"]`, "\n  - nomadlike-alerts.yml\n": "\n  - nomadlike-alerts.yml\n  - nomadlike-dcgm.yml\n",
			} {
				if strings.Count(text, old) != 1 {
					t.Fatalf("prometheus.yml has no single %q:\n%s", old, text)
				}
				text = strings.Replace(text, old, now, 1)
			}
			text = "global: { evaluation_interval: 1s }\n" + text
		}
		write(file.Name, text)
	}
	promtool(t, "check", "config", path("prometheus.yml"))
	command := exec.Command(program, "--config.file="+path("prometheus.yml"), "--storage.tsdb.path="+path("data"), "--web.listen-address=127.0.0.1:0", "--log.format=json")
	said, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	listens, over := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(said); lines.Scan(); {
			var line struct{ Msg, Address, Level, Err string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Address != "" && strings.HasPrefix(line.Msg, "Listening on") {
				listens <- line.Address
			} else if line.Level == "error" {
				t.Logf("prometheus: %s", lines.Text())
			}
		}
	}()
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
		<-over
		_ = command.Wait()
	})
	select {
	case p.address = <-listens:
	case <-over:
		t.Fatal("prometheus ended")
	case <-time.After(time.Minute):
		t.Fatal("prometheus does not listen")
	}
	return p
}

func promtool(t *testing.T, words ...string) {
	t.Helper()
	if out, err := exec.Command("promtool", words...).CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(words, " "), err, out)
	}
}

// count returns how many series a query has now.
func (p *scraping) count(t *testing.T, query string) int {
	t.Helper()
	response, err := http.Get("http://" + p.address + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Status, Error string
		Data          struct {
			Result []json.RawMessage
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	if answer.Status != "success" && !strings.Contains(answer.Error, "not ready") {
		t.Fatalf("%s: %s", query, answer.Error)
	}
	return len(answer.Data.Result)
}

var (
	selectorOf  = regexp.MustCompile(`\b(?:nomadlike_\w+|up|process_\w+|go_\w+)\b(?:\{[^}]*\})?`)
	rulesExpr   = regexp.MustCompile(`(?m)^ +expr: ([^>].*)$`)
	recordNames = regexp.MustCompile(`(?m)^ +- record: (\w+)$`)
)

// queriesHandedOut lists every query of the dashboards, with a job and its project for
// what a reader chooses, every series that an alert looks at, and every recorded name.
func queriesHandedOut(t *testing.T, project, jobID string) []string {
	t.Helper()
	chosen := strings.NewReplacer("$project", project, "$job_id", jobID, "$__rate_interval", "5s")
	asked := map[string]bool{}
	for _, file := range monitoring.Files() {
		switch filepath.Ext(file.Name) {
		case ".yml":
			for _, rule := range rulesExpr.FindAllStringSubmatch(string(file.Data), -1) {
				for _, series := range selectorOf.FindAllString(rule[1], -1) {
					asked[series] = true
				}
			}
			for _, record := range recordNames.FindAllStringSubmatch(string(file.Data), -1) {
				asked[record[1]] = true
			}
		case ".json":
			var board struct {
				Panels     []struct{ Targets []struct{ Expr string } }
				Templating struct {
					List []struct{ Definition string }
				}
			}
			if err := json.Unmarshal(file.Data, &board); err != nil {
				t.Fatal(err)
			}
			for _, panel := range board.Panels {
				for _, target := range panel.Targets {
					asked[chosen.Replace(target.Expr)] = true
				}
			}
			for _, one := range board.Templating.List {
				for _, series := range selectorOf.FindAllString(chosen.Replace(one.Definition), -1) {
					asked[series] = true
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(asked))
}

// The Prometheus of the distribution takes the files that are handed out, is let in with
// the token of a service account that may do nothing else, and finds a series for
// everything that dashboards and alerts ask for. Its tool has nothing against the names.
func (m maker) prometheusFindsAll(t *testing.T) {
	c := m.start(t, 2)
	of := api.ServiceAccount{Name: "prometheus", Cluster: true}
	if _, err := c.client.PutServiceAccount(t.Context(), of, api.ServiceAccountRequest{Role: "operator"}); err != nil {
		t.Fatal(err)
	}
	made, err := c.client.CreateServiceToken(t.Context(), of, api.ServiceTokenRequest{Verbs: []string{"operator-read"}})
	if err != nil {
		t.Fatal(err)
	}
	scraper := c.client.WithToken(made.Secret)
	if _, _, err := scraper.Jobs(t.Context(), api.JobFilter{}, nil); structs.CodeOf(err) != structs.CodeForbidden {
		t.Errorf("a token for scraping lists jobs: %v", err)
	}
	p := startPrometheus(t, c.agent.addr, string(c.agent.identity.caPEM()), made.Secret)
	job := runJob(t, c.client, onCards("drawn", 1, `sh -c 'while test ! -e ../end; do :; done'`), structs.JobRunning)
	var text bytes.Buffer
	if err := scraper.Metrics(t.Context(), &text); err != nil {
		t.Fatal(err)
	}
	check := exec.Command("promtool", "check", "metrics")
	check.Stdin = &text
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool on the metrics: %v\n%s", err, out)
	}
	missing := queriesHandedOut(t, job.Job.Project, job.Job.ID)
	if len(missing) < 80 {
		t.Errorf("only %d queries", len(missing))
	}
	expected := 0
	for _, query := range missing {
		if slices.ContainsFunc(slices.Collect(maps.Keys(absentHere)), func(name string) bool { return strings.Contains(query, name) }) {
			expected++
		}
	}
	limit := time.Now().Add(time.Minute)
	eventually.Within(t, 2*time.Minute, "series for every query", func() bool {
		missing = slices.DeleteFunc(missing, func(query string) bool { return p.count(t, query) > 0 })
		return len(missing) <= expected || time.Now().After(limit)
	})
	for _, query := range missing {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(absentHere)), func(name string) bool { return strings.Contains(query, name) }) {
			t.Errorf("no series: %s", query)
		}
	}
	for name, why := range absentHere {
		if !slices.ContainsFunc(missing, func(query string) bool { return strings.Contains(query, name) }) {
			t.Errorf("%s is here, though %s", name, why)
		}
	}
	if n := p.count(t, fmt.Sprintf(`nomadlike_job_state{job="nomadlike",job_name="drawn",job_id=%q,state="running"} == 1`, job.Job.ID)); n != 1 {
		t.Errorf("the job's state has %d series under its name", n)
	}
}
