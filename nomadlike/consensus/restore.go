package consensus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/hashicorp/raft"

	"nomadlike/internal/logkey"
)

// SnapshotSave writes an archive of this server's state to w. On the leader it
// holds everything acknowledged before the call; on another server whatever
// that one has applied.
func (n *Node) SnapshotSave(ctx context.Context, w io.Writer) (Meta, error) {
	if n.IsLeader() {
		index, err := n.ReadIndex(ctx)
		if err != nil {
			return Meta{}, err
		}
		if err := n.WaitApplied(ctx, index); err != nil {
			return Meta{}, err
		}
	}
	if err := n.ops.begin(); err != nil {
		return Meta{}, err
	}
	done := make(chan error, 1)
	go func() {
		defer n.ops.end()
		done <- n.raft.Snapshot().Error()
	}()
	select {
	case err := <-done:
		if err != nil {
			return Meta{}, fmt.Errorf("take snapshot: %w", err)
		}
	case <-ctx.Done():
		return Meta{}, fmt.Errorf("take snapshot: %w", ctx.Err())
	}
	name, err := n.storage.snapshots.newest()
	if err != nil {
		return Meta{}, err
	}
	file, _, err := n.storage.snapshots.blobs.open(name)
	if err != nil {
		return Meta{}, fmt.Errorf("open snapshot: %w", err)
	}
	defer file.Close()
	meta, err := InspectSnapshot(io.TeeReader(file, w))
	if err != nil {
		return Meta{}, fmt.Errorf("copy snapshot: %w", err)
	}
	return meta, nil
}

// RestoreOptions says what SnapshotRestore may do.
type RestoreOptions struct {
	// AllowForeign takes an archive of another cluster: for a cluster that is
	// made anew because the old one is lost.
	AllowForeign bool
	// Revive changes the state before it is brought back; nil: it comes back as it
	// was. An error of it leaves everything unchanged.
	Revive Reviver
}

// SnapshotRestore replaces the state of the whole cluster by an archive.
// Leader only; everything written after the archive was made is lost, and
// proposals in flight get ErrOutcomeUnknown. The archive is verified as a whole
// before anything changes: ErrBadSnapshot, ErrForeignSnapshot, which comes with what
// the archive says of itself.
func (n *Node) SnapshotRestore(ctx context.Context, archive io.Reader, options RestoreOptions) (Meta, error) {
	if !n.IsLeader() {
		return Meta{}, n.notLeader()
	}
	spool, err := os.CreateTemp(n.config.Dir, "restore-*"+temporaryEnd)
	if err != nil {
		return Meta{}, fmt.Errorf("keep archive: %w", err)
	}
	defer func() {
		spool.Close()
		os.Remove(spool.Name())
	}()
	meta, err := readArchive(archive, spool)
	if err != nil {
		return Meta{}, err
	}
	if meta.ClusterID != n.config.ClusterID && !options.AllowForeign {
		return meta, fmt.Errorf("%w: it is of cluster %s, and this is cluster %s", ErrForeignSnapshot, meta.ClusterID, n.config.ClusterID)
	}
	if checker, ok := n.config.FSM.(SnapshotChecker); ok {
		if err := rewound(spool, checker.CheckSnapshot); err != nil {
			return Meta{}, fmt.Errorf("check snapshot: %w", err)
		}
	}
	state := spool
	if options.Revive != nil {
		next, size, err := n.revived(spool, options.Revive, meta)
		if err != nil {
			return Meta{}, err
		}
		defer func() {
			next.Close()
			os.Remove(next.Name())
		}()
		state, meta.BodyBytes = next, size
	}
	if err := n.ops.begin(); err != nil {
		return Meta{}, err
	}
	defer n.ops.end()
	n.restoring <- struct{}{}
	defer func() { <-n.restoring }()
	if err := rewound(state, func(r io.Reader) error { return n.raft.Restore(meta.raftMeta("restore"), r, n.restoreTimeout(ctx)) }); err != nil {
		if errors.Is(err, raft.ErrNotLeader) {
			return Meta{}, n.notLeader()
		}
		return Meta{}, fmt.Errorf("restore snapshot: %w: %w", ErrOutcomeUnknown, err)
	}
	// Raft ended with an entry that no FSM sees; one more lets readers that wait
	// for its index go on.
	answer := n.append(raft.Log{Extensions: leaderMark{ServerID: n.config.ID}.encode()})
	if answer.err != nil {
		return Meta{}, answer.err
	}
	n.config.Log.Warn("state was replaced by a snapshot", logkey.Index, meta.Index, logkey.Term, meta.Term, "sha256", meta.SHA256)
	return meta, nil
}

// revived returns a file with the state as revive makes it of another's.
func (n *Node) revived(state io.ReadSeeker, revive Reviver, meta Meta) (_ *os.File, size int64, err error) {
	next, err := os.CreateTemp(n.config.Dir, "restore-*"+temporaryEnd)
	if err != nil {
		return nil, 0, fmt.Errorf("keep archive: %w", err)
	}
	defer func() {
		if err != nil {
			next.Close()
			os.Remove(next.Name())
		}
	}()
	if err := rewound(state, func(r io.Reader) error { return revive(r, next, meta.CreatedAt) }); err != nil {
		return nil, 0, fmt.Errorf("check snapshot: %w", err)
	}
	if size, err = next.Seek(0, io.SeekEnd); err != nil {
		return nil, 0, fmt.Errorf("measure state: %w", err)
	}
	return next, size, nil
}

// restoreTimeout bounds raft's waiting for its turn.
func (n *Node) restoreTimeout(ctx context.Context) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(time.Until(deadline), time.Millisecond)
	}
	return 0
}

// rewound lets do read a file from its beginning.
func rewound(file io.ReadSeeker, do func(io.Reader) error) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read archive again: %w", err)
	}
	return do(file)
}
