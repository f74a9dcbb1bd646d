package data

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"nomadlike/internal/logkey"
)

// A job reads a copy as soon as it is complete: what the kernel has not yet
// written to the disk it serves from its memory. That it is on the disk is noted
// later, by a marker. A copy without one is believed during the boot in which it
// was made, and in no other: after a crash of the machine it is a copy in the
// making again, of which every part is verified. So a crash can lose a marker,
// and no copy is taken for whole that is not.
const (
	markerFile = "synced"
	originFile = "origin"
)

// origin is what a copy without a marker says of itself.
type origin struct {
	Key  string `json:"key"`  // of its listing
	Boot string `json:"boot"` // in which it was made; "": it did not reach the disk
}

func writeOrigin(dir string, o origin) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, originFile), text, 0o600)
}

// believed reports whether a copy may be read: it is on the disk, or the machine
// has not stopped since it was made.
func (s *Store) believed(digest string) bool {
	if _, err := os.Lstat(s.path("sets", digest, markerFile)); err == nil {
		return true
	}
	o, ok := s.originOf(digest)
	return ok && o.Boot != "" && o.Boot == s.config.BootID
}

func (s *Store) originOf(digest string) (o origin, ok bool) {
	text, err := os.ReadFile(s.path("sets", digest, originFile))
	ok = err == nil && json.Unmarshal(text, &o) == nil && o.Key != "" && filepath.Base(o.Key) == o.Key
	return o, ok
}

// settle brings a copy onto the disk, and then marks it. Close waits for it. The
// marker goes to this very directory, though another one may have its name by
// then.
func (s *Store) settle(digest string) error {
	dir := s.path("sets", digest)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	s.settling.Go(func() {
		defer root.Close()
		err := s.config.Sync(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return // removed meanwhile
		}
		if err == nil {
			err = s.mark(root)
		}
		if err != nil {
			s.lose(digest, err)
		}
	})
	return nil
}

// mark notes that a copy is on the disk; not while copies are removed, which could
// not empty its directory.
func (s *Store) mark(copied *os.Root) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var o origin
	if text, err := copied.ReadFile(originFile); err == nil && json.Unmarshal(text, &o) == nil && o.Boot == "" {
		return nil // it was found damaged
	}
	if err := copied.WriteFile(markerFile, nil, 0o600); err != nil {
		return err
	}
	_ = copied.Remove("journal") // the marker says more than they do
	_ = copied.Remove(originFile)
	return nil
}

// lose lets nobody take a copy any more that could not be written: what the
// kernel could not write it may forget.
func (s *Store) lose(digest string, cause error) {
	users, lost, err := s.disown(digest)
	if !lost {
		return
	}
	err = errors.Join(cause, err)
	s.config.Log.Error("prepared data did not reach the disk", logkey.Path, digest, logkey.Error, err)
	if s.config.Broken != nil {
		s.config.Broken(users, err)
	}
}

// disown takes back the word for a copy, and reports the jobs that read it.
func (s *Store) disown(digest string) (users []string, lost bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.originOf(digest)
	if !ok {
		return nil, false, nil // removed meanwhile
	}
	err = writeOrigin(s.path("sets", digest), origin{Key: o.Key})
	entries, readErr := os.ReadDir(s.path("uses", digest))
	for _, entry := range entries {
		users = append(users, entry.Name())
	}
	return users, true, errors.Join(err, readErr)
}

// Close waits until all copies are on the disk, and ends the looks at copies.
func (s *Store) Close() {
	s.end()
	s.settling.Wait()
}

// doubt looks at the copies without a marker when a store is opened: of this
// boot they are brought onto the disk; of another they are in the making again.
func (s *Store) doubt() error {
	sets, err := os.ReadDir(s.path("sets"))
	if err != nil {
		return fmt.Errorf("open data store: %w", err)
	}
	for _, set := range sets {
		digest := set.Name()
		if _, err := os.Lstat(s.path("sets", digest, markerFile)); err == nil {
			continue
		}
		s.mu.Lock()
		var err error
		if s.believed(digest) {
			err = s.settle(digest)
		} else {
			err = s.unmakeLocked(digest)
		}
		s.mu.Unlock()
		if err != nil {
			return fmt.Errorf("open data store: %w", err)
		}
	}
	return nil
}

// unmakeLocked takes a copy that is not believed out of the way: it goes on as
// one in the making where it can, and else it goes. One that somebody reads
// stays until it is swept.
func (s *Store) unmakeLocked(digest string) error {
	if users, err := os.ReadDir(s.path("uses", digest)); len(users) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	dir := s.path("sets", digest)
	if o, ok := s.originOf(digest); ok && o.Boot != "" {
		err := os.Rename(dir, s.path("parts", o.Key))
		if err == nil {
			return nil
		}
	}
	return s.room.removeLocked(dir)
}

// fewFiles is up to how many files and directories are brought onto the disk
// one by one. More of them are quicker with all else that the file system has to
// write.
const fewFiles = 64

// syncTree brings a copy onto the disk.
func syncTree(dir string) error {
	var names []string
	errMany := errors.New("many")
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type() == fs.ModeSymlink {
			return nil // its directory holds all of it
		}
		if err == nil && len(names) == fewFiles {
			err = errMany
		}
		names = append(names, name)
		return err
	})
	if errors.Is(err, errMany) {
		return syncAll(dir)
	}
	if err != nil {
		return err
	}
	for i := len(names) - 1; i >= 0; i-- { // what is in a directory, and then itself
		if err := syncOne(names[i]); err != nil {
			return err
		}
	}
	return syncOne(filepath.Dir(dir))
}

func syncOne(name string) error {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer unix.Close(fd)
	if err := unix.Fsync(fd); err != nil {
		return &fs.PathError{Op: "sync", Path: name, Err: err}
	}
	return nil
}

// syncAll puts everything of a file system that was written onto its disk.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Syncfs(int(f.Fd()))
}
