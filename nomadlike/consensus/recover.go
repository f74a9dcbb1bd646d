package consensus

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
)

// recoverGap is how far behind the end of what is known a recovered log goes on.
// Servers of the old configuration that come back may hold more entries than the
// one that was recovered: none of them may take its own for those of the new log,
// so each gets the whole state anew.
const recoverGap = 1 << 20

// Remains is what lies in the data directory of a server that does not run.
type Remains struct {
	Identity
	Term          uint64    // that it has seen
	LastIndex     uint64    // of its newest entry, in the log or in a snapshot
	LastTerm      uint64    // of that entry
	LastAt        time.Time // when a leader made that entry; zero where nobody knows
	SnapshotIndex uint64    // of its newest snapshot, 0: none
	SnapshotAt    time.Time
	Peers         []Peer // the newest configuration that it knows
}

// Newer reports whether these remains hold more of the cluster's history than
// other, as raft compares logs.
func (r Remains) Newer(other Remains) bool {
	if r.LastTerm != other.LastTerm {
		return r.LastTerm > other.LastTerm
	}
	return r.LastIndex > other.LastIndex
}

// Inspect reports what lies in a data directory, after it has verified all of it.
// The directory must not be in use: ErrLocked.
func Inspect(dir string) (Remains, error) {
	var remains Remains
	err := withStopped(dir, func(s *storage) (err error) {
		remains, err = s.remains()
		return err
	})
	return remains, err
}

// withStopped opens the storage of a server that does not run.
func withStopped(dir string, do func(*storage) error) error {
	identity, found, err := ReadIdentity(dir)
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: %s", ErrNoIdentity, dir)
	}
	config, err := Config{ClusterID: identity.ClusterID, Dir: dir, FSM: noFSM{}, Transport: noTransport{}}.withDefaults()
	if err != nil {
		return err
	}
	s, err := openStorage(config, newGuard(config))
	if err != nil {
		return err
	}
	return errors.Join(do(s), s.close())
}

// noFSM and noTransport stand where a configuration wants one and nothing runs.
type (
	noFSM       struct{ FSM }
	noTransport struct{ raft.Transport }
)

func (s *storage) remains() (Remains, error) {
	r := Remains{Identity: s.identity}
	var err error
	if r.Term, err = s.vote.GetUint64([]byte(keyCurrentTerm)); err != nil {
		return r, err
	}
	snapshots, err := s.snapshots.List()
	if err != nil {
		return r, err
	}
	if len(snapshots) > 0 {
		newest := snapshots[0]
		body, err := s.snapshots.openBody(newest.ID, true)
		if err != nil {
			return r, err
		}
		r.SnapshotIndex, r.SnapshotAt = body.meta.Index, body.meta.CreatedAt
		r.LastIndex, r.LastTerm, r.LastAt, r.Peers = body.meta.Index, body.meta.Term, body.meta.CreatedAt, body.meta.Peers
		if err := body.Close(); err != nil {
			return r, fmt.Errorf("close snapshot: %w", err)
		}
	}
	err = s.eachEntry(r.SnapshotIndex+1, func(entry *raft.Log) error {
		r.LastIndex, r.LastTerm = entry.Index, entry.Term
		if !entry.AppendedAt.IsZero() {
			r.LastAt = entry.AppendedAt
		}
		if entry.Type == raft.LogConfiguration {
			r.Peers = peersOf(raft.DecodeConfiguration(entry.Data))
		}
		return nil
	})
	return r, err
}

// eachEntry reads the log from an index on.
func (s *storage) eachEntry(from uint64, do func(*raft.Log) error) error {
	last, err := s.log.LastIndex()
	if err != nil {
		return fmt.Errorf("find last log entry: %w", err)
	}
	for index := from; index <= last; index++ {
		var entry raft.Log
		if err := s.log.GetLog(index, &entry); err != nil {
			return err
		}
		if err := do(&entry); err != nil {
			return err
		}
	}
	return nil
}

// Reviver writes a state as it is to be when it is brought back: until is when it
// was whole last. Nil in its place means unchanged.
type Reviver func(from io.Reader, to io.Writer, until time.Time) error

// Replay writes the state of a server that does not run: its newest snapshot
// with everything that its log holds beyond. That may be more than was ever
// acknowledged, and it may be less, when this server was behind. fsm is used up.
func Replay(dir string, fsm FSM, to io.Writer) (Remains, error) {
	var remains Remains
	err := withStopped(dir, func(s *storage) (err error) {
		defer func() {
			if failure := recover(); failure != nil { // what an FSM says of a command that it does not know
				err = fmt.Errorf("replay log: %v", failure)
			}
		}()
		if remains, err = s.remains(); err != nil {
			return err
		}
		machine := &machine{fsm: fsm, onApplied: func() {}}
		if remains.SnapshotIndex > 0 {
			name, err := s.snapshots.newest()
			if err != nil {
				return err
			}
			body, err := s.snapshots.openBody(name, false)
			if err != nil {
				return err
			}
			if err := errors.Join(machine.Restore(body), body.Close()); err != nil {
				return err
			}
		}
		err = s.eachEntry(remains.SnapshotIndex+1, func(entry *raft.Log) error {
			machine.Apply(entry)
			return nil
		})
		if err != nil {
			return err
		}
		snapshot, err := machine.fsm.Snapshot()
		if err != nil {
			return fmt.Errorf("capture state: %w", err)
		}
		defer snapshot.Release()
		return snapshot.Persist(to)
	})
	return remains, err
}

// Seed is the beginning of a recovered log.
type Seed struct {
	Identity Identity
	Index    uint64 // of the newest entry that any server of the configuration may know of
	Term     uint64
	Peers    []Peer // the new configuration
}

// Plant makes a data directory whose whole content is a state: the server that
// starts on it goes on from there, with the peers of the seed as its cluster. The
// directory must be new. It is durable when Plant returns.
func Plant(dir string, seed Seed, body io.Reader) (err error) {
	voters := 0
	for _, peer := range seed.Peers {
		if peer.ID == "" || peer.Addr == "" {
			return errors.New("plant state: a server has no id or no address")
		}
		if peer.Voter {
			voters++
		}
	}
	if voters == 0 {
		return errors.New("plant state: no server has a vote")
	}
	if _, err := os.Stat(dir); err == nil {
		return fmt.Errorf("plant state: %s exists", dir)
	}
	if err := seed.Identity.save(dir); err != nil {
		return err
	}
	config, err := Config{ClusterID: seed.Identity.ClusterID, ID: seed.Identity.ServerID, Dir: dir, FSM: noFSM{}, Transport: noTransport{}}.withDefaults()
	if err != nil {
		return err
	}
	s, err := openStorage(config, newGuard(config))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	index, term := seed.Index+recoverGap, seed.Term+1
	if err := s.vote.SetUint64([]byte(keyCurrentTerm), term); err != nil {
		return err
	}
	sink, err := s.snapshots.Create(1, index, term, raftConfiguration(seed.Peers), index, nil)
	if err != nil {
		return err
	}
	if _, err := io.Copy(sink, body); err != nil {
		return errors.Join(fmt.Errorf("write snapshot: %w", err), sink.Cancel())
	}
	if err := sink.Close(); err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// NewIdentity is that of a server which nobody has heard of.
func NewIdentity(clusterID string) Identity {
	return Identity{Format: identityFormat, ClusterID: clusterID, ServerID: randomServerID()}
}
