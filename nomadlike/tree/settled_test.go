package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScanData: of data everything travels but what .nomadlikeignore leaves out, with
// the permissions that data has.
func TestScanData(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		".git/HEAD": "x", ".gitignore": "*.txt\n", "a.txt": "a", "node_modules/b": "b", "run.sh": "#!/bin/sh", "skip/c": "c", "deep/d.tmp": "d", "deep/.nomadlikeignore": "*.tmp\n", ".nomadlikeignore": "skip\n",
	} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	told := int64(0)
	m, left, err := Scan(t.Context(), dir, Options{Data: true, Progress: func(read, all int64) { told = max(told, read) }})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for i := range m.Entries {
		lines = append(lines, fmt.Sprintf("%o %s", m.Entries[i].Mode, m.Entries[i].Path))
	}
	want := "555 .git\n444 .git/HEAD\n444 .gitignore\n444 .nomadlikeignore\n444 a.txt\n555 deep\n444 deep/.nomadlikeignore\n555 node_modules\n444 node_modules/b\n555 run.sh"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("%s\nnot\n%s", got, want)
	}
	if len(left) != 2 || told != m.Bytes() {
		t.Errorf("left: %v; told of %d bytes of %d", left, told, m.Bytes())
	}
	if m.Settled().Digest() != m.Digest() {
		t.Error("it is not settled yet")
	}
}

func TestTwins(t *testing.T) {
	m := Manifest{Entries: []Entry{{Path: "A", Kind: KindDir}, {Path: "A/b"}, {Path: "a", Kind: KindDir}}}
	if one, other, ok := m.Twins(); !ok || one != "A" || other != "a" {
		t.Error(one, other, ok)
	}
	if one, other, ok := (Manifest{Entries: []Entry{{Path: "A"}, {Path: "b"}}}).Twins(); ok {
		t.Error(one, other)
	}
}
