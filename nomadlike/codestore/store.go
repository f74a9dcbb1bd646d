// Package codestore keeps the code that travels with jobs on a server's disk: the
// manifests of trees, and their chunks, each under the name of its digest.
//
// Flow: Missing tells which chunks of a list are not here; Put writes chunks; Commit
// writes a manifest once all of its chunks are here. Manifest and Open read, and verify
// what they read. Sweep removes what nobody needs. A Source asks another server for a
// tree, and Fetch brings one here that way; Serve is the other end of that.
//
//	code/HOME/chunks/DIGITS   a chunk
//	code/HOME/trees/DIGITS    a manifest
//	code/HOME/new/*           half-written; of no use after a start
//
// HOME is the project's name, or what Home makes of it; projects are named by it here.
//
// What one project sent is on the disk for that project alone: two projects that send
// the same bytes have them twice. Otherwise to name the digest of another's file would
// be to read it.
//
// A file gets its name after its bytes have reached the disk, and an answer is given
// after the name has. So nothing that was answered is lost when the process is killed
// or the power fails, and nothing half-written has a name.
//
// Limits: who may read or write is judged by callers; bytes that a disk has changed are
// found when they are read, not before.
package codestore

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Bounds of a store.
const (
	ProjectBytesMax = 20 << 30  // bytes of one project on a server's disk
	leastFree       = 512 << 20 // bytes that stay free on the file system: the log's directory may be there
	writersMax      = 16        // files that one Put has the disk write at once
)

const (
	chunksDir = "chunks"
	treesDir  = "trees"
	newDir    = "new"
)

// ErrLacking is matched by errors about a tree or a chunk that is not on this disk, or
// was found damaged there.
var ErrLacking = errors.New("not on this server's disk")

// Config says where a store is and what it may take up.
type Config struct {
	Dir    string // made when the first chunk comes
	Server string // name of the server, for refusals
	Log    *slog.Logger
	Now    func() time.Time // nil: the system's clock
	// FreeBytes returns the free space of Dir; nil asks the file system.
	FreeBytes func(dir string) (uint64, error)
	LeastFree uint64 // bytes that stay free; 0: 512 MiB
	// ProjectBytes bounds what one project has here; 0: ProjectBytesMax.
	ProjectBytes int64
}

// Store is the code on one server's disk. Any goroutine may use it.
type Store struct {
	config Config

	mu struct {
		sync.Mutex
		projects map[string]*project
	}
}

// project is what one project has on the disk.
type project struct {
	dir string

	mu      sync.Mutex
	counted bool
	bytes   int64 // of its chunks and manifests; once counted
}

// New returns the store of a directory, and removes what was half-written there.
func New(config Config) (*Store, error) {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.FreeBytes == nil {
		config.FreeBytes = freeBytes
	}
	if config.LeastFree == 0 {
		config.LeastFree = leastFree
	}
	if config.ProjectBytes == 0 {
		config.ProjectBytes = ProjectBytesMax
	}
	s := &Store{config: config}
	s.mu.projects = make(map[string]*project)
	names, err := s.Projects()
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(config.Dir, name, newDir)); err != nil {
			return nil, fmt.Errorf("remove half-written code: %w", err)
		}
	}
	return s, nil
}

