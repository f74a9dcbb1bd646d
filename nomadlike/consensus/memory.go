package consensus

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/hashicorp/raft"
)

// Memory is a disk that exists in tests only: state on it survives the Node
// that used it, so that a restart can be played without files. Its zero value
// is an empty disk. One Node at a time may use it.
type Memory struct {
	log       *raft.InmemStore
	records   map[string]*memoryRecord
	snapshots *memoryBlobs

	mu struct {
		sync.Mutex
		before func(operation string) error
	}
}

// Before sets what happens before each write to the log, or "vote": it may
// block, as a disk that hangs does, or fail. nil removes it.
func (m *Memory) Before(do func(operation string) error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.before = do
}

func (m *Memory) writing(operation string) error {
	m.mu.Lock()
	do := m.mu.before
	m.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(operation)
}

func (m *Memory) open(config Config, guard *guard) (*storage, error) {
	if m.log == nil {
		m.log = raft.NewInmemStore()
		m.records = map[string]*memoryRecord{voteFile: {memory: m}}
		m.snapshots = &memoryBlobs{}
	}
	identity := Identity{Format: identityFormat, ClusterID: config.ClusterID, ServerID: config.ID}
	last, err := m.log.LastIndex()
	if err != nil {
		return nil, err
	}
	vote, err := openVoteStore(m.records[voteFile], identity, last == 0)
	if err != nil {
		return nil, err
	}
	s := &storage{
		identity: identity,
		vote:     vote,
		log: &guardedLog{
			store: memoryLog{m.log, m},
			guard: guard,
			file:  func(uint64) string { return "memory" },
			cache: newEntryCache(),
		},
		snapshots: newSnapshotStore(m.snapshots, identity, guard),
	}
	return s, s.check()
}

// memoryLog is a log in memory whose writes can be made to hang or fail.
type memoryLog struct {
	*raft.InmemStore
	memory *Memory
}

var _ LogStore = memoryLog{}

func (l memoryLog) StoreLog(entry *raft.Log) error { return l.StoreLogs([]*raft.Log{entry}) }

func (l memoryLog) StoreLogs(entries []*raft.Log) error {
	if err := l.memory.writing("log"); err != nil {
		return err
	}
	last, err := l.LastIndex()
	if err != nil {
		return err
	}
	if last != 0 && entries[0].Index != last+1 {
		return fmt.Errorf("append entry %d after %d", entries[0].Index, last) // as raft-wal refuses it
	}
	return l.InmemStore.StoreLogs(entries)
}

func (l memoryLog) Close() error { return nil }

// memoryRecord is a record in memory.
type memoryRecord struct {
	memory  *Memory
	payload []byte
}

func (r *memoryRecord) name() string { return "memory" }

func (r *memoryRecord) load() ([]byte, error) { return r.payload, nil }

func (r *memoryRecord) save(payload []byte) error {
	if err := r.memory.writing("vote"); err != nil {
		return err
	}
	r.payload = payload
	return nil
}

// memoryBlobs keeps files in memory.
type memoryBlobs struct {
	mu struct {
		sync.Mutex
		files map[string][]byte
	}
}

func (b *memoryBlobs) path(name string) string { return "memory/" + name }

func (b *memoryBlobs) create(name string) (newBlob, error) {
	return &memoryBlob{blobs: b, name: name}, nil
}

func (b *memoryBlobs) open(name string) (io.ReadSeekCloser, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	data, ok := b.mu.files[name]
	if !ok {
		return nil, 0, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
	}
	return openMemory{bytes.NewReader(data)}, int64(len(data)), nil
}

type openMemory struct{ *bytes.Reader }

func (openMemory) Close() error { return nil }

func (b *memoryBlobs) list() ([]string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := make([]string, 0, len(b.mu.files))
	for name := range b.mu.files {
		names = append(names, name) // the caller sorts
	}
	return names, nil
}

func (b *memoryBlobs) remove(name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.mu.files, name)
	return nil
}

type memoryBlob struct {
	bytes.Buffer
	blobs *memoryBlobs
	name  string
}

func (m *memoryBlob) commit() error {
	m.blobs.mu.Lock()
	defer m.blobs.mu.Unlock()
	if m.blobs.mu.files == nil {
		m.blobs.mu.files = make(map[string][]byte)
	}
	m.blobs.mu.files[m.name] = m.Bytes()
	return nil
}

func (m *memoryBlob) discard() error { return nil }
