package codestore

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// Sweep removes the trees that known does not name, and the chunks that are of no tree
// any more; but nothing that was sent, or asked for, during the last grace. It reports
// how many files it removed, and their bytes.
func (s *Store) Sweep(ctx context.Context, known func(structs.CodeRef) bool, grace time.Duration) (files int, bytes int64, err error) {
	names, err := s.Projects()
	if err != nil {
		return 0, 0, err
	}
	before := s.config.Now().Add(-grace)
	for _, name := range names {
		n, b, err := s.sweepProject(ctx, name, known, before)
		files, bytes = files+n, bytes+b
		if err != nil {
			return files, bytes, err
		}
	}
	return files, bytes, nil
}

func (s *Store) sweepProject(ctx context.Context, name string, known func(structs.CodeRef) bool, before time.Time) (files int, bytes int64, err error) {
	p, err := s.of(name)
	if err != nil {
		return 0, 0, err
	}
	trees, err := fileNames(filepath.Join(p.dir, treesDir))
	if err != nil {
		return 0, 0, err
	}
	needed := make(map[string]bool)
	for _, file := range trees {
		if ctx.Err() != nil {
			return files, bytes, ctx.Err()
		}
		ref := structs.CodeRef{Project: name, Digest: "sha256:" + file}
		if !known(ref) {
			if size, gone := p.removeIfOld(filepath.Join(treesDir, file), before); gone {
				files, bytes = files+1, bytes+size
				continue
			}
		}
		data, err := s.Manifest(ref)
		if err != nil {
			s.config.Log.Warn("a tree cannot be read: the project's chunks stay for now", logkey.Error, err)
			return files, bytes, nil
		}
		manifest, err := tree.Decode(data)
		if err != nil {
			return files, bytes, fmt.Errorf("tree %s: %w", ref.Digest, err)
		}
		for i := range manifest.Entries {
			for _, chunk := range manifest.Entries[i].Chunks {
				if file, err := digits(chunk.Digest); err == nil {
					needed[file] = true
				}
			}
		}
	}
	chunks, err := fileNames(filepath.Join(p.dir, chunksDir))
	if err != nil {
		return files, bytes, err
	}
	for _, file := range chunks {
		if needed[file] {
			continue
		}
		// A chunk that a tree needs which came since the list was made was touched by that.
		if size, gone := p.removeIfOld(filepath.Join(chunksDir, file), before); gone {
			files, bytes = files+1, bytes+size
		}
	}
	return files, bytes, nil
}

// removeIfOld removes a file that nobody sent or asked for since a time.
func (p *project) removeIfOld(rel string, before time.Time) (size int64, gone bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Lstat(filepath.Join(p.dir, rel))
	if err != nil || !info.ModTime().Before(before) {
		return 0, false
	}
	p.removeLocked(rel)
	return info.Size(), true
}

func fileNames(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list code: %w", err)
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		if entry.Type().IsRegular() && tree.Digest("sha256:"+entry.Name()).Valid() {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}
