package codestore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

func testStore(t *testing.T, change func(*Config)) *Store {
	t.Helper()
	config := Config{Dir: filepath.Join(t.TempDir(), "code"), Server: "one", Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&config)
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func pieceOf(text string) Piece {
	return Piece{tree.Chunk{Digest: tree.DigestOf([]byte(text)), Size: int64(len(text))}, []byte(text)}
}

// treeOf is a tree with a file for each text.
func treeOf(texts ...string) (data []byte, pieces []Piece) {
	var manifest tree.Manifest
	for i, text := range texts {
		piece := pieceOf(text)
		pieces = append(pieces, piece)
		manifest.Entries = append(manifest.Entries, tree.Entry{Path: fmt.Sprintf("f%05d", i), Kind: tree.KindFile, Mode: 0o644, Chunks: []tree.Chunk{piece.Chunk}})
	}
	return manifest.Encode(), pieces
}

func chunksOf(pieces []Piece) (chunks []tree.Chunk) {
	for _, piece := range pieces {
		chunks = append(chunks, piece.Chunk)
	}
	return chunks
}

// keep sends a tree of some texts to a project.
func keep(t *testing.T, s *Store, project string, texts ...string) structs.CodeRef {
	t.Helper()
	data, pieces := treeOf(texts...)
	if _, err := s.Put(project, pieces); err != nil {
		t.Fatal(err)
	}
	digest, err := s.Commit(project, data)
	if err != nil {
		t.Fatal(err)
	}
	return structs.CodeRef{Project: project, Digest: string(digest)}
}

func readChunk(s *Store, ref structs.CodeRef, chunk tree.Chunk) (string, error) {
	from, err := s.Open(ref, chunk)
	if err != nil {
		return "", err
	}
	defer from.Close()
	data, err := io.ReadAll(from)
	return string(data), err
}

func errorID(err error) string {
	if failure := new(structs.Error); errors.As(err, &failure) {
		return failure.ID
	}
	return fmt.Sprint(err)
}

func TestWhatWasSentIsRead(t *testing.T) {
	s := testStore(t, nil)
	data, pieces := treeOf("one", "two", "three")
	missing, err := s.Missing("team-a", chunksOf(pieces))
	if err != nil || len(missing) != 3 {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	if _, err := s.Commit("team-a", data); errorID(err) != "code.incomplete" {
		t.Errorf("a manifest without its chunks: %v", err)
	}
	fresh, err := s.Put("team-a", append(pieces[:2:2], pieces[0]))
	if err != nil || fresh != 2 {
		t.Fatalf("put: %d, %v", fresh, err)
	}
	if missing, err = s.Missing("team-a", chunksOf(pieces)); err != nil || !slices.Equal(missing, []tree.Digest{pieces[2].Chunk.Digest}) {
		t.Fatalf("missing: %v, %v", missing, err)
	}
	ref := keep(t, s, "team-a", "one", "two", "three")
	if got, err := s.Manifest(ref); err != nil || !bytes.Equal(got, data) || !s.Has(ref) {
		t.Errorf("manifest: %q, %v", got, err)
	}
	for _, piece := range pieces {
		if got, err := readChunk(s, ref, piece.Chunk); err != nil || got != string(piece.Data) {
			t.Errorf("chunk: %q, %v", got, err)
		}
	}
	again, err := New(s.config) // another process
	if err != nil {
		t.Fatal(err)
	}
	if fresh, err := again.Put("team-a", pieces); err != nil || fresh != 0 || !again.Has(ref) {
		t.Errorf("after a start: %d are new, %v", fresh, err)
	}
}

// Nobody learns by the digest of another project's file that it is here, or gets it.
func TestProjectsDoNotMeet(t *testing.T) {
	s := testStore(t, nil)
	ref := keep(t, s, "team-a", "the secret of a")
	data, pieces := treeOf("the secret of a")
	if missing, err := s.Missing("team-b", chunksOf(pieces)); err != nil || len(missing) != 1 {
		t.Errorf("team-b is told of team-a's chunk: %v, %v", missing, err)
	}
	if _, err := s.Commit("team-b", data); errorID(err) != "code.incomplete" {
		t.Errorf("team-b has a tree of team-a's chunk: %v", err)
	}
	other := structs.CodeRef{Project: "team-b", Digest: ref.Digest}
	if s.Has(other) {
		t.Error("team-b has team-a's tree")
	}
	if _, err := s.Manifest(other); !errors.Is(err, ErrLacking) {
		t.Errorf("manifest: %v", err)
	}
	if got, err := readChunk(s, other, pieces[0].Chunk); !errors.Is(err, ErrLacking) {
		t.Errorf("chunk: %q, %v", got, err)
	}
	if !s.Has(ref) {
		t.Error("asking for it took it away")
	}
}

func TestHostileNames(t *testing.T) {
	s := testStore(t, nil)
	_, pieces := treeOf("one")
	for _, project := range []string{"", "..", "../x", "a/b", "A", ".", "a\x00", strings.Repeat("a", 300)} {
		if _, err := s.Put(project, pieces); structs.CodeOf(err) != structs.CodeInvalid {
			t.Errorf("project %q: %v", project, err)
		}
	}
	for _, digest := range []tree.Digest{"", "sha256:", "sha256:../../../../etc/passwd", "sha256:" + tree.Digest(strings.Repeat("A", 64)), "md5:" + tree.Digest(strings.Repeat("a", 64)), pieces[0].Chunk.Digest + "/.."} {
		chunk := tree.Chunk{Digest: digest, Size: 3}
		if _, err := s.Missing("team-a", []tree.Chunk{chunk}); errorID(err) != "code.digest" {
			t.Errorf("missing %q: %v", digest, err)
		}
		if _, err := s.Put("team-a", []Piece{{chunk, []byte("one")}}); errorID(err) != "code.digest" {
			t.Errorf("put %q: %v", digest, err)
		}
		if _, err := s.Open(structs.CodeRef{Project: "team-a"}, chunk); errorID(err) != "code.digest" {
			t.Errorf("open %q: %v", digest, err)
		}
		if s.Has(structs.CodeRef{Project: "team-a", Digest: string(digest)}) {
			t.Errorf("has %q", digest)
		}
	}
}

func TestWrongDigestInTheMiddle(t *testing.T) {
	s := testStore(t, nil)
	_, pieces := treeOf("one", "two", "three")
	pieces[1].Data = []byte("tw0")
	if _, err := s.Put("team-a", pieces); errorID(err) != "code.wrong_digest" {
		t.Fatal(err)
	}
	if missing, err := s.Missing("team-a", chunksOf(pieces)); err != nil || len(missing) != 3 {
		t.Errorf("of a refused request these are missing: %v, %v", missing, err)
	}
	if names, err := s.Projects(); err != nil || len(names) != 0 {
		t.Errorf("projects: %v, %v", names, err)
	}
}

// A disk that changes bytes is found out by whoever reads them; sent again, or fetched
// of another server, all is well.
func TestDamageIsFoundAndHealed(t *testing.T) {
	s := testStore(t, nil)
	big := strings.Repeat("0123456789abcdef", structs.CodePartMax/16) // ends where a piece of an answer does
	ref := keep(t, s, "team-a", "one", big)
	_, pieces := treeOf("one", big)
	for _, damage := range []func(data []byte) []byte{
		func(data []byte) []byte { data[len(data)-1] ^= 1; return data },
		func(data []byte) []byte { return data[1:] },
		func(data []byte) []byte { return append(data, 0) },
		func([]byte) []byte { return nil },
	} {
		for _, piece := range pieces {
			file, _ := digits(piece.Chunk.Digest)
			path := filepath.Join(s.config.Dir, "team-a", chunksDir, file)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, damage(data), 0o600); err != nil {
				t.Fatal(err)
			}
			if got, err := readChunk(s, ref, piece.Chunk); !errors.Is(err, ErrLacking) || len(got) > len(piece.Data) {
				t.Fatalf("%d bytes, %v", len(got), err)
			}
			if s.Has(ref) {
				t.Fatal("the tree is still said to be here")
			}
			keep(t, s, "team-a", "one", big)
			if got, err := readChunk(s, ref, piece.Chunk); err != nil || got != string(piece.Data) {
				t.Fatalf("healed: %d bytes, %v", len(got), err)
			}
		}
	}
	path := filepath.Join(s.config.Dir, "team-a", treesDir, strings.TrimPrefix(ref.Digest, "sha256:"))
	if err := os.WriteFile(path, []byte("nomadlike tree 1\n\x00"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Manifest(ref); !errors.Is(err, ErrLacking) || s.Has(ref) {
		t.Errorf("damaged manifest: %v", err)
	}
}

func TestTwoSendTheSameAtOnce(t *testing.T) {
	s := testStore(t, nil)
	var texts []string
	for i := range 40 {
		texts = append(texts, strings.Repeat(fmt.Sprint(i), 100+i))
	}
	data, pieces := treeOf(texts...)
	var sending sync.WaitGroup
	for range 4 {
		sending.Go(func() {
			shuffled := slices.Clone(pieces)
			rand.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if _, err := s.Put("team-a", shuffled); err != nil {
				t.Error(err)
			}
			if _, err := s.Commit("team-a", data); err != nil {
				t.Error(err)
			}
		})
	}
	sending.Wait()
	p, err := s.of("team-a")
	if err != nil {
		t.Fatal(err)
	}
	if on := bytesBelow(filepath.Join(p.dir, chunksDir)) + bytesBelow(filepath.Join(p.dir, treesDir)); p.bytes != on || on == 0 {
		t.Errorf("%d bytes are counted, %d are on the disk", p.bytes, on)
	}
	if left, err := os.ReadDir(filepath.Join(p.dir, newDir)); err != nil || len(left) != 0 {
		t.Errorf("half-written: %v, %v", left, err)
	}
}

func TestProjectIsFull(t *testing.T) {
	s := testStore(t, func(c *Config) { c.ProjectBytes = 1000 })
	keep(t, s, "team-a", strings.Repeat("x", 500))
	_, pieces := treeOf(strings.Repeat("y", 500))
	if _, err := s.Put("team-a", pieces); errorID(err) != "code.project_full" {
		t.Errorf("full project: %v", err)
	}
	again, err := New(s.config) // counts what is there
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Put("team-a", pieces); errorID(err) != "code.project_full" {
		t.Errorf("full project after a start: %v", err)
	}
	if _, err := again.Put("team-b", pieces); err != nil {
		t.Errorf("another project: %v", err)
	}
}

func TestNoRoomIsLeftForTheLog(t *testing.T) {
	free := uint64(100 << 20)
	s := testStore(t, func(c *Config) {
		c.LeastFree = 50 << 20
		c.FreeBytes = func(string) (uint64, error) { return free, nil }
	})
	ref := keep(t, s, "team-a", "one")
	free = 50<<20 + 2
	_, pieces := treeOf("two")
	_, err := s.Put("team-a", pieces)
	if errorID(err) != "code.disk_full" || structs.CodeOf(err) != structs.CodeUnavailable {
		t.Errorf("full disk: %v", err)
	}
	if _, err := s.Manifest(ref); err != nil {
		t.Errorf("what is there: %v", err)
	}
}

// A real disk that is full in the middle of writing.
func TestDiskIsFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Log("needs root for a disk of its own: not run")
		return
	}
	disk := t.TempDir()
	if err := syscall.Mount("none", disk, "tmpfs", 0, "size=1m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	s := testStore(t, func(c *Config) {
		c.Dir = filepath.Join(disk, "code")
		c.FreeBytes = func(string) (uint64, error) { return 1 << 40, nil } // as if others filled it meanwhile
	})
	ref := keep(t, s, "team-a", "one")
	var texts []string
	for i := range 30 {
		texts = append(texts, strings.Repeat(fmt.Sprint(i%10), 60_000+i))
	}
	data, pieces := treeOf(texts...)
	if _, err := s.Put("team-a", pieces); errorID(err) != "code.disk_full" {
		t.Fatalf("put: %v", err)
	}
	if _, err := s.Commit("team-a", data); errorID(err) != "code.incomplete" {
		t.Errorf("commit: %v", err)
	}
	if left, err := os.ReadDir(filepath.Join(s.config.Dir, "team-a", newDir)); err != nil || len(left) != 0 {
		t.Errorf("half-written: %v, %v", left, err)
	}
	_, first := treeOf("one")
	if got, err := readChunk(s, ref, first[0].Chunk); err != nil || got != "one" {
		t.Errorf("what was there: %q, %v", got, err)
	}
	written, err := s.Missing("team-a", chunksOf(pieces))
	if err != nil || len(written) == 0 || len(written) == len(pieces) {
		t.Errorf("%d of %d are missing, %v", len(written), len(pieces), err)
	}
	if err := syscall.Mount("none", disk, "tmpfs", syscall.MS_REMOUNT, "size=10m"); err != nil {
		t.Fatal(err)
	}
	keep(t, s, "team-a", texts...)
}

