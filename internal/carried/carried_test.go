package carried

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
)

// carrying are the files of a build that carries one program.
func carrying(t *testing.T, contents string) fstest.MapFS {
	t.Helper()
	var packed bytes.Buffer
	to := gzip.NewWriter(&packed)
	if _, err := to.Write([]byte(contents)); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{FileName("small"): {Data: packed.Bytes()}}
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	path, err := Install(carrying(t, "first"), "small", dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o755 {
		t.Fatalf("installed as %v, %v", info, err)
	}
	if again, err := Install(carrying(t, "first"), "small", dir); err != nil || again != path {
		t.Errorf("second time it is %s, %v", again, err)
	} else if now, err := os.Stat(again); err != nil || !os.SameFile(info, now) {
		t.Error("it was written again")
	}
	if other, err := Install(carrying(t, "second"), "small", dir); err != nil || other == path {
		t.Errorf("another program is %s, %v", other, err)
	}
	// Somebody has changed it: what is executed is always what was built.
	for name, spoil := range map[string]func() error{
		"contents": func() error { return os.WriteFile(path, []byte("forged"), 0o755) },
		"mode":     func() error { return os.Chmod(path, 0o777) },
		"link": func() error {
			if err := os.Remove(path); err != nil {
				return err
			}
			return os.Symlink("/bin/true", path)
		},
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if again, err := Install(carrying(t, "first"), "small", dir); err != nil || again != path {
			t.Errorf("%s: %s, %v", name, again, err)
		}
		text, err := os.ReadFile(path)
		if info, statErr := os.Lstat(path); err != nil || statErr != nil || string(text) != "first" || info.Mode() != 0o755 {
			t.Errorf("%s: it is %q, %v, %v", name, text, info, err)
		}
	}
}

func TestInstallAtOnce(t *testing.T) {
	dir := t.TempDir()
	files := carrying(t, "program")
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			path, err := Install(files, "small", dir)
			if err != nil {
				t.Error(err)
			} else if text, err := os.ReadFile(path); err != nil || string(text) != "program" {
				t.Errorf("it is %q, %v", text, err)
			}
		})
	}
	all.Wait()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("directory holds %v, %v", entries, err)
	}
}

// A long program is compared piece by piece: one byte in a late piece, a shorter
// file and a longer one are all told from it.
func TestInstallComparesToTheEnd(t *testing.T) {
	dir := t.TempDir()
	contents := strings.Repeat("0123456789abcdef", 10_000)
	files := carrying(t, contents)
	path, err := Install(files, "small", dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoiled := range map[string]string{
		"late byte": contents[:150_000] + "x" + contents[150_001:],
		"shorter":   contents[:len(contents)-1],
		"longer":    contents + "x",
		"a piece":   contents[:32<<10],
		"empty":     "",
	} {
		if err := os.WriteFile(path, []byte(spoiled), 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := Install(files, "small", dir); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if text, err := os.ReadFile(path); err != nil || string(text) != contents {
			t.Errorf("%s: %d bytes, %v", name, len(text), err)
		}
	}
}

// A build without a program says so, and one that is damaged leaves nothing.
func TestInstallWithoutAProgram(t *testing.T) {
	dir := t.TempDir()
	if path, err := Install(fstest.MapFS{}, "small", dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a program: %q, %v", path, err)
	}
	files := carrying(t, strings.Repeat("program", 1000))
	packed := files[FileName("small")]
	packed.Data = packed.Data[:len(packed.Data)-9] // its end and its sum
	if path, err := Install(files, "small", dir); err == nil {
		t.Errorf("a damaged program is installed at %q", path)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("directory holds %v, %v", entries, err)
	}
}
