package data

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Config is what a Store needs. Dir is required.
type Config struct {
	Dir       string        // on fast storage; made when missing
	Retention time.Duration // since a copy was last used; 0: RetentionDefault
	// FreeMin is the share of the file system that stays free, whatever is
	// copied: above it the node would count as full. 0: FreeMinDefault.
	FreeMin float64
	// VerifyWait is how long a job waits at most until all of a copy was read that
	// is used again. 0: VerifyWaitDefault.
	VerifyWait time.Duration
	BootID     string       // of the machine; "": no copy outlives a crash of the agent before it is on the disk
	Log        *slog.Logger // nil: nowhere

	// Broken hears of users whose copy could not be written to the disk: what they
	// read of it from now on may be wrong. It is called from a goroutine of the
	// store, and must not call it. nil: nobody.
	Broken func(users []string, err error)

	// Doors for tests; zero values mean the real ones.
	Now   func() time.Time
	Space func(dir string) (free, total int64, err error)
	Sync  func(dir string) error // all of a directory
}

// Defaults of Config.
const (
	RetentionDefault = 7 * 24 * time.Hour
	FreeMinDefault   = 0.1
)

// ErrNoRoom is returned when a dataset does not fit, though all that nobody
// uses was removed.
var ErrNoRoom = errors.New("no room on the node's fast storage")

// Store keeps copies of datasets. Its methods may be called from any goroutine.
type Store struct {
	config   Config
	umask    fs.FileMode // of this process
	room     space
	proof    verification
	settling sync.WaitGroup  // copies on their way to the disk, and looks at copies
	life     context.Context // of the looks at copies; ended by Close
	end      context.CancelFunc
	mu       struct {
		sync.Mutex
		making map[string]chan struct{} // by listing: closed when that one is done
		active map[*copier]struct{}     // copies that have their room and fill it
		checks map[string]*check        // by digest: copies that were read, or are being read, since the store was opened
	}
}