func TestSweep(t *testing.T) {
	now := time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC)
	s := testStore(t, func(c *Config) { c.Now = func() time.Time { return now } })
	kept := keep(t, s, "team-a", "shared", "of the kept one")
	gone := keep(t, s, "team-a", "shared", "of the other one")
	other := keep(t, s, "team-b", "of team-b")
	_, orphan := treeOf("never committed")
	if _, err := s.Put("team-b", orphan); err != nil {
		t.Fatal(err)
	}
	known := func(ref structs.CodeRef) bool { return ref == kept || ref == other }
	sweep := func(files int) {
		t.Helper()
		if n, _, err := s.Sweep(t.Context(), known, 24*time.Hour); err != nil || n != files {
			t.Errorf("swept %d files, want %d; %v", n, files, err)
		}
	}
	now = now.Add(23 * time.Hour)
	sweep(0)
	asked := pieceOf("of the other one")
	if missing, err := s.Missing("team-a", []tree.Chunk{asked.Chunk}); err != nil || len(missing) > 0 {
		t.Fatalf("%v, %v", missing, err) // somebody is about to rely on it
	}
	now = now.Add(2 * time.Hour)
	sweep(2) // the tree that is not known, and what was never committed
	if s.Has(gone) || !s.Has(kept) || !s.Has(other) {
		t.Errorf("gone %v, kept %v, other %v", s.Has(gone), s.Has(kept), s.Has(other))
	}
	if missing, err := s.Missing("team-a", []tree.Chunk{pieceOf("shared").Chunk, pieceOf("of the kept one").Chunk}); err != nil || len(missing) > 0 {
		t.Errorf("of the kept tree these are missing: %v, %v", missing, err)
	}
	now = now.Add(23 * time.Hour)
	sweep(1) // what was asked for, a day after that
	p, _ := s.of("team-a")
	if on := bytesBelow(filepath.Join(p.dir, chunksDir)) + bytesBelow(filepath.Join(p.dir, treesDir)); p.bytes != on {
		t.Errorf("%d bytes are counted, %d are on the disk", p.bytes, on)
	}
}
