package consensus

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/hashicorp/raft"
)

// Limits that Open and Propose keep.
const (
	// MaxCommandBytes is the largest command that Propose takes.
	MaxCommandBytes = 16 << 20

	maxProposalsInFlight = 4096 // callers waiting for their proposal; the next one waits for a place
	maxAppendEntries     = 256  // entries of one disk write and of one RPC to a follower
	snapshotsKept        = 2    // the newest and the one before it

	defaultSegmentBytes = 16 << 20  // of one log file; preallocated
	defaultMinFreeBytes = 128 << 20 // several log files and a snapshot

	defaultSnapshotThreshold = 8192
	defaultTrailingLogs      = 16384 // two thresholds: seconds of heavy writing that a restoring follower may miss; read in 0.1 s at each start
	defaultSnapshotInterval  = 30 * time.Second

	exitStorage = 74 // EX_IOERR: exit code when the disk cannot be trusted or does not answer
	exitState   = 65 // EX_DATAERR: exit code when the leader sends a state that this version does not know
	exitWedged  = 70 // EX_SOFTWARE: exit code when raft itself hangs
)

// FSM is the replicated state. All methods but those of Snapshot are called
// from one goroutine, in log order; the FSM owns the bytes it is given.
type FSM interface {
	// Apply changes the state by a command that is committed at index, and
	// returns what Propose hands to its caller on the proposing server. It must
	// be deterministic and must not block on anything but the CPU. A command
	// it does not know must panic: skipping it would fork the replicas.
	Apply(index uint64, command []byte) any
	// Snapshot captures the state quickly; Apply waits meanwhile.
	Snapshot() (Snapshot, error)
	// Restore replaces the whole state by one that Persist wrote.
	Restore(io.Reader) error
}

// BatchFSM is an FSM that applies several commands in one go, in the order of
// the log and with the answers of Apply. A busy log hands it what was committed
// together, so that one change of the state serves many callers.
type BatchFSM interface {
	ApplyBatch(indexes []uint64, commands [][]byte) []any
}

// Snapshot is one captured state. Persist runs beside Apply, on another
// goroutine; Release is called once, whether or not Persist was.
type Snapshot interface {
	Persist(io.Writer) error
	Release()
}

// SnapshotChecker is an FSM that can tell, without changing itself, whether it
// could Restore what a reader holds. SnapshotRestore asks it first: a Restore
// that fails after the archive was committed would stop every server.
type SnapshotChecker interface {
	CheckSnapshot(io.Reader) error
}

// Timings are the clocks of the cluster. All servers should use the same.
type Timings struct {
	Heartbeat  time.Duration // silence of the leader after which a follower seeks election
	Election   time.Duration // length of one election round, >= Heartbeat
	Lease      time.Duration // silence of a quorum after which a leader steps down, <= Heartbeat
	Commit     time.Duration // idle time after which a leader repeats its commit index
	IO         time.Duration // deadline of dialling and of each RPC; snapshots get more by size
	StallWarn  time.Duration // disk operation in flight: log a warning
	StallFatal time.Duration // disk operation in flight: cut the transport and exit
	Wedge      time.Duration // entries to a follower in contact without an answer, or never sent, beyond all deadlines: exit
}

// DefaultTimings suit servers on one site: a killed leader is replaced in
// about a second.
func DefaultTimings() Timings {
	return Timings{
		Heartbeat:  400 * time.Millisecond,
		Election:   400 * time.Millisecond,
		Lease:      300 * time.Millisecond,
		Commit:     50 * time.Millisecond,
		IO:         2 * time.Second,
		StallWarn:  time.Second,
		StallFatal: 2 * time.Second,
		Wedge:      5 * time.Second,
	}
}

// Scale multiplies the timings of elections by factor, for servers far apart
// or on overloaded machines. The limits on the disk stay.
func (t Timings) Scale(factor float64) Timings {
	by := func(d time.Duration) time.Duration { return time.Duration(float64(d) * factor) }
	t.Heartbeat, t.Election, t.Lease, t.IO = by(t.Heartbeat), by(t.Election), by(t.Lease), by(t.IO)
	return t
}

