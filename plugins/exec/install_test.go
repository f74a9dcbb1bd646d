package exec

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	path, err := install([]byte("first"), dir)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o755 {
		t.Fatalf("installed as %v, %v", info, err)
	}
	if again, err := install([]byte("first"), dir); err != nil || again != path {
		t.Errorf("second time it is %s, %v", again, err)
	} else if now, err := os.Stat(again); err != nil || !os.SameFile(info, now) {
		t.Error("it was written again")
	}
	if other, err := install([]byte("second"), dir); err != nil || other == path {
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
		if again, err := install([]byte("first"), dir); err != nil || again != path {
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
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			path, err := install([]byte("program"), dir)
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
