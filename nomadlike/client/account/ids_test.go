package account

import (
	"os"
	"path/filepath"
	"testing"
)

// Projects have ids of their own, the same on every node, and keep them: also
// when two want the same one, or a user of the node has it.
func TestIDsOfProjects(t *testing.T) {
	dir := t.TempDir()
	open := func(low, high int) *IDs {
		t.Helper()
		table, err := OpenIDs(dir, low, high)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	table := open(0, 0)
	first, err := table.of("vision")
	if err != nil || first != UIDOf("vision", table.min, table.max) {
		t.Fatalf("id %d, %v", first, err)
	}
	dir = t.TempDir()
	few := open(70000, 70002)
	few.known = func(uid int) bool { return uid == 70001 }
	given := map[int]string{}
	for _, project := range []string{"a", "b"} {
		uid, err := few.of(project)
		if err != nil || uid < 70000 || uid > 70002 || uid == 70001 || given[uid] != "" {
			t.Fatalf("%s has %d of %v, %v", project, uid, given, err)
		}
		given[uid] = project
	}
	if uid, err := few.of("c"); err == nil {
		t.Errorf("a third project has %d", uid)
	}
	again := open(70000, 70002)
	for uid, project := range given {
		if now, err := again.of(project); err != nil || now != uid {
			t.Errorf("%s had %d and has %d, %v", project, uid, now, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, idsFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if table, err := OpenIDs(dir, 0, 0); err == nil || table == nil {
		t.Errorf("damaged: %v, %v", table, err)
	}
}

func TestMappedIDs(t *testing.T) {
	for table, want := range map[string]bool{
		"         0          0 4294967295\n":    true,
		"0 100000 65536\n":                      false,
		"0 100000 65536\n1879048192 200000 1\n": false,
		"":                                      false,
	} {
		if got := mapped(table, UIDMinDefault, UIDMaxDefault); got != want {
			t.Errorf("%q: %v", table, got)
		}
	}
}