// Config says who a server is, where it keeps its state and how it speaks.
type Config struct {
	ClusterID string // of the cluster; state of another cluster is refused
	ID        string // of this server, from EnsureIdentity; may be empty with Dir: then the directory's identity is used, or made

	Dir    string  // data directory, for this package alone
	Memory *Memory // instead of Dir in tests

	Stream    raft.StreamLayer // carries connections between servers; package rpc provides it
	Transport raft.Transport   // instead of Stream in tests
	Advertise string           // host:port under which other servers reach Stream

	FSM FSM
	Log *slog.Logger

	Timings           Timings       // zero: DefaultTimings
	SnapshotThreshold uint64        // entries since the last snapshot that make a new one; 0: 8192
	SnapshotInterval  time.Duration // how often the threshold is looked at, at least; 0: 30 s
	TrailingLogs      uint64        // entries kept before the snapshot for slow followers; 0: 16384
	MinFreeBytes      uint64        // free space below which this server should not lead; 0: 128 MiB

	// FreeBytes returns the free space of Dir; nil asks the file system.
	FreeBytes func(dir string) (uint64, error)
	// Full reports whether another server is known to have no room either, so that
	// a leader without room does not hand over to it; nil knows nothing.
	Full func(id string) bool
	// Committed is told how long a proposal of this server took from the hand-over to
	// raft until it was applied; it must not block. nil: nobody asks.
	Committed func(took time.Duration)
	// ExitFunc ends the process when state cannot be trusted; nil: os.Exit.
	ExitFunc func(code int)

	segmentBytes int // of one log file; tests make them small
}

// withDefaults fills what was left empty and refuses what contradicts itself.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.ClusterID == "":
		return c, errors.New("open consensus: cluster id is empty")
	case c.FSM == nil:
		return c, errors.New("open consensus: FSM is nil")
	case (c.Dir == "") == (c.Memory == nil):
		return c, errors.New("open consensus: give exactly one of Dir and Memory")
	case (c.Stream == nil) == (c.Transport == nil):
		return c, errors.New("open consensus: give exactly one of Stream and Transport")
	case c.Memory != nil && c.ID == "":
		return c, errors.New("open consensus: server id is empty")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timings == (Timings{}) {
		c.Timings = DefaultTimings()
	}
	orDefault(&c.SnapshotThreshold, defaultSnapshotThreshold)
	orDefault(&c.SnapshotInterval, defaultSnapshotInterval)
	orDefault(&c.TrailingLogs, defaultTrailingLogs)
	orDefault(&c.MinFreeBytes, defaultMinFreeBytes)
	orDefault(&c.segmentBytes, defaultSegmentBytes)
	if c.ExitFunc == nil {
		c.ExitFunc = os.Exit
	}
	if c.Full == nil {
		c.Full = func(string) bool { return false }
	}
	if c.FreeBytes == nil && c.Dir != "" {
		c.FreeBytes = freeBytes
	}
	return c, nil
}

func orDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// raftConfig returns the library's view of c. notify hears of leadership; raft
// blocks on it, so somebody must always read.
func (c Config) raftConfig(notify chan<- bool) (*raft.Config, error) {
	rc := raft.DefaultConfig()
	rc.LocalID = raft.ServerID(c.ID)
	rc.HeartbeatTimeout = c.Timings.Heartbeat
	rc.ElectionTimeout = c.Timings.Election
	rc.LeaderLeaseTimeout = c.Timings.Lease
	rc.CommitTimeout = c.Timings.Commit
	rc.MaxAppendEntries = maxAppendEntries
	rc.BatchApplyCh = true
	rc.ShutdownOnRemove = false // the server that was removed decides what it does
	rc.SnapshotThreshold = c.SnapshotThreshold
	rc.SnapshotInterval = c.SnapshotInterval
	rc.TrailingLogs = c.TrailingLogs
	rc.NoLegacyTelemetry = true
	rc.NotifyCh = notify
	rc.Logger = newHclog(c.Log, "raft")
	if err := raft.ValidateConfig(rc); err != nil {
		return nil, fmt.Errorf("check raft configuration: %w", err)
	}
	return rc, nil
}
