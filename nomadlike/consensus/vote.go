package consensus

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/hashicorp/raft"
)

const voteFile = "vote.rec"

// Keys under which raft stores its vote; the library does not export them.
const (
	keyCurrentTerm = "CurrentTerm"
	keyVoteTerm    = "LastVoteTerm"
	keyVoteFor     = "LastVoteCand"
)

// vote is everything that raft must never forget outside of its log.
type vote struct {
	Identity
	CurrentTerm uint64 `json:"current_term"`
	VoteTerm    uint64 `json:"vote_term"`
	VoteFor     []byte `json:"vote_for"`
}

// voteStore is raft's StableStore, kept as one record. Raft writes a vote in
// two calls, term first; were both durable by themselves, a crash between them
// would pair the new term with the candidate of the old one, and raft grants
// such a "repeated" vote without looking at the candidate's log. So the term
// waits in memory and the second call writes both.
type voteStore struct {
	mu struct {
		sync.Mutex
		saved       vote
		pendingTerm uint64 // vote term announced but not yet written
	}
	record record
}

var _ raft.StableStore = (*voteStore)(nil)

// openVoteStore loads the record. fresh says that no log exists yet; beside a
// log, a missing record is a lost vote and refused.
func openVoteStore(rec record, identity Identity, fresh bool) (*voteStore, error) {
	store := &voteStore{record: rec}
	payload, err := rec.load()
	switch {
	case err != nil:
		return nil, err
	case payload == nil && !fresh:
		return nil, &CorruptError{File: rec.name(), Err: errors.New("the vote is missing although the log exists")}
	case payload == nil:
		store.mu.saved.Identity = identity
		if err := store.saveLocked(store.mu.saved); err != nil {
			return nil, err
		}
		return store, nil
	}
	if err := json.Unmarshal(payload, &store.mu.saved); err != nil {
		return nil, &CorruptError{File: rec.name(), Err: err}
	}
	if store.mu.saved.Identity != identity {
		return nil, fmt.Errorf("%w: %s is of server %s in cluster %s", ErrForeignDir, rec.name(),
			store.mu.saved.ServerID, store.mu.saved.ClusterID)
	}
	return store, nil
}

func (s *voteStore) saveLocked(next vote) error {
	payload, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode vote: %w", err)
	}
	if err := s.record.save(payload); err != nil {
		return fmt.Errorf("save vote: %w", err)
	}
	s.mu.saved = next
	return nil
}

// everUsed reports whether this server ever took part in a term; raft stores the
// term before it stores the first log entry.
func (s *voteStore) everUsed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.saved.CurrentTerm > 0
}

// Set implements raft.StableStore: it completes a vote.
func (s *voteStore) Set(key, value []byte) error {
	if string(key) != keyVoteFor {
		return fmt.Errorf("store %q: no such key of a vote", key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.mu.saved
	next.VoteTerm = s.mu.pendingTerm
	next.VoteFor = append([]byte(nil), value...)
	return s.saveLocked(next)
}

// Get implements raft.StableStore. Raft tells an absent vote by nil.
func (s *voteStore) Get(key []byte) ([]byte, error) {
	if string(key) != keyVoteFor {
		return nil, fmt.Errorf("load %q: no such key of a vote", key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.saved.VoteFor, nil
}

// SetUint64 implements raft.StableStore. A term that is stored already costs
// nothing, so that a full disk does not stop a start.
func (s *voteStore) SetUint64(key []byte, value uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyCurrentTerm:
		if s.mu.saved.CurrentTerm == value {
			return nil
		}
		next := s.mu.saved
		next.CurrentTerm = value
		return s.saveLocked(next)
	case keyVoteTerm:
		s.mu.pendingTerm = value
		return nil
	}
	return fmt.Errorf("store %q: no such key of a vote", key)
}

// GetUint64 implements raft.StableStore.
func (s *voteStore) GetUint64(key []byte) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch string(key) {
	case keyCurrentTerm:
		return s.mu.saved.CurrentTerm, nil
	case keyVoteTerm:
		return s.mu.saved.VoteTerm, nil
	}
	return 0, fmt.Errorf("load %q: no such key of a vote", key)
}
