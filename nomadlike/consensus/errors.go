package consensus

import (
	"errors"
	"fmt"
)

var (
	// ErrOutcomeUnknown is returned when a proposal was handed to the log but
	// nobody can say whether it was or will be applied: leadership was lost
	// while it was being committed, or the caller's context ended first. Who
	// retries must make the command idempotent.
	ErrOutcomeUnknown = errors.New("outcome of the proposal is unknown")

	// ErrShutdown is returned by every method once Shutdown has begun. The
	// call had no effect.
	ErrShutdown = errors.New("consensus is shut down")

	// ErrAlreadyBootstrapped is returned by Bootstrap on a server that has
	// state already: its cluster exists, and a second bootstrap would fork it.
	ErrAlreadyBootstrapped = errors.New("cluster is bootstrapped already")

	// ErrDiskFull is returned by Propose on a leader whose data directory has
	// less free space than Config.MinFreeBytes, when no other server could take
	// the lead. Reads go on; proposals are taken again as soon as space is freed.
	ErrDiskFull = errors.New("data directory is full")

	// ErrTooLarge is returned by Propose for a command above MaxCommandBytes.
	ErrTooLarge = errors.New("command is too large")

	// ErrAddressInUse is returned when a server is to be added under an
	// address that the configuration holds under another id.
	ErrAddressInUse = errors.New("address belongs to another server")

	// ErrUnknownPeer is returned when a server is named that the
	// configuration does not hold.
	ErrUnknownPeer = errors.New("no such server in the configuration")

	// ErrLastVoter is returned when the removal of a server would leave no
	// voter.
	ErrLastVoter = errors.New("the last voter cannot be removed")

	// ErrForeignDir is returned by Open for a data directory that belongs to
	// another server id or another cluster.
	ErrForeignDir = errors.New("data directory belongs to another server or cluster")

	// ErrNoIdentity is returned by Open when a server id is given for a data
	// directory that has none: a wiped server must take a new id
	// (EnsureIdentity) and join as a new server.
	ErrNoIdentity = errors.New("data directory has no identity")

	// ErrLocked is returned by Open when another process uses the directory.
	ErrLocked = errors.New("data directory is in use by another process")

	// ErrCorrupt is matched by every error about stored state that fails its
	// checksum, is missing or contradicts other state. The server must not
	// take part in the cluster with it.
	ErrCorrupt = errors.New("stored state is corrupt")

	// ErrBadSnapshot is returned for an archive that is no snapshot, is
	// truncated, or fails its checksum.
	ErrBadSnapshot = errors.New("not an intact snapshot")

	// ErrForeignSnapshot is returned by SnapshotRestore for an archive of
	// another cluster.
	ErrForeignSnapshot = errors.New("snapshot belongs to another cluster")
)

// NotLeaderError is returned when a call needs the leader and this server is
// not it. The call had no effect. LeaderID and LeaderAddr are empty while no
// leader is known.
type NotLeaderError struct {
	LeaderID   string
	LeaderAddr string
}

func (e *NotLeaderError) Error() string {
	if e.LeaderID == "" && e.LeaderAddr == "" {
		return "not the leader, and no leader is known"
	}
	return fmt.Sprintf("not the leader, which is %s at %s", e.LeaderID, e.LeaderAddr)
}

// CorruptError names the file that failed, the log index where one is known,
// and the cure. It matches ErrCorrupt.
type CorruptError struct {
	File  string // path of the damaged file
	Index uint64 // log index of the damaged entry, 0 where none is known
	Err   error  // what was wrong

	Others Others // the cure depends on them
}

func (e *CorruptError) Error() string {
	where := e.File
	if e.Index != 0 {
		where = fmt.Sprintf("%s at log index %d", e.File, e.Index)
	}
	return fmt.Sprintf("%s is corrupt: %v; %s", where, e.Err, e.cure())
}

// cure is what helps. A server that may be the only one is never told to throw
// anything away.
func (e *CorruptError) cure() string {
	const restore = "keep the data directory and go on from a backup (operator raft recover -snapshot)"
	switch e.Others {
	case OthersThere:
		return "remove the data directory and rejoin as a new server, as long as the other servers have a leader"
	case OthersNone:
		return "it is the only server: " + restore
	}
	return "if other servers of the cluster have a leader, move the data directory away and rejoin as a new server; if this is the only one, " + restore
}

// Unwrap returns the cause.
func (e *CorruptError) Unwrap() error { return e.Err }

// Is matches ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }
