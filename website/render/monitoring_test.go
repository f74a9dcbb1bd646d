package render

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"nomadlike/internal/messages"
)

// metricRow is a line of the reference of metrics, which a test of the agent's API
// keeps equal to what servers tell.
var metricRow = regexp.MustCompile("(?m)^\\| `(nomadlike_\\w+)` \\| (gauge|counter|histogram) \\| ([^|]*) \\|")

// series lists the metrics with their labels.
func series(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../reference/en/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{"up": {}}
	for _, row := range metricRow.FindAllStringSubmatch(string(page), -1) {
		labels := strings.Fields(strings.ReplaceAll(row[3], "`", ""))
		known[row[1]] = labels
		if row[2] == "histogram" {
			for _, end := range []string{"_bucket", "_sum", "_count"} {
				known[row[1]+end] = append([]string{"le"}, labels...)
			}
		}
	}
	if len(known) < 50 {
		t.Fatalf("the reference has only %d metrics", len(known))
	}
	return known
}

var (
	metricOf  = regexp.MustCompile(`\b(?:nomadlike_\w+|up|process_resident_memory_bytes|go_goroutines)\b`)
	matchedBy = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	groupedBy = regexp.MustCompile(`\b(?:by|without)\s*\(([^)]*)\)`)
	alertLine = regexp.MustCompile(`(?m)^ +(?:- )?(alert|expr|summary|guide): (.*)$`)
	labelIn   = regexp.MustCompile(`\$labels\.(\w+)`)
	legendIn  = regexp.MustCompile(`\{\{(\w+)\}\}`)
)

// checkExpr compares the metrics and labels of a query with those that there are, and
// returns the labels that its series have.
func checkExpr(t *testing.T, at, expr string, known map[string][]string) []string {
	t.Helper()
	names := metricOf.FindAllString(expr, -1)
	if len(names) == 0 {
		t.Errorf("%s asks for nothing: %s", at, expr)
	}
	labels := []string{"instance", "job"}
	for _, name := range names {
		of, ok := known[name]
		if !ok {
			t.Errorf("%s: there is no metric %s", at, name)
		}
		labels = append(labels, of...)
	}
	used := matchedBy.FindAllStringSubmatch(expr, -1)
	for _, group := range groupedBy.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(group[1], ",") {
			used = append(used, []string{"", strings.TrimSpace(label)})
		}
	}
	for _, one := range used {
		if !slices.Contains(labels, one[1]) {
			t.Errorf("%s: none of its metrics has a label %s: %s", at, one[1], expr)
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
		t.Errorf("%s: brackets do not match: %s", at, expr)
	}
	return labels
}

// TestAlerts: alerts ask for metrics that there are, lead to a section of the guides,
// and are explained in both languages.
func TestAlerts(t *testing.T) {
	known, files := series(t), site(t)
	text := string(files["examples/monitoring/nomadlike-alerts.yml"])
	var names []string
	var labels []string
	for _, line := range alertLine.FindAllStringSubmatch(text, -1) {
		value := strings.Trim(line[2], `"`)
		switch line[1] {
		case "alert":
			names = append(names, value)
		case "expr":
			labels = checkExpr(t, names[len(names)-1], value, known)
		case "summary":
			for _, label := range labelIn.FindAllStringSubmatch(value, -1) {
				if !slices.Contains(labels, label[1]) {
					t.Errorf("%s says the label %s, which it does not have", names[len(names)-1], label[1])
				}
			}
		case "guide":
			page, anchor, _ := strings.Cut(strings.TrimPrefix(value, "/docs/"), "#")
			if html, ok := files[page+".html"]; !ok || anchor != "" && !strings.Contains(string(html), `id="`+anchor+`"`) {
				t.Errorf("%s leads to %s, which is not there", names[len(names)-1], value)
			}
		}
	}
	if len(names) < 10 || strings.Count(text, "guide:") != len(names) {
		t.Errorf("%d alerts, %d of them lead to the guides", len(names), strings.Count(text, "guide:"))
	}
	for _, language := range []messages.Language{messages.English, messages.Chinese} {
		page := string(files[string(language)+"/monitoring.md"])
		for _, name := range names {
			if !strings.Contains(page, "`"+name+"`") {
				t.Errorf("monitoring.md in %s does not explain %s", language, name)
			}
		}
	}
}

// TestDashboards: panels ask for metrics that there are, and do not overlap.
func TestDashboards(t *testing.T) {
	known := series(t)
	known["process_resident_memory_bytes"], known["go_goroutines"] = nil, nil
	names, err := filepath.Glob("../examples/monitoring/dashboard-*.json")
	if err != nil || len(names) != 4 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(filepath.Base(name), func(t *testing.T) { checkDashboard(t, data, known) })
	}
}

func checkDashboard(t *testing.T, data []byte, known map[string][]string) {
	var dashboard struct {
		UID, Title string
		Panels     []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat, RefID string }
		}
	}
	if err := json.Unmarshal(data, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.UID == "" || len(dashboard.Panels) < 12 {
		t.Errorf("a dashboard %q with %d panels", dashboard.UID, len(dashboard.Panels))
	}
	for i, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			labels := checkExpr(t, panel.Title, target.Expr, known)
			for _, legend := range legendIn.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(labels, legend[1]) {
					t.Errorf("%s: its legend says %s, which no series has", panel.Title, legend[1])
				}
			}
		}
		at := panel.GridPos
		for _, other := range dashboard.Panels[:i] {
			on := other.GridPos
			if at.X < on.X+on.W && on.X < at.X+at.W && at.Y < on.Y+on.H && on.Y < at.Y+at.H {
				t.Errorf("%q lies over %q", panel.Title, other.Title)
			}
			if panel.ID == other.ID {
				t.Errorf("%q and %q have one id", panel.Title, other.Title)
			}
		}
		if at.X+at.W > 24 || at.W == 0 || at.H == 0 || len(panel.Targets) == 0 {
			t.Errorf("%q has no place or asks for nothing: %+v", panel.Title, at)
		}
	}
}
