package data

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"nomadlike/nomadlike/tree"
)

// versioned is a directory and what its manifest says, with small files, one of several
// chunks, an empty one, a link, and a name that is no UTF-8.
func versioned(t *testing.T) (dir string, m tree.Manifest) {
	t.Helper()
	dir = t.TempDir()
	large := make([]byte, 12<<20)
	chance := rand.New(rand.NewPCG(7, 7))
	for i := range large {
		large[i] = byte(chance.Uint32())
	}
	if err := os.MkdirAll(filepath.Join(dir, "sub", "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"a": []byte("one"), "large": large, "none": nil, "sub/\xd6\xd0": []byte("two"), "z": []byte("run")} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../a", filepath.Join(dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	m, _, err := tree.Scan(t.Context(), dir, tree.Options{Data: true})
	if err != nil {
		t.Fatal(err)
	}
	return dir, m.Settled()
}

// versionOf is a version that is read from a directory; got counts the chunks that were.
func versionOf(t *testing.T, dir string, m tree.Manifest, got *int) *Version {
	t.Helper()
	source, err := tree.OpenSource(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = source.Close() })
	return &Version{
		Project: "vision", Digest: m.Digest(),
		Manifest: func(context.Context) ([]byte, error) { return m.Encode(), nil },
		Fill: func(_ context.Context, f *Filling) error {
			file := 0
			for _, entry := range m.Entries {
				if entry.Kind != tree.KindFile {
					continue
				}
				for i, chunk := range entry.Chunks {
					if f.Has(file, i) {
						continue
					}
					text, err := source.Read(chunk)
					if err == nil {
						err = f.Put(file, i, text)
					}
					if err != nil {
						return err
					}
					*got++
				}
				file++
			}
			return nil
		},
	}
}

// TestVersions: a version is copied by its manifest, found again by its digest alone, of
// that project alone, opened for others, and what is damaged of it comes anew by chunk.
func TestVersions(t *testing.T) {
	dir, m := versioned(t)
	store := openStore(t, t.TempDir())
	got := 0
	v := versionOf(t, dir, m, &got)
	made, err := Versions{store}.Prepare(t.Context(), v, "a1", func(int64, int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if all := len(m.Chunks()); got != all || all < 8 {
		t.Errorf("%d chunks of %d were read", got, all)
	}
	if made.Files != 5 || made.Bytes != m.Bytes() || made.Copied != m.Bytes() {
		t.Errorf("made %+v", made)
	}
	same := func(made Copy) {
		t.Helper()
		for _, entry := range m.Entries {
			name := filepath.Join(made.Dir, entry.Path)
			info, err := os.Lstat(name)
			if err != nil {
				t.Fatal(err)
			}
			switch entry.Kind {
			case tree.KindFile:
				want, _ := os.ReadFile(filepath.Join(dir, entry.Path))
				if text, err := os.ReadFile(name); err != nil || !bytes.Equal(text, want) || info.Mode().Perm() != fs.FileMode(entry.Mode) {
					t.Errorf("%q: %v, mode %v, want %o", entry.Path, err, info.Mode(), entry.Mode)
				}
			case tree.KindLink:
				if target, err := os.Readlink(name); err != nil || target != entry.Target {
					t.Errorf("%q leads to %q, %v", entry.Path, target, err)
				}
			}
		}
	}
	same(made)

	v.Manifest = func(context.Context) ([]byte, error) { return nil, errors.New("asked though it is there") }
	if again, err := (Versions{store}).Prepare(t.Context(), v, "a2", func(int64, int64) {}); err != nil || again.Copied != 0 || again.Dir != made.Dir {
		t.Errorf("again: %+v, %v", again, err)
	}
	held, err := Versions{store}.Hold("vision", m.Digest())
	if err != nil || !bytes.Equal(held.Text, m.Encode()) {
		t.Errorf("held %v", err)
	} else if text, err := held.Root.ReadFile("a"); err != nil || string(text) != "one" {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := (Versions{store}).Hold("others", m.Digest()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of another project: %v", err)
	}

	// The next agent reads all of it, and finds a byte that is not as it was.
	for _, user := range []string{"a1", "a2"} {
		if err := store.Release(user); err != nil {
			t.Fatal(err)
		}
	}
	store.Close()
	if err := os.Chmod(filepath.Join(made.Dir, "large"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(filepath.Join(made.Dir, "large"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteAt([]byte{0}, 5<<20); err != nil {
		t.Fatal(err)
	}
	file.Close()
	next := openStore(t, store.config.Dir)
	got = 0
	v = versionOf(t, dir, m, &got)
	again, err := Versions{next}.Prepare(t.Context(), v, "a3", func(int64, int64) {})
	if err != nil || !again.Damaged || got != 1 {
		t.Errorf("after damage: %+v, %v, %d chunks were read", again, err, got)
	}
	same(again)
	next.Close()
	last := openStore(t, store.config.Dir)
	if again, err = (Versions{last}).Prepare(t.Context(), v, "a4", func(int64, int64) {}); err != nil || again.Damaged || again.Verified != VerifiedWhole || got != 1 {
		t.Errorf("what is as it was: %+v, %v, %d chunks were read", again, err, got)
	}
}

// TestVersionOfOtherBytes: a manifest of another digest is refused.
func TestVersionOfOtherBytes(t *testing.T) {
	dir, m := versioned(t)
	store, got := openStore(t, t.TempDir()), 0
	v := versionOf(t, dir, m, &got)
	v.Digest = tree.DigestOf([]byte("another"))
	if _, err := (Versions{store}).Prepare(t.Context(), v, "a1", func(int64, int64) {}); !errors.Is(err, ErrCorrupt) || got != 0 {
		t.Errorf("%v, %d chunks were read", err, got)
	}
}
