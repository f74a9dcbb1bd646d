package data

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"nomadlike/internal/eventually"
)

// TestReadBeforeItIsOnDisk: a copy is there before the disk has it. After a
// crash of the agent it is believed; after one of the machine, which lost some of
// it, only what is right is kept.
func TestReadBeforeItIsOnDisk(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		chance := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		sizes := make([]int, rapid.IntRange(1, 20).Draw(rt, "files"))
		for i := range sizes {
			sizes[i] = 1 + chance.IntN(3000)
		}
		source, dir := dataset(t, chance, sizes...), t.TempDir()
		never := make(chan struct{})
		s := openStore(t, dir, func(c *Config) {
			c.Sync = func(string) error { <-never; return os.ErrNotExist } // the machine stops first
		})
		defer func() { close(never); s.Close() }()
		first, err := prepare(t, s, source, "a")
		if err != nil {
			rt.Fatal(err)
		}
		same(t, source, first.Dir)
		if err := s.Release("a"); err != nil {
			rt.Fatal(err)
		}
		again, err := prepare(t, openStore(t, dir), source, "b")
		if err != nil || again.Copied != 0 {
			rt.Fatalf("after a crash of the agent: %+v, %v", again, err)
		}
		if err := s.Release("b"); err != nil {
			rt.Fatal(err)
		}
		waitMarker(t, first.Dir)
		if rapid.Bool().Draw(rt, "marker lost") {
			for name, text := range map[string]string{"synced": "", "origin": `{"key":"` + keyOf(t, dir) + `","boot":"b"}`} {
				if err := os.Remove(filepath.Join(dir, "sets", first.Digest, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
					rt.Fatal(err)
				}
				if name == "origin" && chance.IntN(3) > 0 {
					if err := os.WriteFile(filepath.Join(dir, "sets", first.Digest, name), []byte(text), 0o600); err != nil {
						rt.Fatal(err)
					}
				}
			}
			files, _ := filepath.Glob(filepath.Join(first.Dir, "*", "*"))
			for _, name := range files {
				if info, err := os.Stat(name); err == nil && chance.IntN(2) == 0 { // never reached the disk
					_ = os.Chmod(name, 0o644)
					if err := os.WriteFile(name, make([]byte, chance.Int64N(info.Size()+1)), 0o644); err != nil {
						rt.Fatal(err)
					}
				}
			}
		}
		made, err := prepare(t, openStore(t, dir, func(c *Config) { c.BootID = "c" }), source, "c")
		if err != nil {
			rt.Fatal(err)
		}
		same(t, source, made.Dir)
	})
}

// keyOf is the name of the only listing of a store.
func keyOf(t *testing.T, dir string) string {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, "index", "*"))
	if len(names) != 1 {
		t.Fatalf("index %v", names)
	}
	return filepath.Base(names[0])
}

func waitMarker(t *testing.T, tree string) {
	t.Helper()
	eventually.Within(t, time.Minute, "the copy is on the disk", func() bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(tree), markerFile))
		return err == nil
	})
}

// TestGoesOnAfterAPowerCut: what a lost marker makes of a copy is verified, and
// only what is wrong is copied.
func TestGoesOnAfterAPowerCut(t *testing.T) {
	source, dir := dataset(t, rand.New(rand.NewPCG(21, 1)), 3000, 4000, 5000), t.TempDir()
	hold := make(chan struct{})
	s := openStore(t, dir, func(c *Config) { c.Sync = func(string) error { <-hold; return os.ErrNotExist } })
	defer close(hold)
	first, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release("a"); err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(first.Dir, "part1", "file1")
	if err := errors.Join(os.Chmod(broken, 0o600), os.WriteFile(broken, make([]byte, 4000), 0o600)); err != nil {
		t.Fatal(err)
	}
	made, err := prepare(t, openStore(t, dir, func(c *Config) { c.BootID = "c" }), source, "b")
	if err != nil || made.Copied != 4000 {
		t.Fatalf("%+v, %v", made, err)
	}
	same(t, source, made.Dir)
}

// TestDiskRefuses: readers of a copy that the disk refuses hear of it, and the
// next one gets another copy.
func TestDiskRefuses(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(22, 1)), 3000, 70)
	refuse, heard := errors.New("input/output error"), make(chan []string, 1)
	tries := 0
	s := openStore(t, t.TempDir(), func(c *Config) {
		c.Broken = func(users []string, err error) {
			if errors.Is(err, refuse) {
				heard <- users
			}
		}
		c.Sync = func(dir string) error {
			if tries++; tries == 1 {
				return refuse
			}
			return syncTree(dir)
		}
	})
	first, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	if users := <-heard; !slices.Equal(users, []string{"a"}) {
		t.Errorf("told %v", users)
	}
	second, err := prepare(t, s, source, "b")
	if err != nil || second.Copied != first.Bytes {
		t.Fatalf("the next one: %+v, %v", second, err)
	}
	same(t, source, second.Dir)
	waitMarker(t, second.Dir)
}