// Open makes the directories of a store. Close ends what it does.
func Open(config Config) (*Store, error) {
	if config.Retention <= 0 {
		config.Retention = RetentionDefault
	}
	if config.FreeMin <= 0 || config.FreeMin >= 1 {
		config.FreeMin = FreeMinDefault
	}
	if config.VerifyWait <= 0 {
		config.VerifyWait = VerifyWaitDefault
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Space == nil {
		config.Space = spaceOf
	}
	if config.Sync == nil {
		config.Sync = syncTree
	}
	if config.BootID == "" {
		config.BootID = rand.Text() // no other process has it
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{config: config, umask: umaskOf()}
	s.room, s.proof = space{s}, verification{s}
	s.mu.making, s.mu.active = make(map[string]chan struct{}), make(map[*copier]struct{})
	s.mu.checks = make(map[string]*check)
	s.life, s.end = context.WithCancel(context.Background())
	// Tasks reach the copies; nobody else's business is what is being made of
	// which source.
	for name, mode := range map[string]fs.FileMode{"sets": 0o711, "index": 0o700, "parts": 0o700, "uses": 0o700, "names": 0o700, "lists": 0o700} {
		err := os.MkdirAll(filepath.Join(config.Dir, name), mode)
		if err == nil {
			err = os.Chmod(filepath.Join(config.Dir, name), mode)
		}
		if err != nil {
			return nil, fmt.Errorf("open data store: %w", err)
		}
	}
	return s, s.doubt()
}

func spaceOf(dir string) (free, total int64, err error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return 0, 0, err
	}
	return int64(stat.Bavail) * stat.Bsize, int64(stat.Blocks) * stat.Bsize, nil
}

// Copy is a dataset on fast storage.
type Copy struct {
	Digest string
	Dir    string // its files, read-only
	Files  int
	Bytes  int64
	Copied int64 // bytes that were not there before
	Left   int   // special files that were left out
	// Outside are links that lead out of the dataset, and were left out.
	Outside  int
	Verified Verified
	Damaged  bool // a copy was here that was not what it had been made as
}

// Progress reports how far a copy is. It is called from several goroutines.
type Progress func(done, total int64)

// Prepare returns a copy of what root holds, for user, which is an allocation; it
// is kept until that calls Release. Whoever asks for what is being copied waits
// for it. A cancelled call leaves what it has done for the next one.
func (s *Store) Prepare(ctx context.Context, root *os.Root, user string, progress Progress) (Copy, error) {
	l, err := list(ctx, root, s.path("lists"))
	if err != nil {
		return Copy{}, err
	}
	defer l.Close()
	key, err := l.key()
	if err != nil {
		return Copy{}, err
	}
	return s.copyOf(ctx, &copier{root: root, list: l}, key, user, progress)
}

// Fetch returns a copy of what a source has, as Prepare does of a directory.
func (s *Store) Fetch(ctx context.Context, source Source, user string, progress Progress) (Copy, error) {
	l, err := source.List(ctx)
	if err != nil {
		return Copy{}, err
	}
	defer l.Close()
	key, err := l.key()
	if err != nil {
		return Copy{}, err
	}
	return s.copyOf(ctx, &copier{source: source, list: l}, key, user, progress)
}

// copyOf finds the copy of what has a key, or lets it be made by c.
func (s *Store) copyOf(ctx context.Context, c *copier, key, user string, progress Progress) (Copy, error) {
	damaged := false
	for {
		found, ok, err := s.find(key, user)
		if err == nil && ok {
			found.Verified, err = s.proof.confirm(ctx, found.Digest, key, user)
		}
		switch {
		case errors.Is(err, ErrDamaged):
			damaged = true
			continue
		case err != nil:
			return Copy{}, err
		case ok:
			found.Left, found.Outside, found.Damaged = c.list.Left, c.list.Outside, damaged
			return found, nil
		}
		done, mine := s.claim(key)
		if mine {
			// Whoever had the claim before may have made it since this one looked.
			if _, ok, err := s.find(key, user); err != nil || ok {
				s.unclaim(key)
				if err != nil {
					return Copy{}, err
				}
				continue
			}
			made, err := s.make(ctx, c, key, user, progress)
			s.unclaim(key)
			made.Damaged = damaged
			if err == nil && !s.proof.looked(made.Digest) { // one of the same contents was there already
				made.Verified, err = s.proof.confirm(ctx, made.Digest, key, user)
			}
			if errors.Is(err, ErrDamaged) {
				damaged = true
				continue
			}
			return made, err
		}
		select {
		case <-done:
		case <-ctx.Done():
			return Copy{}, ctx.Err()
		}
	}
}

func (s *Store) claim(key string) (done chan struct{}, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.mu.making[key]; ok {
		return done, false
	}
	done = make(chan struct{})
	s.mu.making[key] = done
	return done, true
}

func (s *Store) unclaim(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.making[key])
	delete(s.mu.making, key)
}

func (s *Store) path(parts ...string) string {
	return filepath.Join(append([]string{s.config.Dir}, parts...)...)
}

// find looks for the copy of a source that was listed as key.
func (s *Store) find(key, user string) (Copy, bool, error) {
	digest, err := os.ReadFile(s.path("index", key))
	if errors.Is(err, fs.ErrNotExist) {
		return Copy{}, false, nil
	}
	if err != nil {
		return Copy{}, false, fmt.Errorf("find dataset: %w", err)
	}
	found, err := s.take(string(digest), user)
	if errors.Is(err, fs.ErrNotExist) { // removed since
		return Copy{}, false, nil
	}
	return found, err == nil, err
}

// take notes that user reads a copy, before it looks whether there is one: a
// copy that is noted is not removed.
func (s *Store) take(digest, user string) (Copy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeLocked(digest, user)
}

func (s *Store) takeLocked(digest, user string) (Copy, error) {
	if digest == "" || filepath.Base(digest) != digest {
		return Copy{}, fs.ErrNotExist
	}
	if !s.believed(digest) {
		return Copy{}, fs.ErrNotExist
	}
	size, err := os.ReadFile(s.path("sets", digest, "used"))
	if err != nil {
		return Copy{}, err
	}
	made := Copy{Digest: digest, Dir: s.path("sets", digest, "tree")}
	if _, err := fmt.Sscan(string(size), &made.Files, &made.Bytes); err != nil {
		return Copy{}, fmt.Errorf("read dataset %s: %w", digest, err)
	}
	if err := os.MkdirAll(s.path("uses", digest), 0o700); err != nil {
		return Copy{}, err
	}
	if err := os.WriteFile(s.path("uses", digest, user), nil, 0o600); err != nil {
		return Copy{}, err
	}
	now := s.config.Now()
	return made, os.Chtimes(s.path("sets", digest, "used"), now, now)
}

