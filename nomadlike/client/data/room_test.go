package data

import (
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// usedBytes is what the files of a store take, those in the making included.
func usedBytes(dir string) (used int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && entry.Name() != "journal" {
			if info, err := entry.Info(); err == nil {
				used += info.Size()
			}
		}
		return nil
	})
	return used
}

// TestRoomOfHalfDoneCopies: what a copy in the making has written is missing
// from the free space already, and is not counted again as what it will need.
func TestRoomOfHalfDoneCopies(t *testing.T) {
	chance := rand.New(rand.NewPCG(11, 12))
	dir := t.TempDir()
	const large, small = 8 << 20, 4 << 20
	const total = 13 << 20 // both fit, and manifests
	s := openStore(t, dir, func(c *Config) {
		c.Space = func(string) (int64, int64, error) { return total - usedBytes(dir), total, nil }
	})
	first, second := dataset(t, chance, large), dataset(t, chance, small)
	root, err := os.OpenRoot(first)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	half, goOn := make(chan struct{}), make(chan struct{})
	var once sync.Once
	var copying sync.WaitGroup
	copying.Go(func() {
		_, err := s.Prepare(context.Background(), root, "a", func(done, _ int64) {
			if done > large/2 {
				once.Do(func() { close(half) })
				<-goOn
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-half
	if _, err := prepare(t, s, second, "b"); err != nil {
		t.Errorf("of 13 MiB, 5 are written and 3 still to come: no 4 more? %v", err)
	}
	close(goOn)
	copying.Wait()
	if len(s.mu.active) != 0 {
		t.Errorf("%d copies are taken for active", len(s.mu.active))
	}
}

// TestFreshCopyIsNotEvicted: whoever wants room takes everything that nobody
// uses, at every moment, and never what was just made for somebody.
func TestFreshCopyIsNotEvicted(t *testing.T) {
	chance := rand.New(rand.NewPCG(13, 14))
	s := openStore(t, t.TempDir())
	sources := make([]string, 30)
	for i := range sources {
		sources[i] = dataset(t, chance, 10+i)
	}
	stop := make(chan struct{})
	var wanting sync.WaitGroup
	for range 4 {
		wanting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s.mu.Lock()
				s.room.evictLocked("")
				s.mu.Unlock()
			}
		})
	}
	deadline := time.Now().Add(3 * time.Second)
	for i := 0; i < len(sources) && time.Now().Before(deadline); i++ {
		if _, err := prepare(t, s, sources[i], "user"+strconv.Itoa(i)); err != nil {
			t.Errorf("copy %d: %v", i, err)
		}
	}
	close(stop)
	wanting.Wait()
}

// TestCopyKeepsRights: a user who may not read a source may not read its copy, nor
// find out what is being copied.
func TestCopyKeepsRights(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(15, 16)), 10, 20, chunkBytes+1)
	modes := map[string]fs.FileMode{"part0": 0o750, "part0/file0": 0o640, "part1/file1": 0o711, "part2/file2": 0o400, ".": 0o755}
	for name, mode := range modes {
		if err := os.Chmod(filepath.Join(source, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	root := os.Geteuid() == 0
	if root {
		if err := os.Chown(filepath.Join(source, "part0", "file0"), 4001, 4002); err != nil {
			t.Fatal(err)
		}
	}
	s := openStore(t, t.TempDir())
	made, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	for name, mode := range modes {
		info, err := os.Stat(filepath.Join(made.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		want := mode &^ 0o222
		if !root && info.IsDir() {
			want |= 0o700
		}
		if info.Mode().Perm() != want {
			t.Errorf("%s has %v, want %v", name, info.Mode().Perm(), want)
		}
		if stat := info.Sys().(*syscall.Stat_t); root && name == "part0/file0" && (stat.Uid != 4001 || stat.Gid != 4002) {
			t.Errorf("%s belongs to %d:%d", name, stat.Uid, stat.Gid)
		}
	}
	for _, name := range []string{"parts", "index", "sets"} {
		if info, err := os.Stat(filepath.Join(s.config.Dir, name)); err != nil || info.Mode().Perm()&0o044 != 0 {
			t.Errorf("%s can be listed: %v, %v", name, info.Mode(), err)
		}
	}

	if err := os.Chmod(filepath.Join(source, "part0", "file0"), 0o600); err != nil {
		t.Fatal(err)
	}
	closed, err := prepare(t, s, source, "b")
	if err != nil || closed.Digest == made.Digest {
		t.Errorf("a source with other rights shares a copy: %v, %v", closed, err)
	}
}
