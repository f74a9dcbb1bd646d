package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	first, second := open(), open()
	if err := Take(first, 0); err != nil {
		t.Fatal(err)
	}
	if err := Take(second, 0); !errors.Is(err, syscall.EWOULDBLOCK) {
		t.Fatalf("a lock that is held: %v", err)
	}
	time.AfterFunc(2*retryEvery, func() { first.Close() })
	if err := Take(second, time.Minute); err != nil {
		t.Fatalf("a lock that is let go: %v", err)
	}
}