// Projects lists the homes of projects that have something on this disk: see Home.
func (s *Store) Projects() ([]string, error) {
	entries, err := os.ReadDir(s.config.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list code: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if _, _, problem := OfHome(entry.Name()); problem == "" && entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

// of returns a project, whose name may come from anybody.
func (s *Store) of(name string) (*project, error) {
	if _, _, id := OfHome(name); id != "" {
		return nil, structs.NewError(structs.CodeInvalid, id, "name", name, "max", structs.NameLengthMax)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.mu.projects[name]
	if p == nil {
		p = &project{dir: filepath.Join(s.config.Dir, name)}
		s.mu.projects[name] = p
	}
	return p, nil
}

// digits is the file name of a digest, which may come from anybody.
func digits(digest tree.Digest) (string, error) {
	if !digest.Valid() {
		return "", structs.NewError(structs.CodeInvalid, "code.digest", "digest", clip(string(digest)))
	}
	_, name, _ := strings.Cut(string(digest), ":")
	return name, nil
}

func clip(text string) string { return text[:min(len(text), 80)] }

// Missing lists the chunks of a list that a project does not have here. What it has
// stays for as long as if it had been sent now.
func (s *Store) Missing(name string, chunks []tree.Chunk) ([]tree.Digest, error) {
	p, err := s.of(name)
	if err != nil {
		return nil, err
	}
	now := s.config.Now()
	missing := []tree.Digest{}
	seen := make(map[tree.Digest]bool, len(chunks))
	for _, chunk := range chunks {
		if seen[chunk.Digest] {
			continue
		}
		seen[chunk.Digest] = true
		file, err := digits(chunk.Digest)
		if err != nil {
			return nil, err
		}
		if !p.touch(filepath.Join(chunksDir, file), chunk.Size, now) {
			missing = append(missing, chunk.Digest)
		}
	}
	return missing, nil
}

// touch has a file that is there stay as if it were new. A chunk of another size is
// none: size is what it must have, or -1.
func (p *project) touch(rel string, size int64, now time.Time) bool {
	p.mu.Lock() // the sweep looks at the time and removes under the same lock
	defer p.mu.Unlock()
	path := filepath.Join(p.dir, rel)
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || size >= 0 && info.Size() != size {
		return false
	}
	return os.Chtimes(path, now, now) == nil
}

// Has reports whether a tree is here.
func (s *Store) Has(ref structs.CodeRef) bool {
	p, err := s.of(ref.Project)
	if err != nil {
		return false
	}
	file, err := digits(tree.Digest(ref.Digest))
	if err != nil {
		return false
	}
	info, err := os.Lstat(filepath.Join(p.dir, treesDir, file))
	return err == nil && info.Mode().IsRegular()
}

// Manifest reads the manifest of a tree, verified.
func (s *Store) Manifest(ref structs.CodeRef) ([]byte, error) {
	p, err := s.of(ref.Project)
	if err != nil {
		return nil, err
	}
	file, err := digits(tree.Digest(ref.Digest))
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(p.dir, treesDir, file))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("tree %s of project %s: %w", ref.Digest, ref.Project, ErrLacking)
	case err != nil:
		return nil, fmt.Errorf("read manifest: %w", err)
	case tree.DigestOf(data) != tree.Digest(ref.Digest):
		s.damaged(p, filepath.Join(treesDir, file))
		return nil, fmt.Errorf("tree %s of project %s is damaged: %w", ref.Digest, ref.Project, ErrLacking)
	}
	return data, nil
}

// Open reads a chunk of a tree. Reading to the end verifies it: where its bytes are
// others by then, the error matches ErrLacking, and neither the chunk nor the tree is
// here any more, until somebody sends them or another server is asked.
func (s *Store) Open(ref structs.CodeRef, chunk tree.Chunk) (io.ReadCloser, error) {
	p, err := s.of(ref.Project)
	if err != nil {
		return nil, err
	}
	file, err := digits(chunk.Digest)
	if err != nil {
		return nil, err
	}
	from, err := os.Open(filepath.Join(p.dir, chunksDir, file))
	if errors.Is(err, fs.ErrNotExist) {
		s.lost(p, ref)
		return nil, fmt.Errorf("chunk %s of project %s: %w", chunk.Digest, ref.Project, ErrLacking)
	}
	if err != nil {
		return nil, fmt.Errorf("read chunk: %w", err)
	}
	return &verified{store: s, project: p, ref: ref, chunk: chunk, file: file, from: from, sum: sha256.New(), left: chunk.Size}, nil
}

// lost forgets that a tree is here, of which something is not.
func (s *Store) lost(p *project, ref structs.CodeRef) {
	if file, err := digits(tree.Digest(ref.Digest)); err == nil {
		p.remove(filepath.Join(treesDir, file))
	}
}

// damaged removes a file whose bytes are not those of its name.
func (s *Store) damaged(p *project, rel string) {
	s.config.Log.Error("code on the disk is damaged: it is removed, and asked of the other servers", logkey.Path, filepath.Join(p.dir, rel))
	p.remove(rel)
}

func (p *project) remove(rel string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removeLocked(rel)
}

func (p *project) removeLocked(rel string) {
	path := filepath.Join(p.dir, rel)
	if info, err := os.Lstat(path); err == nil && os.Remove(path) == nil && p.counted {
		p.bytes -= info.Size()
	}
}

// roomFor refuses bytes for which there is no room, on the disk or for the project.
func (s *Store) roomFor(p *project, name string, more int64) error {
	if err := os.MkdirAll(filepath.Join(p.dir, newDir), 0o700); err != nil {
		return s.writeProblem(err)
	}
	free, err := s.config.FreeBytes(p.dir)
	if err == nil && free < s.config.LeastFree+uint64(more) {
		return s.full(syscall.ENOSPC)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.counted {
		p.bytes = bytesBelow(filepath.Join(p.dir, chunksDir)) + bytesBelow(filepath.Join(p.dir, treesDir))
		p.counted = true
	}
	if p.bytes+more > s.config.ProjectBytes {
		project, _, _ := OfHome(name)
		return structs.NewError(structs.CodeTooLarge, "code.project_full", "project", project, "size", p.bytes, "max", s.config.ProjectBytes)
	}
	return nil
}

func (s *Store) full(err error) error {
	return structs.NewError(structs.CodeUnavailable, "code.disk_full", "server", s.config.Server).Because(err)
}

// writeProblem is the refusal for a write that failed.
func (s *Store) writeProblem(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return s.full(err)
	}
	return fmt.Errorf("write code: %w", err)
}

func bytesBelow(dir string) (sum int64) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// freeBytes asks the file system how much an ordinary user may still write.
func freeBytes(dir string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, err
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}

// hexOf spells a sum as file names do.
func hexOf(sum []byte) string { return hex.EncodeToString(sum) }
