package devicetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tree makes the files of a description below a temporary directory, which
// stands in for "/" where sysfs, /proc and /etc are read. Each line is
// "path: contents", or "path -> target" for a link; "\n" in contents is a line
// break; '#' begins a comment.
func Tree(t testing.TB, description string) string {
	t.Helper()
	root := t.TempDir()
	for line := range strings.Lines(description) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, target, isLink := strings.Cut(line, " -> "); isLink {
			path := filepath.Join(root, name)
			makeParent(t, path)
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		name, contents, found := strings.Cut(line, ": ")
		if !found {
			t.Fatalf("line %q of a tree is neither a file nor a link", line)
		}
		path := filepath.Join(root, name)
		makeParent(t, path)
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(contents, `\n`, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TreeFile is Tree with a description from a file.
func TreeFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return Tree(t, string(text))
}

func makeParent(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
}
