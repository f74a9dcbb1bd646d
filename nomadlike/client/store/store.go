package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	bolt "go.etcd.io/bbolt"

	"nomadlike/internal/filelock"
	"nomadlike/nomadlike/client/alloc"
	"nomadlike/nomadlike/structs"
)

const (
	storeFile = "allocs.db"
	lockFile  = "allocs.lock"
	// lockTimeout is how long Open waits for a dying process to let go.
	lockTimeout = time.Second
	// formatVersion is written into the file; another one is refused.
	formatVersion = "1"
)

// Change is one write: the state of an allocation, or its removal.
type Change struct {
	AllocID string
	State   *alloc.State // nil: forget the allocation
}

// Store is the file of allocation states. Its methods may be called from any
// goroutine.
type Store struct {
	db    *bolt.DB
	lock  *os.File
	dirty chan struct{} // holds a token when something was not synced yet
	fsync func() error  // db.Sync, but for tests of a disk that fails
}

// ErrDamaged is returned by Open when the file cannot be read as a store.
var ErrDamaged = errors.New("the local store is damaged")

// Open opens the store in dir, makes it when it is not there, and returns the
// states it holds, in the order of their ids. A file that is not a store, or
// that fails its checks, returns ErrDamaged; a store that another process has
// open returns a *structs.Error.
//
// The states are read from the old file, which is only looked at, and written
// into a new one that takes its place: damage that shows in no state is left
// behind with the old file. On a disk without room the old file is used further.
func Open(dir string) (*Store, []alloc.State, error) {
	path := filepath.Join(dir, storeFile)
	lock, err := takeLock(filepath.Join(dir, lockFile))
	if err != nil {
		return nil, nil, err
	}
	states, err := read(path)
	if err != nil {
		lock.Close()
		if errors.Is(err, fs.ErrPermission) {
			return nil, nil, fmt.Errorf("open local store: %w", err)
		}
		return nil, nil, fmt.Errorf("open local store %s: %w: %w", path, ErrDamaged, err)
	}
	db, err := replace(path, states)
	if err != nil && Exists(dir) {
		db, err = bolt.Open(path, 0o600, options(false)) // there is no room for another one
	}
	if err != nil {
		lock.Close()
		return nil, nil, fmt.Errorf("write local store %s: %w", path, err)
	}
	s := &Store{db: db, lock: lock, dirty: make(chan struct{}, 1), fsync: db.Sync}
	s.dirty <- struct{}{}
	return s, states, nil
}

// takeLock makes this process the only one that uses the store.
func takeLock(path string) (*os.File, error) {
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock local store: %w", err)
	}
	if err := filelock.Take(lock, lockTimeout); err != nil {
		lock.Close()
		return nil, structs.NewError(structs.CodeConflict, "client.store_locked", "path", path).Because(err)
	}
	return lock, nil
}

// options are those of every store file: nothing is fsynced unless asked for.
func options(readOnly bool) *bolt.Options {
	return &bolt.Options{ReadOnly: readOnly, NoSync: true, NoGrowSync: true}
}

// read returns the states of an old file, none when there is no file.
func read(path string) (states []alloc.State, err error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = guard(func() error {
		db, err := bolt.Open(path, 0o600, options(true))
		if err != nil {
			return err
		}
		defer db.Close()
		states, err = load(db)
		return err
	})
	return states, err
}

// replace writes a new file with the given states.
func replace(path string, states []alloc.State) (*bolt.DB, error) {
	fresh := path + ".new"
	if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var db *bolt.DB
	err := guard(func() (err error) {
		db, err = bolt.Open(fresh, 0o600, options(false))
		return err
	})
	if err != nil {
		_ = os.Remove(fresh)
		return nil, err
	}
	err = guard(func() error { return db.Update(func(tx *bolt.Tx) error { return fill(tx, states) }) })
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		_ = guard(db.Close)  // nobody reads it
		_ = os.Remove(fresh) // removed before the next one is made, if not now
		return nil, err
	}
	return db, nil
}

func fill(tx *bolt.Tx, states []alloc.State) error {
	meta, err := tx.CreateBucket(metaBucket())
	if err != nil {
		return err
	}
	if err := meta.Put([]byte("format"), []byte(formatVersion)); err != nil {
		return err
	}
	allocs, err := tx.CreateBucket(allocsBucket())
	if err != nil {
		return err
	}
	for _, s := range states {
		value, err := encode(s)
		if err != nil {
			return err
		}
		if err := allocs.Put([]byte(s.AllocID), value); err != nil {
			return err
		}
	}
	return nil
}

// SetAside renames a damaged store, so that a new one can be made, and returns
// the new name.
func SetAside(dir string) (string, error) {
	path := filepath.Join(dir, storeFile)
	for i := 1; ; i++ {
		aside := fmt.Sprintf("%s.damaged-%d", path, i)
		_, err := os.Lstat(aside)
		if err == nil {
			continue
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set damaged store aside: %w", err)
		}
		if err := os.Rename(path, aside); err != nil {
			return "", fmt.Errorf("set damaged store aside: %w", err)
		}
		return aside, nil
	}
}

// Exists reports whether dir holds a store.
func Exists(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, storeFile))
	return err == nil
}

// Apply writes changes in one transaction: all of them, or none when it
// returns an error. They survive the death of this process when it returns.
func (s *Store) Apply(changes []Change) error {
	if len(changes) == 0 {
		return nil
	}
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			bucket := tx.Bucket(allocsBucket())
			for _, c := range changes {
				if c.State == nil {
					if err := bucket.Delete([]byte(c.AllocID)); err != nil {
						return err
					}
					continue
				}
				value, err := encode(*c.State)
				if err != nil {
					return err
				}
				if err := bucket.Put([]byte(c.AllocID), value); err != nil {
					return err
				}
			}
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("write local store: %w", err)
	}
	select {
	case s.dirty <- struct{}{}:
	default:
	}
	return nil
}

// Sync makes what was applied survive a power loss. It does nothing when
// nothing was applied since the last time.
func (s *Store) Sync() error {
	select {
	case <-s.dirty:
	default:
		return nil
	}
	if err := guard(s.fsync); err != nil {
		select { // nothing of it is certain: it is to be synced again
		case s.dirty <- struct{}{}:
		default:
		}
		return fmt.Errorf("sync local store: %w", err)
	}
	return nil
}

// Through lets every sync go through f, which gets the real one: the door for
// tests of a disk that fails. Call it before anything is applied.
func (s *Store) Through(f func(fsync func() error) error) {
	fsync := s.fsync
	s.fsync = func() error { return f(fsync) }
}

// Close syncs and closes the store.
func (s *Store) Close() error {
	return errors.Join(s.Sync(), guard(s.db.Close), s.lock.Close())
}

func allocsBucket() []byte { return []byte("allocs") }
func metaBucket() []byte   { return []byte("meta") }

// load reads every state.
func load(db *bolt.DB) ([]alloc.State, error) {
	var states []alloc.State
	err := db.View(func(tx *bolt.Tx) error {
		meta, allocs := tx.Bucket(metaBucket()), tx.Bucket(allocsBucket())
		if meta == nil || allocs == nil {
			return errors.New("a bucket is missing")
		}
		if got := string(meta.Get([]byte("format"))); got != formatVersion {
			return fmt.Errorf("format %q is not %q", got, formatVersion)
		}
		return allocs.ForEach(func(id, value []byte) error {
			s, err := decode(value)
			if err != nil {
				return fmt.Errorf("allocation %s: %w", id, err)
			}
			if s.AllocID != string(id) {
				return fmt.Errorf("allocation %s: record is of %s", id, s.AllocID)
			}
			states = append(states, s)
			return nil
		})
	})
	return states, err
}

// encode is the JSON of a state after its checksum, so that a flipped bit in
// a value is seen and not acted upon.
func encode(s alloc.State) ([]byte, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode state of %s: %w", s.AllocID, err)
	}
	sum := crc32.ChecksumIEEE(data)
	return append([]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}, data...), nil
}

func decode(value []byte) (alloc.State, error) {
	var s alloc.State
	if len(value) < 4 {
		return s, errors.New("record is cut short")
	}
	want := uint32(value[0])<<24 | uint32(value[1])<<16 | uint32(value[2])<<8 | uint32(value[3])
	if crc32.ChecksumIEEE(value[4:]) != want {
		return s, errors.New("checksum does not match")
	}
	if err := json.Unmarshal(value[4:], &s); err != nil {
		return s, fmt.Errorf("parse record: %w", err)
	}
	return s, nil
}

// guard turns the panics and memory faults by which bbolt answers a damaged
// file into errors.
func guard(act func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, r)
		}
	}()
	return act()
}
