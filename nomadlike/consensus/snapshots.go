package consensus

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// snapshotSuffix ends the name of every complete snapshot.
const snapshotSuffix = ".snap"

// blobs is a place for whole files.
type blobs interface {
	// create makes a file that no list shows before its commit.
	create(name string) (newBlob, error)
	// open returns a file's content and length.
	open(name string) (io.ReadSeekCloser, int64, error)
	// list returns the names of all committed files.
	list() ([]string, error)
	remove(name string) error
	// path names a file in error texts.
	path(name string) string
}

// newBlob is a file being written. commit makes it durable and visible;
// discard drops it, and does nothing after commit.
type newBlob interface {
	io.Writer
	commit() error
	discard() error
}

// snapshotStore is raft's SnapshotStore over archives. Only the newest snapshot
// is ever listed: falling back to an older one behind raft's back would lose
// entries that the log no longer has.
type snapshotStore struct {
	blobs     blobs
	clusterID string
	serverID  string
	guard     *guard
}

var _ raft.SnapshotStore = (*snapshotStore)(nil)

func newSnapshotStore(blobs blobs, identity Identity, guard *guard) *snapshotStore {
	return &snapshotStore{blobs: blobs, clusterID: identity.ClusterID, serverID: identity.ServerID, guard: guard}
}

// newest returns the name of the newest snapshot, empty where there is none.
func (s *snapshotStore) newest() (string, error) {
	names, err := s.complete()
	if err != nil || len(names) == 0 {
		return "", err
	}
	return names[len(names)-1], nil
}

// complete lists the complete snapshots, oldest first: names sort by term and
// index.
func (s *snapshotStore) complete() ([]string, error) {
	names, err := s.blobs.list()
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasSuffix(name, snapshotSuffix) })
	slices.Sort(names)
	return names, nil
}

// List implements raft.SnapshotStore.
func (s *snapshotStore) List() ([]*raft.SnapshotMeta, error) {
	name, err := s.newest()
	if err != nil || name == "" {
		return nil, err
	}
	body, err := s.openBody(name, false)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return []*raft.SnapshotMeta{body.meta.raftMeta(name)}, nil
}

// describe returns what the newest snapshot says of itself, the zero value without one.
func (s *snapshotStore) describe() (Meta, error) {
	name, err := s.newest()
	if err != nil || name == "" {
		return Meta{}, err
	}
	body, err := s.openBody(name, false)
	if err != nil {
		return Meta{}, err
	}
	defer body.Close()
	return body.meta, nil
}

// Open implements raft.SnapshotStore. The whole file is verified before the
// first byte is handed out.
func (s *snapshotStore) Open(id string) (*raft.SnapshotMeta, io.ReadCloser, error) {
	body, err := s.openBody(id, true)
	if err != nil {
		return nil, nil, err
	}
	return body.meta.raftMeta(id), body, nil
}

// snapshotBody reads the state inside a snapshot.
type snapshotBody struct {
	meta Meta
	file io.ReadSeekCloser
	body io.Reader
}

func (b *snapshotBody) Read(p []byte) (int, error) { return b.body.Read(p) }

// Close implements io.Closer.
func (b *snapshotBody) Close() error { return b.file.Close() }

func (s *snapshotStore) openBody(name string, verify bool) (_ *snapshotBody, err error) {
	file, size, err := s.blobs.open(name)
	if err != nil {
		return nil, fmt.Errorf("open snapshot: %w", err)
	}
	defer func() {
		if err != nil {
			file.Close()
		}
	}()
	if verify {
		if _, err := InspectSnapshot(file); err != nil {
			return nil, &CorruptError{File: s.blobs.path(name), Err: err}
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return nil, fmt.Errorf("read snapshot again: %w", err)
		}
	}
	buffered := bufio.NewReaderSize(file, 256<<10)
	counted := &countingReader{from: buffered}
	meta, err := readArchiveHeader(counted)
	if err != nil {
		return nil, &CorruptError{File: s.blobs.path(name), Err: err}
	}
	meta.BodyBytes = size - counted.count - archiveTrailer
	if meta.BodyBytes < 0 {
		return nil, &CorruptError{File: s.blobs.path(name), Err: fmt.Errorf("%w: truncated", ErrBadSnapshot)}
	}
	if meta.ClusterID != s.clusterID {
		return nil, fmt.Errorf("%w: %s is of cluster %s", ErrForeignDir, s.blobs.path(name), meta.ClusterID)
	}
	return &snapshotBody{meta: meta, file: file, body: io.LimitReader(buffered, meta.BodyBytes)}, nil
}

