package data

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// change writes two other bytes into a file of a copy, and leaves all that a
// listing reports it.
func change(t *testing.T, name string, offset int64) {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	two := make([]byte, 2)
	if _, err := f.ReadAt(two, offset); err != nil {
		t.Fatal(err)
	}
	two[0], two[1] = two[0]^1, two[1]^0x80
	if _, err := f.WriteAt(two, offset); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(name, info.Mode()), os.Chtimes(name, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
}

// Two changed bytes are found at the first use after a start, in a small file
// and in the middle of a large one, and also where an older version has not noted
// the digests of chunks. Whoever read the copy hears of it; the copy is made again.
func TestChangedBytesAreFound(t *testing.T) {
	for name, file := range map[string]string{"small": "part0/file0", "large": "part1/file1"} {
		for _, old := range []bool{false, true} {
			source := dataset(t, rand.New(rand.NewPCG(31, 1)), 5000, 2*chunkBytes+7, 70)
			dir := t.TempDir()
			s := openStore(t, dir)
			first, err := prepare(t, s, source, "a")
			if err != nil || first.Verified != VerifiedMade {
				t.Fatalf("%s: %+v, %v", name, first, err)
			}
			s.Close()
			if old {
				forgetChunks(t, filepath.Join(dir, "sets", first.Digest, manifestFile))
			}
			if made, err := prepare(t, openStore(t, dir), source, "b"); err != nil || made.Copied != 0 || made.Verified != VerifiedWhole || made.Damaged {
				t.Fatalf("%s: a good copy: %+v, %v", name, made, err)
			}
			change(t, filepath.Join(first.Dir, file), 3000)
			heard := make(chan []string, 1)
			s = openStore(t, dir, func(c *Config) { c.Broken = func(users []string, _ error) { heard <- users } })
			made, err := prepare(t, s, source, "c")
			if err != nil || !made.Damaged || made.Copied != made.Bytes {
				t.Fatalf("%s: a changed copy: %+v, %v", name, made, err)
			}
			same(t, source, made.Dir)
			if users := <-heard; !slices.Equal(users, []string{"a", "b"}) {
				t.Errorf("%s: told %q", name, users)
			}
		}
	}
}

// forgetChunks makes a manifest as older versions did.
func forgetChunks(t *testing.T, name string) {
	t.Helper()
	var all struct {
		Bytes int64           `json:"bytes"`
		Files []manifestEntry `json:"files"`
	}
	text, err := os.ReadFile(name)
	if err != nil || json.Unmarshal(text, &all) != nil {
		t.Fatal(err)
	}
	for i := range all.Files {
		all.Files[i].Chunks = nil
	}
	if text, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Later uses look at samples, which find the change in time.
func TestSamplesFindChangedBytes(t *testing.T) {
	source := dataset(t, rand.New(rand.NewPCG(32, 1)), 5000, 6000, 70)
	s := openStore(t, t.TempDir())
	first, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	change(t, filepath.Join(first.Dir, "part1/file1"), 77)
	for range 100 { // a sample of one of three files has it with a chance of a third
		made, err := prepare(t, s, source, "b")
		if err != nil {
			t.Fatal(err)
		}
		if made.Damaged {
			same(t, source, made.Dir)
			return
		}
		if made.Verified != VerifiedSample {
			t.Fatalf("%+v", made)
		}
	}
	t.Error("the change is never found")
}

// A job waits for the look at a large copy as long as it is told, and no longer;
// what is found later ends what reads it.
func TestPatienceEnds(t *testing.T) {
	source, dir := dataset(t, rand.New(rand.NewPCG(33, 1)), 5000, 6000), t.TempDir()
	heard := make(chan []string, 1)
	s := openStore(t, dir, func(c *Config) {
		c.VerifyWait = time.Nanosecond
		c.Broken = func(users []string, err error) {
			if errors.Is(err, ErrDamaged) {
				heard <- users
			}
		}
	})
	first, err := prepare(t, s, source, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Release("a"); err != nil {
		t.Fatal(err)
	}
	under := &check{key: keyOf(t, dir), waiting: make(map[string]bool), done: make(chan struct{})}
	s.mu.Lock()
	s.mu.checks[first.Digest] = under
	s.mu.Unlock()
	made, err := prepare(t, s, source, "b")
	if err != nil || made.Verified != VerifiedSoon || made.Copied != 0 {
		t.Fatalf("%+v, %v", made, err)
	}
	change(t, filepath.Join(first.Dir, "part1/file1"), 77)
	s.proof.verify(first.Digest, under)
	if users := <-heard; !slices.Equal(users, []string{"b"}) {
		t.Errorf("told %q", users)
	}
	if made, err = prepare(t, s, source, "c"); err != nil || made.Copied != made.Bytes {
		t.Fatalf("the next one: %+v, %v", made, err)
	}
	same(t, source, made.Dir)
}
