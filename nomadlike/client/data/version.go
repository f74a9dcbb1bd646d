package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"nomadlike/nomadlike/tree"
)

// versionFile names the manifest that a copy of a version of named data has beside it, as
// the version's digest names it.
const versionFile = "version"

// Version is a version of named data: a tree whose digest is known before anything of it is
// read. Project and Digest name its copy, so one that is there is found without asking
// anybody.
type Version struct {
	Project string // whose it is
	Digest  tree.Digest
	// Manifest returns the encoded manifest. It is asked when there is no copy.
	Manifest func(ctx context.Context) ([]byte, error)
	// Fill brings what the copy lacks.
	Fill func(ctx context.Context, f *Filling) error

	text     []byte
	manifest tree.Manifest
	files    []*File
	chunks   [][]tree.Chunk // of each file
}

// versionKey names the copies of a version in the store.
func versionKey(project string, digest tree.Digest) string {
	sum := sha256.Sum256([]byte("version\x00" + project + "\x00" + string(digest)))
	return hex.EncodeToString(sum[:])
}

// Versions are the copies of versions of named data in a store. Any goroutine may use them.
type Versions struct{ Store *Store }

// Prepare returns a copy of a version, as Store.Prepare does of a directory. Every byte of
// it is what the manifest says.
func (vs Versions) Prepare(ctx context.Context, v *Version, user string, progress Progress) (Copy, error) {
	return vs.Store.copyOf(ctx, &copier{version: v, list: &Listing{}}, versionKey(v.Project, v.Digest), user, progress)
}

// know learns what the version consists of.
func (c *copier) know(ctx context.Context) error {
	v := c.version
	text, err := v.Manifest(ctx)
	if err != nil {
		return err
	}
	if tree.DigestOf(text) != v.Digest {
		return fmt.Errorf("%w: manifest of version %s", ErrCorrupt, v.Digest.Short())
	}
	v.text = text
	if v.manifest, err = tree.Decode(text); err != nil {
		return err
	}
	v.files, v.chunks = nil, nil
	dirMode, nobody := fs.FileMode(sourceDirMode), owner{-1, -1}
	if os.Geteuid() != 0 {
		dirMode = sourceDirModeUnrooted
	}
	l := &Listing{Bytes: v.manifest.Bytes()}
	if err := l.dirs.add(&File{Path: ".", Mode: dirMode, Owner: nobody}); err != nil {
		return err
	}
	for i := range v.manifest.Entries {
		entry := &v.manifest.Entries[i]
		f := &File{Path: entry.Path, Size: entry.Size(), Mode: fs.FileMode(entry.SettledMode()), Owner: nobody}
		to := &l.files
		switch entry.Kind {
		case tree.KindDir:
			f.Mode, to = dirMode, &l.dirs
		case tree.KindLink:
			f.Tag, to = entry.Target, &l.links
		case tree.KindFile:
			end := int64(0)
			for _, chunk := range entry.Chunks {
				end += chunk.Size
				f.Ends = append(f.Ends, end)
			}
			if len(f.Ends) < 2 {
				f.Whole, f.Ends = true, nil
			}
			v.files, v.chunks = append(v.files, f), append(v.chunks, entry.Chunks)
		}
		if err := to.add(f); err != nil {
			return err
		}
	}
	c.list = l
	return nil
}

// digestAt is what a chunk of a version must have.
func (v *Version) digestAt(file, chunk int) (sum [sha256.Size]byte) {
	if len(v.chunks[file]) == 0 {
		return sha256.Sum256(nil)
	}
	_, digits, _ := strings.Cut(string(v.chunks[file][chunk].Digest), ":")
	_, _ = hex.Decode(sum[:], []byte(digits)) // the manifest was decoded
	return sum
}

// Filling is a copy of a version in the making. Any goroutine may use it.
type Filling struct {
	c  *copier
	mu struct {
		sync.Mutex
		idle []*worker
	}
}

// fill has the version bring what is missing.
func (c *copier) fill(ctx context.Context) error {
	c.early = newEarly()
	var disk sync.WaitGroup
	disk.Go(func() { c.early.run(c) })
	defer disk.Wait()
	defer c.early.end()
	f := &Filling{c: c}
	defer f.close()
	for i, file := range c.version.files {
		if file.Size == 0 && !f.Has(i, 0) {
			if err := f.Put(i, 0, nil); err != nil {
				return err
			}
		}
	}
	if err := c.version.Fill(ctx, f); err != nil {
		return err
	}
	for number, done := range c.done {
		if !done {
			return fmt.Errorf("copy version %s: chunk %d did not come", c.version.Digest.Short(), number)
		}
	}
	return nil
}

