package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"nomadlike/nomadlike/auth"
	"nomadlike/nomadlike/consensus"
	"nomadlike/nomadlike/state"
	"nomadlike/nomadlike/structs"
	"nomadlike/nomadlike/wire"
)

// Log is the replicated log as this package uses it; *consensus.Node is one,
// and so is *consensus.FakeNode. The log applies to the same Store that Config
// names, through a Machine.
type Log interface {
	// Propose, ReadIndex and WaitApplied are as of consensus.Node.
	Propose(ctx context.Context, command []byte) (consensus.Result, error)
	ReadIndex(ctx context.Context) (uint64, error)
	WaitApplied(ctx context.Context, index uint64) error
	// LeadershipCh reports when this server begins and ceases to lead; this
	// package is its one reader.
	LeadershipCh() <-chan consensus.Leadership
	// LeaderID and LeaderAddr tell who leads, "" when nobody is known to.
	LeaderID() string
	LeaderAddr() string
}

// Agent is another agent to talk to.
type Agent struct {
	ID   string
	Addr string    // host:port of its RPC
	Role auth.Role // that it must have; "" for any
}

// Peers reaches other agents. Methods wait no longer than their context; a
// failure with structs.CodeUnavailable means that nothing was sent.
type Peers interface {
	// Propose hands a command to the leader.
	Propose(ctx context.Context, leader Agent, request *structs.ProposeRequest) (*structs.ProposeReply, error)
	// ReadIndex asks the leader for an index.
	ReadIndex(ctx context.Context, leader Agent) (*structs.ReadIndexReply, error)
	// Liveness tells the leader which nodes this server hears.
	Liveness(ctx context.Context, leader Agent, report *structs.LivenessReport) error
	// Alive probes an agent directly, a few times within some 300 ms; nil when
	// it answered, ErrAgentDown when its machine answered in its place.
	Alive(ctx context.Context, agent Agent) error
	// Witness asks an agent whether it reaches another.
	Witness(ctx context.Context, agent Agent, request *structs.WitnessRequest) (*structs.WitnessReply, error)
}

// Timings are the clocks of a server's duties. Zero values mean the defaults.
type Timings struct {
	HeartbeatEvery  time.Duration // of nodes; 200 ms
	LeaseTTL        time.Duration // after which strict jobs stop themselves; 10 s
	HeartbeatsEvery time.Duration // how often a follower tells the leader whom it hears; 100 ms
	SweepEvery      time.Duration // 1 s
	ExplainEvery    time.Duration // least time between explanations of a busy queue; 100 ms
	HelloTimeout    time.Duration // for a node's first word; 5 s
	Liveness        LivenessTimings
}

func (t Timings) withDefaults() Timings {
	set := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	set(&t.HeartbeatEvery, 200*time.Millisecond)
	set(&t.LeaseTTL, 10*time.Second)
	set(&t.HeartbeatsEvery, 100*time.Millisecond)
	set(&t.SweepEvery, time.Second)
	set(&t.ExplainEvery, 100*time.Millisecond)
	set(&t.HelloTimeout, 5*time.Second)
	t.Liveness = t.Liveness.withDefaults()
	return t
}

// Observer is told how the scheduling of a leader goes. Its methods may be called from
// any goroutine and must not block.
type Observer interface {
	// Passed is told how long one pass over the queue took, its log entries included.
	Passed(took time.Duration)
	// Placed is told that an attempt got its nodes at a time, how long it had waited, and
	// the first answer to when it would start; nil: none was given.
	Placed(job *structs.Job, at structs.UnixNano, waited time.Duration, first *structs.Forecast)
}

// Config says what a Server works with.
type Config struct {
	ID    string // of this server
	Name  string // of its machine, for people
	Store *state.Store
	Log   Log
	Peers Peers

	Now    func() time.Time // the wall clock
	Rand   io.Reader        // randomness of ids
	Logger *slog.Logger

	Timings Timings

	// ClusterInit is what a leader that finds no cluster record proposes; nil
	// on servers that joined a cluster.
	ClusterInit *structs.ClusterInit
	// ForgetNodes is how long a node is down before it is forgotten; 0: never.
	ForgetNodes time.Duration
	// Servers lists the other servers that are reachable, and Addresses the
	// RPC addresses of all, for nodes to reconnect to. Both may be called
	// from any goroutine.
	Servers   func() []Agent
	Addresses func() []string
	// Protocol is the lowest wire.ProtocolVersion of the servers that apply the
	// log, as far as it is known; nil: all are of this version.
	Protocol func() int
	// Kept says which ended jobs the leader leaves in the state.
	Kept Kept
	// JobBytesMax is how large all jobs that have not ended may be together;
	// structs.JobBytesOf says what of it is for one user. 0: any size.
	JobBytesMax int64
	// Lowest is the server of Raft's configuration that speaks the lowest
	// protocol, with that; one that tells none counts as wire.OldestProtocol. nil:
	// all are of this version.
	Lowest func() (protocol int, server string)
	// Speaks is the wire.ProtocolVersion that a node has told, 0 when nobody knows;
	// nil: nobody does.
	Speaks func(nodeID string) int
	// SignCSR signs an agent's certificate; nil where the CA's key is not.
	// IP is where the agent's own connection comes from, "" when somebody else
	// passed it on: no other address may stand in the certificate.
	SignCSR func(csrPEM []byte, identity auth.Identity, ip string) ([]byte, error)
	// Observer is told how scheduling goes; nil: nobody asks.
	Observer Observer
	// CleanUp is called on the leader at each sweep, to remove servers that
	// are gone for good; it may be nil and must heed its context.
	CleanUp func(ctx context.Context)
}

func (c Config) withDefaults() (Config, error) {
	switch {
	case c.ID == "":
		return c, errors.New("open server: id is empty")
	case c.Store == nil, c.Log == nil, c.Peers == nil:
		return c, errors.New("open server: store, log and peers are required")
	case c.Now == nil, c.Rand == nil, c.Logger == nil:
		return c, errors.New("open server: clock, randomness and logger are required")
	}
	if c.Servers == nil {
		c.Servers = func() []Agent { return nil }
	}
	if c.Addresses == nil {
		c.Addresses = func() []string { return nil }
	}
	if c.Protocol == nil {
		c.Protocol = func() int { return wire.ProtocolVersion }
	}
	if c.Lowest == nil {
		c.Lowest = func() (int, string) { return wire.ProtocolVersion, "" }
	}
	if c.Speaks == nil {
		c.Speaks = func(string) int { return 0 }
	}
	c.Timings = c.Timings.withDefaults()
	return c, nil
}

// now is the wall clock as the log keeps it.
func (c *Config) now() structs.UnixNano { return structs.At(c.Now()) }
