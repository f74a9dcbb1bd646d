package consensus

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hashicorp/raft-wal/types"

	"nomadlike/internal/logkey"
)

const logMetaFile = "log.rec"

// logMeta is raft-wal's list of segment files, kept as one checksummed record
// instead of a database of its own, and marked with whose log it is.
type logMeta struct {
	record   record
	identity Identity
	fresh    bool // no log was here before
	guard    *guard
}

var _ types.MetaStore = (*logMeta)(nil)

type logMetaRecord struct {
	Identity
	State types.PersistentState `json:"state"`
}

// Load implements types.MetaStore.
func (m *logMeta) Load(string) (types.PersistentState, error) {
	var none types.PersistentState
	payload, err := m.record.load()
	switch {
	case err != nil:
		return none, err
	case payload == nil && !m.fresh:
		return none, &CorruptError{File: m.record.name(), Err: errors.New("the list of log files is missing")}
	case payload == nil:
		return none, m.CommitState(none)
	}
	var saved logMetaRecord
	if err := json.Unmarshal(payload, &saved); err != nil {
		return none, &CorruptError{File: m.record.name(), Err: err}
	}
	if saved.Identity != m.identity {
		return none, fmt.Errorf("%w: %s is of server %s in cluster %s", ErrForeignDir, m.record.name(), saved.ServerID, saved.ClusterID)
	}
	for i := range saved.State.Segments {
		saved.State.Segments[i].Codec = entryCodecID // see segments
	}
	return saved.State, nil
}

// CommitState implements types.MetaStore.
func (m *logMeta) CommitState(state types.PersistentState) error {
	payload, err := json.Marshal(logMetaRecord{Identity: m.identity, State: state})
	if err != nil {
		return fmt.Errorf("encode list of log files: %w", err)
	}
	if err := m.record.save(payload); err != nil {
		// Raft-wal may be changing files in the background, where it only logs.
		m.guard.fail(exitStorage, "list of log files cannot be stored", logkey.Error, err)
		return fmt.Errorf("save list of log files: %w", err)
	}
	return nil
}

// GetStable implements types.MetaStore; the vote has a store of its own.
func (m *logMeta) GetStable([]byte) ([]byte, error) { return nil, nil }

// SetStable implements types.MetaStore and refuses.
func (m *logMeta) SetStable(key, _ []byte) error {
	return fmt.Errorf("store %q in the log: the vote has a store of its own", key)
}

// Close implements types.MetaStore.
func (m *logMeta) Close() error { return nil }
