package codestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Piece is a chunk with its bytes.
type Piece struct {
	Chunk tree.Chunk
	Data  []byte
}

// Put writes chunks of a project. They are on the disk when it returns; where it fails,
// some may be. A chunk whose bytes are not those of its digest is refused, and with it
// all of them.
func (s *Store) Put(name string, pieces []Piece) (fresh int, err error) {
	p, err := s.of(name)
	if err != nil {
		return 0, err
	}
	var bytes int64
	for i := range pieces {
		piece := &pieces[i]
		if _, err := digits(piece.Chunk.Digest); err != nil {
			return 0, err
		}
		if size := int64(len(piece.Data)); size != piece.Chunk.Size || size > tree.ChunkSizeMax || tree.DigestOf(piece.Data) != piece.Chunk.Digest {
			return 0, structs.NewError(structs.CodeInvalid, "code.wrong_digest", "digest", piece.Chunk.Digest.Short(), "at", i+1)
		}
		bytes += piece.Chunk.Size
	}
	if err := s.roomFor(p, name, bytes); err != nil {
		return 0, err
	}
	if err := s.dirs(p); err != nil {
		return 0, err
	}
	var (
		writing  sync.WaitGroup
		mu       sync.Mutex
		failures []error
	)
	slots := make(chan struct{}, writersMax)
	for i := range pieces {
		slots <- struct{}{}
		writing.Go(func() {
			defer func() { <-slots }()
			file, _ := digits(pieces[i].Chunk.Digest)
			wrote, err := s.place(p, filepath.Join(chunksDir, file), pieces[i].Data)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
			} else if wrote {
				fresh++
			}
		})
	}
	writing.Wait()
	if len(failures) > 0 {
		return fresh, s.writeProblem(failures[0])
	}
	return fresh, s.synced(p, chunksDir) // also for those that another request has just placed
}

func (s *Store) synced(p *project, rel string) error {
	if err := syncDir(filepath.Join(p.dir, rel)); err != nil {
		return s.writeProblem(err)
	}
	return nil
}

// dirs makes the directories of a project.
func (s *Store) dirs(p *project) error {
	for _, rel := range []string{newDir, chunksDir, treesDir} {
		path := filepath.Join(p.dir, rel)
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return s.writeProblem(err)
		}
		for _, above := range []string{p.dir, s.config.Dir, filepath.Dir(s.config.Dir)} {
			if err := syncDir(above); err != nil {
				return s.writeProblem(err)
			}
		}
	}
	return nil
}

// place writes a file whose bytes are those of its name, unless it is there. Its name
// reaches the disk with the next syncDir.
func (s *Store) place(p *project, rel string, data []byte) (wrote bool, err error) {
	now := s.config.Now()
	if p.touch(rel, int64(len(data)), now) {
		return false, nil
	}
	half, err := os.CreateTemp(filepath.Join(p.dir, newDir), "")
	if err != nil {
		return false, err
	}
	defer os.Remove(half.Name()) // gone already when all went well
	_, err = half.Write(data)
	if err == nil {
		err = half.Sync()
	}
	if err = errors.Join(err, half.Close()); err != nil {
		return false, err
	}
	if err := os.Chtimes(half.Name(), now, now); err != nil {
		return false, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	path := filepath.Join(p.dir, rel)
	before := int64(0)
	if info, err := os.Lstat(path); err == nil {
		if before = info.Size(); before == int64(len(data)) {
			return false, nil // somebody was faster
		}
	}
	if err := os.Rename(half.Name(), path); err != nil {
		return false, err
	}
	if p.counted {
		p.bytes += int64(len(data)) - before
	}
	return true, nil
}

// Scratch makes an empty directory on the store's disk, where so many bytes of a project
// may be written before they are Put. remove removes it; after a crash the next start does.
func (s *Store) Scratch(name string, bytes int64) (dir string, remove func(), err error) {
	p, err := s.of(name)
	if err != nil {
		return "", nil, err
	}
	if err := s.roomFor(p, name, bytes); err != nil {
		return "", nil, err
	}
	if err := s.dirs(p); err != nil {
		return "", nil, err
	}
	dir, err = os.MkdirTemp(filepath.Join(p.dir, newDir), "archive-")
	if err != nil {
		return "", nil, s.writeProblem(err)
	}
	return dir, func() { _ = removeTree(dir) }, nil // what stays goes at the next start
}

// removeTree removes a directory also where the directories in it may not be written to.
func removeTree(dir string) error {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Commit writes the manifest of a tree of a project, all of whose chunks are here. The
// tree is on the disk when it returns. A manifest that lacks chunks is refused with the
// id "code.incomplete".
func (s *Store) Commit(name string, data []byte) (tree.Digest, error) {
	manifest, err := tree.Decode(data)
	if err != nil {
		return "", err
	}
	missing, err := s.Missing(name, manifest.Chunks())
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		return "", structs.NewError(structs.CodeConflict, "code.incomplete", "missing", len(missing))
	}
	p, err := s.of(name)
	if err != nil {
		return "", err
	}
	if err := s.roomFor(p, name, int64(len(data))); err != nil {
		return "", err
	}
	if err := s.dirs(p); err != nil {
		return "", err
	}
	if err := s.synced(p, chunksDir); err != nil {
		return "", err
	}
	digest := tree.DigestOf(data)
	file, err := digits(digest)
	if err != nil {
		return "", err
	}
	if _, err := s.place(p, filepath.Join(treesDir, file), data); err != nil {
		return "", s.writeProblem(err)
	}
	return digest, s.synced(p, treesDir)
}

func syncDir(dir string) error {
	handle, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(handle.Sync(), handle.Close()); err != nil {
		return fmt.Errorf("sync %s: %w", dir, err)
	}
	return nil
}
