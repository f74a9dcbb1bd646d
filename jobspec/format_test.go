package jobspec

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"nomadlike/internal/golden"
	"nomadlike/internal/messages"
)

func TestFormat(t *testing.T) {
	for _, name := range files(t, "testdata/format/*.in") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			formatted, diags := Format(filepath.Base(name), read(t, name))
			if len(diags) > 0 {
				t.Fatalf("diagnostics:\n%s", rendered(t, diags, messages.English))
			}
			golden.Assert(t, strings.TrimSuffix(name, ".in")+".hcl", string(formatted))
		})
	}
}

func TestFormatKeepsTheMeaning(t *testing.T) {
	for _, name := range append(files(t, "testdata/good/*.hcl"), files(t, "../website/examples/*.hcl")...) {
		text := read(t, name)
		job, _ := parseOK(t, string(text), Options{})
		formatted, diags := Format(name, text)
		if len(diags) > 0 {
			t.Fatalf("%s:\n%s", name, rendered(t, diags, messages.English))
		}
		again, _ := parseOK(t, string(formatted), Options{})
		if diff := cmp.Diff(job, again); diff != "" {
			t.Errorf("%s: formatting changed the job (-before +after):\n%s", name, diff)
		}
		twice, _ := Format(name, formatted)
		if diff := cmp.Diff(string(formatted), string(twice)); diff != "" {
			t.Errorf("%s: formatting twice differs (-once +twice):\n%s", name, diff)
		}
	}
}

func TestFormatRefusesBrokenFiles(t *testing.T) {
	for _, text := range []string{"job {", "a = ", "\xff", strings.Repeat("[", 1000)} {
		formatted, diags := Format("job.hcl", []byte(text))
		if formatted != nil || !diags.HasErrors() {
			t.Errorf("Format(%q) = %q, %v", text, formatted, diags)
		}
	}
}
