// Package golden compares what a test produced with a file that a person can
// read and review. `go test ./... -rewrite` writes the files anew.
//
// Limits: for tests only; importing it registers the -rewrite flag.
package golden

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var rewrite = flag.Bool("rewrite", false, "write golden files anew instead of comparing with them")

// Assert fails t when got differs from the file at path; with -rewrite it
// writes the file instead. The path is relative to the package's directory.
func Assert(t testing.TB, path, got string) {
	t.Helper()
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatalf("make directory of golden %s: %v", path, err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatalf("write golden %s: %v", path, err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read golden: %v (run the test with -rewrite to create it)", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), run with -rewrite if the change is meant:\n%s", path, diff)
	}
}
