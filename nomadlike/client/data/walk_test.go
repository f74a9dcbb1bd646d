package data

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A listing of one large directory costs little more than what it holds.
func TestListOfManyFilesIsSmall(t *testing.T) {
	const files = 20_000
	dir := t.TempDir()
	for i := range files {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("sample-%08d.jpg", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	listing, err := list(t.Context(), root)
	runtime.ReadMemStats(&after)
	if err != nil || len(listing.Files) != files || listing.Files[0].Path != "sample-00000000.jpg" || listing.Files[files-1].Path != "sample-00019999.jpg" {
		t.Fatalf("%d files, %v", len(listing.Files), err)
	}
	each := (after.TotalAlloc - before.TotalAlloc) / files
	t.Logf("%d bytes for each file", each)
	if each > 600 {
		t.Errorf("%d bytes for each file, at most 600", each)
	}
}
