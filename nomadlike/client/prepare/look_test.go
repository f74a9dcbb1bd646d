package prepare

import (
	"os"
	"path/filepath"
	"testing"

	"nomadlike/nomadlike/client/workspace"
)

// An output in which something lies is seen; what a link leads to is not told,
// for it may be somebody else's.
func TestOutputThatHoldsSomething(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"li/full", "li/empty", "ann/private"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"li/full/step-1.pt", "ann/private/secret", "li/file"} {
		if err := os.WriteFile(filepath.Join(root, file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"li/link": "../ann/private", "li/way": "../ann", "li/out": "/"} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]bool{
		"li/full": true, "li/empty": false, "li/none": false, "li/file": false, "li/link": false, "li/way/private": false, "li/out/etc": false,
	} {
		if got := holdsSomething(&workspace.Place{Root: root, Path: filepath.Join(root, path)}); got != want {
			t.Errorf("%s: %v", path, got)
		}
	}
}
