package beneath

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOpen(t *testing.T) {
	outside, real := t.TempDir(), t.TempDir()
	top := filepath.Join(t.TempDir(), "top")
	for _, err := range []error{
		os.Symlink(real, top), // links of the administrator's own lead on
		os.MkdirAll(real+"/a/logs", 0o700), os.WriteFile(outside+"/key", []byte("secret"), 0o600),
		os.WriteFile(real+"/a/logs/out", []byte("said"), 0o600), os.WriteFile(real+"/a/file", nil, 0o600),
		os.Symlink(outside, real+"/a/link"), os.Symlink(outside, real+"/b"), os.Symlink("logs", real+"/a/near"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := Root(top, "a/logs")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if text, err := root.ReadFile("out"); err != nil || string(text) != "said" {
		t.Errorf("%q, %v", text, err)
	}
	for _, rel := range []string{"a/link", "b", "a/near", "a/file", "a/none", "../x", "/etc", "a/../../x", ""} {
		if dir, err := Open(top, rel); err == nil {
			dir.Close()
			t.Errorf("%q is opened", rel)
		}
	}
}

// TestOpenSwapped: a directory that is exchanged for a link all the time is
// opened as itself, or not at all.
func TestOpenSwapped(t *testing.T) {
	top, outside := t.TempDir(), t.TempDir()
	for _, err := range []error{
		os.MkdirAll(top+"/a/logs", 0o700), os.WriteFile(outside+"/key", nil, 0o600), os.Symlink(outside, top+"/a/link"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if err := unix.Renameat2(unix.AT_FDCWD, top+"/a/logs", unix.AT_FDCWD, top+"/a/link", unix.RENAME_EXCHANGE); err != nil {
					t.Error(err)
					return
				}
			}
		}
	})
	opened := 0
	for range 5000 {
		root, err := Root(top, "a/logs")
		if err != nil {
			if !errors.Is(err, syscall.ENOTDIR) && !errors.Is(err, syscall.ELOOP) {
				t.Fatal(err)
			}
			continue
		}
		opened++
		if _, err := root.Stat("key"); err == nil {
			t.Fatal("the key outside can be read")
		}
		root.Close()
	}
	close(stop)
	swapping.Wait()
	if opened == 0 {
		t.Error("the directory was never opened")
	}
}