// make copies a source.
func (s *Store) make(ctx context.Context, c *copier, key, user string, progress Progress) (Copy, error) {
	if c.version != nil {
		if err := c.know(ctx); err != nil {
			return Copy{}, err
		}
		if err := (Versions{s}).bringBack(key, user); err != nil {
			return Copy{}, err
		}
	}
	total := c.list.Bytes
	c.lists = s.path("lists")
	defer func() { _ = c.sums.close() }()
	c.dir, c.now, c.umask, c.report = s.path("parts", key), s.config.Now, s.umask, func(done int64) { progress(done, total) }
	if err := os.MkdirAll(c.dir, 0o711); err != nil {
		return Copy{}, err
	}
	if c.version != nil {
		if err := os.WriteFile(filepath.Join(c.dir, versionFile), c.version.text, 0o600); err != nil {
			return Copy{}, err
		}
	}
	if err := c.resume(s.config.BootID); err != nil {
		return Copy{}, err
	}
	release, err := s.room.reserve(c, key)
	if err == nil {
		err = c.run(ctx)
		release()
	}
	if closed := c.journal.close(); err == nil {
		err = closed
	}
	var made Copy
	if err == nil {
		made, err = s.publish(c, key, user)
	}
	if errors.Is(err, ErrChanged) || errors.Is(err, ErrCorrupt) {
		return Copy{}, errors.Join(err, os.RemoveAll(c.dir)) // what was read may be of two states
	}
	if err != nil {
		return Copy{}, err
	}
	made.Copied, made.Left, made.Outside = c.fresh.Load(), c.list.Left, c.list.Outside
	return made, nil
}

// publish makes a finished copy visible, under its name, and then the way to
// find it. In the same moment user reads it, so that nobody who wants room finds
// it unused. Whether it is on the disk is settled later.
func (s *Store) publish(c *copier, key, user string) (Copy, error) {
	digest, err := c.finish()
	if err != nil {
		return Copy{}, err
	}
	if err := os.WriteFile(filepath.Join(c.dir, "used"), fmt.Appendln(nil, c.list.Count(), c.list.Bytes), 0o600); err != nil {
		return Copy{}, err
	}
	if err := writeOrigin(c.dir, origin{Key: key, Boot: s.config.BootID}); err != nil {
		return Copy{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.nameLocked(c.dir, digest); err != nil {
		return Copy{}, err
	}
	if err := os.WriteFile(s.path("index", key), []byte(digest), 0o600); err != nil {
		return Copy{}, err
	}
	return s.takeLocked(digest, user)
}

// nameLocked names a copy. One of the same contents, found under other
// times, takes its place, unless that is not believed.
func (s *Store) nameLocked(dir, digest string) error {
	if _, err := os.Lstat(s.path("sets", digest)); err == nil {
		if s.believed(digest) {
			return os.RemoveAll(dir)
		}
		if err := s.room.removeLocked(s.path("sets", digest)); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, s.path("sets", digest)); err != nil {
		return err
	}
	s.proof.trustedLocked(digest)
	return s.settle(digest)
}

// space makes room for copies on the disk of a store.
type space struct{ *Store }

// reserve finds room for what a copy still needs, and removes copies that nobody
// uses if that helps, the one that was used longest ago first.
func (s space) reserve(c *copier, key string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		// What the others still write is counted before the disk is looked at:
		// what they write in between then counts twice, never not at all.
		needed := s.pendingLocked()
		free, total, err := s.config.Space(s.config.Dir)
		if err != nil {
			return nil, err
		}
		keep := int64(s.config.FreeMin * float64(total))
		if free-needed-c.missing() >= keep {
			break
		}
		if !s.evictLocked(key) {
			return nil, fmt.Errorf("%w: %d bytes needed, %d free, %d stay free", ErrNoRoom, c.missing(), max(free-needed, 0), keep)
		}
	}
	s.mu.active[c] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.active, c)
	}, nil
}

// pendingLocked is what copies in the making will still write; what they have
// written is not free any more.
func (s space) pendingLocked() (bytes int64) {
	for c := range s.mu.active {
		bytes += c.missing()
	}
	return bytes
}

// resting is a copy that nobody uses.
type resting struct {
	path string
	used time.Time
}

