package data

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"testing"
)

// held is how many bytes of memory what make returns takes, for each of n.
func retained(t *testing.T, n int, make func() any) int {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := make()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return (int(after.HeapAlloc) - int(before.HeapAlloc)) / n
}

// Three million files cost an agent less than 200 MiB: while one directory of
// them is walked, and when they are listed.
func TestListOfManyFilesIsSmall(t *testing.T) {
	const files, most = 20_000, 200 << 20 / 3_000_000
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
	walked := retained(t, files, func() any {
		d, err := root.Open(".")
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		inside, err := readNames(d, namesMax)
		if err != nil || len(inside.at) != files {
			t.Fatal(err)
		}
		return inside
	})
	lists, paths := t.TempDir(), []string(nil)
	listed := retained(t, files, func() any {
		listing, err := list(t.Context(), root, lists)
		if err != nil {
			t.Fatal(err)
		}
		return listing
	})
	listing, err := list(t.Context(), root, lists)
	if err == nil {
		err = listing.Each(func(f *File) error {
			paths = append(paths, f.Path)
			return nil
		})
	}
	if err != nil || len(paths) != files || paths[0] != "sample-00000000.jpg" || paths[files-1] != "sample-00019999.jpg" {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	t.Logf("%d bytes for each file while it is walked, %d when it is listed", walked, listed)
	if walked > most || listed > most {
		t.Errorf("%d bytes for each file while it is walked, %d when it is listed, at most %d", walked, listed, most)
	}
}

// A long list, and the digests of a copy of it, lie on the disk, and are what was
// put there. Their files have no name.
func TestLongListsAreOnTheDisk(t *testing.T) {
	const files, large = 200_000, 777
	dir := t.TempDir()
	file := func(i int) File {
		f := File{Path: fmt.Sprintf("class-%03d/%07x.JPEG", i/1000, i*7919), Size: int64(i), Mode: 0o444, MTime: 1_700_000_000_000_000_000 + int64(i), Owner: owner{1000, -1}}
		if i%1000 == large {
			f.Size = 3*chunkBytes + 1
			f.Tag, f.SHA256, f.Whole = "v", make([]byte, sha256.Size), i%2000 == large
		}
		return f
	}
	l, c := &Listing{files: roll{dir: dir}}, &copier{lists: dir, dir: t.TempDir()}
	each := retained(t, files, func() any {
		for i := range files {
			f := file(i)
			if err := l.files.add(&f); err != nil {
				t.Fatal(err)
			}
		}
		c.list = l
		if err := c.resume("boot"); err != nil {
			t.Fatal(err)
		}
		return c
	})
	t.Logf("%d bytes for each file", each)
	if each > 16 {
		t.Errorf("%d bytes for each file, at most 16", each)
	}
	chunks := 0
	err := l.files.each(func(i int, f *File) error {
		if want := file(i); !reflect.DeepEqual(*f, want) {
			return fmt.Errorf("%d is %+v, not %+v", i, f, want)
		}
		if first := c.numbers.first(i); first != chunks {
			return fmt.Errorf("%d begins with chunk %d, not %d", i, first, chunks)
		}
		chunks += f.chunks()
		return c.sums.set(chunks-1, sha256.Sum256([]byte(f.Path)))
	})
	if err != nil || len(c.done) != chunks {
		t.Fatalf("%d chunks, want %d, %v", len(c.done), chunks, err)
	}
	f := file(files - 1)
	if got, err := c.sums.get(chunks - 1); err != nil || got != sha256.Sum256([]byte(f.Path)) {
		t.Errorf("digest %x, %v", got, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		t.Errorf("%v are left, %v", names, err)
	}
	if err := errors.Join(l.Close(), c.sums.close(), c.journal.close()); err != nil {
		t.Error(err)
	}
}

// More names than are sorted at once are refused before they are held.
func TestTooManyNamesAreRefused(t *testing.T) {
	dir := t.TempDir()
	for i := range 100 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("name-", i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	w := walk{ctx: t.Context(), root: root, listing: &Listing{}, held: namesMax - 500}
	if err := w.dir("."); !errors.Is(err, errNames) {
		t.Errorf("error %v", err)
	}
	if w.held != namesMax-500 {
		t.Errorf("%d bytes are held", w.held)
	}
	w.held = 0
	var told *fs.PathError
	if err := w.dir("."); err != nil || errors.As(err, &told) || w.listing.Count() != 100 {
		t.Errorf("%d files, %v", w.listing.Count(), err)
	}
}

// A cache of Hugging Face is read through its links, which the copy keeps; links
// that lead out of the dataset are counted and left out. A copy with links is
// found again, also after a power cut, and one without is not taken for it.
func TestLinksInside(t *testing.T) {
	source := t.TempDir()
	for name, text := range map[string]string{"blobs/4f2a": "weights", "blobs/77c1": "{}", "snapshots/main/own": "own", "refs/main": "main"} {
		path := filepath.Join(source, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{
		"snapshots/main/model.safetensors": "../../blobs/4f2a", "snapshots/main/config.json": ".././../blobs//77c1",
		"latest": "snapshots/main", "snapshots/main/weights": "model.safetensors", "top": "snapshots/main/../../blobs/77c1", "coming": "blobs/not/yet",
	}
	outside := map[string]string{
		"above": "../x", "snapshots/far": "../../etc", "absolute": filepath.Join(source, "blobs/4f2a"),
		"through": "latest/../../../etc", "gone": "blobs/none/../../refs/main",
	}
	before := dataset(t, rand.New(rand.NewPCG(41, 1)), 10)
	s := openStore(t, t.TempDir())
	plain, err := prepare(t, s, before, "z")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file0", filepath.Join(before, "part0", "link")); err != nil {
		t.Fatal(err)
	}
	if made, err := prepare(t, s, before, "z"); err != nil || made.Digest == plain.Digest {
		t.Errorf("a copy without links: %+v, %v", made, err)
	}
	for _, all := range []map[string]string{links, outside} {
		for name, target := range all {
			if err := os.Symlink(target, filepath.Join(source, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	made, err := prepare(t, s, source, "a")
	if err != nil || made.Files != 4 || made.Outside != len(outside) || made.Left != 0 {
		t.Fatalf("copy %+v, %v", made, err)
	}
	look := func(dir string) {
		for name, target := range links {
			if got, err := os.Readlink(filepath.Join(dir, name)); err != nil || got != target {
				t.Errorf("%s leads to %q, %v", name, got, err)
			}
		}
		for name := range outside {
			if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
				t.Errorf("%s is in the copy", name)
			}
		}
		for name, want := range map[string]string{"latest/weights": "weights", "latest/config.json": "{}", "top": "{}"} {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != want {
				t.Errorf("%s holds %q, %v", name, text, err)
			}
		}
	}
	look(made.Dir)
	waitMarker(t, made.Dir)
	again, err := prepare(t, openStore(t, s.config.Dir), source, "b")
	if err != nil || again.Copied != 0 || again.Digest != made.Digest || again.Outside != len(outside) {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	if err := errors.Join(s.Release("a"), s.Release("b")); err != nil {
		t.Fatal(err)
	}
	// The marker is lost, and one link with it.
	wrong := filepath.Join(made.Dir, "latest")
	origin := filepath.Join(filepath.Dir(made.Dir), originFile)
	key, err := listedAs(source, s)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(filepath.Join(filepath.Dir(made.Dir), markerFile)), os.Remove(wrong), os.Symlink("/etc", wrong),
		os.WriteFile(origin, []byte(`{"key":"`+key+`","boot":"b"}`), 0o600)); err != nil {
		t.Fatal(err)
	}
	if made, err = prepare(t, openStore(t, s.config.Dir, func(c *Config) { c.BootID = "c" }), source, "c"); err != nil {
		t.Fatal(err)
	}
	look(made.Dir)
}

// listedAs is the name of a listing.
func listedAs(source string, s *Store) (string, error) {
	root, err := os.OpenRoot(source)
	if err != nil {
		return "", err
	}
	defer root.Close()
	l, err := list(context.Background(), root, s.path("lists"))
	if err != nil {
		return "", err
	}
	return l.key()
}
