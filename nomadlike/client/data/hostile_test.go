package data

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
)

const secret = "of somebody else"

// outside makes a directory whose file no dataset may bring along.
func outside(t *testing.T) (dir, file string) {
	t.Helper()
	dir = t.TempDir()
	file = filepath.Join(dir, "secret")
	if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, file
}

// copied reads every file of a copy, and fails when one is no plain file, may be
// run as its owner, or holds what it must not. What a copy that failed takes away
// meanwhile holds nothing.
func copied(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		gone := func(err error) error {
			if path != dir && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
		if err != nil || entry.IsDir() {
			return gone(err)
		}
		if entry.Type() == fs.ModeSymlink {
			return nil // links are the matter of their own tests
		}
		info, err := entry.Info()
		if err != nil {
			return gone(err)
		}
		if !info.Mode().IsRegular() || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
			t.Errorf("%s is copied with mode %s", path, info.Mode())
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(secret)) {
			t.Errorf("%s holds what lies outside", path)
		}
		return gone(err)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Attacks 27 and 28, for trees: nothing that is no plain file is copied, no right
// to run as somebody else, and what is larger than the disk leaves nothing there.
func TestHostileTree(t *testing.T) {
	dir, file := outside(t)
	source := dataset(t, rand.New(rand.NewPCG(1, 2)), 10, 20)
	at := func(name string) string { return filepath.Join(source, name) }
	relative, err := filepath.Rel(source, file)
	if err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"absolute": file, "relative": relative, "directory": dir, "up": "..", "chain": "absolute", "loop": "loop"} {
		if err := os.Symlink(target, at(name)); err != nil {
			t.Fatal(err)
		}
	}
	const outside = 4 // a chain to one of them and a loop lead nowhere
	left := 0
	if err := syscall.Mkfifo(at("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	left++
	if os.Geteuid() == 0 {
		if err := syscall.Mknod(at("device"), syscall.S_IFCHR|0o666, 1<<8|5); err != nil {
			t.Fatal(err)
		}
		left++
	}
	if err := os.WriteFile(at("runs as its owner"), []byte("#!/bin/sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(at("runs as its owner"), 0o755|fs.ModeSetuid|fs.ModeSetgid); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, t.TempDir())
	made, err := prepare(t, s, source, "a")
	if err != nil || made.Files != 3 || made.Left != left || made.Outside != outside {
		t.Fatalf("copy %+v, %v; %d are to be left", made, err, left)
	}
	copied(t, made.Dir)
	for _, name := range []string{"absolute", "relative", "directory", "up", "chain", "loop"} {
		if _, err := os.Stat(filepath.Join(made.Dir, name)); err == nil {
			t.Errorf("%s leads somewhere", name)
		}
	}

	if err := os.WriteFile(at("huge"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(at("huge"), 1<<43); err != nil { // a hole: it takes no room here
		t.Fatal(err)
	}
	fresh := openStore(t, t.TempDir())
	if made, err := prepare(t, fresh, source, "a"); !errors.Is(err, ErrNoRoom) {
		t.Fatalf("copy of 8 TiB: %+v, %v", made, err)
	}
	size := int64(0)
	_ = filepath.WalkDir(fresh.config.Dir, func(_ string, entry fs.DirEntry, _ error) error {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	if size > 1<<20 {
		t.Errorf("%d bytes stay of what does not fit", size)
	}
}

// A file and a directory that turn into links while they are copied give what
// they were, or nothing.
func TestLinksThatComeWhileCopying(t *testing.T) {
	dir, file := outside(t)
	source := dataset(t, rand.New(rand.NewPCG(3, 4)), 10, 20, 30, 40)
	for _, name := range []string{"plain/secret", "file"} { // names that lead outside when a link takes their place
		path := filepath.Join(source, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("of the dataset!!"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link-dir": dir, "link-file": file} {
		if err := os.Symlink(target, filepath.Join(source, name)); err != nil {
			t.Fatal(err)
		}
	}
	over := make(chan struct{})
	var swaps sync.WaitGroup
	defer swaps.Wait()
	defer close(over)
	for _, pair := range [][2]string{{"plain", "link-dir"}, {"file", "link-file"}} {
		swaps.Go(func() {
			one, other, aside := filepath.Join(source, pair[0]), filepath.Join(source, pair[1]), filepath.Join(source, "aside-"+pair[0])
			for {
				select {
				case <-over:
					return
				default:
				}
				_ = os.Rename(one, aside) // all are there in every state of the loop
				_ = os.Rename(other, one)
				_ = os.Rename(one, other)
				_ = os.Rename(aside, one)
			}
		})
	}
	whole := 0
	for range 60 {
		s := openStore(t, t.TempDir())
		if made, err := prepare(t, s, source, "a"); err == nil {
			whole++
			copied(t, made.Dir)
		}
		copied(t, s.config.Dir)
	}
	t.Logf("%d of 60 copies were made in spite of it", whole)
}
