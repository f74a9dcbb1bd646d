package code

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"nomadlike/internal/logkey"
	"nomadlike/nomadlike/client/words"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/tree"
)

// cached is a tree in the cache.
type cached struct {
	dir    string // of its project
	name   string // of its list
	bytes  int64  // of its list
	used   time.Time
	in     bool // a copy is being made of it
	chunks []chunkFile
}

// chunkFile is a chunk in the cache.
type chunkFile struct {
	path  string
	bytes int64
}

// Sweep removes trees that no task was given for the retention, the oldest ones as long
// as the cache is larger than it may be, and chunks that no tree has. It returns how
// many trees it removed.
func (s *Store) Sweep() (removed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	trees, err := s.treesLocked()
	if err != nil {
		return 0, err
	}
	most := s.most()
	old := len(trees) > 0 && s.config.Now().Sub(trees[0].used) > s.config.Retention
	if s.mu.counted && !old && s.mu.bytes <= most {
		return 0, nil
	}
	return s.removeLocked(trees, func(oldest *cached) bool {
		return s.config.Now().Sub(oldest.used) > s.config.Retention || s.mu.bytes > most
	})
}

// most is how large the cache may be.
func (s *Store) most() int64 {
	if s.config.Max > 0 {
		return s.config.Max
	}
	_, total, err := s.config.Space(s.config.Dir)
	if err != nil || total <= 0 {
		return MaxDefault
	}
	return min(MaxDefault, total/maxPart)
}

// makeRoom removes trees that nobody uses until what is to come, and a copy of it, has
// room; the oldest first, and none if that does not help.
func (s *Store) makeRoom(coming, copied int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	lacking := func() (bytes, free int64, err error) {
		free, total, err := s.config.Space(s.config.Dir)
		return coming + copied + min(keepFree, total/keepPart) - free, free, err
	}
	bytes, free, err := lacking()
	if err != nil || bytes <= 0 {
		return err
	}
	trees, err := s.treesLocked()
	if err != nil {
		return err
	}
	if !s.mu.counted {
		if _, err := s.removeLocked(trees, func(*cached) bool { return false }); err != nil {
			return err
		}
		trees, err = s.treesLocked()
		if err != nil {
			return err
		}
	}
	if bytes <= s.mu.bytes {
		_, err = s.removeLocked(trees, func(*cached) bool {
			bytes, free, err = lacking()
			return err == nil && bytes > 0
		})
		if err != nil {
			return err
		}
		if bytes, free, err = lacking(); err != nil || bytes <= 0 {
			return err
		}
	}
	return structs.NewError(structs.CodeUnavailable, "client.code_room",
		"needed", words.Roughly(coming+copied), "free", words.Roughly(free), "path", s.config.Dir).Because(ErrNoRoom)
}

// treesLocked lists the trees of the cache, the one first that was used longest ago.
func (s *Store) treesLocked() ([]*cached, error) {
	using := make(map[string]bool, len(s.mu.using))
	for k := range s.mu.using {
		using[s.treePath(k)] = true
	}
	projects, err := os.ReadDir(s.config.Dir)
	if err != nil {
		return nil, fmt.Errorf("list code: %w", err)
	}
	var trees []*cached
	for _, project := range projects {
		if project.Name() == makingDir {
			continue
		}
		dir := filepath.Join(s.config.Dir, project.Name())
		lists, err := os.ReadDir(filepath.Join(dir, treesDir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("list code: %w", err)
		}
		for _, list := range lists {
			info, err := list.Info()
			if err != nil {
				continue // it went away
			}
			path := filepath.Join(dir, treesDir, list.Name())
			trees = append(trees, &cached{dir: dir, name: list.Name(), bytes: info.Size(), used: info.ModTime(), in: using[path]})
		}
	}
	slices.SortFunc(trees, func(a, b *cached) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.dir, b.dir), cmp.Compare(a.name, b.name))
	})
	return trees, nil
}

// removeLocked removes trees from the front as long as goes says so, those apart that
// are in use, then the chunks that no tree has; it counts what stays.
func (s *Store) removeLocked(trees []*cached, goes func(oldest *cached) bool) (removed int, err error) {
	users := make(map[string]int) // of chunks, by path
	for _, one := range trees {
		one.read(s)
		for _, chunk := range one.chunks {
			users[chunk.path]++
		}
	}
	sizes, err := s.chunksLocked()
	if err != nil {
		return 0, err
	}
	remove := func(path string) {
		if failed := os.Remove(path); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
			return
		}
		s.mu.bytes -= sizes[path]
		delete(sizes, path)
	}
	s.mu.bytes, s.mu.counted = 0, true
	for _, one := range trees {
		s.mu.bytes += one.bytes
	}
	for path, size := range sizes {
		if s.mu.bytes += size; users[path] == 0 {
			remove(path)
		}
	}
	for _, one := range trees {
		if one.in {
			continue
		}
		if !goes(one) {
			break
		}
		list := filepath.Join(one.dir, treesDir, one.name)
		sizes[list] = one.bytes
		remove(list)
		removed++
		for _, chunk := range one.chunks {
			if users[chunk.path]--; users[chunk.path] == 0 {
				remove(chunk.path)
			}
		}
	}
	return removed, err
}

// read finds out what a tree consists of. A list that is damaged is no tree: it is
// fetched again by whoever wants it.
func (c *cached) read(s *Store) {
	digest := tree.Digest("sha256:" + c.name)
	path := filepath.Join(c.dir, treesDir, c.name)
	text, err := os.ReadFile(path)
	var manifest tree.Manifest
	if err == nil {
		manifest, err = read(text, digest)
	}
	if err != nil {
		s.config.Log.Warn("a list of code is damaged on the disk", logkey.Path, path, logkey.Error, err)
		return
	}
	for _, chunk := range manifest.Chunks() {
		name := digits(chunk.Digest)
		c.chunks = append(c.chunks, chunkFile{filepath.Join(c.dir, chunksDir, name[:2], name), chunk.Size})
	}
}

// chunksLocked finds the sizes of all chunks of the cache, by path.
func (s *Store) chunksLocked() (map[string]int64, error) {
	sizes := make(map[string]int64)
	err := filepath.WalkDir(s.config.Dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // it went away
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == makingDir || entry.Name() == treesDir):
			return fs.SkipDir
		case entry.IsDir():
			return nil
		}
		if info, err := entry.Info(); err == nil {
			sizes[path] = info.Size()
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list code: %w", err)
	}
	return sizes, nil
}
