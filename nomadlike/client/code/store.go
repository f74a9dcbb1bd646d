package code

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"nomadlike/nomadlike/tree"
)

// Defaults of Config.
const (
	// RetentionDefault is how long a tree stays that no task was given.
	RetentionDefault = 7 * 24 * time.Hour
	// MaxDefault bounds the cache in bytes, and maxPart as a part of its file system.
	MaxDefault = 20 << 30
	maxPart    = 10
	// keepFree bytes stay free, but no more than one part in keepPart of the file
	// system: without them the node would be no use to anybody.
	keepFree = 512 << 20
	keepPart = 50
)

// ErrNoRoom is returned when code does not fit on the node, though all that nobody
// uses was removed.
var ErrNoRoom = errors.New("no room for the code of a job")

// Config is what a Store needs. Dir is required.
type Config struct {
	Dir       string          // below the node's data directory; made when missing
	Ask       Ask             // nil: no server can be asked
	Servers   func() []string // addresses, the one that the node is connected to first
	Max       int64           // bytes of the cache; 0: MaxDefault, or a tenth of the file system
	Retention time.Duration   // 0: RetentionDefault
	Log       *slog.Logger    // nil: nowhere

	// Doors for tests; zero values mean the real ones.
	Now   func() time.Time
	Space func(dir string) (free, total int64, err error)
}

// Source is one server that is asked for the code of one allocation, by one goroutine.
type Source interface {
	// Manifest is the list of the tree that the allocation's job names.
	Manifest() (tree.Manifest, error)
	// Chunks has the chunks of the tree that are wanted handed to took, which does not
	// keep what it is handed; an error of took ends it and is returned.
	Chunks(want []tree.Chunk, took func(chunk tree.Chunk, content []byte) error) error
	Close()
}

// Ask opens a source at the server at addr. It lives until ctx ends, or is closed.
type Ask func(ctx context.Context, addr, allocID string) (Source, error)

// Wanted is the code of one allocation's job.
type Wanted struct {
	AllocID string // for which servers are asked
	Project string // of its job
	Tree    tree.Digest
}

// key names a tree within the store.
type key struct {
	project string
	tree    tree.Digest
}

func (w Wanted) key() key { return key{w.Project, w.Tree} }

// Store keeps the code of jobs on the node. Its methods may be called from any
// goroutine.
type Store struct {
	config Config
	mu     struct {
		sync.Mutex
		using   map[key]int           // copies that are being made
		making  map[key]chan struct{} // trees that are being fetched; closed when that is done
		bytes   int64                 // of the cache, once it was counted
		counted bool
	}
}

// Open makes the directories of a store, and removes what an agent was about to write
// when it died.
func Open(config Config) (*Store, error) {
	config.Retention = cmp.Or(config.Retention, RetentionDefault)
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Space == nil {
		config.Space = spaceOf
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: config}
	s.mu.using, s.mu.making = make(map[key]int), make(map[key]chan struct{})
	if err := os.RemoveAll(s.making()); err != nil {
		return nil, fmt.Errorf("open store of code: %w", err)
	}
	for _, dir := range []string{config.Dir, s.making()} {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = os.Chmod(dir, 0o700) // whose code it is is nobody else's business
		}
		if err != nil {
			return nil, fmt.Errorf("open store of code: %w", err)
		}
	}
	return s, nil
}

func spaceOf(dir string) (free, total int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, int64(stat.Blocks) * stat.Bsize, nil
}

// making is the directory of files without a name.
func (s *Store) making() string { return filepath.Join(s.config.Dir, makingDir) }

const (
	makingDir = "making"
	treesDir  = "trees"
	chunksDir = "chunks"
)

// projectDir is the cache of a project. Its name is no path, whatever the project's is.
func (s *Store) projectDir(project string) string {
	sum := sha256.Sum256([]byte(project))
	return filepath.Join(s.config.Dir, hex.EncodeToString(sum[:16]))
}

func (s *Store) treePath(k key) string {
	return filepath.Join(s.projectDir(k.project), treesDir, digits(k.tree))
}

func (s *Store) chunkPath(project string, digest tree.Digest) string {
	name := digits(digest)
	return filepath.Join(s.projectDir(project), chunksDir, name[:2], name)
}

// digits is what a digest is called on the disk. It is a valid one.
func digits(digest tree.Digest) string {
	_, name, _ := strings.Cut(string(digest), ":")
	return name
}

// use keeps a tree from being removed until release is called.
func (s *Store) use(k key) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.using[k]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.mu.using[k]--; s.mu.using[k] == 0 {
			delete(s.mu.using, k)
		}
	}
}

// claim lets one goroutine fetch a tree; the others wait for it.
func (s *Store) claim(ctx context.Context, k key) (unclaim func(), err error) {
	for {
		s.mu.Lock()
		done, busy := s.mu.making[k]
		if !busy {
			done = make(chan struct{})
			s.mu.making[k] = done
		}
		s.mu.Unlock()
		if !busy {
			return func() {
				s.mu.Lock()
				defer s.mu.Unlock()
				delete(s.mu.making, k)
				close(done)
			}, nil
		}
		select {
		case <-done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// keep writes a file of the cache, under its name as a whole.
func (s *Store) keep(path string, content []byte) error {
	f, err := os.CreateTemp(s.making(), "")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
		if errors.Is(err, fs.ErrNotExist) { // its directory is not there yet
			if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
				err = os.Rename(f.Name(), path)
			}
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.bytes += int64(len(content))
	return nil
}

// full reports whether an error says that a disk has no room.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }
