package consensus

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	wal "github.com/hashicorp/raft-wal"
)

// Names inside a data directory.
const (
	lockFile     = "lock"
	logDir       = "log"
	snapshotDir  = "snapshots"
	temporaryEnd = ".tmp"
)

// storage is everything durable of one server.
type storage struct {
	identity  Identity
	vote      *voteStore
	log       *guardedLog
	snapshots *snapshotStore
	lock      *os.File // nil in memory
}

// openStorage opens and checks what config names.
func openStorage(config Config, guard *guard) (*storage, error) {
	if config.Memory != nil {
		return config.Memory.open(config, guard)
	}
	return openDir(config, guard)
}

// openDir opens a data directory. State that is damaged, missing or foreign is
// refused here, before this server speaks to anybody.
func openDir(config Config, guard *guard) (_ *storage, err error) {
	if err := os.MkdirAll(config.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	s := &storage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.lock, err = lockDir(config.Dir); err != nil {
		return nil, err
	}
	if s.identity, err = claimDir(config); err != nil {
		return nil, err
	}
	for _, sub := range []string{logDir, snapshotDir} {
		if err := os.MkdirAll(filepath.Join(config.Dir, sub), 0o700); err != nil {
			return nil, fmt.Errorf("make data directory: %w", err)
		}
	}
	// The vote is made before the log and used before it, so that a crash
	// between the two is told from a loss.
	meta := fileRecord{filepath.Join(config.Dir, logMetaFile)}
	list, err := meta.load()
	if err != nil {
		return nil, err
	}
	s.vote, err = openVoteStore(fileRecord{filepath.Join(config.Dir, voteFile)}, s.identity, list == nil)
	if err != nil {
		return nil, err
	}
	if s.log, err = openLog(config, guard, &logMeta{record: meta, identity: s.identity, fresh: !s.vote.everUsed(), guard: guard}); err != nil {
		return nil, err
	}
	s.snapshots = newSnapshotStore(dirBlobs{filepath.Join(config.Dir, snapshotDir)}, s.identity, guard)
	if err := sweepTemporary(filepath.Join(config.Dir, snapshotDir)); err != nil {
		return nil, err
	}
	if err := s.mendSnapshots(config.Log); err != nil {
		return nil, err
	}
	return s, s.check()
}

// openLog opens raft-wal under the guard.
func openLog(config Config, guard *guard, meta *logMeta) (*guardedLog, error) {
	dir := filepath.Join(config.Dir, logDir)
	mark, err := openWatermark(filepath.Join(config.Dir, watermarkFile))
	if err != nil {
		return nil, err
	}
	if err := repairLog(config.Dir, meta.record, mark.at(), config.Log); err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", err), mark.close())
	}
	store, err := wal.Open(dir,
		wal.WithCodec(entryCodec{}),
		wal.WithMetaStore(meta),
		wal.WithSegmentFiler(newSegments(dir, guard)),
		wal.WithSegmentSize(config.segmentBytes),
		wal.WithLogger(newHclog(config.Log, "raft-wal")))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open log: %w", damage(dir, err)), mark.close())
	}
	return &guardedLog{
		store: store,
		guard: guard,
		mark:  mark,
		file:  func(index uint64) string { return segmentOf(dir, index) },
		cache: newEntryCache(),
	}, nil
}

// damage turns what raft-wal calls corrupt, or finds missing, into a
// CorruptError.
func damage(dir string, err error) error {
	if errors.Is(err, wal.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) {
		return &CorruptError{File: dir, Err: err}
	}
	return err
}

// segmentOf names the log file that holds an index: the last one that begins
// at or before it.
func segmentOf(dir string, index uint64) string {
	entries, err := os.ReadDir(dir) // sorted by name, and so by first index
	if err != nil {
		return dir
	}
	file := dir
	for _, entry := range entries {
		var base, id uint64
		if n, err := fmt.Sscanf(entry.Name(), "%020d-%016x.wal", &base, &id); n != 2 || err != nil || base > index {
			continue
		}
		file = filepath.Join(dir, entry.Name())
	}
	return file
}

// logBytes is the length of all log files; unused space at their ends counts.
func logBytes(dir string) int64 {
	var total int64
	entries, _ := os.ReadDir(filepath.Join(dir, logDir)) // what cannot be listed counts nothing
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			total += info.Size()
		}
	}
	return total
}

// check reads the whole log, and looks whether log and snapshot meet.
func (s *storage) check() error {
	if err := s.log.verify(); err != nil {
		return err
	}
	first, err := s.log.FirstIndex()
	if err != nil {
		return fmt.Errorf("find first log entry: %w", err)
	}
	snapshots, err := s.snapshots.List()
	if err != nil {
		return err
	}
	var covered uint64
	if len(snapshots) > 0 {
		covered = snapshots[0].Index
	}
	if first > covered+1 {
		return &CorruptError{
			File:  s.snapshots.blobs.path(""),
			Index: covered + 1,
			Err:   fmt.Errorf("the log begins at %d and the newest snapshot ends at %d", first, covered),
		}
	}
	return nil
}

// close releases everything that is open.
func (s *storage) close() error {
	var err error
	if s.log != nil {
		err = s.log.close()
	}
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
	}
	return err
}

// lockDir takes the directory for this process; closing the file releases it,
// as does any end of the process.
func lockDir(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("%w: %s", ErrLocked, dir)
		}
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	return file, nil
}

// freeBytes asks the file system how much an ordinary user may still write.
func freeBytes(dir string) (uint64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("ask free space of %s: %w", dir, err)
	}
	return stat.Bavail * uint64(stat.Bsize), nil
}

// sweepTemporary removes what a crash left half-written.
func sweepTemporary(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("list snapshots: %w", err)
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), temporaryEnd) {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return fmt.Errorf("remove unfinished snapshot: %w", err)
			}
		}
	}
	return nil
}

// dirBlobs keeps files in a directory.
type dirBlobs struct{ dir string }

func (b dirBlobs) path(name string) string { return filepath.Join(b.dir, name) }

func (b dirBlobs) create(name string) (newBlob, error) {
	file, err := os.OpenFile(b.path(name)+temporaryEnd, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &fileBlob{File: file, final: b.path(name)}, nil
}

func (b dirBlobs) open(name string) (io.ReadSeekCloser, int64, error) {
	file, err := os.Open(b.path(name))
	if err != nil {
		return nil, 0, err
	}
	stat, err := file.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, stat.Size(), nil
}

func (b dirBlobs) list() ([]string, error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), temporaryEnd) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func (b dirBlobs) remove(name string) error { return os.Remove(b.path(name)) }

// fileBlob is a file under a temporary name until its commit.
type fileBlob struct {
	*os.File
	final string
	done  bool
}

func (f *fileBlob) commit() error {
	f.done = true
	err := f.Sync()
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(f.Name(), f.final); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.final))
}

func (f *fileBlob) discard() error {
	if f.done {
		return nil
	}
	f.done = true
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