// restingLocked lists the copies that nobody uses, and those in the making that
// nobody makes; longest ago first.
func (s space) restingLocked(except string) []resting {
	var list []resting
	sets, _ := os.ReadDir(s.path("sets")) // what cannot be read is not removed
	for _, set := range sets {
		if users, err := os.ReadDir(s.path("uses", set.Name())); len(users) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if info, err := os.Stat(s.path("sets", set.Name(), "used")); err == nil {
			list = append(list, resting{s.path("sets", set.Name()), info.ModTime()})
		}
	}
	parts, _ := os.ReadDir(s.path("parts"))
	for _, part := range parts {
		if _, busy := s.mu.making[part.Name()]; busy || part.Name() == except {
			continue
		}
		if info, err := os.Stat(s.path("parts", part.Name(), "journal")); err == nil {
			list = append(list, resting{s.path("parts", part.Name()), info.ModTime()})
		} else if info, err := part.Info(); err == nil {
			list = append(list, resting{s.path("parts", part.Name()), info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b resting) int {
		if c := a.used.Compare(b.used); c != 0 {
			return c
		}
		return strings.Compare(a.path, b.path)
	})
	return list
}

func (s space) evictLocked(except string) bool {
	for _, one := range s.restingLocked(except) {
		if s.removeLocked(one.path) == nil {
			return true
		}
	}
	return false
}

// removeLocked takes a copy away: first its name, so that half of one is never
// found.
func (s space) removeLocked(path string) error {
	gone := s.path("parts", "gone-"+filepath.Base(path))
	delete(s.mu.checks, filepath.Base(path))
	if strings.HasPrefix(filepath.Base(path), "gone-") {
		gone = path
	} else if err := os.Rename(path, gone); err != nil {
		return err
	}
	return os.RemoveAll(gone)
}

// Release says that user reads nothing any more.
func (s *Store) Release(user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	uses, err := filepath.Glob(s.path("uses", "*", user))
	if err != nil {
		return err
	}
	now := s.config.Now()
	for _, use := range uses {
		err = errors.Join(err, os.Remove(use))
		// It may be gone, and then nobody asks when it was used.
		_ = os.Chtimes(s.path("sets", filepath.Base(filepath.Dir(use)), "used"), now, now)
	}
	return err
}

// Sweep removes what nobody has used for the retention, and the uses of users
// that are not live: of an agent that died before it could say so. It returns the
// number of copies that were removed.
func (s *Store) Sweep(live func(user string) bool) (removed int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	uses, _ := filepath.Glob(s.path("uses", "*", "*"))
	for _, use := range uses {
		if !live(filepath.Base(use)) {
			err = errors.Join(err, os.Remove(use))
		}
	}
	now := s.config.Now()
	for _, one := range s.room.restingLocked("") {
		if strings.HasPrefix(filepath.Base(one.path), "gone-") || now.Sub(one.used) > s.config.Retention {
			if failed := s.room.removeLocked(one.path); failed != nil {
				err = errors.Join(err, failed)
			} else {
				removed++
			}
		}
	}
	entries, _ := os.ReadDir(s.path("index"))
	for _, entry := range entries {
		digest, readErr := os.ReadFile(s.path("index", entry.Name()))
		if readErr != nil {
			continue
		}
		if _, statErr := os.Stat(s.path("sets", string(digest))); errors.Is(statErr, fs.ErrNotExist) {
			_ = os.Remove(s.path("index", entry.Name())) // tried again in the next sweep
		}
	}
	return removed, err
}

// named is a name that a copy was asked for by.
type named struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Name notes by which name a copy was asked for, for Names. A name means the
// copy that was noted last.
func (s *Store) Name(name, digest string) error {
	text, err := json.Marshal(named{name, digest})
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(name))
	return os.WriteFile(s.path("names", hex.EncodeToString(sum[:])), text, 0o600)
}

// Names lists the names of the copies that are there, sorted, the first limit of
// them, and forgets those of copies that are gone.
func (s *Store) Names(limit int) []string {
	entries, _ := os.ReadDir(s.path("names")) // what cannot be read is not preferred
	var names []string
	for _, entry := range entries {
		text, err := os.ReadFile(s.path("names", entry.Name()))
		var one named
		if err != nil || json.Unmarshal(text, &one) != nil {
			continue
		}
		if _, err := os.Stat(s.path("sets", filepath.Base(one.Digest), "used")); errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(s.path("names", entry.Name())) // tried again by the next call
			continue
		}
		names = append(names, one.Name)
	}
	slices.Sort(names)
	return names[:min(len(names), limit)]
}
