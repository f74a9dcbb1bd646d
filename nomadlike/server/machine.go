package server

import (
	"io"

	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
)

// Machine lets the log apply to a Store.
type Machine struct{ store *state.Store }

var (
	_ consensus.FSM             = Machine{}
	_ consensus.SnapshotChecker = Machine{}
)

// NewMachine gives the log's view of store.
func NewMachine(store *state.Store) Machine { return Machine{store: store} }

// Apply implements consensus.FSM; its answer is a structs.ApplyResult.
func (m Machine) Apply(index uint64, command []byte) any { return m.store.Apply(index, command) }

// Snapshot implements consensus.FSM.
func (m Machine) Snapshot() (consensus.Snapshot, error) {
	return machineSnapshot{m.store.Snapshot()}, nil
}

// Restore implements consensus.FSM.
func (m Machine) Restore(r io.Reader) error { return m.store.Restore(r) }

// CheckSnapshot implements consensus.SnapshotChecker.
func (m Machine) CheckSnapshot(r io.Reader) error { return state.CheckState(r) }

type machineSnapshot struct{ *state.Snapshot }

// Release implements consensus.Snapshot; a snapshot holds nothing to release.
func (machineSnapshot) Release() {}
