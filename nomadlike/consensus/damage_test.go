package consensus

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snapshotsOf lists the snapshots of a directory, the newest last.
func snapshotsOf(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, snapshotDir, "*"+snapshotSuffix))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// flip damages one byte of a file.
func flip(t *testing.T, path string, at func(size int) int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[at(len(data))] ^= 0x40
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// withSnapshots is a directory with two snapshots and entries behind them.
func withSnapshots(t *testing.T, trailing uint64) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "raft")
	node, _ := mustOpenAlone(t, dir, func(c *Config) { c.TrailingLogs = trailing })
	for _, command := range []string{"a", "b", "c"} {
		mustPropose(t, node, command)
		if command != "c" {
			if _, err := node.SnapshotSave(t.Context(), io.Discard); err != nil {
				t.Fatal(err)
			}
		}
	}
	mustShutdown(t, node)
	return dir
}

// A damaged snapshot costs nothing while the log reaches back to the one before,
// or to the beginning.
func TestDamagedSnapshotIsSetAside(t *testing.T) {
	for name, at := range map[string]func(int) int{
		"its header": func(int) int { return len(archiveMagic) + 10 },
		"its body":   func(size int) int { return size - archiveTrailer - 3 },
		"its end":    func(size int) int { return size - 1 },
	} {
		for damaged := range 3 {
			dir := withSnapshots(t, 0)
			all := snapshotsOf(t, dir)
			for _, path := range all[len(all)-damaged:] {
				flip(t, path, at)
			}
			node, fsm := mustOpenAlone(t, dir, nil)
			if err := node.WaitApplied(t.Context(), node.raft.LastIndex()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a", "b", "c"}, fsm.commands()); diff != "" {
				t.Errorf("%s of %d (-want +got):\n%s", name, damaged, diff)
			}
			aside, _ := filepath.Glob(filepath.Join(dir, snapshotDir, "*"+damagedEnd))
			if len(aside) != damaged {
				t.Errorf("%s of %d: set aside %v", name, damaged, aside)
			}
			if err := node.Shutdown(context.Background(), false); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Where the log does not reach back, the file is named, and nobody who is alone
// is told to throw away what there is.
func TestDamagedSnapshotIsNamed(t *testing.T) {
	dir := withSnapshots(t, 1)
	all := snapshotsOf(t, dir)
	for _, path := range all {
		flip(t, path, func(size int) int { return size - 1 })
	}
	before := copyDir(t, dir)
	_, _, err := openAlone(t, dir, nil)
	var corrupt *CorruptError
	if !errors.As(err, &corrupt) || corrupt.File != all[len(all)-1] || corrupt.Others != OthersNone {
		t.Fatalf("refused with %v", err)
	}
	if text := err.Error(); strings.Contains(text, "remove") || !strings.Contains(text, "backup") {
		t.Errorf("a lone server is told: %s", text)
	}
	after := copyDir(t, dir)
	if got, want := len(snapshotsOf(t, after)), len(snapshotsOf(t, before)); got != want {
		t.Errorf("%d of %d snapshots are left", got, want)
	}
	if text := (&CorruptError{File: "x", Err: ErrBadSnapshot, Others: OthersThere}).Error(); !strings.Contains(text, "rejoin") {
		t.Errorf("one of several is told: %s", text)
	}
	if text := (&CorruptError{File: "x", Err: ErrBadSnapshot}).Error(); !strings.Contains(text, "only one") {
		t.Errorf("where nobody knows: %s", text)
	}
}
