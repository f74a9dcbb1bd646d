package jobspec

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedFields reads the guide's tables of fields: each field that they name
// changes the job that a file means, in the block that its table is about.
func TestDocumentedFields(t *testing.T) {
	row := regexp.MustCompile("^\\| `([a-z_]+)(?: \"[^\"]*\")?(?: \\{([^}]*)\\})?`")
	blocks := map[string]string{"## The job": "", "## job": "", "## resources": "resources", "## placement": "placement", "## task": "task", "## distributed": `distributed "pytorch"`}
	for _, language := range []string{"en", "zh"} {
		text, err := os.ReadFile("../website/guide/" + language + "/job-files.md")
		if err != nil {
			t.Fatal(err)
		}
		block, open, seen := "", false, 0
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "## ") {
				block, open = blocks[strings.TrimSpace(line)], false
			}
			if strings.HasPrefix(line, "|---|---|---|") {
				open = true // tables of fields have three columns
			} else if !strings.HasPrefix(line, "|") {
				open = false
			}
			match := row.FindStringSubmatch(line)
			if !open || match == nil || block == "" && !strings.Contains("project type category description priority access time_limit expected_runtime nodes stop_grace supports throttle fencing meta", match[1]) {
				continue
			}
			var fields []string
			for _, inner := range strings.Split(match[2], ",") {
				if name, _, _ := strings.Cut(strings.TrimSpace(inner), " "); name != "" {
					fields = append(fields, name)
				}
			}
			if len(fields) == 0 {
				fields = []string{""}
			}
			for _, inner := range fields {
				if seen++; !acts(block, match[1], inner) {
					t.Errorf("%s: %s %s { %s } of the guide changes no job", language, block, match[1], inner)
				}
			}
		}
		if seen < 40 {
			t.Errorf("%s: only %d fields are named", language, seen)
		}
	}
}

// acts reports whether some value of a field, or of a field of a block, is read and
// makes another job.
func acts(block, name, inner string) bool {
	mean := func(text string) string {
		if block != "" {
			text = block + " {\n" + text + "\n}"
		}
		p := newParser(Options{}) // without the rules that lead from one field to another
		p.read("job.hcl", []byte("job \"j\" {\n"+text+"\n}\n"), jobNoun, p.readJob)
		if p.errors > 0 {
			return ""
		}
		data, err := json.Marshal(p.job)
		if err != nil {
			return ""
		}
		return string(data)
	}
	without := mean("")
	for _, value := range []string{`7`, `true`, `false`, `"x"`, `"7m"`, `"77MiB"`, `["x"]`, `{ A = "b" }`} {
		texts := []string{fmt.Sprintf("%s = %s", name, value)}
		if inner != "" {
			texts = []string{fmt.Sprintf("%s {\n%s = %s\n}", name, inner, value), fmt.Sprintf("%s \"a/b\" {\n%s = %s\n}", name, inner, value)}
			without = mean(name+" {\n}") + mean(name+" \"a/b\" {\n}")
		}
		for _, text := range texts {
			if got := mean(text); got != "" && got != without {
				return true
			}
		}
	}
	return false
}
