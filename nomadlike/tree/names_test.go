package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNames: a directory is listed whatever its neighbours are called; "a-b" and "a.txt"
// stand between "a" and what is in "a" in the order of bytes.
func TestNames(t *testing.T) {
	file := func(name string, mode uint32, size int64) Entry {
		entry := Entry{Path: name, Kind: KindFile, Mode: mode}
		if size > 0 {
			entry.Chunks = []Chunk{{DigestOf([]byte(name)), size}}
		}
		return entry
	}
	dir := func(name string) Entry { return Entry{Path: name, Kind: KindDir, Mode: 0o755} }
	m := Manifest{Entries: []Entry{
		dir("a"), file("a-b", 0o644, 3), file("a.txt", 0o755, 0), dir("a/b"), file("a/b/c", 0o644, 5), file("a/x", 0o644, 7),
		{Path: "l", Kind: KindLink, Target: "a/x"},
		dir("z"),
	}}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string][]Name{
		"": {
			{Name: "a", Kind: KindDir, Size: 12, Files: 2},
			{Name: "z", Kind: KindDir},
			{Name: "a-b", Kind: KindFile, Size: 3},
			{Name: "a.txt", Kind: KindFile, Runs: true},
			{Name: "l", Kind: KindLink, Link: "a/x"},
		},
		"a":   {{Name: "b", Kind: KindDir, Size: 5, Files: 1}, {Name: "x", Kind: KindFile, Size: 7}},
		"a/b": {{Name: "c", Kind: KindFile, Size: 5}},
		"z":   {},
	} {
		if diff := cmp.Diff(want, m.Names(at)); diff != "" {
			t.Errorf("%q: %s", at, diff)
		}
	}
	if m.Find("a/b") == nil || m.Find("a/b/") != nil || m.Find("a/c") != nil || m.Find("") != nil || len(m.Below("a")) != 3 || len(m.Below("a-b")) != 0 {
		t.Error("entries are found by their whole paths only")
	}
}
