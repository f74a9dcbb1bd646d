package jobspec

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"nomadlike/internal/golden"
	"nomadlike/nomadlike/structs"
)

// parsed reads a job file that must be good.
func parsed(t interface {
	Helper()
	Fatalf(string, ...any)
}, name string, source []byte,
) *structs.Job {
	t.Helper()
	job, _, diags := Parse(name, source, Options{})
	if diags.HasErrors() {
		t.Fatalf("%s: %v\n%s", name, diags, source)
	}
	return job
}

// What Write writes means the job that it was given, for every job file of the
// tests and of the website.
func TestWriteReadsBack(t *testing.T) {
	var paths []string
	for _, pattern := range []string{"testdata/good/*.hcl", "../website/examples/*.hcl"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		paths = append(paths, found...)
	}
	read := 0
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		job, _, diags := Parse(path, source, Options{ReadFile: os.ReadFile})
		if diags.HasErrors() {
			continue // it needs variables
		}
		read++
		written := Write(job)
		if diff := cmp.Diff(job, parsed(t, path+" written", written)); diff != "" {
			t.Errorf("%s: (-read +written)\n%s\n%s", path, diff, written)
		}
		if formatted, _ := Format(path, written); string(formatted) != string(written) {
			t.Errorf("%s: what is written is not in its canonical form:\n%s", path, written)
		}
	}
	if read < 15 {
		t.Errorf("only %d of %d files were read", read, len(paths))
	}
}

// Texts of every sort survive: quotes, templates, lines, other alphabets.
func TestWriteTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		job := parsed(t, "small", []byte("job \"x\" {\n task {\n command = \"true\"\n }\n}\n"))
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab ${}%\"'\\#\té中🙂=[]<~")))
		job.Description = text.Draw(t, "description")
		job.Task.Command = "true " + text.Draw(t, "command")
		job.Meta = map[string]string{"plain": text.Draw(t, "meta")}
		job.SetDefaults() // as an admitted job has them
		if len(job.Validate()) > 0 {
			t.Skip("not every text is a command")
		}
		written := Write(job)
		again := parsed(t, "written", written)
		again.SetDefaults()
		if diff := cmp.Diff(job, again); diff != "" {
			t.Fatalf("(-given +written)\n%s\n%s", diff, written)
		}
	})
}

func TestWriteGolden(t *testing.T) {
	path := "testdata/good/design.hcl"
	source, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, "testdata/written.hcl", string(Write(parsed(t, path, source))))
}

// Jobs of protocol 15 are written in the words of today.
func TestWriteOfBefore(t *testing.T) {
	for want, job := range map[string]*structs.Job{
		"  elastic {\n    min_nodes    = 2\n    by           = \"restart\"\n    allow_resize = true\n  }\n": {
			Name: "a", Nodes: 4, Checkpoint: &structs.Checkpoint{Elastic: &structs.Elastic{MinNodes: 2, AllowResize: true}},
		},
		"  elastic {\n    min_nodes = 3\n    by        = \"torchrun\"\n  }\n": {
			Name: "a", Nodes: 4, Distributed: structs.Distributed{Mode: structs.ModePyTorch, MinNodes: 3},
		},
	} {
		got := string(Write(job))
		if !strings.Contains(got, want) || strings.Count(got, "min_nodes") != 1 {
			t.Errorf("%s\nwant\n%s", got, want)
		}
		if job.Elastic != nil {
			t.Error("the job itself was changed")
		}
	}
}
