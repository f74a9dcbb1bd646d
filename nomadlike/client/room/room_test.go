package room

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"nomadlike/nomadlike/client/machine"
	"nomadlike/plugins/driver"
)

// What a task has made is measured without following its links, and no further
// than the bound.
func TestMeasureRoom(t *testing.T) {
	dir := t.TempDir()
	for i := range 2000 {
		below := filepath.Join(dir, strconv.Itoa(i%7))
		if err := os.MkdirAll(below, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(below, strconv.Itoa(i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"up": "..", "root": "/", "self": "."} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if used, err := measureRoom(t.Context(), dir, Bounds{}); err != nil || used.files != 2000+7+3 || used.bytes < 2000*512 {
		t.Errorf("used %+v, %v", used, err)
	}
	bounds := Bounds{Files: 100}
	if used, err := measureRoom(t.Context(), dir, bounds); err != nil || used.files > 100+2*roomChunk || bounds.exceeded(used) == nil {
		t.Errorf("with a bound of 100 files: used %+v, %v", used, err)
	}
	if _, err := measureRoom(t.Context(), filepath.Join(dir, "root"), Bounds{}); err == nil {
		t.Error("a link was followed")
	}
}

// Logs are bounded together, whatever a job asks for.
func TestLogsAreBounded(t *testing.T) {
	for _, c := range []struct {
		bounds      Bounds
		files       int
		bytes       int64
		wantFiles   int
		wantAtMost  int64
		wantPerFile int64
	}{
		{Bounds{}, 0, 0, driver.LogFilesDefault, LogBytesDefault, driver.LogFileBytesDefault},
		{Bounds{}, 100, 16 << 30, 0, LogBytesDefault, 0},
		{Bounds{Logs: 1 << 30}, 100, 100 << 20, 5, 1 << 30, 100 << 20},
		{Bounds{Logs: 1 << 20}, 100, 16 << 30, 0, 1 << 20, 0},
	} {
		got := c.bounds.rotation(driver.LogRotation{MaxFiles: c.files, MaxBytes: c.bytes})
		if total := 2 * int64(got.MaxFiles) * got.MaxBytes; total > c.wantAtMost || c.wantFiles != 0 && got.MaxFiles != c.wantFiles || c.wantPerFile != 0 && got.MaxBytes != c.wantPerFile {
			t.Errorf("%+v with %d files of %d bytes: %+v, together %d", c.bounds, c.files, c.bytes, got, total)
		}
	}
}

// On a disk that is all but full the task that has taken most ends, if that is much.
func TestLargestTaskOnAFullDisk(t *testing.T) {
	var r rooms
	if !r.note("a", 10) || r.note("b", 5) || !r.note("b", 20) || r.note("a", 11) {
		t.Error("the largest is not known")
	}
	r.forget("b")
	if !r.note("a", 11) {
		t.Error("what has ended counts")
	}
	const size = 100 << 30
	for _, c := range []struct {
		free, used int64
		want       bool
	}{{1 << 29, 60 << 30, false}, {1<<29 - 1, 60 << 30, true}, {0, 9 << 30, false}, {0, 11 << 30, true}} {
		if got := fills(&machine.FileSystem{Size: size, Free: c.free}, machine.DiskBounds{}, c.used); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	for _, c := range [][3]int64{{0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}, {0, 0, 0}} {
		if got := lesser(c[0], c[1]); got != c[2] {
			t.Errorf("the lesser of %d and %d: %d", c[0], c[1], got)
		}
	}
}