type countingReader struct {
	from  io.Reader
	count int64
}

func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.from.Read(p)
	r.count += int64(n)
	return n, err
}

// Create implements raft.SnapshotStore.
func (s *snapshotStore) Create(version raft.SnapshotVersion, index, term uint64,
	configuration raft.Configuration, configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	if version != 1 {
		return nil, fmt.Errorf("create snapshot: version %d is unknown", version)
	}
	now := time.Now()
	name := fmt.Sprintf("%020d-%020d-%020d%s", term, index, now.UnixNano(), snapshotSuffix)
	blob, err := s.blobs.create(name)
	if err != nil {
		return nil, fmt.Errorf("create snapshot: %w", err)
	}
	sink := &snapshotSink{store: s, name: name, blob: blob, buffer: bufio.NewWriterSize(blob, 256<<10)}
	sink.archive, err = newArchiveWriter(sink.buffer, Meta{
		Format:             archiveFormat,
		ClusterID:          s.clusterID,
		ServerID:           s.serverID,
		Index:              index,
		Term:               term,
		CreatedAt:          now.UTC(),
		ConfigurationIndex: configurationIndex,
		Peers:              peersOf(configuration),
	})
	if err != nil {
		return nil, errors.Join(err, blob.discard())
	}
	return sink, nil
}

// snapshotSink is one snapshot being written.
type snapshotSink struct {
	store   *snapshotStore
	name    string
	blob    newBlob
	buffer  *bufio.Writer
	archive *archiveWriter
	closed  bool
}

// ID implements raft.SnapshotSink.
func (k *snapshotSink) ID() string { return k.name }

func (k *snapshotSink) Write(p []byte) (int, error) { return k.archive.Write(p) }

// Close implements raft.SnapshotSink: the snapshot is complete and durable when
// it returns nil.
func (k *snapshotSink) Close() error {
	if k.closed {
		return nil
	}
	k.closed = true
	err := k.store.refuseOlder(k.name)
	if err == nil {
		err = k.archive.finish()
	}
	if err == nil {
		err = k.buffer.Flush()
	}
	if err != nil { // a full disk, say: the next one may succeed
		return errors.Join(err, k.blob.discard())
	}
	if err := k.blob.commit(); err != nil {
		k.store.guard.fail(exitStorage, "snapshot cannot be made durable", logkey.Error, err)
		return err
	}
	return k.store.reap()
}

// refuseOlder refuses to complete a snapshot beside a newer one. Raft takes
// snapshots and installs those of the leader from different goroutines, and
// would take an older one that ends last for the end of its log.
func (s *snapshotStore) refuseOlder(name string) error {
	newest, err := s.newest()
	if err != nil {
		return err
	}
	if newest > name {
		return fmt.Errorf("complete snapshot %s: a newer one is there: %s", name, newest)
	}
	return nil
}

// Cancel implements raft.SnapshotSink.
func (k *snapshotSink) Cancel() error {
	if k.closed {
		return nil
	}
	k.closed = true
	return k.blob.discard()
}

// reap removes all but the newest snapshots.
func (s *snapshotStore) reap() error {
	names, err := s.complete()
	if err != nil {
		return err
	}
	for len(names) > snapshotsKept {
		if err := s.blobs.remove(names[0]); err != nil {
			return fmt.Errorf("remove old snapshot: %w", err)
		}
		names = names[1:]
	}
	return nil
}
