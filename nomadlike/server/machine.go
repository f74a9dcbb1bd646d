package server

import (
	"io"

	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
)

// Machine lets the log apply to a Store.
type Machine struct {
	store   *state.Store
	history History // nil: nobody keeps it
}

// History keeps the rows that ended attempts leave, outside of the state.
type History interface {
	state.History
	// Sync has all that was added reach the disk.
	Sync() error
}

var (
	_ consensus.FSM             = Machine{}
	_ consensus.BatchFSM        = Machine{}
	_ consensus.SnapshotChecker = Machine{}
)

// NewMachine returns the log's view of store.
func NewMachine(store *state.Store) Machine { return Machine{store: store} }

// NewKeepingMachine returns the same of a store whose history is kept.
func NewKeepingMachine(store *state.Store, history History) Machine {
	store.Keep(history)
	return Machine{store: store, history: history}
}

// Apply implements consensus.FSM; its answer is a structs.ApplyResult.
func (m Machine) Apply(index uint64, command []byte) any { return m.store.Apply(index, command) }

// ApplyBatch applies commands that are committed one after the other, and
// shows readers all of them at once; answers are as of Apply.
func (m Machine) ApplyBatch(indexes []uint64, commands [][]byte) []any {
	entries := make([]state.Entry, len(commands))
	for i, command := range commands {
		entries[i] = state.Entry{Index: indexes[i], Command: command}
	}
	answers := make([]any, len(entries))
	for i, result := range m.store.ApplyBatch(entries) {
		answers[i] = result
	}
	return answers
}

// Snapshot implements consensus.FSM.
func (m Machine) Snapshot() (consensus.Snapshot, error) {
	return machineSnapshot{m.store.Snapshot(), m.history}, nil
}

// Restore implements consensus.FSM.
func (m Machine) Restore(r io.Reader) error { return m.store.Restore(r) }

// CheckSnapshot implements consensus.SnapshotChecker.
func (m Machine) CheckSnapshot(r io.Reader) error { return state.CheckState(r) }

type machineSnapshot struct {
	*state.Snapshot
	history History
}

// Persist implements consensus.Snapshot. The log forgets entries for a snapshot: what they
// brought to the history must be on the disk before.
func (s machineSnapshot) Persist(w io.Writer) error {
	if s.history != nil {
		if err := s.history.Sync(); err != nil {
			return err
		}
	}
	return s.Snapshot.Persist(w)
}

// Release implements consensus.Snapshot; a snapshot holds nothing to release.
func (machineSnapshot) Release() {}