func (f *Filling) close() {
	for _, w := range f.mu.idle {
		w.close()
	}
}

// Manifest is that of the version.
func (f *Filling) Manifest() tree.Manifest { return f.c.version.manifest }

// Text is the encoded manifest.
func (f *Filling) Text() []byte { return f.c.version.text }

// Dir is where the copy is being made.
func (f *Filling) Dir() string { return filepath.Join(f.c.dir, "tree") }

// Has reports whether a chunk of a file of the version is there, by their numbers.
func (f *Filling) Has(file, chunk int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.c.done[f.c.numbers.first(file)+chunk]
}

// Put writes a chunk, which the caller has compared with its digest.
func (f *Filling) Put(file, chunk int, data []byte) error {
	w := f.take()
	defer f.give(w)
	number := f.c.numbers.first(file) + chunk
	err := w.put(piece{file, chunk, number, f.c.version.files[file]}, data, f.c.version.digestAt(file, chunk))
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: %w", ErrNoRoom, err)
	}
	if err != nil {
		return fmt.Errorf("copy %q: %w", f.c.version.files[file].Path, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.c.done[number] = true
	return nil
}

func (f *Filling) take() *worker {
	f.mu.Lock()
	defer f.mu.Unlock()
	last := len(f.mu.idle) - 1
	if last < 0 {
		return newWorker(f.c)
	}
	w := f.mu.idle[last]
	f.mu.idle = f.mu.idle[:last]
	return w
}

func (f *Filling) give(w *worker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.idle = append(f.mu.idle, w)
}

// bringBack makes a copy that was found damaged one in the making again, so that only what
// is wrong of it has to come once more. One that others still read stays as it is.
func (vs Versions) bringBack(key, user string) error {
	s := vs.Store
	s.mu.Lock()
	defer s.mu.Unlock()
	digest, err := os.ReadFile(s.path("index", key))
	if err != nil || filepath.Base(string(digest)) != string(digest) || s.believed(string(digest)) {
		return nil // there is none
	}
	users, err := os.ReadDir(s.path("uses", string(digest)))
	for _, one := range users {
		if one.Name() != user {
			return nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := os.Lstat(s.path("parts", key)); err == nil {
		return nil // it goes on with that
	}
	if err := os.Rename(s.path("sets", string(digest)), s.path("parts", key)); err != nil {
		return nil // it was removed, and is made from nothing
	}
	for _, name := range []string{"journal", manifestFile, markerFile, originFile, "used"} {
		if err := os.Remove(s.path("parts", key, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// salvage finds of a copy without a journal what is as the manifest says.
func (c *copier) salvage() error {
	switch _, err := os.Lstat(filepath.Join(c.dir, "tree")); {
	case errors.Is(err, fs.ErrNotExist):
		return nil // nothing was copied yet
	case err != nil:
		return fmt.Errorf("look for what was copied: %w", err)
	}
	for i, f := range c.version.files {
		for chunk := range f.chunks() {
			digest, number := c.version.digestAt(i, chunk), c.numbers.first(i)+chunk
			offset, length := f.span(chunk)
			if !c.has(f, offset, length, digest, true) {
				continue
			}
			if err := c.sums.set(number, digest); err != nil {
				return err
			}
			if err := c.journal.add(&record{file: uint32(i), chunk: uint32(chunk), digest: digest}, c.now(), false); err != nil {
				return err
			}
			c.done[number] = true
			c.copied.Add(length)
		}
	}
	return nil
}

// Held is a copy of a version that others may read from.
type Held struct {
	Root *os.Root // its files
	Text []byte   // its manifest, encoded
}

// Hold opens the copy of a version, if it is whole. The caller closes the root.
func (vs Versions) Hold(project string, digest tree.Digest) (Held, error) {
	s := vs.Store
	name, err := os.ReadFile(s.path("index", versionKey(project, digest)))
	if err != nil {
		return Held{}, err
	}
	set := string(name)
	if filepath.Base(set) != set || !s.believed(set) {
		return Held{}, fs.ErrNotExist
	}
	text, err := os.ReadFile(s.path("sets", set, versionFile))
	if err != nil {
		return Held{}, err
	}
	if tree.DigestOf(text) != digest {
		return Held{}, fmt.Errorf("%w: manifest of version %s", ErrDamaged, digest.Short())
	}
	root, err := os.OpenRoot(s.path("sets", set, "tree"))
	return Held{Root: root, Text: text}, err
}
