package jobspec

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
	"nomadlike/nomadlike/structs"
)

// parseOK parses a text that must be fine.
func parseOK(t testing.TB, src string, opts Options) (*structs.Job, *SourceMap) {
	t.Helper()
	job, places, diags := Parse("job.hcl", []byte(src), opts)
	if diags.HasErrors() {
		t.Fatalf("parse:\n%s", rendered(t, diags, messages.English))
	}
	return job, places
}

func rendered(t testing.TB, diags Diagnostics, language messages.Language) string {
	t.Helper()
	var b strings.Builder
	if err := diags.Render(&b, Style{Language: language}); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func files(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("find %s: %v, %d files", pattern, err, len(names))
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoodFiles(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.hcl") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			job, _, diags := Parse(filepath.Base(name), read(t, name), Options{})
			if len(diags) > 0 {
				t.Fatalf("diagnostics:\n%s", rendered(t, diags, messages.English))
			}
			text, err := json.MarshalIndent(job, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, strings.TrimSuffix(name, ".hcl")+".json", string(text)+"\n")
		})
	}
}

func TestExampleJobsAreFine(t *testing.T) {
	for _, name := range files(t, "../website/examples/*.hcl") {
		job, places, diags := Parse(filepath.Base(name), read(t, name), Options{})
		if len(diags) > 0 {
			t.Errorf("%s", rendered(t, diags, messages.English))
			continue
		}
		if later := places.Diagnose(job.NotAvailable(), SeverityError); len(later) > 0 {
			t.Errorf("%s", rendered(t, later, messages.English))
		}
	}
}

// TestJSONKeepsTheJob compares a job with itself behind the API's JSON.
func TestJSONKeepsTheJob(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.hcl") {
		job, _ := parseOK(t, string(read(t, name)), Options{})
		text, err := json.Marshal(job)
		if err != nil {
			t.Fatal(err)
		}
		var again structs.Job
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(job, &again); diff != "" {
			t.Errorf("%s (-job +JSON):\n%s", name, diff)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	for _, name := range files(t, "testdata/diag/*.hcl") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			job, places, diags := Parse(filepath.Base(name), read(t, name), Options{})
			if len(diags) == 0 {
				t.Fatal("nothing was found")
			}
			if diags.HasErrors() && (job != nil || places != nil) {
				t.Error("a job was given in spite of errors")
			}
			for _, language := range []messages.Language{messages.English, messages.Chinese} {
				text := rendered(t, diags, language)
				golden.Assert(t, strings.TrimSuffix(name, ".hcl")+"."+string(language)+".txt", text)
			}
			for _, d := range diags {
				for _, id := range []string{d.ID, d.HintID} {
					if id != "" && !messages.Has(messages.English, id) {
						t.Errorf("message %s does not exist", id)
					}
				}
			}
		})
	}
}
