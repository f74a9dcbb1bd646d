package jobspec

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

func TestPoolFiles(t *testing.T) {
	for _, name := range files(t, "testdata/pool/*.hcl") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			pool, _, diags := ParsePool(filepath.Base(name), read(t, name), Options{})
			keepParsed(t, name, pool, diags)
		})
	}
}

func TestProjectFiles(t *testing.T) {
	for _, name := range files(t, "testdata/project/*.hcl") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			project, _, diags := ParseProject(filepath.Base(name), read(t, name), Options{})
			keepParsed(t, name, project, diags)
		})
	}
}

// keepParsed compares what was read, or what was wrong, with its golden file.
func keepParsed(t *testing.T, name string, value any, diags Diagnostics) {
	t.Helper()
	if len(diags) > 0 {
		golden.Assert(t, strings.TrimSuffix(name, ".hcl")+".en.txt", rendered(t, diags, messages.English))
		golden.Assert(t, strings.TrimSuffix(name, ".hcl")+".zh.txt", rendered(t, diags, messages.Chinese))
		return
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, strings.TrimSuffix(name, ".hcl")+".json", string(text)+"\n")
}

// FuzzPool: whatever a file holds, reading it ends, and with a pool or errors.
func FuzzPool(f *testing.F) {
	for _, name := range files(f, "testdata/pool/*.hcl") {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if pool, _, diags := ParsePool("pool.hcl", src, Options{}); (pool == nil) != diags.HasErrors() {
			t.Errorf("pool %v with errors %v", pool, diags.HasErrors())
		}
		if project, _, diags := ParseProject("project.hcl", src, Options{}); (project == nil) != diags.HasErrors() {
			t.Errorf("project %v with errors %v", project, diags.HasErrors())
		}
	})
}

// TestExamplesForAdministrators reads the pools and projects of the website.
func TestExamplesForAdministrators(t *testing.T) {
	for _, name := range files(t, "../website/examples/admin/pool-*.hcl") {
		if _, _, diags := ParsePool(filepath.Base(name), read(t, name), Options{}); len(diags) > 0 {
			t.Errorf("%s", rendered(t, diags, messages.English))
		}
	}
	for _, name := range files(t, "../website/examples/admin/project-*.hcl") {
		if _, _, diags := ParseProject(filepath.Base(name), read(t, name), Options{}); len(diags) > 0 {
			t.Errorf("%s", rendered(t, diags, messages.English))
		}
	}
}
